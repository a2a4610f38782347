"""The words themselves: an exact vocabulary with its counts, and the names of hashed columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data.arrow_arrays import number_array, numpy_array
from separatrix.engine.rows import Array, Ints, frozen
from separatrix.features.words.ngrams import Grams
from separatrix.kernels.text import dictionary as kernels

_SPARE_BYTES = 8


def grown(array: Array, size: int) -> Array:
    """Return the array with room for `size` entries, at least half as many again as it had; views of it are void.

    Growing in place lets the operating system move pages instead of copying them.
    """
    if len(array) < size:
        array.resize((max(size, len(array) * 3 // 2), *array.shape[1:]), refcheck=False)
    return array


def checked_array(state: dict[str, Array], key: str, kind: Any, shape: tuple[int, ...]) -> Array:
    """Return a copy of an array of a state, or raise where it is not what was put there; −1 stands for any length."""
    array = state.get(key)
    if array is None or array.dtype != kind or array.ndim != len(shape):
        raise ValueError(f"the state is broken: {key} is missing or of the wrong kind")
    if any(n not in (-1, size) for n, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"the state is broken: {key} has shape {array.shape}, which does not fit the rest")
    return array.copy()


def column_numbers(state: dict[str, Array], key: str, d: int) -> Array:
    """Return the numbers of columns that a state holds."""
    columns = checked_array(state, key, np.int32, (-1,))
    if columns.size and not 0 <= columns.min() <= columns.max() < d:
        raise ValueError(f"the state is broken: {key} names columns beyond the {d} there are")
    return columns


class Dictionary:
    """Names laid end to end, with their hashes. What it keeps, it keeps for good."""

    def __init__(self) -> None:
        self.n = 0
        self.offsets: Ints = np.zeros(1, np.int64)
        self.arena = np.zeros(_SPARE_BYTES, np.uint8)
        self.hash_of = np.empty(0, np.uint32)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take arrays that are one's own: those of a pickle may not be, and could not grow."""
        self.__dict__.update(
            {key: np.array(value) if isinstance(value, np.ndarray) else value for key, value in state.items()}
        )

    def make_room(self, grams: Grams, most: int) -> None:
        """Grow so that `most` of these n-grams could be added."""
        lengths = grams.end - grams.begin
        longest = int(lengths.sum(dtype=np.int64)) if most >= len(lengths) else most * int(lengths.max(initial=0))
        self.offsets = grown(self.offsets, self.n + most + 1)
        self.arena = grown(self.arena, int(self.offsets[self.n]) + longest + _SPARE_BYTES)
        self.hash_of = grown(self.hash_of, self.n + most)

    def name(self, i: int) -> str:
        """Return one name."""
        return bytes(self.arena[self.offsets[i] : self.offsets[i + 1]]).decode("utf-8", "replace")

    def packed(self) -> Any:
        """Return all names as an Arrow array of bytes, without copying them."""
        buffers = [None, pa.py_buffer(self.offsets[: self.n + 1]), pa.py_buffer(self.arena)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), self.n, buffers)

    def state(self) -> dict[str, Array]:
        """Return the names as plain arrays."""
        size = self.offsets[self.n]
        lengths = np.diff(self.offsets[: self.n + 1]).astype(np.uint32)
        return {"bytes": self.arena[:size].copy(), "lengths": lengths, "hashes": self.hash_of[: self.n].copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Take the names of `state`."""
        lengths = checked_array(state, "lengths", np.uint32, (-1,))
        self.n = len(lengths)
        self.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        letters = checked_array(state, "bytes", np.uint8, (int(self.offsets[-1]),))
        self.arena = np.concatenate([letters, np.zeros(_SPARE_BYTES, np.uint8)])
        self.hash_of = checked_array(state, "hashes", np.uint32, (self.n,))


class Vocabulary(Dictionary):
    """Every n-gram seen, with how often it occurred and in how many texts."""

    def __init__(self) -> None:
        super().__init__()
        self.slots = np.zeros(16, np.uint64)
        self.tally: Ints = np.empty((0, 3), np.int64)

    def learn(self, grams: Grams, n_texts: int, keys: Array) -> None:
        """Count the n-grams of some more texts, after `n_texts` others; keys name them for `kernels.counts`."""
        most = self.n + len(grams.hashes)
        self.make_room(grams, len(grams.hashes))
        self.tally = grown(self.tally, most)
        if 2 * most > len(self.slots):
            self._spread(3 * most)
        tables = (self.slots, self.offsets, self.arena, self.hash_of, self.tally.reshape(-1))
        self.n = kernels.learn(*grams, self.n, n_texts, *tables, keys)

    def _spread(self, size: int) -> None:
        self.slots = np.zeros(1 << (size - 1).bit_length(), np.uint64)
        kernels.fill_slots(self.hash_of, self.n, self.slots)

    def find(self, grams: Grams, columns: Array, keys: Array, ptr: Array) -> None:
        """Write the keys of those n-grams that have a column."""
        kernels.find(*grams, self.slots, self.offsets, self.arena, columns, keys, ptr)

    def chosen(self, min_df: int, max_features: int | None) -> Ints:
        """Return the n-grams that are columns, in the order of their characters; of too many, the most frequent ones."""
        counts, df = self.tally[: self.n, 0], self.tally[: self.n, 1]
        candidates: Ints = np.flatnonzero(df >= min_df)
        if max_features is not None and len(candidates) > max_features:
            fewest = -np.partition(-counts[candidates], max_features - 1)[max_features - 1]
            candidates = candidates[counts[candidates] >= fewest]
        order: Ints = candidates[numpy_array(pc.sort_indices(self.packed().take(number_array(candidates))))]
        if max_features is not None and len(order) > max_features:
            order = order[np.sort(np.argsort(-counts[order], kind="stable")[:max_features])]
        return order

    def state(self) -> dict[str, Array]:
        """Return everything as plain arrays."""
        return super().state() | {"tally": self.tally[: self.n, :2].copy()}

    def restore(self, state: dict[str, Array]) -> None:
        """Take the names and counts of `state`."""
        super().restore(state)
        self.tally = np.column_stack([checked_array(state, "tally", np.int64, (self.n, 2)), np.full(self.n, -1)])
        self._spread(3 * max(self.n, 4))


class Names(Dictionary):
    """The n-grams that were hashed to each of d columns: up to `limit` in all, in the order in which they were met."""

    def __init__(self, d: int, limit: int) -> None:
        super().__init__()
        self.d, self.limit = d, limit
        self._heads: Array | None = None
        self._next: Array | None = None
        self.more = np.zeros(d, np.uint8)

    def links(self) -> tuple[Array, Array]:
        """Return where the names of each column begin, and for each name where the next one is.

        Those of a model file are made here, when first asked for: `predict` and `info` do without, and the latter then
        loads no kernel.
        """
        heads, next_name = self._heads, self._next
        if heads is None or next_name is None:
            heads, next_name = np.zeros(self.d, np.uint64), np.zeros(self.n, np.int32)
            if self.n:
                kernels.link(frozen(self.hash_of), self.n, self.d, heads, next_name)
            self._heads, self._next = heads, next_name
        return heads, next_name

    def columns(self) -> Ints:
        """Return the columns to which any n-gram was hashed."""
        heads, _ = self.links()
        return np.flatnonzero(heads | self.more)

    def remember(self, grams: Grams) -> None:
        """Keep the names that are new."""
        most = min(len(grams.hashes), self.limit - self.n)
        self.make_room(grams, most)
        heads, next_name = self.links()
        self._next = next_name = grown(next_name, self.n + most)
        tables = (heads, self.hash_of, next_name, self.offsets, self.arena, self.more)
        self.n = kernels.remember(grams.text, grams.begin, grams.end, grams.hashes, self.d, self.n, self.limit, *tables)

    def of(self, column: int) -> list[str]:
        """Return the names kept for a column."""
        heads, next_name = self.links()
        names, i = [], int(heads[column]) & 0xFFFFFFFF
        while i:
            names.append(self.name(i - 1))
            i = int(next_name[i - 1])
        return names

    def state(self) -> dict[str, Array]:
        """Return everything as plain arrays."""
        return super().state() | {"more": np.flatnonzero(self.more).astype(np.int32)}

    def restore(self, state: dict[str, Array]) -> None:
        """Take the names of `state`."""
        super().restore(state)
        self._heads = self._next = None
        self.more[column_numbers(state, "more", self.d)] = 1
