"""`evaluate`, and the tally behind it: rows are counted batch by batch, and nothing but their scores is stored.

A row of two classes takes 24 bytes: its score, its class and a number that decides whether it stays in a sample; a row of K
classes takes 8·K + 16. Beyond `MOST_SCORES` scores (256 MB) a random half of the stored rows is dropped, as often as needed:
figures that follow from counts stay exact, and those that need scores (ROC AUC, average precision, curves) say that they are
of a sample.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.analysis.evaluating.evaluation import MOST_ERRORS, Evaluation, RowError, Sample
from separatrix.analysis.evaluating.probability_bins import Calibration
from separatrix.data.errors import counted, did_you_mean
from separatrix.engine.labels import as_labels, check_kinds
from separatrix.engine.parameters import NotFittedError
from separatrix.engine.rows import Array, Floats, Ints
from separatrix.learners.calibration import probabilities as probabilities_of

MOST_SCORES = 1 << 25
MOST_VALUES = 30
"""How many values of a row without columns are listed."""

Describe = Callable[[int], tuple[str, dict[str, Any]]]
"""Returns where a row of a batch comes from, and its values by name."""


class Tally:
    """Counts rows batch by batch: their true class, the predicted one, scores and probabilities.

    Parameters
    ----------
    classes : the classes of the model
    positive : of two classes the one that is looked for; by default the second
    zero_is_positive : whether a score equal to the threshold means `classes[1]`
    threshold : the score of `classes[1]` above which the model predicts it
    slope : of the sigmoid that makes probabilities of scores, or None
    """

    def __init__(
        self,
        classes: Sequence[Any],
        *,
        positive: Any = None,
        zero_is_positive: bool = False,
        threshold: float = 0.0,
        slope: float | None = None,
        most_scores: int = MOST_SCORES,
    ) -> None:
        self.classes, K = list(classes), len(classes)
        self.positive = positive_of(self.classes, positive)
        self.zero_is_positive, self.threshold, self.slope = zero_is_positive, threshold, slope
        self.most_scores = most_scores
        self.confusion, self.of_unknown = np.zeros((K, K), np.int64), np.zeros(K, np.int64)
        self.unknown_labels: Counter[str] = Counter()
        self.calibration: Calibration | None = None
        self._stored: list[tuple[Ints, Floats, Floats]] = []
        self._stored_scores, self._share = 0, 1.0
        self._draws = np.random.default_rng(0)
        self._errors: dict[int, list[tuple[float, int, RowError]]] = {}
        self._order = count(0, -1)
        self.rows = 0

    def add(
        self,
        true: Ints,
        decided: Ints,
        scores: Floats | None = None,
        probabilities: Floats | None = None,
        *,
        unknown: Sequence[Any] = (),
        describe: Describe | None = None,
    ) -> None:
        """Count a batch of rows.

        Parameters
        ----------
        true, decided : the numbers of the true and of the predicted classes; −1 for a label that is no class
        scores : one column for two classes (the score of the second) or one for each class
        probabilities : one column for each class
        unknown : the labels of the rows whose `true` is −1, in order
        describe : returns the values of a row; the most confident errors are described by it
        """
        is_class = true >= 0
        np.add.at(self.confusion, (true[is_class], decided[is_class]), 1)
        np.add.at(self.of_unknown, decided[~is_class], 1)
        self.unknown_labels.update(str(label) for label in unknown)
        if scores is not None:
            self._store(true, scores)
            self._note_errors(true, decided, scores, probabilities, describe)
        if probabilities is not None:
            if self.calibration is None:
                self.calibration = Calibration.empty(self.positive)
            self.calibration.add(true[is_class], decided[is_class], probabilities[is_class])
        self.rows += len(true)

    def _store(self, true: Ints, scores: Floats) -> None:
        draws = self._draws.random(len(true))
        chosen = draws < self._share
        part = (true, scores, draws) if chosen.all() else (true[chosen], scores[chosen], draws[chosen])
        self._stored.append(part)
        self._stored_scores += part[1].size
        while self._stored_scores > self.most_scores:
            self._share /= 2.0
            for i, (codes, stored, numbers) in enumerate(self._stored):
                stays = numbers < self._share
                self._stored[i] = (codes[stays], stored[stays], numbers[stays])
            self._stored_scores = sum(stored.size for _, stored, _ in self._stored)

    def _note_errors(
        self, true: Ints, decided: Ints, scores: Floats, probabilities: Floats | None, describe: Describe | None
    ) -> None:
        """Keep the rows that could be the most confident errors.

        Of two classes these are, whatever the threshold will be, the rows of the second with the lowest scores and the rows
        of the first with the highest; of more classes the wrong rows with the largest lead over the true class.
        """
        if scores.shape[1] == 1:
            groups = {k: (np.flatnonzero(true == k), (scores[:, 0], -scores[:, 0])[k]) for k in (0, 1)}
        else:
            wrong = np.flatnonzero((true >= 0) & (true != decided))
            lead = np.zeros(len(true))
            lead[wrong] = scores[wrong, decided[wrong]] - scores[wrong, true[wrong]]
            groups = {-1: (wrong, lead)}
        for group, (members, size) in groups.items():
            kept = self._errors.setdefault(group, [])
            if len(members) > MOST_ERRORS:
                members = members[np.argsort(-size[members], kind="stable")[:MOST_ERRORS]]
            for i in members.tolist():
                if len(kept) == MOST_ERRORS and size[i] <= kept[0][0]:
                    continue
                place, values = ("", {}) if describe is None else describe(i)
                error = RowError(
                    row=self.rows + i,
                    place=place or f"row {self.rows + i}",
                    true=int(true[i]),
                    predicted=int(decided[i]),
                    score=float(scores[i, 0] if scores.shape[1] == 1 else lead[i]),
                    probabilities=None if probabilities is None else probabilities[i].tolist(),
                    values=values,
                )
                push = heapq.heappushpop if len(kept) == MOST_ERRORS else heapq.heappush
                push(kept, (float(size[i]), next(self._order), error))

    def evaluation(self, name: str = "the data", notes: Sequence[str] = (), **facts: Any) -> Evaluation:
        """Return the figures; raise where no row has a label that the model knows."""
        if not self.confusion.any():
            raise ValueError(f"{name}: {no_known_label(self.rows, self.unknown_labels)}")
        sample = None
        if self._stored:
            columns = zip(*self._stored, strict=True)
            codes, scores, _ = (np.concatenate(part) for part in columns)
            sample = Sample(codes, scores, self.rows)
        errors = [error for kept in self._errors.values() for _, _, error in kept]
        return Evaluation(
            name=name,
            classes=self.classes,
            positive=self.positive,
            confusion=self.confusion,
            of_unknown=self.of_unknown,
            unknown_labels=dict(self.unknown_labels.most_common()),
            sample=sample,
            calibration=self.calibration,
            candidates=errors,
            cut=self.threshold,
            zero_is_positive=self.zero_is_positive,
            slope=self.slope,
            notes=list(notes),
            facts=facts,
        )


def positive_of(classes: list[Any], positive: Any) -> int:
    """Return the number of the class that is looked for, given by its label or its name; by default the second of two."""
    if positive is None:
        return 1
    names = [str(label) for label in classes]
    if len(classes) != 2:
        raise ValueError(f"positive= names one of two classes, but there are {counted(len(classes), 'class')}")
    if positive not in classes and str(positive) not in names:
        classes_there = f"{' and '.join(names)}{did_you_mean(positive, names)}"
        raise ValueError(f"positive={positive!r} is not one of the classes {classes_there}")
    return classes.index(positive) if positive in classes else names.index(str(positive))


def no_known_label(n: int, unknown_labels: Counter[str]) -> str:
    """Return what is wrong with rows none of which has a label of a class."""
    if not n:
        return "there is no row to evaluate"
    names = ", ".join(name[:40] for name, _ in unknown_labels.most_common(3)) + (" …" if len(unknown_labels) > 3 else "")
    return f"none of {counted(n, 'row')} has a label that the model knows: {names}"


def evaluate(model: Any, X: Any, y: Any, *, positive: Any = None, name: str = "the data") -> Evaluation:
    """Evaluate a fitted classifier on labelled rows.

    Parameters
    ----------
    model : any of our classifiers, a `Model`, or a pipeline with `predict` and `decision_function`
    X : what `model.predict` takes: an array, a matrix, a table, texts
    y : the true labels; labels that the model does not know count as wrong
    positive : of two classes the one that is looked for: threshold, average precision and F1 are about it; by default the
        second of `classes_`
    name : what the data are called

    Examples
    --------
    >>> from separatrix import Perceptron, evaluate
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["no", "no", "no", "yes"]
    >>> evaluation = evaluate(Perceptron(random_state=0).fit(X, y), X, y)
    >>> evaluation.accuracy, evaluation.baseline.accuracy, evaluation.roc_auc
    (1.0, 0.75, 1.0)
    """
    is_model = hasattr(model, "estimator") and hasattr(model, "features")
    estimator = model.estimator if is_model else model
    if not hasattr(model, "predict"):
        raise TypeError(f"evaluate takes the classifier first, then X and y: a {type(model).__name__} cannot predict")
    if hasattr(estimator, "predict_single"):
        remedy = "call evaluate_sequences(y, model.predict(X))"
        raise TypeError(f"evaluate is for classifiers, and a {type(estimator).__name__} tags sequences: {remedy}")
    if not hasattr(estimator, "classes_"):
        error = getattr(estimator, "not_fitted_error", NotFittedError)
        raise error(f"this {type(model if estimator is None else estimator).__name__} is not fitted yet: call fit first")
    classes = model.classes_.tolist()
    labels = as_labels(y)
    check_kinds(labels)
    rows = model.transform(X) if is_model else X
    scores: Floats | None
    if hasattr(estimator, "decide") and hasattr(estimator, "read_rows"):
        scores = np.asarray(estimator.scores(estimator.read_rows(rows)), dtype=np.float64)
        decided = estimator.decide(scores, len(classes))
        slope = getattr(estimator, "slope_", None)
        probabilities = None if slope is None else probabilities_of(scores, slope, estimator.winners(scores, len(classes)))
    else:
        scores, decided, probabilities = _of_others(estimator, rows, classes)
    if len(labels) != len(decided):
        raise ValueError(f"X and y have inconsistent numbers of samples: [{len(decided)}, {len(labels)}]")
    true = codes_of(classes, labels)
    deciding = _last_step(estimator)
    tally = Tally(
        classes,
        positive=positive,
        zero_is_positive=getattr(deciding, "tie", "") == "+1",
        threshold=getattr(deciding, "threshold_", None) or 0.0,
        slope=getattr(deciding, "slope_", None),
    )
    unknown, names = labels[true < 0].tolist(), getattr(estimator, "feature_names_in_", None)
    describe: Describe = lambda i: (f"row {i}", described_row(X, i, names))  # noqa: E731
    tally.add(true, decided, scores, probabilities, unknown=unknown, describe=describe)
    return tally.evaluation(name)


def _last_step(estimator: Any) -> Any:
    """Return the classifier that decides, in a pipeline and after a search."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "named_steps"):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "features") and hasattr(estimator, "estimator"):
            estimator = estimator.estimator
        else:
            return estimator


def codes_of(classes: list[Any], labels: Array) -> Ints:
    """Return the number of each label among the classes, −1 where it is none."""
    met, places = np.unique(labels, return_inverse=True)
    number_of = {label: k for k, label in enumerate(classes)}
    codes: Ints = np.array([number_of.get(label, -1) for label in met.tolist()], np.int64)[places]
    return codes


def _of_others(estimator: Any, X: Any, classes: list[Any]) -> tuple[Floats | None, Ints, Floats | None]:
    """Return scores, decisions and probabilities of a classifier that is not ours, as far as it has them."""
    decided = codes_of(classes, np.asarray(estimator.predict(X)))
    scores = probabilities = None
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64).reshape(len(decided), -1)
        if scores.shape[1] != (1 if len(classes) == 2 else len(classes)):
            scores = None  # one for each pair of classes
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    return scores, decided, probabilities


def described_row(X: Any, i: int, names: Any = None) -> dict[str, Any]:
    """Return the values of row i of X by name: columns, a text, or numbers (of a sparse row those that are not 0)."""

    def named(j: int) -> str:
        return f"x{j}" if names is None or j >= len(names) else str(names[j])

    if sp.issparse(X):
        row = X.tocsr()[i]
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        return {named(j): value for j, value in list(pairs)[:MOST_VALUES]}
    if hasattr(X, "iloc"):  # pandas
        row = X.iloc[i]
        return {str(key): value for key, value in row.to_dict().items()} if hasattr(row, "to_dict") else {"text": row}
    if hasattr(X, "schema") and hasattr(X, "column_names"):  # Arrow
        return {name: python_value(X.column(name)[i]) for name in X.column_names}
    if hasattr(X, "row") and hasattr(X, "columns"):  # Polars
        return dict(X.row(i, named=True))
    if isinstance(X, dict):
        return {str(key): values[i] for key, values in X.items()}
    row = X[i]
    if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
        return {"text": row}
    return {named(j): value for j, value in enumerate(np.asarray(row).tolist()[:MOST_VALUES])}


def python_value(scalar: Any) -> Any:
    """Return a value of Arrow, as text if Python has no type for it."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return scalar.cast("string").as_py()
