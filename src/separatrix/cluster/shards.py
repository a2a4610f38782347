"""Shards: the pieces of the data that workers read, once each, and store on their own disk.

A shard is a file, or a piece of a collection: a pair (X, y), or a table. A worker reads it with the same readers and
featurizers as a single machine, stores it as plain arrays in a folder, and maps these into memory, so that any process of
the machine can make a pass over it; a pair (X, y) is in memory already and stays there. CSR rows of many features are
stored with those that occur in the shard renumbered: a pass touches the weights of these features only.
"""

from __future__ import annotations

import os
import pickle
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from separatrix.cluster.summaries import ShardSummary, numbered
from separatrix.data.batches import RowBatch, TableBatch
from separatrix.data.errors import DataError, NoExampleError, Origin, ReadAgainError, no_column
from separatrix.data.reading import Source, open_source
from separatrix.data.streams import Stream, digest_of
from separatrix.engine.labels import labels_of
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows, as_matrix, frozen, name_text_column
from separatrix.features.columns.arrow_columns import frame_of
from separatrix.features.table import TableFeaturizer
from separatrix.files.blocks import LabelIndex
from separatrix.files.ingest import read_blocks
from separatrix.kernels.learning import shards as kernels

UNLIMITED = 1 << 62
"""The memory for one shard, in bytes. A shard is the unit of work: it must fit in the memory of a worker."""

NONZEROS_A_FEATURE = 8
"""Features are renumbered unless the rows have so many nonzeros for each: then weights cost little beside the rows."""

IN_MEMORY: dict[str, dict[int, Any]] = {}
"""The examples of pairs (X, y), which are stored in this process, by training and shard number."""


class Shard(NamedTuple):
    """One shard as an engine hands it to a worker; `folder` is where the worker stores examples."""

    number: int
    name: str
    chunk: Any
    folder: Path


class CollectionSource:
    """A piece of a collection, with the interface of a `Source`."""

    rereadable, format, skipped = True, "collection", 0
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __init__(self, name: str, chunk: Any, label: str | None) -> None:
        self.name = name
        self.y: Array | None = None
        self.feature_names: list[str] | None = None
        self.kind = "rows" if isinstance(chunk, tuple) else "columns"
        self.label = label
        if self.kind == "rows":
            self._read_pair(*chunk)
        else:
            self._read_table(chunk)

    def _read_pair(self, X: Any, y: Any) -> None:
        self.y = labels_of(X, y, self.name)
        columns = list(getattr(X, "columns", ()))
        self.feature_names = columns if columns and all(isinstance(name, str) for name in columns) else None
        try:
            self.X = as_matrix(X)
        except (TypeError, ValueError):
            name_text_column(X)
            raise
        if not sp.issparse(self.X):  # an array that came over a network need not be aligned, and every pass would copy it
            self.X = np.require(self.X, requirements=["C", "A"])

    def _read_table(self, chunk: Any) -> None:
        import pyarrow as pa

        if isinstance(chunk, Iterator):
            chunk = list(chunk)
        if isinstance(chunk, list):
            batches = bool(chunk) and all(isinstance(item, pa.RecordBatch) for item in chunk)
            chunk = pa.Table.from_batches(chunk) if batches else pa.Table.from_pylist(chunk)
        self.table = frame_of(chunk).table if chunk.shape[0] else pa.table({})
        self.schema = self.table.schema
        if self.table.num_rows and self.label not in self.schema.names:
            raise DataError(f"{self.name}: {no_column(self.label, self.schema.names)} (it has the labels)")

    def __iter__(self) -> Iterator[Any]:
        if not (self.X if self.kind == "rows" else self.table).shape[0]:
            raise NoExampleError(f"{self.name}: there is no example in it")
        if self.kind == "rows":
            yield RowBatch(self.X, self.y, Origin(self.name, 1, "row"))
            return
        first = 1
        for table in getattr(self.table, "to_batches", lambda: [self.table])():
            yield TableBatch(table, Origin(self.name, first, "row"))
            first += table.num_rows


class TextColumnsError(DataError):
    """Columns that hold numbers where the first file begins hold words in a shard: all shards are to be read again."""

    def __init__(self, message: str, names: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names = names


@contextmanager
def naming_text_columns(source: Source | CollectionSource) -> Iterator[None]:
    """Name the columns that turn out to be text while a source is read."""
    reader = getattr(source, "reader", None)
    kinds = dict(getattr(reader, "kinds", {}))
    try:
        yield
    except ReadAgainError as error:
        finding = str(error).partition("; read the source again")[0]
        names = tuple(name for name, kind in reader.kinds.items() if kind != kinds[name])  # type: ignore[union-attr]
        raise TextColumnsError(f"{finding}: taken for text", names) from None


class ShardExamples(NamedTuple):
    """The examples of a shard: rows over the features that occur in it (None: over all), and the number of each label.

    Labels are numbered as in `summary.labels`.
    """

    summary: ShardSummary
    rows: Rows
    features: Ints | None
    label_numbers: Ints


DEALING = 0xDEA1
"""Keeps the random numbers that deal rows apart from all others."""


@dataclass
class Deal:
    """Which rows of which shards make up each new shard.

    Attributes
    ----------
    seed : the seed of the random numbers.
    files : how the old shards are read, and where they are stored.
    groups : (number, name, chunk) of the old shards of each group; the new shards of a group have the same numbers.
    """

    seed: int
    files: ShardReader
    groups: list[list[tuple[int, str, Any]]]

    def group_of(self, number: int) -> list[tuple[int, str, Any]] | None:
        """Return the old shards from which a new shard is dealt; None for one that stays as it is."""
        return next((group for group in self.groups if any(number == old for old, _, _ in group)), None)

    def rows(self, old: int) -> Recipients:
        """Return an object that says to which new shard each row of an old shard goes."""
        group = self.group_of(old)
        assert group is not None
        return Recipients(self.seed, old, np.array([number for number, _, _ in group]))


class Recipients:
    """The new shards to which the rows of an old shard go, in the order of the rows."""

    def __init__(self, seed: int, old: int, numbers: Ints) -> None:
        # A first number of its own: default_rng([0, 0]) gives the numbers of default_rng(0), which made many a data set.
        self._random, self._numbers = np.random.default_rng([DEALING, seed, old]), numbers

    def next(self, n: int) -> Ints:
        """Return the numbers of the new shards of the next n rows."""
        # One double for each row: the numbers do not depend on how many rows are asked for at once.
        recipients: Ints = self._numbers[(self._random.random(n) * len(self._numbers)).astype(np.int64)]
        return recipients


def new_training_id() -> str:
    """Return a name, not used before, for the folder in which the examples of a training are stored."""
    return f"separatrix-{secrets.token_hex(8)}"


@dataclass
class ShardReader:
    """How shards are read: the same on every worker. `training_id` names the folder of the stored examples.

    With a `deal`, a shard has rows of several files, which are read and stored first.
    """

    training_id: str = field(default_factory=new_training_id)
    label: str | int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    format: str = ""
    file_reader: Any = None
    features: TableFeaturizer | None = None
    deal: Deal | None = None
    missing_label: str = "skip"

    def source(self, shard: Shard) -> Source | CollectionSource:
        """Return the shard as a source; every file is read in the same way as the first."""
        if not isinstance(shard.chunk, str | os.PathLike):
            return CollectionSource(shard.name, shard.chunk, None if self.label is None else str(self.label))
        if self.file_reader is None or self.format == "built-in":
            return open_source(shard.chunk, label=self.label, threads=1, **self.options)
        return Source(shard.name, [os.fspath(shard.chunk)], self.format, self.file_reader, self.file_reader.options)

    def with_features(self, fitted: TableFeaturizer) -> ShardReader:
        """Return a reader that makes these features, and does not look at the columns that have none."""
        if hasattr(self.file_reader, "settled"):
            self.file_reader.options.unused.update(fitted.left_out())
            self.file_reader.settled()
        return replace(self, features=fitted.without_names())

    @property
    def trusts_quotes(self) -> bool:
        """Whether quotes delimit fields because the first megabyte of the first file does not show otherwise."""
        dialect = getattr(self.file_reader, "dialect", None)
        return dialect is not None and dialect.quote is not None and self.file_reader.options.quote == "auto"

    def has_stray_quotes(self, shard: Shard) -> bool:
        """Tell whether the first megabyte of a file shows that quotes are plain characters."""
        try:
            stream = Stream(os.fspath(shard.chunk))
            head = stream.peek()
            stream.close()
            if b'"' not in head:
                return False
            source = open_source(shard.chunk, label=self.label, threads=1, **self.options | {"format": self.format})
        except DataError:  # what is wrong is reported when the file is read
            return False
        return source.reader.dialect.quote is None

    def examples(self, shard: Shard) -> ShardExamples:
        """Return the examples of a shard; the first call on a machine reads and stores them."""
        if self.deal is not None and self.deal.group_of(shard.number) is None:
            return self.deal.files.examples(shard)
        if isinstance(shard.chunk, tuple):
            in_memory = IN_MEMORY.setdefault(self.training_id, {})
            if shard.number not in in_memory:
                in_memory[shard.number] = _examples_of(*self._read(shard))
            in_this_process: ShardExamples = in_memory[shard.number]
            return in_this_process
        folder = shard.folder / self.training_id / str(shard.number)
        if not folder.is_dir():
            store(folder, *(self._read(shard) if self.deal is None else self._dealt(shard, self.deal)))
        return _load_examples(folder)

    def _read(self, shard: Shard) -> tuple[ShardSummary, dict[str, Array]]:
        source = self.source(shard)
        labels, label_dtype, digest, unlabelled = LabelIndex(), None, b"", 0
        notes: list[str] = []
        try:
            if isinstance(shard.chunk, tuple):
                (batch,) = source
                X, label_numbers = batch.X, numbered(labels, batch.y)
            else:
                settings: dict[str, Any] = {"learned": True, "missing_label": self.missing_label}
                with naming_text_columns(source):
                    gathered = read_blocks(source, self.features, memory=UNLIMITED, **settings)  # type: ignore[arg-type]
                blocks = gathered.blocks
                X, labels, label_numbers = blocks.together(), blocks.labels, blocks.places()
                unlabelled, notes = gathered.unlabelled, gathered.notes
                gathered.close()
        except NoExampleError:
            X, label_numbers = np.empty((0, 0)), np.empty(0, np.int64)
        if isinstance(source, CollectionSource):
            label_dtype = None if source.y is None else source.y.dtype.str
        elif isinstance(shard.chunk, str):
            digest = digest_of(shard.chunk) if source.format != "built-in" else source.reader.digest()
        names = getattr(source, "feature_names", None)
        summary, arrays = _summarized(shard.name, X, labels.met(), label_numbers)
        return summary._replace(
            label_dtype=label_dtype,
            digest=digest,
            skipped=source.skipped,
            problems=list(source.problems),
            names=None if names is None else list(names),
            unlabelled=unlabelled,
            notes=notes,
        ), arrays

    def _dealt(self, shard: Shard, deal: Deal) -> tuple[ShardSummary, dict[str, Array]]:
        """Return the rows that are dealt to a shard, in the order of the files."""
        labels, parts, label_numbers = LabelIndex(), [], [np.empty(0, np.int64)]
        for number, name, chunk in deal.group_of(shard.number) or ():
            examples = deal.files.examples(Shard(number, name, chunk, shard.folder))
            which = np.flatnonzero(deal.rows(number).next(examples.rows.n) == shard.number)
            if not which.size:
                continue
            X = examples.rows.source[which]
            if examples.features is not None:
                shape = len(which), examples.summary.d
                X = sp.csr_matrix((X.data, examples.features[X.indices], X.indptr), shape=shape)
            parts.append(X)
            occurring, place = np.unique(examples.label_numbers[which], return_inverse=True)
            label_numbers.append(labels.add([examples.summary.labels[label] for label in occurring.tolist()])[place])
        return _summarized(shard.name, joined(parts), labels.met(), np.concatenate(label_numbers))


def store(folder: Path, summary: Any, arrays: dict[str, Array]) -> None:
    """Store a shard as arrays that any process of the machine can map."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    unfinished.mkdir()
    for name, array in arrays.items():
        np.save(unfinished / f"{name}.npy", array)
    (unfinished / "summary").write_bytes(pickle.dumps(summary))
    try:
        unfinished.rename(folder)
    except OSError:  # another process stored this shard first
        shutil.rmtree(unfinished)


def mapped(folder: Path, name: str) -> Array:
    """Return a stored array, mapped into memory."""
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))


def joined(parts: list[Any]) -> Any:
    """Return the rows of several matrices, all dense or all CSR, as one; CSR matrices may have different widths."""
    if not parts:
        return np.empty((0, 0))
    if not sp.issparse(parts[0]):
        return np.concatenate(parts)
    d = max(X.shape[1] for X in parts)
    return sp.vstack([sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], d)) for X in parts], format="csr")


def _summarized(name: str, X: Any, labels: list[Any], label_numbers: Ints) -> tuple[ShardSummary, dict[str, Array]]:
    """Return the summary of examples and the arrays to store."""
    rows = Rows(X)
    try:
        radius_squared = rows.survey()
    except ValueError as error:
        raise DataError(f"{name}: {error}") from None
    counts = np.bincount(label_numbers, minlength=len(labels))
    changes = int(np.count_nonzero(np.diff(label_numbers)))
    read: tuple[bytes, int, list[str], None, int, list[str]] = (b"", 0, [], None, 0, [])  # filled in by who read it
    summary = ShardSummary(rows.n, rows.d, rows.sparse, labels, None, counts, radius_squared, *read, changes)
    if not rows.sparse:
        return summary, {"label_numbers": label_numbers, "dense": rows.source}
    X = rows.source
    csr = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    if len(X.indices) < NONZEROS_A_FEATURE * rows.d:
        csr["features"], csr["indices"] = renumbered(X.indices, rows.d)
    return summary, {"label_numbers": label_numbers, **csr}


def renumbered(indices: Array, d: int) -> tuple[Ints, Array]:
    """Return the features that occur, sorted, and the place of each index among them."""
    if d > 16 * len(indices):
        features, place = np.unique(indices, return_inverse=True)
        return features, place.astype(np.int32)
    features, place = np.empty(d, np.int64), np.empty(len(indices), np.int32)
    n_features = kernels.renumber(frozen(indices), np.full(d, -1, np.int32), features, place)
    return features[:n_features].copy(), place


def _load_examples(folder: Path) -> ShardExamples:
    summary: ShardSummary = pickle.loads((folder / "summary").read_bytes())
    arrays = {file.stem: mapped(folder, file.stem) for file in folder.glob("*.npy")}
    return _examples_of(summary, arrays)


def _examples_of(summary: ShardSummary, arrays: dict[str, Array]) -> ShardExamples:
    label_numbers = arrays["label_numbers"]
    if not summary.sparse:
        return ShardExamples(summary, Rows(arrays["dense"]), None, label_numbers)
    data, indices, indptr, features = (arrays.get(name) for name in ("data", "indices", "indptr", "features"))
    assert data is not None and indices is not None and indptr is not None
    d = summary.d if features is None else len(features)
    X = sp.csr_matrix((data, indices, indptr.astype(indices.dtype)), shape=(summary.n, d), copy=False)
    return ShardExamples(summary, Rows(X), None if features is None else features.astype(np.int64), label_numbers)


def problem_of(examples: ShardExamples, classes: Array, factors: Floats = NO_WEIGHT) -> Problem:
    """Return the examples with the number of each label among the classes (−1: none of them) and the weight of its class."""
    labels = LabelIndex()
    labels.add(examples.summary.labels)
    class_of = labels.among(classes, as_written=False)
    codes = class_of.astype(np.int32)[examples.label_numbers] if len(class_of) else np.empty(0, np.int32)
    return Problem(examples.rows, frozen(codes), frozen(factors[codes]) if factors.size else NO_WEIGHT)


def forget(folder: Path, training_id: str) -> None:
    """Delete the examples that this machine stored for a training."""
    IN_MEMORY.pop(training_id, None)
    shutil.rmtree(folder / training_id, ignore_errors=True)
