"""The column of each named feature. Predictions look names up here; lines to learn from are parsed by a kernel."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson

from separatrix.engine.rows import Array, Floats, Ints, frozen
from separatrix.kernels.parsing import ndjson
from separatrix.kernels.text import dictionary
from separatrix.web.server.reading.request_reader import LARGEST, MOST_LETTERS

_SPARE = 16
_LABELS = 64
_ROOM = 1 << 8
"""The names that the kernel's dictionary has room for at first: a server may hold a thousand models."""


class ParsedLines(NamedTuple):
    """Rows that the kernel parsed, the index of each row's label, and the distinct labels."""

    data: Floats
    indices: Ints
    indptr: Ints
    label: Ints
    labels: list[Any]


class FeatureIndex:
    """The columns of features by name, and the names by column, in the order of their first example."""

    def __init__(self, names: Iterable[str]) -> None:
        self.listed: list[str] = []
        self.column: dict[str, int] = {}
        self.n_bytes = 0
        """The bytes of all names together, in UTF-8."""
        self._seed = np.uint64(secrets.randbits(64))
        self._room = 0
        self._stamp = 1
        self._scratch = np.zeros(MOST_LETTERS + _SPARE, np.uint8)
        self._written = 0
        """The number of names in the kernel's dictionary."""
        self._offsets: Ints = np.zeros(1, np.int64)
        self._arena = np.zeros(_SPARE, np.uint8)
        self._reserve(_ROOM, 0)
        self.add(names)

    def add(self, names: Iterable[str]) -> None:
        """Give the next columns to new names."""
        for name in names:
            self.column[name] = len(self.listed)
            self.listed.append(name)
            self.n_bytes += len(name.encode())

    def columns_of(self, names: list[str]) -> Ints:
        """Return the column of each name, giving the next columns to new names."""
        try:
            return np.fromiter(map(self.column.__getitem__, names), np.int64, len(names))
        except KeyError:
            self.add(dict.fromkeys(name for name in names if name not in self.column))
            return np.fromiter(map(self.column.__getitem__, names), np.int64, len(names))

    def truncate(self, n: int) -> None:
        """Remove all but the first n names."""
        for name in self.listed[n:]:
            del self.column[name]
            self.n_bytes -= len(name.encode())
        del self.listed[n:]
        if self._written > n:
            self._written = n
            self._reserve(self._room, 0)

    def _reserve(self, names: int, letters: int) -> None:
        """Reserve space in the kernel's dictionary for so many names, and for so many more bytes of text."""
        names = max(names, self._room)
        self._room = names
        self._offsets = _grown(self._offsets, names + 1)
        self._arena = _grown(self._arena, int(self._offsets[self._written]) + letters + _SPARE)
        self._hashes = _grown(getattr(self, "_hashes", np.empty(0, np.uint32)), names)
        self._seen = _grown(getattr(self, "_seen", np.zeros(0, np.int64)), names)
        self._slots = np.zeros(1 << (2 * names).bit_length(), np.uint64)
        dictionary.fill_slots(self._hashes, self._written, self._slots)

    def _catch_up(self) -> None:
        """Enter the names that were added since the last call into the kernel's dictionary."""
        while self._written < len(self.listed):
            encoded = [name.encode() for name in self.listed[self._written : self._written + 65536]]
            total = sum(map(len, encoded))
            if self._written + len(encoded) > self._room:
                self._reserve(max(2 * self._room, self._written + len(encoded)), total)
            self._arena = _grown(self._arena, int(self._offsets[self._written]) + total + _SPARE)
            text = np.frombuffer(b"".join(encoded) + bytes(_SPARE), np.uint8)
            ends = np.cumsum([len(name) for name in encoded])
            ndjson.enter(
                *(frozen(text), frozen(ends), self._seed, self._written, self._slots),
                *(self._offsets, self._arena, self._hashes, self._seen),
            )
            self._written += len(encoded)

    def read(self, body: bytes, most: int) -> ParsedLines | None:
        """Parse lines of labelled examples, giving the next columns to new names.

        Returns None, with no name added, if the lines are not in the form that the kernel parses.
        """
        if not body.isascii():
            try:
                body.decode()
            except UnicodeDecodeError:
                return None
        self._catch_up()
        text = np.frombuffer(body + b"\n" + bytes(_SPARE), np.uint8)
        rows, entries = body.count(b"\n") + 1, body.count(b":")
        out: tuple[Array, ...] = (
            np.empty(entries),
            np.empty(entries, np.int64),
            np.empty(rows + 1, np.int64),
            np.empty(rows, np.int64),
        )
        spans = np.empty(2 * _LABELS, np.int64)
        n_before = len(self.listed)
        while True:
            self._arena = _grown(self._arena, int(self._offsets[n_before]) + len(body) + _SPARE)
            state, n, m, names, distinct = ndjson.read(
                *(frozen(text), len(body) + 1, most, MOST_LETTERS, LARGEST, self._seed, n_before, self._room, self._slots),
                *(self._offsets, self._arena, self._hashes, self._seen, self._stamp, out, spans, self._scratch),
            )
            self._stamp += int(n) + 1
            labels = None
            if state == ndjson.DONE and n:
                labels = _labels(body, spans[: 2 * int(distinct)])
            if labels is not None:
                break
            self._reserve(2 * self._room if state == ndjson.FULL else self._room, 0)
            if state != ndjson.FULL:
                return None
        self._written = int(names)
        letters = self._arena[self._offsets[n_before] : self._offsets[self._written]].tobytes()
        ends = (self._offsets[n_before : self._written + 1] - self._offsets[n_before]).tolist()
        self.add(letters[begin:end].decode() for begin, end in pairwise(ends))
        return ParsedLines(out[0][: int(m)], out[1][: int(m)], out[2][: int(n) + 1], out[3][: int(n)], labels)


def _labels(body: bytes, spans: Ints) -> list[Any] | None:
    """Return the labels in some spans of the body; None if one is not a string or an integer."""
    try:
        labels = [orjson.loads(body[begin:end]) for begin, end in spans.reshape(-1, 2).tolist()]
    except orjson.JSONDecodeError:
        return None
    return labels if set(map(type, labels)) <= {str, int} else None


def _grown(array: Any, size: int) -> Any:
    """Return the array with space for `size` entries; it grows by at least half, so that growing stays cheap."""
    if len(array) >= size:
        return array
    grown = np.zeros(max(size, len(array) * 3 // 2), array.dtype)
    grown[: len(array)] = array
    return grown
