"""Feature maps: a boundary that is linear in φ(x) need not be linear in x (L3 5, L4 10, L5 2).

Each is a scikit-learn transformer that names what it makes: put it before a learner in a pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.validation import check_is_fitted, validate_data

from separatrix.engine.parameters import Constraint, check_parameters, choices
from separatrix.engine.rows import Array, Floats, Rows, as_rows, feature_names_of, name_text_column
from separatrix.engine.weights import Weights

__all__ = ["Bias", "DiscMap", "PolynomialMap", "RandomFourier", "disc_weights"]

BIAS = "BIAS"
"""The name of the feature that is always 1."""


def _read_rows(transformer: Any, X: Any, reset: bool = False) -> Rows:
    """Return X as the kernels read it, its width and names checked against those of the fit."""
    try:
        matrix = validate_data(transformer, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
    except (TypeError, ValueError):
        name_text_column(X)
        raise
    return Rows(matrix.astype(np.float64) if matrix.dtype == object else matrix)


class _AppendingMap(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A map that keeps the features and puts some of its own before or behind them; there is nothing to learn."""

    constraints: ClassVar[dict[str, Constraint]] = {}

    def _before(self) -> list[str]:
        return []

    def _behind(self) -> list[str]:
        return []

    def _column(self, name: str, X: Any) -> Array:
        """Return one of its own features: here the constant."""
        return np.ones(X.shape[0], X.dtype)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the names and the number of the features."""
        check_parameters(self.get_params(), self.constraints, type(self).__name__)
        _read_rows(self, X, reset=True).survey(names=feature_names_of(self))
        return self

    def transform(self, X: Any) -> Any:
        """Return X with the features added; a CSR matrix stays one."""
        check_is_fitted(self)
        rows = _read_rows(self, X)
        rows.survey(names=feature_names_of(self))
        matrix = rows.source if rows.source.dtype in (np.float32, np.float64) else rows.source.astype(np.float64)
        before, behind = (
            [self._column(name, matrix)[:, None] for name in names] for names in (self._before(), self._behind())
        )
        if not rows.sparse:
            return np.hstack([*before, matrix, *behind])
        form = sp.csr_array if isinstance(matrix, sp.sparray) else sp.csr_matrix
        return sp.hstack([*map(form, before), matrix, *map(form, behind)], format="csr", dtype=matrix.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features: those that came in, and those that were added."""
        names = super().get_feature_names_out(input_features)
        return np.asarray([*self._before(), *names, *self._behind()], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the map takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Bias(_AppendingMap):
    """Append the constant 1, so that the bias is one more weight: (x, 1) of L3 item 5, or (1, x) of L4 item 10.

    Our learners do so themselves with `fit_intercept=True`; this is for seeing it.

    Parameters
    ----------
    position : "last", x̃ = (x, 1), or "first", z = (1, x).

    Examples
    --------
    >>> from separatrix.features import Bias
    >>> Bias().fit_transform([[4, 0], [1, 1]])
    array([[4., 0., 1.],
           [1., 1., 1.]])
    >>> Bias(position="first").fit([[4, 0]]).get_feature_names_out(["win", "game"]).tolist()
    ['BIAS', 'win', 'game']
    """

    constraints: ClassVar[dict[str, Constraint]] = {"position": choices("first", "last")}

    def __init__(self, *, position: str = "last") -> None:
        self.position = position

    def _before(self) -> list[str]:
        return [BIAS] if self.position == "first" else []

    def _behind(self) -> list[str]:
        return [BIAS] if self.position == "last" else []


class DiscMap(_AppendingMap):
    """The map φ(x) = (x, xᵀx, 1) of L5 item 2, in which every disc (ball) is a half-space.

    ‖x − μ‖² = ⟨(−2μ, 1, μᵀμ), φ(x)⟩, so ‖x − μ‖ ≤ r is linear in φ(x): `disc_weights` gives its weights. The constant is
    among the features: a learner behind the map needs no bias of its own.

    Examples
    --------
    The centre of a square against its corners: no line separates them, a disc does.

    >>> from separatrix import Perceptron
    >>> from separatrix.features import DiscMap
    >>> X, y = [[0, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, -1, -1]
    >>> phi = DiscMap().fit(X)
    >>> phi.transform(X)[1], phi.get_feature_names_out().tolist()
    (array([1., 1., 2., 1.]), ['x0', 'x1', 'xᵀx', 'BIAS'])
    >>> Perceptron(fit_intercept=False, max_iter=100, random_state=0).fit(phi.transform(X), y).converged_
    True
    """

    _squared_norm = "xᵀx"

    def _behind(self) -> list[str]:
        return [self._squared_norm, BIAS]

    def _column(self, name: str, X: Any) -> Array:
        if name != self._squared_norm:
            return super()._column(name, X)
        with np.errstate(over="ignore"):
            # A running sum adds in the order of the features on every machine; other sums add in lanes.
            squared = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.cumsum(X * X, axis=1)[:, -1]
        column = np.asarray(squared, dtype=X.dtype).reshape(-1)
        if not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"row {row} of X is too large: its squared norm is above the largest {X.dtype}")
        return column


def disc_weights(centre: Any, radius: float) -> Weights:
    """Return the weights and the bias of the disc ‖x − μ‖ ≤ r on φ(x) = (x, xᵀx, 1): w = (2μ, −1, −μᵀμ), intercept r².

    The lecture's threshold is b = −r²: inside, boundary included, is ⟨w,φ(x)⟩ ≥ b, and the intercept is −b.

    Examples
    --------
    >>> from separatrix.features import DiscMap, disc_weights
    >>> w, intercept = disc_weights(centre=[1, 2], radius=5)
    >>> w, intercept
    (array([[ 2.,  4., -1., -5.]]), array([25.]))
    >>> DiscMap().fit_transform([[1, 2], [4, 6], [5, 6]]) @ w[0] + intercept
    array([25.,  0., -7.])
    """
    mu: Floats = np.asarray(centre, dtype=np.float64).reshape(-1)
    if not (np.isfinite(mu).all() and 0.0 <= radius < np.inf):
        raise ValueError(f"a disc needs a finite centre and a finite radius of 0 or more, got {mu.tolist()} and {radius}")
    return Weights(np.concatenate([2.0 * mu, [-1.0, -(mu @ mu)]])[None], np.array([float(radius) ** 2]))


@contextmanager
def _faults_named(X: Any) -> Iterator[None]:
    """Say at which row and column X holds what is refused, where it is a NaN or an infinity."""
    try:
        yield
    except ValueError as refusal:
        if any(word in str(refusal) for word in ("NaN", "infinity")):
            as_rows(X)
        raise


class PolynomialMap(PolynomialFeatures):  # type: ignore[misc]
    """All products of at most `degree` features: scikit-learn's `PolynomialFeatures`, with errors that say where.

    Parameters
    ----------
    degree : the largest degree of a product, or the pair of the smallest and the largest.
    interaction_only : only products of different features.
    include_bias : the product of no feature, the constant 1, too.

    Examples
    --------
    XOR is linear in x₁x₂.

    >>> from separatrix.features import PolynomialMap
    >>> phi = PolynomialMap(interaction_only=True, include_bias=False)
    >>> phi.fit_transform([[1, 1], [1, -1], [-1, 1], [-1, -1]])[:, 2]
    array([ 1., -1., -1.,  1.])
    >>> phi.get_feature_names_out(["a", "b"]).tolist()
    ['a', 'b', 'a b']
    """

    def __init__(self, degree: Any = 2, *, interaction_only: bool = False, include_bias: bool = True) -> None:
        super().__init__(degree, interaction_only=interaction_only, include_bias=include_bias)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the products to be made."""
        with _faults_named(X):
            super().fit(X.tocsr() if sp.issparse(X) else X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Return the products; a CSR matrix stays one."""
        with _faults_named(X):
            mapped = super().transform(X.tocsr() if sp.issparse(X) else X)
        return sp.csr_array(mapped) if isinstance(X, sp.sparray) else mapped


class RandomFourier(RBFSampler):  # type: ignore[misc]
    """Random features whose inner products approach the Gaussian kernel exp(−γ‖x − x'‖²) (Rahimi, Recht 2007).

    φ(x) = √(2/D)·cos(Ωᵀx + β), Ω Gaussian with variance 2γ, β uniform: scikit-learn's `RBFSampler`, with errors that say
    where. The error of an inner product is about 1/√D.

    Parameters
    ----------
    n_components : D, the number of features.
    gamma : the kernel's γ, or "scale": 1/(n_features · variance of X).
    random_state : int, RandomState or None.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.features import RandomFourier
    >>> xor = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> Z = RandomFourier(n_components=50, random_state=0).fit_transform(xor)
    >>> Perceptron(random_state=0).fit(Z, [1, -1, -1, 1]).converged_
    True
    """

    def __init__(self, *, n_components: int = 100, gamma: float | str = 1.0, random_state: Any = None) -> None:
        super().__init__(gamma=gamma, n_components=n_components, random_state=random_state)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the directions and the phases."""
        with _faults_named(X):
            super().fit(X, y)
        return self

    def transform(self, X: Any) -> Any:
        """Return the features, a dense array."""
        with _faults_named(X):
            return super().transform(X)
