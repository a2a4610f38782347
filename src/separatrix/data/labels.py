"""Labels as they are read: text without the blanks around it, and rows that have none.

A row has no label where its label is null, NaN, empty, a question mark or the word nan: no class is ever called "nan".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.errors import DataError, Origin, counted, named

NO_LABEL = ("", "?", "#N/A", "nan", "NaN", "NAN", "-nan")
CHOICES = ("skip", "raise")


@dataclass
class Unlabelled:
    """The rows of a source that have no label: counted, so that they are left out, or, where `raising`, an error.

    Attributes
    ----------
    count : how many there are so far
    first : the place of the first one
    """

    raising: bool = False
    count: int = 0
    first: str = ""

    @classmethod
    def as_chosen(cls, missing_label: str) -> Unlabelled:
        """Return the counter for "skip", or the one that raises for "raise"."""
        if missing_label not in CHOICES:
            raise DataError(f"missing_label={missing_label!r}: it must be skip or raise")
        return cls(missing_label == "raise")

    def kept(self, labels: Any, origin: Origin) -> NDArray[np.bool_] | None:
        """Tell which rows of a batch have a label; None if all have one."""
        arrow_type = str(getattr(labels, "type", ""))
        if arrow_type.startswith(("list", "large_list")):
            raise DataError(f"{origin.file}: the label holds lists, and a label is one value; name its column with label=")
        if arrow_type.startswith(("date", "time", "duration")):
            what = f"the label holds dates or times ({arrow_type}), which are no names of classes"
            raise DataError(f"{origin.file}: {what}; name its column with label=, or write them as text")
        missing = without_label(labels)
        if missing is None:
            return None
        first = origin.place(int(np.argmax(missing)))
        if self.raising:
            raise DataError(f"{first}: the label is missing; leave such rows out with missing_label='skip'")
        self.first = self.first or first
        self.count += int(np.count_nonzero(missing))
        return ~missing

    @property
    def note(self) -> str:
        """What a person is told; nothing if every row has a label."""
        if not self.count:
            return ""
        return f"left out {counted(self.count, 'row')} without a label (empty, NA, ? or null), the first: {self.first}"


def without_label(labels: Any) -> NDArray[np.bool_] | None:
    """Tell which labels, of a NumPy or an Arrow array, are missing; None if none is.

    Examples
    --------
    >>> without_label(np.array([1.0, np.nan])), without_label(np.array(["a", "b"]))
    (array([False,  True]), None)
    """
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind == "f":
            missing: NDArray[np.bool_] = np.isnan(labels)
        elif labels.dtype.kind in "US":
            missing = np.isin(np.char.strip(labels), np.array(NO_LABEL, labels.dtype.kind))
        else:
            return None
        return missing if missing.any() else None
    import pyarrow as pa
    import pyarrow.compute as pc

    from separatrix.data.arrow_arrays import numpy_array, text_array, value_array

    if pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type):
        distinct = (
            labels.dictionary_encode() if isinstance(labels, pa.Array) else labels.combine_chunks().dictionary_encode()
        )
        trimmed = pc.utf8_trim_whitespace(distinct.dictionary)
        nameless = pc.is_in(trimmed, value_set=text_array(NO_LABEL).cast(trimmed.type))
        if not labels.null_count and not pc.any(nameless).as_py():
            return None
        of_entry = np.append(numpy_array(nameless), True)
        missing = value_array([len(distinct.dictionary)]).cast(distinct.indices.type)[0]
        return of_entry[numpy_array(pc.fill_null(distinct.indices, missing)).astype(np.int64)]
    is_missing = pc.is_null(labels, nan_is_null=pa.types.is_floating(labels.type))
    return numpy_array(is_missing) if pc.any(is_missing).as_py() else None


def labels_at(labels: Any, rows: NDArray[np.int64]) -> Any:
    """Return the labels of some rows, of a NumPy or an Arrow array."""
    if isinstance(labels, np.ndarray):
        return labels[rows]
    from separatrix.data.arrow_arrays import number_array

    return labels.take(number_array(rows))


def strangers(unknown: dict[Any, int], n: int, name: str) -> str:
    """Return a note on held-out labels that no training row has, with their counts among n rows; raise if that is all.

    Examples
    --------
    >>> strangers({"bird": 2, "fish": 1}, 10, "test.csv")
    '3 held-out rows have labels that no training row has, counted as wrong: bird (2), fish (1)'
    """
    total, rest = sum(unknown.values()), " …" if len(unknown) > 6 else ""
    if total == n:
        labels = ", ".join(named(str(label)[:40]) for label in list(unknown)[:6])
        raise DataError(f"{name}: none of the {counted(n, 'held-out row')} has a label of a training row: {labels}{rest}")
    have = counted(total, "held-out row has a label", "held-out rows have labels")
    listed = ", ".join(f"{named(label)} ({count:,})" for label, count in list(unknown.items())[:6])
    return f"{have} that no training row has, counted as wrong: {listed}{rest}"


def alike(labels: Sequence[Any]) -> list[str]:
    """Return a note for labels that differ only in case, and one for equal numbers: they may be meant as one class.

    Examples
    --------
    >>> alike(["No", "Yes", "no", "maybe"])
    ["the labels 'No' and 'no' differ only in case: are they one class?"]
    >>> alike(["0", "1", "1.0"])
    ["the labels '1' and '1.0' are equal numbers: are they one class?"]
    """
    words: dict[str, list[str]] = {}
    numbers: dict[float, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            words.setdefault(label.casefold(), []).append(label)
            if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", label):
                numbers.setdefault(float(label), []).append(label)
    return [*_alike(words.values(), "differ only in case"), *_alike(numbers.values(), "are equal numbers")]


def _alike(groups: Iterable[list[str]], how: str) -> list[str]:
    several = [" and ".join(map(repr, same)) for same in groups if len(same) > 1]
    if not several:
        return []
    more = f" (and {len(several) - 3} more)" if len(several) > 3 else ""
    return [f"the labels {', '.join(several[:3])}{more} {how}: are they one class?"]
