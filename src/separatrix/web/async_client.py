"""The client of the feedback server for asyncio: the methods of `Client`, to await, on the standard library alone."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
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


class AsyncClient:
    """Sends predictions and labelled examples to a feedback server, for programs that use asyncio.

    What `Client` says of examples, retries and errors holds here too. Several tasks may use one client at a time; each
    request has a connection of its own, and connections are kept for the next requests.

    Parameters
    ----------
    url, token, patience : as of `Client`
    timeout : seconds to wait for the whole reply to a request
    connections : the most requests that are sent at a time; others wait

    Examples
    --------
    >>> from separatrix.web import AsyncClient
    >>> async def route(question):
    ...     async with AsyncClient("http://127.0.0.1:8017/models/router") as client:
    ...         return (await client.predict(question))["prediction"]
    """

    def __init__(
        self, url: str, *, token: str = "", timeout: float = 30.0, patience: float = 30.0, connections: int = 10
    ) -> None:
        self._server = Server.at(url)
        self._token, self.timeout, self.patience, self.connections = token, timeout, patience, connections
        self._field = ""
        self._idle: list[tuple[StreamReader, StreamWriter]] = []
        self._room = asyncio.Semaphore(connections)

    # Predicting and learning.

    async def predict(self, example: Example, *, cite: bool = False) -> Prediction:
        """Return the prediction and the scores of an example; with `cite`, also the corrections behind it."""
        reply: Prediction = await self._json(exchange.predicting([await self._encoded(example, cite=cite)], False))
        return reply

    async def predict_many(self, examples: Iterable[Example], size: int = 1000) -> AsyncIterator[Prediction]:
        """Yield the prediction of each example; `size` of them are sent at a time."""
        for batch in exchange.batches(examples, size):
            bodies = [await self._encoded(example) for example in batch]
            for line in (await self._send(exchange.predicting(bodies, True))).splitlines():
                yield json.loads(line)

    async def learn(
        self, example: Example, label: Label, *, key: str | None = None, until_right: bool = False, pin: bool = False
    ) -> Learned:
        """Learn from an example; when this returns, the example is stored on the server's disk.

        A request with the key of an earlier one, from any client, is not learned from again. With `until_right` the model
        is corrected until it judges the example right, and with `pin` the example joins the regression set.
        """
        reply: Learned = await self._json(
            exchange.learning([await self._encoded(example, label, until_right=until_right, pin=pin)], False, key)
        )
        return reply

    async def learn_many(self, examples: Iterable[tuple[Example, Label]], size: int = 1000) -> AsyncIterator[Learned]:
        """Learn from pairs of an example and a label, `size` at a time; yield the reply to each batch."""
        for batch in exchange.batches(examples, size):
            bodies = [await self._encoded(*pair) for pair in batch]
            yield await self._json(exchange.learning(bodies, True, None))

    async def forget(self, examples: Iterable[int]) -> Forgotten:
        """Forget examples by their numbers, as if they had never been sent; return the receipt.

        The number of an example is `examples` in the answer to `learn`; of a batch, its last example has it. The server
        needs to have kept all examples (--keep-all). Sent again, the request is answered with the same receipt.
        """
        reply: Forgotten = await self._json(exchange.forgetting(examples))
        return reply

    async def unpin(self, example: int) -> Unpinned:
        """Take an example out of the regression set. It is not sent again after a lost connection."""
        reply: Unpinned = await self._json(exchange.unpinning(example))
        return reply

    async def undo(self, mistake: int) -> Undone:
        """Undo a mistake of the ledger. It is not sent again after a lost connection: look at the ledger then."""
        reply: Undone = await self._json(exchange.undoing(mistake))
        return reply

    # Reading.

    async def explain(self, example: Example, of: Any = None, against: Any = None) -> Explanation:
        """Return the terms that the score of an example is the sum of: of a class, minus that of another, if named."""
        reply: Explanation = await self._json(exchange.explaining(await self._encoded(example), of, against))
        return reply

    async def regressions(self) -> Regressions:
        """Return the pinned examples, and those of them that are predicted wrongly now: since when, and because of what."""
        reply: Regressions = await self._json(Call("GET", "/regressions"))
        return reply

    async def forgotten(self) -> list[dict[str, Any]]:
        """Return the receipts of all that was forgotten, in order."""
        receipts: list[dict[str, Any]] = (await self._json(Call("GET", "/forgotten")))["receipts"]
        return receipts

    async def stats(self) -> Stats:
        """Return how many examples were learned, and the progressive error."""
        reply: Stats = await self._json(Call("GET", "/stats"))
        return reply

    async def ledger(self) -> AsyncIterator[Mistake]:
        """Yield the mistakes, the newest first."""
        before = None
        while True:
            page = await self._json(exchange.ledger_page(before))
            for mistake in page["mistakes"]:
                yield mistake
            if (before := page["next"]) is None:
                return

    async def save_model(self, path: str | Path) -> None:
        """Write the model as it is now to a file that `separatrix.load` reads."""
        model = await self._send(Call("GET", "/model"))
        with replacing(path) as name:
            await asyncio.to_thread(Path(name).write_bytes, model)

    # The models of a server of many.

    def model(self, name: str) -> AsyncClient:
        """Return a client of one model of a server of many, with connections of its own."""
        how: dict[str, Any] = {"timeout": self.timeout, "patience": self.patience, "connections": self.connections}
        return AsyncClient(self._server.url + exchange.model_path(name), token=self._token, **how)

    async def models(self) -> AsyncIterator[ModelSummary]:
        """Yield the models of a server of many, in the order of their names."""
        after = None
        while True:
            page = await self._json(exchange.models_page(after))
            for summary in page["models"]:
                yield summary
            if (after := page["next"]) is None:
                return

    async def create_model(self, name: str, **settings: Any) -> CreatedModel:
        """Create a model: `learner`, `rule`, `C`, `text` and `bits` are those of the command line."""
        reply: CreatedModel = await self._json(exchange.creating(name, settings))
        return reply

    async def delete_model(self, name: str) -> DeletedModel:
        """Delete a model with everything it has learned. It is not sent again after a lost connection."""
        reply: DeletedModel = await self._json(exchange.deleting(name))
        return reply

    async def close(self) -> None:
        """Close the connections that no request uses; another request opens one again."""
        idle, self._idle = self._idle, []
        for _, writer in idle:
            await _close(writer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Sending requests.

    async def request(self, method: str, path: str, fields: Any = None, *, key: str | None = None) -> Any:
        """Send a request that this client has no method for; return the reply, read as JSON.

        After a lost connection only a GET, and a request with a key, is sent again.
        """
        body = None if fields is None else exchange.encoded_fields(fields)
        return await self._json(Call(method, path, body, key=key, changes=method != "GET"))

    async def _encoded(self, example: Example, label: Label | None = None, **wishes: bool) -> bytes:
        field = "text" if isinstance(example, str) else self._field
        if not field:
            try:
                field = self._field = (await self.stats())["input"]
            except ServerError as error:  # a model that its first example creates
                if (field := error.reply.get("input", "")) == "":
                    raise
        return exchange.encoded(field, example, label, **wishes)

    async def _json(self, call: Call) -> Any:
        return json.loads(await self._send(call))

    async def _send(self, call: Call) -> bytes:
        """Send a request, retrying until there is a reply or `patience` has passed; return the content of the reply."""
        patience = Patience(self.patience)
        while True:
            retry_after = None
            try:
                async with self._room, asyncio.timeout(self.timeout):
                    status, headers, content = await self._exchange(call)
                if 200 <= status < 300:
                    return content
                problem: Exception = ServerError.of(status, content)
                retry_after = headers.get("retry-after")
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:  # a TimeoutError is an OSError
                problem = ServerUnreachableError(self._server.url, error, call)
            await asyncio.sleep(patience.pause_after(call, problem, retry_after))

    async def _exchange(self, call: Call) -> tuple[int, dict[str, str], bytes]:
        """Send a request once; return the status, the headers and the content of the reply."""
        if self._idle and call.may_repeat:  # the server may have closed one that was idle, and a new one tells
            reader, writer = self._idle.pop()
        else:
            is_encrypted = self._server.scheme == "https"
            reader, writer = await asyncio.open_connection(self._server.host, self._server.port, ssl=is_encrypted or None)
        is_kept = False
        try:
            body = call.body or b""
            headers = {"Host": self._server.authority, "Content-Length": str(len(body)), **call.headers(self._token)}
            lines = [f"{call.method} {self._server.prefix}{call.path} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            await writer.drain()
            status, received, content = await _reply(reader)
            is_kept = received.get("connection", "").lower() != "close"
        finally:
            if is_kept:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return status, received, content


async def _reply(reader: StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Read a reply of HTTP/1.1: its status, its headers by lower-case name, and its content."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("the reply is not HTTP/1.1")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readline()).partition(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        while (await reader.readline()).strip():  # trailers
            pass
        content = b"".join(parts)
    else:
        content = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(rest[:3]), headers, content


async def _close(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
