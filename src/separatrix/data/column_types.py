"""Columns: numbers or text? A table's values as Arrow arrays, and the first that does not fit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from separatrix.data.arrow_arrays import numpy_array, text_array, value_array
from separatrix.data.encodings import mended
from separatrix.data.errors import DataError, no_column

WHOLE, NUMBER, TEXT = "whole", "number", "text"
TYPES = {WHOLE: pa.int64(), NUMBER: pa.float64(), TEXT: pa.string()}
MOSTLY = 0.98
"""A column of which more than this share are numbers is one of numbers, and the others are missing values."""

_WHOLE = r"^[+-]?\d{1,19}$"
_LED = r"^[+-]?0\d"
_UNLED = r"^[+-]?(0|[1-9]\d{0,18})$"
_DIGITS = r"^[+-]?\d{19,}$"
_LONG = r"^[+-]?\d{16,19}$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_WORDY = r"(?i)^[+-]?inf(inity)?$"
_GROUPED = r"^[+-]?[1-9]\d{0,2}([,'’ ]\d{3})+(\.\d*)?$"
PANDAS_INDEX = r"__index_level_\d+__"
"""The name of the column of row numbers that pandas puts last into a Parquet file."""
_NEGATIVE = r"^([−–]\d+\.?\d*|\(\d+\.?\d*\)|\d+\.?\d*[-−–])$"
NOTHING = (
    r"(?i)^(n/?a|[nk]\.a\.|<na>|not available|missing|unknown|none|null|-{1,3}|\.{1,3}|\.[a-z]|\*|#{2,}"
    r"|err|error|invalid|#(n/?a|nv|n/d)|#[¡¿]?(div/0|[a-zß-ÿ]+)[!?])$"
)
"""Words beside numbers that say that there is none; among them the errors of spreadsheets in several languages, #VALUE!."""


def kind_of(column: Any, mostly: float = MOSTLY) -> str:
    """Return what a column of strings holds: whole numbers, numbers, or text (or nothing at all, which is text).

    Examples
    --------
    >>> [kind_of(pa.array(values)) for values in (["1", None, "+2"], ["1", "2.5"], ["1", "a"])]
    ['whole', 'number', 'text']
    >>> kind_of(pa.array(["1", "2.5", "--", "unknown", "7"]))  # beside numbers, such words say that there is none
    'number'

    A number with separators of thousands, 1,204, is text, and so is (3.50): the largest values, and those below 0, must not
    be lost among the errors.
    """
    values = column.drop_null()
    if not len(values):
        return TEXT
    all_whole = _count(values[:1], _WHOLE) and _count(values, _WHOLE) == len(values)
    if all_whole and not len(numbers(values, WHOLE)[1]):
        return WHOLE
    fitting = _count(values, _NUMBER)
    if fitting < len(values):
        fitting += _count(values, _WORDY)
    if fitting == len(values):
        return NUMBER
    nothing = _count(values, NOTHING) if mostly < 1.0 and 2 * fitting > len(values) else 0
    others = len(values) - nothing
    if fitting > mostly * others and len(values) >= 50 and not _count(values, _GROUPED) + _count(values, _NEGATIVE):
        return NUMBER
    return NUMBER if nothing and fitting == others else TEXT


def has_leading_zeros(column: Any) -> bool:
    """Tell whether strings of digits have a leading zero: they are codes, such as 02134, and no numbers.

    Only the first byte of each is looked at where none begins with a zero or a sign.
    """
    begins, stops, text = _bounds(column)
    if not len(begins) or stops[-1] - begins[0] == len(begins):  # digits alone
        return False
    if not _ZERO_OR_SIGN[text[begins[stops > begins + 1]]].any():
        return False
    return _count(column, _LED) > 0


def wider(kind: str | None, other: str) -> str:
    """Return the kind that holds both."""
    order = (WHOLE, NUMBER, TEXT)
    return other if kind is None else order[max(order.index(kind), order.index(other))]


def _count(values: Any, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(values, pattern)).as_py() or 0


def is_infinite(text: str) -> bool:
    """Tell whether a value is an infinity in letters."""
    return re.match(_WORDY, text) is not None


def says_nothing(text: str) -> bool:
    """Tell whether a word beside numbers says that there is none."""
    return re.match(NOTHING, text) is not None


def inexact(column: Any) -> bool:
    """Tell whether a column of strings has a whole number that neither int64 nor float64 holds exactly."""
    long = column.filter(pc.match_substring_regex(column, _DIGITS)).to_pylist()
    if any(len(text) > 300 for text in long):  # more digits than float64 has
        return True
    return any(int(float(text)) != int(text) and not -(1 << 63) <= int(text) < 1 << 63 for text in long)


def is_rounded(column: Any) -> bool:
    """Tell whether a column of strings has a whole number that float64 rounds, as an account number may be."""
    long = column.filter(pc.match_substring_regex(column, _LONG)).to_pylist()
    return any(int(float(text)) != int(text) for text in long)


def trimmed(column: Any, missing: Sequence[str]) -> Any:
    """Return strings without the blanks around them, null where they stand for a missing value."""
    bare = _bare(column)
    return pc.if_else(pc.is_in(bare, value_set=text_array(missing)), pa.NA, bare)


def numbers(column: Any, kind: str, is_label: bool = False) -> tuple[Any, NDArray[np.int64]]:
    """Return trimmed strings as numbers, null where they are none, and the places of those; no label has leading zeros."""
    pattern = _NUMBER if kind != WHOLE else _UNLED if is_label else _WHOLE
    fits = pc.match_substring_regex(column, pattern)
    plain = pc.replace_substring_regex(pc.if_else(fits, column, pa.NA), r"^\+", "")
    try:
        converted = pc.cast(plain, TYPES[kind])
    except pa.ArrowInvalid:  # of 19 digits, some are too large
        whole = [None if text is None else int(text) for text in plain.to_pylist()]
        fitting = [None if value is None or not -(1 << 63) <= value < 1 << 63 else value for value in whole]
        converted = value_array(fitting).cast(TYPES[kind])
    lost = pc.and_(pc.is_null(converted), pc.is_valid(column))
    return converted, np.flatnonzero(numpy_array(lost))


def whole_labels(column: Any) -> Any:
    """Return strings as whole numbers, with or without blanks around them; raise where one is none, or has leading zeros."""
    try:
        whole = pc.cast(column, TYPES[WHOLE])
    except pa.ArrowInvalid:
        column = pc.utf8_trim_whitespace(column)
        whole = pc.cast(column, TYPES[WHOLE])
    if has_leading_zeros(column):
        raise pa.ArrowInvalid("a label has leading zeros")
    return whole


def stripped(column: Any, missing: Sequence[str]) -> Any:
    """Return strings without the blanks around them, null where what had blanks stands for a missing value."""
    bare = _bare(column)
    if bare is column:
        return column
    lengths = numpy_array(pc.binary_length(bare))
    # Texts: to look each up among the markers would take longer than to strip them.
    if not np.any(lengths <= max(map(len, missing), default=-1)):
        return bare
    lost = pc.and_(pc.is_in(bare, value_set=text_array(missing)), pc.not_equal(bare, column))
    return pc.if_else(lost, pa.NA, bare)


def _bounds(column: Any) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Return where the strings that are not empty begin and end in their bytes, and the bytes."""
    _, ends, data = column.buffers()
    if data is None or not len(column):
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.uint8)
    bounds = np.frombuffer(ends, np.int32, len(column) + 1, column.offset * 4)
    begins, stops = bounds[:-1], bounds[1:]
    filled = stops > begins
    if not filled.all():
        begins, stops = begins[filled], stops[filled]
    return begins, stops, np.frombuffer(data, np.uint8)


def _bare(column: Any) -> Any:
    """Return strings without the blanks around them, of ASCII or not; the same object where there are none.

    Only the first and the last byte of each are looked at where no blank begins or ends with such a byte.
    """
    begins, stops, text = _bounds(column)
    if not len(begins) or not (_BLANK[text[begins]].any() or _BLANK[text[stops - 1]].any()):
        return column
    bare = pc.utf8_trim_whitespace(column)
    begins_now, stops_now, _ = _bounds(bare)
    return column if (stops_now - begins_now).sum() == (stops - begins).sum() else bare


_ZERO_OR_SIGN = np.zeros(256, np.bool_)
_ZERO_OR_SIGN[[ord(sign) for sign in "0+-"]] = True


BLANKS = [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
"""The characters of Unicode that are blank."""
_BLANK = np.zeros(256, np.bool_)
"""The bytes with which a blank begins or ends in UTF-8: the no-break space is C2 A0, the ideographic one E3 80 80."""
_BLANK[[byte for code in BLANKS for byte in (chr(code).encode()[0], chr(code).encode()[-1])]] = True


def decoded(column: Any, mending: bool = False) -> tuple[Any, list[int], list[int]]:
    """Return bytes as strings, null where they are not UTF-8, the places of those, and the places of `mended` ones."""
    try:
        return pc.cast(column, pa.string()), [], []
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        bad: list[int] = []
        repaired: list[int] = []
        for i, value in enumerate(column.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                texts.append(mended(value) if mending else None)
                (bad if texts[-1] is None else repaired).append(i)
        return text_array(texts), bad, repaired


def without_nan(column: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return floats with null for NaN, and the places of infinities."""
    finite = pc.is_finite(column)
    if pc.all(finite).as_py() is not False:
        return column, np.empty(0, np.int64)
    infinite = np.flatnonzero(np.isinf(numpy_array(column)))
    return pc.if_else(finite, column, pa.NA), infinite


def label_name(
    names: Sequence[str], label: str | int | None, default: str | None, where: str, needed: bool = True
) -> str | None:
    """Return the name of the label's column: as named, as counted from 0 (from −1 at the end), or the default, or the last.

    Where it is not `needed`, there may be none of the name: then None.

    Examples
    --------
    >>> label_name(["a", "b", "kind"], "1", None, "points.csv")
    'b'
    >>> label_name(["a", "kind", "__index_level_0__"], None, None, "points.parquet")
    'kind'
    """
    if not needed:
        return str(label) if label in names else None
    if label is None:
        return default or next((name for name in reversed(names) if not re.fullmatch(PANDAS_INDEX, name)), names[-1])
    if label in names:
        return str(label)
    try:
        place = int(label)
    except ValueError:
        raise DataError(f"{where}: {no_column(label, names)}") from None
    if not -len(names) <= place < len(names):
        raise DataError(f"{where}: there is no column {place}; there are {len(names)}, counted from 0")
    return names[place]
