"""How a table of text is written: delimiter, quotes, header, and where the rows begin; detected from the first megabyte.

- Delimiter: the first of tab, `;`, `|`, `,` that cuts nine lines of ten into the same number (> 1) of fields; runs of
  blanks, where they cut into more fields, half of them numbers; else whichever agrees best.
- Quotes are off where a quoted field is followed by more text, or never closed: such quotes are plain characters, unless
  nine records of ten have the fields of the first only if quotes are read.
- A first line is a header where most columns of numbers have something else in it; where it counts its columns (0, 1, 2 … or
  1, 2, 3 …); or, without columns of numbers, where none of its values comes again in a column of few values.
- Orange's three lines (names; `d`, `c`, `string` …; `class`, `meta` …) are read as they are meant.
- A first line `sep=;`, as Excel writes it, names the delimiter and is no row.
- A delimiter at the end of every line ends the last field; it does not begin another one.
- Lines that begin with `#`, `%` or `|` before the table, of another number of fields, are passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from separatrix.data.batches import Options
from separatrix.data.encodings import MARK
from separatrix.data.errors import DataError
from separatrix.data.streams import HEAD
from separatrix.kernels.parsing import records as kernels

BLANKS = " "
"""The delimiter of a table whose fields are set apart by runs of blanks."""

NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.IGNORECASE)
_DECLARED = re.compile(rb'"?sep=([^\r\n"])"?[ \t]*\r?\n', re.IGNORECASE)
_ORANGE_TYPES = {"d": "text", "discrete": "text", "s": "text", "string": "text", "c": "number", "continuous": "number"}
_ORANGE_FLAGS = {"", "class", "c", "meta", "m", "ignore", "i"}


@dataclass(frozen=True)
class Dialect:
    """How a table is written, and what its columns are called."""

    delimiter: str
    quote: str | None
    spaced: bool
    names: tuple[str, ...]
    titled: bool
    line: int
    """The line of the first record, header or row."""
    lead: int
    """Lines before the first row."""
    kinds: dict[str, str] = field(default_factory=dict)
    label: str | None = None
    padded: bool = False
    """Whether every line ends with a delimiter, behind which there is nothing."""

    @property
    def n_fields(self) -> int:
        """How many fields a record has."""
        return len(self.names) + self.padded


@dataclass(frozen=True)
class Records:
    """The records of some text: where each begins, the lines before it, its fields; and where the whole ones end."""

    starts: NDArray[np.int64]
    lines: NDArray[np.int32]
    fields: NDArray[np.int32]
    end: int
    n_lines: int


def split(text: NDArray[np.uint8], end: int, delimiter: str, quote: str | None, most: int | None = None) -> Records:
    """Find the records of text[:end], or the first `most` of them."""
    room = min(end + 1, most or end + 1)
    starts, lines, fields = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    view = text.view()
    view.flags.writeable = False
    marks = (np.uint8(ord("\t" if delimiter == BLANKS else delimiter)), np.uint8(ord(quote) if quote else 0))
    n, whole, n_lines = kernels.split(view, 0, end, *marks, starts, lines, fields)
    return Records(starts[:n], lines[:n], fields[:n], int(whole), int(n_lines))


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
    cell = re.compile(
        rf"{quote}((?:[^{quote}]|{quote}{quote})*){quote}([^{re.escape(delimiter)}]*)|([^{re.escape(delimiter)}]*)"
    )
    fields, at = [], 0
    while at <= len(record):
        match = cell.match(record, at)
        assert match is not None
        quoted = match[1] is not None
        fields.append(match[1].replace(quote * 2, quote) + match[2] if quoted else match[3])
        at = match.end() + 1
    return fields


def sniff(head: bytes, name: str, options: Options) -> Dialect:
    """Tell how the table that begins with `head` is written."""
    whole = len(head) < HEAD
    text = head.removeprefix(MARK)
    declared = _DECLARED.match(text)
    if declared and options.delimiter is None:
        options = replace(options, delimiter=declared[1].decode())
    text = text if text.endswith(b"\n") or not whole else text + b"\n"
    delimiter = options.delimiter or _delimiter(text, options, whole)
    if delimiter == BLANKS:
        text = squeezed(text)
    quote = _quote(text, delimiter, options, whole)
    records = split(np.frombuffer(text, np.uint8), len(text), delimiter, quote, 1000)
    starts = [*records.starts.tolist(), records.end]
    rows = [
        (line, cells(text[begin:end].decode("utf-8", "replace"), delimiter, quote))
        for begin, end, line, n in zip(starts, starts[1:], records.lines.tolist(), records.fields.tolist(), strict=False)
        if n
    ]
    if declared:
        del rows[0]
    if not rows and not whole:
        raise DataError(f"{name}, line 1: the first line is longer than {HEAD >> 20} MB")
    if not rows:
        raise DataError(f"{name}: the file is empty")
    usual = Counter(len(row) for _, row in rows).most_common(1)[0][0]
    while len(rows) > 1 and rows[0][1][0][:1] in ("#", "%", "|") and len(rows[0][1]) != usual:
        del rows[0]
    padded = len(rows) > 1 and len(rows[1][1]) > 2 and all(not row[-1].strip() for _, row in rows[1:] if len(row) == usual)
    if padded and len(rows[0][1]) == usual and not rows[0][1][-1].strip():
        rows = [(line, row[:-1] if len(row) == usual else row) for line, row in rows]
    elif padded and len(rows[0][1]) == usual - 1 and options.header in ("auto", True):
        rows = [rows[0], *((line, row[:-1] if len(row) == usual else row) for line, row in rows[1:])]
    else:
        padded = False
    found = _titles(delimiter, quote, rows, records.n_lines, options)
    return replace(found, padded=padded)


def _titles(delimiter: str, quote: str | None, rows: list[tuple[int, list[str]]], n_lines: int, options: Options) -> Dialect:
    lines, table = [line for line, _ in rows], [row for _, row in rows]
    first = [cell.strip() for cell in table[0]]
    spaced = delimiter != BLANKS and all(cell[:1] == " " for row in table for cell in row[1:] if cell)
    below = [*lines[1:], n_lines]
    if options.header == "auto" and _is_orange(table):
        kinds = {title: _ORANGE_TYPES[cell.strip()] for title, cell in zip(first, table[1], strict=True)}
        classes = [title for title, flag in zip(first, table[2], strict=True) if flag.strip() in ("class", "c")]
        return Dialect(
            delimiter, quote, spaced, _distinct(first), True, lines[0] + 1, below[2], kinds, classes[0] if classes else None
        )
    titled = bool(options.header)
    if options.header == "auto":
        titled = _names_known(first, options) or _has_header(first, table[1:], options.missing)
    names = _distinct(first) if titled else tuple(f"c{j}" for j in range(len(first)))
    return Dialect(delimiter, quote, spaced, names, titled, lines[0] + 1, below[0] if titled else lines[0])


def _is_orange(table: list[list[str]]) -> bool:
    if len(table) < 3 or not len(table[0]) == len(table[1]) == len(table[2]):
        return False
    flags = all(flag.strip() in _ORANGE_FLAGS or "=" in flag for flag in table[2])
    return flags and all(cell.strip() in _ORANGE_TYPES for cell in table[1])


def _distinct(titles: list[str]) -> tuple[str, ...]:
    """Return the titles, with c0, c1 … for empty ones and the position added to repeated ones."""
    named = [title or f"c{j}" for j, title in enumerate(titles)]
    return tuple(name if name not in named[:j] else f"{name}_{j}" for j, name in enumerate(named))


def _delimiter(text: bytes, options: Options, whole: bool) -> str:
    scores = {}
    for delimiter in "\t;|,":
        quote = _quote(text, delimiter, options, whole)
        fields = np.abs(split(np.frombuffer(text, np.uint8), len(text), delimiter, quote, 1000).fields)
        scores[delimiter] = _agreement(fields)
    best = next((d for d, (share, _) in scores.items() if share >= 0.9), max(scores, key=lambda d: scores[d][0]))
    short = text[: text.rfind(b"\n", 0, 1 << 16) + 1]
    spread = squeezed(short)
    records = split(np.frombuffer(spread, np.uint8), len(spread), BLANKS, _quote(spread, BLANKS, options, False))
    share, many = _agreement(np.abs(records.fields))
    if share >= 0.9 and (many > scores[best][1] or scores[best][0] < 0.5):
        titles, _, rows = spread.decode("utf-8", "replace").partition("\n")
        words = (rows or titles).split()
        if sum(NUMBER.fullmatch(word) is not None for word in words) * 2 >= len(words):
            return BLANKS
    return best if scores[best][0] else ","


def _agreement(fields: NDArray[np.int32]) -> tuple[float, int]:
    """Return which share of the records has the usual number of fields, where that is above 1, and that number."""
    counts = Counter(n for n in fields.tolist() if n)
    usual, often = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    return (often / counts.total(), usual) if usual > 1 else (0.0, 1)


def _quote(text: bytes, delimiter: str, options: Options, whole: bool) -> str | None:
    if options.quote != "auto":
        return options.quote or None
    if b'"' not in text:
        return '"'
    records = split(np.frombuffer(text, np.uint8), len(text), delimiter, '"')
    left = text[records.end :]
    broken = bool((records.fields < 0).any()) or (left.count(b"\n") > (0 if whole else 100))
    return None if broken and not _is_quoted(text, delimiter) else '"'


def _is_quoted(text: bytes, delimiter: str) -> bool:
    """Tell whether more records have as many fields as the first when quotes are read: then a broken one is an error."""
    likeness = []
    for quote in ('"', None):
        fields = split(np.frombuffer(text, np.uint8), len(text), delimiter, quote, 1000).fields
        fields = fields[fields != 0]
        likeness.append(float(np.mean(fields == fields[0])) if len(fields) and fields[0] > 1 else 0.0)
    return likeness[0] > max(0.9, likeness[1])


def _names_known(first: list[str], options: Options) -> bool:
    """Tell whether the first line has the label's column by name, or every column that the caller knows of."""
    label = options.label
    named = isinstance(label, str) and not label.removeprefix("-").isdigit() and label in first
    return named or (bool(options.columns) and set(options.columns) <= set(first))


def _has_header(first: list[str], rest: list[list[str]], missing: tuple[str, ...]) -> bool:
    if len(first) > 3 and first in ([str(j + k) for j in range(len(first))] for k in (0, 1)):
        return True
    if any(cell and cell in missing for cell in first):
        return False
    if not rest:
        return not any(NUMBER.fullmatch(cell) for cell in first)
    usual = [row for row in rest if len(row) == len(first)]
    columns = [[cell.strip() for cell in column if cell.strip() not in missing] for column in zip(*usual, strict=True)]
    numeric = [j for j, column in enumerate(columns) if column and all(NUMBER.fullmatch(cell) for cell in column)]
    if numeric:
        return 2 * sum(NUMBER.fullmatch(first[j]) is None for j in numeric) > len(numeric)
    few = [j for j, column in enumerate(columns) if 2 * len(set(column)) <= len(column)]
    return bool(few) and all(first[j] not in columns[j] for j in few) and len(set(first)) == len(first)
