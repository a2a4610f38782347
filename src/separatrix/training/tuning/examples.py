"""The labelled rows of a source in memory, as they were read: what folds are made of.

Features are not made here: each fold learns them from its own training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError, ReadAgainError
from separatrix.data.labels import Unlabelled, labels_at, one_class
from separatrix.data.reading import Source
from separatrix.engine.rows import Array, Ints
from separatrix.files.blocks import LabelIndex, held_out_rows
from separatrix.files.row_buffer import RowBuffer

if TYPE_CHECKING:
    from separatrix.features.table import TableFeaturizer

Report = Callable[[str, int], None]


@dataclass
class Examples:
    """Labelled rows in memory: batches of columns without the label, or one matrix of numbers.

    Attributes
    ----------
    classes, codes : the sorted classes, and the class of each row
    numbers : the number of each row in the source, from 0, rows without a label counted
    """

    classes: Array
    codes: Ints
    numbers: Ints
    batches: list[TableBatch] = field(default_factory=list)
    matrix: Any = None
    memory: int = 1 << 62
    """The most bytes that the features of a fold may take."""

    @property
    def n(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    @property
    def labels(self) -> Array:
        """The label of each row."""
        labels: Array = self.classes[self.codes]
        return labels

    def learned(self, features: TableFeaturizer | None, rows: Ints) -> TableFeaturizer | None:
        """Let features learn from some of the rows alone; return them."""
        if features is not None:
            chosen = np.zeros(self.n, np.bool_)
            chosen[rows] = True
            for batch in self._where(chosen):
                features.partial_fit(batch)
        return features

    def _where(self, chosen: Array) -> Any:
        first = 0
        for batch in self.batches:
            here = chosen[first : first + len(batch)]
            if here.any():
                yield batch if here.all() else batch.where(here)
            first += len(batch)

    def features(self, learned: TableFeaturizer | None) -> Any:
        """Return all rows as one matrix."""
        if learned is None:
            return self.matrix
        parts: list[Any] = []
        used = 0
        for batch in self.batches:
            parts.append(learned.transform(batch))
            used += bytes_of(parts[-1])
            if used > self.memory:
                raise _too_much("the features of a fold", self.memory)
        return sp.vstack(parts, format="csr")


def bytes_of(matrix: Any) -> int:
    """Return how much memory a matrix takes."""
    return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes if sp.issparse(matrix) else matrix.nbytes)


def _too_much(what: str, memory: int) -> DataError:
    return DataError(
        f"{what}: folds and tuning need the rows, and the features of a fold, in memory, and they take more than "
        f"{memory / 2**20:,.0f} MB; increase memory=, or use holdout=0.1, which keeps on disk what does not fit"
    )


def read_examples(
    source: Source,
    *,
    memory: int,
    fraction: float = 0.0,
    seed: int = 0,
    missing_label: str = "skip",
    report: Report = lambda doing, rows: None,
) -> Examples:
    """Read the rows that have a label, but those that `read_blocks` would hold out, into memory.

    More than `memory` bytes are an error. A source that cannot be read twice must be kept by the caller.
    """
    while True:
        try:
            return _read_examples(source, memory, fraction, seed, missing_label, report)
        except ReadAgainError:  # a column of numbers turned out to be text
            continue


def _read_examples(source: Source, memory: int, fraction: float, seed: int, missing_label: str, report: Report) -> Examples:
    labels, unlabelled, buffer = LabelIndex(), Unlabelled.as_chosen(missing_label), RowBuffer()
    batches: list[TableBatch] = []
    codes: list[Ints] = []
    numbers: list[Ints] = []
    first = 0
    for batch in source:
        y = batch.y if source.kind == "rows" else batch.table[source.label]
        if y is None:
            raise DataError(f"{source.name}: there are no labels; save them as y")
        chosen = unlabelled.kept(y, batch.origin)
        chosen = np.ones(len(batch), np.bool_) if chosen is None else chosen
        if fraction:
            chosen = chosen & ~held_out_rows(first, len(batch), fraction, seed)
        rows = np.flatnonzero(chosen)
        if rows.size:
            codes.append(labels.codes(labels_at(y, rows)))
            numbers.append(rows + first)
            if source.kind == "rows":
                X = sp.csr_matrix(batch.X) if sp.issparse(batch.X) else np.ascontiguousarray(batch.X)
                buffer.add(X[rows], codes[-1])
            else:
                assert source.label is not None
                batches.append(batch.without(source.label).where(chosen))
        first += len(batch)
        report("reading for the folds", len(batch))
        used = buffer.bytes + sum(part.table.nbytes for part in batches)
        if used > memory:
            raise _too_much(source.name, memory)
    if not codes:
        raise DataError(f"{source.name}: there is no row with a label to learn from")
    classes, places = labels.settled()
    if len(classes) < 2:
        raise DataError(f"{source.name}: {one_class(classes.tolist()[0], unlabelled)}")
    matrix = buffer.rows(0, buffer.n, buffer.d)[0] if buffer.n else None
    return Examples(classes, places[np.concatenate(codes)], np.concatenate(numbers), batches, matrix, memory)
