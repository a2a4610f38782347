"""What each column of a table is for, as its first block of rows shows: number, category, boolean, text, or nothing.

number     numbers, few or many different ones
category   text of few words, the same again and again
text       several words, seldom the same
drop       text that is different in most rows (a name, an id), numbers that identify rows, dates, no value at all
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow.compute as pc

from separatrix.data import column_types as reading
from separatrix.data.arrow_arrays import numpy_array, text_array
from separatrix.features.columns.arrow_columns import BOOLEAN, DATE, NUMBER, TEXT
from separatrix.features.columns.identifiers import signs_of

DROP = "drop"
KIND_FOR = {"number": NUMBER, "category": TEXT, "text": TEXT, "boolean": BOOLEAN}
ROLES = (*KIND_FOR, DROP)
FEW = 10
MANY = 1000
WORDS = 2.5
LOOKED_AT = 1000


class Role(NamedTuple):
    """What a column is for, and what there is to say about it."""

    role: str
    note: str = ""


def inferred(name: str, kind: str | None, column: Any, categorical: bool, names: Sequence[str] = ()) -> Role:
    """Return the role of a column by the values of its first block; `categorical`: their type says what they are.

    `names` are the columns of the table.
    """
    if kind == DATE:
        return Role(DROP, f"column {name!r} holds dates: left out; turn them into numbers or categories to use them")
    if kind is None or column.null_count == len(column) or (kind == NUMBER and pc.all(pc.is_nan(column)).as_py()):
        return Role(DROP, f"column {name!r} has no value in the first {len(column):,} rows: left out")
    if kind == BOOLEAN:
        return Role("boolean")
    if kind == NUMBER:
        return _of_numbers(name, column, names)
    return Role("category") if categorical else _of_text(name, column.drop_null())


def _of_numbers(name: str, column: Any, names: Sequence[str]) -> Role:
    """Numbers are numbers, unless they identify the rows."""
    signs = signs_of(name, numpy_array(column), names)
    if not signs.words:
        return Role("number")
    what = f"column {name!r} looks like an identifier ({', '.join(signs.words)})"
    if signs.enough:
        return Role(DROP, f"{what}: left out; keep it with roles={{{name!r}: 'number'}}")
    return Role("number", f"{what}: kept; leave it out with roles={{{name!r}: 'drop'}}")


def _of_text(name: str, values: Any) -> Role:
    different = values.unique()
    if len(different) > min(len(values) / 4, MANY) and _words(different.slice(0, LOOKED_AT)) >= WORDS:
        return Role("text")
    if len(different) > max(FEW, len(values) / 2):
        what = f"column {name!r} has {len(different):,} different values in {len(values):,} rows"
        return Role(DROP, f"{what}: left out; keep it with roles={{{name!r}: 'category'}}")
    if reading.kind_of(_letters(different.slice(0, LOOKED_AT))) != reading.TEXT:
        return Role("category", f"column {name!r} holds numbers written as text: taken for categories")
    return Role("category")


def _letters(values: Any) -> Any:
    """Return bytes as strings; those that are not UTF-8 are missing."""
    return text_array(_decoded(value) for value in values.to_pylist())


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _words(values: Any) -> float:
    """Return how many words a value has on average."""
    return float(pc.mean(pc.count_substring_regex(values, r"[^\s]+")).as_py())
