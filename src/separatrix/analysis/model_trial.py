"""One model of a comparison in all folds: accuracies, times, size, warnings, or why there are none.

A model may have a time budget, in seconds for the fits and predictions of all folds. Before its first fold, it is fitted to
more and more of the training rows, twice as many each time. As soon as these fits show that all folds take longer than the
budget, even if the time grows only linearly with the number of rows, the model is dropped. A fit that takes far too long is
never begun, so nothing has to be interrupted.
"""

from __future__ import annotations

import re
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from separatrix.analysis.catalogue import Classifier, Setting, View
from separatrix.analysis.comparison import Pass, Row, duration
from separatrix.analysis.model_features import DENSE_BYTES, Form, Prepared
from separatrix.engine.labels import Codes
from separatrix.engine.rows import Ints

PAIRS = 2_000_000_000
"""A model that compares each test example with each training example is skipped where that takes more comparisons."""
VOTES = 100_000_000
"""The curve of a voting model is skipped where a fold has more votes to count."""
NOTE_LENGTH = 160
FIRST_ROWS = 500
"""To how many rows a model is fitted first, where it has a time budget and there are more."""
TELLING = 50
"""A fit to some rows is judged if it takes this part of the budget: shorter times are mostly overhead."""
STEEPEST = 3
"""The time of a fit grows with this power of the number of rows at most; it grows linearly at least."""


class Trial:
    """One model in all folds. `budget` has the seconds that its fits and predictions may take; None: any time."""

    def __init__(
        self, view: View, classes: list[Any], seed: int, folds: int, curves: bool, budget: float | None = None
    ) -> None:
        self.view, self.classes, self.seed, self.folds, self.budget = view, classes, seed, folds, budget
        self.curves = curves and has_fit_parameter(view.make(Setting(seed, 0)), "X_val")
        self._is_train = view.form is Form.AS_IN_TRAIN
        """Whether it is what the others are compared with, which is never dropped."""
        self.accuracies: list[float] = []
        self.times: list[tuple[float, float]] = []
        self.notes: list[str] = []
        self.warned: dict[str, tuple[str, int]] = {}
        self.curves_of_folds: list[tuple[list[float], list[float]]] = []
        self.size = 0
        self.failure: str | None = None
        self.dropped = False

    def run(self, number: int, features: Prepared, y: Codes, y_test: Codes) -> None:
        """Train and test on one fold; record the reason if that fails."""
        X, X_test, n_numbers = features
        self.failure = self._too_much(X, X_test)
        if (y == y[0]).all():
            self.failure = f"fold {number}: its training rows have only 1 class: {self.classes[int(y[0])]!r}"
        if self.failure is not None:
            return
        if self.view.dense and hasattr(X, "toarray"):
            X, X_test = X.toarray(), X_test.toarray()
        model = self.view.make(Setting(self.seed, n_numbers))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                if not self.times:
                    _warm_up(model, X, y)
                    self._judge(self._least_seconds(model, X, X_test, y))
                    warned.clear()
                if not self.dropped:
                    self._measure(model, X, X_test, y, y_test)
            except Exception as problem:
                message = re.sub(r"\bclass (\d+)\b", lambda match: self._class_name(match[1]), _shortened(problem))
                self.failure = f"fold {number}: {message}"
        # Warnings that differ in numbers alone are one.
        texts = {re.sub(r"\d[\d,.]*", "#", text): text for text in (_shortened(warning.message) for warning in warned)}
        for key, text in texts.items():
            first, count = self.warned.get(key, (text, 0))
            self.warned[key] = (first, count + 1)

    def _too_much(self, X: Any, X_test: Any) -> str | None:
        n, d = X.shape[0] + X_test.shape[0], X.shape[1]
        if self.view.dense and 8 * d * max(n, d * len(self.classes)) > DENSE_BYTES:
            return f"too large: it needs dense tables of {n:,} × {d:,} and {d:,} × {d:,} numbers"
        if self.view.remembers and n * n / 5 > PAIRS:
            return f"too slow: it compares {n:,} examples with {n:,}"
        return None

    def _class_name(self, code: str) -> str:
        return f"class {self.classes[int(code)]!r}"

    # The budget.

    def _judge(self, seconds: float) -> None:
        """Drop the model if all folds take more seconds than it has."""
        if self.budget is not None and seconds > self.budget and not self._is_train:
            took = f"{self.folds} folds would take about {duration(seconds)} or more"
            self.failure, self.dropped = f"{took}, and budget={self.budget:g} allows less", True

    def _least_seconds(self, model: Classifier, X: Any, X_test: Any, y: Codes) -> float:
        """Return how long all folds take at least, by fits to some of the rows; 0 where the first fold may begin."""
        n, rows, before = len(y), FIRST_ROWS, 0.0
        if self.budget is None or self._is_train:
            return 0.0
        order = _mixed(y, self.seed)
        while rows < n:
            share = n / rows
            some, asked = np.sort(order[:rows]), X_test[: max(1, int(X_test.shape[0] / share))]
            try:
                seconds = _seconds(model, X[some], asked, y[some])
                if seconds * TELLING > self.budget:  # once more: the machine may have been busy
                    seconds = min(seconds, _seconds(model, X[some], asked, y[some]))
            except Exception:  # of too few rows of a class, as a rule: more of them may do
                seconds = 0.0
            # What half as many rows took, too, is overhead, and does not grow.
            rest = (seconds - before) * 2 * (share - 1) if 0.0 < before < seconds else 0.0
            least = self.folds * min(seconds + rest, seconds * share)
            if seconds * TELLING > self.budget and least > self.budget:
                return least
            if seconds and self.folds * seconds * share**STEEPEST <= self.budget:
                return 0.0
            rows, before = 2 * rows, seconds
        return 0.0

    def _curves_fit(self, model: Any, n: int, n_test: int) -> bool:
        """Tell whether there is time to measure the accuracy after each pass: two more fits with many predictions."""
        if self.budget is None:
            return True
        fit, predict = self.times[-1]
        predictions = getattr(model, "n_iter_", 1) * predict * (1 + n / n_test)
        return self.folds * (3 * fit + predict + predictions) <= self.budget

    # A fold.

    def _measure(self, model: Any, X: Any, X_test: Any, y: Codes, y_test: Codes) -> None:
        begin = time.perf_counter()
        model.fit(X, y)
        fitted = time.perf_counter()
        predicted = model.predict(X_test)
        done = time.perf_counter()
        self.times.append((fitted - begin, done - fitted))
        if len(self.times) == 1:
            self._judge(self.folds * (done - begin))
            if self.dropped:
                return
        self.accuracies.append(float(np.mean(predicted == y_test)))
        self.size = max(self.size, self.view.size(model))
        if not self.curves:
            return
        reason = ""
        if self.view.remembers and getattr(model, "n_mistakes_", 0) * (len(y) + len(y_test)) > VOTES:
            reason = "too many votes to count"
        elif len(self.times) == 1 and not self._curves_fit(model, len(y), len(y_test)):
            reason = f"it takes too long for budget={self.budget:g}"
        if reason:
            self.notes = [f"not measured after each pass: {reason}"]
            self.curves, self.curves_of_folds = False, []
        learnable = np.flatnonzero(np.isin(y_test, y))
        if self.curves and learnable.size:
            if getattr(model, "C", None) == "auto":  # which would be chosen on the rows that are held out here
                model.set_params(C=model.C_)
            held_out = model.fit(X, y, X_val=X_test[learnable], y_val=y_test[learnable]).validation_scores_
            training = model.fit(X, y, X_val=X, y_val=y).validation_scores_
            self.curves_of_folds.append((training, [score * len(learnable) / len(y_test) for score in held_out]))

    # The result.

    def row(self) -> Row:
        """Return the result of the folds so far."""
        view, runs = self.view, len(self.accuracies)
        failure = self.failure or (None if runs else "it was interrupted before its first fold was complete")
        if failure is not None:
            return Row(view.model, view.view, view.learns, failure=failure, dropped=self.dropped)
        warned = [text + (f" ({count} of {runs} folds)" if count < runs else "") for text, count in self.warned.values()]
        interrupted = [f"only {runs} of {self.folds} folds"] if runs < self.folds else []
        fit_seconds, predict_seconds = np.median(np.array(self.times[:runs]), axis=0).tolist()
        return Row(
            *(view.model, view.view, view.learns),
            accuracies=tuple(self.accuracies),
            accuracy=float(np.mean(self.accuracies)),
            spread=float(np.std(self.accuracies, ddof=1)) if runs > 1 else None,
            fit_seconds=fit_seconds,
            predict_seconds=predict_seconds,
            parameters=self.size,
            note="; ".join(interrupted + warned + self.notes),
        )

    def curve(self) -> list[Pass]:
        """Return the mean accuracy of the folds after each pass; a run that ended earlier counts with its last pass."""
        if not self.curves_of_folds or self.failure is not None:
            return []
        longest = max(len(held_out) for _, held_out in self.curves_of_folds)
        both = [[scores + scores[-1:] * (longest - len(scores)) for scores in pair] for pair in self.curves_of_folds]
        means = np.mean(np.array(both), axis=0)
        return [Pass(number, *pair) for number, pair in enumerate(means.T.tolist(), 1)]


def _warm_up(model: Any, X: Any, y: Codes) -> None:
    """Fit a few examples first, so that compiling and importing do not count as the model's time."""
    few = np.sort(np.concatenate([np.flatnonzero(y == k)[:3] for k in np.unique(y)[:20]]))
    try:
        clone(model).fit(X[few], y[few]).predict(X[few])
    except Exception:
        return


def _mixed(y: Codes, seed: int) -> Ints:
    """Return the rows in random order, the first of each class before the others."""
    order = np.random.default_rng(seed).permutation(len(y))
    firsts = np.sort(np.unique(y[order], return_index=True)[1])
    return np.concatenate([order[firsts], np.delete(order, firsts)])


def _seconds(model: Any, X: Any, X_test: Any, y: Codes) -> float:
    """Return how long a model takes to learn some examples and to predict others."""
    begin = time.perf_counter()
    clone(model).fit(X, y).predict(X_test)
    return time.perf_counter() - begin


def _shortened(problem: object) -> str:
    """Return the first line of a message, cut to a length that fits a table."""
    text = " ".join(str(problem).split("\n")[0].split()) or type(problem).__name__
    return text if len(text) <= NOTE_LENGTH else text[: NOTE_LENGTH - 1] + "…"
