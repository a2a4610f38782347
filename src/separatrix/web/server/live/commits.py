"""One transaction of the store: the mistakes with their rows, and the counters after it.

Applied to the state before it, a commit gives the state after it, bit for bit: corrections are applied as recorded, never
computed again. Classes are numbered in the order of their first example, and a number never changes; −1 means no class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson
from safetensors.numpy import load, save

from separatrix.engine.rows import Array, Floats, Ints, frozen

_KEY = "commit"


class SparseRows(NamedTuple):
    """Rows in CSR form; the values of a row are in the order of the request."""

    data: Floats
    indices: Ints
    indptr: Ints

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """The arrays as the kernels read them."""
        return frozen(self.data), frozen(self.indices), frozen(self.indptr)

    def take(self, which: Ints) -> SparseRows:
        """Return some of the rows."""
        begin = self.indptr[which]
        lengths = self.indptr[which + 1] - begin
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(begin - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(self.data[places], self.indices[places], indptr)


NO_POSITIONS: Ints = np.empty(0, np.int64)
EMPTY = SparseRows(np.empty(0), np.empty(0, np.int64), np.zeros(1, np.int64))


def stacked(blocks: list[SparseRows]) -> SparseRows:
    """Return several blocks of rows as one."""
    if len(blocks) == 1:
        return blocks[0]
    ends = np.cumsum([0, *(len(block.data) for block in blocks)])
    indptr = [block.indptr[1:] + end for block, end in zip(blocks, ends[:-1], strict=True)]
    return SparseRows(
        np.concatenate([block.data for block in blocks]),
        np.concatenate([block.indices for block in blocks]),
        np.concatenate([np.zeros(1, np.int64), *indptr]),
    )


@dataclass
class Commit:
    """One transaction. `rows` are the rows of the mistakes; `steps`, `tally` and `radius` are those of the run after it."""

    n: int
    steps: int
    tally: list[float]
    radius: float
    step: Ints
    up: Ints
    down: Ints
    correction: Floats
    shrink: Floats
    rows: SparseRows
    wrong: Ints
    """The positions of the wrongly predicted examples among the n."""
    wrong_class: Ints
    met: Ints
    """The number of examples of each class."""
    names: list[str] = field(default_factory=list)
    """The new features, which get the next columns."""
    arrivals: list[tuple[int, Any]] = field(default_factory=list)
    """The new classes, each with the number of mistakes of this commit that were made before it."""
    sources: list[Any] | None = None
    """The texts or table rows of the mistakes, if a featurizer made the rows."""
    undoes: int | None = None
    """The number of the mistake that this commit undoes."""
    rebuilt: bool = False
    """Whether the state after it must be read from its own snapshot."""
    changes: int = 0
    """How many examples have another label than the one before, among the n."""
    ends: tuple[int, int] = (-1, -1)
    """The classes of the first and of the last example; −1 in stores of earlier versions, and where there is none."""
    kept: SparseRows | None = None
    kept_class: Ints = field(default_factory=lambda: NO_POSITIONS)
    """All examples and their classes, if the server keeps them."""
    kept_sources: list[Any] | None = None
    """The texts or table rows of all examples that are kept; None stands for one that is not known."""
    until_right: Ints = field(default_factory=lambda: NO_POSITIONS)
    """The positions of the examples that were corrected until they were judged right, among the n."""
    stuck: Ints = field(default_factory=lambda: NO_POSITIONS)
    """The positions of the corrections that count in the average from its beginning on (until_right.py)."""
    unresolved: tuple[int, ...] = ()
    """The positions of the examples that were wrong even after the most corrections allowed; not stored."""

    @property
    def mistakes(self) -> int:
        """The number of mistakes that it adds to the ledger."""
        return 0 if self.undoes is not None else len(self.step)

    @property
    def positions(self) -> Ints:
        """The position of the example of each mistake, among the n."""
        positions: Ints = self.step - (self.steps - self.n) - 1
        return positions

    def pack(self) -> bytes:
        """Return the commit as bytes."""
        facts = {name: getattr(self, name) for name in _FACTS} | {"kept": self.kept is not None}
        if self.kept_sources is not None:  # among which those of the mistakes are
            facts |= {"sources": None, "kept_sources": self.kept_sources}
        arrays: dict[str, Array] = {name: _narrow(getattr(self, name)) for name in _ARRAYS}
        arrays |= {name: _narrow(array) for name in _LATER if (array := getattr(self, name)).size}
        for name, block in (("rows", self.rows), ("kept", self.kept)):
            if block is not None:
                arrays |= {f"{name}.{part}": _narrow(array) for part, array in zip(_PARTS, block, strict=True)}
                arrays[f"{name}.data"] = _single(block.data)
        arrays[_KEY] = np.frombuffer(orjson.dumps(facts), np.uint8)
        return bytes(save(arrays))

    @classmethod
    def unpack(cls, body: bytes) -> Commit:
        """Return the commit that `pack` wrote."""
        arrays = load(body)
        facts = orjson.loads(arrays[_KEY].tobytes())
        fields: dict[str, Any] = {name: _wide(arrays[name]) for name in (*_ARRAYS, *_LATER) if name in arrays}
        for name in ("rows", "kept") if facts.pop("kept") else ("rows",):
            fields[name] = SparseRows(*(_wide(arrays[f"{name}.{part}"]) for part in _PARTS))
        facts["arrivals"] = [(n_before, label) for n_before, label in facts["arrivals"]]
        facts["ends"] = tuple(facts.get("ends", (-1, -1)))
        commit = cls(**facts, **fields)
        if commit.kept_sources is not None:
            commit.sources = [commit.kept_sources[at] for at in commit.positions.tolist()]
        return commit


_FACTS = ("n", "steps", "tally", "radius", "names", "arrivals", "sources", "undoes", "rebuilt", "changes", "ends")
_ARRAYS = ("step", "up", "down", "correction", "shrink", "wrong", "wrong_class", "met", "kept_class")
_LATER = ("until_right", "stuck")
"""Arrays that only some commits have, and none of format 2."""
_PARTS = ("data", "indices", "indptr")


def _narrow(array: Array) -> Array:
    """Return integers as 32-bit if they fit: most of a store is column numbers."""
    if array.dtype == np.int64 and (not array.size or int(array.max()) < 2**31):
        return array.astype(np.int32)
    return np.ascontiguousarray(array)


def _single(values: Floats) -> Array:
    """Return values as float32 if they are, bit for bit: counts, and the values of vectors."""
    single = values.astype(np.float32)
    return single if np.array_equal(single.astype(np.float64).view(np.int64), values.view(np.int64)) else values


def _wide(array: Array) -> Array:
    return array.astype(np.int64 if array.dtype.kind == "i" else np.float64, copy=False)


def merged(commits: list[Commit]) -> Commit:
    """Return one commit with the effect of several consecutive ones."""
    mistakes = np.cumsum([0, *(len(commit.step) for commit in commits)])
    examples = np.cumsum([0, *(commit.n for commit in commits)])
    classes = max(len(commit.met) for commit in commits)
    last = commits[-1]

    ends = [commit.ends for commit in commits if commit.n]
    has_sources = any(commit.sources is not None for commit in commits)
    sources = [source for commit in commits for source in commit.sources or [None] * len(commit.step)]
    has_kept_sources = any(commit.kept_sources is not None for commit in commits)
    kept_sources = [source for commit in commits for source in commit.kept_sources or [None] * commit.n]
    kept = [commit.kept for commit in commits if commit.kept is not None]
    all_kept = bool(kept) and all(commit.kept is not None or not commit.n for commit in commits)
    concatenated = ("step", "up", "down", "correction", "shrink", "wrong_class", "kept_class")
    joined: dict[str, Any] = {name: np.concatenate([getattr(commit, name) for commit in commits]) for name in concatenated}
    return Commit(
        n=int(examples[-1]),
        steps=last.steps,
        tally=last.tally,
        radius=last.radius,
        **joined,
        rows=stacked([commit.rows for commit in commits]),
        wrong=np.concatenate([commit.wrong + at for commit, at in zip(commits, examples[:-1], strict=True)]),
        until_right=np.concatenate([commit.until_right + at for commit, at in zip(commits, examples[:-1], strict=True)]),
        stuck=np.concatenate([commit.stuck + at for commit, at in zip(commits, mistakes[:-1], strict=True)]),
        met=np.sum([np.pad(commit.met, (0, classes - len(commit.met))) for commit in commits], axis=0),
        names=[name for commit in commits for name in commit.names],
        arrivals=[
            (int(at) + m, label) for commit, at in zip(commits, mistakes, strict=False) for m, label in commit.arrivals
        ],
        sources=sources if has_sources else None,
        changes=sum(commit.changes for commit in commits) + sum(a[1] != b[0] for a, b in pairwise(ends)),
        ends=(ends[0][0], ends[-1][1]) if ends else (-1, -1),
        kept=stacked(kept) if all_kept else None,
        kept_sources=kept_sources if has_kept_sources and all_kept else None,
    )
