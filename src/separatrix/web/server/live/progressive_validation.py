"""Progressive validation (L4 2): each example is predicted before it is learned from. Errors by window and class; drift.

The error says little where labels come in runs, as in a file sorted by label: whatever repeats the last label is nearly
always right. So the changes of the label are counted, too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.engine.labels import come_in_runs
from separatrix.engine.rows import Array, Ints

WIDTH = 100
MOST_WINDOWS = 200
RECENT, EARLIER = 10, 30
"""Drift compares the last ten windows of 100 examples with up to thirty windows before them."""
ALARM = 3.0
"""Drift is reported when the error has risen by more than so many standard deviations."""


class Windows:
    """Errors in consecutive windows of equally many examples.

    Beyond `most` windows, neighbours are merged in pairs (`folding`), or the oldest windows are dropped.
    """

    def __init__(self, most: int, folding: bool) -> None:
        self.most, self.folding = most, folding
        self.width, self.first = WIDTH, 0
        self.errors: list[int] = []

    def advance(self, before: int, n: int, wrong: Ints) -> None:
        """Count n examples that follow `before` others; `wrong` are the positions of the errors among them."""
        windows = -(-(before + n) // self.width) - self.first
        self.errors.extend([0] * (windows - len(self.errors)))
        if wrong.size:
            for window, errors in zip(*np.unique((wrong + before) // self.width, return_counts=True), strict=True):
                self.errors[int(window) - self.first] += int(errors)
        while len(self.errors) > self.most:
            if self.folding:
                self.errors = [sum(self.errors[k : k + 2]) for k in range(0, len(self.errors), 2)]
                self.width *= 2
            else:
                spare = len(self.errors) - self.most
                del self.errors[:spare]
                self.first += spare

    def state(self) -> list[Any]:
        """Return the state as JSON values."""
        return [self.width, self.first, list(self.errors)]

    def restore(self, state: list[Any]) -> None:
        """Restore what `state` returned."""
        self.width, self.first, self.errors = int(state[0]), int(state[1]), [int(e) for e in state[2]]


class ProgressiveValidation:
    """Counts of the examples learned from, and of those that had been predicted wrongly just before."""

    def __init__(self) -> None:
        self.examples = self.errors = self.mistakes = self.undone = 0
        self.left_out = 0
        """The examples that were learned once and are left out now: they were forgotten, or undone exactly."""
        self.met: list[int] = []
        """The number of examples of each class, by class number."""
        self.missed: list[int] = []
        """The number of errors of each class."""
        self.watched: list[int] = []
        """The number of examples of each class among those whose order is known: stores of earlier versions lack it."""
        self.changes, self.last_class = 0, -1
        self.windows = Windows(MOST_WINDOWS, folding=True)
        self.recent = Windows(RECENT + EARLIER + 1, folding=False)

    @property
    def numbered(self) -> int:
        """The number of the last example: those that are left out keep their numbers."""
        return self.examples + self.left_out

    def leave_out(self, numbered: int) -> None:
        """Let the last example have a number: those that were not counted here are left out."""
        self.left_out = max(0, numbered - self.examples)

    def advance(self, n: int, mistakes: int, wrong: Ints, wrong_class: Array, met: Array) -> None:
        """Count n examples, `met[k]` of class k; the errors are at positions `wrong` and of classes `wrong_class`."""
        for windows in (self.windows, self.recent):
            windows.advance(self.examples, n, wrong)
        self.examples += n
        self.errors += len(wrong)
        self.mistakes += mistakes
        missed = np.bincount(wrong_class, minlength=len(met))
        for counts, more in ((self.met, met), (self.missed, missed)):
            _add(counts, more)

    def watch(self, met: Array, changes: int, first: int, last: int) -> None:
        """Count the changes of the label among examples that begin with class `first` and end with class `last`."""
        if first < 0:
            return
        _add(self.watched, met)
        self.changes += changes + (self.last_class >= 0 and first != self.last_class)
        self.last_class = last

    def in_runs(self) -> bool:
        """Tell whether equal labels follow each other far more often than in a random order."""
        return come_in_runs(np.array(self.watched, np.int64), self.changes)

    def drift(self) -> dict[str, Any]:
        """Return whether the error has risen: a two-proportion z-test of the recent windows against those before them."""
        n_full = len(self.recent.errors) - (self.examples % WIDTH != 0)
        errors = self.recent.errors[:n_full]
        lately, before = errors[-RECENT:], errors[:-RECENT][-EARLIER:]
        if len(lately) < RECENT or len(before) < RECENT:
            return {"drifting": False, "deviations": None, "recent": None, "before": None, "examples": 0}
        n, m = WIDTH * len(lately), WIDTH * len(before)
        p, q = sum(lately) / n, sum(before) / m
        pooled = (sum(lately) + sum(before)) / (n + m)
        spread = math.sqrt(pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m))
        z = (p - q) / spread if spread else 0.0
        return {"drifting": z > ALARM, "deviations": round(z, 3), "recent": p, "before": q, "examples": n}

    def summary(self, classes: list[Any]) -> dict[str, Any]:
        """Return everything as JSON values; `classes` are the labels by class number."""
        width = self.windows.width
        windows = []
        for k, errors in enumerate(self.windows.errors):
            begin, end = k * width, min((k + 1) * width, self.examples)
            windows.append({"from": begin + 1, "to": end, "errors": errors, "error": errors / max(1, end - begin)})
        by_class = [
            {"class": label, "examples": met, "errors": missed, "error": missed / met if met else None}
            for label, met, missed in zip(classes, self.met, self.missed, strict=False)
        ]
        return {
            "examples": self.examples,
            "errors": self.errors,
            "mistakes": self.mistakes,
            "undone": self.undone,
            "error": self.errors / self.examples if self.examples else None,
            "windows": windows,
            "classes": by_class,
            "drift": self.drift(),
            "in_runs": self.in_runs(),
        }

    def state(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        counts: dict[str, Any] = {name: getattr(self, name) for name in ("examples", "errors", "mistakes", "undone")}
        if self.left_out:
            counts["left_out"] = self.left_out
        if self.watched:
            counts |= {"watched": list(self.watched), "changes": self.changes, "last_class": self.last_class}
        return counts | {
            "met": list(self.met),
            "missed": list(self.missed),
            "windows": self.windows.state(),
            "recent": self.recent.state(),
        }

    @classmethod
    def resumed(cls, state: dict[str, Any]) -> ProgressiveValidation:
        """Return the counts of a snapshot."""
        counts = cls()
        for name in ("examples", "errors", "mistakes", "undone"):
            setattr(counts, name, int(state[name]))
        counts.left_out = int(state.get("left_out", 0))
        counts.met, counts.missed = list(state["met"]), list(state["missed"])
        counts.watched = list(state.get("watched", ()))
        counts.changes, counts.last_class = int(state.get("changes", 0)), int(state.get("last_class", -1))
        counts.windows.restore(state["windows"])
        counts.recent.restore(state["recent"])
        return counts


def _add(counts: list[int], more: Array) -> None:
    """Add counts by class number to those of a list, which grows as needed."""
    counts.extend([0] * (len(more) - len(counts)))
    for k in np.flatnonzero(more).tolist():
        counts[k] += int(more[k])
