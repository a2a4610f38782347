"""The application of `separatrix serve --many`: it lists, creates and deletes models, and passes requests on to them.

`/models/NAME/REST` is what `/REST` is on the server of one model: the request goes to that model's own application.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from separatrix.web.many import names
from separatrix.web.many.metrics import ManyMetrics
from separatrix.web.many.models import Models, Slot
from separatrix.web.many.openapi import many_document
from separatrix.web.many.opening import ModelOpener, checked_settings
from separatrix.web.server import openapi
from separatrix.web.server.app import PAGES, Gatekeeper, page_of, request_error, static
from separatrix.web.server.metrics import MetricsMiddleware
from separatrix.web.server.reading.request_reader import RequestError, RequestReader
from separatrix.web.server.storage import snapshots
from separatrix.web.skeleton import JSON, error_reply, skeleton

MOST_LISTED = 1000
_LIST_PAGES = {
    "/": ("many.html", "text/html"),
    "/many.js": ("many.js", "text/javascript"),
    "/status.css": ("status.css", "text/css"),
}


class PassOn:
    """Passes the requests of a model on to its application, which is opened or created for them."""

    def __init__(self, models: Models, opener: ModelOpener, gatekeeper_of: Callable[[str], Gatekeeper], input: str) -> None:
        self.models, self.opener, self.gatekeeper_of, self.input = models, opener, gatekeeper_of, input
        self.pages = {path: page_of(static(name), kind) for path, (name, kind) in PAGES.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        name, path = scope["path_params"]["name"], "/" + scope["path_params"]["rest"]
        request = Request(scope, receive)
        _check_name(name)
        if path in self.pages and scope["method"] in ("GET", "HEAD"):  # which need neither a token nor the model
            await (await self.pages[path](request))(scope, receive, send)
            return
        if not self.models.is_open(name):
            creates = name not in self.models
            learns = path == "/learn" and scope["method"] == "POST"
            await self.gatekeeper_of(name).check(request, creates and learns)  # before it costs anything
            if creates and not (learns and self.opener.may_create):
                await self._not_found(name)(scope, receive, send)
                return
        async with self.models.using(name) as model:
            await model.app({**scope, "root_path": f"/models/{name}", "path_params": {}}, receive, send)

    def _not_found(self, name: str) -> Response:
        how = "its first POST to learn creates it" if self.opener.may_create else "only declared models are served"
        return JSON({"error": f"there is no model {name!r}: {how}", "input": self.input}, status_code=404)


def application(models: Models, opener: ModelOpener, *, requests_logged: bool = False) -> Starlette:
    """Return the application; its lifespan closes all models."""
    pool, started = opener.pool, time.time()
    for_all = Gatekeeper(opener.tokens_for_all)
    own = {name: Gatekeeper(opener.tokens_of(name)) for name in opener.declared}
    reader = RequestReader(opener.first_model().features, opener.limits)
    schema = openapi.document(reader.field)
    metrics = ManyMetrics({*schema["paths"], *PAGES}, requests_logged)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        models.start()
        yield
        await models.close()
        await asyncio.to_thread(pool.close)

    app = skeleton(hosts=opener.hosts, body_limit=opener.limits.body, lifespan=lifespan)
    app.add_exception_handler(RequestError, request_error)
    app.add_middleware(MetricsMiddleware, metrics=metrics)

    def gatekeeper_of(name: str) -> Gatekeeper:
        return own.get(name, for_all)

    async def listing(request: Request) -> Response:
        await for_all.check(request, False)
        after = request.query_params.get("after", "")
        slots = [slot for slot in models.slots() if slot.name > after]
        listed = await asyncio.to_thread(lambda: [_summary(models, slot) for slot in slots[:MOST_LISTED]])
        following = slots[MOST_LISTED - 1].name if len(slots) > MOST_LISTED else None
        totals = {"total": len(models), "open": models.n_open, "most_open": models.most_open, "started": started}
        return JSON({"models": listed, "next": following, **totals})

    async def summary(request: Request) -> Response:
        name = _checked_name(request)
        await gatekeeper_of(name).check(request, False)
        slot = next((slot for slot in models.slots() if slot.name == name), None)
        if slot is None:
            raise RequestError(404, f"there is no model {name!r}")
        return JSON(_summary(models, slot))

    async def create(request: Request) -> Response:
        name = _checked_name(request)
        await for_all.check(request, True)
        settings = _settings(await request.body())
        exists = name in models
        if not (exists or opener.may_create):
            raise RequestError(403, f"there is no model {name!r}: only declared models are served")
        async with models.using(name, settings) as model:
            entry = model.writer.store.base["model"]
        has = {"vectors": False, "cosine": False} | entry["settings"]  # which older stores do not have
        if entry["start"] is not None:
            has = {key: value for key, value in has.items() if key not in snapshots.OF_MODEL}
        if differing := [key for key, value in settings.items() if has.get(key) != value]:
            was = ", ".join(f"{key}={has[key]!r}" if key in has else f"the {key} of its initial model" for key in differing)
            raise RequestError(409, f"the model {name!r} exists already, with {was}")
        return JSON({"name": name, "created": not exists, "settings": has}, 200 if exists else 201)

    async def delete(request: Request) -> Response:
        name = _checked_name(request)
        await for_all.check(request, True)
        return JSON({"deleted": name, "examples": (await models.delete(name))["examples"]})

    async def numbers(request: Request) -> Response:
        await for_all.check(request, False)
        wrong = for_all.wrong + sum(gatekeeper.wrong for gatekeeper in own.values())
        return Response(metrics.text_of(models, wrong), media_type="text/plain; version=0.0.4")

    async def healthz(request: Request) -> Response:
        return JSON({"status": "alive"})

    async def readyz(request: Request) -> Response:
        if trouble := models.fatal or pool.problem():
            return error_reply(503, trouble, {"retry-after": "5"})
        return JSON({"status": "ready"})

    app.add_route("/models", listing)
    for handler, method in ((summary, "GET"), (create, "PUT"), (delete, "DELETE")):
        app.add_route("/models/{name}", handler, methods=[method])
    app.router.routes.append(Route("/models/{name}/{rest:path}", PassOn(models, opener, gatekeeper_of, reader.field)))
    app.add_route("/metrics", numbers)
    app.add_route("/healthz", healthz)
    app.add_route("/readyz", readyz)
    app.add_route("/openapi.json", page_of(orjson.dumps(many_document(schema)), "application/json"))
    for path, (name, kind) in _LIST_PAGES.items():
        app.add_route(path, page_of(static(name), kind))
    return app


def _check_name(name: str) -> None:
    if problem := names.problem_of(name):
        raise RequestError(422, problem)


def _checked_name(request: Request) -> str:
    name: str = request.path_params["name"]
    _check_name(name)
    return name


def _settings(body: bytes) -> dict[str, Any]:
    """Return the settings in the body of a request that creates a model."""
    try:
        settings = orjson.loads(body) if body.strip() else {}
        if not isinstance(settings, dict):
            raise ValueError('send the settings of the model as an object, such as {"text": true}')
        return checked_settings(settings)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"invalid JSON: {error}") from None
    except ValueError as error:
        raise RequestError(422, str(error)) from None


def _summary(models: Models, slot: Slot) -> dict[str, Any]:
    writer = slot.model.writer if slot.model is not None else None
    return {
        "name": slot.name,
        "open": writer is not None,
        **slot.current_counts(models.folder),
        "waiting": writer.waiting if writer is not None else 0,
        "used": slot.used or None,
        "problem": slot.problem or (writer.problem() if writer is not None else "") or None,
    }
