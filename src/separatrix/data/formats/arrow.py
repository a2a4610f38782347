"""Parquet and Arrow (Feather, IPC file or stream): columns with declared types, in batches of bounded size.

What a file declares of its buffers is not trusted: each batch is validated in full before anything else looks at it, since
a wrong offset would let kernels read memory that is not the file's.

Dictionaries are spelled out, decimals become float64, NaN is a missing value. Lists of strings or of whole
numbers are read; other lists, structs and raw bytes are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data import column_types as columns
from separatrix.data.batches import Options, TableBatch
from separatrix.data.errors import DataError, Origin, named
from separatrix.data.kept_columns import columns_to_keep
from separatrix.data.streams import Stream


class ArrowReader:
    """Reads Arrow files and streams; the first file declares the columns, the others must have the same."""

    kind = "columns"
    form = "arrow"
    first_row = 1

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        self.file = stream.name
        with self._clear_errors(stream):
            declared = self._declared(stream)
            self.schema = pa.schema([(field.name, _plain(field, stream.name)) for field in declared])
        if twice := [name for name, n in Counter(self.schema.names).items() if n > 1]:
            raise DataError(f"{stream.name}: more than one column is called {named(twice[0])}; rename or drop one of them")
        for name, kind in options.types.items():
            place = self.schema.get_field_index(name)
            if place < 0 or kind not in columns.TYPES:
                raise DataError(
                    f"{stream.name}: types[{name!r}] = {kind!r} is no column with one of {', '.join(columns.TYPES)}"
                )
            self.schema = self.schema.set(place, pa.field(name, columns.TYPES[kind]))
        self.label = columns.label_name(self.schema.names, options.label, None, stream.name, options.label_needed)
        self.kept = columns_to_keep(self.schema.names, options.keep, stream.name)
        if self.label is not None and pa.types.is_nested(self.schema.field(self.label).type):
            kind = self.schema.field(self.label).type
            raise DataError(
                f"{stream.name}: column {named(self.label)} holds {kind}, not labels; label= names another column"
            )

    def batches(self, stream: Stream) -> Iterator[TableBatch]:
        """Yield the rows of a stream."""
        first = self.first_row
        with self._clear_errors(stream):
            for whole in self._read(stream):
                _validate(whole, stream.name, first)
                for batch in self._cut(whole):
                    table = self._fitted(batch, stream.name, first)
                    kept = batch.select(self.kept) if self.kept else None
                    yield TableBatch(table, Origin(stream.name, first, "row"), kept)
                    first += batch.num_rows

    def _cut(self, batch: Any) -> Iterator[Any]:
        """Yield a batch in pieces of the size that batches have."""
        rows = _rows(batch.nbytes, batch.num_rows, self.options)
        yield from (batch.slice(begin, rows) for begin in range(0, batch.num_rows, rows))

    def _fitted(self, batch: Any, name: str, first: int) -> Any:
        if batch.schema.names != self.schema.names:
            theirs, ours = (", ".join(map(named, schema.names[:6])) for schema in (batch.schema, self.schema))
            raise DataError(f"{name}: the columns {theirs} are not those of {self.file}: {ours}")
        fitted_columns = []
        for column, field in zip(batch.columns, self.schema, strict=True):
            try:
                fitted = column if column.type == field.type else pc.cast(column, field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
                raise DataError(
                    f"{name}, column {named(field.name)}: {column.type} cannot be read as {field.type}: {problem}"
                ) from None
            if pa.types.is_floating(field.type):
                fitted, infinite = columns.without_nan(fitted)
                if len(infinite):
                    raise DataError(
                        f"{name}, row {first + infinite[0]}, column {named(field.name)}: infinity is not a finite number"
                    )
            if field.name == self.label and field.type == pa.string():
                fitted = columns.stripped(fitted, ())
            fitted_columns.append(fitted)
        return pa.RecordBatch.from_arrays(fitted_columns, schema=self.schema)

    @contextmanager
    def _clear_errors(self, stream: Stream) -> Iterator[None]:
        """Say which file cannot be read where pyarrow raises, which may be anything where a file is damaged."""
        try:
            yield
        except DataError:
            raise
        except Exception as problem:
            what = " ".join(str(problem).split())[:120]
            raise DataError(f"{stream.name}: this cannot be read as {self.form} ({what}); is the file complete?") from None

    def _declared(self, stream: Stream) -> Any:
        """Return the file's schema."""
        return self._opened(stream).schema

    def _opened(self, stream: Stream) -> Any:
        file = stream.seekable()
        if file.read(6) == b"ARROW1":
            return pa.ipc.open_file(file)
        file.seek(0)
        return pa.ipc.open_stream(file)

    def _read(self, stream: Stream) -> Iterator[Any]:
        """Yield the record batches of a stream."""
        opened = self._opened(stream)
        count = getattr(opened, "num_record_batches", None)
        yield from opened if count is None else (opened.get_batch(i) for i in range(count))


class ParquetReader(ArrowReader):
    """Reads Parquet."""

    form = "parquet"

    def _declared(self, stream: Stream) -> Any:
        from pyarrow.parquet import ParquetFile  # 18 ms that data without Parquet need not spend

        return ParquetFile(stream.seekable()).schema_arrow

    def _read(self, stream: Stream) -> Iterator[Any]:
        from pyarrow.parquet import ParquetFile

        # pre_buffer would keep every row group that was read
        file = ParquetFile(stream.seekable(), pre_buffer=False, page_checksum_verification=True)
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        yield from file.iter_batches(_rows(size, file.metadata.num_rows, self.options), use_threads=self.options.threads > 1)


def _validate(batch: Any, name: str, first: int) -> None:
    """Raise where the content of a column does not fit its buffers, or is not what its type says."""
    for column, title in zip(batch.columns, batch.schema.names, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as problem:
            rows = f"rows {first:,} to {first + batch.num_rows - 1:,}"
            what = " ".join(str(problem).split())[:120]
            raise DataError(
                f"{name}, {rows}, column {named(title)}: the content is damaged ({what}); write the file again"
            ) from None
    batch.validate()


def _rows(size: int, rows: int, options: Options) -> int:
    """Return how many rows a batch may have, when `rows` take `size` bytes."""
    return max(1, min(options.batch_rows, options.batch_bytes * max(1, rows) // max(1, size)))


def _plain(field: Any, name: str) -> Any:
    """Return the type in which a column is given; a structure is given as it is, so that it can be dropped."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return pa.float64()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        items = _plain(kind.value_field.with_name(field.name), name)
        if pa.types.is_string(items) or pa.types.is_integer(items):
            return pa.list_(items)
    if not (pa.types.is_nested(kind) or pa.types.is_primitive(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{name}, column {named(field.name)}: {kind} is not read; only numbers, text, booleans and dates are"
        )
    return kind
