"""Examples in blocks of bounded size: in memory as long as they fit, then in a temporary file.

Training makes as many passes over them as it likes; the source is read once. A block is closed when 64 MB are full, whatever
the memory (unless that is under 256 MB), so that the same data give the same model with much memory and with little.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.labels import check_kinds
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Floats, Ints, Rows, frozen

BLOCK_BYTES = 1 << 26


class LabelIndex:
    """Numbers labels in the order in which they first occur; at the end, returns the sorted classes."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def codes(self, labels: Any) -> Ints:
        """Return the number of each label; new labels get the next numbers."""
        if hasattr(labels, "dictionary_encode"):
            from separatrix.data.arrow_arrays import numpy_array

            encoded = labels.dictionary_encode()
            distinct, inverse = encoded.dictionary.to_pylist(), numpy_array(encoded.indices)
        else:
            values, inverse = np.unique(np.asarray(labels), return_inverse=True)
            distinct = values.tolist()
        codes: Ints = self.add(distinct)[inverse.astype(np.int64)]
        return codes

    def add(self, labels: list[Any]) -> Ints:
        """The same for labels that are Python objects."""
        return np.array([self._places.setdefault(label, len(self._places)) for label in labels], np.int64)

    def settled(self) -> tuple[Array, Ints]:
        """Return the sorted classes, as integers where all are whole, and the class of each numbered label."""
        met = list(self._places)
        whole = all(isinstance(label, float) and label == int(label) and abs(label) < 1 << 53 for label in met)
        met = [int(label) for label in met] if whole else met
        kinds = np.asarray(met) if len({type(label) for label in met}) == 1 else np.asarray(met, dtype=object)
        check_kinds(kinds)
        classes, places = np.unique(kinds, return_inverse=True)
        return classes, places.astype(np.int64)

    def among(self, classes: Array, *, as_written: bool = True) -> Ints:
        """Return the class of each numbered label among given classes, −1 for a label that is none of them.

        With `as_written=False`, a label also matches a class that differs from it only by full stops at the end.
        """
        code_of = {label: k for k, label in enumerate(classes.tolist())}
        places = [code_of.get(label, -1) for label in self._places]
        if not as_written:
            code_of_text = {str(label).rstrip("."): k for label, k in code_of.items()}
            met = zip(self._places, places, strict=True)
            places = [code_of_text.get(str(label).rstrip("."), -1) if place < 0 else place for label, place in met]
        return np.array(places, np.int64)

    def met(self) -> list[Any]:
        """Return the labels in the order of their numbers."""
        return list(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Blocks:
    """Rows and labels that are added in batches and read in blocks.

    Up to `memory` bytes of them stay in memory; later blocks go to a temporary file in `folder`. The use is: `add` batches,
    `settle` the classes, and then `read` blocks as often as needed.
    """

    def __init__(self, memory: int, folder: Path | None = None, block_bytes: int | None = None) -> None:
        self.labels, self.memory, self.folder = LabelIndex(), memory, folder
        self.block_bytes = block_bytes or min(BLOCK_BYTES, max(1 << 20, memory // 4))
        self.n = self.d = 0
        self.sizes: list[int] = []
        self.spilled = 0
        self._in_memory: list[tuple[Array, ...] | None] = []
        self._in_file: list[list[tuple[int, str, int]]] = []
        self._parts: list[tuple[Any, Ints]] = []
        self._pending = 0
        self._used = 0
        self._file: Any = None
        self._map: Ints | None = None
        self._counts = np.zeros(0, np.int64)

    def add(self, X: Any, labels: Any) -> None:
        """Add rows, dense or CSR, with their labels."""
        X = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)
        codes = self.labels.codes(labels)
        counts = np.bincount(codes, minlength=len(self.labels))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        self._parts.append((X, codes))
        self.n += X.shape[0]
        self.d = max(self.d, X.shape[1])
        self._pending += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        if self._pending >= self.block_bytes:
            self._seal()

    def _seal(self) -> None:
        parts, self._parts, size = self._parts, [], self._pending
        self._pending = 0
        codes = np.concatenate([codes for _, codes in parts]).astype(np.int32)
        arrays: tuple[Array, ...]
        if sp.issparse(parts[0][0]):
            starts = np.cumsum([0, *(X.nnz for X, _ in parts[:-1])])
            indptr = [X.indptr[:-1].astype(np.int64) + start for (X, _), start in zip(parts, starts, strict=True)]
            last = np.array([sum(X.nnz for X, _ in parts)])
            arrays = (
                np.concatenate([X.data for X, _ in parts]),
                np.concatenate([X.indices for X, _ in parts]),
                np.concatenate([*indptr, last]),
                codes,
            )
        else:
            arrays = (np.concatenate([X for X, _ in parts]), codes)
        self.sizes.append(len(codes))
        if self._used + size <= self.memory or not self._in_memory:
            self._used += size
            self._in_memory.append(arrays)
            self._in_file.append([])
        else:
            self._in_memory.append(None)
            self._in_file.append([self._write(array) for array in arrays])

    def _write(self, array: Array) -> tuple[int, str, int]:
        """Append an array to the temporary file; return its offset, type and size."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="separatrix-", dir=self.folder)
        at, self.spilled = self.spilled, self.spilled + array.nbytes
        array.reshape(-1).tofile(self._file)
        return at, array.dtype.str, array.size

    def settle(self, classes: Array | None = None) -> Array:
        """Close the last block; return the classes, sorted. Nothing can be added any more.

        Where the classes are known, a label that is none of them gets the code −1.
        """
        if self._parts:
            self._seal()
        if classes is None:
            classes, self._map = self.labels.settled()
        else:
            self._map = self.labels.among(classes)
        return classes

    def class_counts(self) -> Ints:
        """Return how many examples each class has."""
        assert self._map is not None, "settle first"
        counts = np.zeros(len(self._map), np.int64)
        counts[self._map[: len(self._counts)]] = self._counts
        return counts

    def __len__(self) -> int:
        return len(self.sizes)

    def starts(self) -> Ints:
        """Return the number of the first example of each block."""
        return np.cumsum([0, *self.sizes[:-1]])

    def read(self, k: int) -> Problem:
        """Return block k with the codes of its labels among the classes."""
        assert self._map is not None, "settle first"
        arrays = self._in_memory[k] or tuple(self._load(place) for place in self._in_file[k])
        n, X = self.sizes[k], None
        if len(arrays) == 4:
            data, indices, indptr, codes = arrays
            if self.d < 1 << 31 and len(data) < 1 << 31:
                indices, indptr = indices.astype(np.int32, copy=False), indptr.astype(np.int32, copy=False)
            X = sp.csr_matrix((data, indices.astype(indptr.dtype, copy=False), indptr), shape=(n, self.d))
        else:
            X, codes = arrays[0].reshape(n, self.d), arrays[1]
        return Problem(Rows(X), frozen(self._map[codes].astype(np.int32)))

    def _load(self, place: tuple[int, str, int]) -> Array:
        at, dtype, size = place
        self._file.seek(at)
        array = np.fromfile(self._file, np.dtype(dtype), size)
        if array.size != size:
            raise OSError("the temporary file with the examples was cut short")
        return array

    def take(self, numbers: Ints) -> Rows:
        """Return the rows of some examples, whose numbers are sorted."""
        sources = []
        for k, first in enumerate(self.starts().tolist()):
            here = numbers[(numbers >= first) & (numbers < first + self.sizes[k])] - first
            if here.size:
                sources.append(self.read(k).rows.take(here).source)
        if not sources:
            return Rows(np.empty((0, self.d)))
        return Rows(sp.vstack(sources, format="csr") if sp.issparse(sources[0]) else np.concatenate(sources))

    def together(self) -> Any:
        """Return all rows at once."""
        sources = [problem.rows.source for problem in self]
        if len(sources) == 1:
            return sources[0]
        return sp.vstack(sources, format="csr") if sp.issparse(sources[0]) else np.concatenate(sources)

    def places(self) -> Ints:
        """Return the number of each example's label."""
        assert self._map is not None, "settle first"
        codes = np.concatenate([problem.codes for problem in self])
        numbers: Ints = np.argsort(self._map)[codes]
        return numbers

    def whole(self, classes: Array) -> tuple[Any, Array]:
        """Return all rows and labels at once, without examples whose label is no class."""
        X, codes = self.together(), np.concatenate([problem.codes for problem in self])
        has_class = codes >= 0
        return (X if has_class.all() else X[has_class]), classes[codes[has_class]]

    def __iter__(self) -> Iterator[Problem]:
        return (self.read(k) for k in range(len(self)))

    def close(self) -> None:
        """Release the memory and the temporary file."""
        self._in_memory.clear()
        if self._file is not None:
            self._file.close()

    def __del__(self) -> None:
        self.close()


def held_out_rows(first: int, n: int, fraction: float, seed: int) -> Array:
    """Return which of the examples first … first + n − 1 are held out; it depends on their numbers and the seed only.

    The number of an example is hashed (SplitMix64) and held out if the hash is below the fraction. So it does not matter in
    which batches the examples come, and no list of them is needed.
    """
    with np.errstate(over="ignore"):
        x = np.arange(first, first + n, dtype=np.uint64) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    uniform: Floats = (x ^ (x >> np.uint64(31))).astype(np.float64) / 2.0**64
    return uniform < fraction
