"""What waits for the writer's thread: requests to learn, to undo a mistake, to maintain the store; and their answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import orjson

from separatrix.web.server.live.commits import Commit
from separatrix.web.server.live.live_model import LearningStoppedError
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples
from separatrix.web.server.storage.pins import Pin
from separatrix.web.server.storage.store_folder import StoreError


class LearnRequest(NamedTuple):
    """A waiting request to learn: its examples, or lines still to be parsed, its idempotency key, and the future reply."""

    examples: RequestExamples | None
    raw: bytes
    key: bytes
    body: bytes
    """A checksum of the request body: one key must not be used for two different requests."""
    size: int
    answer: Future[bytes]

    @classmethod
    def of(cls, examples: RequestExamples | None, key: str | None, body: bytes) -> LearnRequest:
        """Return a request that nobody has answered yet."""
        key_digest = b"" if key is None else hashlib.blake2b(key.encode(), digest_size=16).digest()
        checksum = hashlib.blake2b(body, digest_size=16).digest() if key_digest else b""
        return cls(examples, body if examples is None else b"", key_digest, checksum, len(body), Future())

    @property
    def n(self) -> int:
        """The approximate number of its examples."""
        return self.raw.count(b"\n") + 1 if self.examples is None else self.examples.n


class MaintenanceJob(NamedTuple):
    """A task that the writer's thread runs between two groups of requests."""

    act: Callable[[], None]
    answer: Future[bytes]


Job = LearnRequest | MaintenanceJob
Answer = tuple[Future[bytes], bytes]
"""Where somebody waits for a reply, and the reply."""


def fail(answer: Future[bytes], error: RequestError) -> None:
    """Answer a request with an error, unless it was answered already."""
    if not answer.done():
        answer.set_exception(error)


def replies_to(commit: Commit, sizes: list[int], examples: int, mistakes_before: int, broken: list[Pin]) -> list[bytes]:
    """Return the reply to each request of a commit: their numbers of examples, and the number of all so far.

    `broken` are the pins that the commit broke: they are listed in the reply to the request whose correction did it, or to
    the last request, if none is known.
    """
    ends = np.cumsum([0, *sizes])
    errors = np.diff(np.searchsorted(commit.wrong, ends)).tolist()
    mistake_ends = np.searchsorted(commit.step - (commit.steps - commit.n), ends, side="right")
    replies: list[dict[str, Any]] = [
        {"learned": n, "errors": wrong, "mistakes": n_mistakes, "examples": examples - commit.n + int(end)}
        for n, wrong, n_mistakes, end in zip(sizes, errors, np.diff(mistake_ends).tolist(), ends[1:], strict=True)
    ]
    for at, end in zip(commit.until_right.tolist(), np.searchsorted(ends, commit.until_right, side="right"), strict=True):
        reply = replies[int(end) - 1]
        reply["right"] = reply.get("right", True) and at not in commit.unresolved
    for pin in broken:
        mistake = (pin.broken or {})["by"].get("mistake")
        which = -1
        if mistake is not None:
            which = int(np.searchsorted(mistake_ends, mistake - mistakes_before - 1, side="right")) - 1
        replies[which].setdefault("broke", []).append(pin.example)
    return [orjson.dumps(reply) for reply in replies]


def refusal(error: Exception, outcome: str | None) -> RequestError:
    """Return the answer to a request that failed because of an error; an outcome of None is not known."""
    outcome = outcome or "it is not known whether this was stored; send it again under the same Idempotency-Key"
    if isinstance(error, LearningStoppedError):
        return RequestError(503, f"{outcome}: the server is shutting down", 5)
    if isinstance(error, StoreError | MemoryError):
        return RequestError(503, f"{outcome}: {str(error) or 'not enough memory'}", 5)
    return RequestError(500, f"{outcome}: internal error; see the log of the server")
