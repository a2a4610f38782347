"""Values that are not written as the others of their column are: missing while learning, and later an error or missing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow.types as kinds

from separatrix.data.arrow_arrays import number_array, numpy_array
from separatrix.data.errors import shown
from separatrix.features.columns.arrow_columns import Place
from separatrix.features.columns.roles import Form


class Misfits(NamedTuple):
    """How many there are in a column, the first of them, and its row in the table where it was found."""

    n: int = 0
    first: str = ""
    row: int = 0

    @classmethod
    def of(cls, column: Any, parsed: Any) -> Misfits:
        """Return the values of a column of which nothing could be made."""
        rows = np.flatnonzero(numpy_array(column.is_valid()) & ~numpy_array(parsed.is_valid()))
        first = column[int(rows[0])].as_py()
        text = first.decode("utf-8", "replace") if kinds.is_large_binary(column.type) else f"{first:g}"
        return cls(len(rows), text, int(rows[0]))

    def __add__(self, other: Misfits) -> Misfits:  # type: ignore[override]
        return Misfits(self.n + other.n, self.first if self.n else other.first, self.row)

    def note(self, name: str, form: Form) -> str:
        """Say what was learned from as missing."""
        what = "value is" if self.n == 1 else "values are"
        return f"column {name!r}: {self.n:,} {what} not {form.describe()} ({shown(self.first)}): taken for missing"

    def error(self, name: str, form: Form, place: Place) -> ValueError:
        """Return the error for the first of them."""
        return ValueError(
            f"{place(self.row)}, column {name!r}: {shown(self.first)} is not {form.describe()}, as those learned from are; "
            f"mend it, or train with roles={{{name!r}: 'category'}}"
        )


def refused(column: Any, parsed: Any, form: Form, were_learned_from: bool) -> Misfits | None:
    """Return the values of a column for which it cannot be used, or None.

    Where misfits were learned from, they are missing; but not if more of the numbers or dates are written in another way
    than in the form: then the column would be lost without a word.
    """
    if parsed.null_count == column.null_count:
        return None
    if not were_learned_from:
        return Misfits.of(column, parsed)
    if not kinds.is_large_binary(column.type):
        return None
    rows = np.flatnonzero(numpy_array(column.is_valid()) & ~numpy_array(parsed.is_valid()))
    rows = rows[form.is_otherwise(column.take(number_array(rows)))]
    if len(rows) <= len(parsed) - parsed.null_count:
        return None
    first = int(rows[0])
    return Misfits(len(rows), column[first].as_py().decode("utf-8", "replace"), first)
