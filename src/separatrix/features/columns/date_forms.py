"""Dates and times of day as people write them, and the one form in which a column of text is written.

    2024-03-01   2024-03-01T12:30:00Z   2024/3/1 12:30        year first
    25.3.2024   25/03/2024   25-Mar-2024   25 March 2024      day first; 25/Mar/2024:12:30:00 +0000, as in logs
    03/25/2024   Mar 25, 2024                                 month first
    20240325   20240325T123000                                digits only
    12:30   12:30:45   7:05 pm                                times of day

A date is the time that is written: an offset (+02:00) and fractions of a second are passed over. `parsed` gives seconds
since 1970, as Arrow's timestamps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from separatrix.data.arrow_arrays import number_array, numpy_array, text_array
from separatrix.engine.rows import Array, Ints
from separatrix.features.columns.arrow_columns import DATE, NUMBER, TEXT
from separatrix.features.columns.samples import Counted, matches, strings

SECONDS = pa.timestamp("s")
DAY = 86_400
_NO_TEXT = text_array([""], pa.large_string())[0]
_FALSE = number_array(np.zeros(1, np.bool_))[0]
_ZERO, _TWO = number_array(np.array([0, 2], np.int32))

_NAMES = "(?P<b>(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))[a-z]{0,6}[.]?"
_CLOCK = r"(?P<h>[0-9]{1,2}):(?P<n>[0-9]{2})(?::(?P<s>[0-9]{2})(?:[.,][0-9]+)?)?(?: ?(?P<p>[AaPp])[.]?[Mm][.]?)?"
_TIME = rf"(?:(?:T|,? +){_CLOCK}(?:Z| ?(?:UTC|GMT)| ?[-+][0-9]{{2}}:?(?:[0-9]{{2}})?)?)?$"
_LOG_TIME = _TIME.replace("(?:T|", "(?:T|:|", 1)
"""The same also behind a colon, as the logs of web servers have it."""
_WEEKDAY = "(?i:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?[.]?,? +)?"
_YEAR, _MONTH, _DATE = "(?P<y>[0-9]{4}|[0-9]{2})", "(?P<m>[0-9]{1,2})", "(?P<d>[0-9]{1,2})"
PATTERNS = {
    "year first": rf"^(?P<y>[0-9]{{4}})[-/.]{_MONTH}[-/.]{_DATE}{_TIME}",
    "day first": rf"^{_DATE}[-/.]{_MONTH}[-/.]{_YEAR}{_TIME}",
    "month first": rf"^{_MONTH}[-/]{_DATE}[-/]{_YEAR}{_TIME}",
    "month first, dots": rf"^{_MONTH}[.]{_DATE}[.]{_YEAR}{_TIME}",
    "day and name": rf"^{_WEEKDAY}{_DATE}(?:st|nd|rd|th|[.])?[- /.]{_NAMES},?[- /.]{_YEAR}{_LOG_TIME}",
    "name and day": rf"^{_WEEKDAY}{_NAMES}[- ]{_DATE}(?:st|nd|rd|th)?,? (?P<y>[0-9]{{4}}){_TIME}",
    "digits": r"^(?P<y>[0-9]{4})(?P<m>[0-9]{2})(?P<d>[0-9]{2})(?:T(?P<h>[0-9]{2}):?(?P<n>[0-9]{2}):?(?P<s>[0-9]{2})?Z?)?$",
    "time": rf"^{_CLOCK}$",
}
NUMERIC = ("day first", "month first", "month first, dots")
"""Forms that one date may have at once. With dots the day nearly always comes first: 5.6.2024 is not like 03/25/2024."""
UNIX = "seconds since 1970"
EXAMPLES = {
    "year first": "2024-03-25",
    "day first": "25/03/2024",
    "month first": "03/25/2024",
    "month first, dots": "03.25.2024",
    "day and name": "25-Mar-2024",
    "name and day": "Mar 25, 2024",
    "digits": "20240325",
    "time": "12:30",
    UNIX: "1711324800",
}
_MONTHS = text_array(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], pa.large_string())
_CALLED = r"(?i)date|datum|fecha|(^|[^a-z])(day|dt|when|on|time|timestamp)$"


@dataclass(frozen=True)
class DateForm:
    """How the dates of a column are written: one of the forms of `EXAMPLES`."""

    order: str
    kinds: ClassVar[tuple[str, ...]] = (TEXT, NUMBER, DATE)
    """The kinds of columns that are read."""

    def __post_init__(self) -> None:
        if self.order not in EXAMPLES:
            raise ValueError(f"the state is broken: {self.order!r} is no form of dates")

    @property
    def is_time(self) -> bool:
        """Whether these are times of day, without a date."""
        return self.order == "time"

    def parsed(self, column: Any) -> Any:
        """Return texts, numbers or dates as seconds since 1970; null where one is missing or is no date in this form.

        Beside this form, texts may always be written year first.
        """
        if kinds.is_timestamp(column.type):
            return column
        if kinds.is_floating(column.type):
            return _of_numbers(column, self.order)
        coded = strings(column).dictionary_encode()
        words = pc.utf8_trim_whitespace(coded.dictionary)
        if self.order in PATTERNS:
            dates = _extracted(words, self.order)
            if dates.null_count and self.order not in ("year first", "time"):
                dates = pc.coalesce(dates, _extracted(words, "year first"))
        else:
            dates = _of_numbers(_plain_numbers(words), self.order)
        return dates.take(coded.indices)

    def is_otherwise(self, texts: Any) -> Array:
        """Tell which texts, none of them in this form, are dates or times in another one."""
        words = pc.utf8_trim_whitespace(strings(texts))
        fits = np.zeros(len(words), np.bool_)
        for order in PATTERNS:
            fits |= numpy_array(_extracted(words, order).is_valid())
        return fits

    def describe(self) -> str:
        """Return what a value should look like."""
        return f"{'a time' if self.is_time else 'a date'} such as {EXAMPLES[self.order]}"

    def state(self) -> dict[str, Any]:
        """Return the form as JSON values."""
        return {"order": self.order}


def _extracted(words: Any, order: str) -> Any:
    """Return texts in one of the `PATTERNS` as seconds since 1970, null where they do not fit."""
    found = pc.extract_regex(words, PATTERNS[order])
    fits = numpy_array(found.is_valid())
    names = {field.name for field in found.type}

    def number(name: str, default: int) -> Ints:
        if name not in names:
            return np.full(len(words), default, np.int64)
        field = pc.struct_field(found, name)
        field = pc.if_else(pc.equal(field, _NO_TEXT), pa.NA, field)
        return numpy_array(pc.fill_null(field.cast(pa.int64()), number_array(np.array([default]))[0]))

    year, day = number("y", 1970), number("d", 1)
    if "y" in names:
        short = numpy_array(pc.fill_null(pc.equal(pc.utf8_length(pc.struct_field(found, "y")), _TWO), _FALSE))
        year = np.where(short, year + np.where(year < 69, 2000, 1900), year)
    if "b" in names:
        places = pc.index_in(pc.utf8_lower(pc.struct_field(found, "b")), _MONTHS)
        month = numpy_array(pc.fill_null(places, _ZERO)).astype(np.int64) + 1
    else:
        month = number("m", 1)
    hour, minute, second = number("h", 0), number("n", 0), number("s", 0)
    if "p" in names:
        half = pc.utf8_lower(pc.fill_null(pc.struct_field(found, "p"), _NO_TEXT))
        afternoon, morning = (numpy_array(pc.match_substring(half, letter)) for letter in "pa")
        fits = fits & ~((afternoon | morning) & ((hour > 12) | (hour == 0)))
        hour = np.where(afternoon | morning, hour % 12 + 12 * afternoon, hour)
    fits = fits & (hour < 24) & (minute < 60) & (second < 60)
    return _timestamps(year, month, day, hour * 3600 + minute * 60 + second, fits)


def _timestamps(year: Ints, month: Ints, day: Ints, seconds: Ints, fits: Array) -> Any:
    """Return dates as seconds since 1970, null where they do not fit or there is no such day."""
    fits = fits & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(fits, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    days = months.astype("datetime64[D]") + (np.where(fits, day, 1) - 1)
    fits = fits & (days.astype("datetime64[M]") == months)
    return number_array(days.astype(np.int64) * DAY + seconds, ~fits).cast(SECONDS)


def _of_numbers(column: Any, order: str) -> Any:
    """Return numbers as dates: those of eight digits by these digits, others as time since 1970.

    That is in seconds up to 10¹¹ (the year 5138), beyond it in milliseconds, microseconds or nanoseconds by the same limit.
    """
    values = numpy_array(column)
    if order == UNIX:
        size = np.abs(values)
        seconds = values / np.where(size <= 1e11, 1.0, np.where(size <= 1e14, 1e3, np.where(size <= 1e17, 1e6, 1e9)))
        there = np.abs(seconds) <= 1e11
        return number_array(np.floor(np.where(there, seconds, 0.0)).astype(np.int64), ~there).cast(SECONDS)
    fits = (values == np.floor(values)) & (values >= 10_000_000) & (values < 100_000_000) & (order == "digits")
    digits = np.where(fits, values, 0.0).astype(np.int64)
    return _timestamps(digits // 10_000, digits // 100 % 100, digits % 100, np.zeros(len(digits), np.int64), fits)


def _plain_numbers(words: Any) -> Any:
    fits = pc.match_substring_regex(words, r"^-?[0-9]{1,19}([.][0-9]*)?$")
    return pc.if_else(fits, words, pa.nulls(1, words.type)[0]).cast(pa.float64())


def looks_dated(name: str, words: Any) -> str | None:
    """Return by some different values of text the form that a column of dates may have, or None."""
    if not matches(words, "[0-9]"):
        return None
    for order, pattern in PATTERNS.items():
        if matches(words, pattern) and (order != "digits" or matches(words, "T") or is_called_date(name)):
            return order
    return None


def is_called_date(name: str) -> bool:
    """Tell whether the name of a column says that it holds dates."""
    return re.search(_CALLED, name) is not None


def found(name: str, values: Counted, least: float | None = None) -> tuple[DateForm, str] | None:
    """Return the form of (nearly) all values, of those with a share of at least `least` the most frequent; or None."""
    orders = list(PATTERNS) if least is not None else [order] if (order := looks_dated(name, values.look)) else []
    if any(order in orders for order in NUMERIC):
        orders += NUMERIC
    shares = {order: values.share_of(_extracted(values.words, order)) for order in dict.fromkeys(orders)}
    if not shares:
        return None
    best = max(shares, key=shares.__getitem__)
    if not values.mostly(shares[best]) and (least is None or shares[best] < least):
        return None
    note = ""
    if shares.get("month first") == shares.get("day first") == shares[best]:
        best = "day first"
        what = f"{values.words[0].as_py()!r} is read with the day first, since no value shows the order"
        note = f"{what}; where the month comes first, write dates as 2024-12-31"
    return DateForm(best), note


def found_in_numbers(name: str, column: Any) -> DateForm | None:
    """Return the form of a column of numbers that are called a date and have the digits of one in every row; or None."""
    if not is_called_date(name):
        return None
    values = numpy_array(column)
    values = values[values == values]
    if not len(values) or values.min() < 19_000_101 or values.max() > 21_001_231:
        return None
    return DateForm("digits") if not _of_numbers(number_array(values), "digits").null_count else None


def form_of_numbers(name: str, column: Any) -> DateForm:
    """Return the form of a column of numbers that is said to hold dates: eight digits, or time since 1970."""
    values = numpy_array(column)
    values = values[values == values]
    if not _of_numbers(number_array(values), "digits").null_count:
        return DateForm("digits")
    if np.abs(values).max() < 1e7:
        raise ValueError(f"column {name!r}: {values[0]:g} is no date: write 20240325, or seconds since 1970")
    return DateForm(UNIX)


def form_of_dates(column: Any) -> DateForm:
    """Return the form of a column of seconds since 1970: times of day are all on the first day."""
    seconds = column.cast(pa.int64())
    bounds = pc.min_max(seconds)
    is_time = bounds["min"].as_py() is not None and 0 <= bounds["min"].as_py() and bounds["max"].as_py() < DAY
    return DateForm("time" if is_time else "year first")
