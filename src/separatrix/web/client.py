"""A client of the feedback server, on the standard library alone. What it sends again counts once."""

from __future__ import annotations

import http.client
import json
import random
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

_AGAIN = (429, 503)
_LINES = "application/x-ndjson"


class ServerError(Exception):
    """What the server refused: the status, and its sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class Client:
    """Asks a feedback server to predict and to learn.

    An example is a dict of features (or of a table's columns, where the model has them) or a text. A request to learn has a
    key, so that it is safe to send it again when the connection breaks or the server is busy: it counts once.

    Parameters
    ----------
    url : where the server is, such as "http://127.0.0.1:8017"
    token : the token for reading or for learning, where the server has them
    timeout : seconds to wait for an answer
    patience : seconds after which to give up on a server that cannot be reached, or is busy

    Examples
    --------
    >>> from separatrix.web import Client
    >>> client = Client("http://127.0.0.1:8017")
    >>> client.learn({"free": 1, "money": 1}, "spam")                                               # doctest: +SKIP
    {'learned': 1, 'errors': 0, 'mistakes': 0, 'examples': 1}
    >>> client.predict({"free": 2})["prediction"]                                                   # doctest: +SKIP
    'spam'
    """

    def __init__(self, url: str, *, token: str = "", timeout: float = 30.0, patience: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url is {url!r}: it must look like http://127.0.0.1:8017")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.patience = patience
        self._field = ""

    # Predicting and learning.

    def predict(self, example: Any) -> dict[str, Any]:
        """Return the prediction and the scores of an example."""
        return self._json("POST", "/predict", self._one(example))

    def predict_many(self, examples: Iterable[Any], size: int = 1000) -> Iterator[dict[str, Any]]:
        """Yield the prediction of each example; `size` of them are sent at a time."""
        for batch in _batches(examples, size):
            body = b"\n".join(map(self._one, batch))
            for line in self._ask("POST", "/predict", body, {"Content-Type": _LINES}).splitlines():
                yield json.loads(line)

    def learn(self, example: Any, label: Any, *, key: str | None = None) -> dict[str, Any]:
        """Learn from an example; when this returns, it is on the server's disk."""
        return self._learn(self._one(example, label), "application/json", key)

    def learn_many(self, examples: Iterable[tuple[Any, Any]], size: int = 1000) -> Iterator[dict[str, Any]]:
        """Learn from pairs of an example and a label, `size` at a time; yield what is answered to each batch."""
        for batch in _batches(examples, size):
            yield self._learn(b"\n".join(self._one(*pair) for pair in batch), _LINES, None)

    def _learn(self, body: bytes, kind: str, key: str | None) -> dict[str, Any]:
        return self._json("POST", "/learn", body, {"Content-Type": kind, "Idempotency-Key": key or uuid.uuid4().hex})

    def undo(self, mistake: int) -> dict[str, Any]:
        """Take a mistake of the ledger back."""
        return self._json("POST", "/undo", json.dumps({"mistake": mistake}).encode())

    # Reading.

    def explain(self, example: Any) -> dict[str, Any]:
        """Return the terms that the score of an example is the sum of."""
        return self._json("POST", "/explain", self._one(example))

    def stats(self) -> dict[str, Any]:
        """Return how many examples were learned, and the progressive error."""
        return self._json("GET", "/stats")

    def ledger(self) -> Iterator[dict[str, Any]]:
        """Yield the mistakes, the newest first."""
        before = ""
        while True:
            page = self._json("GET", f"/ledger?limit=200{before}")
            yield from page["mistakes"]
            if page["next"] is None:
                return
            before = f"&before={page['next']}"

    def save_model(self, path: str | Path) -> None:
        """Write the model as it is now to a file that `separatrix.load` reads."""
        Path(path).write_bytes(self._ask("GET", "/model"))

    def close(self) -> None:
        """Close the connection; another request opens it again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Asking.

    def _one(self, example: Any, label: Any = None) -> bytes:
        if not self._field:
            self._field = "text" if isinstance(example, str) else self.stats()["input"]
        told = {self._field: example} if label is None else {self._field: example, "label": label}
        return json.dumps(told, allow_nan=False, ensure_ascii=False).encode()

    def _json(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._ask(method, path, body, headers))
        return told

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        """Ask until there is an answer, or patience ends; only an undo is never sent twice."""
        sent = {"Content-Type": "application/json", **self._headers, **(headers or {})}
        if body is None:
            del sent["Content-Type"]
        end, wait = time.monotonic() + self.patience, 0.05
        while True:
            try:
                self._connection.request(method, self._prefix + path, body, sent)
                reply = self._connection.getresponse()
                found = reply.read()
                if reply.status == 200:
                    return found
                problem: Exception = ServerError(reply.status, _sentence(found))
                pause = float(reply.headers.get("Retry-After", 0))
                again = reply.status in _AGAIN
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                problem, pause, again = error, 0.0, path != "/undo"
            pause = max(pause, wait * random.uniform(0.5, 1.0))
            if not again or time.monotonic() + pause > end:
                raise problem
            time.sleep(pause)
            wait = min(2 * wait, 2.0)


def _sentence(reply: bytes) -> str:
    try:
        return str(json.loads(reply)["error"])
    except (ValueError, KeyError, TypeError):
        return reply[:200].decode("utf-8", "replace")


def _batches(things: Iterable[Any], size: int) -> Iterator[list[Any]]:
    batch: list[Any] = []
    for thing in things:
        batch.append(thing)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
