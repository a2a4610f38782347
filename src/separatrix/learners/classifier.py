"""What plain classifiers share: input is read and checked, scores become labels, a fit is given examples and weights.

A class here needs no scikit-learn. `estimators` overrides the few methods that read input (`read_rows`, `_read_labels`,
`_check_fitted`) by those of scikit-learn's contract; everything else is written once, here.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Self

import numpy as np

from separatrix.engine.labels import Codes, check_two_classes, encode, encode_as, labels_of
from separatrix.engine.parameters import NotFittedError, Parameterized
from separatrix.engine.parcel import Parcel, State, StateError, flag, number, whole
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, Rows, as_matrix, feature_names_of, frozen
from separatrix.engine.stopping import Cycle
from separatrix.learners.inputs import HeldOut, NoneHeldOutError, example_weight, weight_by_class


def random_generator(random_state: Any) -> np.random.RandomState:
    """Return the generator that a `random_state` means: a seed, a generator itself, or NumPy's global one for None."""
    if random_state is None or random_state is np.random:
        return np.random.RandomState(np.random.get_bit_generator())  # type: ignore[attr-defined]  # not in the stubs
    return random_state if isinstance(random_state, np.random.RandomState) else np.random.RandomState(random_state)


class PlainClassifier(Parameterized):
    """A classifier that decides by the scores of its outputs: one for two classes, one a class for more."""

    classes_: Array
    n_features_in_: int
    feature_names_in_: Array
    threshold_: float | None = None
    """Two classes: the score above which `classes_[1]` is predicted, where it is not 0. It may be set; a fit removes it."""
    not_fitted_error: type[Exception] = NotFittedError

    # Input. An estimator reads it by scikit-learn's rules.

    def read_rows(self, X: Any, reset: bool = False) -> Rows:
        """Return X as the kernels read it; its width is set by a fit (`reset`) and checked afterwards."""
        matrix = as_matrix(X)
        if reset:
            self.n_features_in_ = matrix.shape[1]
        elif matrix.shape[1] != self.n_features_in_:
            name = self.public_name()
            raise ValueError(f"X has {matrix.shape[1]} features, but {name} is expecting {self.n_features_in_} features")
        return Rows(matrix)

    def _read_labels(self, X: Any, y: Any, who: str | None = None) -> Array:
        return labels_of(X, y, who or self.public_name())

    def _read_examples(self, X: Any, y: Any) -> tuple[Rows, Array, Array, Codes]:
        """Return what a fit begins with: X as rows, the labels, the sorted classes, and the code of each label."""
        labels = self._read_labels(X, y)
        rows = self.read_rows(X, reset=True)
        classes, codes = encode(labels)
        check_two_classes(classes)
        return rows, labels, classes, codes

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        return hasattr(self, "classes_")

    def _check_fitted(self) -> None:
        if not self.is_fitted():
            raise self.not_fitted_error(f"this {self.public_name()} is not fitted yet: call fit first")

    def unfitted(self, **changes: Any) -> Self:
        """Return a new learner of the same class with the same parameters, but for some changes."""
        return type(self)(**self.get_params(deep=False) | changes)

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put a fitted classifier into a parcel: here its parameters, features and classes."""
        parameters = {name: parcel.put_value(f"{at}.{name}", value) for name, value in self.get_params(deep=False).items()}
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            parcel.put_strings(f"{at}.feature_names", names.tolist())
        state = {
            "parameters": parameters,
            "n_features": int(self.n_features_in_),
            "named": names is not None,
            "classes": parcel.put_labels(f"{at}.classes", self.classes_),
        }
        if threshold := self._threshold(len(self.classes_)):
            state["threshold"], parcel.format = threshold, 2
        return state

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the classifier that a parcel holds: here with its parameters, features and classes."""
        model = cls(**{name: parcel.take_value(f"{at}.{name}", value) for name, value in state["parameters"].items()})
        model.check_parameters()
        model.n_features_in_ = whole(state, "n_features", 1)
        if flag(state, "named"):
            names = parcel.take_strings(f"{at}.feature_names")
            if len(names) != model.n_features_in_:
                raise StateError(f"{len(names)} feature names for {model.n_features_in_} features")
            model.feature_names_in_ = np.array(names, dtype=object)
        model.classes_ = parcel.take_labels(f"{at}.classes", state["classes"])
        if "threshold" in state:
            model.threshold_ = number(state, "threshold")
        return model

    # Scores and decisions.

    def scores(self, rows: Rows) -> Floats:
        """Return the scores of a fitted classifier, a column for each output."""
        raise NotImplementedError

    def _linear_scores(self, rows: Rows, coef: Floats, intercept: Floats) -> Floats:
        """Return ⟨w,x⟩ + b; NaN and infinity in X are looked for where a score shows them, in a sparse matrix before."""
        if rows.sparse:
            rows.survey(names=feature_names_of(self))
        scores = rows.scores(coef, intercept)
        if not np.isfinite(scores).all():
            rows.survey(names=feature_names_of(self))
        return scores

    def winners(self, scores: Floats, n_classes: int) -> Ints:
        """Return the code of the class that each row of scores is for, whatever the threshold is."""
        winners: Ints = np.argmax(scores, axis=1) if n_classes > 2 else (scores[:, 0] > 0).astype(np.int64)
        return winners

    def decide(self, scores: Floats, n_classes: int) -> Ints:
        """Return the code of the class that each row of scores is predicted as: of two classes by `threshold_`."""
        threshold = self._threshold(n_classes)
        return self.winners(scores if threshold is None else scores - threshold, n_classes)

    def _threshold(self, n_classes: int) -> float | None:
        if self.threshold_ is None or n_classes != 2:
            return None
        if not math.isfinite(self.threshold_):
            raise ValueError(f"threshold_ is {self.threshold_}: it must be a finite number, or None")
        return float(self.threshold_)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores: one a row for two classes (positive: `classes_[1]`), one a class for more."""
        self._check_fitted()
        scores = self.scores(self.read_rows(X))
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> Array:
        """Return the predicted labels; a score of exactly 0 goes to `classes_[0]`, or as `tie` says where there is one.

        `threshold_` takes the place of 0 where it is set.
        """
        self._check_fitted()
        labels: Array = self.classes_[self.decide(self.scores(self.read_rows(X)), len(self.classes_))]
        return labels


class ErrorDrivenClassifier(PlainClassifier):
    """A classifier that learns from mistakes: its parameters `tie`, `class_weight`, `random_state` and early stopping."""

    tie: str
    class_weight: Any
    random_state: Any
    early_stopping: bool
    validation_fraction: float

    def seed(self) -> int:
        """Return the seed of the order: an integer `random_state` itself, else a number drawn from it."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(random_generator(self.random_state).randint(np.iinfo(np.int32).max))

    def read_problem(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> tuple[Array, Array, Problem, HeldOut | None]:
        """Return the labels, the classes, the problem to train on (what is held out of X has weight 0), and the held-out."""
        rows, labels, classes, codes = self._read_examples(X, y)
        weight = self.example_weight(sample_weight, labels, classes)
        held_out = self._held_out(X_val, y_val, rows, classes, codes, weight)
        if held_out is not None and held_out.rows is rows:
            weight = np.ones(rows.n) if not weight.size else weight
            weight[held_out.which] = 0.0
        return labels, classes, Problem(rows, frozen(codes), frozen(weight)), held_out

    def example_weight(self, sample_weight: Any, y: Array, classes: Array | None = None) -> Floats:
        """Return the weight of each example: its own times that of its class; an empty array where all are 1."""
        weight = example_weight(sample_weight, len(y))
        if weight.size and not np.any(weight) and classes is not None:
            raise ValueError("every sample_weight is zero: nothing is left to learn from")
        if self.class_weight is None:
            return weight
        factors = weight_by_class(self.class_weight, y, classes)
        if classes is not None and not np.any(factors):
            raise ValueError("class_weight is zero for every class: nothing is left to learn from")
        weight = factors * weight if weight.size else factors
        if classes is not None and not np.any(weight):
            raise ValueError("class_weight times sample_weight is zero for every example: nothing is left to learn from")
        return weight

    def _held_out(self, X_val: Any, y_val: Any, rows: Rows, classes: Array, codes: Codes, weight: Floats) -> HeldOut | None:
        """Return the caller's held-out examples, or a held-out fraction of each class, or None."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together; one of them is missing")
        if X_val is not None:
            labels = self._read_labels(X_val, y_val, "X_val")
            validation = self.read_rows(X_val)
            validation.survey(names=feature_names_of(self))
            return HeldOut(validation, NO_ORDER, encode_as(classes, labels))
        if not self.early_stopping:
            return None
        return self.held_out_fraction(rows, len(classes), codes, weight)

    def held_out_fraction(self, rows: Rows, n_classes: int, codes: Codes, weight: Floats) -> HeldOut:
        """Return `validation_fraction` of the examples of each class, drawn by `random_state`."""
        generator = random_generator(self.random_state)
        chosen: list[Ints] = []
        for k in range(n_classes):
            members = generator.permutation(np.flatnonzero((codes == k) & (weight != 0.0 if weight.size else True)))
            chosen.append(members[: max(0, min(round(self.validation_fraction * len(members)), len(members) - 1))])
        which = np.sort(np.concatenate(chosen))
        if not which.size:
            raise NoneHeldOutError(
                f"validation_fraction={self.validation_fraction} of {len(codes)} examples leaves none to hold out: "
                "give more examples, a larger fraction, or X_val and y_val"
            )
        return HeldOut(rows, frozen(which), codes[which])

    converged_: bool
    cycle_: Cycle | None

    def _pack_end(self) -> State:
        """Return how training ended."""
        return {"converged": bool(self.converged_), "cycle": None if self.cycle_ is None else [*self.cycle_]}

    def _unpack_end(self, state: State) -> None:
        cycle = state["cycle"]
        self.converged_ = flag(state, "converged")
        self.cycle_ = None if cycle is None else Cycle(*(whole(cycle, i) for i in (0, 1)))  # type: ignore[arg-type]

    def winners(self, scores: Floats, n_classes: int) -> Ints:
        """Return the code of the class that each row of scores is for; for two classes `tie` decides a score of 0."""
        if n_classes == 2 and self.tie == "+1":
            positive: Ints = (scores[:, 0] >= 0).astype(np.int64)
            return positive
        return super().winners(scores, n_classes)
