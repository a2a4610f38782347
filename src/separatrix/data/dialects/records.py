"""The records of delimited text, and the fields of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.encodings import MARK
from separatrix.data.errors import LEAVE_OUT
from separatrix.kernels.parsing import records as kernels

SWALLOWED, NEARLY_ALL = 20, 0.9
"""Of so many lines that a quote swallows, this share must be rows to show that it has no partner."""
BLANKS = " "
"""The delimiter of a table whose fields are set apart by runs of blanks."""


@dataclass(frozen=True)
class Records:
    """The records of some text: where each begins, the lines before it, its fields; and where the whole ones end."""

    starts: NDArray[np.int64]
    lines: NDArray[np.int32]
    fields: NDArray[np.int32]
    end: int
    n_lines: int
    plain: tuple[int, ...] = ()
    """The records in which quotes are plain characters."""

    def text_of(self, text: NDArray[np.uint8], good: NDArray[np.bool_], delimiter: str, quote: str | None) -> Any:
        """Return the bytes of the good records, with the quotes that are plain characters doubled."""
        if good.all() and not self.plain:
            return text[: self.end]
        bounds = np.append(self.starts, self.end)
        if not self.plain:
            edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
            return b"".join(text[bounds[a] : bounds[b]].tobytes() for a, b in zip(edges[::2], edges[1::2], strict=True))
        pieces = [text[bounds[k] : bounds[k + 1]].tobytes() for k in np.flatnonzero(good)]
        place_of = dict(zip(np.flatnonzero(good).tolist(), range(len(pieces)), strict=True))
        for place in (place_of[k] for k in self.plain if k in place_of):
            pieces[place] = _quoted(pieces[place], delimiter.encode(), (quote or "").encode())
        return b"".join(pieces)

    def remedy_of(self, k: Any, text: NDArray[np.uint8], delimiter: str) -> str:
        """Say what to do about a record of too few or too many fields."""
        begin, end = np.append(self.starts, self.end)[k : k + 2]
        if re.search(re.escape(delimiter.encode()) + rb"[ \t]+[\"']", text[begin:end].tobytes()):
            return f"a blank before a quote makes it a plain character: remove such blanks, or {LEAVE_OUT}"
        return LEAVE_OUT


def places_of(line: bytes, text: NDArray[np.uint8], records: Records) -> list[int]:
    """Return the numbers of the records that are this line, with or without a mark of the encoding before it."""
    places = []
    for begun in (line, MARK + line):
        ends = records.starts + len(begun)
        inside = np.flatnonzero(ends < records.end)
        first, last, after = text[records.starts[inside]], text[ends[inside] - 1], text[ends[inside]]
        alike = (first == begun[0]) & (last == begun[-1]) & ((after == ord("\n")) | (after == ord("\r")))
        for k in inside[alike].tolist():
            if text[records.starts[k] : ends[k]].tobytes() == begun:
                places.append(k)
    return sorted(places)


def _quoted(line: bytes, delimiter: bytes, quote: bytes) -> bytes:
    """Return a line of fields whose quotes are plain characters as one in which these are doubled."""
    fields = line.rstrip(b"\r\n").split(delimiter)
    doubled = [quote + each.replace(quote, quote * 2) + quote if quote in each else each for each in fields]
    return delimiter.join(doubled) + b"\n"


def split(text: NDArray[np.uint8], end: int, delimiter: str, quote: str | None, most: int | None = None) -> Records:
    """Find the records of text[:end], or the first `most` of them."""
    room = min(end + 1, most or end + 1)
    starts, lines, fields = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    view = text.view()
    view.flags.writeable = False
    marks = (np.uint8(ord("\t" if delimiter == BLANKS else delimiter)), np.uint8(ord(quote) if quote else 0))
    n, whole, n_lines = kernels.split(view, 0, end, *marks, starts, lines, fields)
    return Records(starts[:n], lines[:n], fields[:n], int(whole), int(n_lines))


def split_rows(text: NDArray[np.uint8], end: int, delimiter: str, quote: str | None, n_fields: int) -> Records:
    """Find the records of text[:end], where a quote that would swallow rows of n_fields fields is a plain character.

    A quote without its partner makes one record of all lines up to the next quote. Where nearly all of the first lines that
    it swallows have the fields of a row, the record ends with its own line. That depends on these lines alone, and not on
    where a block of text ends.
    """
    records = split(text, end, delimiter, quote)
    unfinished = int(np.count_nonzero(text[records.end : end] == ord("\n")))
    if quote is None or max(unfinished, records.n_lines - len(records.lines)) < SWALLOWED:
        return records
    parts, plain, begin, line, n = [], [], 0, 0, 0
    while True:
        stray = _swallowing(records, text[begin:end], delimiter, n_fields)
        parts.append((records.starts[:stray] + begin, records.lines[:stray] + line, records.fields[:stray]))
        if stray is None:
            break
        n += stray
        plain.append(n)
        at = int(records.starts[stray]) if stray < len(records.starts) else records.end
        lines_before = int(records.lines[stray]) if stray < len(records.lines) else records.n_lines
        first = split(text[begin + at : end], end - begin - at, delimiter, None, 1)
        parts.append((first.starts + begin + at, first.lines + line + lines_before, first.fields))
        n, begin, line = n + 1, begin + at + first.end, line + lines_before + 1
        records = split(text[begin:end], end - begin, delimiter, quote)
    starts, lines, fields = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Records(starts, lines, fields, begin + records.end, line + records.n_lines, tuple(plain))


def _swallowing(records: Records, text: NDArray[np.uint8], delimiter: str, n_fields: int) -> int | None:
    """Return the number of the first record that has swallowed rows, which may be the unfinished one, None if none has."""
    spans = np.diff(np.append(records.lines, records.n_lines))
    unfinished = np.count_nonzero(text[records.end :] == ord("\n"))
    for k in np.flatnonzero(np.append(spans, unfinished) > SWALLOWED).tolist():
        begin = int(records.starts[k]) if k < len(records.starts) else records.end
        lines = split(text[begin:], len(text) - begin, delimiter, None, SWALLOWED + 1)
        if np.count_nonzero(lines.fields[1:] == n_fields) >= NEARLY_ALL * SWALLOWED:
            return int(k)
    return None


def squeezed(text: bytes | NDArray[np.uint8]) -> bytes:
    r"""Put one tab for each run of blanks outside quotes, and none at the ends of lines.

    Examples
    --------
    >>> squeezed(b'  18.0   8\t"ford torino" \n')
    b'18.0\t8\t"ford torino"\n'
    """
    source = np.frombuffer(bytes(text), np.uint8)
    out = np.empty(len(source), np.uint8)
    size = kernels.squeeze(source, len(source), np.uint8(ord('"')), out)
    return out[: int(size)].tobytes()


@cache
def _cell(delimiter: str, quote: str) -> re.Pattern[str]:
    other = rf"[^{re.escape(delimiter)}]*"
    return re.compile(rf"{quote}((?:[^{quote}]|{quote}{quote})*){quote}({other})|({other})")


def cells(record: str, delimiter: str, quote: str | None) -> list[str]:
    """Return the fields of a record, without their quotes.

    Examples
    --------
    >>> cells("1,'a, b',c", ",", "'")
    ['1', 'a, b', 'c']
    """
    delimiter = "\t" if delimiter == BLANKS else delimiter
    record = record.rstrip("\r\n")
    if not quote or quote not in record:
        return record.split(delimiter)
    cell = _cell(delimiter, quote)
    at = record.rfind(delimiter, 0, record.index(quote)) + 1  # before the field of the first quote there is none
    fields = record[: at - 1].split(delimiter) if at else []
    while at <= len(record):
        match = cell.match(record, at)
        assert match is not None
        quoted = match[1] is not None
        fields.append(match[1].replace(quote * 2, quote) + match[2] if quoted else match[3])
        at = match.end() + 1
    return fields
