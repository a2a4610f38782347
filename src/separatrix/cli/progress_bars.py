"""Progress bars on standard error, where that is a terminal; nothing is left of them at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from separatrix.training.progress import Progress

if TYPE_CHECKING:
    from separatrix.files.out_of_core import TrainingState


class ProgressBar(Progress):
    """A bar of Rich with these columns: the name of a column class, or a format. Where nobody sees it, there is none."""

    def __init__(self, quiet: bool, *columns: str) -> None:
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        if quiet or not sys.stderr.isatty():
            return
        from rich import progress
        from rich.console import Console

        parts = [
            getattr(progress, column)() if hasattr(progress, column) else progress.TextColumn(column) for column in columns
        ]
        self._bar = progress.Progress(*parts, console=Console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()


class TrainingProgress(ProgressBar):
    """Rows read and rows trained on: rows a second, mistakes, progressive error, held-out accuracy, time left."""

    def __init__(self, quiet: bool) -> None:
        columns = ("{task.description}", "BarColumn", "{task.completed:,.0f} {task.fields[unit]}", "{task.fields[figures]}")
        super().__init__(quiet, *columns, "TimeElapsedColumn", "TimeRemainingColumn")

    def rows_read(self, activity: str, rows: int) -> None:
        """Count rows that were read."""
        if self._bar is None:
            return
        if activity not in self._tasks:
            self._tasks[activity] = self._bar.add_task(activity, total=None, figures="", unit="rows")
        self._bar.advance(self._tasks[activity], rows)

    def folds_done(self, done: int, total: int) -> None:
        """Show how many folds are done."""
        self._show("cross-validating", total, done, "folds", "")

    def searched(self, spent: float, candidates: int, best: float) -> None:
        """Show the share of the budget that is spent, how many recipes were tried, and how good the best is."""
        self._show("tuning", 100, 100 * spent, "% of the budget", f"{candidates:,} recipes, best {best:.4f}")

    def _show(self, activity: str, total: float, done: float, unit: str, figures: str) -> None:
        if self._bar is None:
            return
        if activity not in self._tasks:
            self._tasks[activity] = self._bar.add_task(activity, total=total, figures="", unit=unit)
        self._bar.update(self._tasks[activity], completed=done, figures=figures)

    def begin_training(self, passes: int, rows: int) -> None:
        """Begin to count the rows of the passes."""
        if self._bar is not None:
            self._tasks["training"] = self._bar.add_task("training", total=passes * rows, figures="", unit="rows")

    def rows_trained(self, state: TrainingState, rows: int, n: int) -> None:
        """Count rows that were trained on, of the n rows of a pass."""
        if self._bar is None:
            return
        task = self._tasks["training"]
        speed = self._bar.tasks[self._bar.task_ids.index(task)].speed
        history = state.history
        mistakes = state.partial if state.block else history.mistakes[-1]
        figures = f"pass {history.passes + bool(state.block)}, {mistakes:,} mistakes"
        if history.passes:
            figures += f", progressive error {state.errors / max(1, n):.4f}"
        if history.scores:
            figures += f", held-out accuracy {history.scores[-1]:.4f}"
        if speed:
            figures += f", {speed:,.0f} rows/s"
        self._bar.update(task, advance=rows, figures=figures)


class ProofProgress(ProgressBar):
    """What a proof is doing, and since when; the verdict is told as soon as it is proven, once."""

    def __init__(self, quiet: bool, tell_verdict: Callable[[str], None]) -> None:
        super().__init__(quiet, "SpinnerColumn", "{task.description}", "TimeElapsedColumn")
        self._task = None if self._bar is None else self._bar.add_task("reading", total=None)
        self._tell_verdict: Callable[[str], None] | None = tell_verdict

    def proves(self, activity: str, verdict: str | None) -> None:
        """Show what is done now."""
        if self._bar is not None:
            self._bar.update(self._task, description=f"{verdict}, proven; {activity}" if verdict else activity)
        if verdict is not None and self._tell_verdict is not None:
            tell, self._tell_verdict = self._tell_verdict, None
            if self._bar is not None:
                self._bar.stop()  # or what is printed would become a part of the bar
            tell(verdict)
            if self._bar is not None:
                self._bar.start()


class ShardProgress(ProgressBar):
    """Shards done, of all."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet, "{task.description}", "BarColumn", "MofNCompleteColumn", "shards", "TimeElapsedColumn")
        self._activity = ""
        self._task = None if self._bar is None else self._bar.add_task("", total=None)

    def shards_done(self, activity: str, done: int, total: int) -> None:
        """Show how many shards are done with an activity."""
        if self._bar is None:
            return
        if activity != self._activity:
            self._activity = activity
            self._bar.reset(self._task, total=total, description=activity)
        self._bar.update(self._task, completed=done)
