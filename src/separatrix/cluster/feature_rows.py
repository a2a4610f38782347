"""Arrays with a row for each feature, stored sparse while few rows differ from a default: what is sent over the network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.engine.rows import Array, Floats, Ints

SPARSE_BELOW = 3
"""Rows are sent with their feature numbers while fewer than one feature in this many has a row."""


@dataclass
class FeatureRows:
    """Arrays of shape (size, outputs) of which only the rows `features` (sorted; None: all) are stored.

    All other rows of array k equal `defaults[k]`. The bias is the last feature. Addition treats a missing row as zeros, and
    may reuse the arrays of either operand: neither may be used afterwards.
    """

    size: int
    features: Array | None
    values: list[Floats]
    defaults: tuple[float, ...]
    whole: list[Floats] | None = None
    """The arrays of all rows, once they were asked for: the next shard needs them too."""

    @classmethod
    def of(cls, size: int, features: Ints | None, values: list[Floats], defaults: tuple[float, ...]) -> FeatureRows:
        """Return the rows of some features (None: of all, in order), without those that equal the default."""
        differs = np.zeros(len(values[0]), np.bool_)
        for array, default in zip(values, defaults, strict=True):
            differs |= (array != default).any(axis=1)
        if SPARSE_BELOW * np.count_nonzero(differs) >= size:
            return cls(size, None, values if features is None else _filled(size, features, values, defaults), defaults)
        rows = np.flatnonzero(differs)
        stored = rows if features is None else features[rows]
        dtype = np.int32 if size < 1 << 31 else np.int64
        return cls(size, stored.astype(dtype), [array[rows] for array in values], defaults)

    def at(self, features: Ints | None) -> list[Floats]:
        """Return the rows of some features (None: of all), to be read only."""
        if self.features is None:
            return self.values if features is None else [array[features] for array in self.values]
        if features is None:
            if self.whole is None:
                self.whole = _filled(self.size, self.features, self.values, self.defaults)
            return self.whole
        place = np.searchsorted(self.features, features)
        place[place == len(self.features)] = 0
        stored = self.features[place] == features if len(self.features) else np.zeros(len(features), np.bool_)
        gathered = []
        for array, default in zip(self.values, self.defaults, strict=True):
            rows = np.full((len(features), array.shape[1]), default)
            rows[stored] = array[place[stored]]
            gathered.append(rows)
        return gathered

    def widened(self, size: int) -> FeatureRows:
        """Return the same rows among more features: the bias stays the last."""
        if size == self.size:
            return self
        stored = np.arange(self.size) if self.features is None else self.features.copy()
        stored[stored == self.size - 1] = size - 1
        dtype = np.int32 if size < 1 << 31 else np.int64
        return FeatureRows(size, stored.astype(dtype), self.values, self.defaults)

    def index(self) -> Array | slice:
        """Return the features that have a row, as an index into arrays of all features."""
        return slice(None) if self.features is None else self.features

    def __add__(self, other: FeatureRows) -> FeatureRows:
        if self.size != other.size:
            size = max(self.size, other.size)
            return self.widened(size) + other.widened(size)
        if self.features is not None and other.features is not None:
            both = np.concatenate([self.features, other.features])
            order = np.argsort(both, kind="stable")  # a merge of two sorted runs
            both = both[order]
            first = np.append(True, both[1:] != both[:-1])[: len(both)]
            features, second = both[first], np.flatnonzero(~first)
            if SPARSE_BELOW * len(features) < self.size:
                values = []
                for pair in zip(self.values, other.values, strict=True):
                    rows = np.concatenate(pair)[order]
                    rows[second - 1] += rows[second]  # a feature of both operands occupies two neighbouring rows
                    values.append(rows[first])
                return FeatureRows(self.size, features, values, self.defaults)
        whole, rest = (self, other) if self.features is None else (other, self)
        values = whole.at(None)
        for total, array in zip(values, rest.values, strict=True):
            total[rest.index()] += array
        return FeatureRows(self.size, None, values, self.defaults)


def _filled(size: int, features: Array, values: list[Floats], defaults: tuple[float, ...]) -> list[Floats]:
    """Return arrays of all features that have these rows, and the default in all others."""
    whole = []
    for array, default in zip(values, defaults, strict=True):
        total = np.zeros((size, array.shape[1]), array.dtype)  # pages of zeros cost nothing until they are written
        if default:
            total[:] = default
        total[features] = array
        whole.append(total)
    return whole
