"""The one writer: requests wait in a bounded queue, those that wait together are learned from and committed together.

A request is learned from whole or not at all. It is answered once its commit is on the disk. Predictions read
another copy of the model (buffer.py).
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread
from typing import Any, NamedTuple

import numpy as np
import orjson

from separatrix.web.server import snapshots, undo
from separatrix.web.server.commits import Commit, SparseRows, stacked
from separatrix.web.server.double_buffer import DoubleBuffer
from separatrix.web.server.request_reader import Limits, RequestError, RequestExamples, RequestReader
from separatrix.web.server.store import CommitStore, KeyedReply, StoreError

log = logging.getLogger("separatrix.serve")

HEAD_SECONDS = 1.0
MOST_AT_ONCE = 1 << 16
"""How many examples go into one commit, about."""


class LearnRequest(NamedTuple):
    """A request to learn, waiting: its examples, or the lines that hold them, its key, and who waits for the answer."""

    examples: RequestExamples | None
    raw: bytes
    key: bytes
    body: bytes
    """A sum of what was sent: a key stands for one request."""
    size: int
    answer: Future[bytes]

    @property
    def n(self) -> int:
        """How many examples it holds, about."""
        return self.raw.count(b"\n") + 1 if self.examples is None else self.examples.n


class UndoRequest(NamedTuple):
    """A request to take a mistake back."""

    number: int
    answer: Future[bytes]


class MaintenanceJob(NamedTuple):
    """Something that the writer does between two groups."""

    act: Callable[[], None]
    answer: Future[bytes]


Job = LearnRequest | UndoRequest | MaintenanceJob


class Writer:
    """Learns from requests, one group after the other, and keeps the store."""

    def __init__(
        self, store: CommitStore, limits: Limits, *, keep_all: bool = False, snapshot_seconds: float = 60.0
    ) -> None:
        self.store, self.limits, self.keep_all = store, limits, keep_all
        machine, names, begun = snapshots.recover(store)
        self.replayed = store.last - begun
        self.buffer = DoubleBuffer(machine, names, store.last)
        self.reader = RequestReader(machine.features, limits)
        self.trouble = ""
        """Why nothing can be written at the moment."""
        self.commits = self.keyed_again = 0
        self.commit_seconds = self.snapshot_time = 0.0
        self._snapshot_seconds = snapshot_seconds
        self._snapshot = begun
        self._queue: deque[Job] = deque()
        self._bytes = 0
        self._wake = Condition()
        self._closing = False
        self._thread = Thread(target=self._work, name="writer", daemon=True)
        self._keeper = Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin to learn."""
        self._thread.start()
        self._keeper.start()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._queue)

    def submit(self, examples: RequestExamples | None, key: str | None, body: bytes) -> Future[bytes]:
        """Queue examples to learn from, or lines yet to be read; raise RequestError where too much waits already."""
        told = b"" if key is None else hashlib.blake2b(key.encode(), digest_size=16).digest()
        summed = hashlib.blake2b(body, digest_size=16).digest() if told else b""
        request = LearnRequest(examples, body if examples is None else b"", told, summed, len(body), Future())
        self._enqueue(request, len(body))
        return request.answer

    def undo(self, number: int) -> Future[bytes]:
        """Queue a mistake to take back."""
        request = UndoRequest(number, Future())
        self._enqueue(request, 0)
        return request.answer

    def _enqueue(self, request: Job, size: int) -> None:
        with self._wake:
            if self._closing:
                raise RequestError(503, "the server is shutting down", 5)
            if len(self._queue) >= self.limits.waiting or (self._queue and self._bytes + size > self.limits.waiting_bytes):
                raise RequestError(429, "too many examples wait to be learned from: try again shortly", 1)
            self._queue.append(request)
            self._bytes += size
            self._wake.notify_all()

    def close(self) -> None:
        """Learn from all that was accepted, write a snapshot, and end."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread.is_alive():
            self._thread.join()
            self._keeper.join()
            self._maybe_snapshot(at_end=True)
        self.store.close()

    # The writer's thread.

    def _work(self) -> None:
        while group := self._next_group():
            try:
                if isinstance(group[0], UndoRequest):
                    undo.take_back(self, group[0].number, group[0].answer)
                elif isinstance(group[0], MaintenanceJob):
                    group[0].act()
                else:
                    self._learn([request for request in group if isinstance(request, LearnRequest)])
            except Exception as error:
                stored = isinstance(error, StoreError)
                log.error("%d requests were not learned from: %s", len(group), error, exc_info=not stored)
                refused = (
                    RequestError(503, str(error), 5) if stored else RequestError(500, "an internal error; the log has it")
                )
                self._recover()
                for request in group:
                    fail(request.answer, refused)

    def _next_group(self) -> list[Job]:
        """Return what waits, in order: requests to learn from together, anything else alone."""
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
        taken: list[tuple[LearnRequest, SparseRows]] = []
        again: list[tuple[LearnRequest, LearnRequest]] = []
        keys: dict[bytes, LearnRequest] = {}
        names: list[str] = []
        labels: list[Any] = []
        sources: list[Any] = []
        new: dict[Any, None] = {}
        for request in group:
            try:
                if request.key and request.key in keys:
                    again.append((request, keys[request.key]))
                elif not (request.key and self._answered(request)):
                    examples, block, fresh = self._admitted(request, new)
                    names += fresh
                    taken.append((request, block))
                    labels += examples.labels
                    if examples.sources is not None:
                        sources += examples.sources
                    if request.key:
                        keys[request.key] = request
            except RequestError as refused:
                fail(request.answer, refused)
        if taken:
            self._commit(taken, labels, names, sources or None)
        for request, before in again:
            self.keyed_again += 1
            if request.body != before.body:
                fail(request.answer, RequestError(422, "this Idempotency-Key was used for another request"))
            elif before.answer.exception() is None:
                request.answer.set_result(before.answer.result())
            else:
                fail(request.answer, RequestError(503, "the request under this key was not learned from: try again", 1))

    def _answered(self, request: LearnRequest) -> bool:
        """Answer a request whose key is known; return whether it was."""
        known = self.store.answered(request.key)
        if known is None:
            return False
        self.keyed_again += 1
        if known[0] != request.body:
            raise RequestError(422, "this Idempotency-Key was used for another request")
        request.answer.set_result(known[1])
        return True

    def _admitted(self, request: LearnRequest, new: dict[Any, None]) -> tuple[RequestExamples, SparseRows, list[str]]:
        """Return the examples of a request, their rows, and the names that get a column now.

        Raises RequestError, with no name added, where they cannot be read or there is no room. `new` are the classes that
        come with the group.
        """
        index = self.buffer.index
        before = 0 if index is None else len(index.listed)
        try:
            examples = self._examples(request)
            columns = examples.indices
            if index is not None and examples.names is not None:
                columns = index.columns_of(examples.names)
            fresh = [] if index is None else index.listed[before:]
            new.update(self._strangers(examples.labels, new, bool(fresh)))
        except RequestError:
            if index is not None:
                index.cut(before)
            raise
        return examples, examples.block(columns), fresh

    def _examples(self, request: LearnRequest) -> RequestExamples:
        """Return what a request holds; lines of named features are read by a kernel, unless they are unusual."""
        if request.examples is not None:
            return request.examples
        index = self.buffer.index
        lines = None if index is None else index.read(request.raw, self.limits.features)
        if lines is None:
            return self.reader.lines(request.raw, True)
        self.reader.check_labels(lines.labels, lambda k: f"line {int(np.argmax(lines.label == k)) + 1}: ")
        given = [lines.labels[k] for k in lines.label.tolist()]
        return RequestExamples(None, lines.indices, lines.data, lines.indptr, given, None)

    def _strangers(self, labels: list[Any], new: dict[Any, None], wider: bool) -> dict[Any, None]:
        """Return the labels that are no classes yet; raise RequestError where they cannot be, or there is no room."""
        machine, index = self.buffer.learning, self.buffer.index
        given = dict.fromkeys(labels)
        strangers = dict.fromkeys(label for label in given if label not in machine.number and label not in new)
        outputs = len(machine.classes) + len(new) + len(strangers)
        try:
            if len({isinstance(label, str) for label in (*machine.classes[:1], *list(new)[:1], *given)}) > 1:
                raise ValueError("the labels of a model are all strings or all whole numbers")
            for label in strangers:
                machine.check(label, outputs)
        except ValueError as error:
            raise RequestError(422, str(error)) from None
        width = machine.n_names if index is None else len(index.listed)
        if (strangers or wider) and width * outputs > self.limits.weights:
            limit = f"the {self.limits.weights:,} weights that are allowed"
            raise RequestError(422, f"{outputs:,} classes and {width:,} features need more than {limit}")
        return strangers

    def _commit(
        self, taken: list[tuple[LearnRequest, SparseRows]], labels: list[Any], names: list[str], sources: list[Any] | None
    ) -> None:
        begun = time.perf_counter()
        machine = self.buffer.learning
        commit = machine.learn(stacked([block for _, block in taken]), labels, names, sources, self.keep_all)
        replies = self._replies(commit, [block.n for _, block in taken])
        keyed = [
            KeyedReply(request.key, request.body, reply)
            for (request, _), reply in zip(taken, replies, strict=True)
            if request.key
        ]
        self.write(commit, keyed)
        for (request, _), reply in zip(taken, replies, strict=True):
            request.answer.set_result(reply)
        self.commits += 1
        self.commit_seconds += time.perf_counter() - begun
        self.buffer.follow(commit)

    def write(self, commit: Commit, keyed: list[KeyedReply]) -> None:
        """Put a commit on the disk and its machine in front."""
        number = self.store.append(commit, self.buffer.learning.progressive.examples, keyed)
        self.buffer.publish(number)
        self.store.confirm()
        self.trouble = ""

    def _replies(self, commit: Commit, sizes: list[int]) -> list[bytes]:
        """Return what is answered to each request of a commit."""
        total = self.buffer.learning.progressive.examples - commit.n
        ends = np.cumsum([0, *sizes])
        errors = np.diff(np.searchsorted(commit.wrong, ends)).tolist()
        begun = self.buffer.learning.steps - commit.n
        mistakes = np.diff(np.searchsorted(commit.step - begun, ends, side="right")).tolist()
        return [
            orjson.dumps({"learned": n, "errors": wrong, "mistakes": made, "examples": total + int(end)})
            for n, wrong, made, end in zip(sizes, errors, mistakes, ends[1:], strict=True)
        ]

    def _recover(self) -> None:
        """After a failure: the shown machine is what is on the disk, unless the disk is ahead of it."""
        self.trouble = "the last write to the store failed"
        if self.store.last == self.buffer.number:
            self.buffer.restart()
        else:
            machine, names, _ = snapshots.recover(self.store)
            self.buffer = DoubleBuffer(machine, names, self.store.last)

    # The keeper's thread: snapshots and compaction.

    def _keep(self) -> None:
        due = time.monotonic() + self._snapshot_seconds
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closing, timeout=min(HEAD_SECONDS, self._snapshot_seconds))
                if self._closing:
                    return
            self.store.sync_head()
            if time.monotonic() >= due:
                self._maybe_snapshot()
                due = time.monotonic() + self._snapshot_seconds

    def _maybe_snapshot(self, at_end: bool = False) -> None:
        """Write a snapshot where something was learned since the last one, then compact what lies before it."""
        try:
            with self.buffer.reading() as (machine, number):
                if number == self._snapshot or machine.run is None:
                    return
                picture = snapshots.ModelSnapshot.of(self.store, number, machine, self.buffer.names(machine))
            picture.write(snapshots.path_of(self.store, number))
            snapshots.thin(self.store)
            before, self._snapshot = self._snapshot, number
            self.snapshot_time = time.time()
            while not at_end and self._compacted(before):
                pass
        except (OSError, ValueError) as error:
            log.warning("no snapshot was written: %s", error)

    def _compacted(self, until: int) -> bool:
        """Let the writer compact a little; return whether there is more."""
        gone: list[int] = []
        chore = MaintenanceJob(lambda: gone.append(self.store.compact(until)), Future())
        with self._wake:
            if self._closing:
                return False
            self._queue.append(chore)
            self._wake.notify_all()
        while not gone and not chore.answer.done() and not self._closing:
            time.sleep(0.01)
        return bool(gone and gone[0])


def fail(answer: Future[bytes], refused: RequestError) -> None:
    """Answer with a refusal."""
    if not answer.done():
        answer.set_exception(refused)
