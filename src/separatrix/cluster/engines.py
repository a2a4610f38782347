"""What an engine does: run work on shards, and add up what it returns in a fixed binary tree by shard number.

Work is a pure function of a shard, so one whose worker was lost is simply run again. What is wrong with a shard comes back
as a value, never as an error of the engine, which would only try again.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from separatrix import __version__
from separatrix.cluster.shards import Shard, forget
from separatrix.data.errors import DataError
from separatrix.data.streams import expand

FAN_IN = 8
"""How many parts one task adds up: three levels of the binary tree."""
NOT_INSTALLED = f"separatrix is not installed on the workers: install separatrix {__version__} there, in their Python"


class Work(Protocol):
    """What is done on each shard: the results can be pickled and added."""

    def __call__(self, shard: Shard) -> Any:
        """Return the result for a shard."""


class Poison(NamedTuple):
    """A shard that cannot be used: of several, the first in order is told."""

    number: int
    message: str


def added(part: Any, other: Any) -> Any:
    """Return the sum of two parts, or what is wrong with the first shard that anything is wrong with."""
    poison = [one for one in (part, other) if isinstance(one, Poison)]
    return min(poison) if poison else part + other


def pack(thing: Any) -> bytes:
    """Return what travels."""
    return pickle.dumps(thing, 5)


@lru_cache(maxsize=2)
def _opened(packed: bytes) -> tuple[str, Work]:
    found: tuple[str, Work] = pickle.loads(packed)
    return found


def run(packed: bytes, shard: Shard) -> bytes:
    """Do the work on a shard: what a worker is asked for."""
    try:
        version, work = _opened(packed)
        if version != __version__:
            raise DataError(f"the worker has separatrix {__version__}, and the driver {version}: install the same")
        return pack(work(shard))
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError, MemoryError) as problem:
        what = str(problem) or type(problem).__name__
        named = shard.name in what
        return pack(Poison(shard.number, what if named else f"{shard.name}: {what}"))


class Tree:
    """Adds parts up in a fixed binary tree by place, each pair as soon as both are there."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._held: dict[tuple[int, int], Any] = {}

    def add(self, place: int, part: Any) -> None:
        """Take the part of a place."""
        level = 0
        while self.size > 1 << level:
            sibling = place ^ 1
            if sibling << level < self.size:
                if (level, sibling) not in self._held:
                    break
                other = self._held.pop((level, sibling))
                part = added(part, other) if place < sibling else added(other, part)
            place, level = place // 2, level + 1
        self._held[level, place] = part

    def root(self) -> Any:
        """Return the sum of all parts."""
        (root,) = self._held.values()
        return root


def combine(parts: Iterable[bytes]) -> bytes:
    """Add up parts that are neighbours in the tree: what a worker is asked for."""
    held = list(parts)
    if len(held) == 1:
        return held[0]
    tree = Tree(len(held))
    for place, part in enumerate(held):
        tree.add(place, pickle.loads(part))
    return pack(tree.root())


Told = Callable[[int], None]


class Engine:
    """One process, one shard after the other: the reference for every other engine.

    Attributes
    ----------
    names : of the shards, by number.
    sent, received : the bytes that have gone through the driver.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.chunks: list[Any] = []
        self.sent = self.received = 0
        self._held: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """Where this machine keeps what it has read."""
        if self._held is None:
            self._held = tempfile.TemporaryDirectory(prefix="separatrix-", ignore_cleanup_errors=True)
        return Path(self._held.name)

    def take(self, data: Any, y: Any = None) -> list[int]:
        """Make shards of some data; return their numbers. Files are named, not read."""
        if isinstance(data, str | Path):
            chunks: list[Any] = expand(data)
        elif not isinstance(data, Sequence):
            raise TypeError(f"{type(data).__name__} is nothing that {type(self).__name__} can make shards of: name files")
        else:
            chunks = [path for one in data for path in (expand(one) if isinstance(one, str | Path) else [one])]
        if y is not None:
            chunks = list(zip(chunks, y, strict=True))
        return self._number(chunks)

    def _number(self, chunks: Sequence[Any], what: str = "part") -> list[int]:
        first = len(self.chunks)
        self.chunks += chunks
        self.names += [c if isinstance(c, str) else f"{what} {first + i}" for i, c in enumerate(chunks)]
        return list(range(first, len(self.chunks)))

    def reduce(self, work: Work, which: Sequence[int], told: Told = lambda done: None) -> Any:
        """Run work on some shards and return the sum of the results; `told` hears how many shards are done."""
        packed = pack((__version__, work))
        self.sent += len(packed)
        result = self._reduce(packed, list(which), told)
        self.received += len(result)
        found = pickle.loads(result)
        if isinstance(found, Poison):
            raise DataError(found.message)
        return found

    def _reduce(self, packed: bytes, which: list[int], told: Told) -> bytes:
        tree = Tree(len(which))
        for place, number in enumerate(which):
            tree.add(place, pickle.loads(run(packed, self.shard(number, self.folder))))
            told(place + 1)
        return pack(tree.root())

    def shard(self, number: int, folder: Path) -> Shard:
        """Return a shard as its worker gets it."""
        return Shard(number, self.names[number], self.chunks[number], folder)

    def forget(self, token: str) -> None:
        """Delete what the workers kept for a training."""
        forget(self.folder, token)

    def close(self) -> None:
        """Let go of everything."""
        if self._held is not None:
            self._held.cleanup()
            self._held = None


def engine_of(engine: Any) -> Engine:
    """Return the engine of None, "local:N", "dask://HOST:PORT", "spark://HOST:PORT", a Dask client or a Spark session."""
    if isinstance(engine, Engine):
        return engine
    if engine is None:
        return Engine()
    home = type(engine).__module__.partition(".")[0]
    scheme, _, rest = engine.partition(":") if isinstance(engine, str) else (home, "", "")
    if scheme == "local" and rest.isdigit() and int(rest):
        from separatrix.cluster.local import Local

        return Local(int(rest))
    if scheme in ("dask", "distributed"):
        from separatrix.cluster.dask import Dask

        return Dask(f"tcp:{rest}" if rest else engine)
    if scheme in ("spark", "pyspark"):
        from separatrix.cluster.spark import Spark

        return Spark(engine)
    known = "local:4, dask://HOST:PORT, spark://HOST:PORT, a dask.distributed Client or a SparkSession"
    raise DataError(f"engine {engine!r} is not known: {known}")
