"""What waits for the writer's thread: requests to learn, to undo a mistake, to maintain the store; and their answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

import numpy as np
import orjson

from separatrix.web.server.commits import Commit
from separatrix.web.server.live_model import LearningStoppedError
from separatrix.web.server.request_reader import RequestError, RequestExamples
from separatrix.web.server.store_folder import StoreError


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
Answer = tuple[Future[bytes], bytes]
"""Where somebody waits for a reply, and the reply."""


def fail(answer: Future[bytes], error: RequestError) -> None:
    """Answer a request with an error, unless it was answered already."""
    if not answer.done():
        answer.set_exception(error)


def replies_to(commit: Commit, sizes: list[int], examples: int) -> list[bytes]:
    """Return the reply to each request of a commit: their numbers of examples, and the number of all so far."""
    ends = np.cumsum([0, *sizes])
    errors = np.diff(np.searchsorted(commit.wrong, ends)).tolist()
    steps_before = commit.steps - commit.n
    mistakes = np.diff(np.searchsorted(commit.step - steps_before, ends, side="right")).tolist()
    return [
        orjson.dumps({"learned": n, "errors": wrong, "mistakes": n_mistakes, "examples": examples - commit.n + int(end)})
        for n, wrong, n_mistakes, end in zip(sizes, errors, mistakes, ends[1:], strict=True)
    ]


def refusal(error: Exception, outcome: str | None) -> RequestError:
    """Return the answer to a request that failed because of an error; an outcome of None is not known."""
    outcome = outcome or "it is not known whether this was stored; send it again under the same Idempotency-Key"
    if isinstance(error, LearningStoppedError):
        return RequestError(503, f"{outcome}: the server is shutting down", 5)
    if isinstance(error, StoreError | MemoryError):
        return RequestError(503, f"{outcome}: {str(error) or 'not enough memory'}", 5)
    return RequestError(500, f"{outcome}: internal error; see the log of the server")
