"""Shards: what a worker is given to read, read once with the readers and featurizers of one machine, kept on its disk.

A shard is a file, or a piece of a collection: (X, y), or a table. What was read is kept as plain arrays in a folder of the
worker's own and mapped into memory, so that any process of the machine can make a pass over it; numbers that lie in memory
already stay there. CSR rows are kept with the features that occur in the shard numbered anew: a pass touches the weights of
these features only.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from separatrix.data.batches import RowBatch, TableBatch
from separatrix.data.errors import DataError, NoExampleError, Origin
from separatrix.data.reading import Source, open_source
from separatrix.data.streams import digest_of
from separatrix.engine.inputs import name_text_column
from separatrix.engine.labels import labels_of
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows, frozen
from separatrix.features.columns.arrow_columns import frame_of
from separatrix.files.blocks import Labels
from separatrix.files.ingest import gather
from separatrix.kernels.learning import shards as kernels

MEMORY = 1 << 62
"""A shard is the unit of work: it must fit in the memory of a worker."""


_HELD: dict[str, dict[int, Examples]] = {}
"""The examples of pieces that lie in this process, by training and shard."""


class Shard(NamedTuple):
    """One shard, as an engine hands it to a worker: its number, its name, what it is, and where the worker keeps things."""

    number: int
    name: str
    chunk: Any
    folder: Path


class Piece:
    """A piece of a collection, in the form of a source."""

    rereadable, format, skipped = True, "collection", 0
    problems: tuple[str, ...] = ()

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
            self.X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, ensure_min_samples=0)
        except ValueError:
            name_text_column(X)
            raise
        if not sp.issparse(self.X):  # what came over a network need not be aligned, and every pass would copy it
            self.X = np.require(self.X, np.float64 if self.X.dtype == object else None, ["C", "A"])

    def _read_table(self, chunk: Any) -> None:
        import pyarrow as pa

        if isinstance(chunk, Iterator):
            chunk = list(chunk)
        if isinstance(chunk, list):
            whole = all(isinstance(one, pa.RecordBatch) for one in chunk)
            chunk = pa.Table.from_batches(chunk) if whole and chunk else pa.Table.from_pylist(chunk)
        self.table = frame_of(chunk).table if chunk.shape[0] else pa.table({})
        self.schema = self.table.schema
        if self.table.num_rows and self.label not in self.schema.names:
            there = ", ".join(self.schema.names[:10])
            raise DataError(f"{self.name}: there is no column {self.label!r} for the label; there are {there}")

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


class Known(NamedTuple):
    """What is known of a shard once it has been read."""

    n: int
    d: int
    sparse: bool
    labels: list[Any]
    kind: str | None
    """NumPy's name of the labels' type, of a collection of arrays."""
    counts: Ints
    radius_squared: float
    digest: bytes
    skipped: int
    problems: list[str]
    names: list[str] | None


class Examples(NamedTuple):
    """The examples of a shard: rows of the features that occur in it (None: all), and the place of each label."""

    known: Known
    rows: Rows
    features: Ints | None
    places: Ints


@dataclass
class Reading:
    """How shards are read: the same on every worker."""

    token: str = field(default_factory=lambda: f"separatrix-{secrets.token_hex(8)}")
    label: str | int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    form: str = ""
    reader: Any = None
    features: Any = None

    def source(self, shard: Shard) -> Source | Piece:
        """Return the shard as a source; a file is read as the first one is."""
        if not isinstance(shard.chunk, str | os.PathLike):
            return Piece(shard.name, shard.chunk, None if self.label is None else str(self.label))
        if self.reader is None or self.form == "built-in":
            return open_source(shard.chunk, label=self.label, threads=1, **self.options)
        return Source(shard.name, [os.fspath(shard.chunk)], self.form, self.reader, self.reader.options)

    def examples(self, shard: Shard) -> Examples:
        """Return the examples of a shard, read and kept when they are first asked for on a machine."""
        if isinstance(shard.chunk, tuple):
            held = _HELD.setdefault(self.token, {})
            if shard.number not in held:
                held[shard.number] = _examples(self._read(shard))
            return held[shard.number]
        home = shard.folder / self.token / str(shard.number)
        if not home.is_dir():
            parts = self._read(shard)
            home.parent.mkdir(parents=True, exist_ok=True)
            fresh = home.with_name(f".{shard.number}-{secrets.token_hex(4)}")
            fresh.mkdir()
            for name, value in parts.items():
                if isinstance(value, np.ndarray):
                    np.save(fresh / f"{name}.npy", value)
            (fresh / "known").write_bytes(pickle.dumps(parts["known"]))
            try:
                fresh.rename(home)
            except OSError:  # another process was quicker
                shutil.rmtree(fresh)
        return _kept(home)

    def _read(self, shard: Shard) -> dict[str, Any]:
        source = self.source(shard)
        labels, kind, digest = Labels(), None, b""
        try:
            if isinstance(shard.chunk, tuple):
                (batch,) = source
                X, codes = batch.X, labels.codes(batch.y)
            else:
                found = gather(source, self.features, memory=MEMORY, known=True)  # type: ignore[arg-type]
                X, labels, codes = found.blocks.together(), found.blocks.labels, found.blocks.places()
                found.close()
        except NoExampleError:
            X, codes = np.empty((0, 0)), np.empty(0, np.int64)
        rows = Rows(X)
        try:
            radius_squared = rows.survey()
        except ValueError as problem:
            raise DataError(f"{shard.name}: {problem}") from None
        if isinstance(source, Piece):
            kind = None if source.y is None else source.y.dtype.str
        elif isinstance(shard.chunk, str):
            digest = digest_of(shard.chunk) if source.format != "built-in" else source.reader.digest()
        names = getattr(source, "feature_names", None)
        counts = np.bincount(codes, minlength=len(labels))
        told = (digest, source.skipped, list(source.problems), None if names is None else list(names))
        known = Known(rows.n, rows.d, rows.sparse, labels.met(), kind, counts, radius_squared, *told)
        if not rows.sparse:
            return {"known": known, "places": codes, "dense": rows.source}
        X = rows.source
        features, indices = _renumbered(X.indices, rows.d)
        kept = {"data": X.data, "indices": indices, "indptr": X.indptr, "features": features}
        return {"known": known, "places": codes, **kept}


def _renumbered(indices: Array, d: int) -> tuple[Ints, Array]:
    """Return the features that occur, sorted, and the place of each index among them."""
    if d > 16 * len(indices):
        features, place = np.unique(indices, return_inverse=True)
        return features, place.astype(np.int32)
    features, place = np.empty(d, np.int64), np.empty(len(indices), np.int32)
    met = kernels.renumber(frozen(indices), np.full(d, -1, np.int32), features, place)
    return features[:met].copy(), place


def _kept(home: Path) -> Examples:
    known: Known = pickle.loads((home / "known").read_bytes())
    names = ("dense",) if not known.sparse else ("data", "indices", "indptr", "features")
    arrays = {name: np.asarray(np.load(home / f"{name}.npy", mmap_mode="r")) for name in (*names, "places")}
    return _examples({"known": known, **arrays})


def _examples(parts: dict[str, Any]) -> Examples:
    known, places = parts["known"], parts["places"]
    if not known.sparse:
        return Examples(known, Rows(parts["dense"]), None, places)
    data, indices, indptr, features = (parts[name] for name in ("data", "indices", "indptr", "features"))
    X = sp.csr_matrix((data, indices, indptr.astype(indices.dtype)), shape=(known.n, len(features)), copy=False)
    return Examples(known, Rows(X), features.astype(np.int64), places)


def problem_of(examples: Examples, classes: Array, factors: Floats = NO_WEIGHT) -> Problem:
    """Return the problem that the examples are among known classes (−1: none of them), each class with its weight."""
    labels = Labels()
    labels.add(examples.known.labels)
    place = labels.among(classes)
    codes = place[examples.places].astype(np.int32) if len(place) else np.empty(0, np.int32)
    return Problem(examples.rows, frozen(codes), frozen(factors[codes]) if factors.size else NO_WEIGHT)


def fingerprint(digests: list[bytes]) -> str:
    """Return the hash of the data that the shards have together: that of the files read on one machine."""
    whole = hashlib.sha256()
    for digest in digests:
        whole.update(digest)
    return whole.hexdigest()


def forget(folder: Path, token: str) -> None:
    """Delete what was kept for a training."""
    _HELD.pop(token, None)
    shutil.rmtree(folder / token, ignore_errors=True)
