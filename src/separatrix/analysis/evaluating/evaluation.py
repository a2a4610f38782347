"""The result of `evaluate`: how good a classifier is on labelled rows, beside a baseline and with its uncertainty."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from separatrix.analysis.evaluating.probability_bins import Calibration
from separatrix.analysis.evaluating.ranking import Ranking, check_criterion, comparable, costs_of, wilson
from separatrix.data.errors import counted
from separatrix.engine.rows import Floats, Ints

if TYPE_CHECKING:
    import os

    from rich.console import Console, ConsoleOptions, RenderResult

MOST_ERRORS = 20
MOST_POINTS = 500
"""A curve has at most about so many points in a document."""


class Baseline(NamedTuple):
    """The most frequent label of the evaluated rows, and the accuracy of always predicting it."""

    label: Any
    accuracy: float


class ClassFigures(NamedTuple):
    """The figures of one class; ROC AUC and average precision are those of the class against the rest.

    Of more than two classes they are by the probability or, without one, by the lead over the highest score of the others.
    """

    precision: float
    recall: float
    f1: float
    rows: int
    roc_auc: float | None
    average_precision: float | None


class RowError(NamedTuple):
    """A row that is predicted wrongly; classes by number; `score`: of the second of two classes, or the lead."""

    row: int
    place: str
    true: int
    predicted: int
    score: float
    probabilities: list[float] | None
    values: dict[str, Any]


class Sample(NamedTuple):
    """The class (−1: none of the model's) and the scores of the evaluated rows, or of a random sample of all `n`."""

    codes: Ints
    scores: Floats
    n: int


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How good a classifier is on labelled rows: `evaluate` makes it.

    It shows itself in a terminal and in a notebook; `to_dict()` and `to_json()` have all figures, `report(path)` writes a
    page of HTML. A figure that is not defined is None, and `undefined` says why. Labels that the model does not know count
    as wrong: they are classes of recall 0 in averages, and lower the precision of what they are predicted as; figures from
    scores and probabilities leave them out.

    Attributes
    ----------
    rows, accuracy, interval : the interval is Wilson's, of 95 % confidence
    baseline : `Baseline(label, accuracy)` of always predicting the most frequent label of these rows
    balanced_accuracy, macro_f1, weighted_f1 : as in scikit-learn; classes that are neither true nor predicted are left out
    by_class : `ClassFigures` of each class
    roc_auc, average_precision : two classes: of the positive one; K classes: mean of each class against the rest, by its
        probability or, where there are none, by what its score is ahead of the highest of the others
    log_loss, brier, calibration_error : where there are probabilities
    confusion : rows by true class (first axis) and predicted class
    threshold : two classes: the score of the positive class above which it is predicted
    errors : the most confident wrong rows

    Examples
    --------
    >>> from separatrix import Perceptron, evaluate
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0]], ["no", "no", "yes", "no", "yes"]
    >>> evaluation = evaluate(Perceptron(random_state=0).fit(X, y), X, y)
    >>> evaluation.optimize("cost=1:10").by_class["yes"].recall
    1.0
    >>> evaluation.confusion.sum().item(), evaluation.undefined["log_loss"]
    (5, 'the model has no probabilities: train it with calibrate')
    """

    name: str
    classes: list[Any]
    positive: int
    confusion: Ints
    of_unknown: Ints
    unknown_labels: dict[str, int]
    sample: Sample | None
    calibration: Calibration | None
    candidates: list[RowError]
    cut: float = 0.0
    zero_is_positive: bool = False
    slope: float | None = None
    chosen_by: str | None = None
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    # Counts.

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(label) for label in self.classes]

    @cached_property
    def rows(self) -> int:
        """How many rows were evaluated."""
        return int(self.confusion.sum() + self.of_unknown.sum())

    @cached_property
    def accuracy(self) -> float:
        """The share of rows that are predicted rightly."""
        return float(np.trace(self.confusion) / self.rows)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson for the accuracy: rows drawn from where these come from."""
        return wilson(int(np.trace(self.confusion)), self.rows)

    @cached_property
    def baseline(self) -> Baseline:
        """The most frequent label, and the accuracy of always predicting it."""
        counts = dict(zip(self.classes, self.confusion.sum(axis=1).tolist(), strict=True)) | self.unknown_labels
        label = max(counts, key=lambda label: counts[label])
        return Baseline(label, counts[label] / self.rows)

    @property
    def beats_baseline(self) -> bool:
        """Whether the accuracy is higher than that of the baseline."""
        return self.accuracy > self.baseline.accuracy

    @cached_property
    def _by_class(self) -> tuple[Floats, Floats, Floats, Ints]:
        """Precision, recall, F1 and rows of each class."""
        right, rows = np.diag(self.confusion), self.confusion.sum(axis=1)
        predicted = self.confusion.sum(axis=0) + self.of_unknown
        precision, recall = right / np.maximum(1, predicted), right / np.maximum(1, rows)
        return precision, recall, 2 * right / np.maximum(1, predicted + rows), rows

    @cached_property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that have rows."""
        _, recall, _, rows = self._by_class
        return float(recall.sum() / (np.count_nonzero(rows) + len(self.unknown_labels)))

    @cached_property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that have rows or are predicted."""
        met = (self.confusion.sum(axis=0) + self.of_unknown + self.confusion.sum(axis=1)) > 0
        return float(self._by_class[2].sum() / (np.count_nonzero(met) + len(self.unknown_labels)))

    @cached_property
    def weighted_f1(self) -> float:
        """The mean F1 of the classes, weighted by their rows."""
        return float((self._by_class[2] * self._by_class[3]).sum() / self.rows)

    # Scores.

    @property
    def two_classes(self) -> bool:
        """Whether there are two classes, one of which is the positive one."""
        return len(self.classes) == 2

    @cached_property
    def rankings(self) -> list[Ranking]:
        """The rows ranked for each class; empty where there are no scores."""
        if self.sample is None:
            return []
        known = self.sample.codes >= 0
        codes, scores = self.sample.codes[known], self.sample.scores[known]
        columns = np.hstack([-scores, scores]) if self.two_classes else comparable(scores, self.slope)
        return [Ranking.of(codes == k, columns[:, k]) for k in range(len(self.classes))]

    @cached_property
    def by_class(self) -> dict[Any, ClassFigures]:
        """The figures of each class."""
        ranked: list[tuple[float | None, float | None]]
        ranked = [(r.roc_auc(), r.average_precision()) for r in self.rankings] or [(None, None)] * len(self.classes)
        columns = zip(self.classes, *(part.tolist() for part in self._by_class), ranked, strict=True)
        return {label: ClassFigures(p, r, f, n, *scored) for label, p, r, f, n, scored in columns}

    @property
    def roc_auc(self) -> float | None:
        """The area below the ROC curve, of each class against the rest on the average."""
        return self._mean("roc_auc")

    @property
    def average_precision(self) -> float | None:
        """The average precision of the positive class, or of each class against the rest on the average."""
        return self._mean("average_precision")

    def _mean(self, name: str) -> float | None:
        figures = list(self.by_class.values())
        if self.two_classes:
            figures = [figures[self.positive]]
        values = [value for value in (getattr(one, name) for one in figures) if value is not None]
        return float(np.mean(values)) if values else None

    @property
    def log_loss(self) -> float | None:
        """The mean of −log P(true class)."""
        return None if self.calibration is None else self.calibration.loss / max(1, self.calibration.n)

    @property
    def brier(self) -> float | None:
        """Two classes: the mean of (P − 1[positive])²; K classes: of the sum of (P_k − 1[k])² over the classes."""
        return None if self.calibration is None else self.calibration.brier / max(1, self.calibration.n)

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error (ECE) in ten bins of equal width."""
        return None if self.calibration is None else self.calibration.error

    @cached_property
    def undefined(self) -> dict[str, str]:
        """Why a figure is None, by its name."""
        reasons: dict[str, str] = {}
        if self.sample is None:
            reasons |= dict.fromkeys(("roc_auc", "average_precision"), "the classifier has no scores")
        else:
            present = np.count_nonzero(self.confusion.sum(axis=1))
            if self.roc_auc is None:
                reasons["roc_auc"] = f"the rows are of {counted(int(present), 'class')}, and two are compared"
            if self.average_precision is None:
                reasons["average_precision"] = f"no row is of {self.names[self.positive]}"
        if self.calibration is None:
            names = ("log_loss", "brier", "calibration_error")
            reasons |= dict.fromkeys(names, "the model has no probabilities: train it with calibrate")
        return reasons

    # The threshold.

    @property
    def threshold(self) -> float | None:
        """Two classes: the score of the positive class above which it is predicted; None for more classes."""
        return (self.cut if self.positive else -self.cut) + 0.0 if self.two_classes else None

    def at(self, threshold: float, chosen_by: str | None = None) -> Evaluation:
        """Return the evaluation with another threshold on the score of the positive class."""
        scores = self._all_scores()
        cut = float(threshold) if self.positive else -float(threshold)
        if not math.isfinite(cut):
            raise ValueError(f"threshold={threshold} is not a finite number")
        codes, column = scores.codes, scores.scores[:, 0]
        decided = (column >= cut if self.zero_is_positive else column > cut).astype(np.int64)
        known, confusion = codes >= 0, np.zeros_like(self.confusion)
        np.add.at(confusion, (codes[known], decided[known]), 1)
        of_unknown = np.bincount(decided[~known], minlength=2)
        return replace(self, confusion=confusion, of_unknown=of_unknown, cut=cut, chosen_by=chosen_by)

    @property
    def probability_threshold(self) -> float | None:
        """The probability of the positive class at the threshold, where probabilities follow from scores by a slope."""
        if self.slope is None or self.threshold is None:
            return None
        return 1.0 / (1.0 + math.exp(min(700.0, -self.slope * self.threshold)))

    def score_of(self, probability: float) -> float:
        """Return the score of the positive class at which it has a probability."""
        if self.slope is None:
            raise ValueError("a threshold of the probability needs a calibrated model; give one of the score, or calibrate")
        if not 0.0 < probability < 1.0:
            raise ValueError(f"a threshold of the probability is between 0 and 1, not {probability:g}")
        return math.log(probability / (1.0 - probability)) / self.slope

    def best_threshold(self, criterion: str) -> float:
        """Return the threshold that is best on these rows: for "f1" of the positive class, "balanced" accuracy, "accuracy",

        or "cost=FP:FN", the smallest cost where a false positive costs FP and a false negative FN.
        """
        check_criterion(criterion)
        self._all_scores()
        return self.rankings[self.positive].best_threshold(criterion)

    def optimize(self, criterion: str) -> Evaluation:
        """Return the evaluation with the threshold that is best on these rows; its figures are optimistic for other rows."""
        return self.at(self.best_threshold(criterion), criterion)

    def cost(self, criterion: str) -> float:
        """Return the mean cost of a row for "cost=FP:FN"."""
        false_positive, false_negative = costs_of(criterion)
        other = 1 - self.positive
        counts = self.confusion[other, self.positive], self.confusion[self.positive, other]
        return float((false_positive * counts[0] + false_negative * counts[1]) / self.rows)

    def _all_scores(self) -> Sample:
        if not self.two_classes:
            raise ValueError(f"a threshold decides between two classes, but there are {len(self.classes)}")
        if self.sample is None:
            raise ValueError("a threshold needs scores, which this classifier does not have")
        if len(self.sample.codes) < self.sample.n:
            raise ValueError(f"a threshold needs all scores, and of {self.sample.n:,} rows a sample was stored: use fewer")
        return self.sample

    # Errors.

    def with_candidates(self, candidates: list[RowError]) -> Evaluation:
        """Return the evaluation with other descriptions of the rows that may be its most confident errors."""
        return replace(self, candidates=candidates)

    @cached_property
    def errors(self) -> list[RowError]:
        """The most confident wrong rows: of two classes those with scores farthest beyond the threshold."""
        if not self.two_classes:
            return sorted(self.candidates, key=lambda error: -error.score)[:MOST_ERRORS]
        decide: Callable[[float], int] = lambda s: int(s >= self.cut if self.zero_is_positive else s > self.cut)  # noqa: E731
        wrong = [e._replace(predicted=decide(e.score)) for e in self.candidates if decide(e.score) != e.true]
        return sorted(wrong, key=lambda error: -abs(error.score - self.cut))[:MOST_ERRORS]

    # As other things.

    def remarks(self) -> list[str]:
        """Return what a person should know before trusting the figures."""
        from separatrix.analysis.evaluating.document import remarks_on

        return remarks_on(self)

    def to_dict(self, curves: bool = False) -> dict[str, Any]:
        """Return all figures as plain values; with `curves` also those of ROC and precision and recall, thinned."""
        from separatrix.analysis.evaluating.document import as_document

        return as_document(self, curves)

    def curves(self, most: int = MOST_POINTS) -> dict[str, dict[str, list[list[float]]]]:
        """Return by class the points of its ROC curve and of precision against recall, thinned to about `most` each."""
        from separatrix.analysis.evaluating.document import curves_of

        return curves_of(self, most)

    def to_json(self, curves: bool = False) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(curves), ensure_ascii=False, default=str)

    def report(self, path: str | os.PathLike[str], *, model: Any = None) -> None:
        """Write a page of HTML that stands alone: figures, curves, confusion, calibration, errors; weights of a `model`."""
        from separatrix.analysis.evaluating.report import write_report

        write_report(self, path, model)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from separatrix.analysis.evaluating.display import shown

        yield from shown(self, options.max_width)

    def __repr__(self) -> str:
        from separatrix.analysis.evaluating.display import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from separatrix.analysis.evaluating.display import as_html

        return as_html(self)
