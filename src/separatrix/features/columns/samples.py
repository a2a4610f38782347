"""The first values of a column of text, for the questions what they are written in: cheap ones first."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data.arrow_arrays import numpy_array, text_array
from separatrix.data.column_types import MOSTLY, NOTHING
from separatrix.engine.rows import Ints

LOOKED_AT, DIFFERENT = 1000, 300
"""How many values, and of them how many different ones, a first look is given."""
CERTAIN = 50
"""From how many values on a few may be errors."""


def strings(column: Any) -> Any:
    """Return bytes as strings; what is not UTF-8 is replaced."""
    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        decoded = (None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist())
        return text_array(decoded, pa.large_string())


def matches(words: Any, pattern: str, share: float = 0.5) -> bool:
    """Tell whether at least this share of some values matches."""
    return bool(len(words)) and (pc.sum(pc.match_substring_regex(words, pattern)).as_py() or 0) >= share * len(words)


class Counted:
    """The values of the first block of a column of text, without those that are missing: the different ones, counted."""

    def __init__(self, column: Any) -> None:
        self._rows = column
        self.n = len(column) - column.null_count

    @cached_property
    def column(self) -> Any:
        """The values, row by row."""
        return self._rows.drop_null()

    @cached_property
    def look(self) -> Any:
        """A few different values, for a first look."""
        first = self._rows.slice(0, LOOKED_AT)
        values = first.drop_null() if first.null_count < len(first) else self.column.slice(0, LOOKED_AT)
        return pc.utf8_trim_whitespace(strings(values.unique().slice(0, DIFFERENT)))

    @cached_property
    def _counted(self) -> tuple[Any, Ints]:
        counts = self.column.value_counts()
        return pc.utf8_trim_whitespace(strings(counts.field("values"))), numpy_array(counts.field("counts"))

    @property
    def words(self) -> Any:
        """The different values, without the blanks around them."""
        return self._counted[0]

    @property
    def counts(self) -> Ints:
        """How often each of `words` occurs."""
        return self._counted[1]

    def share(self, pattern: str) -> float:
        """Return the share of the values that match."""
        fits = numpy_array(pc.match_substring_regex(self.words, pattern))
        return float(self.counts[fits].sum() / max(1, self.n))

    def share_of(self, parsed: Any) -> float:
        """Return the share of the values of which something could be made: `parsed` is null where not."""
        return float(self.counts[np.flatnonzero(numpy_array(parsed.is_valid()))].sum() / max(1, self.n))

    def fitting(self, pattern: str) -> Any:
        """Return the different values that match."""
        return self.words.filter(pc.match_substring_regex(self.words, pattern))

    def mostly(self, share: float) -> bool:
        """Tell whether this share of the values is enough to call them all so.

        Words that say that a value is missing do not count, as in a column of plain numbers, where most values are others.
        """
        share = share / (1.0 - self._share_of_nothing) if share > 0.5 else share
        return share > 1.0 - 1e-9 or (share > MOSTLY and self.n >= CERTAIN)

    @cached_property
    def _share_of_nothing(self) -> float:
        return self.share(NOTHING)
