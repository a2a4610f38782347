"""A client of the feedback server, on the standard library alone. Retried requests are learned from once."""

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
from urllib.parse import urlencode, urlsplit

from separatrix.data.atomic import replacing

_RETRIED = (429, 503)
_NDJSON = "application/x-ndjson"


class ServerError(Exception):
    """An error reply of the server: the HTTP status and the message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class Client:
    """Sends predictions and labelled examples to a feedback server.

    An example is a dict of features (or of a table's columns, if the model was trained on a table) or a text. A request to
    learn carries an idempotency key, so it can safely be retried when the connection breaks or the server is busy.

    Parameters
    ----------
    url : the address of the server, such as "http://127.0.0.1:8017"
    token : the read or learn token, if the server requires one
    timeout : seconds to wait for a reply
    patience : seconds for which to retry while the server is busy or cannot be reached

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
        return self._json("POST", "/predict", self._encoded(example))

    def predict_many(self, examples: Iterable[Any], size: int = 1000) -> Iterator[dict[str, Any]]:
        """Yield the prediction of each example; `size` of them are sent at a time."""
        for batch in _batches(examples, size):
            body = b"\n".join(map(self._encoded, batch))
            for line in self._ask("POST", "/predict", body, {"Content-Type": _NDJSON}).splitlines():
                yield json.loads(line)

    def learn(self, example: Any, label: Any, *, key: str | None = None) -> dict[str, Any]:
        """Learn from an example; when this returns, the example is stored on the server's disk."""
        return self._learn(self._encoded(example, label), "application/json", key)

    def learn_many(self, examples: Iterable[tuple[Any, Any]], size: int = 1000) -> Iterator[dict[str, Any]]:
        """Learn from pairs of an example and a label, `size` at a time; yield the reply to each batch."""
        for batch in _batches(examples, size):
            yield self._learn(b"\n".join(self._encoded(*pair) for pair in batch), _NDJSON, None)

    def _learn(self, body: bytes, kind: str, key: str | None) -> dict[str, Any]:
        return self._json("POST", "/learn", body, {"Content-Type": kind, "Idempotency-Key": key or uuid.uuid4().hex})

    def undo(self, mistake: int) -> dict[str, Any]:
        """Undo a mistake of the ledger."""
        return self._json("POST", "/undo", json.dumps({"mistake": mistake}).encode())

    # Reading.

    def explain(self, example: Any, of: Any = None, against: Any = None) -> dict[str, Any]:
        """Return the terms that the score of an example is the sum of: of a class, minus that of another, if named."""
        classes = {name: str(label) for name, label in (("class", of), ("against", against)) if label is not None}
        query = f"?{urlencode(classes)}" if classes else ""
        return self._json("POST", f"/explain{query}", self._encoded(example))

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
        model = self._ask("GET", "/model")
        with replacing(path) as name:
            Path(name).write_bytes(model)

    def close(self) -> None:
        """Close the connection; another request opens it again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Sending requests.

    def _encoded(self, example: Any, label: Any = None) -> bytes:
        if not self._field:
            self._field = "text" if isinstance(example, str) else self.stats()["input"]
        fields = {self._field: example} if label is None else {self._field: example, "label": label}
        return json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()

    def _json(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(self._ask(method, path, body, headers))
        return reply

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        """Send a request, retrying until there is a reply or `patience` has passed; an undo is never sent twice."""
        sent_headers = {"Content-Type": "application/json", **self._headers, **(headers or {})}
        if body is None:
            del sent_headers["Content-Type"]
        end, wait = time.monotonic() + self.patience, 0.05
        while True:
            try:
                self._connection.request(method, self._prefix + path, body, sent_headers)
                reply = self._connection.getresponse()
                content = reply.read()
                if reply.status == 200:
                    return content
                problem: Exception = ServerError(reply.status, _error_message(content))
                pause = float(reply.headers.get("Retry-After", 0))
                is_retried = reply.status in _RETRIED
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                problem, pause, is_retried = error, 0.0, path != "/undo"
            pause = max(pause, wait * random.uniform(0.5, 1.0))
            if not is_retried or time.monotonic() + pause > end:
                raise problem
            time.sleep(pause)
            wait = min(2 * wait, 2.0)


def _error_message(reply: bytes) -> str:
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
