"""Tokens as columns of strings: those of lists, or of a CoNLL file, without a Python object for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa

from separatrix.data.streams import PADDING
from separatrix.engine.rows import Array, Ints, frozen
from separatrix.kernels.sequences import columns as kernels
from separatrix.sequences.encoded import ranges


class Column(NamedTuple):
    """Strings of one column: text[begin[t] : end[t]], and room behind the text that a kernel may read."""

    text: Array
    begin: Ints
    end: Ints

    def at(self, t: int) -> str:
        """Return the string of token t."""
        return bytes(self.text[self.begin[t] : self.end[t]]).decode("utf-8", "replace")


class Values(NamedTuple):
    """The distinct strings of a column, end to end, and the number of each token's string among them."""

    text: Array
    offsets: Ints
    value_of: Array

    def strings(self) -> Any:
        """Return the distinct strings as an Arrow array."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.text)]
        return pa.LargeStringArray.from_buffers(len(self.offsets) - 1, *buffers[1:])

    def decoded(self) -> list[str]:
        """Return the distinct strings; U+FFFD stands for what is not UTF-8."""
        text, offsets = bytes(self.text), self.offsets.tolist()
        return [text[begin:end].decode("utf-8", "replace") for begin, end in pairwise(offsets)]


def padded(text: bytes | Array) -> Array:
    """Return bytes with room behind them."""
    out = np.zeros(len(text) + PADDING, np.uint8)
    out[: len(text)] = np.frombuffer(text, np.uint8) if isinstance(text, bytes) else text
    return frozen(out)


def distinct(column: Column) -> Values:
    """Return the distinct strings of a column."""
    n = len(column.begin)
    slots = np.zeros(1 << max(4, (2 * n).bit_length()), np.uint64)
    value_of, first = np.empty(n, np.int32), np.empty(n, np.int64)
    count = int(kernels.number_values(column.text, frozen(column.begin), frozen(column.end), slots, value_of, first))
    begin, end = column.begin[first[:count]], column.end[first[:count]]
    offsets = np.append(0, np.cumsum(end - begin))
    return Values(padded(column.text[ranges(begin, end)]), frozen(offsets), value_of)


class Sentences(Sequence[list[tuple[str, ...]]]):
    """Sequences of tokens as columns of strings; a sequence is shown as a list of tuples, a token each.

    `read_conll` returns them, and `SequencePerceptron` takes them where it takes lists of strings or of tuples of strings.

    Attributes
    ----------
    columns : the columns, the words first
    starts : sequence i has the tokens starts[i]…starts[i+1]
    """

    def __init__(self, columns: list[Column], starts: Ints) -> None:
        self.columns, self.starts = columns, frozen(np.asarray(starts, np.int64))

    @classmethod
    def of(cls, X: Any) -> Sentences:
        """Return lists of tokens, each a string or a tuple of strings, as columns."""
        if isinstance(X, cls):
            return X
        flat = list(chain.from_iterable(X))
        starts = np.append(0, np.cumsum([len(sequence) for sequence in X], dtype=np.int64))
        if len(flat) != starts[-1]:
            raise TypeError("a sequence of X has another number of tokens than its len(): make lists of tokens")
        width = 0 if not flat or isinstance(flat[0], str) else len(flat[0])
        try:
            if width:
                if any(type(token) is not tuple or len(token) != width for token in flat):
                    raise TypeError
                columns = [_column(list(values)) for values in zip(*flat, strict=True)]
            else:
                columns = [_column(flat)]
        except (TypeError, pa.ArrowException, UnicodeEncodeError):
            raise _wrong_token(flat, starts, width) from None
        return cls(columns, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, i: int) -> list[tuple[str, ...]]: ...

    @overload
    def __getitem__(self, i: slice) -> Sentences: ...

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return self.take(np.arange(len(self))[i])
        i = range(len(self))[i]
        tokens = range(int(self.starts[i]), int(self.starts[i + 1]))
        return [tuple(column.at(t) for column in self.columns) for t in tokens]

    def take(self, which: Ints) -> Sentences:
        """Return some of the sequences; their texts are not copied."""
        tokens = ranges(self.starts[which], self.starts[which + 1])
        columns = [Column(text, begin[tokens], end[tokens]) for text, begin, end in self.columns]
        return Sentences(columns, np.append(0, np.cumsum(self.starts[which + 1] - self.starts[which])))

    def __repr__(self) -> str:
        return f"<Sentences: {len(self):,} sequences of {int(self.starts[-1]):,} tokens, {len(self.columns)} columns>"


class TagSequences(Sequence[list[str]]):
    """The tags of sequences: lists of strings, held as the numbers of distinct ones."""

    def __init__(self, names: list[str], codes: Array, starts: Ints) -> None:
        self.names, self.codes, self.starts = np.array(names, dtype=np.str_), codes, starts

    @classmethod
    def of(cls, column: Column, starts: Ints) -> TagSequences:
        """Return the strings of a column as tags, numbered in sorted order."""
        values = distinct(column)
        # Blanks of all kinds, such as the unbreakable one, are no part of a tag.
        names, places = np.unique([name.strip().rstrip("\0") for name in values.decoded()], return_inverse=True)
        return cls(names.tolist(), places.astype(np.int32)[values.value_of], starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, i: int) -> list[str]: ...

    @overload
    def __getitem__(self, i: slice) -> TagSequences: ...

    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return self.take(np.arange(len(self))[i])
        i = range(len(self))[i]
        return self.names[self.codes[self.starts[i] : self.starts[i + 1]]].tolist()

    def __iter__(self) -> Iterator[list[str]]:
        tags, starts = self.names[self.codes].tolist(), self.starts.tolist()
        return (tags[begin:end] for begin, end in pairwise(starts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def take(self, which: Ints) -> TagSequences:
        """Return the tags of some of the sequences."""
        codes = self.codes[ranges(self.starts[which], self.starts[which + 1])]
        starts = np.append(0, np.cumsum(self.starts[which + 1] - self.starts[which]))
        return TagSequences(self.names.tolist(), codes, starts)


class Paths(list[list[Any]]):
    """Paths of tags: a list of lists, which NumPy takes for an array of lists and not for a table of tags.

    scikit-learn's `cross_val_predict` makes arrays of predictions, whose paths need not be of one length.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return an array of lists."""
        array = np.empty(len(self), object)
        for i, path in enumerate(self):
            array[i] = path
        return array


def _column(strings: list[Any]) -> Column:
    array = pa.array(strings, pa.large_string())
    if array.null_count:
        raise TypeError
    _, offsets, text = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[: len(strings) + 1]
    return Column(padded(np.frombuffer(text, np.uint8) if text else b""), bounds[:-1], bounds[1:])


def _wrong_token(flat: list[Any], starts: Ints, width: int) -> Exception:
    """Return the error about the first token that is not like the first one."""
    expected = f"a tuple of {width} strings" if width else "a string"
    for place, token in enumerate(flat):
        parts = token if width and isinstance(token, tuple) else (token,)
        is_right = isinstance(token, tuple) and len(token) == width if width else True
        if not is_right or not all(isinstance(part, str) for part in parts):
            i = int(np.searchsorted(starts, place, side="right")) - 1
            return TypeError(f"X[{i}][{place - int(starts[i])}] is {token!r:.60}, and the first token is {expected}")
        try:
            "".join(parts).encode()
        except UnicodeEncodeError:
            i = int(np.searchsorted(starts, place, side="right")) - 1
            return ValueError(f"X[{i}][{place - int(starts[i])}] is {token!r:.60}, which is no valid Unicode text")
    return TypeError("the tokens of X must be strings, or tuples of strings")
