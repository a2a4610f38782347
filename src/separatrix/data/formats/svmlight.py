"""Svmlight (libsvm) text: `label index:value …` a line, read in blocks by the byte parser into CSR rows.

Values are the float64 nearest to what is written, as `float` has it. Indices begin at 0 or at 1: "auto" takes them to begin
at 1 unless a 0 is met; a stream must decide that on its first block, and says so where a 0 comes later. A label nan, NA or ?
is missing, and NaN.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.batches import MOST_FEATURES, TOO_MANY, Options, RowBatch
from separatrix.data.encodings import MARK
from separatrix.data.errors import DataError, Origin, shown
from separatrix.data.streams import PADDING, Block, Stream, blocks, cores, in_order
from separatrix.kernels.parsing import svmlight as kernels

Array = NDArray[Any]
Ints = NDArray[np.int64]

MOST = (1 << 31) - 2
"""The highest index, counted from 0: the number of features fits a 32-bit integer."""


@dataclass
class Parsed:
    """The rows of one block, and what is wrong with other lines of it: (what, where in the block, line), the first few."""

    values: Array
    indices: Array
    indptr: Ints
    labels: Array
    queries: Ints
    lines: Ints
    n_lines: int
    lowest: int
    highest: int
    faults: list[tuple[int, int, int]]
    n_faults: int
    size: int

    def __len__(self) -> int:
        return len(self.labels)

    def keep(self, chosen: NDArray[np.bool_]) -> None:
        """Leave out the other rows."""
        X = sp.csr_array((self.values, self.indices, self.indptr), (len(self), MOST))[chosen]
        self.values, self.indices, self.indptr = X.data, X.indices, X.indptr
        self.labels, self.queries, self.lines = self.labels[chosen], self.queries[chosen], self.lines[chosen]


_of_thread = threading.local()


def _scratch(size: int) -> tuple[Array, ...]:
    """Return room for the rows of `size` bytes: a row takes two at least, an entry four. Each thread keeps its own."""
    if getattr(_of_thread, "size", -1) < size:
        entries, rows = size // 4 + 1, size // 2 + 1
        _of_thread.size = size
        _of_thread.arrays = (np.empty(entries), np.empty(entries, np.int32), np.empty(rows + 1, np.int64), np.empty(rows))
        _of_thread.arrays += (np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty((entries + rows, 2), np.int64))
    arrays: tuple[Array, ...] = _of_thread.arrays
    if size > 1 << 26:
        _of_thread.size = -1
        del _of_thread.arrays
    return arrays


def parse(block: Block, least: int = 0, most: int = MOST, skip: bool = False, unlabelled: bool = False) -> Parsed:
    """Read the lines of a block; indices go from `least`, which is taken off, to `most`.

    Where rows may be `unlabelled`, a label nan, NA or ? is NaN.
    """
    values, indices, indptr, labels, queries, lines, hard = _scratch(block.end)
    faults = np.empty((16, 3), np.int64)
    text = block.text.view()
    text.flags.writeable = False
    n, entries, n_hard, n_faults, n_lines, lowest, highest = kernels.parse(
        text, block.end, least, most, skip, unlabelled, values, indices, indptr, labels, queries, lines, hard, faults
    )
    parsed = Parsed(
        values[:entries].copy(),
        indices[:entries].copy(),
        indptr[: n + 1].copy(),
        labels[:n].copy(),
        queries[:n].copy(),
        lines[:n].copy(),
        n_lines,
        lowest,
        highest,
        [(what, at, line) for what, at, line in faults[: min(n_faults, len(faults))].tolist()],
        n_faults,
        block.end,
    )
    if n_hard:
        _read_hard(block, parsed, hard[:n_hard].tolist())
    return parsed


def _read_hard(block: Block, parsed: Parsed, hard: list[list[int]]) -> None:
    """Have `float` read the numbers that the kernel left to it; one that is too large spoils its line."""
    finite = np.ones(len(parsed), np.bool_)
    for at, slot in hard:
        value = float(_token(block, at).rpartition(":")[2])
        row = -1 - slot if slot < 0 else int(np.searchsorted(parsed.indptr, slot, side="right")) - 1
        if slot < 0:
            parsed.labels[row] = value
        else:
            parsed.values[slot] = value
        if abs(value) == np.inf and finite[row]:
            finite[row] = False
            parsed.faults.append((kernels.NO_LABEL if slot < 0 else kernels.NO_VALUE, at, int(parsed.lines[row])))
            parsed.n_faults += 1
    if not finite.all():
        parsed.faults.sort(key=lambda fault: fault[2])
        parsed.keep(finite)


def _token(block: Block, at: int) -> str:
    """Return what stands at a place, up to the next blank."""
    end = min(at + 4096, block.end)
    while True:
        words = block.text[at:end].tobytes().split(b"#")[0].split(None, 1)
        if len(words) != 1 or end == block.end:
            return words[0].decode("utf-8", "replace") if words else ""
        end = block.end


def complaint(block: Block, fault: tuple[int, int, int], least: int, most: int) -> str:
    """Say what is wrong at a place of a block, and what to do."""
    what, at, _ = fault
    token = _token(block, at)
    index, _, value = token.partition(":")
    match what:
        case kernels.NO_LABEL if "," in token:
            return f"{shown(token)} is several labels; one label a line is read"
        case kernels.NO_LABEL:
            return f"{shown(token)} is not a finite number; a line begins with its label, a number"
        case kernels.NO_VALUE:
            return f"{shown(value)} is not a finite number; mend the value of index {index} or leave it out"
        case kernels.TOO_LOW:
            return f"index {index} where indices count from {least}; read it with zero_based=True, or mend the line"
        case kernels.TOO_HIGH:
            if most in (MOST, MOST + 1):
                return f"index {index} is above {most}; renumber the features"
            if most - least + 1 == MOST_FEATURES:
                return f"index {index} would make {TOO_MANY}"
            return f"index {index} is above {most}; raise n_features"
        case kernels.NOT_RISING:
            return f"index {index} does not rise above the one before it; sort the line and add up what is repeated"
        case kernels.NO_QUERY:
            return f"{shown(token)} is not a query id; it is a whole number, once, right after the label"
    return f"{shown(token)} is not index:value"


class SvmlightReader:
    """Reads svmlight text in blocks, in parallel, in order."""

    kind = "rows"

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        head = self._head(stream)
        self.least = int(head.lowest > 0) if options.zero_based == "auto" else int(not options.zero_based)
        self.whole = bool(_is_whole(head.labels).all())
        self.unlabelled = True
        """Whether rows may have no label, which is NaN then."""
        self.width = options.n_features or 0
        self.most = (MOST_FEATURES if options.n_features is None else options.n_features) - 1 + self.least

    @staticmethod
    def _head(stream: Stream) -> Parsed:
        head = stream.peek().removeprefix(MARK)
        lines = head[: head.rfind(b"\n") + 1] or head + b"\n"
        return parse(Block(np.frombuffer(lines + bytes(PADDING), np.uint8), len(lines)), skip=True, unlabelled=True)

    def parsed(self, stream: Stream, source: Iterator[Block] | None = None) -> Iterator[tuple[Parsed, Origin]]:
        """Yield what is read of each block, with the line at which it begins."""
        skips = self.options.skips

        def work(block: Block) -> tuple[Block, Parsed]:
            return block, parse(block, self.least, self.most, skips.skipping, self.unlabelled)

        pieces = blocks(stream, self.options.batch_bytes) if source is None else source
        before = 0
        for block, rows in in_order(work, pieces, self.options.threads):
            for fault in rows.faults:
                start = block.text[: fault[1]].tobytes().rfind(b"\n") + 1
                place = f"{stream.name}, line {before + fault[2]}, column {fault[1] - start + 1}"
                skips.report(f"{place}: {complaint(block, fault, self.least, self.most)}")
            skips.count += rows.n_faults - len(rows.faults)
            rows.lines += before
            yield rows, Origin.of(stream.name, rows.lines)
            before += rows.n_lines

    def batches(self, stream: Stream) -> Iterator[RowBatch]:
        """Yield the rows of a stream; a matrix is as wide as the widest row so far, or as n_features says.

        Labels are whole numbers where those of the first megabyte are.
        """
        for rows, origin in self.parsed(stream):
            self.width = max(self.width, rows.highest + 1)
            if self.whole and not (whole := _is_whole(rows.labels)).all():
                for i in np.flatnonzero(~whole).tolist():
                    what = f"the label {rows.labels[i]:g} is not a whole number, as those before it are; mend it"
                    self.options.skips.report(f"{origin.place(i)}: {what}")
                rows.keep(whole)
                origin = Origin.of(stream.name, rows.lines)
            if len(rows):
                X = sp.csr_matrix((rows.values, rows.indices, rows.indptr), (len(rows), self.width))
                labels = rows.labels.astype(np.int64) if self.whole and not np.isnan(rows.labels).any() else rows.labels
                yield RowBatch(X, labels, origin, rows.queries)


def _is_whole(labels: Array) -> NDArray[np.bool_]:
    """Tell which labels are whole numbers, or missing."""
    whole: NDArray[np.bool_] = (labels == np.floor(labels)) & (np.abs(labels) < 1 << 53)
    return whole | np.isnan(labels)


def load_svmlight(
    path: Any,
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    multilabel: bool = False,
    zero_based: bool | str = "auto",
    query_id: bool = False,
    offset: int = 0,
    length: int = -1,
    threads: int | None = None,
) -> tuple[Any, ...]:
    r"""Read an svmlight file, as scikit-learn's `load_svmlight_file` does: the same parameters, the same (X, y), sooner.

    `path` is a path, plain or compressed (gzip, bzip2, zstd), a binary file object or a file descriptor. Not so here:
    NaN and infinity are refused, several labels a line (`multilabel`) are not read, and X has 32-bit indices where they
    suffice.

    Examples
    --------
    >>> from io import BytesIO
    >>> X, y = load_svmlight(BytesIO(b"+1 1:0.5 3:2  # a comment\n-1 2:1e-3\n"))
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 0.001, 0.0]], [1.0, -1.0])
    """
    if multilabel:
        raise ValueError("multilabel=True is not supported: one label a line is read")
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r} is not True, False or 'auto'")
    part = offset > 0 or length > 0
    if part and n_features is None:
        raise ValueError("n_features is required when offset or length is given: a part may not show all features")
    place = open(path, "rb", closefd=False) if isinstance(path, int) else path if hasattr(path, "read") else os.fspath(path)
    stream = Stream(place)
    options = Options(zero_based=zero_based, threads=threads or cores())
    try:
        reader = SvmlightReader(stream, options)
        guess = reader.least if zero_based == "auto" and not part else 0
        reader.least = int(zero_based is False)
        reader.most = MOST + reader.least
        reader.unlabelled = False
        pieces = blocks(stream, options.batch_bytes)
        rows = _Rows(np.dtype(dtype), guess, stream.size)
        for parsed, _ in reader.parsed(stream, _within(pieces, offset, length) if part else pieces):
            rows.add(parsed)
    finally:
        stream.close()
    shift = int(zero_based == "auto" and not part and rows.lowest > 0)
    width = rows.highest - shift + 1
    if n_features is not None and n_features < width:
        raise DataError(f"{stream.name}: n_features is {n_features}, but there is a feature {width - 1}, counted from 0")
    X, y, queries = rows.joined(shift, max(1, n_features or width))
    if not query_id:
        return X, y
    if (queries < 0).any():
        raise DataError(f"{stream.name}: query_id=True, but row {int(np.argmax(queries < 0)) + 1} has no qid")
    return X, y, queries


class _Growing:
    """An array that grows: to the length that its beginning lets expect of the whole, or to twice what is needed."""

    def __init__(self, dtype: Any) -> None:
        self.array = np.empty(0, dtype)
        self.size = 0

    def room(self, n: int, share: float) -> Array:
        """Return the next n places, `share` of the whole having been read by then."""
        need = self.size + n
        if need > len(self.array):
            previous, self.array = self.array, np.empty(int(1.05 * need / share) if share else 2 * need, self.array.dtype)
            self.array[: self.size] = previous[: self.size]
        self.size = need
        return self.array[need - n : need]

    def whole(self) -> Array:
        """Return all of it."""
        used = self.array[: self.size]
        return used if 4 * self.size > 3 * len(self.array) else used.copy()


class _Rows:
    """Joins the rows of block after block; indices are stored less `guess`, which is put right at the end."""

    def __init__(self, dtype: Any, guess: int, total: int | None) -> None:
        self.values, self.indices, self.labels = _Growing(dtype), _Growing(np.int32), _Growing(np.float64)
        self.queries, self.ends = _Growing(np.int64), _Growing(np.int64)
        self.guess, self.total, self.read = guess, total, 0
        self.lowest, self.highest = MOST, -1
        self.ends.room(1, 0)[:] = 0

    def add(self, parsed: Parsed) -> None:
        """Append the rows of a block."""
        self.read += parsed.size
        share = min(1.0, self.read / self.total) if self.total else 0.0
        before, entries, rows = self.values.size, len(parsed.values), len(parsed)
        self.values.room(entries, share)[:] = parsed.values
        np.subtract(parsed.indices, self.guess, out=self.indices.room(entries, share))
        np.add(parsed.indptr[1:], before, out=self.ends.room(rows, share))
        self.labels.room(rows, share)[:] = parsed.labels
        self.queries.room(rows, share)[:] = parsed.queries
        if entries:
            self.lowest, self.highest = min(self.lowest, parsed.lowest), max(self.highest, parsed.highest)

    def joined(self, shift: int, width: int) -> tuple[Any, Array, Array]:
        """Return X, whose indices are less `shift` what was written, the labels and the query ids."""
        indices = self.indices.whole()
        if shift != self.guess:
            indices += self.guess - shift
        X = sp.csr_matrix((self.values.whole(), indices, self.ends.whole()), (len(self.ends.whole()) - 1, width))
        return X, self.labels.whole(), self.queries.whole()


def _within(source: Iterator[Block], offset: int, length: int) -> Iterator[Block]:
    """Yield the lines that begin after byte `offset` (at 0 for 0) and not after `offset + length`."""
    position, limit = 0, offset + length if length > 0 else None
    for text, end, _ in source:
        begin, stop = 0, end
        if position <= offset < position + end and offset > 0:
            begin = text[:end].tobytes().index(b"\n", offset - position) + 1
        if limit is not None and position <= limit < position + end:
            stop = text[:end].tobytes().index(b"\n", limit - position) + 1
        if position + end > offset and begin < stop:
            yield Block(text[begin:], stop - begin)
        position += end
        if limit is not None and position > limit:
            return
