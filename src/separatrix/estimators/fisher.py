"""The Fisher discriminant: project the classes where their means lie far apart for their variances (L3 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from separatrix.engine.labels import check_two_classes, encode, encode_as, newcomers, with_newcomer
from separatrix.engine.parameters import Constraint, choices, instance_of, none, number, whole
from separatrix.engine.parcel import Parcel, State, flag
from separatrix.engine.parcel import number as number_of
from separatrix.engine.rows import Array, Floats, Rows, feature_names_of
from separatrix.engine.weights import Weights, n_outputs
from separatrix.estimators.base import Estimator
from separatrix.estimators.notebook import number as shown_number
from separatrix.estimators.notebook import some
from separatrix.learners.classifier import PlainClassifier
from separatrix.learners.inputs import declared_classes, example_weight, schema_kept
from separatrix.solvers.class_moments import Moments, merge
from separatrix.solvers.fisher_directions import Directions, maximise

_NARROW = 1e-6
_SETTINGS = ("shrinkage", "threshold", "priors", "n_components")
"""The parameters that a discriminant depends on."""


class _Discriminant:
    """What follows from the moments of the classes: directions, projections, weights. Computed when asked for."""

    def __init__(
        self,
        classes: Array,
        moments: list[Moments],
        *,
        shrinkage: float | str | None,
        threshold: str,
        priors: Any,
        n_components: int | None,
    ) -> None:
        self.classes, self.moments = classes, moments
        self.given_shrinkage, self.threshold = shrinkage, threshold
        self.given_priors, self.n_components = priors, n_components

    def settings(self) -> dict[str, Any]:
        """Return the settings as they were when the discriminant was made."""
        values = self.given_shrinkage, self.threshold, self.given_priors, self.n_components
        return dict(zip(_SETTINGS, values, strict=True))

    @property
    def class_count(self) -> Floats:
        return np.array([m.n for m in self.moments])

    @property
    def means(self) -> Floats:
        return np.array([m.mean for m in self.moments])

    @property
    def covariances(self) -> Floats:
        return np.array([m.covariance for m in self.moments])

    @property
    def priors(self) -> Floats:
        if self.given_priors is None:
            return np.asarray(self.class_count / self.class_count.sum())
        priors = np.asarray(self.given_priors, dtype=np.float64)
        if priors.shape != self.classes.shape:
            raise ValueError(f"priors has shape {priors.shape}, but there are {len(self.classes)} classes")
        if not (np.isfinite(priors).all() and (priors > 0.0).all()):
            raise ValueError(f"priors must be positive and finite, got {priors.tolist()}")
        return np.asarray(priors / priors.sum())

    @cached_property
    def directions(self) -> Directions:
        self._check()
        S = sum((m.scatter / m.n for m in self.moments[1:]), start=self.moments[0].covariance)
        directions = maximise(S, self.means, self.given_shrinkage, float(self.class_count.sum()))
        p = directions.A.shape[1] if self.n_components is None else self.n_components
        return directions._replace(A=directions.A[:, :p], quotients=directions.quotients[:p])

    def _check(self) -> None:
        K = len(self.classes)
        check_two_classes(self.classes)
        for label, moments in zip(self.classes.tolist(), self.moments, strict=True):
            if not moments.n:
                raise ValueError(f"class {label!r} has no example, or only examples of weight zero: its mean is unknown")
        if self.threshold == "equal_error" and K > 2:
            raise ValueError(f'threshold="equal_error" is for two classes, but there are {K}: use "midpoint" or "priors"')
        if self.given_priors is not None and self.threshold != "priors":
            raise ValueError(f'priors have no effect with threshold={self.threshold!r}: set threshold="priors"')
        if self.n_components is not None and self.n_components > K - 1:
            raise ValueError(f"n_components={self.n_components}, but {K} classes have {K - 1} projections")

    @property
    def scalings(self) -> Floats:
        return self.directions.A

    @property
    def quotients(self) -> Floats:
        return self.directions.quotients

    @property
    def shrinkage(self) -> float:
        return self.directions.shrinkage

    @cached_property
    def unit(self) -> Floats:
        """The directions with length 1: ⟨w,x⟩/‖w‖ is the projection on w."""
        lengths = np.linalg.norm(self.directions.A, axis=0)
        return np.asarray(self.directions.A / np.where(lengths > 0.0, lengths, 1.0))

    @cached_property
    def projected_means(self) -> Floats:
        return self.means @ self.unit

    @cached_property
    def projected_variances(self) -> Floats:
        return np.array([np.sum(self.unit * (m.scatter @ self.unit), axis=0) / m.n for m in self.moments])

    @cached_property
    def weights(self) -> Weights:
        """Linear scores whose largest is the nearest projected mean under S; for two classes their difference."""
        centre = self.means.mean(axis=0)
        places = (self.means - centre) @ self.directions.A
        coef = places @ self.directions.A.T
        intercept = -coef @ centre - 0.5 * np.sum(places**2, axis=1)
        if self.threshold == "priors":
            intercept = intercept + np.log(self.priors) / len(self.classes)
        if len(self.classes) > 2:
            return Weights(coef, intercept)
        w = coef[1] - coef[0]
        if self.threshold == "equal_error":
            return Weights(w[None], np.array([-self._equal_error(w)]))
        return Weights(w[None], intercept[1:] - intercept[:1])

    def _equal_error(self, w: Floats) -> float:
        """Return t with (t − m₀)/σ₀ = (m₁ − t)/σ₁."""
        low, high = (float(w @ m.mean) for m in self.moments)
        spread = [max(float(w @ m.scatter @ w) / m.n, 0.0) ** 0.5 for m in self.moments]
        below, above = (max(s, _NARROW * (high - low)) for s in spread)
        return (low * above + high * below) / (below + above) if below + above > 0.0 else (low + high) / 2

    @property
    def coef(self) -> Floats:
        return self.weights.coef

    @property
    def intercept(self) -> Floats:
        return self.weights.intercept


def _of_the_discriminant(name: str, doc: str) -> Any:
    def get(self: FisherDiscriminant) -> Any:
        if not hasattr(self, "_discriminant"):
            raise AttributeError(f"this FisherDiscriminant has no {name}_ before it is fitted")
        return getattr(self._discriminant, name)

    return property(get, doc=doc)


class FisherDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator, PlainClassifier):  # type: ignore[misc]
    """Fisher's linear discriminant: a classifier, and a projection to one dimension less than there are classes.

    With μ and Σ the mean and the covariance of a class (Σ the expectation, divided by n), it maximises
    (wᵀ(μ₁ − μ₂))² / wᵀSw with S = Σ₁ + Σ₂, and w = S⁻¹(μ₁ − μ₂) is `coef_`. The lecture's class 1 is `classes_[1]`: as in
    all our learners a positive score means `classes_[1]`. For K classes S = Σ₁ + … + Σ_K, and (wᵀ(μ₁ − μ₂))² becomes its sum
    over all pairs of classes; the K − 1 best directions solve a generalised eigenproblem. However many examples a class has,
    it counts the same.

    It predicts the class whose projected mean is nearest, distances measured by S. It learns in one pass, by `fit` or in
    pieces by `partial_fit`, and keeps the moments only: 8·d² bytes a class.

    Parameters
    ----------
    shrinkage : None; a number from 0 to 1, by which the covariances between features are lowered (1: features count as
        uncorrelated); or "auto", that of Chen, Wiesel, Eldar and Hero (2010). For few examples and many features.
    threshold : "midpoint" of the projected means; "equal_error", where both classes have the same error if their projections
        are Gaussian (two classes only); or "priors", the midpoint moved towards the rarer class, as is best if the
        projections are Gaussian with the same variance.
    priors : the probability of each class, up to a factor, for `threshold="priors"`; None: their share of the examples.
    n_components : how many projections to keep, for `transform` and for prediction; None: all, K − 1.
    max_bytes : the largest memory that may be asked for.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    means_, covariances_, class_count_, priors_ : μ, Σ, the number of examples (by weight) and the probability of each class.
    scalings_ : the directions, a column each, best first, with scalings_ᵀ S scalings_ = I.
    quotients_ : the value of Fisher's quotient in each direction.
    projected_means_, projected_variances_ : ⟨w,μ⟩/‖w‖ and wᵀΣw/‖w‖², a row for each class, a column for each direction.
    shrinkage_ : the shrinkage used.

    Notes
    -----
    If S is singular but the means differ only in directions that vary (a constant feature, one that is the sum of others),
    the shortest solution of Sw = μ₁ − μ₂ is taken (in units of each feature's deviation): all solutions are equally good. If
    the means differ in a direction without variance, as happens when there are fewer examples than features, the quotient
    has no largest value; that direction is taken, which gets every training example right, and a `LinAlgWarning` says so.

    Examples
    --------
    Two triangles: the second is the first moved by (4, 2), and S = ((4/3, 0), (0, 4)).

    >>> from separatrix import FisherDiscriminant
    >>> X = [[0, 0], [2, 0], [1, 3], [4, 2], [6, 2], [5, 5]]
    >>> model = FisherDiscriminant().fit(X, [0, 0, 0, 1, 1, 1])
    >>> model.coef_, model.intercept_
    (array([[3. , 0.5]]), array([-10.]))
    >>> model.predict([[3, 1], [3, 5]]), (model.transform([[3, 1]]) * 37**0.5).round(9)
    (array([0, 1]), array([[19.]]))
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "shrinkage": number(0, 1, closed="both") | choices("auto") | none,
        "threshold": choices("midpoint", "equal_error", "priors"),
        "priors": instance_of(list, tuple, np.ndarray) | none,
        "n_components": whole(1) | none,
        "max_bytes": whole(1),
    }

    def __init__(
        self,
        *,
        shrinkage: float | str | None = None,
        threshold: str = "midpoint",
        priors: Any = None,
        n_components: int | None = None,
        max_bytes: int = 1 << 32,
    ) -> None:
        self.shrinkage = shrinkage
        self.threshold = threshold
        self.priors = priors
        self.n_components = n_components
        self.max_bytes = max_bytes

    coef_ = _of_the_discriminant("coef", "The weights: S⁻¹(μ₁ − μ₀) for two classes, a row for each class for more.")
    intercept_ = _of_the_discriminant("intercept", "The bias of each output.")
    means_ = _of_the_discriminant("means", "The mean of each class.")
    covariances_ = _of_the_discriminant("covariances", "The covariance of each class, divided by n.")
    class_count_ = _of_the_discriminant("class_count", "The examples of each class, by weight.")
    priors_ = _of_the_discriminant("priors", "The probability of each class.")
    scalings_ = _of_the_discriminant("scalings", "The directions, a column each, with scalings_ᵀ S scalings_ = I.")
    quotients_ = _of_the_discriminant("quotients", "Fisher's quotient in each direction.")
    projected_means_ = _of_the_discriminant("projected_means", "⟨w,μ⟩/‖w‖ of each class and direction.")
    projected_variances_ = _of_the_discriminant("projected_variances", "wᵀΣw/‖w‖² of each class and direction.")
    shrinkage_ = _of_the_discriminant("shrinkage", "The shrinkage used.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the directions that tell the classes apart.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_examples, n_features)
        y : labels
        sample_weight : how often each example counts
        """
        self.check_parameters()
        with schema_kept(self):
            rows, y, classes, codes = self._read_examples(X, y)
            self._check_size(rows.d, len(classes))
            weight = example_weight(sample_weight, rows.n)
            moments = [Moments(rows.d) for _ in classes]
            if rows.sparse or not weight.all():
                rows.survey(names=feature_names_of(self))
            with np.errstate(over="ignore", invalid="ignore"):
                merge(moments, rows, codes, weight)
            if not all(np.isfinite(m.scatter).all() for m in moments):
                rows.survey(names=feature_names_of(self))
            discriminant = _Discriminant(classes, moments, **self._settings())
            _ = discriminant.weights
        self.classes_: Array = classes
        self.threshold_ = None
        self._discriminant = discriminant
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue from the moments known so far; the directions are found when they are next asked for.

        In whatever pieces the examples come, the result is that of `fit` on all of them but for rounding. A class that
        `classes` did not declare is added with its first example.
        """
        self.check_parameters()
        first = not hasattr(self, "_discriminant")
        y = self._read_labels(X, y)
        rows = self.read_rows(X, reset=first)
        declared = None if classes is None else declared_classes(classes)
        all_classes = self._discriminant.classes if not first else encode(y)[0] if declared is None else declared
        moments = [Moments(rows.d) for _ in all_classes] if first else list(self._discriminant.moments)
        if declared is not None:
            encode_as(declared, y)
        for _, label in newcomers(all_classes, y if declared is None else declared):
            all_classes, place = with_newcomer(all_classes, label)
            moments.insert(place, Moments(rows.d))
        self._check_size(rows.d, len(all_classes))
        weight = example_weight(sample_weight, rows.n)
        rows.survey(names=feature_names_of(self))
        self.classes_ = all_classes
        self._discriminant = _Discriminant(all_classes, moments, **self._settings())
        merge(moments, rows, encode_as(all_classes, y), weight)
        return self

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _SETTINGS}

    def _check_size(self, d: int, K: int) -> None:
        """Raise where the moments and the work on them would take more memory than allowed."""
        needed = 8 * d**2 * (K + 3)
        if needed > self.max_bytes:
            raise ValueError(
                f"the moments of {d:,} features and {K} classes, and the work on them, take {needed / 1e9:,.1f} GB, above "
                f"max_bytes ({self.max_bytes / 1e9:,.1f} GB): choose or combine features first, or raise max_bytes"
            )

    # Saving: the moments, and what was found from them, so that no other LAPACK finds something else.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put a fitted discriminant into a parcel."""
        state, discriminant = super().pack(parcel, at), self._discriminant
        parcel.put(f"{at}.n", discriminant.class_count)
        parcel.put(f"{at}.mean", discriminant.means)
        parcel.put(f"{at}.scatter", np.array([m.scatter for m in discriminant.moments]))
        settings = discriminant.settings()
        state["settings"] = {name: parcel.put_value(name, value) for name, value in settings.items()}
        try:
            weights, directions = discriminant.weights, discriminant.directions
        except ValueError:  # of a stream that has not shown two classes yet
            return state | {"directed": False}
        weights.pack(parcel, at)
        parcel.put(f"{at}.directions", directions.A)
        parcel.put(f"{at}.quotients", directions.quotients)
        return state | {"directed": True, "shrinkage": float(directions.shrinkage)}

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the discriminant that a parcel holds."""
        model = super().unpack(state, parcel, at)
        K, d = len(model.classes_), model.n_features_in_
        n = parcel.take(f"{at}.n", "f8", (K,), low=0.0)
        mean = parcel.take(f"{at}.mean", "f8", (K, d))
        scatter = parcel.take(f"{at}.scatter", "f8", (K, d, d))
        moments = [Moments(d) for _ in range(K)]
        for k, m in enumerate(moments):
            m.n, m.mean, m.scatter = float(n[k]), mean[k].copy(), scatter[k].copy()
        settings = {name: parcel.take_value(name, state["settings"][name]) for name in _SETTINGS}
        cls(**settings).check_parameters()
        model._discriminant = _Discriminant(model.classes_, moments, **settings)
        if flag(state, "directed"):
            quotients = parcel.take(f"{at}.quotients", "f8", (-1,))
            A = parcel.take(f"{at}.directions", "f8", (d, len(quotients)))
            model._discriminant.directions = Directions(A, quotients, number_of(state, "shrinkage"))
            model._discriminant.weights = Weights.unpack(parcel, at, n_outputs(K), d)
        return model

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        return hasattr(self, "_discriminant")

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("Fisher's quotient", some([shown_number(float(quotient)) for quotient in self.quotients_])),
            ("examples of each class", some([shown_number(float(count)) for count in self.class_count_])),
        ]
        return facts + super()._facts()

    def transform(self, X: Any) -> Floats:
        """Return the projections ⟨w,x⟩/‖w‖ on each direction w."""
        self._check_fitted()
        unit = self._discriminant.unit
        return self._linear_scores(self.read_rows(X), unit.T, np.zeros(unit.shape[1]))

    def scores(self, rows: Rows) -> Floats:
        """Return the scores of the rows, a column for each output."""
        return self._linear_scores(rows, *self._discriminant.weights)
