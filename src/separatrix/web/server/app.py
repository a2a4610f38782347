"""The application of `separatrix serve`. Requests are parsed by hand: a Pydantic model would cost more than a prediction."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from separatrix.learners.online import OnlineLearner
from separatrix.web.server import citations, openapi, queries
from separatrix.web.server.forgetting.act import unchanging
from separatrix.web.server.forgetting.numbers import forgotten_numbers
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.metrics import MetricsMiddleware, RequestMetrics
from separatrix.web.server.reading.bodies import BodyReader, PartedResponse, ReleaseMiddleware
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples
from separatrix.web.server.storage import snapshots
from separatrix.web.server.writing.writer import Writer
from separatrix.web.skeleton import JSON, error_reply, skeleton

log = logging.getLogger("separatrix.serve")

LINES = "application/x-ndjson"
SMALL_BODY = 1 << 14
"""Bodies up to this size are parsed in the event loop, longer ones in a thread."""
WRONG_TOKEN = "the token is wrong"
LEAST_DELAY, MOST_DELAY = 1.0, 10.0
"""The seconds after which a request with a wrong token is answered."""
LOG_SECONDS = 10.0
"""Wrong tokens are logged at most once in this time."""
MOST_FORGOTTEN = 10_000
"""A request may forget so many examples."""
_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")
PAGES = {
    "/": ("index.html", "text/html"),
    "/status.js": ("status.js", "text/javascript"),
    "/status.css": ("status.css", "text/css"),
}


class Tokens(NamedTuple):
    """The tokens for reading and for learning; if all are empty, no token is required.

    Of several models in one server, each may have tokens of its own beside those that are valid `for_all`.
    """

    read: str = ""
    learn: str = ""
    for_all: tuple[str, str] = ("", "")

    def refusal(self, request: Request, learning: bool) -> RequestError | None:
        """Return why a request may not pass, or None."""
        readers, learners = (self.read, self.for_all[0]), (self.learn, self.for_all[1])
        if not any((*readers, *learners)):
            return None
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        token = value.strip().encode() if scheme.lower() == "bearer" else b""
        may_learn, may_read = (
            sum(hmac.compare_digest(token, known.encode()) for known in some if known) for some in (learners, readers)
        )
        if not token:
            return RequestError(401, "a token is required; send the header Authorization: Bearer …")
        if not (may_learn or may_read):
            return RequestError(401, WRONG_TOKEN)
        if learning and not may_learn:
            return RequestError(403, "this token permits reading only")
        return None


class Gatekeeper:
    """Lets requests with the right token pass; wrong tokens are counted, logged, and answered late."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.wrong = self._delayed = self._unlogged = 0
        self._logged_at = -LOG_SECONDS

    async def check(self, request: Request, learning: bool) -> None:
        """Raise RequestError unless the request has a sufficient token."""
        refusal = self.tokens.refusal(request, learning)
        if refusal is None:
            return
        if refusal.message == WRONG_TOKEN:
            self._count(request)
            self._delayed += 1
            try:  # the more of them come at a time, the later they are answered: some ten a second at most
                await asyncio.sleep(min(MOST_DELAY, LEAST_DELAY + 0.1 * self._delayed))
            finally:
                self._delayed -= 1
        raise refusal

    def _count(self, request: Request) -> None:
        self.wrong += 1
        self._unlogged += 1
        now = time.monotonic()
        if now >= self._logged_at + LOG_SECONDS:
            client = request.client.host if request.client else "an unknown address"
            log.warning("%d requests with a wrong token, the last one from %s", self._unlogged, client)
            self._logged_at, self._unlogged = now, 0


def application(
    writer: Writer,
    *,
    tokens: Tokens | None = None,
    hosts: tuple[str, ...] = (),
    requests_logged: bool = False,
    payloads_logged: bool = False,
    ask: float | None = None,
) -> Starlette:
    """Return the application of a writer; its lifespan starts and closes the writer.

    With `ask`, predictions say whether a label is worth asking for.
    """
    limits, allowed = writer.limits, Gatekeeper(tokens or Tokens())
    reader = writer.reader
    schema = openapi.document(reader.field)
    request_metrics = RequestMetrics(set(schema["paths"]) | set(PAGES), requests_logged)
    budget = writer.memory.requests
    bodies = BodyReader(budget, payloads_logged)
    if payloads_logged and "payloads" not in writer.store.base:  # which receipts of forgetting say
        writer.store.describe("payloads", {"since": time.time()})
    reading_store = writer.store.reader()
    saving = asyncio.Lock()
    started = time.time()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        writer.start()
        yield
        reading_store.db.close()
        await asyncio.to_thread(writer.close)

    app = skeleton(hosts=hosts, body_limit=limits.body, lifespan=lifespan)
    app.add_exception_handler(RequestError, request_error)
    app.add_middleware(ReleaseMiddleware, budget=budget)
    app.add_middleware(MetricsMiddleware, metrics=request_metrics)

    async def examples(request: Request, labelled: bool) -> tuple[RequestExamples, bytes, bool]:
        """Return the examples of a request, its body, and whether it is in lines."""
        body = await bodies.body(request)
        in_lines = _media_type(request) == LINES
        read = reader.lines if in_lines else reader.one
        if len(body) <= SMALL_BODY and reader.field in ("features", "vector"):
            return read(body, labelled), body, in_lines
        return await asyncio.to_thread(read, body, labelled), body, in_lines

    async def of_store(read: Callable[[DoubleBuffer], Any]) -> Any:
        """Return what the store and the model that belongs to it say."""
        return await asyncio.to_thread(unchanging, writer, read)

    async def predict(request: Request) -> Response:
        await allowed.check(request, False)
        parsed, body, in_lines = await examples(request, False)
        if not in_lines:
            request_metrics.predicted += 1
            reply = queries.predictions(writer.buffer, parsed, ask)[0]
            if _cites(body):
                cited = await of_store(lambda buffer: citations.citations(reading_store, buffer, parsed))
                reply |= {"citations": cited}
            return JSON(reply)
        if _cites(body, True):
            raise RequestError(422, '"cite" is for one example at a time: send it as application/json')
        with writer.buffer.reading() as (live_model, _):
            n_classes = len(live_model.classes)
        limits.check_scores(parsed.n, n_classes)
        request_metrics.predicted += parsed.n
        at_once = queries.rows_at_once(n_classes)
        if len(body) <= SMALL_BODY and parsed.n <= at_once:
            return Response(queries.prediction_lines(writer.buffer, parsed, ask), media_type=LINES)

        async def parts() -> AsyncIterator[bytes]:
            for begin in range(0, parsed.n, at_once):
                some = parsed.part(begin, min(begin + at_once, parsed.n))
                yield await asyncio.to_thread(queries.prediction_lines, writer.buffer, some, ask)

        return PartedResponse(parts(), LINES)

    async def learn(request: Request) -> Response:
        await allowed.check(request, True)
        key = request.headers.get("idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise RequestError(
                422, "an Idempotency-Key must have 1 to 200 letters, digits, dots, colons, dashes and underscores"
            )
        parsed: RequestExamples | None = None
        if reader.field == "features" and _media_type(request) == LINES:  # the writer parses them with the feature index
            body = await bodies.body(request)
        else:
            parsed, body, _ = await examples(request, True)
        return Response(await asyncio.wrap_future(writer.submit(parsed, key, body)), media_type="application/json")

    async def explain(request: Request) -> Response:
        await allowed.check(request, False)
        body = await bodies.body(request)
        classes = [request.query_params.get(name) for name in ("class", "against")]
        return JSON(await asyncio.to_thread(lambda: queries.explanation(writer.buffer, reader.one(body, False), *classes)))

    async def undo(request: Request) -> Response:
        await allowed.check(request, True)
        number = _number_in(await bodies.body(request), "mistake")
        return Response(await asyncio.wrap_future(writer.undo(number)), media_type="application/json")

    async def forget(request: Request) -> Response:
        await allowed.check(request, True)
        numbers = _numbers_in(await bodies.body(request))
        return Response(await asyncio.wrap_future(writer.forget(numbers)), media_type="application/json")

    async def forgotten(request: Request) -> Response:
        await allowed.check(request, False)
        return JSON({"receipts": [forgetting.receipt for forgetting in writer.store.forgettings]})

    async def unpin(request: Request) -> Response:
        await allowed.check(request, True)
        number = _number_in(await bodies.body(request), "example")
        return Response(await asyncio.wrap_future(writer.unpin(number)), media_type="application/json")

    async def regressions(request: Request) -> Response:
        await allowed.check(request, False)
        return JSON(await asyncio.to_thread(queries.regressions_page, reading_store))

    async def ledger(request: Request) -> Response:
        await allowed.check(request, False)
        before, limit = (_query_number(request, name, most) for name, most in (("before", 2**62), ("limit", 500)))
        return JSON(await of_store(lambda buffer: queries.ledger_page(reading_store, buffer, before, limit or 50)))

    async def stats(request: Request) -> Response:
        await allowed.check(request, False)
        with writer.buffer.reading() as (live_model, number):
            reply = live_model.progressive.summary(live_model.classes)
            reply["forgotten"] = len(forgotten_numbers(writer.store.forgettings))
            reply |= {"features": live_model.n_names, "commits": number, "learner": _learner_name(live_model.learner)}
        reply |= {
            "waiting": writer.waiting,
            "input": reader.field,
            "started": started,
            "snapshot": writer.snapshot_time or None,
        }
        return JSON(reply)

    async def model(request: Request) -> Response:
        await allowed.check(request, False)
        if saving.locked():
            raise RequestError(429, "another model file is being written: try again shortly", 1)
        async with saving:
            path, number = await asyncio.to_thread(_save_model, writer)
        name = f"model-{number}.sepx"
        cleanup = BackgroundTask(_remove, path)
        return FileResponse(path, media_type="application/octet-stream", filename=name, background=cleanup)

    async def metrics(request: Request) -> Response:
        await allowed.check(request, False)
        return Response(request_metrics.text(writer, allowed.wrong), media_type="text/plain; version=0.0.4")

    async def healthz(request: Request) -> Response:
        return JSON({"status": "alive"})

    async def readyz(request: Request) -> Response:
        if trouble := writer.problem():
            raise RequestError(503, trouble, 5)
        return JSON({"status": "ready"})

    for handler in (predict, learn, explain, undo, forget, unpin):
        app.add_route(f"/{handler.__name__}", handler, methods=["POST"])
    for handler in (ledger, regressions, forgotten, stats, model, metrics, healthz, readyz):
        app.add_route(f"/{handler.__name__}", handler, methods=["GET"])
    app.add_route("/openapi.json", page_of(orjson.dumps(schema), "application/json"))
    for path, (name, kind) in PAGES.items():
        app.add_route(path, page_of(static(name), kind))
    return app


@cache
def static(name: str) -> bytes:
    """Return a file of the status pages."""
    return files("separatrix.web").joinpath("static", "status", name).read_bytes()


def page_of(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler of a page that never changes."""

    async def page(request: Request) -> Response:
        return Response(content, media_type=kind)

    return page


async def request_error(request: Request, error: Exception) -> Response:
    """Return the reply to a request that was refused."""
    assert isinstance(error, RequestError)
    headers = {} if error.wait is None else {"retry-after": str(error.wait)}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return error_reply(error.status, error.message, headers)


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _cites(body: bytes, in_lines: bool = False) -> bool:
    """Tell whether an example asks for the corrections behind its prediction."""
    if b'"cite"' not in body:
        return False
    examples = [orjson.loads(line) for line in (body.split(b"\n") if in_lines else [body]) if line.strip()]
    wishes = [example.get("cite", False) for example in examples]
    if not all(type(wish) is bool for wish in wishes):
        raise RequestError(422, '"cite" must be true or false')
    return any(wishes)


def _learner_name(learner: OnlineLearner) -> str:
    return f"{learner.public_name()}(rule={learner.rule!r})"


def _number_in(body: bytes, name: str) -> int:
    """Return the number of a mistake or an example that a request names."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"invalid JSON: {error}") from None
    number = fields.get(name) if isinstance(fields, dict) else None
    if type(number) is not int or not 0 < number <= 2**53:
        origin = {"mistake": "from the ledger", "example": 'which is "examples" in the answer to /learn'}[name]
        raise RequestError(422, f'send {{"{name}": number}}, with a number {origin}')
    return number


def _numbers_in(body: bytes) -> list[int]:
    """Return the numbers of the examples that a request to forget names."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"invalid JSON: {error}") from None
    numbers = fields.get("examples") if isinstance(fields, dict) else None
    if not (isinstance(numbers, list) and 0 < len(numbers) <= MOST_FORGOTTEN):
        example = 'send {"examples": [17, 23]}, with numbers that are "examples" in the answers to /learn'
        raise RequestError(422, f"{example}; at most {MOST_FORGOTTEN:,} at a time")
    wrong = [number for number in numbers if type(number) is not int or not 0 < number <= 2**53]
    if wrong:
        raise RequestError(422, f"{orjson.dumps(wrong[0]).decode():.60} is not the number of an example: these count from 1")
    return numbers


def _query_number(request: Request, name: str, most: int) -> int | None:
    """Return a positive integer of the query string, or None if it is missing."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text) or not 1 <= int(text) <= most:
        raise RequestError(422, f"{name} must be an integer from 1 to {most}")
    return int(text)


def _save_model(writer: Writer) -> tuple[Path, int]:
    """Write the current model to a temporary file; return its path and the number of its last commit."""
    with writer.buffer.reading() as (live_model, number):
        if live_model.run is None:
            raise RequestError(409, "nothing was learned yet")
        snapshot = snapshots.ModelSnapshot.of(writer.store, number, live_model, writer.buffer.names(live_model))
    path = Path(tempfile.mkdtemp(prefix="separatrix-")) / "model.sepx"
    snapshot.write(path)
    return path, number


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.parent.rmdir()
