"""From a source to blocks of features: first the columns are learned, then every row is read once.

Numbers (svmlight, npz) are taken as they are. A table is gone through twice: to learn its columns (categories, scales, how
frequent words are) from the rows that are trained on, and to turn every row into features. A small one is kept in memory in
between; a larger one is read again. A pipe, which can be read only once, is copied into a temporary file. Rows without a
label are left out and counted; which rows are held out depends on the numbers of the rows as they were read, with or without
a label. On the way, a sample of a table's training rows is searched for columns that alone predict the label.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError, NoExampleError, Origin, ReadAgainError, named, no_column, shown
from separatrix.data.labels import Unlabelled, alike, labels_at, lonely, matched, one_class, strangers
from separatrix.data.reading import Source
from separatrix.engine.orders import NO_GAPS, Gaps
from separatrix.engine.rows import NO_ORDER, Array, Ints
from separatrix.files.blocks import Blocks, held_out_rows

if TYPE_CHECKING:
    from separatrix.features.columns.leaks import LeakSearch
    from separatrix.features.table import TableFeaturizer

HELD_OUT_MEMORY = 8
"""Held-out examples get this part of the memory."""
KEPT_MEMORY, MOST_KEPT = 8, 1 << 28
"""A table whose columns take at most this part of the memory, and at most so many bytes, is read only once."""


@dataclass
class TrainingBlocks:
    """The examples to train on, those held out, the classes, and how columns become features (None: they are numbers).

    `unlabelled` counts the rows left out because they have no label; `notes` says what a person should know of the reading.
    """

    blocks: Blocks
    held_out: Blocks | None
    classes: Array
    features: TableFeaturizer | None
    unlabelled: int = 0
    notes: list[str] = field(default_factory=list)
    trained: Ints | None = None
    """The number of each example to train on among the rows as they were read, where it was asked for (`numbered`)."""

    def close(self) -> None:
        """Release the memory and the temporary files."""
        self.blocks.close()
        if self.held_out is not None:
            self.held_out.close()


Report = Callable[[str, int], None]
"""Called after each batch with what is being done and the number of rows of the batch."""


def read_blocks(
    source: Source, features: TableFeaturizer | None, *, learned: bool = False, **options: Any
) -> TrainingBlocks:
    """Read `source` into blocks, with the options of `_read_blocks`; `learned` features are not learned again.

    Where a column turns out to be text late in the data, everything is read again.
    """
    unlearned = None if features is None or learned else features.plain()
    with nullcontext() if source.rereadable or unlearned is None else source.kept(options.get("folder")):
        while True:
            try:
                return _read_blocks(source, features, learned=learned, **options)
            except ReadAgainError:
                if unlearned is None:
                    raise
                features = unlearned.plain()


def _read_blocks(
    source: Source,
    features: TableFeaturizer | None,
    *,
    memory: int,
    fraction: float = 0.0,
    seed: int = 0,
    validation: Source | None = None,
    folder: Path | None = None,
    learned: bool = False,
    missing_label: str = "skip",
    mixed: bool = True,
    forgotten: Ints = NO_ORDER,
    numbered: bool = False,
    report: Report = lambda doing, rows: None,
) -> TrainingBlocks:
    """Read `source` into blocks; hold out a fraction of its rows, or those of `validation`.

    `learned` features are not learned again. Rows without a label are left out, or an error where `missing_label` is
    "raise"; where it is "keep", words such as NA are labels. What does not fit in memory is `mixed` on its way to the disk,
    or keeps its order. `forgotten` rows are no longer in the source: the others are held out as if they still were.
    `numbered`: keep the numbers of the rows that are trained on. `report` is called after each batch.
    """
    mixing_seed = seed if mixed else None
    blocks, held_out = Blocks(memory, folder, seed=mixing_seed), None
    if fraction or validation is not None:
        held_out = Blocks(memory // HELD_OUT_MEMORY, folder, seed=mixing_seed)
    split = _Split(blocks, held_out if validation is None else None, fraction, seed, Unlabelled.as_chosen(missing_label))
    split.gaps, split.trained = Gaps(forgotten, 1), [] if numbered else None
    if source.kind == "rows":
        features = None
        split.add_rows(source, report)
    else:
        assert features is not None and source.label is not None
        _check_columns(source)
        table = _Table(source, min(memory // KEPT_MEMORY, MOST_KEPT))
        if not learned:
            split.learn(features, source, table.learned_from(), report)
            split.leaks = features.leak_search()
        split.add_tables(features, table.transformed(), source.label, report)
    counts = [split.unlabelled]
    if validation is not None and held_out is not None:
        separate = _Split(held_out, None, 0.0, seed, Unlabelled.as_chosen(missing_label))
        if features is None:
            separate.add_rows(validation, report)
        else:
            validation.read_as(source, features.left_out())
            separate.add_tables(features, validation, _label_of(validation, source), report)
        counts.append(separate.unlabelled)
    if not blocks.n:
        raise _nothing_left(source, counts[0])
    classes = blocks.settle()
    if len(classes) < 2 and not learned:
        raise DataError(f"{source.name}: {one_class(classes.tolist()[0], counts[0])}")
    if held_out is not None:
        held_out.settle(classes)
        _check_held_out(held_out, source, validation, counts[-1])
        width = max(held_out.d, blocks.d)
        if any(part.d < width and not part.sparse for part in (blocks, held_out)):
            name = (validation or source).name
            raise DataError(f"{name} has {held_out.d} features, but {source.name}, which is trained on, has {blocks.d}")
        held_out.d = blocks.d = width
    notes = [*source.notes, *([] if validation is None else validation.notes)]
    notes += [unlabelled.note for unlabelled in counts if unlabelled.count] + alike(blocks.labels.met())
    notes += lonely(dict(zip(classes.tolist(), blocks.class_counts().tolist(), strict=True)))
    if held_out is not None:
        notes += [f"held-out rows: {note}" for note in matched(held_out.labels.matching(classes))]
    if held_out is not None and (unknown := held_out.unknown_labels()):
        notes.append(strangers(unknown, held_out.n, (validation or source).name))
    numbers = None if split.trained is None else np.concatenate(split.trained)
    return TrainingBlocks(blocks, held_out, classes, features, counts[0].count, notes, numbers)


def roles_for(name: str, columns: list[str], features: list[str], chosen: dict[str, str]) -> dict[str, str]:
    """Return the roles chosen for columns by their names; `chosen` may also number them from 0.

    Raise for unknown columns, for the label, and for one that was chosen for two roles.
    """
    roles: dict[str, str] = {}
    for column, role in chosen.items():
        if column not in columns and column.isdigit() and int(column) < len(columns):
            column = columns[int(column)]
        if column in columns and column not in features:
            raise DataError(f"{name}: column {shown(column)} is the label, which has no role; label= names another one")
        if column not in features:
            raise DataError(f"{name}: {no_column(column, features)}")
        if roles.setdefault(column, role) != role:
            raise DataError(f"{name}: column {shown(column)} cannot be both {roles[column]} and {role}; choose one role")
    return roles


def _check_columns(source: Source) -> None:
    """Raise where a table has the label and no other column."""
    if source.schema is not None and source.schema.names == [source.label]:
        raise DataError(f"{source.name}: there is no column beside {named(source.label)}, the label{source.why_alone}")


def _label_of(validation: Source, source: Source) -> str:
    if source.label is None or validation.schema is None or source.label not in validation.schema.names:
        columns = () if validation.schema is None else validation.schema.names
        raise DataError(f"{validation.name}: {no_column(source.label, columns)}; it is the label of {source.name}")
    return source.label


def _nothing_left(source: Source, unlabelled: Unlabelled) -> DataError:
    if unlabelled.count:
        ask = "" if source.label is None else f"; is {named(source.label)} the label column? label= names another one"
        return NoExampleError(f"{source.name}: there is no row with a label to learn from; {unlabelled.note}{ask}")
    return DataError(f"{source.name}: every example is held out: nothing is left to learn from")


def _check_held_out(held_out: Blocks, source: Source, validation: Source | None, unlabelled: Unlabelled) -> None:
    """Raise where no held-out row can be evaluated."""
    if held_out.n == 0 and validation is not None:
        raise NoExampleError(f"{validation.name}: there is no row with a label; {unlabelled.note or 'it has no rows'}")
    if held_out.n == 0:
        raise DataError(f"{source.name}: no row is held out: there are too few for such a fraction")


def _numbered(batches: Any) -> Iterator[tuple[int, Any]]:
    first = 0
    for batch in batches:
        yield first, batch
        first += len(batch)


class _Table:
    """The batches of a source for two readings: those of the first are kept for the second, up to `most` bytes."""

    def __init__(self, source: Source, most: int) -> None:
        self._source, self._most = source, most
        self._kept: deque[TableBatch] | None = None

    def learned_from(self) -> Iterator[TableBatch]:
        """Yield the batches."""
        kept: deque[TableBatch] = deque()
        n_bytes = 0
        for batch in self._source:
            yield batch
            n_bytes += batch.table.nbytes
            if n_bytes <= self._most:
                kept.append(batch)
            else:
                kept.clear()
        self._kept = kept if n_bytes <= self._most else None

    def transformed(self) -> Iterator[TableBatch]:
        """Yield the batches, each kept one for the last time, so that its memory becomes free as features take some."""
        if self._kept is None:
            yield from self._source
            return
        while self._kept:
            yield self._kept.popleft()


@dataclass
class _Split:
    """Where the rows of a source go: to the blocks that are trained on, to those held out, or, without a label, nowhere."""

    blocks: Blocks
    held_out: Blocks | None
    fraction: float
    seed: int
    unlabelled: Unlabelled
    leaks: LeakSearch | None = None
    gaps: Gaps = NO_GAPS
    trained: list[Ints] | None = None
    """The numbers of the rows that are trained on, batch by batch, where they are wanted."""

    def _is_held_out(self, first: int, n: int) -> Array:
        """Tell which of n rows are held out; rows count as they did before some were forgotten."""
        numbers = self.gaps.once(np.arange(first, first + n))
        begin, end = (int(numbers[0]), int(numbers[-1]) + 1) if n else (0, 0)
        is_out: Array = held_out_rows(begin, end - begin, self.fraction, self.seed)[numbers - begin]
        return is_out

    def learn(self, features: TableFeaturizer, source: Source, batches: Iterator[TableBatch], report: Report) -> None:
        """Learn the columns from the rows that are trained on."""
        counting, label = Unlabelled(self.unlabelled.raising, words=self.unlabelled.words), source.label
        for first, batch in _numbered(batches):
            kept = counting.kept(batch.table[label], batch.origin)
            if self.fraction:
                out = self._is_held_out(first, len(batch))
                kept = ~out if kept is None else kept & ~out
            rows = batch.without(label) if kept is None else batch.without(label).where(kept)
            if len(rows):
                features.partial_fit(rows)
            report("learning the columns", len(batch))
        if not features.is_fitted():
            raise _nothing_left(source, counting)

    def add_tables(self, features: TableFeaturizer, batches: Any, label: str, report: Report) -> None:
        """Add the rows of a table as features."""
        for first, batch in _numbered(batches):
            table, labels = batch.table.drop_columns([label]), batch.table[label]
            trained = self._add(features.transform(TableBatch(table, batch.origin)), labels, first, batch.origin)
            if self.leaks is not None:
                self.leaks.offer(table, labels, first, trained)
            report("reading", len(batch))
        if self.leaks is not None:
            self.leaks.report()

    def add_rows(self, source: Source, report: Report) -> None:
        """Add the rows of numbers."""
        for first, batch in _numbered(source):
            if batch.y is None:
                raise DataError(f"{source.name}: there are no labels; save them as y")
            self._add(batch.X, batch.y, first, batch.origin)
            report("reading", len(batch))

    def _add(self, X: Any, y: Any, first: int, origin: Origin) -> Ints | None:
        """Add rows to the blocks; return which are trained on, None for all."""
        kept = self.unlabelled.kept(y, origin)
        out = None if self.held_out is None else self._is_held_out(first, X.shape[0])
        if out is None and kept is None:
            self.blocks.add(X, y)
            if self.trained is not None:
                self.trained.append(np.arange(first, first + X.shape[0]))
            return None
        kept = np.ones(X.shape[0], np.bool_) if kept is None else kept
        out = np.zeros(X.shape[0], np.bool_) if out is None else out
        trained, held_out = np.flatnonzero(kept & ~out), np.flatnonzero(kept & out)
        if self.trained is not None:
            self.trained.append(first + trained)
        for part, which in ((self.blocks, trained), (self.held_out, held_out)):
            if part is not None and which.size:
                part.add(X[which], labels_at(y, which))
        return trained
