"""What classifiers share: scores become labels; and, where they learn from mistakes, what a fit is given."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from separatrix.engine.inputs import HeldOut, NoneHeldOutError, example_weight, names_of, read_examples, read_rows
from separatrix.engine.labels import Codes, encode, encode_as, labels_of
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, Rows, frozen
from separatrix.engine.run import Problem
from separatrix.estimators.notebook import ShowsItsFit, number, picture


class Classifier(ShowsItsFit, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that decides by the scores of its outputs: one for two classes, one a class for more."""

    classes_: Array

    def _scores(self, rows: Rows) -> Floats:
        """Return the scores of a fitted classifier, a column for each output."""
        raise NotImplementedError

    def _linear_scores(self, rows: Rows, coef: Floats, intercept: Floats) -> Floats:
        """Return ⟨w,x⟩ + b; what is wrong with X is looked for where a score shows it, and in a sparse matrix before."""
        if rows.sparse:
            rows.survey(names=names_of(self))
        scores = rows.scores(coef, intercept)
        if not np.isfinite(scores).all():
            rows.survey(names=names_of(self))
        return scores

    def _decide(self, scores: Floats, n_classes: int) -> Ints:
        """Return the code of the class that each row of scores is for."""
        winners: Ints = np.argmax(scores, axis=1) if n_classes > 2 else (scores[:, 0] > 0).astype(np.int64)
        return winners

    def decision_function(self, X: Any) -> Floats:
        """Return the scores: one a row for two classes (positive: `classes_[1]`), one a class for more."""
        check_is_fitted(self)
        scores = self._scores(read_rows(self, X))
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> Array:
        """Return the predicted labels; a score of exactly 0 goes to `classes_[0]`, or as `tie` says where there is one."""
        check_is_fitted(self)
        labels: Array = self.classes_[self._decide(self._scores(read_rows(self, X)), len(self.classes_))]
        return labels

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ErrorDrivenClassifier(Classifier):
    """A classifier that learns from mistakes: its parameters `tie`, `class_weight`, `random_state` and early stopping."""

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _examples(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
    ) -> tuple[Array, Array, Problem, HeldOut | None]:
        """Return the labels, the classes, the problem to train on (what is held out of X has weight 0), and the held-out."""
        rows, labels, classes, codes = read_examples(self, X, y)
        weight = self._weight(sample_weight, labels, classes)
        held_out = self._held_out(X_val, y_val, rows, classes, codes, weight)
        if held_out is not None and held_out.rows is rows:
            weight = np.ones(rows.n) if not weight.size else weight
            weight[held_out.which] = 0.0
        return labels, classes, Problem(rows, frozen(codes), frozen(weight)), held_out

    def _weight(self, sample_weight: Any, y: Array, classes: Array | None = None) -> Floats:
        weight = example_weight(sample_weight, len(y))
        if weight.size and not np.any(weight) and classes is not None:
            raise ValueError("every sample_weight is zero: nothing is left to learn from")
        if self.class_weight is None:
            return weight
        by_class = self.class_weight
        if by_class == "balanced":
            labels, codes = encode(y)
            by_class = dict(zip(labels.tolist(), len(y) / (len(labels) * np.bincount(codes)), strict=True))
        factors = np.ones(len(y))
        for label, factor in by_class.items():
            if not (np.isfinite(factor) and factor >= 0):
                raise ValueError(f"class_weight[{label!r}] is {factor}: a weight must be finite and not negative")
            if classes is not None and label not in classes.tolist():
                raise ValueError(f"class_weight names {label!r}, which is not among the classes {classes.tolist()[:5]}")
            factors[y == label] = factor
        if classes is not None and not np.any(factors):
            raise ValueError("class_weight is zero for every class: nothing is left to learn from")
        return factors * weight if weight.size else factors

    def _held_out(self, X_val: Any, y_val: Any, rows: Rows, classes: Array, codes: Codes, weight: Floats) -> HeldOut | None:
        """Return the caller's held-out examples, or a held-out fraction of each class, or None."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: one of them is missing")
        if X_val is not None:
            labels = labels_of(X_val, y_val, "X_val")
            validation = read_rows(self, X_val)
            validation.survey(names=names_of(self))
            return HeldOut(validation, NO_ORDER, encode_as(classes, labels))
        if not self.early_stopping:
            return None
        rng = check_random_state(self.random_state)
        chosen: list[Ints] = []
        for k in range(len(classes)):
            members = rng.permutation(np.flatnonzero((codes == k) & (weight != 0.0 if weight.size else True)))
            chosen.append(members[: max(0, min(round(self.validation_fraction * len(members)), len(members) - 1))])
        which = np.sort(np.concatenate(chosen))
        if not which.size:
            raise NoneHeldOutError(
                f"validation_fraction={self.validation_fraction} of {len(codes)} examples leaves none to hold out: "
                "give more examples, a larger fraction, or X_val and y_val"
            )
        return HeldOut(rows, frozen(which), codes[which])

    def _decide(self, scores: Floats, n_classes: int) -> Ints:
        if n_classes == 2 and self.tie == "+1":
            positive: Ints = (scores[:, 0] >= 0).astype(np.int64)
            return positive
        return super()._decide(scores, n_classes)

    # In a notebook.

    def _facts(self) -> list[tuple[str, str]]:
        """Return the course of the training, and what there is to say of any fit."""
        cut, cycle = self.ledger_.cut, self.cycle_
        ended = "with a clean pass" if self.converged_ else "without a clean pass"
        if cut is not None:
            ended = f"early: back to pass {cut.pass_number:,}, of the best held-out accuracy"
        elif cycle is not None:
            ended = f"in a cycle: the weights of pass {cycle.start:,} come back every {cycle.period:,} passes"
        told = [
            ("passes", f"{self.n_iter_:,}, {self.n_seen_:,} examples presented"),
            ("mistakes", f"{self.n_mistakes_:,}, {self.mistakes_per_pass_[-1]:,} of them in the last pass"),
            ("ended", ended),
        ]
        if hasattr(self, "radius_"):
            told.append(("radius R", f"{number(self.radius_)}; bounds(X, y) finds γ and the bound R²/γ²"))
        return told + super()._facts()

    def _mistaken(self) -> tuple[Array, Array] | None:
        """Return the examples of the mistakes and their classes, by code, where they are stored."""
        ledger = self.ledger_
        if ledger.stored is None or ledger.absent or ledger.stored.n == 0:
            return None
        rows, numbers = ledger.mistaken_rows()
        return (rows.source, numbers) if not rows.sparse else None

    def _picture(self) -> str:
        found = self._mistaken() if self.n_features_in_ == 2 else None
        if found is None:
            return ""
        points, numbers = found
        true = self.ledger_.up >= 0
        which, first = np.unique(numbers[true], return_index=True)
        caption = "the mistaken examples, and what the learner says around them"
        return picture(self, np.asarray(points[which]), self.ledger_.up[true][first], caption)
