"""Labels as they are read: text without the blanks around it, and rows that have none.

A row has no label where its label is null, NaN, empty, a question mark or the word nan: no class is ever called "nan".
Labels that are numbers are compared as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.batches import LABEL_WORDS
from separatrix.data.errors import DataError, Origin, counted, named
from separatrix.data.options import MISSING_LABEL

NO_LABEL = ("", "?", "#N/A", "nan", "NaN", "NAN", "-nan")

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_PLAIN = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
"""A number without leading zeros."""


@dataclass
class Unlabelled:
    """The rows of a source that have no label: counted, so that they are left out, or, where `raising`, an error.

    Attributes
    ----------
    count : how many there are so far
    first : the place of the first one
    words : words for a missing label that are labels
    """

    raising: bool = False
    count: int = 0
    first: str = ""
    words: tuple[str, ...] = ()

    @classmethod
    def as_chosen(cls, missing_label: str) -> Unlabelled:
        """Return the counter for "skip", the one that raises for "raise", or, for "keep", one to which words are labels."""
        return cls(missing_label == "raise", words=words_kept(missing_label))

    def kept(self, labels: Any, origin: Origin) -> NDArray[np.bool_] | None:
        """Tell which rows of a batch have a label; None if all have one."""
        arrow_type = str(getattr(labels, "type", ""))
        if arrow_type.startswith(("list", "large_list")):
            raise DataError(f"{origin.file}: the label holds lists, and a label is one value; name its column with label=")
        if arrow_type.startswith(("date", "time", "duration")):
            what = f"the label holds dates or times ({arrow_type}), which are no names of classes"
            raise DataError(f"{origin.file}: {what}; name its column with label=, or write them as text")
        if (row := _first_infinite(labels)) is not None:
            raise DataError(f"{origin.place(row)}: the label is infinity, which is no name of a class")
        missing = without_label(labels, self.words)
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
        *markers, last = ["empty", *(word for word in ("NA", "?", "null") if word not in self.words)]
        missing = f"{', '.join(markers)} or {last}" if markers else last
        return f"left out {counted(self.count, 'row')} without a label ({missing}), the first: {self.first}"


def _first_infinite(labels: Any) -> int | None:
    """Return the first row whose label, in a NumPy or an Arrow array, is an infinite number; None if there is none."""
    if not isinstance(labels, np.ndarray):
        if str(labels.type) not in ("halffloat", "float", "double"):
            return None
        from separatrix.data.arrow_arrays import numpy_array

        labels = numpy_array(labels)
    if labels.dtype.kind != "f" or not (infinite := np.isinf(labels)).any():
        return None
    return int(np.argmax(infinite))


def words_kept(missing_label: str) -> tuple[str, ...]:
    """Return which words for a missing label are labels, by what is to be done with missing ones."""
    if missing_label not in MISSING_LABEL:
        raise DataError(f"missing_label={missing_label!r}: it must be skip, raise or keep")
    return LABEL_WORDS if missing_label == "keep" else ()


def one_class(label: Any, unlabelled: Unlabelled, remedy: bool = True) -> str:
    """Return the message about examples of one class, which may be all that is left; with the remedy, if there is one."""
    message = f"a boundary needs two classes, but there is only 1 class: {label!r}"
    if not unlabelled.count:
        return message
    kept = "; if NA or such a word is a label, keep it with missing_label='keep'" if remedy else ""
    return f"{message}; {unlabelled.note}{kept}"


def without_label(labels: Any, words: Collection[str] = ()) -> NDArray[np.bool_] | None:
    """Tell which labels, of a NumPy or an Arrow array, are missing, except `words`; None if none is.

    Examples
    --------
    >>> without_label(np.array([1.0, np.nan])), without_label(np.array(["a", "b"]))
    (array([False,  True]), None)
    """
    markers = [marker for marker in NO_LABEL if marker not in words]
    if isinstance(labels, np.ndarray):
        if labels.dtype.kind == "f":
            missing: NDArray[np.bool_] = np.isnan(labels)
        elif labels.dtype.kind in "US":
            missing = np.isin(np.char.strip(labels), np.array(markers, labels.dtype.kind))
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
        nameless = pc.is_in(trimmed, value_set=text_array(markers).cast(trimmed.type))
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


def as_one(labels: Sequence[Any]) -> list[Any]:
    """Return the labels; where all are numbers in text and some are equal, the numbers.

    A file with gaps in its labels may have 1.0 where another has 1. A number with leading zeros is a name: 01 is not 1.

    Examples
    --------
    >>> as_one(["1.0", "0", "1"]), as_one(["1", "1.0", "maybe"]), as_one(["01", "1"])
    ([1, 0, 1], ['1', '1.0', 'maybe'], ['01', '1'])
    """
    if not all(isinstance(label, str) and _PLAIN.fullmatch(label) for label in labels):
        return list(labels)
    values = [Decimal(label) for label in labels]
    is_whole = all(value == int(value) for value in values)
    numbers: list[Any] = [int(value) if is_whole else float(value) for value in values]
    return numbers if len(set(numbers)) == len(set(values)) < len(labels) else list(labels)


def matching(labels: Sequence[Any], classes: Sequence[Any]) -> dict[Any, Any]:
    """Return the class that is meant by each label that is not written as one: the only one that differs just a little.

    By equal numbers (1 and 1.0), by full stops at the end, or by case.

    Examples
    --------
    >>> matching(["YES", "no.", "maybe"], ["no", "yes"]), matching([1.0], ["0", "1"]), matching(["yes"], ["YES", "Yes"])
    ({'YES': 'yes', 'no.': 'no'}, {1.0: '1'}, {})
    """
    meant: dict[Any, Any] = {}
    for key in (_number, _without_stop, lambda label: _without_stop(label).casefold()):
        classes_by_key: dict[Any, list[Any]] = {}
        for each in classes:
            classes_by_key.setdefault(key(each), []).append(each)
        classes_by_key.pop(None, None)
        for label in labels:
            alone = classes_by_key.get(key(label), ())
            if label not in meant and len(alone) == 1:
                meant[label] = alone[0]
    return {label: meant[label] for label in labels if label in meant}


def matched(pairs: Mapping[Any, Any]) -> list[str]:
    """Return a note that says which labels were taken for classes that are written otherwise, full stops apart.

    Examples
    --------
    >>> matched({"TRUE": "True", "1": 1, "no.": "no"})
    ["the label 'TRUE' is taken for the class 'True'"]
    """
    others = [(label, each) for label, each in pairs.items() if _without_stop(label) != _without_stop(each)]
    if not others:
        return []
    labels, classes = (" and ".join(repr(str(each)) for each in side) for side in zip(*others[:3], strict=True))
    more = f" (and {len(others) - 3} more)" if len(others) > 3 else ""
    if len(others) == 1:
        return [f"the label {labels} is taken for the class {classes}"]
    return [f"the labels {labels} are taken for the classes {classes}{more}"]


def _number(label: Any) -> Decimal | None:
    """Return the number that a label is, exactly."""
    if isinstance(label, str):
        return Decimal(label) if _NUMBER.fullmatch(label) else None
    return Decimal(label) if isinstance(label, int | float) and not isinstance(label, bool) else None


def _without_stop(label: Any) -> str:
    return str(label).rstrip(".")


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
    """Return a note for labels that differ only in case, and one for equal numbers: they may be meant as one class, or are.

    Examples
    --------
    >>> alike(["No", "Yes", "no", "maybe"])
    ["the labels 'No' and 'no' differ only in case, and are different classes; if they are one, write them alike"]
    >>> alike(["0", "1", "1.0"])
    ["the labels '1' and '1.0' are equal numbers: taken for one class"]
    >>> alike(["01", "1"])
    ["the labels '01' and '1' are equal numbers: are they one class?"]
    """
    words: dict[str, list[str]] = {}
    numbers: dict[Decimal, list[str]] = {}
    for label in sorted(label for label in labels if isinstance(label, str)):
        words.setdefault(label.casefold(), []).append(label)
        if _NUMBER.fullmatch(label):
            numbers.setdefault(Decimal(label), []).append(label)
    taken = "taken for one class" if as_one(labels) != list(labels) else "are they one class?"
    return [
        *_alike(words.values(), "differ only in case, and are different classes; if they are one, write them alike"),
        *_alike(numbers.values(), f"are equal numbers: {taken}"),
    ]


def lonely(counts: Mapping[Any, int]) -> list[str]:
    """Return a note for up to three labels that occur once beside frequent ones: totals, second headers, typing errors.

    Examples
    --------
    >>> lonely({"no": 80, "yes": 70, "150": 1})
    ["the label '150' occurs in 1 row, every other one in 70 or more: is that row an example?"]
    >>> lonely({"no": 80, "yes": 70, "maybe": 2})
    []
    """
    once = [str(label) for label, count in counts.items() if count == 1]
    others = [count for count in counts.values() if count > 1]
    if not 1 <= len(once) <= 3 or len(others) < 2 or min(others) < 10:
        return []
    labels, are = ("labels", "occur in 1 row each") if len(once) > 1 else ("label", "occurs in 1 row")
    question = "are those rows examples?" if len(once) > 1 else "is that row an example?"
    return [f"the {labels} {', '.join(map(repr, once))} {are}, every other one in {min(others):,} or more: {question}"]


def _alike(groups: Iterable[list[str]], how: str) -> list[str]:
    several = [" and ".join(map(repr, same)) for same in groups if len(same) > 1]
    if not several:
        return []
    more = f" (and {len(several) - 3} more)" if len(several) > 3 else ""
    return [f"the labels {', '.join(several[:3])}{more} {how}"]
