"""Rows of counted n-grams, gathered block by block into one CSR matrix, and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.rows import Array, Floats, Ints
from separatrix.features.words.ngrams import Scratch
from separatrix.features.words.vocabulary import grown
from separatrix.kernels.text import counts as kernels

NO_FACTOR: Floats = np.empty(0)
_GUESS = 1 << 25
"""So many entries are reserved on the word of the first texts alone."""


class CountedRows:
    """A CSR matrix of n rows in the making: each column of a row once, in order, with its count."""

    def __init__(self, n: int, dtype: Any) -> None:
        self.n = self.nnz = 0
        self.ptr: Ints = np.zeros(n + 1, np.int64)
        self.indices = np.empty(0, np.int32)
        self.values: Array = np.empty(0, dtype)
        self.largest = 0.0
        self.scratch = Scratch()

    def keys(self, size: int) -> Array:
        """Return room for the keys of a block."""
        return self.scratch.room("keys", size, np.uint64)

    def add(self, keys: Array, ptr: Array, bits: int, share: float = 1.0) -> None:
        """Count the n-grams of some more rows, of columns of `bits` bits; `share` of all text has been read by then."""
        spare, count = self.scratch.room("spare", len(keys), np.uint64), self.scratch.room("count", 1 << 11, np.int64)
        next_of = self.scratch.room("next", len(ptr) - 1, np.int64)
        if kernels.sort(keys, spare, ptr, bits, count, next_of):
            keys = spare
        self._make_room(int(ptr[-1]), share)
        ends = self.ptr[self.n + 1 : self.n + len(ptr)]
        self.largest = max(self.largest, kernels.count(keys, ptr, self.nnz, self.indices, self.values, ends))
        self.n += len(ends)
        self.nnz = int(self.ptr[self.n])

    def _make_room(self, more: int, share: float) -> None:
        size = self.nnz + more
        if size > len(self.indices):
            expected = 1.05 * size / share if share > 0.0 else 0.0
            size = max(size, int(min(expected, max(2 * size, _GUESS))))
            if self.nnz:
                self.indices, self.values = grown(self.indices, size), grown(self.values, size)
            else:
                self.indices, self.values = np.empty(size, np.int32), np.empty(size, self.values.dtype)

    @property
    def columns(self) -> Array:
        """The column of each entry."""
        return self.indices[: self.nnz]

    def clear(self) -> None:
        """Forget the rows so far; their room serves the next ones."""
        self.n = self.nnz = 0

    def weigh(self, tf: str, by_column: Array, by_entry: Array, unit: bool) -> None:
        """Weigh the counts in place."""
        if tf == "count" and not by_column.size and not by_entry.size and not unit:
            return
        table = tf_table(tf, int(self.largest))
        kernels.weigh(
            self.indices, self.ptr[: self.n], self.ptr[1 : self.n + 1], table, by_column, by_entry, unit, self.values
        )

    def rename(self, column: Ints, width: int) -> None:
        """Move each entry to column[its column], those of −1 out, and put the rows in order again."""
        moved = column[self.columns]
        stays = moved >= 0
        before = np.concatenate([[0], np.cumsum(stays)])
        parts = (self.values[: self.nnz][stays], moved[stays], before[self.ptr[: self.n + 1]])
        X = sp.csr_matrix(parts, shape=(self.n, width)).tocsc().tocsr()
        self.nnz, self.values = X.nnz, X.data
        self.indices, self.ptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)

    def append(self, others: list[CountedRows]) -> None:
        """Take over the rows of others, in order."""
        parts = [self, *others]
        ends = [self.ptr[: self.n + 1]]
        for part in others:
            ends.append(ends[-1][-1] + part.ptr[1 : part.n + 1])
        self.ptr = np.concatenate(ends)
        self.indices = np.concatenate([part.columns for part in parts])
        self.values = np.concatenate([part.values[: part.nnz] for part in parts])
        self.n, self.nnz = len(self.ptr) - 1, len(self.indices)
        self.largest = max(part.largest for part in parts)

    def matrix(self, width: int) -> sp.csr_matrix:
        """Return the matrix."""
        indices, values, ptr = self.indices, self.values, self.ptr
        for array in (indices, values):
            array.resize(self.nnz, refcheck=False)
        if self.nnz <= np.iinfo(np.int32).max:
            ptr = ptr.astype(np.int32)
        X = sp.csr_matrix((values, indices, ptr), shape=(self.n, width))
        X.has_canonical_format = True
        return X


def tf_table(tf: str, largest: int) -> Floats:
    """Return the weight of each count from 0 to the largest, or nothing where the count is its own weight."""
    if tf == "count":
        return NO_FACTOR
    if tf == "binary":
        return np.ones(largest + 1)
    return np.concatenate([[0.0], 1.0 + np.log(np.arange(1, largest + 1, dtype=np.float64))])
