"""From a source to blocks of features: what is learned about the columns first, then every row, once.

Numbers (svmlight, npz) are taken as they are. A table is read twice: to learn its columns (categories, scales, how frequent
words are) from the rows that are trained on, and to turn every row into features. A pipe, which can be read only once, is
kept in a temporary file in between.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError
from separatrix.data.reading import Source
from separatrix.engine.rows import Array
from separatrix.files.blocks import Blocks, held_out_rows

if TYPE_CHECKING:
    from separatrix.features.table import TableFeaturizer

HELD_OUT_MEMORY = 8
"""Held-out examples get this part of the memory."""


@dataclass
class Gathered:
    """The examples to train on, those held out, the classes, and how columns become features (None: they are numbers)."""

    blocks: Blocks
    held_out: Blocks | None
    classes: Array
    features: TableFeaturizer | None

    def close(self) -> None:
        """Let go of everything."""
        self.blocks.close()
        if self.held_out is not None:
            self.held_out.close()


Told = Callable[[str, int], None]


def gather(
    source: Source,
    features: TableFeaturizer | None,
    *,
    memory: int,
    fraction: float = 0.0,
    seed: int = 0,
    validation: Source | None = None,
    folder: Path | None = None,
    known: bool = False,
    told: Told = lambda doing, rows: None,
) -> Gathered:
    """Read `source` into blocks; hold out a fraction of its rows, or those of `validation`.

    `known` features are not learned again. `told` is called after each batch with what is being done and its rows.
    """
    blocks = Blocks(memory, folder)
    kept = Blocks(memory // HELD_OUT_MEMORY, folder) if fraction or validation is not None else None
    if source.kind == "rows":
        features = None
        _gather_rows(source, blocks, kept if validation is None else None, fraction, seed, told)
        if validation is not None and kept is not None:
            _gather_rows(validation, kept, None, 0.0, seed, told)
    else:
        from separatrix.data.arrow_arrays import number_array

        assert features is not None and source.label is not None
        rows = _Again(source, folder)
        if not known:
            for first, batch in _numbered(rows):
                table = batch.table.drop_columns([source.label])
                if fraction:
                    table = table.filter(number_array(~held_out_rows(first, len(batch), fraction, seed)))
                features.partial_fit(table)
                told("learning the columns", len(batch))
        _gather_tables(rows, source.label, features, blocks, kept if validation is None else None, fraction, seed, told)
        if validation is not None and kept is not None:
            _gather_tables(validation, _label_of(validation, source), features, kept, None, 0.0, seed, told)
    classes = blocks.settle()
    if not blocks.n:
        raise DataError(f"{source.name}: every example is held out: nothing is left to learn from")
    if kept is not None:
        kept.settle(classes)
        if kept.n == 0:
            raise DataError(f"{source.name}: a fraction of {fraction:g} holds out none of {blocks.n} examples")
        kept.d = blocks.d = max(kept.d, blocks.d)
    return Gathered(blocks, kept, classes, features)


def roles_for(name: str, columns: list[str], features: list[str], given: dict[str, str]) -> dict[str, str]:
    """Return the roles that columns were given, by name or by number from 0, with their names; raise for one not there."""
    roles = {}
    for column, role in given.items():
        if column not in features and column.isdigit() and int(column) < len(columns):
            column = columns[int(column)]
        if column not in features:
            raise DataError(f"{name}: no column is called {column!r}; there are {', '.join(features[:10])}")
        roles[column] = role
    return roles


def _label_of(validation: Source, source: Source) -> str:
    if source.label is None or validation.schema is None or source.label not in validation.schema.names:
        raise DataError(f"{validation.name}: there is no column {source.label!r}, which is the label of {source.name}")
    return source.label


def _numbered(batches: Any) -> Iterator[tuple[int, Any]]:
    first = 0
    for batch in batches:
        yield first, batch
        first += len(batch)


def _gather_rows(source: Source, blocks: Blocks, kept: Blocks | None, fraction: float, seed: int, told: Told) -> None:
    for first, batch in _numbered(source):
        if batch.y is None:
            raise DataError(f"{source.name}: there are no labels; save them as y")
        _add(blocks, kept, batch.X, batch.y, first, fraction, seed)
        told("reading", len(batch))


def _gather_tables(
    batches: Any,
    label: str,
    features: TableFeaturizer,
    blocks: Blocks,
    kept: Blocks | None,
    fraction: float,
    seed: int,
    told: Told,
) -> None:
    for first, batch in _numbered(batches):
        y = batch.table[label]
        if y.null_count:
            raise DataError(f"{batch.origin.place(y.is_null().index(True).as_py())}: the label {label} is missing")
        X = features.transform(batch.table.drop_columns([label]))
        _add(blocks, kept, X, y, first, fraction, seed)
        told("reading", len(batch))


def _add(blocks: Blocks, kept: Blocks | None, X: Any, y: Any, first: int, fraction: float, seed: int) -> None:
    if kept is None or not fraction:
        blocks.add(X, y)
        return
    out = held_out_rows(first, X.shape[0], fraction, seed)
    for part, which in ((blocks, np.flatnonzero(~out)), (kept, np.flatnonzero(out))):
        if which.size:
            part.add(X[which], y.take(which))


class _Again:
    """A source that can be read again; a pipe is kept in a temporary file."""

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
