"""Columns of dates: several columns of numbers and of categories made of one.

The features of a date are those of its ordinal and of its year as numbers, its month and its day of the week as categories
and, where there is a time that is not always midnight, its hour as both: a few rows show what follows from "hour > 17" that
do not have every hour. A time of day has an ordinal, and its hour as a category.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from separatrix.data.arrow_arrays import number_array, numpy_array, text_array
from separatrix.engine.rows import Array, Floats, Ints
from separatrix.features.columns.categories import CategoryColumn
from separatrix.features.columns.date_forms import DAY
from separatrix.features.columns.numbers import NumberColumn

_FIRST_DAY = 719_162
_DAY_2000 = 10_957
"""Days from 0001-01-01 to 1970-01-01, and from there to 2000-01-01. Bins are those of days since the former, which are above
0; where days and years are scaled, they are counted from 2000 on, which loses fewer digits."""
MONTHS = [str(month) for month in range(1, 13)]
WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
HOURS = [str(hour) for hour in range(24)]


class OrdinalColumn(NumberColumn):
    """Days since 0001-01-01, or seconds since midnight, named as dates or times."""

    def __init__(self, name: str, is_time: bool, numbers: str, n_bins: int, thermometer: bool, sample: int) -> None:
        super().__init__(name, numbers, n_bins, thermometer, sample)
        self.is_time = is_time

    def spelled(self, x: float) -> str:
        """Return an ordinal as a date or a time."""
        seconds = round(x) if self.is_time else round((x - _FIRST_DAY) * DAY)
        text = str(np.datetime64(seconds, "s"))
        if self.is_time:
            return text[-8:].removesuffix(":00")
        return text.removesuffix("T00:00:00").removesuffix(":00").replace("T", " ")


class DateColumn:
    """One column of dates, as several columns of numbers and categories."""

    role = "date"

    def __init__(self, name: str, is_time: bool, numbers: str, n_bins: int, thermometer: bool, sample: int) -> None:
        self.name, self.is_time = name, is_time
        how = ("bins" if numbers == "bins" else "standard", n_bins, thermometer, sample)
        self.ordinal = OrdinalColumn(name, is_time, *how)
        self.year, self.clock = NumberColumn(f"{name} year", *how), NumberColumn(f"{name} hour", *how)
        self.month, self.weekday, self.hour = (
            CategoryColumn(f"{name} {what}", len(HOURS), 1) for what in ("month", "day of week", "hour")
        )

    @property
    def n(self) -> int:
        """How many dates were learned from, the missing ones apart."""
        return self.ordinal.n

    @property
    def n_missing(self) -> int:
        """How many dates were missing."""
        return self.ordinal.n_missing

    @property
    def columns(self) -> dict[str, NumberColumn | CategoryColumn]:
        """The columns of which this one is made."""
        columns: dict[str, NumberColumn | CategoryColumn] = {"ordinal": self.ordinal}
        if not self.is_time:
            columns |= {"year": self.year, "month": self.month, "weekday": self.weekday}
            columns |= {"clock": self.clock}
        return columns | {"hour": self.hour}

    @property
    def used(self) -> list[NumberColumn | CategoryColumn]:
        """Those that have features: the hour has none where it is always midnight."""
        return [column for column in self.columns.values() if column not in (self.hour, self.clock) or self._has_hours]

    @property
    def _has_hours(self) -> bool:
        return any(hour.as_py() != b"0" for hour in self.hour.values)

    def learn(self, column: Any, keys: Array) -> None:
        """Learn from a block of seconds since 1970."""
        self.ordinal.learn(self._ordinals(_seconds(column)), keys)
        there = numpy_array(column.is_valid())
        present = column.drop_null()
        for part, values in self._derived(present):
            part.learn(values if isinstance(part, NumberColumn) else values.dictionary_decode(), keys[there])

    def settle(self) -> None:
        """Fix the features."""
        for column in self.columns.values():
            column.settle()

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(column.width for column in self.used)

    @property
    def variance(self) -> float:
        """The sum of those of its columns."""
        return sum(column.variance for column in self.used)

    def parts(self, column: Any, base: int) -> Iterator[tuple[Any, Any, int]]:
        """Yield each column that has features with its values and its first feature."""
        used = self.used
        derived = [(self.ordinal, self._ordinals(_seconds(column))), *self._derived(column)]
        for part, values in derived:
            if part in used:
                yield part, number_array(values) if isinstance(part, NumberColumn) else values, base
                base += part.width

    def _ordinals(self, seconds: Floats) -> Floats:
        return seconds if self.is_time else seconds / DAY + (_FIRST_DAY if self.ordinal.numbers == "bins" else -_DAY_2000)

    def _derived(self, column: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the columns beside the ordinal with their values."""
        seconds = _seconds(column)
        missing = seconds != seconds
        moments = np.where(missing, 0.0, seconds).astype(np.int64)
        days = moments // DAY
        if not self.is_time:
            months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            first = 1970 if self.year.numbers == "bins" else -30
            yield self.year, np.where(missing, np.nan, months // 12 + first)
            yield self.month, _coded(months % 12, MONTHS, missing)
            yield self.weekday, _coded((days + 3) % 7, WEEKDAYS, missing)
            yield self.clock, np.where(missing, np.nan, moments % DAY // 3600)
        yield self.hour, _coded(moments % DAY // 3600, HOURS, missing)

    def _place(self, k: int) -> tuple[NumberColumn | CategoryColumn, int]:
        for column in self.used:
            if k < column.width:
                return column, k
            k -= column.width
        raise IndexError(k)

    def names_of(self, k: int) -> list[str]:
        """Return the name of feature k."""
        column, k = self._place(k)
        return column.names_of(k)

    def spread(self, weights: Floats) -> float | None:
        """Return the sum of what `spread` gives for the columns of which this one is made; None if it is None for one."""
        parts = np.split(weights, np.cumsum([column.width for column in self.used])[:-1], axis=1)
        spreads = [column.spread(part) for column, part in zip(self.used, parts, strict=True)]
        return None if None in spreads else math.fsum(filter(None, spreads))

    def has_unnamed(self, k: int) -> bool:
        """Tell whether feature k stands for more than its names: never."""
        return False

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned."""
        states: dict[str, Any] = {}
        arrays: dict[str, Array] = {}
        for key, column in self.columns.items():
            states[key], of_column = column.state()
            arrays |= {f"{key}.{name}": array for name, array in of_column.items()}
        return states, arrays

    def restore(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        for key, column in self.columns.items():
            of_column = {name.removeprefix(f"{key}."): array for name, array in arrays.items() if name.startswith(f"{key}.")}
            column.restore(state[key], of_column)


def _seconds(column: Any) -> Floats:
    """Return seconds since 1970, NaN where missing."""
    return numpy_array(column.cast(pa.int64())).astype(np.float64)


def _coded(codes: Ints, names: list[str], missing: Array) -> Any:
    """Return a column of categories by their numbers."""
    return pa.DictionaryArray.from_arrays(number_array(codes.astype(np.int8), missing), text_array(names, pa.large_binary()))
