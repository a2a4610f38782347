"""The models of a server: opened for a request, kept open while there is room, closed by least use.

Everything here runs in the event loop, except `open_model`, which the server's options make and a thread calls. A model that
serves a request is never closed; whatever it has acknowledged is on the disk before.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette

from separatrix.data.errors import DataError
from separatrix.modelfile.errors import ModelFileError
from separatrix.web.many import names
from separatrix.web.many.pool import PooledWriter
from separatrix.web.server.memory_budget import MemoryLimitError, ProcessMemory, resident
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage.store_folder import StoreFolder, read_head, sync_folder

log = logging.getLogger("separatrix.serve")
OVERHEAD = 512 << 10
"""What an open model takes beside its weights and names: database connections, application, writer."""
FILES = 8
"""The files that an open model keeps open."""
OPENED_AT_ONCE, CLOSED_AT_ONCE = 4, 8
TIDY_SECONDS = 5.0
"""At the end, snapshots are written for so long; the models after that are closed without."""
RETRY_SECONDS = 1.0
"""A model that could not be opened is tried again after this time."""
DELETE_SECONDS = 10.0
_DELETED = ".deleted-"


class OpenModel(NamedTuple):
    """A model with its application and its writer, and the lifespan of the application."""

    app: Starlette
    writer: PooledWriter
    lifespan: AbstractAsyncContextManager[Any]


class Slot:
    """What is known of a model, open or not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.model: OpenModel | None = None
        self.in_use = 0
        self.used = 0.0
        """When it was last asked for, as time since 1970."""
        self.lock = asyncio.Lock()
        """Held while the model is opened, closed or deleted."""
        self.problem, self.failed = "", 0.0
        """Why it could not be opened, and when that was, by the monotonic clock."""
        self.counts: dict[str, int | None] = {}
        """Its counts when it was last closed."""

    def current_counts(self, folder: Path) -> dict[str, int | None]:
        """Return how many examples the model has learned and so on; None for what only an open model knows."""
        model = self.model
        if model is not None:
            with model.writer.buffer.reading() as (live_model, number):
                progressive = live_model.progressive
                self.counts = {
                    "examples": progressive.examples,
                    "errors": progressive.errors,
                    "mistakes": progressive.mistakes,
                    "commits": number,
                    "features": live_model.n_names,
                    "classes": len(live_model.classes),
                }
        elif not self.counts:
            head = read_head(folder / self.name)
            examples, commits = (None, None) if head is None else (head.examples, head.number)
            self.counts = dict.fromkeys(("errors", "mistakes", "features", "classes"))
            self.counts |= {"examples": examples, "commits": commits}
        return self.counts


class Models:
    """The models of a folder.

    Parameters
    ----------
    folder : has a folder of its own for each model
    open_model : opens the store of a model, given its name and the settings it is created with; called in a thread
    memory : what all models and requests may use together
    most_open : the most models that may be open at a time
    declared : the names of models that exist although nothing was learned yet
    """

    def __init__(
        self,
        folder: Path,
        open_model: Callable[[str, dict[str, Any] | None], tuple[Starlette, PooledWriter]],
        memory: ProcessMemory,
        most_open: int,
        declared: frozenset[str] = frozenset(),
    ) -> None:
        self.folder, self.memory, self.most_open, self.declared = folder, memory, most_open, declared
        self._open_model = open_model
        self._place = StoreFolder(folder)  # which locks it
        for path in folder.glob(f"{_DELETED}*"):  # a deletion that a kill interrupted
            shutil.rmtree(path, ignore_errors=True)
        self._slots: dict[str, Slot] = {name: Slot(name) for name in names.stored(folder)}
        """The models that exist, the least recently used first."""
        self.opened = self.closed = self.n_open = 0
        self.fatal = ""
        """Why the process must end."""
        self._threads = ThreadPoolExecutor(OPENED_AT_ONCE, "opening")
        self._tasks: set[asyncio.Task[None]] = set()
        self._deleting: set[str] = set()
        self.on_death: Callable[[], None] = lambda: None
        """Called once the process should end."""
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Let models that need room close others; called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self.memory.models.make_room = self._make_room

    def __contains__(self, name: str) -> bool:
        return name in self._slots or name in self.declared

    def __len__(self) -> int:
        return len(self._slots.keys() | self.declared)

    def slots(self) -> list[Slot]:
        """Return what is known of each model, in the order of their names."""
        missing = [Slot(name) for name in self.declared - self._slots.keys()]
        return sorted((*self._slots.values(), *missing), key=lambda slot: slot.name)

    def is_open(self, name: str) -> bool:
        """Return whether a request to a model need not wait until it is opened."""
        return name in self._slots and self._slots[name].model is not None

    @asynccontextmanager
    async def using(self, name: str, settings: dict[str, Any] | None = None) -> AsyncIterator[OpenModel]:
        """Yield a model, opened or created if need be; it is not closed in the meantime. Raises RequestError."""
        if name in self._deleting:
            raise RequestError(409, f"the model {name!r} is being deleted", 1)
        slot = self._slots.pop(name, None) or Slot(name)
        self._slots[name] = slot  # as the one that was used last
        slot.in_use += 1
        slot.used = time.time()
        try:
            while slot.model is None:
                task = asyncio.create_task(self._open(slot, settings))  # goes on if the request is cancelled
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                await asyncio.shield(task)
            yield slot.model
        finally:
            slot.in_use -= 1

    async def _open(self, slot: Slot, settings: dict[str, Any] | None) -> None:
        async with slot.lock:
            if slot.model is not None:
                return
            if slot.problem and time.monotonic() < slot.failed + RETRY_SECONDS:
                raise RequestError(503, slot.problem, 1)
            while self.n_open >= self.most_open and await self._close_some():
                pass
            try:
                loop = asyncio.get_running_loop()
                app, writer = await loop.run_in_executor(self._threads, self._open_model, slot.name, settings)
            except (MemoryLimitError, OSError, ModelFileError, DataError, ValueError) as error:
                slot.problem, slot.failed = f"the model {slot.name!r} cannot be opened: {error}", time.monotonic()
                if not (self.folder / slot.name).exists():
                    del self._slots[slot.name]
                    if isinstance(error, DataError) and not isinstance(error, ModelFileError):  # the request is at fault
                        raise RequestError(422, f"the model {slot.name!r} cannot be created: {error}") from None
                if isinstance(error, MemoryLimitError):
                    raise RequestError(503, f"{slot.problem} (--max-memory); try again shortly", 1) from None
                log.error("%s", slot.problem)
                raise RequestError(503, slot.problem, 5) from None
            writer.on_death = self._die
            lifespan = app.router.lifespan_context(app)
            await lifespan.__aenter__()
            slot.model, slot.problem = OpenModel(app, writer, lifespan), ""
            self.n_open += 1
            self.opened += 1

    def _die(self) -> None:
        writers = [slot.model.writer for slot in self._slots.values() if slot.model is not None]
        self.fatal = next((writer.fatal for writer in writers if writer.fatal), "a writer thread has ended")
        self.on_death()

    # Closing.

    def _make_room(self) -> bool:
        """Close some models, for a claim of memory in another thread; return whether that helped."""
        assert self._loop is not None
        held = resident()
        has_closed = asyncio.run_coroutine_threadsafe(self._close_some(), self._loop).result()
        return has_closed and (resident() < held or held < self.memory.limit)  # else something else holds the memory

    async def _close_some(self) -> bool:
        """Close the least recently used models that nobody uses, about one in fifty; return whether there were any."""
        idle = (slot for slot in self._slots.values() if slot.model is not None and not slot.in_use)
        some = list(islice((slot for slot in idle if slot.model and slot.model.writer.is_idle), 1 + self.n_open // 50))
        await asyncio.gather(*(self._close(slot) for slot in some))
        if some:
            await asyncio.to_thread(_trim)
        return bool(some)

    async def _close(self, slot: Slot, in_a_hurry: bool = False) -> None:
        async with slot.lock:
            if slot.model is None or slot.in_use:
                return
            slot.current_counts(self.folder)
            model, slot.model = slot.model, None
            self.n_open -= 1
            self.closed += 1
            model.writer.in_a_hurry = in_a_hurry
            await model.lifespan.__aexit__(None, None, None)
            model.app.router.routes.clear()  # the router is part of cycles, and would hold the model for long
            model.app.router.lifespan_context = _no_lifespan

    async def close(self) -> None:
        """Close all models, those with many commits since their last snapshot with a new one while there is time."""
        self.memory.models.make_room = lambda: False
        await asyncio.gather(*self._tasks, return_exceptions=True)
        end, limit = time.monotonic() + TIDY_SECONDS, asyncio.Semaphore(CLOSED_AT_ONCE)

        async def close(slot: Slot) -> None:
            async with limit:
                slot.in_use = 0  # requests that were not answered in time
                await self._close(slot, in_a_hurry=time.monotonic() > end)

        await asyncio.gather(*map(close, self._slots.values()))
        self._threads.shutdown(wait=False)
        self._place.close()

    # Deleting.

    async def delete(self, name: str) -> dict[str, int | None]:
        """Delete a model and everything it has learned, once its requests are answered; return its last counts."""
        slot = self._slots.get(name)
        if slot is None or name in self._deleting:
            raise RequestError(404, f"there is no model {name!r} to delete")
        self._deleting.add(name)  # from now on, requests are refused
        try:
            end = time.monotonic() + DELETE_SECONDS
            while slot.in_use:
                await asyncio.sleep(0.01)
                if time.monotonic() > end:
                    raise RequestError(409, f"the model {name!r} is in use: try again", 1)
            await self._close(slot, in_a_hurry=True)
            counts = slot.current_counts(self.folder)
            await asyncio.to_thread(self._remove, name)
            del self._slots[name]
            return counts
        finally:
            self._deleting.discard(name)

    def _remove(self, name: str) -> None:
        """Remove the folder of a model: first its name, at once, then the files."""
        place = self.folder / f"{_DELETED}{name}-{secrets.token_hex(4)}"
        with suppress(FileNotFoundError):
            os.replace(self.folder / name, place)
        sync_folder(self.folder)
        shutil.rmtree(place, ignore_errors=True)


@asynccontextmanager
async def _no_lifespan(app: Starlette) -> AsyncIterator[None]:
    yield


def _trim() -> None:
    """Return freed memory to the system, where the C library can."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
