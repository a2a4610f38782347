"""Rows that arrive in batches, end to end in arrays that grow: one matrix, without a second copy of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.rows import Array

GROWTH = 8
"""A full array is copied to one so many times as large, of which what is not yet written takes no memory."""


class RowBuffer:
    """Rows, dense or CSR, with the number of each label.

    `most` is how many bytes of rows may come: an array that is outgrown is copied to one of that size, so only once. Rows of
    the other form are brought to that of the first ones, which is `sparse` or not (None: there are none yet).
    """

    def __init__(self, most: int = 0, sparse: bool | None = None) -> None:
        self.most, self.sparse = most, sparse
        self.n = self.d = self.entries = 0
        self._arrays: dict[str, Array] = {}

    @property
    def bytes(self) -> int:
        """How much memory the rows take, their labels apart."""
        used = {"values": self.entries, "indices": self.entries, "ends": self.n}
        return sum(n * self._arrays[name].itemsize for name, n in used.items() if name in self._arrays)

    def add(self, X: Any, codes: Array) -> None:
        """Append rows with the numbers of their labels."""
        if self.sparse is None:
            self.sparse = sp.issparse(X)
        elif self.sparse != sp.issparse(X):
            X = sp.csr_matrix(X) if self.sparse else X.toarray()
        n = X.shape[0]
        self._append("codes", codes.astype(np.int32), self.n)
        if self.sparse:
            self._append("values", X.data, self.entries)
            self._append("indices", X.indices, self.entries)
            self._append("ends", X.indptr[1:].astype(np.int64) + self.entries, self.n)
            self.entries += X.nnz
        else:
            self._append("values", X.reshape(-1), self.entries)
            self.entries += X.size
        self.n += n
        self.d = max(self.d, X.shape[1])

    def _append(self, name: str, array: Array, at: int) -> None:
        """Write an array into the named one from `at` on, which grows as needed; memory is used up to what is written."""
        whole = self._arrays.setdefault(name, np.empty(max(GROWTH * len(array), 1024), array.dtype))
        dtype, end = np.result_type(whole, array), at + len(array)
        if dtype != whole.dtype or end > len(whole):
            larger = self._room(end, dtype) if end > len(whole) else np.empty(len(whole), dtype)
            larger[:at] = whole[:at]  # `resize` would write zeros behind them, and so take the memory at once
            whole = self._arrays[name] = larger
        whole[at:end] = array

    def _room(self, end: int, dtype: Any) -> Array:
        """Return an array for `end` values and more; where there is no address space for all that may come, for fewer."""
        try:
            return np.empty(max(GROWTH * end, self.most // np.dtype(dtype).itemsize), dtype)
        except MemoryError:
            return np.empty(2 * end, dtype)

    def _trim(self) -> None:
        """Give back what is not written: SciPy copies arrays that are less than half of what they are a part of.

        An array that somebody looks at has been trimmed, so none of those is resized here.
        """
        used = {"values": self.entries, "indices": self.entries, "ends": self.n, "codes": self.n}
        for name, array in self._arrays.items():
            if len(array) > used[name]:
                array.resize(used[name], refcheck=False)

    def rows(self, begin: int, end: int, d: int) -> tuple[Any, Array]:
        """Return the rows begin…end as a matrix of d features that reads the buffer in place, and the labels' numbers."""
        self._trim()
        codes = self._arrays["codes"][begin:end]
        if not self.sparse:
            return self._arrays["values"][begin * d : end * d].reshape(end - begin, d), codes
        ends = self._arrays["ends"]
        first, last = (int(ends[row - 1]) if row else 0 for row in (begin, end))
        index = np.int32 if d < 1 << 31 and last - first < 1 << 31 else np.int64
        indptr = np.zeros(end - begin + 1, index)
        indptr[1:] = ends[begin:end] - first
        indices = self._arrays["indices"][first:last].astype(index, copy=False)
        return sp.csr_matrix((self._arrays["values"][first:last], indices, indptr), shape=(end - begin, d)), codes
