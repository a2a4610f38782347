"""The application of `separatrix lab`, on the loopback interface only: static files, and runs too large for the browser."""

from __future__ import annotations

import atexit
import threading
import webbrowser
from collections.abc import Callable
from types import FrameType

import uvicorn
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from separatrix.web.lab.recipe import Recipe
from separatrix.web.lab.site import TYPES, site
from separatrix.web.lab.trainer import Trainer
from separatrix.web.listening import listen, url_of
from separatrix.web.skeleton import skeleton

BODY_LIMIT = 2_000_000
SHUTDOWN_SECONDS = 2
TRAINER = Trainer()
atexit.register(TRAINER.finish)


def lab() -> Starlette:
    """Return the application; it trains in a process of its own, which all applications share."""
    app = skeleton(body_limit=BODY_LIMIT)

    def asset(request: Request) -> Response:
        name = request.path_params.get("name") or "index.html"
        content = site().get(name)
        if content is None:
            raise HTTPException(404, "no such file")
        return Response(content, media_type=TYPES["." + name.rpartition(".")[2]])

    async def run(request: Request) -> Response:
        recipe = await _recipe(request)
        return Response(await run_in_threadpool(TRAINER.run, recipe.model_dump_json()), media_type="application/json")

    app.add_route("/api/run", run, methods=["POST"])
    app.add_route("/", asset, methods=["GET"])
    app.add_route("/{name:path}", asset, methods=["GET"])
    return app


async def _recipe(request: Request) -> Recipe:
    """Return the recipe in the body of a request; what is wrong with it is answered with status 422."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(422, "the body: send the recipe as application/json")
    try:
        return Recipe.model_validate_json(await request.body())
    except ValidationError as invalid:
        error = invalid.errors()[0]
        place = ".".join(str(part) for part in error["loc"]) or "the body"
        raise HTTPException(422, f"{place}: {error['msg'].removeprefix('Value error, ')}") from None


def serve(port: int, *, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the lab on the loopback interface until SIGINT or SIGTERM, which also end a run; raises PortInUseError."""
    listener = listen("127.0.0.1", port)
    url = url_of(listener)
    say(f"The lab is running at {url} (press Ctrl-C to stop)")
    config = uvicorn.Config(lab(), log_level="warning", lifespan="off", timeout_graceful_shutdown=SHUTDOWN_SECONDS)
    if browser:
        # the socket is listening already: requests that arrive before the server runs wait in its backlog
        threading.Thread(target=_open_browser, args=(url, say), daemon=True).start()
    with listener:
        _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that ends the run under way when it is asked to end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        TRAINER.close()
        super().handle_exit(sig, frame)


def _open_browser(url: str, say: Callable[[str], None]) -> None:
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    if not opened:
        say(f"No browser was found; open {url} in one.")
