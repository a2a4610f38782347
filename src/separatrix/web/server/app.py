"""The application of `separatrix serve`. Requests are read by hand: a model of each would cost more than a prediction."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect

from separatrix.web.server import openapi, queries, snapshots
from separatrix.web.server.metrics import MetricsMiddleware, RequestMetrics
from separatrix.web.server.request_reader import RequestError, RequestExamples
from separatrix.web.server.writer import Writer
from separatrix.web.skeleton import JSON, refusal, skeleton

log = logging.getLogger("separatrix.serve")

LINES = "application/x-ndjson"
AT_HAND = 1 << 14
"""Bodies up to this size are read on the spot, longer ones by a thread."""
BODY_SECONDS = 20.0
_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_PAGES = {
    "/": ("index.html", "text/html"),
    "/status.js": ("status.js", "text/javascript"),
    "/status.css": ("status.css", "text/css"),
}


class Tokens(NamedTuple):
    """Who may read and who may learn; empty: whoever reaches the server."""

    read: str = ""
    learn: str = ""

    def check(self, request: Request, learning: bool) -> None:
        """Raise unless the request brings a token that is enough for it."""
        if not (self.read or self.learn):
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        told = given.strip().encode() if kind.lower() == "bearer" else b""
        may_learn = hmac.compare_digest(told, self.learn.encode()) and bool(self.learn)
        may_read = hmac.compare_digest(told, self.read.encode()) and bool(self.read)
        if not (may_learn or may_read):
            raise RequestError(401, "send a token: Authorization: Bearer …")
        if learning and not may_learn:
            raise RequestError(403, "this token may read and not learn")


class Intake:
    """Bodies while they are read: all of them together are bounded, and each must come in time."""

    def __init__(self, most: int, payloads_logged: bool) -> None:
        self.most, self.payloads_logged = most, payloads_logged
        self.held = 0

    async def body(self, request: Request) -> bytes:
        """Return the body of a request."""
        parts, size = [], 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    if self.held + len(part) > self.most:
                        raise RequestError(429, "too many bodies are being read: try again shortly", 1)
                    self.held += len(part)
                    size += len(part)
                    parts.append(part)
        except TimeoutError:
            raise RequestError(408, f"the body did not come within {BODY_SECONDS:g} seconds") from None
        except ClientDisconnect:
            raise RequestError(400, "the client left") from None
        finally:
            self.held -= size
        whole = b"".join(parts)
        if self.payloads_logged:
            log.info("%s %s", request.url.path, whole[:2000].decode("utf-8", "replace"))
        return whole


def application(
    writer: Writer,
    *,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    requests_logged: bool = False,
    payloads_logged: bool = False,
) -> FastAPI:
    """Return the application of a writer, which it starts and closes."""
    limits, allowed = writer.limits, tokens or Tokens()
    reader = writer.reader
    told = openapi.document(reader.field)
    meter = RequestMetrics(set(told["paths"]) | set(_PAGES), requests_logged)
    intake = Intake(limits.waiting_bytes, payloads_logged)
    reading = writer.store.reader()
    saving = asyncio.Lock()
    begun = time.time()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        writer.start()
        yield
        reading.db.close()
        await asyncio.to_thread(writer.close)

    app = skeleton("separatrix serve", hosts=hosts, body_limit=limits.body, lifespan=life)
    app.openapi = lambda: told  # type: ignore[method-assign]
    app.add_exception_handler(RequestError, _refuse)
    app.add_middleware(MetricsMiddleware, meter=meter)

    async def examples(request: Request, labelled: bool) -> tuple[RequestExamples, bytes, bool]:
        """Return what a request holds, its body, and whether it came in lines."""
        body = await intake.body(request)
        lines = _kind(request) == LINES
        read = reader.lines if lines else reader.one
        if len(body) <= AT_HAND and reader.field == "features":
            return read(body, labelled), body, lines
        return await asyncio.to_thread(read, body, labelled), body, lines

    async def predict(request: Request) -> Response:
        allowed.check(request, False)
        given, body, lines = await examples(request, False)
        meter.predicted += given.n
        if not lines:
            return JSON(queries.predictions(writer.buffer, given)[0])
        act = queries.prediction_lines
        small = len(body) <= AT_HAND
        found = act(writer.buffer, given) if small else await asyncio.to_thread(act, writer.buffer, given)
        return Response(found, media_type=LINES)

    async def learn(request: Request) -> Response:
        allowed.check(request, True)
        key = request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise RequestError(422, "an Idempotency-Key has 1 to 200 letters, digits, dots, colons, dashes and underscores")
        given: RequestExamples | None = None
        if reader.field == "features" and _kind(request) == LINES:  # the writer reads them, names and all
            body = await intake.body(request)
        else:
            given, body, _ = await examples(request, True)
        return Response(await asyncio.wrap_future(writer.submit(given, key, body)), media_type="application/json")

    async def explain(request: Request) -> Response:
        allowed.check(request, False)
        body = await intake.body(request)
        return JSON(await asyncio.to_thread(lambda: queries.explanation(writer.buffer, reader.one(body, False))))

    async def undo(request: Request) -> Response:
        allowed.check(request, True)
        number = _number(await intake.body(request))
        return Response(await asyncio.wrap_future(writer.undo(number)), media_type="application/json")

    async def ledger(request: Request) -> Response:
        allowed.check(request, False)
        before, limit = (_whole(request, name, most) for name, most in (("before", 2**62), ("limit", 500)))
        return JSON(await asyncio.to_thread(queries.page, reading, writer.buffer, before, limit or 50))

    async def stats(request: Request) -> Response:
        allowed.check(request, False)
        with writer.buffer.reading() as (machine, number):
            found = machine.progressive.told(machine.classes)
            found |= {"features": machine.n_names, "commits": number, "learner": _learner(machine.learner)}
        found |= {
            "waiting": writer.waiting,
            "input": reader.field,
            "started": begun,
            "snapshot": writer.snapshot_time or None,
        }
        return JSON(found)

    async def model(request: Request) -> Response:
        allowed.check(request, False)
        if saving.locked():
            raise RequestError(429, "another model is being written: try again shortly", 1)
        async with saving:
            path, number = await asyncio.to_thread(_saved, writer)
        name = f"model-{number}.sepx"
        gone = BackgroundTask(_remove, path)
        return FileResponse(path, media_type="application/octet-stream", filename=name, background=gone)

    async def metrics(request: Request) -> Response:
        allowed.check(request, False)
        return Response(meter.text(writer), media_type="text/plain; version=0.0.4")

    async def healthz(request: Request) -> Response:
        return JSON({"status": "alive"})

    async def readyz(request: Request) -> Response:
        if writer.trouble:
            raise RequestError(503, writer.trouble, 5)
        return JSON({"status": "ready"})

    for act in (predict, learn, explain, undo):
        app.add_route(f"/{act.__name__}", act, methods=["POST"])
    for act in (ledger, stats, model, metrics, healthz, readyz):
        app.add_route(f"/{act.__name__}", act, methods=["GET"])
    for path, (name, kind) in _PAGES.items():
        app.add_route(path, _page(files("separatrix.web").joinpath("static", "status", name).read_bytes(), kind))
    return app


def _page(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def page(request: Request) -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8")

    return page


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    headers = {} if error.wait is None else {"retry-after": str(error.wait)}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return refusal(error.status, error.message, headers)


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _learner(learner: Any) -> str:
    return f"{type(learner).__name__}(rule={learner.rule!r})"


def _number(body: bytes) -> int:
    """Return which mistake a body names."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"this is not JSON: {error}") from None
    number = told.get("mistake") if isinstance(told, dict) else None
    if type(number) is not int or not 0 < number <= 2**53:
        raise RequestError(422, 'send {"mistake": number}, a number of the ledger')
    return number


def _whole(request: Request, name: str, most: int) -> int | None:
    """Return a whole number of the query, from 1 on; None where it is not given."""
    told = request.query_params.get(name)
    if told is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", told) or not 1 <= int(told) <= most:
        raise RequestError(422, f"{name} must be a whole number from 1 to {most}")
    return int(told)


def _saved(writer: Writer) -> tuple[Path, int]:
    """Write the model as it is to a file of its own."""
    with writer.buffer.reading() as (machine, number):
        if machine.run is None:
            raise RequestError(409, "nothing was learned yet")
        picture = snapshots.ModelSnapshot.of(writer.store, number, machine, writer.buffer.names(machine))
    path = Path(tempfile.mkdtemp(prefix="separatrix-")) / "model.sepx"
    picture.write(path)
    return path, number


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.rmdir()
