"""The writer thread: requests wait in a bounded queue; those that wait together are learned from and committed together.

A request is learned from completely or not at all, and answered once its commit is on the disk. Predictions read another
copy of the model (double_buffer.py).
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Condition, Thread
from typing import Any, NamedTuple

import numpy as np
import orjson

from separatrix.web.server import snapshots, undo
from separatrix.web.server.commits import Commit, SparseRows, stacked
from separatrix.web.server.double_buffer import DoubleBuffer
from separatrix.web.server.request_reader import Limits, RequestError, RequestExamples, RequestReader
from separatrix.web.server.store import CommitStore
from separatrix.web.server.store_folder import StoreError
from separatrix.web.server.store_rows import KeyedReply

log = logging.getLogger("separatrix.serve")
IN_RUNS = "what is learned last overrides what came before, and the progressive error is too low; send examples mixed"

HEAD_SECONDS = 1.0
MOST_AT_ONCE = 1 << 16
"""The approximate limit on the examples of one commit."""


class LearnRequest(NamedTuple):
    """A waiting request to learn: its examples, or lines still to be parsed, its idempotency key, and the future reply."""

    examples: RequestExamples | None
    raw: bytes
    key: bytes
    body: bytes
    """A checksum of the request body: one key must not be used for two different requests."""
    size: int
    answer: Future[bytes]

    @property
    def n(self) -> int:
        """The approximate number of its examples."""
        return self.raw.count(b"\n") + 1 if self.examples is None else self.examples.n


class UndoRequest(NamedTuple):
    """A request to undo a mistake."""

    number: int
    answer: Future[bytes]


class MaintenanceJob(NamedTuple):
    """A task that the writer's thread runs between two groups of requests."""

    act: Callable[[], None]
    answer: Future[bytes]


Job = LearnRequest | UndoRequest | MaintenanceJob


class Writer:
    """Learns from requests, one group after another, and writes the store."""

    def __init__(
        self, store: CommitStore, limits: Limits, *, keep_all: bool = False, snapshot_seconds: float = 60.0
    ) -> None:
        self.store, self.limits, self.keep_all = store, limits, keep_all
        live_model, names, snapshot = snapshots.recover(store)
        self.replayed = store.last - snapshot
        self.buffer = DoubleBuffer(live_model, names, store.last)
        self.reader = RequestReader(live_model.features, limits)
        self.trouble = ""
        """Why the store cannot be written at the moment; empty if it can."""
        self.commits = self.keyed_again = 0
        self.commit_seconds = self.snapshot_time = 0.0
        self._snapshot_seconds = snapshot_seconds
        self._snapshot = snapshot
        self._queue: deque[Job] = deque()
        self._bytes = 0
        self._wake = Condition()
        self._closing = self._runs_logged = False
        self._thread = Thread(target=self._work, name="writer", daemon=True)
        self._maintenance = Thread(target=self._maintain, name="maintenance", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()
        self._maintenance.start()

    @property
    def waiting(self) -> int:
        """The number of waiting requests."""
        return len(self._queue)

    def submit(self, examples: RequestExamples | None, key: str | None, body: bytes) -> Future[bytes]:
        """Queue examples, or lines that are still to be parsed; raises RequestError if the queue is full."""
        key_digest = b"" if key is None else hashlib.blake2b(key.encode(), digest_size=16).digest()
        checksum = hashlib.blake2b(body, digest_size=16).digest() if key_digest else b""
        request = LearnRequest(examples, body if examples is None else b"", key_digest, checksum, len(body), Future())
        self._enqueue(request, len(body))
        return request.answer

    def undo(self, number: int) -> Future[bytes]:
        """Queue a mistake to undo."""
        request = UndoRequest(number, Future())
        self._enqueue(request, 0)
        return request.answer

    def _enqueue(self, request: Job, size: int) -> None:
        with self._wake:
            if self._closing:
                raise RequestError(503, "the server is shutting down", 5)
            if len(self._queue) >= self.limits.waiting or (self._queue and self._bytes + size > self.limits.waiting_bytes):
                raise RequestError(429, "too many requests are waiting to be learned from: try again shortly", 1)
            self._queue.append(request)
            self._bytes += size
            self._wake.notify_all()

    def close(self) -> None:
        """Learn from everything that was accepted, write a snapshot, and close the store."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join()
            self._maintenance.join()
            self._maybe_snapshot(at_end=True)
        self.store.close()

    # The writer's thread.

    def _work(self) -> None:
        while group := self._next_group():
            try:
                if isinstance(group[0], UndoRequest):
                    undo.undo_mistake(self, group[0].number, group[0].answer)
                elif isinstance(group[0], MaintenanceJob):
                    group[0].act()
                else:
                    self._learn([request for request in group if isinstance(request, LearnRequest)])
            except Exception as error:
                is_store_error = isinstance(error, StoreError)
                log.error("%d requests were not learned from: %s", len(group), error, exc_info=not is_store_error)
                reply = RequestError(500, "internal error; see the log of the server")
                if is_store_error:
                    reply = RequestError(503, str(error), 5)
                self._recover()
                for request in group:
                    fail(request.answer, reply)

    def _next_group(self) -> list[Job]:
        """Return the next jobs in order: requests to learn are grouped, any other job comes alone."""
        with self._wake:
            self._wake.wait_for(lambda: self._queue or self._closing)
            group: list[Job] = []
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
            return group

    def _learn(self, group: list[LearnRequest]) -> None:
        accepted: list[tuple[LearnRequest, SparseRows]] = []
        repeated: list[tuple[LearnRequest, LearnRequest]] = []
        keys: dict[bytes, LearnRequest] = {}
        names: list[str] = []
        labels: list[Any] = []
        sources: list[Any] = []
        new_classes: dict[Any, None] = {}
        for request in group:
            try:
                if request.key and request.key in keys:
                    repeated.append((request, keys[request.key]))
                elif not (request.key and self._answered(request)):
                    examples, block, new_names = self._accepted(request, new_classes)
                    names += new_names
                    accepted.append((request, block))
                    labels += examples.labels
                    if examples.sources is not None:
                        sources += examples.sources
                    if request.key:
                        keys[request.key] = request
            except RequestError as error:
                fail(request.answer, error)
        if accepted:
            self._commit(accepted, labels, names, sources or None)
        for request, original in repeated:
            self.keyed_again += 1
            if request.body != original.body:
                fail(request.answer, RequestError(422, "this Idempotency-Key was used for another request"))
            elif original.answer.exception() is None:
                request.answer.set_result(original.answer.result())
            else:
                fail(request.answer, RequestError(503, "the request with this Idempotency-Key failed: try again", 1))

    def _answered(self, request: LearnRequest) -> bool:
        """Answer a request whose key was used before; return whether it was."""
        original = self.store.reply_under(request.key)
        if original is None:
            return False
        self.keyed_again += 1
        if original[0] != request.body:
            raise RequestError(422, "this Idempotency-Key was used for another request")
        request.answer.set_result(original[1])
        return True

    def _accepted(
        self, request: LearnRequest, new_classes: dict[Any, None]
    ) -> tuple[RequestExamples, SparseRows, list[str]]:
        """Return the examples of a request, their rows, and the features that get a column now.

        Raises RequestError, with no feature added, if they cannot be read or the model would become too large. The classes
        that are new in this group are added to `new_classes`.
        """
        index = self.buffer.index
        n_before = 0 if index is None else len(index.listed)
        try:
            examples = self._examples(request)
            columns = examples.indices
            if index is not None and examples.names is not None:
                columns = index.columns_of(examples.names)
            new_names = [] if index is None else index.listed[n_before:]
            new_classes.update(self._unseen_classes(examples.labels, new_classes, bool(new_names)))
        except RequestError:
            if index is not None:
                index.truncate(n_before)
            raise
        return examples, examples.rows(columns), new_names

    def _examples(self, request: LearnRequest) -> RequestExamples:
        """Return the examples of a request; lines of named features are parsed by a kernel, unless they are unusual."""
        if request.examples is not None:
            return request.examples
        index = self.buffer.index
        lines = None if index is None else index.read(request.raw, self.limits.features)
        if lines is None:
            return self.reader.lines(request.raw, True)
        self.reader.check_labels(lines.labels, lambda k: f"line {int(np.argmax(lines.label == k)) + 1}: ")
        labels = [lines.labels[k] for k in lines.label.tolist()]
        return RequestExamples(None, lines.indices, lines.data, lines.indptr, labels, None)

    def _unseen_classes(self, labels: list[Any], new: dict[Any, None], has_new_names: bool) -> dict[Any, None]:
        """Return the labels that are not classes yet; raises RequestError if they cannot be, or the model gets too large."""
        live_model, index = self.buffer.learning, self.buffer.index
        distinct = dict.fromkeys(labels)
        unseen = dict.fromkeys(label for label in distinct if label not in live_model.table.number and label not in new)
        outputs = len(live_model.classes) + len(new) + len(unseen)
        try:
            if len({isinstance(label, str) for label in (*live_model.classes[:1], *list(new)[:1], *distinct)}) > 1:
                raise ValueError("the labels of a model must be all strings or all integers")
            live_model.check(list(unseen), outputs)
        except ValueError as error:
            raise RequestError(422, str(error)) from None
        if unseen and outputs > self.limits.classes:
            raise RequestError(
                422, f"{outputs:,} classes exceed the limit of {self.limits.classes:,} (--max-classes): nothing was learned"
            )
        width = live_model.n_names if index is None else len(index.listed)
        if (unseen or has_new_names) and width * outputs > self.limits.weights:
            limit = f"the limit of {self.limits.weights:,} weights"
            raise RequestError(422, f"{outputs:,} classes and {width:,} features need more than {limit}")
        return unseen

    def _commit(
        self, accepted: list[tuple[LearnRequest, SparseRows]], labels: list[Any], names: list[str], sources: list[Any] | None
    ) -> None:
        started = time.perf_counter()
        live_model = self.buffer.learning
        commit = live_model.learn(stacked([block for _, block in accepted]), labels, names, sources, self.keep_all)
        replies = self._replies(commit, [block.n for _, block in accepted])
        keyed = [
            KeyedReply(request.key, request.body, reply)
            for (request, _), reply in zip(accepted, replies, strict=True)
            if request.key
        ]
        self.write(commit, keyed)
        for (request, _), reply in zip(accepted, replies, strict=True):
            request.answer.set_result(reply)
        self.commits += 1
        self.commit_seconds += time.perf_counter() - started
        self.buffer.follow(commit)

    def write(self, commit: Commit, keyed: list[KeyedReply]) -> None:
        """Write a commit to the disk, and let readers see the copy that learned it."""
        number = self.store.append(commit, self.buffer.learning.progressive.examples, keyed)
        self.buffer.publish(number)
        self.store.confirm()
        self.trouble = ""

    def _replies(self, commit: Commit, sizes: list[int]) -> list[bytes]:
        """Return the reply to each request of a commit."""
        total = self.buffer.learning.progressive.examples - commit.n
        ends = np.cumsum([0, *sizes])
        errors = np.diff(np.searchsorted(commit.wrong, ends)).tolist()
        steps_before = self.buffer.learning.steps - commit.n
        mistakes = np.diff(np.searchsorted(commit.step - steps_before, ends, side="right")).tolist()
        return [
            orjson.dumps({"learned": n, "errors": wrong, "mistakes": n_mistakes, "examples": total + int(end)})
            for n, wrong, n_mistakes, end in zip(sizes, errors, mistakes, ends[1:], strict=True)
        ]

    def _recover(self) -> None:
        """After a failure, resume from the visible copy, or from the disk if that is ahead of it."""
        self.trouble = "the last write to the store failed"
        with suppress(sqlite3.Error, StoreError):  # what cannot be read now is read again before the next commit
            self.store.reread()
        if self.store.last == self.buffer.number:
            self.buffer.restart()
        else:
            live_model, names, _ = snapshots.recover(self.store)
            self.buffer = DoubleBuffer(live_model, names, self.store.last)

    # The maintenance thread: snapshots and compaction.

    def _maintain(self) -> None:
        due = time.monotonic() + self._snapshot_seconds
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closing, timeout=min(HEAD_SECONDS, self._snapshot_seconds))
                if self._closing:
                    return
            self.store.sync_head()
            self._watch_labels()
            if time.monotonic() >= due:
                self._maybe_snapshot()
                due = time.monotonic() + self._snapshot_seconds

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
            with self.buffer.reading() as (live_model, number):
                if number == self._snapshot or live_model.run is None:
                    return
                snapshot = snapshots.ModelSnapshot.of(
                    self.store, number, live_model, self.buffer.names(live_model), stays=True
                )
            snapshot.write(snapshots.path_of(self.store.folder, number))
            snapshots.remove_old_snapshots(self.store)
            previous, self._snapshot = self._snapshot, number
            self.snapshot_time = time.time()
            while not at_end and self._compacted(previous):
                pass
        except (OSError, ValueError) as error:
            log.warning("the snapshot could not be written: %s", error)

    def _compacted(self, until: int) -> bool:
        """Let the writer's thread compact a little; return whether there is more to compact."""
        n_removed: list[int] = []
        job = MaintenanceJob(lambda: n_removed.append(self.store.compact(until)), Future())
        with self._wake:
            if self._closing:
                return False
            self._queue.append(job)
            self._wake.notify_all()
        while not n_removed and not job.answer.done() and not self._closing:
            time.sleep(0.01)
        return bool(n_removed and n_removed[0])


def fail(answer: Future[bytes], error: RequestError) -> None:
    """Answer a request with an error, unless it was answered already."""
    if not answer.done():
        answer.set_exception(error)
