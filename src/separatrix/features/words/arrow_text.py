"""Columns of text as the kernels read them: the bytes where they lie in Arrow's buffers, and where each begins and ends.

Arrow columns (strings, large strings, views, binary, dictionaries, chunks) and the Series that hold them are not copied,
except views and dictionaries, which Arrow unpacks. The strings of lists and NumPy arrays are copied once. None and NaN are
empty texts. Bytes need not be UTF-8: what is malformed is read as U+FFFD, later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from separatrix.data.arrow_arrays import numpy_array
from separatrix.engine.rows import Array, Ints, frozen

LONGEST = 1 << 29


class Texts(NamedTuple):
    """Texts i = data[begin[i] : end[i]], in UTF-8."""

    data: NDArray[np.uint8]
    begin: Ints
    end: Ints

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.begin)

    @property
    def size(self) -> int:
        """How many bytes they have."""
        return int((self.end - self.begin).sum())

    def part(self, begin: int, end: int) -> Texts:
        """Return some of them."""
        return Texts(self.data, self.begin[begin:end], self.end[begin:end])


def divided(chunks: list[Texts], shares: int) -> list[list[Texts]]:
    """Return the texts in order, in so many shares of about as many bytes."""
    each = max(1, -(-sum(texts.size for texts in chunks) // shares))
    parts: list[list[Texts]] = [[] for _ in range(shares)]
    before = 0
    for texts in chunks:
        read = before + np.cumsum(texts.end - texts.begin)
        cuts = [0, *np.searchsorted(read, each * np.arange(1, shares), side="right").tolist(), texts.n]
        for part, begin, end in zip(parts, cuts[:-1], cuts[1:], strict=True):
            if begin < end:
                part.append(texts.part(begin, end))
        before = int(read[-1])
    return [part for part in parts if part]


def is_text(kind: Any) -> bool:
    """Tell whether an Arrow type is one of strings or of bytes."""
    return any(is_kind(kind) for is_kind in _TEXT)


def texts_of(X: Any) -> list[Texts]:
    """Return the texts of a column, one entry for each chunk of it."""
    column = text_column(X)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [_read(chunk) for chunk in chunks if len(chunk)]


def is_column(X: Any) -> bool:
    """Tell whether X is a list of texts, or a one-dimensional array or series, rather than a table."""
    if isinstance(X, list | tuple):
        return isinstance(next((value for value in X if value is not None), None), str | bytes)
    return isinstance(X, pa.Array | pa.ChunkedArray) or len(getattr(X, "shape", ())) == 1


def text_column(X: Any) -> Any:
    """Return X as an Arrow array or chunked array."""
    if isinstance(X, str | bytes):
        raise ValueError(f"X is one {type(X).__name__}; text features need a column of texts: put it in a list")
    if isinstance(X, pa.Array | pa.ChunkedArray):
        return X
    if hasattr(X, "columns") or getattr(X, "ndim", 1) != 1:
        return text_column(_only_column(X))
    if hasattr(X, "to_arrow"):  # a polars Series
        return X.to_arrow()
    kind = getattr(X, "dtype", None)
    if kind is None:
        return _packed(X if isinstance(X, list) else _listed(X))
    if not isinstance(X, np.ndarray):  # a pandas Series, whatever holds it
        return _packed(X.to_numpy()) if kind == np.dtype(object) else pa.array(X, from_pandas=True)
    if kind.kind not in "USTO":
        raise ValueError(f"X holds {kind}, not text: text features need strings")
    return _packed(X if kind.kind == "O" else X.tolist())


def _listed(X: Any) -> list[Any]:
    if isinstance(X, Mapping) or not isinstance(X, Iterable):
        raise ValueError(f"X is a {type(X).__name__}; text features need a column of texts")
    return list(X)


def _only_column(X: Any) -> Any:
    """Return the one column of a table or of a two-dimensional array."""
    if len(X.shape) != 2 or X.shape[1] != 1:
        raise ValueError(f"X has shape {tuple(X.shape)}; text features need one column of texts")
    if isinstance(X, pa.Table | pa.RecordBatch):
        return X.column(0)
    if hasattr(X, "iloc"):
        return X.iloc[:, 0]
    return X.to_series(0) if hasattr(X, "to_series") else X[:, 0]


def _packed(values: Any) -> pa.Array:
    """Return Python strings and bytes as one Arrow array of bytes."""
    try:
        return pa.array(values, type=pa.large_binary(), from_pandas=True)
    except UnicodeEncodeError:  # half of a surrogate pair: the bytes of one are malformed UTF-8, and read as such
        encoded = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in values]
        return _packed(encoded)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        for row, value in enumerate(values):
            if not isinstance(value, str | bytes) and not pa.array([value], from_pandas=True).null_count:
                what = f"X[{row}] is {value!r}, a {type(value).__name__}"
                raise ValueError(f"{what}: text features need strings, bytes or None") from None
        raise ValueError(f"X cannot be read as text: {error}") from error


def _read(column: Any) -> Texts:
    """Return an Arrow array's own buffers."""
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_null(column.type):
        nothing = np.zeros(len(column), np.int64)
        return Texts(frozen(np.empty(0, np.uint8)), nothing, nothing)
    if not is_text(column.type):
        raise ValueError(f"X holds {column.type}, not text: text features need strings")
    if not any(is_plain(column.type) for is_plain in _PLAIN):
        column = column.cast(pa.large_string() if kinds.is_string_view(column.type) else pa.large_binary())
    wide = kinds.is_large_string(column.type) or kinds.is_large_binary(column.type)
    _, offsets, data = column.buffers()
    width = np.dtype(np.int64 if wide else np.int32)
    bounds = np.frombuffer(offsets, width, len(column) + 1, column.offset * width.itemsize).astype(np.int64)
    begin, end = bounds[:-1], bounds[1:].copy()
    if column.null_count:
        nulls = numpy_array(column.is_null())
        end[nulls] = begin[nulls]
    characters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    _check(begin, end, len(characters))
    return Texts(frozen(characters), begin, end)


def _check(begin: Array, end: Array, size: int) -> None:
    lengths = end - begin
    if begin.min() < 0 or lengths.min() < 0 or end.max() > size:
        raise ValueError("the Arrow array X is broken: its offsets point outside its data")
    if lengths.max() > LONGEST:
        raise ValueError(f"text {int(lengths.argmax())} of X has {lengths.max():,} bytes; {LONGEST:,} are the most")


_PLAIN = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)
_TEXT = (*_PLAIN, kinds.is_string_view, kinds.is_binary_view, kinds.is_fixed_size_binary)
