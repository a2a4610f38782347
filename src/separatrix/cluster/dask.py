"""The engine of dask.distributed: a task for each shard, tasks that add up eight results each, work scattered to all.

Workers read the files; the pieces of a collection are computed there once and stay there. Dask reruns the tasks of a lost
worker. If it gives up, or if the scattered work was lost too, the whole step starts again, with the same result.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
from dask.base import is_dask_collection
from dask.delayed import Delayed
from distributed import Client, Future, get_worker
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from separatrix.cluster.engines import FAN_IN, NOT_INSTALLED, Engine, ReportDone, combine, run_work
from separatrix.cluster.shards import Shard, forget
from separatrix.data.errors import DataError

TRIES = 20
PATIENCE = 60
"""How many seconds a cluster may be without a worker, while lost workers are restarted."""


class Dask(Engine):
    """An engine on the workers of a Dask client, or of the scheduler at an address."""

    common_folder = False

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._owns_client = isinstance(client, str)
        self.client = Client(client, timeout=10) if self._owns_client else client
        try:  # a lambda is sent with its code; a worker that cannot unpickle a task would die without a message
            installed = self.client.run(lambda: __import__("importlib.util").util.find_spec("separatrix") is not None)
        except ModuleNotFoundError:
            installed = {"": False}
        if not all(installed.values()):
            raise DataError(NOT_INSTALLED)

    def add_shards(self, data: Any, y: Any = None) -> list[int]:
        """Make shards of files, or of the pieces of a Dask collection."""
        parts = pieces(data)
        if parts is None:
            return super().add_shards(data, y)
        if y is not None:
            labels = pieces(y.rechunk((data.chunks[0],)) if hasattr(y, "rechunk") and _has_known_sizes(data) else y)
            if labels is None or len(labels) != len(parts):
                raise DataError("X and y are not divided into the same pieces: rechunk one of them")
            parts = [dask.delayed(_pair)(*pair) for pair in zip(parts, labels, strict=True)]
        chunks = [part if isinstance(part, Future) else self.client.compute(part) for part in parts]
        return self._add_chunks(chunks, f"piece of the {type(data).__name__.lower()}")

    def _reduce(self, packed: bytes, numbers: list[int], report: ReportDone) -> bytes:
        for _ in range(TRIES):
            try:
                return self._try(packed, numbers, report)
            except (FutureCancelledError, TimeoutError):  # every worker that had the work was lost: it is sent again
                continue
            except KilledWorker as error:
                name = next((self.names[k] for k in numbers if str(error.task).startswith(f"shard-{k}-")), error.task)
                raise DataError(f"{name}: workers died on this shard; it may need more memory than they have") from error
        raise DataError(f"all workers were lost {TRIES} times in a row")

    def _wait_for_worker(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise DataError(f"the cluster has had no worker for {PATIENCE} seconds: start workers, and try again") from None

    def _try(self, packed: bytes, numbers: list[int], report: ReportDone) -> bytes:
        client = self.client
        self._wait_for_worker()
        # Scattered however small it is: if every worker is lost, so is this future, which raises an error. Tasks alone would
        # wait for the workers that they prefer.
        work = client.scatter(packed, broadcast=True, hash=False)
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        places_on: dict[str, list[int]] = {}
        for place, number in enumerate(numbers):
            is_piece = not workers or isinstance(self.chunks[number], Future)
            places_on.setdefault("" if is_piece else workers[place % len(workers)], []).append(place)
        leaf_at: dict[int, Future] = {}
        done = 0
        for worker, places in places_on.items():  # one message to the scheduler for all tasks of a worker
            here = [numbers[place] for place in places]
            keys = [f"shard-{number}-{secrets.token_hex(8)}" for number in here]
            arguments = [work] * len(here), here, [self.names[k] for k in here], [self.chunks[k] for k in here]
            # A worker has stored its files in an earlier pass; the pieces of a collection lie where they lie.
            preferred = {"workers": [worker], "allow_other_workers": True} if worker else {}
            leaf_at |= zip(places, client.map(_run, *arguments, key=keys, **preferred), strict=True)
        leaves = [leaf_at[place] for place in range(len(numbers))]

        def count(future: Future) -> None:
            nonlocal done
            done += 1
            report(done)

        for leaf in leaves:
            leaf.add_done_callback(count)
        results = leaves
        while len(results) > 1:
            groups = [results[first : first + FAN_IN] for first in range(0, len(results), FAN_IN)]
            results = [client.submit(combine, group, pure=False) for group in groups]
        total: bytes = results[0].result()
        return total

    def forget(self, training_id: str) -> None:
        """Delete the examples that the workers stored for a training."""
        self.client.run(_forget, training_id)

    def close(self) -> None:
        """Release the chunks, and close the client if this engine created it."""
        self.chunks.clear()
        if self._owns_client:
            self.client.close()
        super().close()


def pieces(data: Any) -> list[Any] | None:
    """Return the delayed pieces of a collection, or of a list of delayed values or futures; None for anything else."""
    if isinstance(data, Sequence) and data and all(isinstance(item, Delayed | Future) for item in data):
        return list(data)
    if not is_dask_collection(data) or isinstance(data, Delayed):
        return None
    if getattr(data, "ndim", 0) == 2 and hasattr(data, "rechunk"):
        data = data.rechunk({1: -1}) if data.numblocks[1] > 1 else data
    delayed = data.to_delayed()
    return list(delayed.ravel()) if hasattr(delayed, "ravel") else list(delayed)


def _has_known_sizes(data: Any) -> bool:
    return hasattr(data, "chunks") and all(size == size for size in data.chunks[0])


def _pair(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


def _folder() -> Path:
    return Path(get_worker().local_directory)


def _run(packed: bytes, number: int, name: str, chunk: Any) -> bytes:
    return run_work(packed, Shard(number, name, chunk, _folder()))


def _forget(training_id: str, dask_worker: Any = None) -> None:
    forget(Path(dask_worker.local_directory), training_id)
