"""Cross-validation of the very pipeline that is trained: features and learner, both from the training rows of a fold alone.

The rows are divided into folds that have about as many of each class. For each fold, a featurizer and a learner learn from
the rows of the other folds, and predict those of this one: every row is predicted by a model that has never seen it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from separatrix.analysis.evaluating.counting import Tally
from separatrix.analysis.evaluating.evaluation import Evaluation
from separatrix.data.errors import DataError, counted
from separatrix.engine.rows import Floats, Ints
from separatrix.kernels.threads import in_order, threads_of
from separatrix.learners.linear_base import LinearLearner
from separatrix.training.tuning.examples import Examples, bytes_of

if TYPE_CHECKING:
    import pyarrow as pa

    from separatrix.features.table import TableFeaturizer

FIGURES = (
    *("accuracy", "balanced_accuracy", "macro_f1", "weighted_f1", "roc_auc", "average_precision"),
    *("log_loss", "brier", "calibration_error"),
)
"""The figures of which mean and standard deviation over the folds are told."""
FIT = 16
"""To make features and to learn from them costs about as much as to read them so many times."""


class Pipeline(NamedTuple):
    """How the parts of a model are made: each call returns new ones that have learned nothing."""

    features: Callable[[], TableFeaturizer | None]
    learner: Callable[[], LinearLearner]


def fold_numbers(codes: Ints, n_folds: int, seed: int) -> Ints:
    """Return the fold of each row, from 0: the rows of each class are dealt to the folds in turn, in a random order.

    Examples
    --------
    >>> fold_numbers(np.array([0, 0, 0, 0, 1, 1]), 2, seed=0).tolist()
    [1, 1, 0, 0, 1, 0]
    """
    rng = np.random.default_rng([seed, len(codes), n_folds])
    dealt = np.concatenate([rng.permutation(np.flatnonzero(codes == k)) for k in np.unique(codes)])
    folds = np.empty(len(codes), np.int64)
    folds[dealt] = np.arange(len(codes)) % n_folds
    return folds


def check_folds(examples: Examples, n_folds: int) -> list[str]:
    """Raise where the rows cannot be divided so; return what a person should know of rare classes."""
    counts = np.bincount(examples.codes, minlength=len(examples.classes))
    if n_folds > examples.n:
        raise DataError(f"folds={n_folds}: there are {counted(examples.n, 'row')}, fewer than folds")
    if np.count_nonzero(counts > 1) < 2 and _fewest_classes(examples.codes, n_folds) < 2:
        raise DataError(f"folds={n_folds}: too few rows of each class; a fold would learn from one class alone")
    rare = [k for k in np.flatnonzero(counts < n_folds).tolist() if counts[k]]
    if not rare:
        return []
    named = ", ".join(f"{examples.classes[k]} ({counts[k]})" for k in rare[:5]) + (" …" if len(rare) > 5 else "")
    single = "; the one row of a class is always predicted wrongly, since its fold's model never saw the class"
    return [
        f"{counted(len(rare), 'class')} with fewer rows than the {n_folds} folds: {named}: not every fold has one to predict"
        + (single if any(counts[k] == 1 for k in rare) else "")
    ]


def _fewest_classes(codes: Ints, n_folds: int) -> int:
    """Return the fewest classes that a fold learns from; how many rows of a class a fold has depends on no seed."""
    folds = fold_numbers(codes, n_folds, seed=0)
    return min(len(np.unique(codes[folds != fold])) for fold in range(n_folds))


@dataclass
class CrossValidation:
    """What models that never saw a row predict for it, for all rows.

    Attributes
    ----------
    folds : the fold of each row, from 0
    predicted : the code of the class predicted for each row
    scores : a column for each class, −∞ for one that the fold's model never saw; for two classes one column
    probabilities : a column for each class, where the learner is calibrated
    notes : what a person should know
    """

    examples: Examples
    n_folds: int
    folds: Ints
    predicted: Ints
    scores: Floats
    probabilities: Floats | None
    notes: list[str]
    zero_is_positive: bool = False

    @cached_property
    def evaluation(self) -> Evaluation:
        """The figures of all rows together."""
        return self._evaluated(np.arange(self.examples.n), "out of fold")

    @cached_property
    def by_fold(self) -> list[Evaluation]:
        """The figures of the rows of each fold."""
        parts = (np.flatnonzero(self.folds == fold) for fold in range(self.n_folds))
        return [self._evaluated(rows, f"fold {fold}") for fold, rows in enumerate(parts)]

    def _evaluated(self, rows: Ints, name: str) -> Evaluation:
        tally = Tally(self.examples.classes.tolist(), zero_is_positive=self.zero_is_positive)
        probabilities = None if self.probabilities is None else self.probabilities[rows]
        tally.add(self.examples.codes[rows], self.predicted[rows], self.scores[rows], probabilities)
        return tally.evaluation(name)

    def figures(self) -> dict[str, dict[str, Any]]:
        """Return by name the mean, the standard deviation and the figure of each fold; those that no fold has are left out.

        A figure that some folds do not have, because they lack a class, is the mean of the others.
        """
        figures = {}
        for name in FIGURES:
            of_folds = [getattr(evaluation, name) for evaluation in self.by_fold]
            defined = [figure for figure in of_folds if figure is not None]
            if defined:
                deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else 0.0
                figures[name] = {"mean": float(np.mean(defined)), "deviation": deviation, "by_fold": of_folds}
        return figures

    @cached_property
    def table(self) -> pa.Table:
        """The predictions: `row` in the source and `fold` from 1, `label`, `prediction`, probabilities and scores."""
        import pyarrow as pa

        from separatrix.data.arrow_arrays import number_array, value_array

        names, labels = [str(label) for label in self.examples.classes.tolist()], value_array(self.examples.classes.tolist())
        columns = {"row": number_array(self.examples.numbers + 1), "fold": number_array(self.folds + 1)}
        columns["label"] = labels.take(number_array(self.examples.codes))
        columns["prediction"] = labels.take(number_array(self.predicted))
        if self.probabilities is not None:
            columns |= {f"probability of {name}": number_array(self.probabilities[:, k]) for k, name in enumerate(names)}
        scored = names if self.scores.shape[1] > 1 else names[1:]
        columns |= {f"score of {name}": number_array(self.scores[:, k]) for k, name in enumerate(scored)}
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))


class Split(NamedTuple):
    """The rows that a fold learns from, and those that it predicts."""

    train: Ints
    test: Ints


def splits(folds: Ints, n_folds: int) -> Iterator[Split]:
    """Yield the training and test rows of each fold."""
    for fold in range(n_folds):
        yield Split(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))


def cross_validate(
    examples: Examples,
    pipeline: Pipeline,
    n_folds: int,
    seed: int,
    *,
    report: Callable[[int], None] = lambda fold: None,
) -> CrossValidation:
    """Predict every row by a model that learned from the other folds; `report` is called after each fold.

    A learner that stops early holds out a part of its fold's training rows.
    """
    notes = check_folds(examples, n_folds)
    folds, K = fold_numbers(examples.codes, n_folds, seed), len(examples.classes)
    predicted = np.empty(examples.n, np.int64)
    scores = np.full((examples.n, K if K > 2 else 1), -np.inf)
    probabilities: Floats | None = None
    zero_is_positive = pipeline.learner().tie == "+1"
    labels = examples.labels

    def learned(split: Split) -> tuple[Split, Any, Any]:
        X, learner = examples.features(examples.learned(pipeline.features(), split.train)), pipeline.learner()
        learner.fit(X[split.train], labels[split.train])
        return split, X, learner

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the final training says the same once
        for fold, (split, X, learner) in enumerate(_fold_by_fold(learned, splits(folds, n_folds), examples.memory)):
            known = np.searchsorted(examples.classes, learner.classes_)
            output = learner.scores(learner.read_rows(X[split.test]))
            predicted[split.test] = known[learner.decide(output, len(known))]
            if len(known) == 2 < K:
                output = np.column_stack([-output[:, 0], output[:, 0]])
            scores[np.ix_(split.test, known if K > 2 else np.zeros(1, np.int64))] = output
            if learner.calibrate is not None:
                probabilities = np.zeros((examples.n, K)) if probabilities is None else probabilities
                probabilities[np.ix_(split.test, known)] = learner.predict_proba(X[split.test])
            report(fold)
    return CrossValidation(examples, n_folds, folds, predicted, scores, probabilities, notes, zero_is_positive)


def _fold_by_fold(
    learned: Callable[[Split], tuple[Split, Any, Any]], parts: Iterator[Split], memory: int
) -> Iterator[tuple[Split, Any, Any]]:
    """Yield what was learned from each fold: the first alone, the others side by side if their features fit in memory."""
    first = learned(next(parts))
    size = bytes_of(first[1])
    yield first
    del first
    fitting = memory // max(1, size) - 1  # while so many are learned, one more waits for its predictions
    yield from in_order(learned, parts, max(1, min(threads_of(None, size * FIT), fitting)))
