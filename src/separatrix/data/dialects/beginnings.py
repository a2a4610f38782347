"""Where a table of text begins: below titles and remarks, and in R's files behind the name of each row."""

from __future__ import annotations

import re

from separatrix.data.batches import Options
from separatrix.data.dialects.headers import NUMBER, has_header, names_known
from separatrix.data.errors import DataError, counted, shown

Rows = list[tuple[int, list[str]]]
"""Records: the lines before each, and its fields."""

_NAMES_ROWS = re.compile(r"(.*[\W_])?(id|index|key|n[or]\.?|num(ber)?|#|rows?|row_?names?)", re.IGNORECASE)
CONSISTENT, ENOUGH_ROWS = 0.9, 10
"""A table is certain where this share of its rows have the same number of fields, of at least so many."""


def from_table_on(rows: Rows, usual: int, name: str, options: Options) -> Rows:
    """Return the rows without titles before the table, which are noted; raise where the first line does not fit the others.

    `usual` is the number of fields that most rows have. A title has another number, or is one filled field among empty ones,
    as spreadsheets write them.
    """
    begin = next((k for k, (_, row) in enumerate(rows) if len(row) == usual and _is_filled(row)), 0)
    table = rows[begin:]
    is_table = len(table) > 1 and sum(len(row) == usual for _, row in table) >= CONSISTENT * len(table)
    if not begin or not is_table:
        return rows
    titles = [row for _, row in rows[:begin]]
    if not _are_titles(titles, [row for _, row in table], usual, options):
        if len(table) >= ENOUGH_ROWS and len(titles[0]) != usual and not _has_untitled_column(rows):
            what = f"{counted(len(titles[0]), 'column')} where most lines have {usual}"
            remedy = "quote values with a delimiter in them (quote= names the quote), or delete the line if it is no header"
            raise DataError(f"{name}, line {rows[0][0] + 1}: {what}; name every column, {remedy}")
        return rows
    are = "line before the table is" if begin == 1 else "lines before the table are"
    first = shown(" ".join(cell.strip() for cell in titles[0] if cell.strip()))
    options.notes.setdefault(f"titles of {name}", f"{name}: {begin} {are} skipped, the first: {first}")
    return table


def _is_filled(row: list[str]) -> bool:
    return len(row) < 3 or sum(bool(cell.strip()) for cell in row) > 1


def _are_titles(titles: list[list[str]], table: list[list[str]], usual: int, options: Options) -> bool:
    first = [cell.strip() for cell in table[0]]
    if names_known(first, options):
        return True
    if options.header is not False and has_header(first, table[1:], options.missing):
        # A header of one name too few is the header, and no title, unless numbers show that the line below it is one.
        return [len(title) for title in titles] != [usual - 1] or _has_numbers_below(first, table[1:])
    if options.skips.skipping and all(any(NUMBER.fullmatch(cell) for cell in title) for title in titles):
        return True  # broken rows
    return options.expected is None and all(len(title) == 1 for title in titles)


def _has_numbers_below(first: list[str], rest: list[list[str]]) -> bool:
    columns = zip(*(row for row in rest if len(row) == len(first)), strict=True)
    numeric = [all(NUMBER.fullmatch(cell) for cell in column) for column in columns]
    return any(is_number and not NUMBER.fullmatch(cell) for cell, is_number in zip(first, numeric, strict=True))


def has_row_names(rows: Rows, name: str, options: Options) -> bool:
    """Tell whether each row begins with its name, for which the header has no title; it is noted."""
    if options.header is False or not _has_untitled_column(rows):
        return False
    what = "the header has no name for the first column, which is left out: it has the names of the rows"
    options.notes.setdefault(f"row names of {name}", f"{name}, line {rows[0][0] + 1}: {what}")
    return True


def _has_untitled_column(rows: Rows) -> bool:
    """Tell whether the rows have one field more than the header, and begin with different values: many, or 1, 2, 3 …

    Not so where the first column is titled as one that names the rows, or one field always begins with a blank: then the
    rows have one delimiter too many, as in `7,Smith, John`.
    """
    titles, table = [cell.strip() for cell in rows[0][1]], [row for _, row in rows[1:]]
    fitting = [row for row in table if len(row) == len(titles) + 1]
    if len(fitting) < 2 or len(fitting) < CONSISTENT * len(table):
        return False
    if "" in titles or len(set(titles)) < len(titles) or any(NUMBER.fullmatch(title) for title in titles):
        return False
    blanks = [all(row[j][:1] == " " for row in fitting) for j in range(1, len(titles) + 1)]
    if _NAMES_ROWS.fullmatch(titles[0]) or sum(blanks) == 1:
        return False
    names = [row[0].strip() for row in fitting]
    return len(set(names)) == len(names) and (len(names) >= ENOUGH_ROWS or names == [str(k + 1) for k in range(len(names))])
