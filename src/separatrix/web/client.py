"""A client of the feedback server, on the standard library alone. Retried requests are learned from once."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from separatrix.data.atomic import replacing
from separatrix.web import exchange
from separatrix.web.exchange import Call, Patience, Server, ServerError, ServerUnreachableError
from separatrix.web.replies import (
    CreatedModel,
    DeletedModel,
    Example,
    Explanation,
    Forgotten,
    Label,
    Learned,
    Mistake,
    ModelSummary,
    Prediction,
    Regressions,
    Stats,
    Undone,
    Unpinned,
)


class Client:
    """Sends predictions and labelled examples to a feedback server.

    An example is a dict of features (or of a table's columns, if the model was trained on a table) or a text. A request to
    learn carries an idempotency key, so it can safely be retried when the connection breaks or the server is busy. A client
    has one connection: use one client for each thread.

    Parameters
    ----------
    url : the address of the server, such as "http://127.0.0.1:8017", or of one model of a server of many, such as
        "http://127.0.0.1:8017/models/billing"
    token : the read or learn token, if the server requires one
    timeout : seconds to wait for the server at each step: to connect, to send, to receive
    patience : seconds for which to retry while the server is busy or cannot be reached

    Raises
    ------
    ServerError : the server refused a request; `status` and `message` say why
    ServerUnreachableError : there was no reply; a ConnectionError

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
        self._server = Server.at(url)
        kind = http.client.HTTPSConnection if self._server.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(self._server.host, self._server.port, timeout=timeout)
        self._token, self.timeout, self.patience = token, timeout, patience
        self._field = ""

    # Predicting and learning.

    def predict(self, example: Example, *, cite: bool = False) -> Prediction:
        """Return the prediction and the scores of an example; with `cite`, also the corrections behind it."""
        reply: Prediction = self._json(exchange.predicting([self._encoded(example, cite=cite)], False))
        return reply

    def predict_many(self, examples: Iterable[Example], size: int = 1000) -> Iterator[Prediction]:
        """Yield the prediction of each example; `size` of them are sent at a time."""
        for batch in exchange.batches(examples, size):
            yield from map(json.loads, self._send(exchange.predicting(list(map(self._encoded, batch)), True)).splitlines())

    def learn(
        self, example: Example, label: Label, *, key: str | None = None, until_right: bool = False, pin: bool = False
    ) -> Learned:
        """Learn from an example; when this returns, the example is stored on the server's disk.

        Parameters
        ----------
        example, label : what to learn
        key : an idempotency key; a second request with the same key, from any client, is not learned from again
        until_right : correct the model until it judges the example right
        pin : let the example join the regression set
        """
        reply: Learned = self._json(
            exchange.learning([self._encoded(example, label, until_right=until_right, pin=pin)], False, key)
        )
        return reply

    def learn_many(self, examples: Iterable[tuple[Example, Label]], size: int = 1000) -> Iterator[Learned]:
        """Learn from pairs of an example and a label, `size` at a time; yield the reply to each batch."""
        for batch in exchange.batches(examples, size):
            yield self._json(exchange.learning([self._encoded(*pair) for pair in batch], True, None))

    def forget(self, examples: Iterable[int]) -> Forgotten:
        """Forget examples by their numbers, as if they had never been sent; return the receipt.

        The number of an example is `examples` in the answer to `learn`; of a batch, its last example has it. The server
        needs to have kept all examples (--keep-all). Sent again, the request is answered with the same receipt.
        """
        reply: Forgotten = self._json(exchange.forgetting(examples))
        return reply

    def unpin(self, example: int) -> Unpinned:
        """Take an example out of the regression set. It is not sent again after a lost connection."""
        reply: Unpinned = self._json(exchange.unpinning(example))
        return reply

    def undo(self, mistake: int) -> Undone:
        """Undo a mistake of the ledger. It is not sent again after a lost connection: look at the ledger then."""
        reply: Undone = self._json(exchange.undoing(mistake))
        return reply

    # Reading.

    def explain(self, example: Example, of: Any = None, against: Any = None) -> Explanation:
        """Return the terms that the score of an example is the sum of: of a class, minus that of another, if named."""
        reply: Explanation = self._json(exchange.explaining(self._encoded(example), of, against))
        return reply

    def regressions(self) -> Regressions:
        """Return the pinned examples, and those of them that are predicted wrongly now: since when, and because of what."""
        reply: Regressions = self._json(Call("GET", "/regressions"))
        return reply

    def forgotten(self) -> list[dict[str, Any]]:
        """Return the receipts of all that was forgotten, in order."""
        receipts: list[dict[str, Any]] = (self._json(Call("GET", "/forgotten")))["receipts"]
        return receipts

    def stats(self) -> Stats:
        """Return how many examples were learned, and the progressive error."""
        reply: Stats = self._json(Call("GET", "/stats"))
        return reply

    def ledger(self) -> Iterator[Mistake]:
        """Yield the mistakes, the newest first."""
        before = None
        while True:
            page = self._json(exchange.ledger_page(before))
            yield from page["mistakes"]
            if (before := page["next"]) is None:
                return

    def save_model(self, path: str | Path) -> None:
        """Write the model as it is now to a file that `separatrix.load` reads."""
        model = self._send(Call("GET", "/model"))
        with replacing(path) as name:
            Path(name).write_bytes(model)

    # The models of a server of many.

    def model(self, name: str) -> Client:
        """Return a client of one model of a server of many, with a connection of its own."""
        url = self._server.url + exchange.model_path(name)
        return Client(url, token=self._token, timeout=self.timeout, patience=self.patience)

    def models(self) -> Iterator[ModelSummary]:
        """Yield the models of a server of many, in the order of their names."""
        after = None
        while True:
            page = self._json(exchange.models_page(after))
            yield from page["models"]
            if (after := page["next"]) is None:
                return

    def create_model(self, name: str, **settings: Any) -> CreatedModel:
        """Create a model: `learner`, `rule`, `C`, `text` and `bits` are those of the command line."""
        reply: CreatedModel = self._json(exchange.creating(name, settings))
        return reply

    def delete_model(self, name: str) -> DeletedModel:
        """Delete a model with everything it has learned. It is not sent again after a lost connection."""
        reply: DeletedModel = self._json(exchange.deleting(name))
        return reply

    def close(self) -> None:
        """Close the connection; another request opens it again."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Sending requests.

    def request(self, method: str, path: str, fields: Any = None, *, key: str | None = None) -> Any:
        """Send a request that this client has no method for; return the reply, read as JSON.

        After a lost connection only a GET, and a request with a key, is sent again.
        """
        body = None if fields is None else exchange.encoded_fields(fields)
        return self._json(Call(method, path, body, key=key, changes=method != "GET"))

    def _encoded(self, example: Example, label: Label | None = None, **wishes: bool) -> bytes:
        field = "text" if isinstance(example, str) else self._field
        if not field:
            try:
                field = self._field = self.stats()["input"]
            except ServerError as error:  # a model that its first example creates
                if (field := error.reply.get("input", "")) == "":
                    raise
        return exchange.encoded(field, example, label, **wishes)

    def _json(self, call: Call) -> Any:
        return json.loads(self._send(call))

    def _send(self, call: Call) -> bytes:
        """Send a request, retrying until there is a reply or `patience` has passed; return the content of the reply."""
        patience, headers = Patience(self.patience), call.headers(self._token)
        if not call.may_repeat:
            self._connection.close()  # the server may have closed one that was idle, and a new one tells
        while True:
            retry_after = None
            try:
                self._connection.request(call.method, self._server.prefix + call.path, call.body, headers)
                reply = self._connection.getresponse()
                content = reply.read()
                if 200 <= reply.status < 300:
                    return content
                problem: Exception = ServerError.of(reply.status, content)
                retry_after = reply.headers.get("Retry-After")
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                problem = ServerUnreachableError(self._server.url, error, call)
            time.sleep(patience.pause_after(call, problem, retry_after))
