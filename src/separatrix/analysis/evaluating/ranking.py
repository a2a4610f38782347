"""What scores say of a class before any threshold is chosen, the best threshold for a purpose, and an interval for a share.

Rows of equal score are one step: no threshold tells them apart. With P positive and N negative rows, TP and FP of them above
a threshold:

    ROC AUC = area below (FP/N, TP/P), by trapezoids          average precision = Σ (recall step) · TP/(TP + FP)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.engine.rows import Floats, Ints

Z = 1.959963984540054
"""The standard normal distribution has 95 % of its mass between −Z and Z."""
CRITERIA = "f1, balanced, accuracy or cost=FP:FN"


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson for a share, of which `hits` of n were seen.

    Examples
    --------
    >>> [round(end, 4) for end in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    share, z2 = hits / n, Z * Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return (0.0 if hits == 0 else max(0.0, centre - half)), (1.0 if hits == n else min(1.0, centre + half))


class Ranking(NamedTuple):
    """The distinct scores from high to low, and how many positive and negative rows have at least each of them."""

    scores: Floats
    true_positives: Ints
    false_positives: Ints

    @staticmethod
    def of(is_positive: NDArray[np.bool_], scores: Floats) -> Ranking:
        """Return the ranking of some rows by their scores of one class."""
        order = np.argsort(-scores, kind="stable")
        ranked, positive = scores[order], is_positive[order]
        last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], len(ranked) > 0))
        hits = np.cumsum(positive, dtype=np.int64)[last]
        return Ranking(ranked[last], hits, last + 1 - hits)

    @property
    def positives(self) -> int:
        """How many rows are of the class."""
        return int(self.true_positives[-1]) if len(self.scores) else 0

    @property
    def negatives(self) -> int:
        """How many rows are of other classes."""
        return int(self.false_positives[-1]) if len(self.scores) else 0

    def roc_auc(self) -> float | None:
        """Return the area below the ROC curve; None where either kind of rows is missing."""
        if not (self.positives and self.negatives):
            return None
        up, along = (np.append(0, counts).astype(np.float64) for counts in (self.true_positives, self.false_positives))
        return float(np.sum(np.diff(along) * (up[1:] + up[:-1])) / (2.0 * self.positives * self.negatives))

    def average_precision(self) -> float | None:
        """Return the mean precision over the positive rows; None where there is no row of the class."""
        if not self.positives:
            return None
        precision = self.true_positives / (self.true_positives + self.false_positives)
        return float(np.sum(np.diff(self.true_positives, prepend=0) * precision) / self.positives)

    def roc(self) -> tuple[Floats, Floats]:
        """Return the false positive rate and the true positive rate at each score, from (0, 0) to (1, 1)."""
        along, up = np.append(0, self.false_positives), np.append(0, self.true_positives)
        return along / max(1, self.negatives), up / max(1, self.positives)

    def precision_recall(self) -> tuple[Floats, Floats]:
        """Return recall and precision at each score, the highest score first."""
        recall = self.true_positives / max(1, self.positives)
        return recall, self.true_positives / (self.true_positives + self.false_positives)

    def best_threshold(self, criterion: str) -> float:
        """Return the threshold above which rows should be predicted as the class; of equally good ones the nearest to 0.

        A threshold lies half way between two neighbouring scores, so that no row's score equals it; where 0 lies between
        the two as well, it is 0.
        """
        value = self.values(criterion)
        best = np.flatnonzero(value >= value.max() - 1e-12 * max(1.0, abs(float(value.max()))))
        lowest, highest = float(self.scores[-1]), float(self.scores[0])
        room = 2.0 * ((highest - lowest) or 1.0)
        edges = np.concatenate([[np.inf], self.scores, [-np.inf]])
        above, below = edges[:-1][best], edges[1:][best]
        holds_zero = (below < 0.0) & (0.0 < above)
        above, below = np.minimum(above, highest + room), np.maximum(below, lowest - room)
        middle = np.where(holds_zero, 0.0, np.minimum(below + (above - below) / 2.0, np.nextafter(above, -np.inf)))
        return float(middle[np.argmin(np.abs(middle))])

    def values(self, criterion: str) -> Floats:
        """Return what a criterion says of predicting none, and the rows down to each score; a cost is negative."""
        tp, fp = (np.append(0, counts).astype(np.float64) for counts in (self.true_positives, self.false_positives))
        fn, P, N = self.positives - tp, self.positives, self.negatives
        if criterion == "f1":
            return np.asarray(2 * tp / np.maximum(1.0, 2 * tp + fp + fn))
        if criterion == "accuracy":
            return np.asarray((tp + N - fp) / (P + N))
        if criterion == "balanced":
            return np.asarray(tp / max(1, P) - fp / max(1, N))
        costs = costs_of(criterion)
        return np.asarray(-(costs[0] * fp + costs[1] * fn))


def comparable(scores: Floats, slope: float | None) -> Floats:
    """Return scores of several classes by which rows can be ranked for a class; raw ones may all be high in a row.

    With the slope of calibrated probabilities they are log P(class); without, what a score is ahead of the highest other.

    Examples
    --------
    >>> comparable(np.array([[3.0, 5.0, 4.0]]), None).tolist()
    [[-2.0, 1.0, -1.0]]
    """
    second, first = np.partition(scores, -2, axis=1).T[-2:, :, None]
    if slope is not None:
        exponents = slope * (scores - first)
        return np.asarray(exponents - np.log(np.exp(exponents).sum(axis=1, keepdims=True)))
    return np.asarray(scores - np.where(scores == first, second, first))


def costs_of(criterion: str) -> tuple[float, float]:
    """Return the costs of a false positive and of a false negative that "cost=FP:FN" names; raise for anything else.

    Examples
    --------
    >>> costs_of("cost=1:5")
    (1.0, 5.0)
    """
    word, _, rest = criterion.partition("=")
    try:
        false_positive, false_negative = (float(part) for part in rest.split(":"))
    except ValueError:
        false_positive = false_negative = math.nan
    costs = (false_positive, false_negative)
    if word != "cost" or not all(math.isfinite(cost) and cost >= 0 for cost in costs) or not any(costs):
        raise ValueError(
            f"optimize={criterion!r} is not {CRITERIA}; cost=1:5 means that a false negative costs 5 times a false positive"
        )
    return costs


def check_criterion(criterion: str) -> None:
    """Raise where there is no such criterion."""
    if criterion not in ("f1", "balanced", "accuracy"):
        costs_of(criterion)
