"""Threads that the writers of many models share: a thousand models need no thousand threads.

A writer takes a turn on a thread when something waits for it, handles one group of requests, and takes another turn if more
waits, so that a model with a long queue does not keep the others waiting. Stores are maintained only where something was
learned since.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event, Lock, Thread
from typing import Any

from separatrix.web.server.forgetting.erasing import has_traces
from separatrix.web.server.reading.request_reader import Limits
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.writing import writer as writers
from separatrix.web.server.writing.jobs import Job
from separatrix.web.server.writing.writer import HEAD_SECONDS, Writer

log = logging.getLogger("separatrix.serve")
LEARNING_THREADS, MAINTENANCE_THREADS = 16, 2
"""Learning mostly waits for the disk; snapshots compete with predictions for the interpreter's lock."""
COMMITS_REPLAYED = 64
"""A snapshot is written once so many commits were made since the last one: to replay fewer takes less than to write it."""
_NO_THREAD = Thread()


class WriterPool:
    """The threads in which the writers of many models learn, and those in which their stores are maintained."""

    def __init__(self) -> None:
        self.learning = ThreadPoolExecutor(LEARNING_THREADS, "writer")
        self._maintenance = ThreadPoolExecutor(MAINTENANCE_THREADS, "maintenance")
        self._writers: set[PooledWriter] = set()
        self._lock, self._closing = Lock(), Event()
        self._clock = Thread(target=self._keep_tending, name="maintenance clock", daemon=True)
        self._clock.start()

    def problem(self) -> str:
        """Return why stores are not maintained any more; empty if they are."""
        return "" if self._clock.is_alive() else "the maintenance thread has ended: restart the server"

    def add(self, writer: PooledWriter) -> None:
        """Maintain the store of a writer from now on."""
        with self._lock:
            self._writers.add(writer)

    def remove(self, writer: PooledWriter) -> None:
        """Maintain the store of a writer no longer."""
        with self._lock:
            self._writers.discard(writer)

    def _keep_tending(self) -> None:
        while not self._closing.wait(HEAD_SECONDS):
            self._tend_due()  # whose variables would hold writers that were closed

    def _tend_due(self) -> None:
        with self._lock:
            due = [writer for writer in self._writers if writer.needs_tending()]
        wait([self._maintenance.submit(writer.tend) for writer in due])

    def close(self) -> None:
        """End the threads, after all writers were closed."""
        self._closing.set()
        self._clock.join(2 * HEAD_SECONDS)
        for executor in (self.learning, self._maintenance):
            executor.shutdown(wait=False, cancel_futures=True)


class PooledWriter(Writer):
    """A writer without threads of its own."""

    def __init__(self, pool: WriterPool, store: CommitStore, limits: Limits, **options: Any) -> None:
        super().__init__(store, limits, **options)
        self._thread = self._maintenance = _NO_THREAD
        self._pool = pool
        self._has_turn = False
        """Whether a thread of the pool works for this writer, or is about to."""
        self._tending = Lock()
        self._tended = store.last
        self.overhead = 0
        """The memory that was claimed for it beside that of its weights and names."""
        self.in_a_hurry = False
        """Whether it closes without a snapshot: the next opening replays the commits."""

    def start(self) -> None:
        """Begin to maintain the store."""
        self._pool.add(self)

    def problem(self) -> str:
        """Return why the model cannot learn at the moment; empty if nothing is known to be wrong."""
        return self.fatal or self._pool.problem() or self.trouble or self.keeper_trouble or self.store.problem()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is learned, and nothing waits to be."""
        return not (self._has_turn or self._queue)

    def _call(self) -> None:
        if not self._has_turn:
            self._has_turn = True
            self._pool.learning.submit(self._take_turn)

    def _take_turn(self) -> None:
        """Handle one group of requests, in a thread of the pool."""
        group: list[Job] = []
        try:
            with self._wake:
                if self.stopping:
                    self._refuse_waiting("the server is shutting down")
                self._take(group)
            if group:
                self._handle(group)
        except BaseException as error:
            self._die("writer", error)
        with self._wake:
            self._has_turn = False
            if self._queue:
                self._call()
            else:
                self._wake.notify_all()

    def needs_tending(self) -> bool:
        """Return whether something was learned since the store was last maintained, or has to be tried again."""
        is_snapshot_due = time.monotonic() >= self._snapshot_due and self._has_many_commits()
        is_unfinished = self._is_behind or has_traces(self.store) or bool(self.keeper_trouble)
        return self.store.last != self._tended or is_unfinished or is_snapshot_due

    def tend(self) -> None:
        """Maintain the store; what fails is tried again a second later."""
        with self._tending:
            if self._closing:
                return
            last = self.store.last
            self._tend()
            self._tended = last

    def _has_many_commits(self) -> bool:
        return self.store.last - self._snapshot >= COMMITS_REPLAYED

    def _maybe_snapshot(self, at_end: bool = False) -> None:
        if self._has_many_commits():
            super()._maybe_snapshot(at_end)

    def close(self) -> None:
        """Learn from what was accepted, write a snapshot if many commits were made since the last, and close the store."""
        self._pool.remove(self)
        with self._wake:
            self._closing = True
            is_done = self._wake.wait_for(lambda: self.is_idle, writers.DRAIN_SECONDS)
            self.stopping = True
            is_done = is_done or self._wake.wait_for(lambda: self.is_idle, writers.STOP_SECONDS)
        if not (is_done and self._tending.acquire(timeout=writers.SNAPSHOT_SECONDS)):
            log.warning("%s is still in use, and was not closed; everything acknowledged is on disk", self.store.folder)
            return
        if not self.in_a_hurry:
            self._maybe_snapshot(at_end=True)
        self._release()
        self.memory.models.release(self.overhead)
        self._tending.release()
