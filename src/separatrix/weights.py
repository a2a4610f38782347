"""Weight vectors: one for two classes, one per class for K, in the shapes people and kernels want."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from separatrix.rows import Array, Floats


class Weights(NamedTuple):
    """Weights and biases, in the shapes of `coef_` and `intercept_`."""

    coef: Floats
    intercept: Floats


def n_outputs(n_classes: int) -> int:
    """Return how many weight vectors so many classes need."""
    return 1 if n_classes <= 2 else n_classes


class Flat:
    """Weights as the kernels hold them: output after output for dense rows, feature after feature for CSR."""

    def __init__(self, K: int, d: int, sparse: bool, start: Weights | None = None) -> None:
        self.K, self.d, self.sparse = K, d, sparse
        self.W = np.zeros(K * d)
        self.b = np.zeros(K)
        if start is not None:
            self.load(start)

    def load(self, weights: Weights) -> None:
        """Take over other weights."""
        coef, self.b = weights.coef, weights.intercept.astype(np.float64)
        self.K = len(coef)
        self.W = np.array(coef.T if self.sparse else coef, dtype=np.float64, order="C").reshape(-1)

    def weights(self) -> Weights:
        """Return a copy in the shapes of `coef_` and `intercept_`."""
        W = self.W.copy()
        return Weights(W.reshape(self.d, self.K).T if self.sparse else W.reshape(self.K, self.d), self.b.copy())

    def lay(self, sparse: bool) -> None:
        """Lay the weights out for rows of the other kind."""
        if sparse != self.sparse:
            weights = self.weights()
            self.sparse = sparse
            self.load(weights)

    def __eq__(self, other: object) -> bool:
        """Tell whether the weights are the same, bit for bit up to the sign of zero."""
        return isinstance(other, Flat) and np.array_equal(self.W, other.W) and np.array_equal(self.b, other.b)

    __hash__ = None  # type: ignore[assignment]


def averaged(last: Weights, late: Weights, steps: int) -> Weights:
    """Return the mean of the weights after each of `steps` steps, (T·w − u)/T, from the last w and the lazy u."""
    return Weights(*((steps * w - u) / steps for w, u in zip(last, late, strict=True)))


def with_class(w: Array, n_classes: int, place: int) -> Array:
    """Return weights (or biases) with zeros for one more class at `place`; the w of two classes becomes (−w, w)."""
    if n_classes == 1:
        return w
    if n_classes == 2:
        w = np.concatenate([-w, w])
    return np.insert(w, place, 0.0, axis=0)
