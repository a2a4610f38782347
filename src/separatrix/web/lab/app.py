"""The lab: one page over the engine, on this machine only. A recipe comes in, a document goes out; nothing is kept."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response

from separatrix.data.lectures import EXAMPLES
from separatrix.web.lab.document import document
from separatrix.web.lab.page import STATIC, page
from separatrix.web.lab.recipe import Recipe
from separatrix.web.listening import listen, url_of
from separatrix.web.skeleton import skeleton

BODY_LIMIT = 2_000_000
SETS = ("iris", "wine", "breast_cancer")
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


def lab() -> FastAPI:
    """Return the application."""
    app = skeleton("separatrix lab", body_limit=BODY_LIMIT, openapi_url=None)
    one_at_a_time = threading.Lock()

    def made(recipe: Recipe) -> dict[str, Any]:
        with one_at_a_time:
            try:
                return document(recipe.setup())
            except ValueError as problem:
                raise HTTPException(400, " ".join(str(problem).split())) from None

    @app.get("/")
    def front() -> Response:
        return _asset("index.html")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        return _asset(name)

    @app.get("/api/choices")
    def choices() -> dict[str, Any]:
        lectures = [{"name": example.name, "title": example.title} for example in EXAMPLES.values()]
        return {"lectures": lectures, "sets": SETS}

    @app.post("/api/run")
    def run(recipe: Recipe) -> dict[str, Any]:
        return made(recipe)

    @app.post("/api/page")
    def whole_page(recipe: Recipe) -> Response:
        headers = {"content-disposition": "attachment"}
        return Response(page(made(recipe)), media_type="text/html", headers=headers)

    return app


def _asset(name: str) -> Response:
    """Return one of our own files; whatever else is named is not there."""
    asset = next((each for each in STATIC.iterdir() if each.name == name), None)
    if asset is None:
        raise HTTPException(404, "there is no such file")
    return Response(asset.read_bytes(), media_type=TYPES["." + name.rpartition(".")[2]])


def serve(port: int, *, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the lab on this machine until it is interrupted; raises PortInUseError."""
    listener = listen("127.0.0.1", port)
    url = url_of(listener)
    say(f"The lab is at {url} (Ctrl-C ends it)")
    config = uvicorn.Config(lab(), log_level="warning", lifespan="off")
    if browser:
        # the socket listens already: what the browser asks before the server runs waits there
        threading.Thread(target=_show, args=(url, say), daemon=True).start()
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


def _show(url: str, say: Callable[[str], None]) -> None:
    try:
        found = webbrowser.open(url)
    except webbrowser.Error:
        found = False
    if not found:
        say(f"No browser was found here: open {url} in one.")
