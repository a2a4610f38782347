"""The engine of Spark: a task for each shard, shuffles that add up eight parts each, weights as a broadcast variable.

The Python workers read the files; of a data frame they get each partition as Arrow batches. Spark runs a lost task again. A
data frame must come out the same when it is computed again: write one that was shuffled to files first.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyspark import SparkFiles, TaskContext
from pyspark.sql import SparkSession

from separatrix.cluster.engines import FAN_IN, NOT_INSTALLED, Engine, Told, combine, run
from separatrix.cluster.shards import Shard, forget
from separatrix.data.errors import DataError

SCHEMA = "place int, part binary"


class Spark(Engine):
    """An engine on the executors of a session, or of the master at an address."""

    def __init__(self, session: Any) -> None:
        super().__init__()
        self._own = isinstance(session, str)
        if self._own:
            master = session if session.startswith("spark://") else session.removeprefix("spark:")
            session = SparkSession.builder.master(master).appName("separatrix").getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
        self.session = session
        if not isinstance(session, SparkSession) or not hasattr(session, "_jsc"):
            raise DataError("a session of Spark Connect has no broadcast variables: give a classic SparkSession")
        self.context = session.sparkContext
        self.frames: list[tuple[Any, list[int]]] = []

    def take(self, data: Any, y: Any = None) -> list[int]:
        """Make shards of files, or of the partitions of a data frame."""
        if not hasattr(data, "mapInArrow"):
            return super().take(data, y)
        if y is not None:
            raise DataError("the labels of a Spark data frame are a column of it: name it with label=")
        numbers = self._number([None] * data.rdd.getNumPartitions(), "partition")
        self.frames.append((data, numbers))
        return numbers

    def _reduce(self, packed: bytes, which: list[int], told: Told) -> bytes:
        weights = self.context.broadcast(packed)
        finished = threading.Event()
        group = f"separatrix-{id(finished)}"
        self.context.setJobGroup(group, "iterative parameter mixing")
        watcher = threading.Thread(target=self._watch, args=(group, len(which), told, finished), daemon=True)
        watcher.start()
        try:
            ((_, found),) = self._tree(self._leaves(weights, which), len(which)).collect()
        except Exception as problem:
            if "No module named 'separatrix" in str(problem):
                raise DataError(NOT_INSTALLED) from problem
            raise
        finally:
            finished.set()
            watcher.join()
            weights.destroy()
        told(len(which))
        return bytes(found)

    def _leaves(self, weights: Any, which: list[int]) -> Any:
        """Return (place, part) of each shard."""
        place_of = {number: place for place, number in enumerate(which)}
        rdds = []
        for frame, numbers in self.frames:
            if place_of.keys() & set(numbers):
                rdds.append(frame.mapInArrow(_Partition(weights, numbers[0], place_of), SCHEMA).rdd.map(tuple))
        files = [(place_of[k], k, self.names[k], self.chunks[k]) for k in which if self.chunks[k] is not None]
        if files:
            rdds.append(self.context.parallelize(files, len(files)).map(lambda file: _run(weights, *file)))
        return rdds[0] if len(rdds) == 1 else self.context.union(rdds)

    def _tree(self, parts: Any, n: int) -> Any:
        while n > 1:
            n = -(-n // FAN_IN)
            groups = parts.map(lambda part: (part[0] // FAN_IN, part)).groupByKey(n, lambda key: key)
            parts = groups.map(_combined)
        return parts

    def _watch(self, group: str, total: int, told: Told, finished: threading.Event) -> None:
        """Tell how many shards are done, twice a second."""
        tracker, before = self.context.statusTracker(), 0
        while not finished.wait(0.5):
            stages = [
                s for job in tracker.getJobIdsForGroup(group) for s in getattr(tracker.getJobInfo(job), "stageIds", ())
            ]
            found = [
                stage.numCompletedTasks for s in stages if (stage := tracker.getStageInfo(s)) and stage.numTasks == total
            ]
            if found and before < max(found) < total:
                before = max(found)
                told(before)

    def forget(self, token: str) -> None:
        """Delete what the executors kept, as far as they can be reached; Spark deletes the rest with the session."""
        tasks = 2 * self.context.defaultParallelism
        self.context.parallelize(range(tasks), tasks).foreach(lambda _: forget(_folder(), token))

    def close(self) -> None:
        """End the session where it was begun here."""
        if self._own:
            self.session.stop()
        super().close()


class _Partition:
    """The work on one partition of a data frame."""

    def __init__(self, weights: Any, first: int, place_of: dict[int, int]) -> None:
        self.weights, self.first, self.place_of = weights, first, place_of

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        partition = TaskContext.get().partitionId()
        number = self.first + partition
        if number in self.place_of:
            place, part = _run(self.weights, self.place_of[number], number, f"partition {partition}", batches)
            yield pa.RecordBatch.from_arrays(
                [pa.array([place], pa.int32()), pa.array([part], pa.binary())], ["place", "part"]
            )
        for _ in batches:  # Spark ends a worker that leaves something unread, and starting one costs seconds
            pass


def _folder() -> Path:
    return Path(SparkFiles.getRootDirectory())


@lru_cache
def _settle() -> None:
    """Keep Spark, which collects garbage after every task, from searching all that was imported: a tenth of a second."""
    gc.freeze()


def _run(weights: Any, place: int, number: int, name: str, chunk: Any) -> tuple[int, bytes]:
    part = run(weights.value, Shard(number, name, chunk, _folder()))
    _settle()
    return place, part


def _combined(group: tuple[int, Any]) -> tuple[int, bytes]:
    key, parts = group
    return key, combine([part for _, part in sorted(parts)])
