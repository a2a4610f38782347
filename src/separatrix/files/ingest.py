"""From a source to blocks of features: first the columns are learned, then every row is read once.

Numbers (svmlight, npz) are taken as they are. A table is read twice: to learn its columns (categories, scales, how frequent
words are) from the rows that are trained on, and to turn every row into features. A pipe, which can be read only once, is
copied into a temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError, no_column
from separatrix.data.reading import Source
from separatrix.engine.rows import Array, Ints
from separatrix.files.blocks import Blocks, held_out_rows

if TYPE_CHECKING:
    from separatrix.features.table import TableFeaturizer

HELD_OUT_MEMORY = 8
"""Held-out examples get this part of the memory."""


@dataclass
class TrainingBlocks:
    """The examples to train on, those held out, the classes, and how columns become features (None: they are numbers)."""

    blocks: Blocks
    held_out: Blocks | None
    classes: Array
    features: TableFeaturizer | None

    def close(self) -> None:
        """Release the memory and the temporary files."""
        self.blocks.close()
        if self.held_out is not None:
            self.held_out.close()


Report = Callable[[str, int], None]
"""Called after each batch with what is being done and the number of rows of the batch."""


def read_blocks(
    source: Source,
    features: TableFeaturizer | None,
    *,
    memory: int,
    fraction: float = 0.0,
    seed: int = 0,
    validation: Source | None = None,
    folder: Path | None = None,
    learned: bool = False,
    report: Report = lambda doing, rows: None,
) -> TrainingBlocks:
    """Read `source` into blocks; hold out a fraction of its rows, or those of `validation`.

    `learned` features are not learned again. `report` is called after each batch.
    """
    blocks = Blocks(memory, folder)
    held_out = Blocks(memory // HELD_OUT_MEMORY, folder) if fraction or validation is not None else None
    if source.kind == "rows":
        features = None
        _add_rows(source, blocks, held_out if validation is None else None, fraction, seed, report)
        if validation is not None and held_out is not None:
            _add_rows(validation, held_out, None, 0.0, seed, report)
    else:
        from separatrix.data.arrow_arrays import number_array

        assert features is not None and source.label is not None
        rows = _Rereadable(source, folder)
        if not learned:
            for first, batch in _numbered(rows):
                table = batch.table.drop_columns([source.label])
                if fraction:
                    table = table.filter(number_array(~held_out_rows(first, len(batch), fraction, seed)))
                features.partial_fit(table)
                report("learning the columns", len(batch))
        _add_tables(rows, source.label, features, blocks, held_out if validation is None else None, fraction, seed, report)
        if validation is not None and held_out is not None:
            _add_tables(validation, _label_of(validation, source), features, held_out, None, 0.0, seed, report)
    classes = blocks.settle()
    if not blocks.n:
        raise DataError(f"{source.name}: every example is held out: nothing is left to learn from")
    if held_out is not None:
        held_out.settle(classes)
        if held_out.n == 0:
            raise DataError(f"{source.name}: a fraction of {fraction:g} holds out none of {blocks.n} examples")
        held_out.d = blocks.d = max(held_out.d, blocks.d)
    return TrainingBlocks(blocks, held_out, classes, features)


def roles_for(name: str, columns: list[str], features: list[str], chosen: dict[str, str]) -> dict[str, str]:
    """Return the roles chosen for columns by their names; `chosen` may also number them from 0. Raise for unknown ones."""
    roles = {}
    for column, role in chosen.items():
        if column not in features and column.isdigit() and int(column) < len(columns):
            column = columns[int(column)]
        if column not in features:
            raise DataError(f"{name}: {no_column(column, features)}")
        roles[column] = role
    return roles


def _label_of(validation: Source, source: Source) -> str:
    if source.label is None or validation.schema is None or source.label not in validation.schema.names:
        columns = () if validation.schema is None else validation.schema.names
        raise DataError(f"{validation.name}: {no_column(source.label, columns)}; it is the label of {source.name}")
    return source.label


def _numbered(batches: Any) -> Iterator[tuple[int, Any]]:
    first = 0
    for batch in batches:
        yield first, batch
        first += len(batch)


def _add_rows(source: Source, blocks: Blocks, held_out: Blocks | None, fraction: float, seed: int, report: Report) -> None:
    for first, batch in _numbered(source):
        if batch.y is None:
            raise DataError(f"{source.name}: there are no labels; save them as y")
        _add(blocks, held_out, batch.X, batch.y, first, fraction, seed)
        report("reading", len(batch))


def _add_tables(
    batches: Any,
    label: str,
    features: TableFeaturizer,
    blocks: Blocks,
    held_out: Blocks | None,
    fraction: float,
    seed: int,
    report: Report,
) -> None:
    for first, batch in _numbered(batches):
        y = batch.table[label]
        if y.null_count:
            raise DataError(f"{batch.origin.place(y.is_null().to_pylist().index(True))}: the label {label} is missing")
        X = features.transform(batch.table.drop_columns([label]))
        _add(blocks, held_out, X, y, first, fraction, seed)
        report("reading", len(batch))


def _add(blocks: Blocks, held_out: Blocks | None, X: Any, y: Any, first: int, fraction: float, seed: int) -> None:
    if held_out is None or not fraction:
        blocks.add(X, y)
        return
    out = held_out_rows(first, X.shape[0], fraction, seed)
    for part, which in ((blocks, np.flatnonzero(~out)), (held_out, np.flatnonzero(out))):
        if which.size:
            part.add(X[which], _labels_at(y, which))


def _labels_at(y: Any, which: Ints) -> Any:
    """Return the labels of some rows, from a NumPy or an Arrow array."""
    if isinstance(y, np.ndarray):
        return y[which]
    from separatrix.data.arrow_arrays import number_array

    return y.take(number_array(which))


class _Rereadable:
    """A source that can be read again; a pipe is copied into a temporary file."""

    def __init__(self, source: Source, folder: Path | None) -> None:
        self._source, self._folder = source, folder
        self._file: Any = None
        self._origins: list[Any] = []

    def __iter__(self) -> Iterator[TableBatch]:
        if self._source.rereadable:
            yield from self._source
            return
        import pyarrow as pa

        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="separatrix-", dir=self._folder)
            writer = None
            for batch in self._source:
                writer = writer or pa.ipc.new_stream(self._file, batch.table.schema)
                writer.write_batch(batch.table)
                self._origins.append(batch.origin)
                yield batch
            if writer is not None:
                writer.close()
            return
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            for table, origin in zip(reader, self._origins, strict=True):
                yield TableBatch(table, origin)
