"""Weight vectors: one for two classes, one per class for K, in the shapes people and kernels want."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.parcel import Parcel
from separatrix.engine.rows import Array, Floats, writable


class Weights(NamedTuple):
    """Weights and biases, in the shapes of `coef_` and `intercept_`."""

    coef: Floats
    intercept: Floats

    def pack(self, parcel: Parcel, at: str) -> None:
        """Put weights and biases into a parcel."""
        parcel.put_weights(f"{at}_coef", self.coef)
        parcel.put(f"{at}_intercept", self.intercept)

    @classmethod
    def unpack(cls, parcel: Parcel, at: str, K: int, d: int) -> Weights:
        """Return the weights and biases of K outputs and d features."""
        return cls(parcel.take_weights(f"{at}_coef", (K, d)), parcel.take(f"{at}_intercept", "f8", (K,)))


def n_outputs(n_classes: int) -> int:
    """Return how many weight vectors so many classes need."""
    return 1 if n_classes <= 2 else n_classes


class Flat:
    """Weights as the kernels hold them: output after output for dense rows, feature after feature for CSR.

    With `spread`, Σ of the rules that keep one lies beside them: "diagonal" (in the order of the weights) or "full" (a
    matrix for each output, the bias its last row).
    """

    def __init__(self, K: int, d: int, sparse: bool, start: Weights | None = None, *, spread: str = "") -> None:
        self.K, self.d, self.sparse, self.spread = K, d, sparse, spread
        self.W = np.zeros(K * d)
        self.b = np.zeros(K)
        self.V, self.vb, self.g = np.empty(0), np.empty(0), np.empty(0)
        if start is not None:
            self.load(start)
        if spread == "diagonal":
            self.V, self.vb, self.g = np.ones(K * d), np.ones(K), np.empty(d + 1)
        elif spread:
            self.load_spread([np.tile(np.eye(d + 1), (K, 1, 1)), np.ones(K)])

    @property
    def sigma(self) -> tuple[Floats, Floats, Floats] | None:
        """Σ as the kernels correct it, its part for the biases, and room for one Σx̃; None where the rule keeps none."""
        return (self.V, self.vb, self.g) if self.spread else None

    @property
    def arrays(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats, Floats] | None]:
        """What the kernels correct in place."""
        return (self.W, self.b), self.sigma

    def load(self, weights: Weights) -> None:
        """Take over other weights."""
        coef, self.b = weights.coef, weights.intercept.astype(np.float64)
        self.K = len(coef)
        self.W = self._laid(coef)

    def load_spread(self, spread: list[Array]) -> None:
        """Take over another Σ."""
        V, self.vb = spread[0], spread[1].astype(np.float64)
        self.V = self._laid(V) if self.spread == "diagonal" else np.array(V, dtype=np.float64, order="C").reshape(-1)
        self.g = np.empty(self.d + 1)

    def _laid(self, array: Array) -> Floats:
        return np.array(array.T if self.sparse else array, dtype=np.float64, order="C").reshape(-1)

    def weights(self) -> Weights:
        """Return a copy in the shapes of `coef_` and `intercept_`."""
        return Weights(self._shaped(self.W.copy()), self.b.copy())

    def view(self) -> Weights:
        """Return the same without a copy, to be read before the weights change."""
        return Weights(self._shaped(self.W), self.b)

    def spreads(self) -> list[Array]:
        """Return a copy of Σ: variances in the shapes of `coef_` and `intercept_`, or a matrix for each output."""
        if not self.spread:
            return []
        if self.spread == "full":
            return [self.V.copy().reshape(self.K, self.d + 1, self.d + 1), self.vb.copy()]
        return [self._shaped(self.V.copy()), self.vb.copy()]

    def check_spread(self) -> None:
        """Raise where whole matrices Σ no longer have variances on their diagonals."""
        if self.spread != "full":
            return
        if np.any(np.diagonal(self.V.reshape(self.K, self.d + 1, self.d + 1), axis1=1, axis2=2) <= 0.0):
            raise ValueError(
                "the rule 'arow-full' has lost its matrix to rounding: the features span too many powers of ten; "
                "scale them, or use the rule 'arow'"
            )

    def _shaped(self, array: Floats) -> Floats:
        return array.reshape(self.d, self.K).T if self.sparse else array.reshape(self.K, self.d)

    def lay(self, sparse: bool) -> None:
        """Lay the weights out for rows of the other kind; of a single output nothing moves."""
        if sparse != self.sparse:
            for name in ("W", "V") if self.spread == "diagonal" else ("W",):
                setattr(self, name, self._turned(getattr(self, name)))
            self.sparse = sparse

    def _turned(self, array: Floats) -> Floats:
        if not array.size:
            return array
        shaped = self._shaped(array)
        return np.ascontiguousarray(shaped if self.sparse else shaped.T).reshape(-1)

    def grow(self, K: int, d: int) -> None:
        """Make room for K outputs and d features, none fewer than now, laid out for CSR: weights of 0, variances of 1."""
        for name, new in (("W", np.zeros), ("V", np.ones)):
            if (old := getattr(self, name)).size:
                grown = new((d, K))
                grown[: self.d, : self.K] = old.reshape(self.d, self.K)
                setattr(self, name, grown.reshape(-1))
        self.b = np.append(self.b, np.zeros(K - self.K))
        if self.spread:
            self.vb, self.g = np.append(self.vb, np.ones(K - self.K)), np.empty(d + 1)
        self.K, self.d = K, d

    def split(self) -> None:
        """Let each of two classes have an output of its own: (−w, w), with the same variances."""
        spread = self.spreads()
        self.load(Weights(*(_both(w) for w in self.weights())))
        if spread:
            self.load_spread([np.repeat(V, 2, axis=0) for V in spread])

    def resize(self, d: int) -> None:
        """Make room for d features, or leave out all but the first d: new weights are 0, new variances 1."""
        (coef, b), spread = self.weights(), self.spreads()
        common, self.d = min(d, self.d), d
        grown = np.zeros((self.K, d))
        grown[:, :common] = coef[:, :common]
        self.load(Weights(grown, b))
        if self.spread == "diagonal":
            V = np.ones((self.K, d))
            V[:, :common] = spread[0][:, :common]
            self.load_spread([V, spread[1]])
        elif self.spread:
            V = np.tile(np.eye(d + 1), (self.K, 1, 1))
            old = spread[0]
            V[:, :common, :common] = old[:, :common, :common]
            V[:, -1, :common], V[:, :common, -1], V[:, -1, -1] = old[:, -1, :common], old[:, :common, -1], old[:, -1, -1]
            self.load_spread([V, spread[1]])

    def add_class(self, n_classes: int, place: int) -> None:
        """Make room for one more class at `place`: zero weights, and variances of 1."""
        if n_classes < 2:
            return
        if n_classes == 2:
            self.split()
        spread = self.spreads()
        self.load(Weights(*(np.insert(w, place, 0.0, axis=0) for w in self.weights())))
        if spread:
            fresh = [np.ones(self.d) if self.spread == "diagonal" else np.eye(self.d + 1), 1.0]
            self.load_spread([np.insert(V, place, one, axis=0) for V, one in zip(spread, fresh, strict=True)])

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, **{name: writable(state[name]) for name in ("W", "b", "V", "vb", "g")})

    def __eq__(self, other: object) -> bool:
        """Tell whether the weights are the same, bit for bit up to the sign of zero."""
        return isinstance(other, Flat) and np.array_equal(self.W, other.W) and np.array_equal(self.b, other.b)

    __hash__ = None  # type: ignore[assignment]


def averaged(last: Weights, late: Weights, steps: int) -> Weights:
    """Return the mean of the weights after each of `steps` steps, (T·w − u)/T, from the last w and the lazy u."""
    means = []
    for w, u in zip(last, late, strict=True):
        mean = steps * w
        mean -= u
        mean /= steps
        means.append(mean)
    return Weights(*means)


def with_class(w: Array, n_classes: int, place: int) -> Array:
    """Return weights (or biases) with zeros for one more class at `place`; the w of two classes becomes (−w, w)."""
    if n_classes == 1:
        return w
    if n_classes == 2:
        w = _both(w)
    return np.insert(w, place, 0.0, axis=0)


def _both(w: Array) -> Array:
    return np.concatenate([0.0 - w, w])  # not −w: a weight that nobody touched stays +0
