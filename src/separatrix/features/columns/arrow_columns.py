"""Tables, whatever holds them, as Arrow columns of five kinds, and a stream of them recut into blocks.

    number    float64, null where missing
    text      bytes (UTF-8 as a rule), null where missing
    boolean   null where missing
    date      seconds since 1970, or since midnight, null where missing
    set       lists of strings or whole numbers as bytes, their items with a separator in between, null where missing

The blocks end at the same rows however the stream was cut into batches: what is learned block by block cannot depend on the
batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
import scipy.sparse as sp

from separatrix.data.arrow_arrays import numpy_array, text_array, value_array
from separatrix.data.errors import shown
from separatrix.engine.rows import Floats
from separatrix.features.columns.categories import joined

NUMBER, TEXT, BOOLEAN = "number", "text", "boolean"
DATE, SET = "date", "set"
ARROW = {
    NUMBER: pa.float64(),
    TEXT: pa.large_binary(),
    BOOLEAN: pa.bool_(),
    DATE: pa.timestamp("s"),
    SET: pa.large_binary(),
}
TRUE, FALSE = ("true", "yes", "t", "y", "1", "1.0"), ("false", "no", "f", "n", "0", "0.0")
BLOCK_ROWS = 1 << 14
BLOCK_BYTES = 1 << 26
_EXACT = value_array([float(1 << 53)])[0]
_NO_BYTES = value_array([0])[0]
_EMPTY = text_array([""], pa.large_string())[0]

Place = Callable[[int], str]


@dataclass(frozen=True)
class Frame:
    """Named columns of one length, and how to name a row in a message."""

    table: Any
    place: Place
    named: bool = True
    """Whether the columns came with names."""

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.table.schema.names)

    def column(self, name: str) -> Any:
        """Return a column as one Arrow array."""
        column = self.table.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
            if isinstance(column, pa.ChunkedArray):  # more bytes than one array can hold
                column = pa.concat_arrays([chunk.cast(_wide(chunk.type)) for chunk in column.chunks])
        return column


def _wide(kind: Any) -> Any:
    return {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind, kind)


def _row(i: int) -> str:
    return f"row {i}"


def frame_of(X: Any) -> Frame:
    """Return the columns of a pyarrow, pandas or polars table, of a batch of a reader, or of a two-dimensional array."""
    place: Place = _row
    if hasattr(X, "table") and hasattr(X, "origin"):
        X, place = X.table, X.origin.place
    elif hasattr(X, "X") and hasattr(X, "origin"):
        raise TypeError("these are rows of numbers, not a table: the batch's own X needs no features made of it")
    table = _table_of(X)
    names = table.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns are called {twice!r}: rename one")
    if not names:
        rows = getattr(X, "shape", (0,))[0]
        raise ValueError(f"X has no columns: 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.")
    return Frame(table, place, hasattr(X, "columns") or isinstance(X, Mapping))


def _table_of(X: Any) -> Any:
    if isinstance(X, pa.Table | pa.RecordBatch):
        return X
    if sp.issparse(X):
        raise TypeError("X is a sparse matrix, which is numbers already; table features take a table: use X as it is")
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return _from_pandas(X)
    if hasattr(X, "get_columns") and hasattr(X, "to_arrow"):  # polars
        return X.to_arrow()
    if isinstance(X, Mapping):
        for name, values in X.items():
            if isinstance(values, str | bytes) or not isinstance(values, Iterable):
                raise ValueError(
                    f"column {name!r} is one value, {shown(values)}, and no list of values; a table of one row has lists of "
                    f"one value, {{{name!r}: […], …}}"
                )
        return pa.table(dict(X))
    return _from_array(X)


def _from_pandas(X: Any) -> Any:
    names = [str(name) for name in X.columns]
    return pa.Table.from_arrays([packed(X.iloc[:, j], name) for j, name in enumerate(names)], names)


def _from_array(X: Any) -> Any:
    if isinstance(X, str):
        raise ValueError(f"X is one text, {shown(X)}: put it into a list, [text]")
    array = X if isinstance(X, np.ma.MaskedArray) else np.asarray(X)  # what is masked is missing
    if array.ndim != 2:
        raise ValueError(
            f"X has {array.ndim} dimension(s): table features need rows and columns. Reshape your data: a column by itself "
            "is X.reshape(-1, 1), a row by itself is frame.iloc[[0]] or X.reshape(1, -1)"
        )
    if array.dtype.kind == "c":
        raise ValueError("X holds complex numbers: Complex data not supported")
    return pa.table({f"x{j}": packed(array[:, j], f"x{j}") for j in range(array.shape[1])})


def packed(values: Any, name: str) -> Any:
    """Return a column of pandas or NumPy as an Arrow array."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "US":
        values = values.astype(object)
    elif str(values.dtype).startswith("Sparse"):
        values = values.to_numpy()
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise _mixed(values, name) from None


def _mixed(values: Any, name: str) -> Exception:
    """Return the error for a column that Arrow has no type for: its kinds of values, with the first of each."""
    first_of: dict[str, str] = {}
    for row, value in enumerate(values):
        if value is None or value != value:
            continue
        if not isinstance(value, str | bytes | Number):
            what = f"column {name!r} holds a {type(value).__name__} at row {row}"
            return TypeError(f"{what}: argument must be a string or a number")
        first_of.setdefault(type(value).__name__, f"{shown(value)} at row {row}")
    seen = ", ".join(f"{kind} ({where})" for kind, where in first_of.items())
    return ValueError(f"column {name!r} holds values of different kinds: {seen}; make them one kind")


def kind_of(arrow: Any, name: str) -> str | None:
    """Return what a column of this type holds: numbers, text, booleans, dates, sets, or nothing at all (None)."""
    if kinds.is_dictionary(arrow):
        return kind_of(arrow.value_type, name)
    if kinds.is_null(arrow):
        return None
    if kinds.is_boolean(arrow):
        return BOOLEAN
    if kinds.is_integer(arrow) or kinds.is_floating(arrow) or kinds.is_decimal(arrow) or kinds.is_duration(arrow):
        return NUMBER
    if any(holds(arrow) for holds in _TEXT):
        return TEXT
    if kinds.is_date(arrow) or kinds.is_time(arrow) or kinds.is_timestamp(arrow):
        return DATE
    if _is_list(arrow) and (kinds.is_integer(arrow.value_type) or kind_of(arrow.value_type, name) in (TEXT, None)):
        return SET
    raise ValueError(
        f"column {name!r} holds {arrow}, of which no features can be made: make a column of each of its parts, or leave it "
        f"out with roles={{{name!r}: 'drop'}}"
    )


def _is_list(arrow: Any) -> bool:
    return bool(kinds.is_list(arrow) or kinds.is_large_list(arrow) or kinds.is_fixed_size_list(arrow))


_TEXT = (
    kinds.is_string,
    kinds.is_large_string,
    kinds.is_string_view,
    kinds.is_binary,
    kinds.is_large_binary,
    kinds.is_binary_view,
    kinds.is_fixed_size_binary,
)


def as_kind(frame: Frame, name: str, kind: str, spelled: bool) -> Any:
    """Return a column as an Arrow array of this kind; `spelled`: numbers may be taken for text.

    Raises ValueError for the first value that is not of the kind.
    """
    column = frame.column(name)
    came = kind_of(column.type, name)
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if came is None:
        return pa.nulls(frame.n, ARROW[kind])
    if kind == NUMBER:
        return _numbers(column, came, frame, name)
    if kind == BOOLEAN:
        return _booleans(column, came, frame, name)
    if kind == DATE and came == DATE:
        return _seconds(column)
    if came == SET:
        return joined(column)
    if came == TEXT and kind == TEXT:
        return _bytes(column)
    if not spelled and len(values := column.drop_null()):
        row = int(np.flatnonzero(numpy_array(column.is_valid()))[0])
        raise ValueError(
            f"{frame.place(row)}, column {name!r}: {shown(values[0])} is {column.type}, where {_LEARNED[kind]} learned "
            f"from; give the column the type it had, or train with roles={{{name!r}: 'category'}}"
        )
    return _bytes(_spelled(column, came))


def _bytes(column: Any) -> Any:
    if kinds.is_string_view(column.type):
        column = column.cast(pa.large_string())
    return column.cast(pa.large_binary())


_LEARNED = {TEXT: "text was", DATE: "dates were", SET: "lists were"}


def _seconds(column: Any) -> Any:
    """Return dates as seconds since 1970, in the time of their zone; times of day, as seconds since midnight."""
    if kinds.is_time(column.type):
        units = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[column.type.unit]
        ticks = column.cast(pa.int32() if kinds.is_time32(column.type) else pa.int64()).cast(pa.int64())
        return pc.divide(ticks, value_array([units])[0]).cast(ARROW[DATE])
    if kinds.is_timestamp(column.type) and column.type.tz is not None:
        try:
            column = pc.local_timestamp(column)
        except pa.ArrowInvalid:  # a zone that this machine does not know
            column = column.cast(pa.timestamp(column.type.unit))
    if not kinds.is_timestamp(column.type):
        return column.cast(ARROW[DATE])
    return pc.floor_temporal(column, unit="second").cast(ARROW[DATE])


def _spelled(column: Any, came: str) -> Any:
    """Return numbers, booleans or dates as text: 3.0 and 3 alike as 3."""
    if came == NUMBER and not kinds.is_integer(column.type):
        if kinds.is_duration(column.type):
            return _spelled(_number_of_seconds(column), came)
        values = column.cast(pa.float64())
        values = pc.if_else(pc.is_nan(values), pa.NA, values)
        whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less_equal(pc.abs(values), _EXACT))
        as_whole = pc.if_else(whole, values, pa.NA).cast(pa.int64()).cast(pa.string())
        return pc.coalesce(as_whole, values.cast(pa.string()))
    return column.cast(pa.string())


def _numbers(column: Any, came: str, frame: Frame, name: str) -> Any:
    if came == DATE:
        raise ValueError(f"column {name!r} holds dates ({column.type}), not numbers: turn them into numbers first")
    if came == SET:
        raise ValueError(f"column {name!r} holds lists ({column.type}), not numbers")
    if kinds.is_duration(column.type):
        return _number_of_seconds(column)
    if came != TEXT:
        return column.cast(pa.float64(), safe=False)
    words = pc.utf8_trim_whitespace(_bytes(column).cast(pa.large_string()))
    words = pc.if_else(pc.equal(words, _EMPTY), pa.NA, words)
    try:
        return words.cast(pa.float64())
    except pa.ArrowInvalid:
        row = _first_wrong(words)
        what = f"{frame.place(row)}, column {name!r}: {shown(words[row].as_py())} is text"
        raise ValueError(
            f"{what}, where numbers were learned from; mend it, or train with roles={{{name!r}: 'category'}}"
        ) from None


def _number_of_seconds(column: Any) -> Any:
    """Return durations as numbers of seconds."""
    units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[column.type.unit]
    return pc.divide(column.cast(pa.int64()).cast(pa.float64(), safe=False), value_array([units])[0])


def _first_wrong(words: Any) -> int:
    """Return the row of the first text that is not a number, by bisection."""
    begin, end = 0, len(words)
    while end - begin > 1:
        middle = (begin + end) // 2
        try:
            words.slice(begin, middle - begin).cast(pa.float64())
            begin = middle
        except pa.ArrowInvalid:
            end = middle
    return begin


def _booleans(column: Any, came: str, frame: Frame, name: str) -> Any:
    if came == BOOLEAN:
        return column
    if came == SET:
        raise ValueError(f"column {name!r} holds lists ({column.type}), which are neither true nor false")
    if came == TEXT:
        words = pc.utf8_lower(pc.utf8_trim_whitespace(_bytes(column).cast(pa.large_string())))
    else:
        words = _spelled(column, came).cast(pa.large_string())
    true, false = (pc.is_in(words, text_array(values, pa.large_string())) for values in (TRUE, FALSE))
    wrong = pc.and_(words.is_valid(), pc.invert(pc.or_(true, false)))
    if pc.any(wrong).as_py():
        row = int(np.flatnonzero(numpy_array(wrong))[0])
        raise ValueError(
            f"{frame.place(row)}, column {name!r}: {shown(column[row].as_py())} is neither true nor false; "
            f"train with roles={{{name!r}: 'category'}} or roles={{{name!r}: 'number'}}"
        )
    return pc.if_else(words.is_valid(), true, pa.NA)


def floats(column: Any, place: Place, name: str) -> Floats:
    """Return a column of numbers as float64 with NaN where missing, or raise for infinity."""
    values: Floats = numpy_array(column)
    if not np.isfinite(values).all():
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            raise ValueError(
                f"{place(int(infinite[0]))}, column {name!r}: {values[infinite[0]]} is infinity, which cannot be used: "
                "mend it, or leave it empty"
            )
    return values


class TableBlocks:
    """Cuts a stream of tables into blocks: of BLOCK_ROWS rows, or fewer where those have BLOCK_BYTES bytes or more."""

    def __init__(self) -> None:
        self.pending: list[Any] = []
        self.rows = self.bytes = 0

    def fill(self, table: Any) -> int:
        """Take rows until the block is full or there are no more; return how many were taken."""
        part = table.slice(0, BLOCK_ROWS - self.rows)
        total = np.cumsum(_sizes(part))
        taken = min(int(part.num_rows), int(np.searchsorted(total, BLOCK_BYTES - self.bytes)) + 1)
        self.pending.append(part.slice(0, taken))
        self.rows += taken
        self.bytes += int(total[taken - 1])
        return taken

    @property
    def full(self) -> bool:
        """Whether the block is complete."""
        return self.rows == BLOCK_ROWS or self.bytes >= BLOCK_BYTES

    def whole(self) -> Any:
        """Return the rows of the block."""
        return pa.concat_tables(self.pending, promote_options="default").combine_chunks()

    def clear(self) -> None:
        """Begin a new block."""
        self.pending, self.rows, self.bytes = [], 0, 0

    def keep(self) -> None:
        """Copy the rows taken last: the caller's arrays may change."""
        if self.pending:
            columns = [pa.concat_arrays(column.chunks) for column in self.pending[-1].columns]
            self.pending[-1] = pa.Table.from_arrays(columns, self.pending[-1].column_names)


def _sizes(table: Any) -> Any:
    """Return the bytes of each row: eight for a number, those of its text."""
    size = np.full(table.num_rows, 8 * table.num_columns, np.int64)
    for column in table.columns:
        if kinds.is_large_binary(column.type):
            size += numpy_array(pc.fill_null(pc.binary_length(column), _NO_BYTES))
    return size
