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

from separatrix.data.batches import Options
from separatrix.data.dialects.delimiters import delimiter_of, quote_of
from separatrix.data.dialects.headers import ORANGE_TYPES, distinct, has_header, is_orange, names_known
from separatrix.data.dialects.records import BLANKS, cells, split, squeezed
from separatrix.data.encodings import MARK
from separatrix.data.errors import DataError
from separatrix.data.streams import HEAD

_DECLARED = re.compile(rb'"?sep=([^\r\n"])"?[ \t]*\r?\n', re.IGNORECASE)


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


def sniff(head: bytes, name: str, options: Options) -> Dialect:
    """Tell how the table that begins with `head` is written."""
    whole = len(head) < HEAD
    text = head.removeprefix(MARK)
    declared = _DECLARED.match(text)
    if declared and options.delimiter is None:
        options = replace(options, delimiter=declared[1].decode())
    text = text if text.endswith(b"\n") or not whole else text + b"\n"
    delimiter = options.delimiter or delimiter_of(text, options, whole)
    if delimiter == BLANKS:
        text = squeezed(text)
    quote = quote_of(text, delimiter, options, whole)
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
    if options.header == "auto" and is_orange(table):
        kinds = {title: ORANGE_TYPES[cell.strip()] for title, cell in zip(first, table[1], strict=True)}
        classes = [title for title, flag in zip(first, table[2], strict=True) if flag.strip() in ("class", "c")]
        return Dialect(
            delimiter, quote, spaced, distinct(first), True, lines[0] + 1, below[2], kinds, classes[0] if classes else None
        )
    titled = bool(options.header)
    if options.header == "auto":
        titled = names_known(first, options) or has_header(first, table[1:], options.missing)
    names = distinct(first) if titled else tuple(f"c{j}" for j in range(len(first)))
    return Dialect(delimiter, quote, spaced, names, titled, lines[0] + 1, below[0] if titled else lines[0])
