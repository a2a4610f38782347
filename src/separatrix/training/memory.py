"""Data in memory as a source, which is read as a file with the same content would be.

A data frame, an Arrow table or a dict of columns is read as a Parquet file of it is; an array or a sparse matrix as an .npz
archive; a list of texts as a table with the column "text". Rows count from 0 in messages, as in Python.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from separatrix.data.batches import Options, RowBatch, TableBatch
from separatrix.data.column_types import stripped
from separatrix.data.errors import DataError, Origin
from separatrix.data.formats.arrow import ArrowReader
from separatrix.data.formats.npz import check_finite
from separatrix.data.reading import Source
from separatrix.engine.rows import as_matrix
from separatrix.features.columns.arrow_columns import frame_of, packed
from separatrix.features.words.arrow_text import is_column, is_text, text_column

FORMAT = "memory"
TEXT, LABEL = "text", "label"
"""What the column of a list of texts is called, and that of labels without a name."""
_HASHED_ROWS = 1 << 16


class _Named(NamedTuple):
    """What a reader asks of a stream."""

    name: str


class TableReader(ArrowReader):
    """Reads a table that is in memory, as one in a Parquet file is read."""

    first_row = 0

    def __init__(self, table: pa.Table, name: str, options: Options) -> None:
        self._table, self._stream = table, _Named(name)
        super().__init__(self._stream, options)  # type: ignore[arg-type]

    def batches(self, stream: object) -> Iterator[TableBatch]:
        """Yield the rows."""
        return super().batches(self._stream)  # type: ignore[arg-type]

    def _declared(self, stream: object) -> Any:
        return self._table.schema

    def _read(self, stream: object) -> Iterator[Any]:
        return iter(self._table.to_batches(self.options.batch_rows))

    def digest(self) -> bytes:
        """Return a hash of the columns, however they are cut into chunks."""
        total = hashlib.sha256()
        with pa.ipc.new_stream(pa.PythonFile(_Hashing(total), "w"), self.schema) as writer:
            for begin in range(0, self._table.num_rows, _HASHED_ROWS):
                (batch,) = self._table.slice(begin, _HASHED_ROWS).combine_chunks().to_batches()
                writer.write_batch(self._fitted(batch, self.file, begin))
        return total.digest()


class _Hashing:
    """A file whose bytes are hashed, and not kept."""

    closed = False

    def __init__(self, total: Any) -> None:
        self.write = total.update

    def flush(self) -> None:
        """Do nothing."""


class MatrixReader:
    """Reads rows of numbers, with their labels, that are in memory."""

    kind = "rows"

    def __init__(self, X: Any, y: Any, name: str) -> None:
        self.X, self.y, self.name = X, y, name
        self.width = X.shape[1]

    def batches(self, stream: object) -> Iterator[RowBatch]:
        """Yield all of them."""
        check_finite(self.X, self.name, 0)
        yield RowBatch(self.X, self.y, Origin(self.name, 0, "row"))

    def digest(self) -> bytes:
        """Return a hash of the numbers and the labels."""
        parts = (self.X.data, self.X.indices, self.X.indptr) if sp.issparse(self.X) else (self.X,)
        total = hashlib.sha256(repr((self.X.shape, self.y.to_pylist())).encode())
        for part in parts:
            total.update(np.ascontiguousarray(part).data)
        return total.digest()


def is_in_memory(data: Any, label: Any = None) -> bool:
    """Tell whether data are rows themselves, and not the name of a source; a list of strings needs labels to be texts."""
    if isinstance(data, str | os.PathLike) or hasattr(data, "read"):
        return False
    names_files = isinstance(data, list | tuple) and bool(data) and all(isinstance(d, str | os.PathLike) for d in data)
    return not (names_files and (label is None or isinstance(label, str | int)))


class InMemory:
    """Data in memory with their labels; with `as_table`, an array of numbers is a table too.

    Attributes
    ----------
    label : the label column of a table, by name or number; None: the last one, or that of an array, which has no columns
    labels : the labels that came apart from the data, with the blanks around them, which a source leaves out; or None
    is_texts : whether they are one column of texts
    """

    def __init__(self, data: Any, label: Any = None, as_table: bool = False) -> None:
        matrix, self.is_texts = not as_table and is_matrix(data), is_column(data)
        self.name = "the array" if matrix else "the texts" if self.is_texts else "the table"
        self._rows = as_matrix(data) if matrix else table_of(data)
        self.n = int(self._rows.shape[0])
        is_name = label is None or isinstance(label, str | int)
        if is_name and (matrix or self.is_texts):
            raise DataError(f"{self.name} cannot have a label column: pass the label of each row as label=")
        self.label: str | None = str(label) if is_name and label is not None else None
        self.labels = None if is_name else _labels(label, self.n, self.name)
        if not is_name and not matrix:
            self.label = _free_name(label, self._rows.schema.names)
            self._rows = self._rows.append_column(self.label, self.labels)

    def source(self, label: str | None, **reading: Any) -> Source:
        """Return them as a source with this label column; `reading` has further fields of `Options`."""
        options = Options(label=label, **reading)
        reader: Any = (
            TableReader(self._rows, self.name, options)
            if isinstance(self._rows, pa.Table)
            else MatrixReader(self._rows, _without_blanks(self.labels), self.name)
        )
        return Source(self.name, [], FORMAT, reader, options)


def is_matrix(data: Any) -> bool:
    """Tell whether data are numbers in an array or in a sparse matrix: they need no features."""
    if sp.issparse(data):
        return True
    if isinstance(data, Mapping | pa.Table | pa.RecordBatch) or hasattr(data, "columns") or is_column(data):
        return False
    array = np.asarray(data)
    return array.ndim == 2 and array.dtype.kind in "fiub"


def table_of(data: Any) -> pa.Table:
    """Return data frames, tables, dicts of columns, texts, or an array of anything, as an Arrow table."""
    if is_column(data):
        return pa.table({TEXT: _as_strings(text_column(data))})
    if isinstance(data, str | bytes) or not hasattr(data, "__len__"):
        kinds = "a data frame, a table, a dict of columns, a list of texts, an array or a sparse matrix"
        raise TypeError(f"the data are a {type(data).__name__}, and not {kinds}")
    table = frame_of(data).table
    return pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table


def _as_strings(column: Any) -> Any:
    """Return texts, perhaps bytes, as strings; malformed UTF-8 is read as U+FFFD."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (is_text(kind) or pa.types.is_null(kind)):
        raise DataError(f"one column of {kind} is not text; to train on it as a table, give it a name: {{'x': column}}")
    if pa.types.is_dictionary(column.type) or not pa.types.is_large_binary(column.type):
        return column
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([None if text is None else text.decode("utf-8", "replace") for text in column.to_pylist()])


def _labels(label: Any, n: int, name: str) -> Any:
    """Return labels as an Arrow array; raise where there are more or fewer than rows."""
    if hasattr(label, "to_arrow"):  # a series of polars
        label = label.to_arrow()
    if isinstance(label, pa.ChunkedArray):
        label = label.combine_chunks()
    if not isinstance(label, pa.Array):
        values = label if hasattr(label, "dtype") else np.asarray(label, dtype=object)
        if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
            values = np.asarray(values).reshape(-1)
        if getattr(values, "ndim", 1) != 1:
            raise DataError(f"the labels of {name} have the shape {values.shape}: there must be one for each row")
        label = packed(values, LABEL)
    if pa.types.is_dictionary(label.type):
        label = label.dictionary_decode()
    if len(label) != n:
        raise DataError(f"{name} has {n:,} rows, but there are {len(label):,} labels")
    if pa.types.is_large_string(label.type) or pa.types.is_string_view(label.type):
        label = label.cast(pa.string())
    return label


def _without_blanks(labels: Any) -> Any:
    return stripped(labels, ()) if pa.types.is_string(labels.type) else labels


def _free_name(label: Any, names: list[str]) -> str:
    """Return what labels are called that come apart from a table: as their series is, unless a column is called so."""
    wanted = getattr(label, "name", None)
    wanted = wanted if isinstance(wanted, str) and wanted else LABEL
    return next(name for name in (wanted, LABEL, *(f"{LABEL} {k}" for k in range(2, len(names) + 3))) if name not in names)
