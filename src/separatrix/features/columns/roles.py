"""What each column of a table is for, as its first block of rows shows: number, category, date, set, text, or nothing.

number     numbers, few or many different ones, also as text in one notation (`notations`)
date       dates and times, also as text in one form (`date_forms`)
set        lists, and text with a delimiter between items that occur again and again (`sets`)
category   text of few words, the same again and again
text       several words, seldom the same
drop       text that is different in most rows (a name, an id), numbers that identify rows, no value at all
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from separatrix.data import column_types as reading
from separatrix.data.arrow_arrays import numpy_array, text_array
from separatrix.data.errors import shown
from separatrix.engine.rows import Floats
from separatrix.features.columns import date_forms, notations, sets
from separatrix.features.columns.arrow_columns import BOOLEAN, DATE, NUMBER, SET, TEXT
from separatrix.features.columns.categories import UNIT
from separatrix.features.columns.date_forms import DateForm
from separatrix.features.columns.identifiers import signs_of
from separatrix.features.columns.notations import Notation
from separatrix.features.columns.samples import Counted, matches

DROP = "drop"
KIND_FOR = {"number": NUMBER, "category": TEXT, "text": TEXT, "boolean": BOOLEAN, "set": TEXT}
ROLES = (*KIND_FOR, "date", DROP)
Form = Notation | DateForm
FEW = 10
MANY = 1000
WORDS = 2.5
LOOKED_AT = 1000


class Role(NamedTuple):
    """What a column is for, and what there is to say about it."""

    role: str
    note: str = ""
    form: Form | str | None = None
    """How the values are written: the notation of numbers, the form of dates, the delimiter of sets."""

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        form = self.form if self.form is None or isinstance(self.form, str) else self.form.state()
        return {"role": self.role, "note": self.note} | ({} if form is None else {"form": form})

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Role:
        """Return the role that `state` described; files of before have no forms."""
        form = state.get("form")
        if isinstance(form, dict):
            form = DateForm(**form) if "order" in form else Notation(**form)
        return cls(state["role"], state["note"], form)


def inferred(name: str, kind: str | None, column: Any, categorical: bool, names: Sequence[str] = ()) -> Role:
    """Return the role of a column by the values of its first block; `categorical`: their type says what they are.

    `names` are the columns of the table.
    """
    if kind is None or column.null_count == len(column) or (kind == NUMBER and pc.all(pc.is_nan(column)).as_py()):
        return Role(DROP, f"column {name!r} has no value in the first {len(column):,} rows: left out")
    if kind == BOOLEAN:
        return Role("boolean")
    if kind == NUMBER:
        form = date_forms.found_in_numbers(name, column)
        return _of_numbers(name, column, names) if form is None else Role("date", form=form)
    if kind == DATE:
        return Role("date", form=date_forms.form_of_dates(column))
    if kind == SET:
        return Role("set", form=UNIT)
    return Role("category") if categorical else _written(name, column, names) or _of_text(name, column.drop_null())


def _written(name: str, column: Any, names: Sequence[str]) -> Role | None:
    """Return the role of text that is a way to write numbers, dates or sets; None: it is none of these."""
    values = Counted(column)
    if notations.looks_written(values.look) and (number := notations.found(values)) is not None:
        notation, note = number
        role = _of_numbers(name, notation.parsed(column), names)
        return Role(role.role, role.note or _noted(name, note), notation if role.role != DROP else None)
    if (date := date_forms.found(name, values)) is not None:
        return Role("date", _noted(name, date[1]), date[0])
    if (delimiter := sets.found(values)) is not None:
        return Role("set", form=delimiter)
    return None


def _noted(name: str, note: str) -> str:
    return f"column {name!r}: {note}" if note else ""


def chosen(name: str, role: str, kind: str | None, column: Any) -> Role:
    """Return a role that the user chose, with the way in which the values of the first block are written."""
    if role == "set":
        return Role(role, form=sets.delimiter_of(Counted(column)))
    if role == "number" and kind == TEXT:
        number = notations.found(values := Counted(column), least=0.5)
        if number is None:
            raise ValueError(f"column {name!r}: {shown(values.words[0].as_py())} is not a number in a known notation")
        return Role(role, _noted(name, number[1]), number[0])
    if role != "date":
        return Role(role)
    if kind == TEXT:
        date = date_forms.found(name, values := Counted(column), least=0.5)
        if date is None and values.n:
            raise ValueError(
                f"column {name!r}: {shown(values.words[0].as_py())} is no date in a known form; write for example 2024-12-31"
            )
        return Role(role) if date is None else Role(role, _noted(name, date[1]), date[0])
    if kind == NUMBER:
        return Role(role, form=date_forms.form_of_numbers(name, column))
    return Role(role, form=date_forms.form_of_dates(column) if kind == DATE else DateForm("year first"))


def _of_numbers(name: str, column: Any, names: Sequence[str]) -> Role:
    """Numbers are numbers, unless they identify the rows."""
    values = numpy_array(column)
    signs = signs_of(name, values, names)
    if not signs.words:
        return Role("number", _rounding(name, values))
    if signs.enough:
        return Role(DROP, f"{signs.of(name)}: left out; keep it with roles={{{name!r}: 'number'}}")
    return Role("number", f"{signs.of(name)}: kept; leave it out with roles={{{name!r}: 'drop'}}")


def _rounding(name: str, values: Floats) -> str:
    """Say so where most values are whole numbers of 2⁵³ to 2⁶⁴, such as account numbers: float64 drops their last digits."""
    sizes = np.abs(values[values == values])
    if not len(sizes) or np.median(sizes) < 2.0**53 or sizes.max() > 2.0**64:
        return ""
    what = f"column {name!r} has whole numbers of 2⁵³ and more, whose last digits are lost"
    return f"{what}; keep them as they are with roles={{{name!r}: 'category'}}"


def _of_text(name: str, values: Any) -> Role:
    different, as_numbers = values.unique(), f"roles={{{name!r}: 'number'}}, which takes words for missing values"
    if len(different) > min(len(values) / 4, MANY) and _words(different.slice(0, LOOKED_AT)) >= WORDS:
        return Role("text")
    if len(different) > max(FEW, len(values) / 2):
        what = f"column {name!r} has {len(different):,} different values in {len(values):,} rows"
        if words := _words_among_numbers(values):
            return Role(DROP, f"{what}, most of them numbers{words}: left out; keep it as numbers with {as_numbers}")
        return Role(DROP, f"{what}: left out; keep it with roles={{{name!r}: 'category'}}")
    if len(different) > FEW and (words := _words_among_numbers(values)):
        what = f"column {name!r} holds numbers{words}: taken for categories"
        return Role("category", f"{what}; take it for numbers with {as_numbers}")
    if reading.kind_of(_letters(different.slice(0, LOOKED_AT))) != reading.TEXT:
        return Role("category", f"column {name!r} holds numbers written as text: taken for categories")
    return Role("category")


_LIMIT = re.compile(r"[<>≤≥~]|.*[*†]$")
"""A measurement below or above what can be measured, <500, or one with a mark that points to a remark."""


def _words_among_numbers(values: Any) -> str:
    """Say which words stand among values most of which are numbers; nothing where most are not, or all are."""
    counted = Counted(values)
    if not matches(counted.look, "[0-9]") or notations.found(counted, least=0.5) is None:
        return ""
    others = [word for word in counted.words.to_pylist() if not any(sign.isdigit() for sign in word) or _LIMIT.match(word)]
    return f" beside words ({shown(others[0])})" if others else ""


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
