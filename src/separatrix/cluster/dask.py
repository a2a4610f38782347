"""The engine of dask.distributed: a task for each shard, tasks that add up eight parts each, weights scattered to all.

Files are read by the workers; the pieces of a collection are computed there once and stay there. Dask runs again what a lost
worker had; where it gives up, or the weights were lost too, the whole step is begun anew: it comes out the same.
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

from separatrix.cluster.engines import FAN_IN, NOT_INSTALLED, Engine, Told, combine, run
from separatrix.cluster.shards import Shard, forget
from separatrix.data.errors import DataError

TRIES = 20
PATIENCE = 60
"""For how many seconds a cluster may be without a worker: those that were lost are being started again."""


class Dask(Engine):
    """An engine on the workers of a client, or of the scheduler at an address."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._own = isinstance(client, str)
        self.client = Client(client, timeout=10) if self._own else client
        try:  # a lambda travels with its code; a worker that cannot read a task would be lost without a word
            there = self.client.run(lambda: __import__("importlib.util").util.find_spec("separatrix") is not None)
        except ModuleNotFoundError:
            there = {"": False}
        if not all(there.values()):
            raise DataError(NOT_INSTALLED)

    def take(self, data: Any, y: Any = None) -> list[int]:
        """Make shards of files, or of the pieces of a collection."""
        parts = pieces(data)
        if parts is None:
            return super().take(data, y)
        if y is not None:
            labels = pieces(y.rechunk((data.chunks[0],)) if hasattr(y, "rechunk") and _sized(data) else y)
            if labels is None or len(labels) != len(parts):
                raise DataError("X and y are not cut into the same pieces: make y of X, or rechunk one of them")
            parts = [dask.delayed(_pair)(*pair) for pair in zip(parts, labels, strict=True)]
        held = [part if isinstance(part, Future) else self.client.compute(part) for part in parts]
        return self._number(held, f"piece of the {type(data).__name__.lower()}")

    def _reduce(self, packed: bytes, which: list[int], told: Told) -> bytes:
        for _ in range(TRIES):
            try:
                return self._once(packed, which, told)
            except (FutureCancelledError, TimeoutError):  # every worker that had the weights was lost: they are sent again
                continue
            except KilledWorker as problem:
                name = next((self.names[k] for k in which if str(problem.task).startswith(f"shard-{k}-")), problem.task)
                raise DataError(f"{name}: workers died over this shard; it may need more memory than they have") from problem
        raise DataError(f"all workers were lost {TRIES} times in a row")

    def _wait(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise DataError(f"the cluster has had no worker for {PATIENCE} seconds: start some, and try again") from None

    def _once(self, packed: bytes, which: list[int], told: Told) -> bytes:
        client = self.client
        self._wait()
        # However small: where every worker is lost, its loss is noticed; tasks alone would wait for the workers they prefer.
        weights = client.scatter(packed, broadcast=True, hash=False)
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        leaves, done = [], 0
        for place, number in enumerate(which):
            chunk, name = self.chunks[number], self.names[number]
            where: dict[str, Any] = {}
            if workers and not isinstance(chunk, Future):  # it has the file on its disk since the last pass
                where = {"workers": [workers[place % len(workers)]], "allow_other_workers": True}
            key = f"shard-{number}-{secrets.token_hex(8)}"
            leaves.append(client.submit(_run, weights, number, name, chunk, key=key, **where))

        def count(future: Future) -> None:
            nonlocal done
            done += 1
            told(done)

        for leaf in leaves:
            leaf.add_done_callback(count)
        parts = leaves
        while len(parts) > 1:
            groups = [parts[first : first + FAN_IN] for first in range(0, len(parts), FAN_IN)]
            parts = [client.submit(combine, group, pure=False) for group in groups]
        found: bytes = parts[0].result()
        return found

    def forget(self, token: str) -> None:
        """Delete what the workers kept for a training."""
        self.client.run(_forget, token)

    def close(self) -> None:
        """Leave the cluster where it was joined here."""
        self.chunks.clear()
        if self._own:
            self.client.close()
        super().close()


def pieces(data: Any) -> list[Any] | None:
    """Return the delayed pieces of a collection, or of a list of delayed values or futures; None for anything else."""
    if isinstance(data, Sequence) and data and all(isinstance(one, Delayed | Future) for one in data):
        return list(data)
    if not is_dask_collection(data) or isinstance(data, Delayed):
        return None
    if getattr(data, "ndim", 0) == 2 and hasattr(data, "rechunk"):
        data = data.rechunk({1: -1}) if data.numblocks[1] > 1 else data
    found = data.to_delayed()
    return list(found.ravel()) if hasattr(found, "ravel") else list(found)


def _sized(data: Any) -> bool:
    return hasattr(data, "chunks") and all(size == size for size in data.chunks[0])


def _pair(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


def _folder() -> Path:
    return Path(get_worker().local_directory)


def _run(packed: bytes, number: int, name: str, chunk: Any) -> bytes:
    return run(packed, Shard(number, name, chunk, _folder()))


def _forget(token: str, dask_worker: Any = None) -> None:
    forget(Path(dask_worker.local_directory), token)
