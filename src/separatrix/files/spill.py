"""Examples that do not fit in memory, in a temporary file that is read in blocks.

Rows that arrive together are written as a chunk. With a seed, the rows of a chunk are sorted by partition, a hash of the
seed and of the row's number; a block is a range of partitions, read from all chunks, and so a random sample of all rows,
however they were sorted. That needs no second copy of the data: a block is one piece of each chunk. Without a seed, a block
is a chunk, and rows keep their order.
"""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from separatrix.engine.rows import Array, Ints

PARTITIONS = 1 << 12
"""There are at most so many blocks."""
MIXING = 1 << 40
"""Added to the seed, so that the hash of a row's number is another one than that which holds rows out."""

ROW = np.dtype([("number", np.int64), ("length", np.int32), ("code", np.int32)])
"""What is written of a row beside its entries: its number, how many entries it has (CSR), the number of its label."""


def row_hashes(first: int, n: int, seed: int) -> Array:
    """Return a 64-bit hash (SplitMix64) of the seed and the number of each row from `first` on."""
    with np.errstate(over="ignore"):
        x = np.arange(first, first + n, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    hashes: Array = x ^ (x >> np.uint64(31))
    return hashes


class Chunk(NamedTuple):
    """Where each array of a chunk begins in the file, with its type; the rows, and entries of X, before each partition."""

    places: dict[str, tuple[int, Any]]
    rows: Ints
    entries: Ints


class Piece(NamedTuple):
    """Rows begin…end of a chunk, and the entries of X that belong to them."""

    places: dict[str, tuple[int, Any]]
    rows: tuple[int, int]
    entries: tuple[int, int]


class Block(NamedTuple):
    """Rows of X with the number of their labels, and their own numbers."""

    X: Any
    codes: Array
    numbers: Ints


class SpillFile:
    """Rows and labels in a temporary file: `write` chunks, `divide` them into blocks, `read` blocks."""

    def __init__(self, folder: Path | None, seed: int | None) -> None:
        self.seed = seed
        self.bytes = self.rows = 0
        self._chunks: list[Chunk] = []
        self._blocks: list[list[Piece]] = []
        self._file: Any = tempfile.TemporaryFile(prefix="separatrix-", dir=folder, buffering=0)

    def write(self, X: Any, codes: Array) -> None:
        """Write a chunk: rows, dense or CSR, with the number of each label."""
        n = X.shape[0]
        rows, bounds = np.zeros(n, ROW), np.array([0, n])
        rows["number"], rows["code"] = np.arange(self.rows, self.rows + n), codes
        if self.seed is not None:
            partition = row_hashes(self.rows, n, self.seed + MIXING) % np.uint64(PARTITIONS)
            order = np.argsort(partition.astype(np.uint16), kind="stable")
            X, rows = X[order], rows[order]
            bounds = np.concatenate([[0], np.cumsum(np.bincount(partition.astype(np.int64), minlength=PARTITIONS))])
        if sp.issparse(X):
            rows["length"] = np.diff(X.indptr)
            arrays = {"rows": rows, "values": X.data, "indices": X.indices}
            entries = X.indptr[bounds].astype(np.int64)
        else:
            arrays = {"rows": rows, "values": X.reshape(-1)}
            entries = bounds * X.shape[1]
        places = {name: (self._append(array), array.dtype) for name, array in arrays.items()}
        self._chunks.append(Chunk(places, bounds, entries))
        self.rows += n

    def _append(self, array: Array) -> int:
        at, view = self.bytes, np.ascontiguousarray(array).view(np.uint8).data
        self._file.seek(at)
        while len(view):
            view = view[self._file.write(view) :]
        self.bytes += array.nbytes
        return at

    def divide(self, n_blocks: int) -> list[int]:
        """Divide the rows into about so many blocks (without a seed: one a chunk); return how many rows each has."""
        if self.seed is None:
            ranges = [[(chunk, 0, 1)] for chunk in self._chunks]
        else:
            n_blocks = min(n_blocks, PARTITIONS)
            edges = [PARTITIONS * k // n_blocks for k in range(n_blocks + 1)]
            ranges = [[(chunk, a, b) for chunk in self._chunks] for a, b in pairwise(edges)]
        self._blocks = [[_piece(*piece) for piece in pieces] for pieces in ranges]
        self._blocks = [pieces for pieces in self._blocks if any(end > begin for _, (begin, end), _ in pieces)]
        return [sum(end - begin for _, (begin, end), _ in pieces) for pieces in self._blocks]

    def read(self, k: int, d: int) -> Block:
        """Return block k, with d features."""
        pieces = self._blocks[k]
        rows = self._gathered(pieces, "rows", "rows")
        codes, numbers = rows["code"].copy(), rows["number"].copy()
        values = self._gathered(pieces, "values", "entries")
        if "indices" not in pieces[0].places:
            return Block(values.reshape(len(codes), d), codes, numbers)
        indices = self._gathered(pieces, "indices", "entries")
        ends = np.cumsum(rows["length"], dtype=np.int64)
        small = d < 1 << 31 and len(values) < 1 << 31
        index = np.int32 if small else np.int64
        indptr = np.concatenate([[0], ends]).astype(index)
        X = sp.csr_matrix((values, indices.astype(index, copy=False), indptr), shape=(len(codes), d))
        return Block(X, codes, numbers)

    def _gathered(self, pieces: list[Piece], name: str, unit: str) -> Array:
        """Return an array of all pieces, end to end."""
        bounds = [getattr(piece, unit) for piece in pieces]
        kinds = {piece.places[name][1] for piece in pieces}
        kind = kinds.pop() if len(kinds) == 1 else np.result_type(*kinds)
        array = np.empty(sum(end - begin for begin, end in bounds), kind)
        at = 0
        for piece, (begin, end) in zip(pieces, bounds, strict=True):
            place, dtype = piece.places[name]
            target = array[at : at + end - begin]
            if dtype == array.dtype:
                self._read_into(target, place + begin * dtype.itemsize)
            else:
                narrow = np.empty(end - begin, dtype)
                self._read_into(narrow, place + begin * dtype.itemsize)
                target[:] = narrow
            at += end - begin
        return array

    def _read_into(self, array: Array, at: int) -> None:
        view = array.view(np.uint8).data
        while len(view):
            n_bytes = _read_at(self._file, view, at)
            if not n_bytes:
                raise OSError("the temporary file with the examples was cut short")
            view, at = view[n_bytes:], at + n_bytes

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _read_at(file: Any, view: memoryview, at: int) -> int:
    """Read bytes of a file from `at` on into a view; return how many."""
    if hasattr(os, "preadv"):  # one call of the system, where seeking and reading are two
        return os.preadv(file.fileno(), [view], at)
    file.seek(at)
    return int(file.readinto(view))


def _piece(chunk: Chunk, begin: int, end: int) -> Piece:
    rows, entries = ((int(bounds[begin]), int(bounds[end])) for bounds in (chunk.rows, chunk.entries))
    return Piece(chunk.places, rows, entries)
