"""From the rows of a file to an `Evaluation`, and how the command line prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from separatrix.analysis.evaluating.counting import Tally, no_known_label
from separatrix.analysis.evaluating.display import shown
from separatrix.analysis.evaluating.evaluation import Evaluation
from separatrix.analysis.evaluating.ranking import check_criterion
from separatrix.cli.errors import in_options
from separatrix.cli.model_rows import ModelRows
from separatrix.data.errors import DataError, NoExampleError
from separatrix.data.labels import matched
from separatrix.files.blocks import LabelIndex


def evaluate_rows(rows: ModelRows, positive: str | None = None) -> Evaluation:
    """Return the evaluation of a model on the rows of a source that have a label."""
    estimator = rows.estimator
    tally = Tally(
        rows.classes.tolist(),
        positive=positive,
        zero_is_positive=getattr(estimator, "tie", "") == "+1",
        threshold=estimator.threshold_ or 0.0,
        slope=getattr(estimator, "slope_", None),
    )
    meant: dict[Any, Any] = {}
    for X, y, batch, which in rows.labelled_rows():

        def describe(i: int, batch: Any = batch, which: Any = which) -> tuple[str, dict[str, Any]]:
            return rows.described(batch, int(which[i]))

        labels = LabelIndex()
        codes = labels.codes(y)
        true = labels.among(rows.classes, as_written=False)[codes]
        meant |= labels.matching(rows.classes)
        scores, met = rows.scores(X), labels.met()
        tally.add(
            true,
            rows.predicted_codes(scores),
            scores,
            rows.probabilities(scores) if rows.calibrated else None,
            unknown=[met[code] for code in codes[true < 0].tolist()],
            describe=describe,
        )
    if not tally.rows:
        raise NoExampleError(f"{rows.source.name}: there is no row with a label; {rows.unlabelled.note}")
    if not tally.confusion.any():
        hint = "" if rows.label is None else f"; is {rows.label!r} the label column? --label names another one"
        raise DataError(f"{rows.source.name}: {no_known_label(tally.rows, tally.unknown_labels)}{hint}")
    notes = [*rows.notes, *matched(meant), *rows.notes_of_training(tally.rows)]
    return tally.evaluation(rows.source.name, notes, skipped=rows.source.skipped, unlabelled=rows.unlabelled.count)


@dataclass(frozen=True)
class Decision:
    """Where two classes are divided: `threshold` is a score, or as p=0.3 a probability; `optimize` chooses the best one."""

    threshold: str | None = None
    optimize: str | None = None

    def __post_init__(self) -> None:
        if self.threshold is not None and self.optimize is not None:
            raise DataError("--threshold cannot be combined with --optimize, which chooses one")
        if self.optimize is not None:
            try:
                check_criterion(self.optimize)
            except ValueError as error:
                raise DataError(str(error)) from None
        if self.threshold is not None:
            self._number()

    def _number(self) -> float:
        assert self.threshold is not None
        try:
            return float(self.threshold.removeprefix("p="))
        except ValueError:
            what = f'--threshold: "{self.threshold}" is neither a score nor a probability such as p=0.3'
            raise DataError(what) from None

    def of(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with these decisions."""
        if self.threshold is not None:
            of_probability = self.threshold.startswith("p=")
            return evaluation.at(evaluation.score_of(self._number()) if of_probability else self._number())
        return evaluation if self.optimize is None else evaluation.optimize(self.optimize)


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the figures for a person."""
    console = Console(highlight=False)
    parts = list(shown(evaluation, console.width))
    for k, part in enumerate(parts):
        console.print(part, soft_wrap=not isinstance(part, Table))
        if k == 0:
            for note in evaluation.notes:
                console.print(in_options(note), markup=False, soft_wrap=True)
