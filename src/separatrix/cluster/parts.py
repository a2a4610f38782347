"""Rows of numbers by feature, kept sparse as long as few features have any: what travels between driver and workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.engine.rows import Array, Floats, Ints

SPARSE_BELOW = 3
"""Rows travel with their numbers while fewer than one feature in so many has any."""


@dataclass
class Part:
    """Arrays of shape (features, outputs), of which only the rows `where` (sorted; None: all) differ from `blanks`.

    The bias is the last feature. Adding two parts adds their rows, where one has all of them into its own arrays: neither is
    of any use afterwards. A part without a row has zeros there.
    """

    size: int
    where: Array | None
    values: list[Floats]
    blanks: tuple[float, ...]

    @classmethod
    def of(cls, size: int, features: Ints | None, values: list[Floats], blanks: tuple[float, ...]) -> Part:
        """Return the rows of some features (None: of all, in order), without those that are blank."""
        held = np.zeros(len(values[0]), np.bool_)
        for array, blank in zip(values, blanks, strict=True):
            held |= (array != blank).any(axis=1)
        rows = np.flatnonzero(held)
        if SPARSE_BELOW * len(rows) >= size:
            return cls(size, None, values if features is None else _filled(size, features, values, blanks), blanks)
        where = rows if features is None else features[rows]
        kind = np.int32 if size < 1 << 31 else np.int64
        return cls(size, where.astype(kind), [array[rows] for array in values], blanks)

    def at(self, features: Ints | None) -> list[Floats]:
        """Return the rows of some features (None: of all), as copies."""
        if self.where is None:
            return [array.copy() if features is None else array[features] for array in self.values]
        if features is None:
            return _filled(self.size, self.where, self.values, self.blanks)
        place = np.searchsorted(self.where, features)
        place[place == len(self.where)] = 0
        found = self.where[place] == features if len(self.where) else np.zeros(len(features), np.bool_)
        gathered = []
        for array, blank in zip(self.values, self.blanks, strict=True):
            rows = np.full((len(features), array.shape[1]), blank)
            rows[found] = array[place[found]]
            gathered.append(rows)
        return gathered

    def rows(self) -> Array | slice:
        """Return which features there are rows of, as an index."""
        return slice(None) if self.where is None else self.where

    def __add__(self, other: Part) -> Part:
        if self.where is not None and other.where is not None:
            both = np.concatenate([self.where, other.where])
            order = np.argsort(both, kind="stable")  # a merge of two sorted runs
            both = both[order]
            fresh = np.append(True, both[1:] != both[:-1])[: len(both)]
            where, again = both[fresh], np.flatnonzero(~fresh)
            if SPARSE_BELOW * len(where) < self.size:
                values = []
                for pair in zip(self.values, other.values, strict=True):
                    rows = np.concatenate(pair)[order]
                    rows[again - 1] += rows[again]
                    values.append(rows[fresh])
                return Part(self.size, where, values, self.blanks)
        whole, rest = (self, other) if self.where is None else (other, self)
        values = whole.values if whole.where is None else whole.at(None)
        for total, array in zip(values, rest.values, strict=True):
            total[rest.rows()] += array
        return Part(self.size, None, values, self.blanks)


def _filled(size: int, features: Array, values: list[Floats], blanks: tuple[float, ...]) -> list[Floats]:
    shapes = [(size, array.shape[1]) for array in values]
    whole = [np.full(shape, blank) if blank else np.zeros(shape) for shape, blank in zip(shapes, blanks, strict=True)]
    for total, array in zip(whole, values, strict=True):
        total[features] = array
    return whole
