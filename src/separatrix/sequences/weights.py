"""The weights of a structured perceptron as the kernels read them: rows for the features that have any."""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple, Self

import numpy as np

from separatrix.engine.rows import Array, Floats, Ints, frozen

SPARE = 8
"""Kernels read and write eight numbers at once, and so up to so many behind the last one of a row."""


class PathWeights(NamedTuple):
    """The weights of features and of transitions.

    Attributes
    ----------
    places : the row of each feature's weights; row 0, which is all 0, belongs to those without any
    W : the rows of K weights end to end, with room behind the last one
    T : those of transitions, a flat square of K+1 rows; the last row is the start, the last column the end
    """

    places: Array
    W: Floats
    T: Floats

    @property
    def K(self) -> int:  # noqa: N802
        """How many tags there are."""
        return isqrt(self.T.size) - 1

    @property
    def links(self) -> Floats:
        """The weights of transitions as a square."""
        return self.T.reshape(self.K + 1, self.K + 1)

    @classmethod
    def of(cls, W: Floats, T: Floats) -> Self:
        """Return the weights of matrices (n_features, K) and (K+1, K+1)."""
        K = len(T) - 1
        weighted = used_rows(W)
        flat = np.zeros((len(weighted) + 1) * K + SPARE)
        flat[K:-SPARE] = W[weighted].reshape(-1)
        return cls(places_of(weighted, len(W)), flat, np.ascontiguousarray(T).reshape(-1))

    def at(self, features: Array) -> Floats:
        """Return the weights of some features, a row each."""
        return rows_of(self.W, self.K)[self.places[features]]

    def dense(self) -> tuple[Floats, Floats]:
        """Return the matrices (n_features, K) and (K+1, K+1)."""
        return rows_of(self.W, self.K)[self.places], self.links


def rows_of(flat: Floats, K: int) -> Floats:
    """Return the rows of K weights that lie end to end, as a matrix."""
    return flat[: flat.size // K * K].reshape(-1, K)


def used_rows(*matrices: Floats) -> Ints:
    """Return the rows that are not all 0 in every matrix; −0 is not 0 here."""
    used: Ints = np.flatnonzero(np.any([matrix.view(np.int64).any(axis=1) for matrix in matrices], axis=0))
    return used


def places_of(features: Ints, n_features: int) -> Array:
    """Return the places of features whose rows lie in their order, after row 0."""
    places = np.zeros(n_features, np.int32)
    places[features] = np.arange(1, len(features) + 1)
    return frozen(places)
