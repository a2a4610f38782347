"""What an engine does: run work on shards, and add up the results in a fixed binary tree by shard number.

Work is a pure function of a shard, so work that was lost with its worker is simply run again. An error in a shard's data is
returned as a value and not raised: an engine would only retry it.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from separatrix import __version__
from separatrix.cluster.shards import Shard, TextColumnsError, forget
from separatrix.data.errors import DataError
from separatrix.data.streams import expand, is_pipe

FAN_IN = 8
"""How many results one task adds up: three levels of the binary tree."""
NOT_INSTALLED = f"separatrix is not installed on the workers: install separatrix {__version__} there, in their Python"


class Work(Protocol):
    """What is done on each shard; its results can be pickled and added."""

    def __call__(self, shard: Shard) -> Any:
        """Return the result for a shard."""


class BadShard(NamedTuple):
    """The error of a shard that cannot be used; of several, the one with the lowest number is reported."""

    number: int
    message: str
    text_columns: tuple[str, ...] = ()
    """The columns that turned out to be text, if that is what is wrong."""


def add_results(result: Any, other: Any) -> Any:
    """Return the sum of two results, or the error of the first bad shard."""
    errors = [term for term in (result, other) if isinstance(term, BadShard)]
    return min(errors) if errors else result + other


def pack(content: Any) -> bytes:
    """Return an object as the bytes that are sent."""
    return pickle.dumps(content, 5)


@lru_cache(maxsize=2)
def _unpacked(packed: bytes) -> tuple[str, Work]:
    version, work = pickle.loads(packed)
    return version, work


def run_work(packed: bytes, shard: Shard) -> bytes:
    """Run packed work on a shard; return the packed result. Workers call this."""
    try:
        version, work = _unpacked(packed)
        if version != __version__:
            raise DataError(f"the worker has separatrix {__version__} and the driver {version}: install the same version")
        return pack(work(shard))
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError, MemoryError) as error:
        message = str(error) or type(error).__name__
        message = message if shard.name in message else f"{shard.name}: {message}"
        return pack(BadShard(shard.number, message, error.names if isinstance(error, TextColumnsError) else ()))


class Tree:
    """Adds results up in a fixed binary tree by place, each pair as soon as both are there."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._waiting: dict[tuple[int, int], Any] = {}

    def add(self, place: int, result: Any) -> None:
        """Take the result of a place."""
        level = 0
        while self.size > 1 << level:
            sibling = place ^ 1
            if sibling << level < self.size:
                if (level, sibling) not in self._waiting:
                    break
                other = self._waiting.pop((level, sibling))
                result = add_results(result, other) if place < sibling else add_results(other, result)
            place, level = place // 2, level + 1
        self._waiting[level, place] = result

    def root(self) -> Any:
        """Return the sum of all results."""
        (root,) = self._waiting.values()
        return root


def combine(packed_results: Iterable[bytes]) -> bytes:
    """Add up packed results that are neighbours in the tree. Workers call this."""
    results = list(packed_results)
    if len(results) == 1:
        return results[0]
    tree = Tree(len(results))
    for place, result in enumerate(results):
        tree.add(place, pickle.loads(result))
    return pack(tree.root())


ReportDone = Callable[[int], None]
"""Called with the number of shards that are done."""


class Engine:
    """One process, one shard after the other: the reference for every other engine.

    Attributes
    ----------
    names : the names of the shards, by number.
    sent, received : the bytes that have gone through the driver.
    common_folder : whether all workers store examples in the same folder.
    """

    common_folder = True

    def __init__(self) -> None:
        self.names: list[str] = []
        self.chunks: list[Any] = []
        self.sent = self.received = 0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """The folder in which this machine stores the examples that it has read."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="separatrix-", ignore_cleanup_errors=True)
        return Path(self._temporary.name)

    def add_shards(self, data: Any, y: Any = None) -> list[int]:
        """Make shards of some data; return their numbers. Files are not read yet."""
        if isinstance(data, str | Path):
            chunks: list[Any] = expand(data)
        elif not isinstance(data, Sequence):
            raise TypeError(f"{type(self).__name__} cannot make shards of {type(data).__name__}: pass file names")
        else:
            chunks = [path for item in data for path in (expand(item) if isinstance(item, str | Path) else [item])]
        for chunk in chunks:
            if isinstance(chunk, str) and is_pipe(chunk):
                raise DataError(f"{chunk} can be read only once, and shards are read again: put the data into files")
        if y is not None:
            chunks = list(zip(chunks, y, strict=True))
        return self._add_chunks(chunks)

    def _add_chunks(self, chunks: Sequence[Any], kind: str = "part") -> list[int]:
        first = len(self.chunks)
        self.chunks += chunks
        self.names += [c if isinstance(c, str) else f"{kind} {first + i}" for i, c in enumerate(chunks)]
        return list(range(first, len(self.chunks)))

    def reduce(self, work: Work, numbers: Sequence[int], report: ReportDone = lambda done: None) -> Any:
        """Run work on the shards with these numbers and return the sum of the results."""
        packed = pack((__version__, work))
        self.sent += len(packed)
        packed_result = self._reduce(packed, list(numbers), report)
        self.received += len(packed_result)
        result = pickle.loads(packed_result)
        if isinstance(result, BadShard) and result.text_columns:
            raise TextColumnsError(result.message, result.text_columns)
        if isinstance(result, BadShard):
            raise DataError(result.message)
        return result

    def _reduce(self, packed: bytes, numbers: list[int], report: ReportDone) -> bytes:
        tree = Tree(len(numbers))
        for place, number in enumerate(numbers):
            tree.add(place, pickle.loads(run_work(packed, self.shard(number, self.folder))))
            report(place + 1)
        return pack(tree.root())

    def shard(self, number: int, folder: Path) -> Shard:
        """Return a shard as its worker gets it."""
        return Shard(number, self.names[number], self.chunks[number], folder)

    def forget(self, training_id: str) -> None:
        """Delete the examples that the workers stored for a training."""
        forget(self.folder, training_id)

    def close(self) -> None:
        """Release all resources."""
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
