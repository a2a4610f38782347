"""Cross-validates the classifiers of `catalogue` on the caller's data, each on the features it needs (L1 1, L2 9 and 11)."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import has_fit_parameter

from separatrix.analysis.catalogue import Setting, View, chosen_views
from separatrix.analysis.comparison import Comparison, Pass, Row
from separatrix.analysis.mixed_table import DENSE_BYTES, Columns, Form, prepared, read_columns
from separatrix.engine.labels import Codes, check_two_classes, encode, labels_of
from separatrix.engine.rows import Array, Ints
from separatrix.learners.progress import steps_bar

PAIRS = 2_000_000_000
"""A model that compares each test example with each training example is skipped where that takes more comparisons."""
VOTES = 100_000_000
"""The curve of a voting model is skipped where a fold has more votes to count."""
NOTE_LENGTH = 160


def compare(
    X: Any,
    y: Any,
    *,
    models: str | Sequence[str] | None = None,
    folds: int = 5,
    categorical: Sequence[str | int] = (),
    feature_names: Sequence[str] | None = None,
    curves: bool = True,
    random_state: int = 0,
    verbose: int = 0,
) -> Comparison:
    """Cross-validate the classifiers of the lectures on your data, side by side.

    Each model gets the features that it needs, learned inside the fold: missing numbers replaced, numbers scaled, a 0/1
    feature for each category. A model that fails is reported with the reason. Everything but the times is reproducible with
    the same `random_state`.

    Parameters
    ----------
    X : array, sparse matrix or data frame with numbers, words and missing values (None, NaN, "?", "", "NA", …)
    y : labels
    models : names of models; all models by default
    folds : of the stratified cross-validation; fewer if a class has fewer examples
    categorical : columns, by name or number from 0, whose numbers are codes of categories
    feature_names : names of an array's columns, for messages and for `categorical`
    curves : also measure held-out accuracy after each pass
    random_state : seed of the folds and of the models
    verbose : 1 shows a progress bar

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> comparison = compare(*load_iris(return_X_y=True), models=["LDA", "decision tree", "Perceptron"])
    >>> [(row.model, round(row.accuracy, 2), row.view) for row in comparison.rows]
    [('LDA', 0.98, 'generative'), ('Perceptron', 0.95, 'discriminant function'), ('decision tree', 0.93, 'discriminative')]
    """
    columns = read_columns(X, categorical, feature_names)
    labels = labels_of(X, y, "compare")
    _check_not_measured(labels)
    classes, codes = encode(labels)
    check_two_classes(classes, "a comparison")
    if not isinstance(folds, int | np.integer) or folds < 2:
        raise ValueError(f"folds must be a whole number, 2 or more, not {folds!r}")
    views = chosen_views(models)
    counts = np.bincount(codes)
    splits, notes = _splits(codes, counts, classes, int(folds), random_state)
    trials = [Trial(view, columns, classes.tolist(), random_state, curves) for view in views]
    with steps_bar(verbose, len(splits) * len(trials), "compare") as progress:
        for number, (train, test) in enumerate(splits, 1):
            features: dict[Form, tuple[Any, Any]] = {}
            for trial in trials:
                progress(f"fold {number}: {trial.view.model}")
                if trial.failure is None:
                    form = trial.view.form
                    if form not in features:
                        features[form] = prepared(columns, train, test, form)
                    trial.run(number, *features[form], codes[train], codes[test])
    rows = [trial.row() for trial in trials]
    return Comparison(
        rows=sorted(rows, key=lambda row: -np.inf if row.accuracy is None else row.accuracy, reverse=True),
        curves={trial.view.model: curve for trial in trials if (curve := trial.curve())},
        examples=columns.n,
        columns=columns.describe(),
        classes=classes.tolist(),
        folds=len(splits),
        baseline=float(counts.max() / len(codes)),
        notes=columns.notes + notes,
    )


def _check_not_measured(labels: Array) -> None:
    """Raise for labels that were read from text and are numbers with fractions: measurements, not classes."""
    try:
        fractions = [label for label in labels.tolist() if isinstance(label, str) and not float(label).is_integer()]
    except ValueError:
        return
    if fractions:
        what = f"labels are numbers with fractions, such as {fractions[0]}"
        raise ValueError(f"{what}; a label is the name of a class: bin them")


def _splits(codes: Codes, counts: Ints, classes: Array, folds: int, seed: int) -> tuple[list[tuple[Ints, Ints]], list[str]]:
    """Return the training and test rows of each fold, and notes for the user."""
    fewest = int(counts.min())
    notes = []
    if counts.max() == 1:
        raise ValueError("no class has two examples, so nothing that is learned can be tested")
    if fewest < folds:
        rare = classes[int(counts.argmin())]
        members = "1 example" if fewest == 1 else f"{fewest} examples"
        requested, folds = folds, max(2, fewest)
        notes.append(f"{folds} folds, not {requested}: class {str(rare)!r} has only {members}")
        if fewest == 1:
            notes[-1] += ", so no fold both learns it and tests it"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        split = StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes)
        return list(split), notes


class Trial:
    """One model in all folds: accuracies, times, warnings, and the reason if it failed."""

    def __init__(self, view: View, columns: Columns, classes: list[Any], seed: int, curves: bool) -> None:
        self.view = view
        self.classes = classes
        self.model = view.make(Setting(seed, 0 if columns.sparse else len(columns.number_names)))
        self.curves = curves and has_fit_parameter(self.model, "X_val")
        self.accuracies: list[float] = []
        self.times: list[tuple[float, float]] = []
        self.notes: list[str] = []
        self.warned: dict[str, int] = {}
        self.curves_of_folds: list[tuple[list[float], list[float]]] = []
        self.size = 0
        self.failure = self._too_much(columns)

    def _too_much(self, columns: Columns) -> str | None:
        n, d = columns.n, columns.width
        if self.view.dense and 8 * d * max(n, d * len(self.classes)) > DENSE_BYTES:
            return f"too large: it needs dense tables of {n:,} × {d:,} and {d:,} × {d:,} numbers"
        if self.view.remembers and n * n / 5 > PAIRS:
            return f"too slow: it compares {n:,} examples with {n:,}"
        return None

    def run(self, number: int, X: Any, X_test: Any, y: Codes, y_test: Codes) -> None:
        """Train and test on one fold; record the reason if that fails."""
        if self.view.dense and hasattr(X, "toarray"):
            X, X_test = X.toarray(), X_test.toarray()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                if not self.times:
                    self._warm_up(X, y)
                    warned.clear()
                self._measure(X, X_test, y, y_test)
            except Exception as problem:
                message = re.sub(r"\bclass (\d+)\b", lambda match: self._class_name(match[1]), _shortened(problem))
                self.failure = f"fold {number}: {message}"
        for text in dict.fromkeys(_shortened(warning.message) for warning in warned):
            self.warned[text] = self.warned.get(text, 0) + 1

    def _class_name(self, code: str) -> str:
        return f"class {self.classes[int(code)]!r}"

    def _warm_up(self, X: Any, y: Codes) -> None:
        """Fit a few examples first, so that compiling and importing do not count as the model's time."""
        few = np.sort(np.concatenate([np.flatnonzero(y == k)[:3] for k in np.unique(y)[:20]]))
        try:
            clone(self.model).fit(X[few], y[few]).predict(X[few])
        except Exception:
            return

    def _measure(self, X: Any, X_test: Any, y: Codes, y_test: Codes) -> None:
        model = clone(self.model)
        begin = time.perf_counter()
        model.fit(X, y)
        fitted = time.perf_counter()
        predicted = model.predict(X_test)
        done = time.perf_counter()
        self.accuracies.append(float(np.mean(predicted == y_test)))
        self.times.append((fitted - begin, done - fitted))
        self.size = max(self.size, self.view.size(model))
        if self.curves and self.view.remembers and getattr(model, "n_mistakes_", 0) * (len(y) + len(y_test)) > VOTES:
            self.notes = ["not measured after each pass: too many votes to count"]
            self.curves, self.curves_of_folds = False, []
        learnable = np.flatnonzero(np.isin(y_test, y))
        if self.curves and learnable.size:
            held_out = model.fit(X, y, X_val=X_test[learnable], y_val=y_test[learnable]).validation_scores_
            training = model.fit(X, y, X_val=X, y_val=y).validation_scores_
            self.curves_of_folds.append((training, [score * len(learnable) / len(y_test) for score in held_out]))

    def row(self) -> Row:
        """Return the result of all folds."""
        view = self.view
        if self.failure is not None:
            return Row(view.model, view.view, view.learns, failure=self.failure)
        runs = len(self.accuracies)
        warned = [text + (f" ({count} of {runs} folds)" if count < runs else "") for text, count in self.warned.items()]
        fit_seconds, predict_seconds = np.median(np.array(self.times), axis=0).tolist()
        return Row(
            *(view.model, view.view, view.learns),
            accuracies=tuple(self.accuracies),
            accuracy=float(np.mean(self.accuracies)),
            spread=float(np.std(self.accuracies, ddof=1)),
            fit_seconds=fit_seconds,
            predict_seconds=predict_seconds,
            parameters=self.size,
            note="; ".join(warned + self.notes),
        )

    def curve(self) -> list[Pass]:
        """Return the mean accuracy of the folds after each pass; a run that ended earlier counts with its last pass."""
        if not self.curves_of_folds or self.failure is not None:
            return []
        longest = max(len(held_out) for _, held_out in self.curves_of_folds)
        both = [[scores + scores[-1:] * (longest - len(scores)) for scores in pair] for pair in self.curves_of_folds]
        means = np.mean(np.array(both), axis=0)
        return [Pass(number, *pair) for number, pair in enumerate(means.T.tolist(), 1)]


def _shortened(problem: object) -> str:
    """Return the first line of a message, cut to a length that fits a table."""
    text = " ".join(str(problem).split("\n")[0].split()) or type(problem).__name__
    return text if len(text) <= NOTE_LENGTH else text[: NOTE_LENGTH - 1] + "…"
