"""The writer thread: requests wait in a bounded queue; those that wait together are learned from and committed together.

A request is learned from completely or not at all, and answered once its commit is on the disk.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Condition, Lock, Thread

from separatrix.web.server.forgetting.act import forget_examples
from separatrix.web.server.forgetting.erasing import erase, has_traces
from separatrix.web.server.forgetting.numbers import times_forgotten
from separatrix.web.server.live.commits import Commit
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.live.live_model import LearningStoppedError
from separatrix.web.server.memory_budget import ProcessMemory
from separatrix.web.server.reading.request_reader import Limits, RequestError, RequestExamples, RequestReader
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.pins import read_pins
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from separatrix.web.server.storage.store_rows import KeyedReply
from separatrix.web.server.writing import undo
from separatrix.web.server.writing.admission import Admission
from separatrix.web.server.writing.jobs import Answer, Job, LearnRequest, MaintenanceJob, fail, refusal
from separatrix.web.server.writing.learn_group import LearnGroup, answered_before
from separatrix.web.server.writing.regressions import Changes, Marks, Place, RegressionSet

log = logging.getLogger("separatrix.serve")
IN_RUNS = "what is learned last overrides what came before, and the progressive error is too low; send examples mixed"

HEAD_SECONDS = 1.0
DRAIN_SECONDS, STOP_SECONDS, SNAPSHOT_SECONDS = 1.0, 1.0, 3.0
"""At the end: for what waits to be learned from, for learning to stop, and for the last snapshot."""
MOST_AT_ONCE = 1 << 16
"""The approximate limit on the examples of one commit."""


class Writer:
    """Learns from requests, one group after another, and writes the store."""

    def __init__(
        self,
        store: CommitStore,
        limits: Limits,
        *,
        keep_all: bool = False,
        snapshot_seconds: float = 60.0,
        memory: ProcessMemory | None = None,
    ) -> None:
        self.store, self.limits, self.keep_all = store, limits, keep_all
        snapshots.remove_unfinished(store)
        with suppress(StoreError):  # which is tried again
            erase(store)
        live_model, names, snapshot = snapshots.recover(store)
        self.replayed = store.last - snapshot
        self.buffer = DoubleBuffer(live_model, names, store.last)
        self.reader = RequestReader(live_model.features, limits, snapshots.settings_of(store))
        self.memory = memory or ProcessMemory.of()
        self.admission = Admission(self.reader, self.memory.models)
        self.admission.resume(self.buffer)
        self.regressions = RegressionSet(self.reader, read_pins(store.db))
        self.trouble = self.keeper_trouble = self.fatal = ""
        """Why nothing can be learned, or maintained, at the moment, and why a thread has ended; empty if all is well."""
        self.on_death: Callable[[], None] = lambda: None
        """Called once a thread has ended that must not: the process should end."""
        self.commits = self.keyed_again = self.history = 0
        """`history` changes when what was learned is written anew, and is odd in the meantime."""
        self.snapshot_lock = Lock()
        """Held while a snapshot is written, and while examples are forgotten."""
        self.commit_seconds = self.snapshot_time = 0.0
        self._snapshot_seconds, self._snapshot_due = snapshot_seconds, time.monotonic() + snapshot_seconds
        self._snapshot = snapshot
        self._queue: deque[Job] = deque()
        self._bytes, self._wake = 0, Condition()
        self._closing = self.stopping = self._tidying = self._runs_logged = False
        self._is_behind = False
        """Whether the copy that learns is to be made anew, because learning failed."""
        self._pending: tuple[int, Commit, list[Answer]] | None = None
        """The commit that is being written, its number, and the answers of those who wait for it."""
        self._thread = Thread(target=self._work, name="writer", daemon=True)
        self._maintenance = Thread(target=self._maintain, name="maintenance", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()
        self._maintenance.start()

    def problem(self) -> str:
        """Return why the server cannot learn at the moment; empty if nothing is known to be wrong."""
        ended = next((thread.name for thread in (self._thread, self._maintenance) if not thread.is_alive()), "")
        ended = ended and f"the {ended} thread has ended: restart the server"
        return self.fatal or ended or self.trouble or self.keeper_trouble or self.store.problem()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    def submit(self, examples: RequestExamples | None, key: str | None, body: bytes) -> Future[bytes]:
        """Queue examples, or lines that are still to be parsed; raises RequestError if the queue is full."""
        request = LearnRequest.of(examples, key, body)
        self._enqueue(request, len(body))
        return request.answer

    def undo(self, number: int) -> Future[bytes]:
        """Queue a mistake to undo."""
        return self._alone(partial(undo.undo_mistake, self, number))

    def forget(self, examples: list[int]) -> Future[bytes]:
        """Queue examples to be forgotten."""
        return self._alone(partial(forget_examples, self, examples))

    def unpin(self, example: int) -> Future[bytes]:
        """Queue an example to be taken out of the regression set."""
        return self._alone(partial(undo.unpin, self, example))

    def _alone(self, act: Callable[[Future[bytes]], None]) -> Future[bytes]:
        self._enqueue(MaintenanceJob(partial(act, answer := Future[bytes]()), answer), 0)
        return answer

    def _enqueue(self, request: Job, size: int) -> None:
        with self._wake:
            if self.fatal:
                raise RequestError(503, f"not learned from: {self.fatal}", 5)
            if self._closing:
                raise RequestError(503, "not learned from: the server is shutting down", 5)
            if len(self._queue) >= self.limits.waiting or (self._queue and self._bytes + size > self.limits.waiting_bytes):
                raise RequestError(429, "too many requests are waiting to be learned from: try again shortly", 1)
            self._queue.append(request)
            self._bytes += size
            self._call()

    def _call(self) -> None:
        """Let the thread know that something waits in the queue."""
        self._wake.notify_all()

    def close(self) -> None:
        """Learn from what was accepted, write a snapshot, and close the store; each of them only as long as it takes little.

        What was not learned from is answered so; what was learned from is on the disk, snapshot or not.
        """
        with self._wake:
            self._closing = self._tidying = True
            self._wake.notify_all()
        if self._thread.ident is not None:
            self._thread.join(DRAIN_SECONDS)
            self.stopping = True
            self._thread.join(STOP_SECONDS)
            self._maintenance.join(SNAPSHOT_SECONDS)
        if self._thread.is_alive() or self._maintenance.is_alive():  # the store is still in use
            log.warning("the last snapshot was not finished in time; the next start replays commits")
            snapshots.remove_unfinished(self.store)
        else:
            self._release()

    def _release(self) -> None:
        self.store.close()
        self.memory.models.release(self.admission.claimed)

    def _work(self) -> None:
        try:
            while group := self._next_group():
                self._handle(group)
        except BaseException as error:
            self._die("writer", error)

    def _handle(self, group: list[Job]) -> None:
        try:
            self._catch_up()
            if isinstance(group[0], MaintenanceJob):
                group[0].act()
            else:
                self._learn([request for request in group if isinstance(request, LearnRequest)])
        except Exception as error:
            self._answer_failed(group, error)

    def _answer_failed(self, group: list[Job], error: Exception) -> None:
        """After a failure, resume from what is stored, and answer what was not answered yet."""
        pending, self._pending, self._is_behind = self._pending, None, True
        trouble, is_stored, is_known = "", False, pending is None
        try:
            if pending is not None:
                self.store.reread()
                is_stored, is_known = self.store.has(*pending[:2]), True
            if not self.stopping:
                self._catch_up()
            if isinstance(error, StoreError):
                trouble = f"the last write to the store failed: {error}"
        except Exception as problem:
            trouble = f"learning is refused until the model can be brought up to date: {problem!r}"
            if trouble != self.trouble:
                log.critical("%s", trouble, exc_info=True)
        self.trouble = trouble
        if pending is not None and is_stored:
            for answer, reply in pending[2]:
                if not answer.done():
                    answer.set_result(reply)
        left = [job.answer for job in group if not job.answer.done()]
        outcome = f"{len(left)} of {len(group)} requests were not learned from"
        is_expected = isinstance(error, StoreError | LearningStoppedError | MemoryError)
        log.error("%s: %r", outcome if left else "all requests were answered, but then", error, exc_info=not is_expected)
        for future in left:  # of what is stored, only repetitions are left
            fail(future, refusal(error, None if is_stored or not is_known else "not learned from"))

    def _die(self, thread: str, error: BaseException) -> None:
        """Let the process end because a thread has ended that must not; what waits is answered."""
        self.fatal = f"the {thread} thread has ended ({error!r}): restart the server"
        log.critical("%s", self.fatal, exc_info=error)
        with self._wake:
            self._refuse_waiting(self.fatal)
        self.on_death()

    def _next_group(self) -> list[Job]:
        """Return the next jobs in order: requests to learn are grouped, any other job comes alone."""
        group: list[Job] = []
        with self._wake:
            while not group and not (self._closing and not self._queue):  # what waited may have been cancelled
                self._wake.wait_for(lambda: self._queue or self._closing)
                if self.stopping:
                    self._refuse_waiting("the server is shutting down")
                self._take(group)
        return group

    def _take(self, group: list[Job]) -> None:
        examples = 0
        while self._queue and examples < MOST_AT_ONCE:
            if group and not isinstance(self._queue[0], LearnRequest):
                break
            request = self._queue.popleft()
            if isinstance(request, LearnRequest):
                self._bytes -= request.size
                examples += request.n
            if request.answer.set_running_or_notify_cancel():
                group.append(request)
            if not isinstance(request, LearnRequest) and group:
                break

    def _refuse_waiting(self, reason: str) -> None:
        for job in self._queue:
            fail(job.answer, RequestError(503, f"not learned from: {reason}", 5))
        self._queue.clear()

    def _learn(self, group: list[LearnRequest]) -> None:
        admitted = LearnGroup()
        repeated: list[tuple[LearnRequest, LearnRequest]] = []
        keys: dict[bytes, LearnRequest] = {}
        for request in group:
            try:
                if request.key and request.key in keys:
                    repeated.append((request, keys[request.key]))
                elif not (request.key and answered_before(self, request)):
                    admitted.admit(self, request)
                    if request.key:
                        keys[request.key] = request
            except RequestError as error:
                fail(request.answer, error)
        commit = self._commit(admitted) if admitted.requests else None
        for request, original in repeated:
            self.keyed_again += 1
            if request.body != original.body:
                fail(request.answer, RequestError(422, "this Idempotency-Key was used for another request"))
            elif original.answer.exception() is None:
                request.answer.set_result(original.answer.result())
            else:
                fail(request.answer, RequestError(503, "not learned from: another with this Idempotency-Key failed", 1))
        if commit is not None:
            self.buffer.follow(commit)

    def _commit(self, group: LearnGroup) -> Commit:
        started = time.perf_counter()
        commit = group.learned(self)
        changes, examples = self._regression_changes(commit, group.marks), self.buffer.learning.progressive.numbered
        replies = group.replies(commit, examples, self.store.mistakes, changes)
        answered = list(zip(group.requests, replies, strict=True))
        keyed = [KeyedReply(request.key, request.body, reply) for request, reply in answered if request.key]
        self.write(commit, keyed, [(request.answer, reply) for request, reply in answered], changes)
        self.commits += 1
        self.commit_seconds += time.perf_counter() - started
        return commit

    def _regression_changes(self, commit: Commit, marks: Marks | None = None) -> Changes:
        learning, store = self.buffer.learning, self.store
        place = Place(store.last + 1, store.mistakes, learning.progressive.numbered - commit.n, time.time())
        return self.regressions.changes(learning, self.buffer.index, commit, place, marks.pins(place) if marks else ())

    def write(self, commit: Commit, keyed: list[KeyedReply], answers: list[Answer], changes: Changes | None = None) -> None:
        """Write a commit to the disk, let readers see the copy that learned it, and answer who waits for it.

        `changes` are those of the regression set, which are found out here if they are not given.
        """
        changes = changes or self._regression_changes(commit)
        self._pending = self.store.last + 1, commit, answers
        examples = self.buffer.learning.progressive.numbered
        self.buffer.publish(self.store.append(commit, examples, keyed, changes.statements))
        self.regressions.accept(changes)
        self.store.confirm()
        self.trouble = ""
        for answer, reply in answers:
            answer.set_result(reply)
        self._pending = None

    def _catch_up(self) -> None:
        """After a failure, resume from the visible copy, or from the disk if that is ahead of it."""
        if not self._is_behind:
            return
        self.store.reread()
        with self.buffer.reading() as (live_model, number):
            is_current = (number, live_model.forgets) == (self.store.last, times_forgotten(self.store.base))
        if is_current:
            self.buffer.restart()
        else:
            live_model, names, _ = snapshots.recover(self.store)
            self.buffer = DoubleBuffer(live_model, names, self.store.last)
        self.admission.resume(self.buffer)
        self.regressions = RegressionSet(self.reader, read_pins(self.store.db))
        self._is_behind, self.trouble = False, ""

    def take_over(self, buffer: DoubleBuffer, regressions: RegressionSet) -> None:
        """Continue with another model: that of the store without some examples."""
        self.buffer, self.regressions, self._snapshot, self._snapshot_due = buffer, regressions, -1, time.monotonic()
        self.admission.resume(buffer)

    def _maintain(self) -> None:
        try:
            while not self._wait_for_closing():
                self._tend()
            self._thread.join()
            if self._tidying:
                self._maybe_snapshot(at_end=True)
        except BaseException as error:
            self._die("maintenance", error)

    def _tend(self) -> None:
        try:
            self.store.sync_head()
            if self._is_behind or has_traces(self.store):
                self._let_work(partial(erase, self.store))  # before which the writer catches up
            self._watch_labels()
            if time.monotonic() >= self._snapshot_due:
                self._snapshot_due = time.monotonic() + self._snapshot_seconds
                self._maybe_snapshot()
            self.keeper_trouble = ""
        except Exception as error:  # a disk that fails now may work in a second
            if not self.keeper_trouble:
                log.error("maintenance failed, and is tried again: %s", error, exc_info=True)
            self.keeper_trouble = f"maintenance of the store fails: {error}"

    def _wait_for_closing(self) -> bool:
        """Wait a second at most; return whether the server is closing."""
        with self._wake:
            return self._wake.wait_for(lambda: self._closing, timeout=min(HEAD_SECONDS, self._snapshot_seconds))

    def _watch_labels(self) -> None:
        """Log once that labels come in runs: the weights then follow the last run, and the progressive error hides it."""
        with self.buffer.reading() as (live_model, _):
            in_runs = live_model.progressive.in_runs()
        if in_runs and not self._runs_logged:
            log.warning("labels come in runs, as in rows sorted by label: %s", IN_RUNS)
        self._runs_logged = in_runs

    def _maybe_snapshot(self, at_end: bool = False) -> None:
        """Write a snapshot if something was learned since the last one, then compact the commits before it."""
        try:
            self.store.check_ours()
            with self.snapshot_lock:
                previous, self._snapshot = self._snapshot, snapshots.write_newest(self.store, self.buffer, self._snapshot)
            if self._snapshot == previous:
                return
            self.snapshot_time = time.time()
            while not at_end and self._compacted(previous):
                pass
        except (OSError, ValueError, MemoryError) as error:
            log.warning("the snapshot could not be written: %s", str(error) or "not enough memory")

    def _compacted(self, until: int) -> bool:
        """Let the writer's thread compact a little; return whether there is more to compact."""
        n_removed: list[int] = []
        job = self._let_work(lambda: n_removed.append(self.store.compact(until)))
        while not n_removed and not job.done() and not self._closing:
            time.sleep(0.01)
        return bool(n_removed and n_removed[0])

    def _let_work(self, act: Callable[[], None]) -> Future[bytes]:
        """Let the writer's thread do something between two groups of requests; when the server closes, nothing is done."""
        job = MaintenanceJob(act, Future())
        with self._wake:
            if self._closing:
                job.answer.cancel()
            else:
                self._queue.append(job)
                self._call()
        return job.answer
