"""Numbers as people write them, and the one notation in which a column of text is written.

3,847   1 234 567   1'234   1.234,5   0,94      separators of thousands and of decimals
$9.42   € 12,50   12.50 EUR   -$3   ($3.00)     one currency; brackets are a minus sign
3.5%   12 %                                     12 % is 12
3,5- 1,2E+03                                    a minus sign behind the number, as SAP writes it; powers of ten
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from separatrix.data.arrow_arrays import number_array, numpy_array, text_array
from separatrix.engine.rows import Array
from separatrix.features.columns.arrow_columns import NUMBER, TEXT
from separatrix.features.columns.samples import LOOKED_AT, Counted, matches, strings

_CURRENCIES = (
    *(
        "US$",
        "A$",
        "C$",
        "R$",
        "$",
        "€",
        "£",
        "¥",
        "₹",
        "₽",
        "₩",
        "₪",
        "₺",
        "₫",
        "฿",
        "kr.",
        "kr",
        "zł",
        "Kč",
        "Rs.",
        "Rs",
        "Fr.",
    ),
    *("USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "RUB", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "AUD", "CAD", "NZD"),
    *("BRL", "MXN", "KRW", "TRY", "ZAR", "SGD", "HKD", "ILS", "THB"),
)
_CURRENCY = "(?:" + "|".join(re.escape(sign) for sign in _CURRENCIES) + ")"
_BLANK = "[ \u00a0\u2009\u202f]"
_MINUS = "[-\u2212\u2013]"
_SIGN = "[-+\u2212\u2013]?"
_THOUSANDS = {",": ",", ".": r"\.", " ": _BLANK, "'": "['\u2019]"}
_CANDIDATES = ((",", "."), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ","))
_DIGITS = "[0-9.,'\u2019 \u00a0\u2009\u202f]"
_NO_TEXT = text_array([""], pa.large_string())[0]
_POWER = "[eE][-+]?[0-9]+"
_FIRST, _LAST = rf"{_SIGN}{_BLANK}?{_CURRENCY}?{_BLANK}?{_SIGN}[0-9.,]", rf"{_BLANK}?(?:{_CURRENCY}|%)?"
_LOOSE = rf"^\(?{_FIRST}{_DIGITS}*(?:{_POWER}|{_MINUS})?{_LAST}\)?$"
_PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written."""

    thousands: str
    decimal: str
    currency: str = ""
    percent: bool = False
    kinds: ClassVar[tuple[str, ...]] = (NUMBER, TEXT)
    """The kinds of columns that are read."""

    @cached_property
    def pattern(self) -> str:
        """The regular expression that a number in this notation matches; a currency sign may be left out, % may not."""
        group = _THOUSANDS[self.thousands]
        grouped = rf"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+(?:[{self.decimal}][0-9]*)?"
        number = rf"(?:{grouped}|(?:[0-9]+(?:[{self.decimal}][0-9]*)?|[{self.decimal}][0-9]+)(?:{_POWER})?)"
        before = after = ""
        if self.currency:
            before, after = rf"(?:{re.escape(self.currency)}{_BLANK}?)?", rf"(?:{_BLANK}?{re.escape(self.currency)})?"
        if self.percent:
            after = f"{_BLANK}?%"
        signed = f"{before}{_SIGN}{_BLANK}?{number}{after}"
        return rf"^(?:\({_BLANK}?{signed}{_BLANK}?\)|{_SIGN}{_BLANK}?{signed}|{before}{number}{_BLANK}?{_MINUS}{after})$"

    def parsed(self, column: Any) -> Any:
        """Return texts as float64, null where one is missing or is no number in this notation; numbers as they are."""
        if not kinds.is_large_binary(column.type):
            return column
        coded = strings(column).dictionary_encode()
        return self._numbers(coded.dictionary).take(coded.indices)

    def _numbers(self, texts: Any) -> Any:
        words = pc.utf8_trim_whitespace(texts)
        words = pc.if_else(pc.match_substring_regex(words, self.pattern), words, pa.nulls(1, words.type)[0])
        words = pc.replace_substring(words, self.currency, "") if self.currency else words
        powers = pc.fill_null(pc.extract_regex(words, f"(?P<power>{_POWER})").field("power"), _NO_TEXT)
        words = pc.replace_substring_regex(words, _POWER, "")
        digits = pc.replace_substring_regex(words, f"[^0-9{self.decimal}]", "")
        digits = pc.binary_join_element_wise(pc.replace_substring(digits, self.decimal, "."), powers, _NO_TEXT)
        sizes = numpy_array(digits.cast(pa.float64()))
        below = numpy_array(pc.match_substring_regex(words, rf"^\(|{_MINUS}").cast(pa.float64())) == 1.0
        values = sizes.copy()
        values[below] *= -1.0
        return number_array(values, values != values)

    def is_otherwise(self, texts: Any) -> Array:
        """Tell which texts, none of them in this notation, are numbers in another one."""
        return numpy_array(pc.match_substring_regex(pc.utf8_trim_whitespace(strings(texts)), _LOOSE))

    def describe(self) -> str:
        """Return what a value should look like."""
        number = f"1{self.thousands}234{self.decimal}5"
        return f"a number such as {self.currency}{number}{'%' if self.percent else ''}"

    def state(self) -> dict[str, Any]:
        """Return the notation as JSON values."""
        return {"thousands": self.thousands, "decimal": self.decimal, "currency": self.currency, "percent": self.percent}


def is_written(column: Any) -> bool:
    """Tell whether the first values of a column of text, which is said to hold numbers, are not written plainly."""
    return found(Counted(column.slice(0, LOOKED_AT)), least=0.5) is not None


def looks_written(words: Any) -> bool:
    """Tell by some different values whether a column may be of numbers in a notation that is not the plain one."""
    return matches(words, r"[0-9]") and matches(words, _LOOSE) and not matches(words, _PLAIN, 1.0)


def found(values: Counted, least: float | None = None) -> tuple[Notation, str] | None:
    """Return the notation of (nearly) all values, or of a share of at least `least`, and what there is to say about it.

    None: there is no such notation, or the numbers are written plainly.
    """
    if not values.n or values.share(_PLAIN) == 1.0:
        return None
    signs = pc.extract_regex(values.words, f"(?P<sign>{_CURRENCY})").field("sign").drop_null()
    sign = signs.unique()[pc.mode(signs.dictionary_encode().indices)[0].as_py()["mode"]].as_py() if len(signs) else ""
    percent = values.share("%[)]?$") > 0.5
    best: Notation | None = None
    best_share = 0.0
    for thousands, decimal in _CANDIDATES:
        if best is not None and best.thousands == decimal:
            continue  # a group of three digits after every comma: these are thousands
        if thousands in (",", ".") and values.share(rf"(?:^|[^0-9])0[{thousands}][0-9]") > 0.0:
            continue  # 0,940 has no thousands
        notation = Notation(thousands, decimal, sign, percent)
        share = values.share(notation.pattern)
        if share > best_share and (values.mostly(share) or (least is not None and share >= least)):
            best, best_share = notation, share
    return None if best is None else (best, _ambiguity(best, values))


def _ambiguity(notation: Notation, values: Counted) -> str:
    """Say which reading was taken where every value has two: 3,847 is 3847, or 3.847."""
    if notation.thousands not in (",", "."):
        return ""
    other = Notation(notation.decimal, notation.thousands, notation.currency, notation.percent)
    fitting = values.fitting(notation.pattern)
    written = fitting.filter(pc.match_substring_regex(fitting, "[0-9][,.][0-9]"))
    if not len(written) or values.share(other.pattern) < values.share(notation.pattern):
        return ""
    number = notation.parsed(written.slice(0, 1).cast(pa.large_binary()))[0].as_py()
    return f"{written[0].as_py()!r} is read as {number:.15g}, since no value shows which of , and . is the decimal point"
