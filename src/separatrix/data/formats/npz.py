"""NumPy archives (`.npz`): X and its labels y, or the parts of a SciPy CSR matrix and y, read row by row.

Sizes are checked before anything is inflated: a few megabytes of zeros can stand for gigabytes.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import MOST_FEATURES, TOO_MANY, Options, RowBatch
from separatrix.data.errors import DataError, Origin, named
from separatrix.data.streams import Stream

_PARTS = ("indptr", "indices", "data", "shape", "format")
INFLATED_BYTES = 1 << 30
INFLATION = 100
"""An array that takes more than these bytes, and this many times what it takes in the file, is not inflated."""


class _Member:
    """An array of an archive, from front to back."""

    def __init__(self, archive: zipfile.ZipFile, key: str, name: str) -> None:
        self.place = f"{name}, array {key}"
        stored = archive.getinfo(f"{key}.npy")
        if stored.flag_bits & 1:
            raise DataError(f"{self.place}: the array is encrypted; save it without a password")
        if stored.file_size > max(INFLATED_BYTES, INFLATION * stored.compress_size):
            sizes = f"{stored.compress_size:,} bytes would become {stored.file_size:,}"
            raise DataError(f"{self.place}: {sizes}; if that is meant, save it with numpy.savez, not compressed")
        self.file = archive.open(stored)
        version = np.lib.format.read_magic(self.file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, self.by_column, self.dtype = read(self.file)
        if self.dtype.hasobject:
            raise DataError(f"{self.place}: Python objects are not read; save numbers or strings")
        if min(self.shape, default=0) < 0:
            raise DataError(f"{self.place}: {self.shape} is no shape; save the file again")
        if math.prod(self.shape) * self.dtype.itemsize > stored.file_size:
            raise DataError(f"{self.place}: the data end too early; save the file again")
        self.inner = math.prod(self.shape[1:])

    def check(self, kinds: str, dimensions: int, what: str) -> None:
        """Raise where the array is not of these kinds, or has more or fewer dimensions."""
        if self.dtype.kind not in kinds or len(self.shape) != dimensions or not self.dtype.itemsize:
            raise DataError(f"{self.place}: {self.dtype} of shape {self.shape}, not {what}")

    def take(self, n: int) -> Any:
        """Return the next n rows."""
        size = n * self.inner * self.dtype.itemsize
        raw = self.file.read(size)
        if len(raw) < size:
            raise DataError(f"{self.place}: the data end too early; save the file again")
        return np.frombuffer(raw, self.dtype).reshape(n, *self.shape[1:])

    def whole(self) -> Any:
        """Return all of it."""
        count = math.prod(self.shape)
        flat = np.frombuffer(self.file.read(count * self.dtype.itemsize), self.dtype)
        if len(flat) < count:
            raise DataError(f"{self.place}: the data end too early; save the file again")
        return flat.reshape(self.shape[::-1]).T if self.by_column else flat.reshape(self.shape)


class ArchiveReader:
    """Reads .npz files; all of them have the first one's width."""

    kind = "rows"

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        self.width = options.n_features

    def batches(self, stream: Stream) -> Iterator[RowBatch]:
        """Yield the rows of an archive."""
        try:
            with zipfile.ZipFile(stream.seekable()) as archive:
                yield from self._rows(archive, stream.name)
        except DataError:
            raise
        except Exception as problem:  # zipfile, zlib and NumPy raise many kinds where a file is damaged
            what = " ".join(str(problem).split())[:120] or type(problem).__name__
            raise DataError(f"{stream.name}: this cannot be read as .npz ({what}); save it again with numpy.savez") from None

    def _rows(self, archive: zipfile.ZipFile, name: str) -> Iterator[RowBatch]:
        keys = {file.removesuffix(".npy") for file in archive.namelist() if file.endswith(".npy")}
        y = self._labels(_Member(archive, "y", name)) if "y" in keys else None
        y = y if y is None or y.dtype.kind not in "US" else np.char.strip(y)
        if "X" in keys:
            member = _Member(archive, "X", name)
            member.check("fiub", 2, "a matrix of numbers")
            self._check_width(member.shape[1], name)
            matrices, n = self._dense(member), member.shape[0]
        elif keys.issuperset(_PARTS):
            matrices, n = self._sparse(archive, name)
        else:
            listed = ", ".join(map(named, sorted(keys)[:10])) or "no array"
            raise DataError(f"{name}: there is {listed}; X and y are needed, or SciPy's {', '.join(_PARTS)} and y")
        if y is not None and y.shape != (n,):
            raise DataError(f"{name}: X has {n} rows, but y has the shape {y.shape}")
        first = 1
        for X in matrices:
            rows = X.shape[0]
            check_finite(X, name, first)
            yield RowBatch(X, None if y is None else y[first - 1 : first - 1 + rows], Origin(name, first, "row"))
            first += rows

    @staticmethod
    def _labels(member: _Member) -> Any:
        member.check("fiubUS", 1, "a label for each row")
        return member.whole()

    def _dense(self, member: _Member) -> Iterator[Any]:
        n, row_bytes = member.shape[0], member.inner * member.dtype.itemsize
        rows = max(1, min(self.options.batch_rows, self.options.batch_bytes // max(1, row_bytes)))
        matrix = member.whole() if member.by_column else None
        for begin in range(0, n, rows):
            yield matrix[begin : begin + rows] if matrix is not None else member.take(min(rows, n - begin))

    def _sparse(self, archive: zipfile.ZipFile, name: str) -> tuple[Iterator[Any], int]:
        members = {key: _Member(archive, key, name) for key in _PARTS}
        data, indices = members["data"], members["indices"]
        members["format"].check("US", 0, "the word csr")
        members["shape"].check("iu", 1, "two whole numbers")
        members["indptr"].check("iu", 1, "whole numbers")
        indices.check("iu", 1, "whole numbers")
        data.check("fiub", 1, "numbers")
        form, (n, d) = members["format"].whole().item(), members["shape"].whole().tolist()
        self._check_width(d, name)
        if (form.decode() if isinstance(form, bytes) else form) != "csr":
            raise DataError(f"{name}: a {form!r} matrix is not read row by row; save X.tocsr()")
        indptr = members["indptr"].whole().astype(np.int64)
        size = data.shape[0]
        if (
            len(indptr) != n + 1
            or indptr[0] != 0
            or indptr[-1] != size
            or indices.shape[0] != size
            or (np.diff(indptr) < 0).any()
        ):
            raise DataError(f"{name}: indptr, indices and data do not make a CSR matrix of {n} rows")
        return self._slices(indptr, data, indices, d), n

    def _slices(self, indptr: Any, data: _Member, indices: _Member, d: int) -> Iterator[Any]:
        begin, n = 0, len(indptr) - 1
        entries = max(1, self.options.batch_bytes // (data.dtype.itemsize + indices.dtype.itemsize))
        while begin < n:
            fitting = int(np.searchsorted(indptr, indptr[begin] + entries, side="right")) - 1
            end = min(max(fitting, begin + 1), begin + self.options.batch_rows, n)
            count = int(indptr[end] - indptr[begin])
            values, places = data.take(count), indices.take(count)
            if count and not (places.min() >= 0 and places.max() < d):
                raise DataError(f"{indices.place}: an index of rows {begin + 1} to {end} lies outside the {d} columns")
            yield sp.csr_matrix((values, places, indptr[begin : end + 1] - indptr[begin]), (end - begin, d))
            begin = end

    def _check_width(self, width: int, name: str) -> None:
        if self.width is None:
            if not 0 < width <= MOST_FEATURES:
                raise DataError(f"{name}: {f'{width:,} columns are {TOO_MANY}' if width > 0 else 'X has no columns'}")
            self.width = width
        if width != self.width:
            raise DataError(f"{name}: X has {width} columns where {self.width} are expected")


def check_finite(X: Any, name: str, first: int) -> None:
    """Raise for the first value that is not a finite number; `first` is the number of the first row."""
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        rows, places = X.nonzero() if sp.issparse(X) else np.nonzero(~np.isfinite(X))
        bad = ~np.isfinite(np.asarray(X[rows, places]).ravel()) if sp.issparse(X) else np.ones(len(rows), np.bool_)
        row, column = rows[bad][0], places[bad][0]
        raise DataError(f"{name}, row {first + row}, column {column} of X: {X[row, column]} is not a finite number")
