"""Time to accuracy: test accuracy against seconds of training, for a9a, 20 newsgroups, MNIST and sms_spam, with every peer.

python -m benchmarks.curves [--quick]
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from benchmarks import datasets, text
from benchmarks.harness import Row, duration, installed
from benchmarks.learners import LEARNERS, Data, Learner, Point
from benchmarks.report import show
from separatrix import TextFeatures

ABOUT = (
    "Everybody gets the same features and keeps their default settings; only training is timed. A point is a whole fit of "
    "so many passes or iterations, or to such a tolerance: LinearSVC with its dual solver, LIBLINEAR with its primal one. "
    "Vowpal Wabbit trains from its own binary cache; River learns one example at a time. **The mark** is the best accuracy "
    "of any peer within the time given, less one standard error of an accuracy on so many test examples; beside it is "
    "when a learner first reached it."
)


@dataclass(frozen=True)
class Curve:
    """A learner's points, and the mark to reach."""

    columns: ClassVar = ("data", "learner", "first point", "best accuracy", "after", "the mark", "reached after", "verdict")
    aside: ClassVar = frozenset({"learner", "first point", "best accuracy", "after"})

    data: str
    learner: Learner
    points: Sequence[Point]
    mark: float
    first: bool

    @property
    def reached(self) -> float | None:
        """Seconds to the mark."""
        return min((point.seconds for point in self.points if point.accuracy >= self.mark), default=None)

    @property
    def verdict(self) -> str:
        return "first" if self.first else "–"

    def cells(self) -> tuple[str, ...]:
        top, begin = max(self.points, key=lambda point: point.accuracy), self.points[0]
        name = f"**{self.learner.name}**" if self.learner.ours else self.learner.name
        return (
            self.data,
            name,
            f"{begin.accuracy:.4f} after {duration(begin.seconds)}",
            f"{top.accuracy:.4f}",
            duration(top.seconds),
            f"{self.mark:.4f}",
            "never" if self.reached is None else duration(self.reached),
            self.verdict,
        )

    def below(self) -> list[str]:
        _, _, begin, top, after, *_ = self.cells()
        return [f"{self.learner.name}: {begin}, at best {top} after {after}"]

    def document(self) -> dict[str, Any]:
        points = [point._asdict() for point in self.points]
        told = {"data": self.data, "learner": self.learner.name, "ours": self.learner.ours, "points": points}
        return {**told, "mark": self.mark, "reached": self.reached, "verdict": self.verdict}


def coded(X: Any, y: Any, X_test: Any, y_test: Any) -> Data:
    """Labels as codes, rows in a random order: not every learner shuffles them."""
    names, seen, unseen = np.unique(y), *(np.random.default_rng(0).permutation(len(part)) for part in (y, y_test))
    codes, codes_test = np.searchsorted(names, y), np.searchsorted(names, y_test)
    return Data(narrow(X[seen]), codes[seen], narrow(X_test[unseen]), codes_test[unseen])


def narrow(X: Any) -> Any:
    return datasets.with_narrow_indices(X) if sp.issparse(X) else X


def newsgroups() -> Data:
    (train, y), (test, y_test) = text.newsgroups("train"), text.newsgroups("test")
    words = TextFeatures(ngram_range=(1, 1), columns="vocabulary")
    return coded(words.fit_transform(train), y, words.transform(test), y_test)


def sms_spam() -> Data:
    texts, y = text.sms_spam()
    order = np.random.default_rng(0).permutation(len(y))
    seen, unseen = order[: len(y) * 4 // 5], order[len(y) * 4 // 5 :]
    words = TextFeatures(columns="vocabulary")
    X, X_test = words.fit_transform([texts[i] for i in seen]), words.transform([texts[i] for i in unseen])
    return coded(X, y[seen], X_test, y[unseen])


SETS = {
    "a9a": lambda: coded(*datasets.a9a()),
    "20newsgroups": newsgroups,
    "MNIST": lambda: coded(*datasets.mnist()),
    "sms_spam": sms_spam,
}


def rows(quick: bool) -> Iterator[Row | Curve]:
    """The suite "curves"."""
    if datasets.absent():
        yield Row.missing(", ".join(SETS), "", datasets.absent())
        return
    for learner in LEARNERS:
        if not installed(learner.package):
            yield Row.missing(", ".join(SETS), learner.name, f"{learner.package} is not installed")
    for name, load in SETS.items():
        data = load()
        if quick:
            data = Data(*(narrow(part[:3000]) for part in data))
        yield from raced(name, data, 0.5 if quick else 6.0)


def raced(name: str, data: Data, budget: float) -> Iterator[Curve]:
    """The curves of one data set; the first to the mark, whoever it is, is named."""
    found = {learner: list(learner.points(data, budget)) for learner in LEARNERS if installed(learner.package)}
    top = max(p.accuracy for learner, points in found.items() if not learner.ours for p in points)
    mark = top - float(np.sqrt(top * (1 - top) / len(data.y_test)))
    reached = {
        learner: min((p.seconds for p in points if p.accuracy >= mark), default=np.inf) for learner, points in found.items()
    }
    first = min(reached, key=reached.__getitem__)
    for learner, points in found.items():
        yield Curve(name, learner, points, mark, learner is first)


def charts(lines: Sequence[Any], folder: Path) -> list[tuple[str, str]]:
    from benchmarks.charts import time_to_accuracy

    return time_to_accuracy([line for line in lines if isinstance(line, Curve)], folder)


if __name__ == "__main__":
    found: list[Any] = list(rows("--quick" in sys.argv))
    show([line for line in found if isinstance(line, Curve)])
