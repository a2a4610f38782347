"""The engine of Spark: tasks for the shards, shuffles that add up eight results each, work as a broadcast variable.

A task works on one partition of a data frame, whose rows it gets as Arrow batches, or on one file; on several neighbouring
files where there are many for each core, because every task costs Spark some 30 ms of a core. Spark reruns a lost task. A
data frame must give the same rows when it is computed again: write one that was shuffled to files first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkFiles, TaskContext
from pyspark.sql import SparkSession

from separatrix.cluster.engines import FAN_IN, NOT_INSTALLED, Engine, ReportDone, combine, run_work
from separatrix.cluster.shards import Shard, forget
from separatrix.data.errors import DataError

SCHEMA = "place int, result binary"
TASKS = 2
"""The tasks that each core gets at least, before a task takes several shards: shards differ in size."""


class Spark(Engine):
    """An engine on the executors of a Spark session, or of the master at an address."""

    common_folder = False

    def __init__(self, session: Any) -> None:
        super().__init__()
        self._owns_session = isinstance(session, str)
        if self._owns_session:
            master = session if session.startswith("spark://") else session.removeprefix("spark:")
            session = SparkSession.builder.master(master).appName("separatrix").getOrCreate()
            session.sparkContext.setLogLevel("ERROR")
        self.session = session
        if not isinstance(session, SparkSession) or not hasattr(session, "_jsc"):
            raise DataError("a Spark Connect session has no broadcast variables: pass a classic SparkSession")
        self.context = session.sparkContext
        self.frames: list[tuple[Any, list[int]]] = []

    def add_shards(self, data: Any, y: Any = None) -> list[int]:
        """Make shards of files, or of the partitions of a data frame."""
        if not hasattr(data, "mapInArrow"):
            return super().add_shards(data, y)
        if y is not None:
            raise DataError("the labels of a Spark data frame are one of its columns: name it with label=")
        numbers = self._add_chunks([None] * data.rdd.getNumPartitions(), "partition")
        self.frames.append((data, numbers))
        return numbers

    def _reduce(self, packed: bytes, numbers: list[int], report: ReportDone) -> bytes:
        work = self.context.broadcast(packed)
        finished = threading.Event()
        group = f"separatrix-{id(finished)}"
        self.context.setJobGroup(group, "iterative parameter mixing")
        together = 1 if self.frames else shards_of_a_task(len(numbers), self.context.defaultParallelism)
        watched = group, len(numbers), together, report, finished
        watcher = threading.Thread(target=self._watch, args=watched, daemon=True)
        watcher.start()
        try:
            leaves = self._leaves(work, numbers, together)
            ((_, total),) = self._tree(leaves, _groups(len(numbers), together)).collect()
        except Exception as error:
            if "No module named 'separatrix" in str(error):
                raise DataError(NOT_INSTALLED) from error
            raise
        finally:
            finished.set()
            watcher.join()
            work.destroy()
        report(len(numbers))
        return bytes(total)

    def _leaves(self, work: Any, numbers: list[int], together: int) -> Any:
        """Return (place, result) of each group of shards."""
        place_of = {number: place for place, number in enumerate(numbers)}
        rdds = []
        for frame, of_frame in self.frames:
            if place_of.keys() & set(of_frame):
                rdds.append(frame.mapInArrow(_Partition(work, of_frame[0], place_of), SCHEMA).rdd.map(tuple))
        files = [(place_of[k], k, self.names[k], self.chunks[k]) for k in numbers if self.chunks[k] is not None]
        if files:
            groups = [files[first : first + together] for first in range(0, len(files), together)]
            rdds.append(self.context.parallelize(groups, len(groups)).map(lambda group: _run_group(work, group, together)))
        return rdds[0] if len(rdds) == 1 else self.context.union(rdds)

    def _tree(self, results: Any, n: int) -> Any:
        """Return (0, sum) of n results."""
        while n > 1:
            n = _groups(n, FAN_IN)
            groups = results.map(lambda result: (result[0] // FAN_IN, result)).groupByKey(n, lambda key: key)
            results = groups.map(_combined)
        return results

    def _watch(self, group: str, shards: int, together: int, report: ReportDone, finished: threading.Event) -> None:
        """Report how many shards are done, twice a second."""
        tracker, before, total = self.context.statusTracker(), 0, _groups(shards, together)
        while not finished.wait(0.5):
            stages = [
                s for job in tracker.getJobIdsForGroup(group) for s in getattr(tracker.getJobInfo(job), "stageIds", ())
            ]
            completed = [
                stage.numCompletedTasks for s in stages if (stage := tracker.getStageInfo(s)) and stage.numTasks == total
            ]
            if completed and before < max(completed) < total:
                before = max(completed)
                report(before * together)

    def forget(self, training_id: str) -> None:
        """Delete the stored examples on the executors that run these tasks; Spark deletes the rest with the session."""
        tasks = 2 * self.context.defaultParallelism
        self.context.parallelize(range(tasks), tasks).foreach(lambda _: forget(_folder(), training_id))

    def close(self) -> None:
        """Stop the session if this engine started it."""
        if self._owns_session:
            self.session.stop()
        super().close()


class _Partition:
    """The work on one partition of a data frame."""

    def __init__(self, work: Any, first: int, place_of: dict[int, int]) -> None:
        self.work, self.first, self.place_of = work, first, place_of

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        partition = TaskContext.get().partitionId()
        number = self.first + partition
        if number in self.place_of:
            place, result = _run(self.work, self.place_of[number], number, f"partition {partition}", batches)
            yield pa.RecordBatch.from_arrays(
                [pa.array([place], pa.int32()), pa.array([result], pa.binary())], ["place", "result"]
            )
        for _ in batches:  # Spark kills a worker that leaves input unread, and starting one takes seconds
            pass


def shards_of_a_task(shards: int, cores: int) -> int:
    """Return how many neighbouring shards one task works on: a power of two, so that they are a part of the binary tree."""
    together = 1
    while shards // (2 * together) >= TASKS * cores:
        together *= 2
    return together


def _groups(n: int, size: int) -> int:
    return -(-n // size)


def _folder() -> Path:
    return Path(SparkFiles.getRootDirectory())


def _run(work: Any, place: int, number: int, name: str, chunk: Any) -> tuple[int, bytes]:
    return place, run_work(work.value, Shard(number, name, chunk, _folder()))


def _run_group(work: Any, files: list[tuple[int, int, str, Any]], together: int) -> tuple[int, bytes]:
    return files[0][0] // together, combine([_run(work, *file)[1] for file in files])


def _combined(group: tuple[int, Any]) -> tuple[int, bytes]:
    key, results = group
    return key, combine([result for _, result in sorted(results)])
