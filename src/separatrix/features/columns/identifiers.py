"""Columns of numbers that identify a row and say nothing about others: row numbers, customer numbers.

Three signs tell an identifier from a measurement, and one of them alone does not:

name     id, PassengerId, customer_no, `Unnamed: 0`, an empty title
form     whole numbers that were handed out: none repeats, although as many measurements in that range would
order    they ascend, or descend, from row to row

A column with two signs is left out, one with a single sign is kept with a note. All of this holds for values that are whole
and nearly all different: numbers with fractions are measurements, and so are values that repeat. Years, dates and times
written as whole numbers do not repeat either, and ascend in many files: for them only the name counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from separatrix.engine.rows import Floats

FEWEST, FEWEST_NAMED = 20, 10
"""The smallest number of values that shows anything: without a name that says so, and with one."""
MOSTLY, MOSTLY_NAMED, HALF = 0.99, 0.9, 0.5
"""The least share of different values: of an identifier, of one with a name that says so, and of one that is only noted."""
ASCENDING = 0.99
REPEATS = 10
"""Numbers were handed out where independent draws from their range would repeat so often, and hardly one does."""
GAPS = 10
"""Numbers that were handed out fill at least one of so many places in their range."""
WIDE, ROUNDED = 100_000, 0.3
"""Numbers with the same number of digits look like identifiers from here on, unless this share of them ends in 0."""
HEAD = 1024

_NOUNS = (
    "account acct case claim client contract customer device document employee encounter household invoice item loan member "
    "object order parcel participant passenger patient person player policy product record respondent row sample session "
    "staff student subject ticket transaction trip user visit"
).split()
_NUMBERS = ("no", "nr", "nbr", "num", "number", "nummer", "numero")
_ENDS = {*_NUMBERS, *"id idx uid uuid guid key pk serial ssn imei isbn iban mrn barcode".split()}
_COUNTED, _AMOUNTS = "case item order sample trip visit".split(), "claim invoice loan transaction".split()
"""Nouns that, alone, may as well say how many there are, or how large one is: the invoice price of a car."""
_ALONE = {
    *(noun for noun in _NOUNS if noun not in _COUNTED and noun not in _AMOUNTS),
    *("index", "rowname", "rownames", "sno", "srno", "slno", "serialno"),
}
_PHRASES = {("row", "index"), ("record", "index"), ("row", "names"), ("row", "name"), ("level", "0")}
_COMPOUND = re.compile(rf"({'|'.join(_NOUNS)})(id|key|{'|'.join(_NUMBERS)})")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


class Signs(NamedTuple):
    """What is said for a column of numbers to be an identifier, in words, and whether that is enough to leave it out."""

    words: list[str]
    enough: bool


def is_named_like_identifier(name: str, names: Sequence[str] = ()) -> bool:
    """Tell whether a column of a table with these columns is called as identifiers are.

    Examples
    --------
    >>> [name for name in ("id", "PassengerId", "CLIENTNUM", "Unnamed: 0", "account") if not is_named_like_identifier(name)]
    []
    >>> [name for name in ("paid", "humid", "price_index", "rooms_number", "zip") if is_named_like_identifier(name)]
    []
    """
    if name.strip() in ("", "#") or re.fullmatch(r"(?i)unnamed(: ?\d+)?(_level_\d+)?", name.strip()):
        return True
    if _is_untitled(name):
        return len(names) > 1 and not any(_is_untitled(other) for other in names if other != name)
    words = tuple(word.lower() for word in _WORD.findall(name))
    if words in _PHRASES:
        return True
    while len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    if not words:
        return False
    last = words[-1]
    if len(words) > 1 and last in _NUMBERS and re.fullmatch(r"\w+[^\Ws]s", words[-2]):
        return False  # how many there are: rooms_number
    return last in _ENDS or words[0] == "id" or (len(words) == 1 and last in _ALONE) or bool(_COMPOUND.fullmatch(last))


def _is_untitled(name: str) -> bool:
    """Tell whether this is the name that the reader of files gives to a column without a title."""
    return re.fullmatch(r"c\d+", name) is not None


def signs_of(name: str, values: Floats, names: Sequence[str] = ()) -> Signs:
    """Return what is said for a column of numbers, NaN where missing, to be an identifier.

    Examples
    --------
    >>> signs_of("CustomerId", np.array([70433.0, 8215, 91377, 55032, 60718, 31990, 21044, 47619, 12870, 80351])).enough
    True
    >>> signs_of("price", np.array([70433.0, 8215, 91377, 55032, 60718, 31990, 21044, 47619, 12870, 80351]))
    Signs(words=[], enough=False)
    """
    values = values[values == values]
    nothing = Signs([], False)
    named = is_named_like_identifier(name, names)
    n, head = len(values), values[:HEAD]
    if not named and (head != np.floor(head)).any():
        return nothing
    if n < (FEWEST_NAMED if named else FEWEST) or len(np.unique(head)) < HALF * len(head):
        return nothing
    n_different = len(np.unique(values))
    whole = bool((values == np.floor(values)).all())
    if n_different < (HALF if named else MOSTLY) * n or not (whole or named):
        return nothing
    least, most = float(values.min()), float(values.max())
    if not named and _may_be_times(values, least, most):
        return nothing
    ordered = _is_ordered(values)
    words = ["its name"] * named
    words += [f"{n_different:,} different {'whole numbers' if whole else 'values'} in {n:,} rows"]
    words += ["in order"] * ordered
    if named:
        return Signs(words, whole and least >= 0 and n_different >= MOSTLY_NAMED * n)
    handed_out = least >= 0 and _is_handed_out(n, n_different, most - least + 1)
    if handed_out or ordered or _have_one_width(values, least, most):
        return Signs(words, handed_out and ordered)
    return nothing


def _is_handed_out(n: int, n_different: int, places: float) -> bool:
    """Tell whether n numbers in a range of so many places repeat far less often than as many independent ones."""
    expected = n * n / (2.0 * places)
    return places <= GAPS * n and expected >= REPEATS and REPEATS * (n - n_different) <= expected


def _have_one_width(values: Floats, least: float, most: float) -> bool:
    """Tell whether whole numbers are long, equally long, and not rounded."""
    one_width = least >= WIDE and len(str(int(least))) == len(str(int(most)))
    return one_width and float((values % 10 == 0).mean()) < ROUNDED


def _is_ordered(values: Floats) -> bool:
    steps = np.diff(values)
    steps = steps[steps != 0]
    return len(steps) > 0 and max(int((steps > 0).sum()), int((steps < 0).sum())) >= ASCENDING * len(steps)


def _may_be_times(values: Floats, least: float, most: float) -> bool:
    """Tell whether whole numbers may be years, months (202403), days (20240331), or seconds since 1970 or parts of them."""
    if least >= 1500 and most <= 2100:
        return True
    if any(3e8 * unit <= least and most <= 3e9 * unit for unit in (1.0, 1e3, 1e6, 1e9)):
        return True
    days = values if least >= 15000101 else values * 100 + 1
    month, day = days // 100 % 100, days % 100
    in_range = days.min() >= 15000101 and days.max() <= 21001231
    return bool(in_range and ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())
