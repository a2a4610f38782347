"""What the client and the asynchronous client share: requests, errors, and how long to retry. Nothing here is sent.

A request is sent again after a lost connection, and when the server is busy, only if it changes nothing or carries an
idempotency key, by which the server learns from it once. Status 429 says that nothing was done: then any request is.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from separatrix.web.replies import Example, Label

REFUSED, UNKNOWN = 429, (502, 503, 504)
"""Nothing was done; and it may not be known whether something was: a proxy lost the server, or the server its disk."""
LINES = "application/x-ndjson"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0


class ServerError(Exception):
    """An error reply of the server: the HTTP status, the message, and the whole reply if it is an object of JSON."""

    def __init__(self, status: int, message: str, reply: dict[str, Any] | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message, self.reply = status, message, reply or {}

    @classmethod
    def of(cls, status: int, content: bytes) -> ServerError:
        """Return the error of a reply."""
        try:
            reply = json.loads(content)
            return cls(status, str(reply["error"]), reply)
        except (ValueError, KeyError, TypeError):
            return cls(status, content[:200].decode("utf-8", "replace"))


class ServerUnreachableError(ConnectionError):
    """The server could not be reached, or the connection was lost before the reply.

    `key` is the idempotency key of a request to learn, if it was one: it is not known whether the server has learned from
    it, and sent again with this key it is learned from once.
    """

    def __init__(self, url: str, cause: Exception, call: Call) -> None:
        reason = str(cause) or type(cause).__name__
        remedy = f"; it is not known whether this was learned; send it again with key={call.key!r}" if call.key else ""
        super().__init__(f"no reply from {url}: {reason}{remedy}")
        self.key = call.key


class Server(NamedTuple):
    """The address of a server, or of a model on it, taken apart."""

    scheme: str
    host: str
    port: int
    prefix: str

    @classmethod
    def at(cls, url: str) -> Server:
        """Take an address apart; raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url is {url!r}: it must look like http://127.0.0.1:8017")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """The host and port, as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address."""
        return f"{self.scheme}://{self.authority}{self.prefix}"


class Call(NamedTuple):
    """A request: its path within the server or model, its body, and its idempotency key."""

    method: str
    path: str
    body: bytes | None = None
    kind: str = "application/json"
    key: str | None = None
    changes: bool = False
    """Whether it changes something on the server; with a key it does so once."""

    @property
    def may_repeat(self) -> bool:
        """Whether it may be sent again although nobody knows whether the server has received it."""
        return self.key is not None or not self.changes

    def headers(self, token: str) -> dict[str, str]:
        """Return the headers that it is sent with."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if self.body is not None:
            headers["Content-Type"] = self.kind
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers


class Patience:
    """How often a request is sent again: with growing pauses, until so many seconds have passed since the first time."""

    def __init__(self, seconds: float) -> None:
        self._end, self._wait = time.monotonic() + seconds, _FIRST_PAUSE

    def pause_after(self, call: Call, problem: Exception, retry_after: str | None = None) -> float:
        """Return how many seconds to wait before the call is sent again; raises the problem if it is not."""
        status = problem.status if isinstance(problem, ServerError) else 0
        is_retried = status == REFUSED or (call.may_repeat and (not status or status in UNKNOWN))
        pause = self._wait * random.uniform(0.5, 1.0)
        self._wait = min(2 * self._wait, _LONGEST_PAUSE)
        if retry_after is not None and retry_after.isdigit():
            pause = max(pause, float(retry_after))
        if not is_retried or time.monotonic() + pause > self._end:
            raise problem
        return pause


def predicting(bodies: list[bytes], in_lines: bool) -> Call:
    """Return the call that predicts encoded examples."""
    return Call("POST", "/predict", b"\n".join(bodies), LINES if in_lines else "application/json")


def learning(bodies: list[bytes], in_lines: bool, key: str | None) -> Call:
    """Return the call that learns from encoded examples; without a key it gets one."""
    kind = LINES if in_lines else "application/json"
    return Call("POST", "/learn", b"\n".join(bodies), kind, key or uuid.uuid4().hex, changes=True)


def explaining(body: bytes, of: Any, against: Any) -> Call:
    """Return the call that explains the score of an encoded example."""
    classes = {name: str(label) for name, label in (("class", of), ("against", against)) if label is not None}
    return Call("POST", f"/explain?{urlencode(classes)}" if classes else "/explain", body)


def undoing(mistake: int) -> Call:
    """Return the call that undoes a mistake."""
    return Call("POST", "/undo", encoded_fields({"mistake": mistake}), changes=True)


def forgetting(examples: Iterable[int]) -> Call:
    """Return the call that forgets examples; a second time it changes nothing, and is answered with the receipt."""
    return Call("POST", "/forget", encoded_fields({"examples": list(examples)}))


def unpinning(example: int) -> Call:
    """Return the call that takes an example out of the regression set."""
    return Call("POST", "/unpin", encoded_fields({"example": example}), changes=True)


def ledger_page(before: int | None) -> Call:
    """Return the call that reads a page of mistakes."""
    return Call("GET", f"/ledger?limit=200{'' if before is None else f'&before={before}'}")


def models_page(after: str | None) -> Call:
    """Return the call that lists the models of a server of many."""
    return Call("GET", "/models" if after is None else f"/models?after={quote(after, safe='')}")


def creating(name: str, settings: dict[str, Any]) -> Call:
    """Return the call that creates a model; a second time it changes nothing."""
    return Call("PUT", model_path(name), encoded_fields(settings))


def deleting(name: str) -> Call:
    """Return the call that deletes a model."""
    return Call("DELETE", model_path(name), changes=True)


def model_path(name: str) -> str:
    """Return the path of a model on a server of many."""
    return f"/models/{quote(name, safe='')}"


def encoded(field: str, example: Example, label: Label | None = None, **wishes: bool) -> bytes:
    """Return an example as the server reads it, with its label if it is to be learned from, and the wishes that are true."""
    value: Any = example
    if not isinstance(example, str):
        value = dict(example) if isinstance(example, Mapping) else [float(number) for number in example]
    fields = {field: value} | {name: True for name, wish in wishes.items() if wish}
    return encoded_fields(fields if label is None else fields | {"label": label})


def encoded_fields(fields: Any) -> bytes:
    """Return values as JSON; raises ValueError for numbers that JSON does not have."""
    return json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()


def batches(things: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of `size` things, the last one shorter."""
    batch: list[Any] = []
    for thing in things:
        batch.append(thing)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
