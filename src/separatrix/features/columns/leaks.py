"""Columns that alone predict the label, nearly without a mistake: often they are known only once the label is.

The question is asked of a sample of the rows, chosen by a scrambling of their numbers: a file sorted by label is sampled
evenly. Each value of a column predicts the most frequent label of the other rows with that value. A number also predicts
that of its neighbours in the order of the numbers: so a row number that runs through one class after the other is found.
The row that is predicted is left out of both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from separatrix.data.arrow_arrays import number_array, numpy_array
from separatrix.engine.rows import Array, Ints
from separatrix.features.columns.arrow_columns import Frame
from separatrix.features.columns.numbers import row_keys
from separatrix.features.columns.schema import Schema

SAMPLE, CELLS = 10_000, 1 << 21
"""The largest number of rows sampled, and of their values; also of the values that wait for it."""
FEWEST = 50
"""The smallest number of rows that shows anything."""
RARE = 10
"""A class with fewer rows in the sample shows nothing."""
ACCURACY, REMOVED = 0.99, 0.95
"""What a column that alone predicts the label reaches: accuracy, and the share of the errors of always predicting the most
frequent class that it removes."""
GLANCE, GLANCED_ERRORS = 256, 0.25
"""About so many rows, half of them of the most frequent class, are looked at first; a column that gets more than this share
of the others wrong is not looked at further."""
MOST_NAMED = 5
"""Of more columns only the best are named."""
NEIGHBOURS = 3
"""How many neighbours on each side predict the label of a number."""


class Telling(NamedTuple):
    """A column that alone predicts the label, with the share of the sampled rows that it predicts correctly."""

    column: str
    accuracy: float
    rows: int
    n_others: int = 0
    """How many more columns do that and are not named."""

    def __str__(self) -> str:
        found = f"accuracy {self.accuracy:.3f} on {self.rows:,} training rows"
        found += f", and {self.n_others:,} more columns do" if self.n_others else ""
        what = f"column {self.column!r} alone predicts the label ({found}): is it known at prediction time?"
        return f"{what} If not, leave it out with roles={{{self.column!r}: 'drop'}}"


class LeakSearch:
    """Rows of a table, and their labels, for a search among the columns that are used: all rows, or an even sample."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._names = [name for name, part in schema.parts.items() if part.role != "text"]
        size = min(SAMPLE, CELLS // max(1, len(self._names)))
        self._limit = np.uint64(min(1.0, size / max(1, schema.n_rows)) * (2.0**64 - 2.0**12))
        self._tables: list[Any] = []
        self._labels: list[Any] = []
        self._keys: list[Array] = []
        self._pending: list[tuple[Any, Any, Ints]] = []

    def offer(self, table: Any, labels: Any, first: int, rows: Ints | None = None) -> None:
        """Sample Arrow rows with Arrow labels, the first of which has the number `first`: some `rows`, or all."""
        keys = row_keys(first, len(labels))
        low = keys <= self._limit
        chosen = np.flatnonzero(low) if rows is None else rows[low[rows]]
        if self._names and len(chosen):
            table = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
            self._keys.append(keys[chosen])
            self._pending.append((table.select(self._names), labels, chosen))
            if sum(len(labels) for _, labels, _ in self._pending) * len(self._names) > CELLS:
                self._take()

    def _take(self) -> None:
        """Take the chosen rows out of some batches, once for all of them: it costs time for each column."""
        tables, labels, chosen = zip(*self._pending, strict=True)
        begins = np.cumsum([0, *map(len, labels)])
        rows = number_array(np.concatenate([begin + some for begin, some in zip(begins.tolist(), chosen, strict=False)]))
        self._tables.append(pa.concat_tables(tables).take(rows))
        self._labels.append(_decoded(pa.chunked_array(labels)).take(rows))
        self._pending = []

    def report(self) -> list[Telling]:
        """Return the columns that alone predict the label, and note the question on each of them in the schema."""
        if self._pending:
            self._take()
        if not self._keys:
            return []
        order = number_array(np.argsort(np.concatenate(self._keys)))
        labels = _codes(pa.concat_arrays(self._labels).take(order))
        columns = self._schema.values(Frame(pa.concat_tables(self._tables).take(order), str))
        found = telling_columns(columns, labels)
        for telling in found:
            self._schema.add_note(telling.column, str(telling))
        return found


def telling_columns(columns: dict[str, Any], labels: Ints) -> list[Telling]:
    """Return the columns, Arrow arrays of values, that alone predict the labels, numbered from 0: the best ones.

    The rows must be in random order: of those with equal numbers, the neighbours are chance.

    Examples
    --------
    >>> labels = np.arange(300) % 3 == 0
    >>> columns = {"paid": number_array(1000.0 * labels), "age": number_array(np.arange(300.0) % 50)}
    >>> [telling.column for telling in telling_columns(columns, labels.astype(np.int64))]
    ['paid']
    """
    counts = np.bincount(labels)
    rows = np.flatnonzero(counts[labels] >= RARE)
    common, labels = np.unique(labels[rows], return_inverse=True)
    n = len(rows)
    if n < FEWEST or len(common) < 2:
        return []
    allowed = min(1 - ACCURACY, (1 - REMOVED) * (1 - counts.max() / n)) * n
    telling = []
    for name in _candidates(columns, rows, labels, len(common)):
        right = _most_right(columns[name].take(number_array(rows)), labels, len(common))
        if n - right <= allowed:
            telling.append(Telling(name, right / n, n))
    telling.sort(key=lambda each: -each.accuracy)
    n_others = len(telling) - MOST_NAMED
    if n_others > 0:
        telling = [*telling[: MOST_NAMED - 1], telling[MOST_NAMED - 1]._replace(n_others=n_others)]
    return telling


def _candidates(columns: dict[str, Any], rows: Ints, labels: Ints, n_classes: int) -> list[str]:
    """Return the columns that may be telling, judged by a few of the rows: it takes less time to rule the others out."""
    counts = np.bincount(labels)
    quotas = np.full(n_classes, max(GLANCE // 16, GLANCE // (2 * n_classes)))
    quotas[counts.argmax()] = GLANCE // 2
    by_class = np.argsort(labels, kind="stable")
    place_in_class = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    few = np.sort(by_class[place_in_class < quotas[labels[by_class]]])
    picked, labels = number_array(rows[few]), labels[few]
    allowed = GLANCED_ERRORS * (len(few) - np.bincount(labels).max())
    numbers = [name for name, column in columns.items() if kinds.is_floating(column.type)]
    candidates = set()
    for begin in range(0, len(numbers), GLANCE):
        names = numbers[begin : begin + GLANCE]
        ascending = np.argsort([numpy_array(columns[name].take(picked)) for name in names], axis=1, kind="stable")
        right = _right_by_neighbours(labels[ascending])
        candidates |= {name for name, some in zip(names, right.tolist(), strict=True) if len(few) - some <= allowed}
    for name in columns.keys() - set(numbers):
        largest, _ = _two_largest(_codes(columns[name].take(picked)), labels, n_classes)
        if len(few) - largest.sum() <= allowed:
            candidates.add(name)
    return [name for name in columns if name in candidates]


def _most_right(column: Any, labels: Ints, n_classes: int) -> int:
    """Return how many labels a column predicts correctly."""
    by_value = _right_by_value(_codes(column), labels, n_classes)
    if kinds.is_floating(column.type):
        ascending = np.argsort(numpy_array(column), kind="stable")
        return max(by_value, int(_right_by_neighbours(labels[ascending])))
    return by_value


def _decoded(column: Any) -> Any:
    """Return a column, or chunks of one, as one array that is no dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays([_decoded(chunk) for chunk in column.chunks])
    return column.dictionary_decode() if kinds.is_dictionary(column.type) else column


def _codes(column: Any) -> Ints:
    """Number the different values of a column, the missing one included."""
    encoded = column.dictionary_encode()
    missing = ~numpy_array(encoded.indices.is_valid())
    codes = numpy_array(encoded.indices).astype(np.float64)
    return np.where(missing, len(encoded.dictionary), codes).astype(np.int64)


def _right_by_value(codes: Ints, labels: Ints, n_classes: int) -> int:
    """Return how many labels the most frequent label of the other rows with the same value predicts correctly."""
    # These are the rows with the most frequent label of their value, if it is the most frequent one without the row, too.
    largest, second = _two_largest(codes, labels, n_classes)
    return int(largest[largest - 1 > second].sum())


def _two_largest(codes: Ints, labels: Ints, n_classes: int) -> tuple[Ints, Ints]:
    """Return, for each value, how many rows have its most frequent label, and how many the second most frequent one."""
    pairs, counts = np.unique(codes * n_classes + labels, return_counts=True)
    values = pairs // n_classes
    order = np.lexsort((-counts, values))
    values, counts = values[order], counts[order]
    repeats = np.append(values[1:] == values[:-1], False)  # whether the next pair has the same value
    first = np.flatnonzero(~np.insert(repeats[:-1], 0, False))
    return counts[first], np.where(repeats, np.append(counts[1:], 0), 0)[first]


def _right_by_neighbours(labels: Ints) -> Ints:
    """Return how many labels of a row, in the order of some numbers, at least half of their neighbours have, too."""
    same, there = np.zeros(labels.shape, np.int8), np.zeros(labels.shape[-1], np.int8)
    for distance in range(1, NEIGHBOURS + 1):
        equal = labels[..., distance:] == labels[..., :-distance]
        for side in (slice(None, -distance), slice(distance, None)):
            same[..., side] += equal
            there[side] += 1
    right: Ints = (2 * same >= there).sum(axis=-1)
    return right
