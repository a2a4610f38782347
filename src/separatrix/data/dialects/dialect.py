"""How a table of text is written: delimiter, quotes, header, and where the rows begin; detected from the first megabyte.

- Delimiter: of tab, `,`, `;` and `|` one that cuts nine lines of ten into the same number (> 1) of fields; of several, one
  that cuts the header so, too, then the one that leaves fewer fields with another of them inside, then more fields. Runs of
  blanks, where they cut into more fields, half of them numbers; else whichever agrees best.
- Quotes are off where a quoted field is followed by more text, or never closed: such quotes are plain characters, unless
  nine records of ten have the fields of the first only if quotes are read.
- A first line is a header where most columns of numbers have something else in it; where it counts its columns (0, 1, 2 … or
  1, 2, 3 …); or, without columns of numbers, where none of its values comes again in a column of few values.
- So is one whose whole numbers count on, as years do, beside words that never come again.
- Orange's three lines (names; `d`, `c`, `string` …; `class`, `meta` …) are read as they are meant.
- A first line `sep=;`, as Excel writes it, names the delimiter and is no row.
- A delimiter at the end of every line ends the last field; it does not begin another one.
- Lines that begin with `#`, `%` or `|` before the table, of another number of fields, are passed over; so are titles, of
  another number of fields or with one filled field, where a header follows.
- Where the header has one name fewer than the rows have fields, and no two rows begin alike, these begin with their names.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from separatrix.data.batches import Options
from separatrix.data.dialects.beginnings import Rows, from_table_on, has_row_names
from separatrix.data.dialects.delimiters import delimiter_of, quote_of
from separatrix.data.dialects.headers import (
    ORANGE_TYPES,
    distinct,
    has_header,
    is_orange,
    names_known,
    note_repeated,
    placed,
)
from separatrix.data.dialects.layouts import name_at
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
    spaced: bool = False
    names: tuple[str, ...] = ()
    titled: bool = False
    line: int = 1
    """The line of the first record, header or row."""
    lead: int = 0
    """Lines before the first row."""
    kinds: dict[str, str] = field(default_factory=dict)
    label: str | None = None
    header: bytes = b""
    """The header as it is written, of a table with several columns: where it comes again, it is no row."""
    padded: bool = False
    """Whether every line ends with a delimiter, behind which there is nothing."""
    row_names: bool = False
    """Whether every row begins with its name, which has no title: R writes tables so."""

    @property
    def n_fields(self) -> int:
        """How many fields a record has."""
        return len(self.names) + self.padded + self.row_names


def sniff(head: bytes, name: str, options: Options) -> Dialect:
    """Tell how the table that begins with `head` is written."""
    whole = len(head) < HEAD
    text = head.removeprefix(MARK)
    declared = _DECLARED.match(text)
    if declared and options.delimiter is None:
        options = replace(options, delimiter=declared[1].decode())
    text = text if text.endswith(b"\n") or not whole else text + b"\n"
    delimiter = options.delimiter or delimiter_of(text, options, whole, name)
    if delimiter == BLANKS:
        text = squeezed(text)
    quote = quote_of(text, delimiter, options, whole)
    records = split(np.frombuffer(text, np.uint8), len(text), delimiter, quote, 1000)
    starts = [*records.starts.tolist(), records.end]
    found = zip(pairwise(starts), records.lines.tolist(), records.fields.tolist(), strict=True)
    content_of = {line: text[begin:end] for (begin, end), line, n in found if n}
    rows = [(line, cells(content.decode("utf-8", "replace"), delimiter, quote)) for line, content in content_of.items()]
    if declared:
        del rows[0]
    if not rows and not whole:
        raise DataError(f"{name}, line 1: the first line is longer than {HEAD >> 20} MB")
    if not rows:
        raise DataError(f"{name}: the file is empty")
    usual = Counter(len(row) for _, row in rows).most_common(1)[0][0]
    while len(rows) > 1 and rows[0][1][0][:1] in ("#", "%", "|") and len(rows[0][1]) != usual:
        del rows[0]
    rows, padded = _unpadded(rows, usual, options)
    if padded:  # a title may end with the delimiters of the table, too
        rows = from_table_on(rows, usual - 1, name, options)
    else:
        rows, padded = _unpadded(from_table_on(rows, usual, name, options), usual, options)
    has_names = not padded and has_row_names(rows, name, options)
    rows = [rows[0], *((line, row[1:]) for line, row in rows[1:])] if has_names else rows
    spaced = delimiter != BLANKS and all(cell[:1] == " " for _, row in rows for cell in row[1:] if cell)
    dialect = Dialect(delimiter, quote, spaced, padded=padded, row_names=has_names)
    dialect = _titled(dialect, rows, records.n_lines, name, options)
    is_line = dialect.titled and not dialect.kinds and len(dialect.names) > 1
    return replace(dialect, header=content_of[rows[0][0]].strip(b"\r\n") if is_line else b"")


def _unpadded(rows: Rows, usual: int, options: Options) -> tuple[Rows, bool]:
    """Return the rows without the empty field behind a delimiter at the end of every line, and whether there is one."""
    if len(rows) < 2 or len(rows[1][1]) < 3 or any(row[-1].strip() for _, row in rows[1:] if len(row) == usual):
        return rows, False
    first = rows[0][1]
    bare = [(line, row[:-1] if len(row) == usual else row) for line, row in rows]
    if len(first) == usual and not first[-1].strip():
        return bare, True
    if len(first) == usual - 1 and options.header in ("auto", True):
        return bare, True
    return rows, False


def _titled(dialect: Dialect, rows: Rows, n_lines: int, name: str, options: Options) -> Dialect:
    """Return the dialect with the names of the columns, and the line where they and the rows begin."""
    lines, table = [line for line, _ in rows], [row for _, row in rows]
    first = [cell.strip() for cell in table[0]]
    below = [*lines[1:], n_lines]
    line = lines[0] + 1
    if options.header == "auto" and is_orange(table):
        kinds = {title: ORANGE_TYPES[cell.strip()] for title, cell in zip(first, table[1], strict=True)}
        classes = [title for title, flag in zip(first, table[2], strict=True) if flag.strip() in ("class", "c")]
        label = classes[0] if classes else None
        return replace(dialect, names=distinct(first), titled=True, line=line, lead=below[2], kinds=kinds, label=label)
    if options.layout is not None and not names_known(first, options):
        names, titled = placed(first, table[1:], options.layout, f"{name}, line {line}", options)
    else:
        titled = bool(options.header)
        if options.header == "auto":
            titled = names_known(first, options) or has_header(first, table[1:], options.missing)
        names = distinct(first) if titled else tuple(map(name_at, range(len(first))))
        if titled:
            note_repeated(first, names, f"{name}, line {line}", options)
    return replace(dialect, names=names, titled=titled, line=line, lead=below[0] if titled else lines[0])
