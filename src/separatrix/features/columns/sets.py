"""Sets written in one field, Action|Adventure: which columns hold them, and what their items are separated by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data.arrow_arrays import numpy_array
from separatrix.features.columns.categories import UNIT, items_of
from separatrix.features.columns.samples import LOOKED_AT, Counted

DELIMITERS = ("|", ";", ",", "/")
"""What may separate items. The first two seldom occur in other texts; for the others more is asked."""
_STRONG = DELIMITERS[:2]
_ROWS = 4 * LOOKED_AT
_LETTERS, _WORDS = 40, 3.0
"""An item has fewer characters and words than this on average."""
_FEWEST = 10
_USES = 4.0
"""So often an item occurs on average at least."""
_MORE = 3.0
"""An item occurs so many times as often as the whole text does."""


def looks_set(words: Any) -> list[str]:
    """Return the delimiters by which some different values may be sets."""
    if not len(words) or (pc.mean(pc.binary_length(words)).as_py() or 0.0) > 5 * _LETTERS:
        return []
    found = [delimiter for delimiter in DELIMITERS if _share(words, delimiter) >= (0.1 if delimiter in _STRONG else 0.3)]
    return [] if "/" in found and _share(words, "://") > 0.0 else found


def _share(words: Any, delimiter: str) -> float:
    return (pc.sum(pc.match_substring(words, delimiter)).as_py() or 0) / len(words)


def found(values: Counted) -> str | None:
    """Return the delimiter of the first of `DELIMITERS` by which the values are sets, or None.

    Free text with commas, "Springfield, IL" and "Smith, John" are none: their parts are seldom the same, or there are always
    as many, or those that come first come nowhere else.
    """
    for delimiter in looks_set(values.look):
        if _are_sets(values.column.slice(0, _ROWS), delimiter):
            return delimiter
    return None


def _are_sets(column: Any, delimiter: str) -> bool:
    items, rows = items_of(column, delimiter)
    lengths = np.bincount(rows, minlength=len(column))
    several = np.flatnonzero(lengths > 1)
    if len(several) < _FEWEST:
        return False
    coded = items.dictionary_encode()
    codes = numpy_array(coded.indices)
    different = coded.dictionary
    n_whole = len(column.unique())
    if len(items) < _USES * len(different) or len(items) * n_whole < _MORE * len(column) * len(different):
        return False
    letters = different.cast(pa.large_string())
    if pc.mean(pc.utf8_length(letters)).as_py() > _LETTERS or _n_words(letters) > _WORDS:
        return False
    # In a record, such as a name or an address, a part has its place; an item of a set may come first or later.
    first = np.concatenate([[True], rows[1:] != rows[:-1]])
    n_first, n_all = (np.bincount(codes[which], minlength=len(different)) for which in (first, slice(None)))
    anywhere = (n_first > 0) & (n_first < n_all)
    if n_all[anywhere].sum() < 0.5 * len(items):
        return False
    commonest = np.bincount(lengths[several]).max() / len(several)
    singles = np.count_nonzero(lengths == 1) / len(column)
    return delimiter in _STRONG or bool(commonest < 0.95 or singles >= 0.1)


def _n_words(texts: Any) -> float:
    return float(pc.mean(pc.count_substring_regex(texts, r"[^\s]+")).as_py())


def delimiter_of(values: Counted) -> str:
    """Return the delimiter that the most values have: of a column that is said to hold sets."""
    if _share(values.words, UNIT) > 0.0 or not values.n:
        return UNIT
    shares = {delimiter: _share(values.words, delimiter) for delimiter in DELIMITERS}
    return max(shares, key=shares.__getitem__)
