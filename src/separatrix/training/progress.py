"""Who is told how a training goes on; here nobody, and in `cli/` a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from separatrix.files.out_of_core import TrainingState


class Progress:
    """Is told, and shows nothing."""

    def rows_read(self, activity: str, rows: int) -> None:
        """Count rows that were read."""

    def begin_training(self, passes: int, rows: int) -> None:
        """Begin to count the rows of the passes."""

    def rows_trained(self, state: TrainingState, rows: int, n: int) -> None:
        """Count rows that were trained on, of the n rows of a pass."""

    def shards_done(self, activity: str, done: int, total: int) -> None:
        """Show how many shards are done with an activity."""

    def folds_done(self, done: int, total: int) -> None:
        """Show how many folds are done."""

    def searched(self, spent: float, candidates: int, best: float) -> None:
        """Show the share of the budget of a search that is spent, how many recipes were tried, and how good the best is."""
