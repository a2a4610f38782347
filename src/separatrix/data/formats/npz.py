"""NumPy archives (`.npz`): X and its labels y, or the parts of a SciPy CSR matrix and y, read row by row."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import Options, RowBatch
from separatrix.data.errors import DataError, Origin
from separatrix.data.streams import Stream

_PARTS = ("indptr", "indices", "data", "shape", "format")


class _Member:
    """An array of an archive, from front to back."""

    def __init__(self, archive: zipfile.ZipFile, key: str, name: str) -> None:
        self.file = archive.open(f"{key}.npy")
        version = np.lib.format.read_magic(self.file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, self.by_column, self.dtype = read(self.file)
        self.place = f"{name}, array {key}"
        if self.dtype.hasobject:
            raise DataError(f"{self.place}: Python objects are not read; save numbers or strings")
        self.inner = int(np.prod(self.shape[1:], dtype=np.int64))

    def take(self, n: int) -> Any:
        """Return the next n rows."""
        size = n * self.inner * self.dtype.itemsize
        raw = self.file.read(size)
        if len(raw) < size:
            raise DataError(f"{self.place}: the data end too early; save the file again")
        return np.frombuffer(raw, self.dtype).reshape(n, *self.shape[1:])

    def whole(self) -> Any:
        """Return all of it."""
        count = int(np.prod(self.shape, dtype=np.int64))
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
        except (zipfile.BadZipFile, EOFError, KeyError, OSError, NotImplementedError) as problem:
            raise DataError(
                f"{stream.name}: this cannot be read as .npz ({problem}); save it again with numpy.savez"
            ) from None

    def _rows(self, archive: zipfile.ZipFile, name: str) -> Iterator[RowBatch]:
        keys = {file.removesuffix(".npy") for file in archive.namelist() if file.endswith(".npy")}
        y = _Member(archive, "y", name).whole() if "y" in keys else None
        y = y if y is None or y.dtype.kind not in "US" else np.char.strip(y)
        if "X" in keys:
            matrices = self._dense(_Member(archive, "X", name))
            n = _Member(archive, "X", name).shape[0]
        elif keys.issuperset(_PARTS):
            matrices, n = self._sparse(archive, name)
        else:
            listed = ", ".join(sorted(keys)) or "no array"
            raise DataError(f"{name}: there is {listed}; X and y are needed, or SciPy's {', '.join(_PARTS)} and y")
        if y is not None and y.shape != (n,):
            raise DataError(f"{name}: X has {n} rows, but y has the shape {y.shape}")
        first = 1
        for X in matrices:
            rows = X.shape[0]
            self._check(X, name, first)
            yield RowBatch(X, None if y is None else y[first - 1 : first - 1 + rows], Origin(name, first, "row"))
            first += rows

    def _dense(self, member: _Member) -> Iterator[Any]:
        if len(member.shape) != 2 or member.dtype.kind not in "fiub":
            raise DataError(f"{member.place}: {member.dtype} of shape {member.shape}, not a matrix of numbers")
        n, row_bytes = member.shape[0], member.inner * member.dtype.itemsize
        rows = max(1, min(self.options.batch_rows, self.options.batch_bytes // max(1, row_bytes)))
        matrix = member.whole() if member.by_column else None
        for begin in range(0, n, rows):
            yield matrix[begin : begin + rows] if matrix is not None else member.take(min(rows, n - begin))

    def _sparse(self, archive: zipfile.ZipFile, name: str) -> tuple[Iterator[Any], int]:
        members = {key: _Member(archive, key, name) for key in _PARTS}
        form, (n, d) = members["format"].whole().item(), members["shape"].whole().tolist()
        if (form.decode() if isinstance(form, bytes) else form) != "csr":
            raise DataError(f"{name}: a {form!r} matrix is not read row by row; save X.tocsr()")
        indptr = members["indptr"].whole().astype(np.int64)
        data, indices = members["data"], members["indices"]
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

    def _check(self, X: Any, name: str, first: int) -> None:
        if self.width is None:
            self.width = X.shape[1]
        if X.shape[1] != self.width:
            raise DataError(f"{name}: X has {X.shape[1]} columns where {self.width} are expected")
        check_finite(X, name, first)


def check_finite(X: Any, name: str, first: int) -> None:
    """Raise for the first value that is not a finite number; `first` is the number of the first row."""
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        rows, places = X.nonzero() if sp.issparse(X) else np.nonzero(~np.isfinite(X))
        bad = ~np.isfinite(np.asarray(X[rows, places]).ravel()) if sp.issparse(X) else np.ones(len(rows), np.bool_)
        row, column = rows[bad][0], places[bad][0]
        raise DataError(f"{name}, row {first + row}, column {column} of X: {X[row, column]} is not a finite number")
