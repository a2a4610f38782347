"""Examples in memory as long as they fit, then in blocks of bounded size in a temporary file.

Training makes as many passes over them as it likes; the source is read once. What fits is one block, and training on it is
`fit`. What does not is mixed on its way to the disk, so that each block is a sample of the whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.labels import as_one, matching
from separatrix.engine.labels import check_kinds, come_in_runs
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Ints, Rows, frozen
from separatrix.files.row_buffer import RowBuffer
from separatrix.files.spill import Block, SpillFile, row_hashes

BLOCK_BYTES = 1 << 26
"""A block of a temporary file has about so many bytes, or fewer where the memory is small."""


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
        met = as_one(list(self._places))
        numbers = all(type(label) in (int, float) for label in met)
        whole = numbers and all(label == int(label) and abs(label) < 1 << 53 for label in met)
        met = [int(label) for label in met] if whole else met
        kinds = np.asarray(met) if len({type(label) for label in met}) == 1 else np.asarray(met, dtype=object)
        check_kinds(kinds)
        classes, places = np.unique(kinds, return_inverse=True)
        return classes, places.astype(np.int64)

    def among(self, classes: Array, *, as_written: bool = True) -> Ints:
        """Return the class of each numbered label among given classes, −1 for a label that is none of them.

        With `as_written=False`, a label also matches the class of `matching`.
        """
        code_of = {label: k for k, label in enumerate(classes.tolist())}
        meant = {} if as_written else self.matching(classes)
        return np.array([code_of.get(meant.get(label, label), -1) for label in self._places], np.int64)

    def matching(self, classes: Array) -> dict[Any, Any]:
        """Return the class that each label which is none of the classes differs from just a little."""
        others = set(classes.tolist())
        return matching([label for label in self._places if label not in others], classes.tolist())

    def met(self) -> list[Any]:
        """Return the labels in the order of their numbers."""
        return list(self._places)

    def __len__(self) -> int:
        return len(self._places)


class Blocks:
    """Rows and labels that are added in batches and read in blocks.

    Up to `memory` bytes of them are one block in memory: training on it is training on all rows at once. More than that go
    to a temporary file in `folder`. With a `seed` each row goes to a random block of it, so that the blocks are samples of
    the whole, however the rows were sorted; without one, the blocks follow the order of the rows.

    The use is: `add` batches, `settle` the classes, and then `read` blocks as often as needed.
    """

    def __init__(
        self, memory: int, folder: Path | None = None, block_bytes: int | None = None, seed: int | None = None
    ) -> None:
        self.labels, self.memory, self.folder, self.seed = LabelIndex(), memory, folder, seed
        self.block_bytes = block_bytes or min(BLOCK_BYTES, max(1 << 20, memory // 4))
        # Larger chunks make fewer pieces of a block.
        self._chunk_bytes = self.block_bytes if seed is None else max(self.block_bytes, memory // 2)
        self.n = self.d = self.entries = 0
        self.sizes: list[int] = []
        self._buffer, self._total = RowBuffer(max(memory, self.block_bytes)), 0
        self._changes, self._last_code = 0, -1
        self._whole: Problem | None = None
        self._spill: SpillFile | None = None
        self._cache: dict[int, Block] = {}
        self._map: Ints | None = None
        self._counts, self._n_classes = np.zeros(0, np.int64), 0

    @property
    def spilled(self) -> int:
        """How many bytes are in the temporary file."""
        return 0 if self._spill is None else self._spill.bytes

    @property
    def sparse(self) -> bool:
        """Whether the rows are CSR, so that they can have more features than came with them."""
        return bool(self._buffer.sparse)

    def add(self, X: Any, labels: Any) -> None:
        """Add rows, dense or CSR, with their labels."""
        X = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X)
        codes = self.labels.codes(labels)
        if not len(codes):
            return
        counts = np.bincount(codes, minlength=len(self.labels))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        self._changes += int(np.count_nonzero(np.diff(codes, prepend=self._last_code)))
        self._last_code = int(codes[-1])
        before = self._buffer.bytes
        self._buffer.add(X, codes)
        self._total += self._buffer.bytes - before
        self.n += X.shape[0]
        self.entries += X.nnz if sp.issparse(X) else X.size
        self.d = max(self.d, X.shape[1])
        if self._spill is None and self._total > max(self.memory, self.block_bytes):
            self._spill = SpillFile(self.folder, self.seed)
        if self._spill is not None and self._buffer.bytes >= self._chunk_bytes:
            self._write_chunks()

    def _write_chunks(self) -> None:
        """Move the rows of the buffer to the temporary file, in chunks."""
        assert self._spill is not None
        chunks = max(1, self._buffer.bytes // self._chunk_bytes)
        rows = -(-self._buffer.n // chunks)
        for begin in range(0, self._buffer.n, rows):
            self._spill.write(*self._buffer.rows(begin, min(begin + rows, self._buffer.n), self.d))
        self._buffer = RowBuffer(self._chunk_bytes, self._buffer.sparse)

    def settle(self, classes: Array | None = None) -> Array:
        """Close the last block; return the classes, sorted. Nothing can be added any more.

        Where the classes are known, labels are matched as `evaluate` does, and one that is none of them gets the code −1.
        """
        if classes is None:
            classes, self._map = self.labels.settled()
        else:
            self._map = self.labels.among(classes, as_written=False)
        self._n_classes = len(classes)
        if self._spill is not None:
            if self._buffer.n:
                self._write_chunks()
            self.sizes = self._spill.divide(-(-self._total // self.block_bytes))
        elif self.n:
            self.sizes = [self.n]
            X, codes = self._buffer.rows(0, self.n, self.d)
            self._whole = Problem(Rows(X), self._coded(codes))
        return classes

    def _coded(self, codes: Array) -> Array:
        assert self._map is not None, "settle first"
        return frozen(self._map[codes].astype(np.int32))

    def layout(self) -> str:
        """Return how the rows lie in blocks, on which the order of a pass depends: a checkpoint stores it."""
        if self._spill is None:
            return "memory"
        digest = hashlib.sha256(np.array(self.sizes, np.int64).tobytes()).hexdigest()[:16]
        return f"{'in order' if self.seed is None else 'mixed'}, {len(self)} blocks, {digest}"

    def was_one_block(self) -> bool:
        """Tell whether earlier versions, which closed a block at `block_bytes` even in memory, had one block of these."""
        return self._spill is None and self._total < self.block_bytes

    def in_runs(self) -> bool:
        """Tell whether equal labels follow each other far more often than in a random order."""
        return come_in_runs(self._counts, self._changes - 1)

    def class_counts(self) -> Ints:
        """Return how many examples each class has."""
        assert self._map is not None, "settle first"
        counts, places = np.zeros(self._n_classes, np.int64), self._map[: len(self._counts)]
        np.add.at(counts, places[places >= 0], self._counts[places >= 0])
        return counts

    def unknown_labels(self) -> dict[Any, int]:
        """Return the labels that are none of the classes, and how many examples have each."""
        assert self._map is not None, "settle first"
        met = zip(self.labels.met(), self._map.tolist(), self._counts.tolist(), strict=True)
        return {label: count for label, code, count in met if code < 0}

    def __len__(self) -> int:
        return len(self.sizes)

    def read(self, k: int) -> Problem:
        """Return block k with the codes of its labels among the classes."""
        if self._spill is None:
            assert self._whole is not None, "settle first"
            if self._whole.rows.d < self.d:  # the held-out rows have features that these do not
                X = self._whole.rows.source
                wider = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], self.d))
                self._whole = self._whole._replace(rows=Rows(wider))
            return self._whole
        block = self._block(k)
        return Problem(Rows(block.X), self._coded(block.codes))

    def numbers(self, k: int) -> int | Ints:
        """Return the number of each row of block k, counted in the order in which rows were added; 0: they count from 0."""
        return 0 if self._spill is None else self._block(k).numbers

    def _block(self, k: int) -> Block:
        """Return a block of the temporary file; as many as half of the memory holds, and the last one read, stay there."""
        assert self._spill is not None
        if k not in self._cache:
            kept = int(self.memory // 2 / max(1, self._total) * len(self))  # blocks 0 … kept − 1 stay
            for other in [other for other in self._cache if other >= kept]:
                del self._cache[other]
            self._cache[k] = self._spill.read(k, self.d)
        return self._cache[k]

    def sample(self, most: int) -> Iterator[Problem]:
        """Yield about `most` random examples, or all where there are fewer."""
        if self.n <= most:
            yield from self
        elif self._spill is not None and self.seed is not None:  # each block is a sample
            yield from (self.read(k) for k in range(-(-most * len(self) // self.n)))
        else:
            for problem in self:
                yield problem.taken(np.flatnonzero(held_out_rows(0, problem.rows.n, most / self.n, 0)))

    def take(self, numbers: Ints) -> Rows:
        """Return the rows of some examples, whose numbers are sorted."""
        if self._spill is None:
            return self.read(0).rows.take(numbers)
        sources, places = [], []
        for k in range(len(self)):
            block = self._block(k)
            at = np.flatnonzero(np.isin(block.numbers, numbers))
            sources.append(block.X[at])
            places.append(block.numbers[at])
        order = np.argsort(np.concatenate(places))
        return Rows((sp.vstack(sources, format="csr") if sp.issparse(sources[0]) else np.concatenate(sources))[order])

    def together(self) -> Any:
        """Return all rows at once."""
        sources = [problem.rows.source for problem in self]
        if len(sources) == 1:
            return sources[0]
        return sp.vstack(sources, format="csr") if sp.issparse(sources[0]) else np.concatenate(sources)

    def places(self) -> Ints:
        """Return the number of each example's label, of labels that are one class the first."""
        assert self._map is not None, "settle first"
        codes = np.concatenate([problem.codes for problem in self])
        numbers: Ints = np.unique(self._map, return_index=True)[1][codes]
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
        self._whole, self._buffer = None, RowBuffer()
        self._cache.clear()
        if self._spill is not None:
            self._spill.close()

    def __del__(self) -> None:
        self.close()


def held_out_rows(first: int, n: int, fraction: float, seed: int) -> Array:
    """Return which of the examples first … first + n − 1 are held out; it depends on their numbers and the seed only.

    An example is held out if the hash of its number is below the fraction. So it does not matter in which batches the
    examples come, and no list of them is needed.
    """
    return row_hashes(first, n, seed).astype(np.float64) / 2.0**64 < fraction
