"""Whether the first line of a table of text is a header, and what the columns are called."""

from __future__ import annotations

import re
from itertools import pairwise
from math import isfinite

from separatrix.data.batches import Options
from separatrix.data.column_types import says_nothing
from separatrix.data.dialects.layouts import Layout
from separatrix.data.errors import DataError

NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\s*", re.IGNORECASE)
ORANGE_TYPES = {"d": "text", "discrete": "text", "s": "text", "string": "text", "c": "number", "continuous": "number"}
_ORANGE_FLAGS = {"", "class", "c", "meta", "m", "ignore", "i"}
REPEATED = 20
"""A first line that comes again in more than one of so many rows is a row, unless numbers show that it is a header."""
ENOUGH_ROWS = 20
"""Below a line of words alone, so many rows show that it is a header, where a model has learned from a file without one."""


def is_orange(table: list[list[str]]) -> bool:
    """Tell whether a table begins with Orange's three lines: names, types, flags."""
    if len(table) < 3 or not len(table[0]) == len(table[1]) == len(table[2]):
        return False
    flags = all(flag.strip() in _ORANGE_FLAGS or "=" in flag for flag in table[2])
    return flags and all(cell.strip() in ORANGE_TYPES for cell in table[1])


def distinct(titles: list[str]) -> tuple[str, ...]:
    """Return the titles, with c0, c1 … for empty ones and the position added to repeated ones.

    Examples
    --------
    >>> distinct(["a", "", "a", "a_2"])
    ('a', 'c1', 'a_2_2', 'a_2')
    """
    names = [title or f"c{j}" for j, title in enumerate(titles)]
    taken = set(names)
    for j, name in enumerate(names):
        while names[j] in names[:j]:
            name = f"{name}_{j}"
            if name not in taken:
                names[j] = name
    return tuple(names)


def note_repeated(titles: list[str], names: tuple[str, ...], where: str, options: Options) -> None:
    """Note the columns that are called otherwise than in the header, because another one has the same title."""
    renamed = [(title, name) for title, name in zip(titles, names, strict=True) if title and title != name]
    if renamed:
        title, name = renamed[0]
        more = f", and {len(renamed) - 1} more so" if len(renamed) > 1 else ""
        what = f"more than one column is called {title!r}: a later one is called {name!r} here{more}"
        options.notes.setdefault(f"repeated titles of {where}", f"{where}: {what}")


def names_known(first: list[str], options: Options) -> bool:
    """Tell whether the first line has the label's column by name, or every column that the caller knows of."""
    label = options.label
    named = isinstance(label, str) and not label.removeprefix("-").isdigit() and label in first
    return named or (bool(options.columns) and set(options.columns) <= set(first))


def placed(
    first: list[str], rest: list[list[str]], layout: Layout, where: str, options: Options
) -> tuple[tuple[str, ...], bool]:
    """Return what a model that knows columns by their places calls them, and whether the first line is a header."""
    names = layout.names_of(len(first), options.label_needed)
    if names is None:
        raise DataError(f"{where}: {layout.misfit(len(first), options.label_needed)}")
    titled = bool(options.header)
    if options.header == "auto":
        expected = options.expected or {}
        numeric = [cell for cell, name in zip(first, names, strict=True) if expected.get(name) == "number"]
        if numeric:
            words = [cell for cell in numeric if not (NUMBER.fullmatch(cell) or _says_nothing(cell, options.missing))]
            titled = bool(rest) and 2 * len(words) > len(numeric)
        else:
            titled = len(rest) >= ENOUGH_ROWS and has_header(first, rest, options.missing)
    if titled:
        why = "the columns are taken by their places, since the model was trained on a file without one"
        options.notes.setdefault("header", f"{where}: taken for a header; {why}")
    return names, titled


def _says_nothing(cell: str, missing: tuple[str, ...]) -> bool:
    return cell in missing or says_nothing(cell)


def has_header(first: list[str], rest: list[list[str]], missing: tuple[str, ...]) -> bool:
    """Tell whether the first line of a table is a header, by what the lines below it hold."""
    counted = first[1:] if first[0] == "" else first  # pandas has no title for its row numbers
    if len(counted) > 3 and counted in ([str(j + k) for j in range(len(counted))] for k in (0, 1)):
        return True
    if any(cell and cell in missing for cell in first):
        return False
    if not rest:
        return not any(NUMBER.fullmatch(cell) for cell in first)
    rows = [[cell.strip().removeprefix("\ufeff") for cell in row] for row in rest if len(row) == len(first)]
    others = [row for row in rows if row != first]  # a header may come again, where files were put together
    columns = _columns(others, missing)
    numeric = [j for j, column in enumerate(columns) if column and _are_numbers(column)]
    if numeric:
        titles = sum(NUMBER.fullmatch(first[j]) is None for j in numeric)
        return 2 * titles > len(numeric) or _counts_on(first, columns, numeric)
    if REPEATED * (len(rows) - len(others)) > len(rows):
        columns = _columns(rows, missing)
    few = [j for j, column in enumerate(columns) if 2 * len(set(column)) <= len(column)]
    return bool(few) and all(first[j] not in columns[j] for j in few) and len(set(first)) == len(first)


def _are_numbers(cells: list[str]) -> bool:
    """Tell whether all match NUMBER: finite numbers for `float` do, but for `1_000`, which is its own."""
    try:
        if isfinite(sum(map(float, cells))) and "_" not in "".join(cells):
            return True
    except ValueError:
        pass
    return all(map(NUMBER.fullmatch, cells))


def _columns(rows: list[list[str]], missing: tuple[str, ...]) -> list[list[str]]:
    markers = frozenset(missing)
    return [[cell for cell in column if cell not in markers] for column in zip(*rows, strict=True)]


def _counts_on(first: list[str], columns: list[list[str]], numeric: list[int]) -> bool:
    """Tell whether a line has whole numbers that count on, as years do, beside words that never come again: it is a header.

    One of the words must be above numbers, or above values of which most come again.
    """
    numbers = [cell for cell in first if NUMBER.fullmatch(cell)]
    if len(numbers) < 2 or not all(cell.isdecimal() for cell in numbers):
        return False
    if any(int(after) != int(before) + 1 for before, after in pairwise(numbers)):
        return False
    words = [j for j, cell in enumerate(first) if cell and cell not in numbers]
    telling = [j for j in words if j in numeric or 2 * len(set(columns[j])) <= len(columns[j])]
    return bool(telling) and all(first[j] not in columns[j] for j in words)
