"""Sequences and weights as the kernels read them: one CSR row a token, and a row of weights for features that have any."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple, Self

import numpy as np

from separatrix.engine.parcel import MOST, Parcel, StateError
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, frozen
from separatrix.kernels.arrays import RowParts

SPARE = 8
"""Kernels read and write eight numbers at once, and so up to so many behind the last one of a row."""


class Encoded(NamedTuple):
    """Tokens as CSR rows (no data: all values are 1); sequence i has the tokens starts[i]…starts[i+1]."""

    starts: Ints
    data: Floats
    indices: Array
    indptr: Ints

    @classmethod
    def of(cls, starts: Array, data: Array, indices: Array, indptr: Array) -> Encoded:
        """Return sequences in the types that the kernels are compiled for."""
        values = np.asarray(data, np.float64)
        kinds = ((starts, np.int64), (values if np.any(values != 1.0) else NO_WEIGHT, np.float64), (indices, np.int32))
        return cls(*(frozen(np.ascontiguousarray(array, kind)) for array, kind in (*kinds, (indptr, np.int64))))

    @property
    def rows(self) -> RowParts:
        """The CSR rows of the tokens."""
        return self.data, self.indices, self.indptr

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def longest(self) -> int:
        """The tokens of the longest sequence."""
        return int(np.diff(self.starts).max(initial=0))

    def take(self, which: Sequence[int] | Array) -> Encoded:
        """Return some of the sequences."""
        numbers = np.asarray(which, np.int64)
        tokens = ranges(self.starts[numbers], self.starts[numbers + 1])
        entries = ranges(self.indptr[tokens], self.indptr[tokens + 1])
        starts = np.append(0, np.cumsum(self.starts[numbers + 1] - self.starts[numbers]))
        indptr = np.append(0, np.cumsum(self.indptr[tokens + 1] - self.indptr[tokens]))
        data = self.data[entries] if self.data.size else self.data
        return Encoded.of(starts, data, self.indices[entries], indptr)

    def and_then(self, other: Encoded) -> Encoded:
        """Return these sequences followed by others."""
        data = self.data
        if self.data.size or other.data.size:
            data = np.concatenate([s.data if s.data.size else np.ones(len(s.indices)) for s in (self, other)])
        return Encoded.of(
            np.append(self.starts, other.starts[1:] + self.starts[-1]),
            data,
            np.append(self.indices, other.indices),
            np.append(self.indptr, other.indptr[1:] + self.indptr[-1]),
        )

    def pack(self, parcel: Parcel, at: str) -> None:
        """Put the arrays into a parcel."""
        for name, array in self._asdict().items():
            parcel.put(f"{at}.{name}", array)

    @classmethod
    def unpack(cls, parcel: Parcel, at: str, n_features: int) -> Encoded:
        """Return the sequences that a parcel holds."""
        starts, indptr = (parcel.take(f"{at}.{name}", "i8", (-1,), low=0, high=MOST) for name in ("starts", "indptr"))
        indices = parcel.take(f"{at}.indices", "i4", (-1,), low=0, high=n_features - 1)
        data = parcel.take(f"{at}.data", "f8", (-1,))
        for ptr, n in ((starts, len(indptr) - 1), (indptr, len(indices))):
            if not ptr.size or ptr[0] != 0 or ptr[-1] != n or np.any(np.diff(ptr) < 0):
                raise StateError(f"{at} holds sequences that do not fit together")
        if data.size not in (0, indices.size):
            raise StateError(f"{at} holds {data.size} values for {indices.size} features")
        return cls.of(starts, data, indices, indptr)


NO_SEQUENCES = Encoded.of(np.zeros(1), NO_WEIGHT, np.empty(0), np.zeros(1))


def ranges(begins: Array, ends: Array) -> Ints:
    """Return all whole numbers of the ranges begins[i]…ends[i], one range after the other."""
    lengths = ends - begins
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.int64)
    shifts = np.repeat(begins - np.append(0, np.cumsum(lengths)[:-1]), lengths)
    numbers: Ints = np.arange(total, dtype=np.int64) + shifts
    return numbers


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
        """A copy of the weights of transitions, as a square."""
        return self.T.reshape(self.K + 1, self.K + 1).copy()

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
