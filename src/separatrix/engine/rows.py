"""Examples as the kernels read them: X in place where they can, block by block where they cannot.

C-ordered float32 and float64 arrays (memory maps and read-only ones too) and CSR matrices are read where they lie. Any other
dense array (Fortran order, integers, booleans, strides) is brought to that form a block of rows at a time, so that no
second copy of the data ever exists. Of a CSR matrix of integers the values are converted once; the indices are not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.engine.labels import check_unmasked
from separatrix.engine.parcel import Parcel, StateError
from separatrix.kernels.learning import rows as kernels
from separatrix.kernels.threads import in_order, threads_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Array = NDArray[Any]

BLOCK_BYTES = 1 << 26
BLOCK_ROWS = 1 << 18
"""A kernel runs without interruption for one block: a few milliseconds, after which Ctrl-C is heard."""


def frozen(array: Array) -> Array:
    """Return a read-only plain view: one type for the kernels, whatever came in."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def writable(array: Array) -> Array:
    """Return a plain array that can be written: a copy where the array itself is read-only."""
    plain: Array = np.require(array, requirements=["W", "E"])
    return plain


NO_ORDER: Ints = frozen(np.empty(0, np.int64))
NO_WEIGHT: Floats = frozen(np.empty(0))
_NO_INDEX = frozen(np.empty(0, np.int32))


class Rows:
    """The rows of X, dense or CSR."""

    def __init__(self, X: Any) -> None:
        self.n: int = X.shape[0]
        self.d: int = X.shape[1]
        self.sparse = sp.issparse(X)
        self.source = X if X.dtype.isnative or not self.sparse else X.astype(X.dtype.newbyteorder("="))
        self.parts: tuple[Array, Array, Array] | None = None
        if self.sparse:
            self._read_csr()
        elif X.dtype in (np.float32, np.float64) and X.flags.c_contiguous and X.flags.aligned and X.dtype.isnative:
            self.parts = (frozen(X.reshape(-1)), _NO_INDEX, _NO_INDEX)

    def _read_csr(self) -> None:
        data, indices, indptr = self.source.data, self.source.indices, self.source.indptr
        if len(indptr) != self.n + 1 or not 0 <= indptr[-1] <= min(len(data), len(indices)):
            raise ValueError(f"the CSR matrix X is broken: its indptr, indices and data do not make {self.n} rows")
        if data.dtype not in (np.float32, np.float64):
            data = data.astype(np.float64)
        if indices.dtype not in (np.int32, np.int64):
            indices = indices.astype(np.int64)
        self.parts = (frozen(data), frozen(indices), frozen(indptr.astype(indices.dtype, copy=False)))

    def __reduce__(self) -> tuple[type[Rows], tuple[Any]]:
        return Rows, (self.source,)

    def pack(self, parcel: Parcel, at: str) -> str:
        """Put the rows into a parcel; return which of the two forms they have, "dense" or "csr"."""
        if not self.sparse:
            parcel.put(f"{at}.dense", self.source)
            return "dense"
        assert self.parts is not None
        for name, array in zip(("data", "indices", "indptr"), self.parts, strict=True):
            parcel.put(f"{at}.{name}", array)
        return "csr"

    @classmethod
    def unpack(cls, form: str, parcel: Parcel, at: str, d: int) -> Rows:
        """Return rows of d features."""
        if form == "dense":
            return Rows(parcel.take(f"{at}.dense", "f4 f8", (-1, d)))
        data = parcel.take(f"{at}.data", "f4 f8", (-1,))
        indices = parcel.take(f"{at}.indices", "i4 i8", data.shape, low=0, high=d - 1)
        indptr = parcel.take(f"{at}.indptr", "i4 i8", (-1,), low=0, high=len(data))
        if not indptr.size or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
            raise StateError(f"{at}.indptr does not begin at 0 and rise")
        rows = Rows(sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, d)))
        rows.survey()
        return rows

    @property
    def row_bytes(self) -> int:
        """The bytes that reading one row costs, on average."""
        if self.sparse:
            return max(1, int(self.source.data.nbytes + self.source.indices.nbytes) // max(1, self.n))
        return max(1, int(self.source.dtype.itemsize * self.d))

    @property
    def block(self) -> int:
        """How many rows one call of a kernel reads; fewer where they have to be copied first."""
        size = BLOCK_BYTES if self.parts is not None else BLOCK_BYTES // 32
        return max(1, min(BLOCK_ROWS, size // self.row_bytes))

    def take(self, which: slice | Ints) -> Rows:
        """Return some rows as a copy that the kernels can read."""
        if self.sparse:
            return Rows(self.source[which])
        dtype = self.source.dtype if self.source.dtype == np.float32 else np.float64
        return Rows(np.require(self.source[which], dtype, ["C", "A"]))

    def squared_norms(self) -> Floats:
        """Return ‖x‖² of each row, in float64 whatever the type of X."""
        X = self.source.astype(np.float64, copy=False)
        return np.asarray(X.multiply(X).sum(axis=1)).reshape(-1) if self.sparse else np.einsum("ij,ij->i", X, X)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield where the blocks of rows begin and end, in order."""
        for begin in range(0, self.n, self.block):
            yield begin, min(begin + self.block, self.n)

    def readable(self, begin: int, end: int) -> tuple[Rows, int]:
        """Return rows that the kernels can read, and where rows begin…end begin in them: a copy of those, or these."""
        return (self, begin) if self.parts is not None else (self.take(slice(begin, end)), 0)

    def threads(self, work: int = 1) -> int:
        """Return how many threads to read all rows with, for `work` sums a row."""
        return threads_of(None, self.n * self.row_bytes * work)

    def survey(self, weight: Floats = NO_WEIGHT, names: Sequence[str] | None = None) -> float:
        """Return max ‖x‖² over the rows of nonzero weight; raise for what no learner can read.

        A CSR matrix with repeated indices is replaced by its sum first; indices out of order are read as they are.
        """
        largest, seen = 0.0, np.empty(0, np.int64)
        for begin, end in self.blocks():
            rows, at = self.readable(begin, end)
            block_weight = weight if at == begin or not weight.size else frozen(weight[begin:end])
            problem, row, entry, norm = kernels.survey(rows.parts, self.d, at, at + end - begin, block_weight, seen)
            if problem == kernels.UNSORTED:
                seen = np.zeros(self.d, np.int64)
                problem, row, entry, norm = kernels.survey(rows.parts, self.d, at, at + end - begin, block_weight, seen)
            if problem == kernels.REPEATED:
                self.source = self.source.copy()
                self.source.has_canonical_format = False
                self.source.sum_duplicates()
                self._read_csr()
                return self.survey(weight, names)
            if problem != kernels.FINE:
                raise ValueError(self._complaint(problem, begin + int(row) - at, int(entry), names))
            largest = max(largest, norm)
        return largest

    def _complaint(self, problem: int, row: int, entry: int, names: Sequence[str] | None) -> str:
        if problem == kernels.BAD_INDEX:
            return f"the CSR matrix X is broken at row {row}: an index lies outside its {self.d} columns or its data"
        if problem == kernels.TOO_LARGE:
            return f"row {row} of X is too large to score: its squared norm is above the largest float64"
        value = float(self.source[row, entry])
        what = "NaN" if np.isnan(value) else "infinity (inf)"
        column = f"column {entry}" if names is None else f"column {entry} ({names[entry]!r})"
        return f"X contains {what} at row {row}, {column}; fill it in or drop the row first"

    def scores(self, coef: Array, intercept: Array, which: Ints = NO_ORDER) -> Floats:
        """Return ⟨w_k, x⟩ + b_k as an array of rows × outputs, for all rows or for `which`."""
        K, d = coef.shape
        if d != self.d:
            raise ValueError(f"the weights are for {d} features, but X has {self.d}: fit again")
        W = frozen(np.ascontiguousarray(coef.T if self.sparse else coef, dtype=np.float64).reshape(-1))
        b = frozen(np.ascontiguousarray(intercept, dtype=np.float64))
        n = len(which) or self.n
        out = np.empty(n * K)
        threads = threads_of(None, n * self.row_bytes * K)
        at_once = max(1, min(self.block, -(-n // (4 * threads))))

        def score(begin: int) -> None:
            end, order = min(begin + at_once, n), which
            (rows, at) = (self, begin) if which.size else self.readable(begin, begin + at_once)
            if which.size and self.parts is None:
                rows, at, order = self.take(which[begin:end]), 0, NO_ORDER
            there = out[begin * K : end * K]
            kernels.score_rows(rows.parts, self.d, order, at, at + end - begin, W, b, K, np.empty(K), there)

        deque(in_order(score, range(0, n, at_once), threads), maxlen=0)
        return out.reshape(n, K)


class BareRows(Rows):
    """CSR rows straight from their arrays: for callers that present a few rows thousands of times a second."""

    def __init__(self, d: int, data: Array, indices: Array, indptr: Array) -> None:
        self.n, self.d, self.sparse = len(indptr) - 1, d, True
        self.parts = (frozen(data), frozen(indices), frozen(indptr))

    @property
    def source(self) -> Any:
        """The rows as a matrix, made when asked for."""
        assert self.parts is not None
        return sp.csr_matrix(self.parts, shape=(self.n, self.d))

    @source.setter
    def source(self, X: Any) -> None:
        self.parts = (frozen(X.data), frozen(X.indices.astype(np.int64)), frozen(X.indptr.astype(np.int64)))

    def __reduce__(self) -> Any:
        return Rows, (self.source,)


def as_matrix(X: Any) -> Any:
    """Return X, whatever holds it, as a two-dimensional array of numbers or a CSR matrix; raise for anything else."""
    if sp.issparse(X):
        matrix = X if X.format == "csr" else X.tocsr()
    else:
        check_unmasked(X, "X")
        matrix = np.asarray(X)
    if matrix.ndim != 2:
        raise ValueError(f"Expected 2D array, got {matrix.ndim}D array instead: X needs a row for each example")
    if matrix.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if matrix.dtype.kind in "mM":
        raise ValueError(f"X holds {matrix.dtype}, dates or times, which are not numbers: encode or drop them first")
    return matrix if matrix.dtype.kind in "biuf" else matrix.astype(np.float64)


def as_rows(X: Any) -> Rows:
    """Return the rows of whatever holds them: arrays, sparse matrices, data frames; raise for NaN and infinity."""
    rows = Rows(as_matrix(X))
    rows.survey()
    return rows


def feature_names_of(estimator: object) -> list[str] | None:
    """Return the feature names of the data that were fitted, or None where they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def name_text_column(X: Any) -> None:
    """Raise for the first column of a data frame that holds text or dates, naming it and a value of it."""
    for name in getattr(X, "columns", ()) if not hasattr(X, "num_rows") else ():
        column = np.asarray(X[name])
        if column.ndim != 1 or column.dtype.kind in "biuf":
            continue
        value = next((value for value in column if column.dtype.kind in "mM" or not _is_real(value)), None)
        if value is not None:
            shown = repr(value) if isinstance(value, str) else str(value)
            raise ValueError(
                f"column {name!r} holds {shown}, which is not a number: drop it, encode it, or put "
                "TableFeatures() before the learner, which makes features of such columns"
            )


def _is_real(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def dense_product(left: Any, right: Any) -> Array:
    """Return the product of two matrices, each dense or sparse, as a dense C-ordered array."""
    product = left @ right
    return np.ascontiguousarray(product.toarray() if sp.issparse(product) else product)


class Store:
    """Rows of d features that are added a few at a time. Chunks double in size, so n additions cost n·log n copies."""

    def __init__(self, d: int) -> None:
        self._chunks: list[Rows] = []
        self._d = d

    @property
    def n(self) -> int:
        """How many rows are stored."""
        return sum(chunk.n for chunk in self._chunks)

    def add(self, rows: Rows) -> None:
        """Store some more rows."""
        if not rows.n:
            return
        self._chunks.append(rows)
        while len(self._chunks) > 1 and self._chunks[-2].n <= self._chunks[-1].n:
            self._chunks[-2:] = [_stacked(self._chunks[-2:])]

    def resize(self, d: int) -> None:
        """Let the rows have d features: new ones are 0, and those left out were."""
        self._d = d
        self._chunks = [Rows(_resized(chunk.source, d)) for chunk in self._chunks]

    def rows(self) -> Rows:
        """Return all of them as one."""
        if len(self._chunks) > 1:
            self._chunks = [_stacked(self._chunks)]
        return self._chunks[0] if self._chunks else Rows(np.empty((0, self._d)))


def _resized(X: Any, d: int) -> Any:
    if sp.issparse(X):
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d))
    return np.ascontiguousarray(np.pad(X, ((0, 0), (0, max(0, d - X.shape[1]))))[:, :d])


def _stacked(chunks: list[Rows]) -> Rows:
    if any(chunk.sparse for chunk in chunks):
        return Rows(sp.vstack([sp.csr_matrix(chunk.source) for chunk in chunks], format="csr"))
    return Rows(np.concatenate([chunk.source for chunk in chunks]))
