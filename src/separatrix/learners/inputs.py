"""The inputs of a learner, checked: X, y, weights, declared classes and held-out examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.labels import Codes, as_labels, check_unmasked, come_in_runs, encode, with_newcomer
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows
from separatrix.engine.rules import tie_code
from separatrix.engine.run import Run
from separatrix.engine.user_warnings import warn_user

_ONES_BETWEEN_CHECKS = 64


class HeldOut(NamedTuple):
    """Examples kept out of training: some rows (none named: all) and their classes."""

    rows: Rows
    which: Ints
    codes: Codes

    def examples(self) -> Rows:
        """Return the rows themselves."""
        return self.rows.take(self.which) if self.which.size else self.rows


class SortedRowsWarning(UserWarning):
    """The rows are sorted by label, and are presented in that order."""


class LabelRuns:
    """Watches the labels of a stream: do equal ones follow each other, as in rows sorted by label?"""

    def __init__(self) -> None:
        self.counts: Counter[Any] = Counter()
        self.changes = 0
        self.last: Any = None
        self.warned = False
        self._since_check = 0

    def watch_one(self, label: Any) -> None:
        """Count one label; now and then, see whether they come in runs."""
        self.counts[label] += 1
        self.changes += label != self.last
        self.last = label
        self._since_check += 1
        if self._since_check == _ONES_BETWEEN_CHECKS:
            self._since_check = 0
            self._check()

    def watch(self, y: Array) -> None:
        """Count the next labels; warn once, as soon as they come in runs."""
        if self.warned or not len(y):
            return
        labels, counts = np.unique(y, return_counts=True)
        self.counts.update(dict(zip(labels.tolist(), counts.tolist(), strict=True)))
        ends = y[[0, -1]].tolist()
        self.changes += int(np.count_nonzero(y[1:] != y[:-1])) + (ends[0] != self.last)
        self.last = ends[1]
        self._check()

    def _check(self) -> None:
        if not self.warned and come_in_runs(np.array([*self.counts.values()]), self.changes - 1):
            self.warned = True
            warn_user(
                "labels come in runs, as in rows sorted by label: what is learned last overrides what came before; "
                "shuffle the rows, or use fit, which shuffles them",
                SortedRowsWarning,
            )


def warn_if_sorted(codes: Codes, learner: object) -> None:
    """Warn where rows that were presented in their order are sorted by label; `codes` are places among the classes."""
    changes = int(np.count_nonzero(codes[1:] != codes[:-1]))
    if changes < len(codes) / 10 and come_in_runs(np.bincount(codes), changes):  # no classes would make a tenth too few
        warn_of_sorted_rows(learner)


def warn_of_sorted_rows(learner: object) -> None:
    """Warn that the rows are sorted by label, and presented in their order."""
    in_order, mixed = 'order="cyclic"', 'order="shuffle"'
    if hasattr(learner, "shuffle"):  # the parameter of scikit-learn's classes
        in_order, mixed = "shuffle=False", "shuffle=True"
    warn_user(
        f"the rows are sorted by label, and {in_order} presents them so, which few problems can be learned in; use {mixed}",
        SortedRowsWarning,
    )


class NoneHeldOutError(ValueError):
    """The held-out fraction of the examples rounds to none."""


def example_weight(sample_weight: Any, n: int) -> Floats:
    """Return the weight of each of n examples, or an empty array where all are 1; raise for what cannot be a weight."""
    if sample_weight is None:
        return NO_WEIGHT
    check_unmasked(sample_weight, "sample_weight")
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but there are {n} examples: it must be ({n},)")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if wrong.size:
        raise ValueError(
            f"sample_weight[{wrong[0]}] is {weight[wrong[0]]}: a weight must be finite, and negative values have no meaning"
        )
    return weight


def weight_by_class(class_weight: Any, y: Array, classes: Array | None = None) -> Floats:
    """Return the weight that the class of each example has by a dict, or by "balanced"; `classes` are all it may name."""
    if class_weight == "balanced":
        labels, codes = encode(y)
        class_weight = dict(zip(labels.tolist(), len(y) / (len(labels) * np.bincount(codes)), strict=True))
    factors = np.ones(len(y))
    for label, factor in class_weight.items():
        if not (np.isfinite(factor) and factor >= 0):
            raise ValueError(f"class_weight[{label!r}] is {factor}: a weight must be finite and not negative")
        if classes is not None and label not in classes.tolist():
            raise ValueError(f"class_weight names {label!r}, which is not among the classes {classes.tolist()[:5]}")
        factors[y == label] = factor
    return factors


def declared_classes(classes: Any) -> Array:
    """Return the classes given to `partial_fit`, sorted."""
    labels = np.asarray(sorted(classes) if isinstance(classes, set | frozenset) else classes)
    if labels.ndim != 1 or not labels.size:
        raise ValueError(f"classes must be a list of one label or more, got {classes!r}")
    return encode(as_labels(labels))[0]


@contextmanager
def schema_kept(estimator: object) -> Iterator[None]:
    """Put the features' names and number back when a fit fails: the earlier fit stays usable."""
    names = ("n_features_in_", "feature_names_in_", "classes_")
    before = {name: vars(estimator)[name] for name in names if name in vars(estimator)}
    try:
        yield
    except BaseException:
        for name in names:
            estimator.__dict__.pop(name, None)
        estimator.__dict__.update(before)
        raise


def check_newcomers(run: Run, labels: list[Any]) -> None:
    """Raise before anything is learned if the run could not take these classes one after the other."""
    classes = run.classes
    for label in labels:
        classes, _ = with_newcomer(classes, label)
    tie_code(run.tie, len(classes), run.multi_class)
