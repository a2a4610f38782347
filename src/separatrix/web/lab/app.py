"""The application of `separatrix lab`, on the loopback interface only. It keeps no state between requests."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import Response

from separatrix.web.lab.document import document
from separatrix.web.lab.menus import menus
from separatrix.web.lab.page import STATIC, page
from separatrix.web.lab.recipe import Recipe
from separatrix.web.listening import listen, url_of
from separatrix.web.skeleton import skeleton

BODY_LIMIT = 2_000_000
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


def lab() -> FastAPI:
    """Return the application."""
    app = skeleton("separatrix lab", body_limit=BODY_LIMIT, openapi_url=None)
    one_at_a_time = threading.Lock()

    def trained(recipe: Recipe) -> dict[str, Any]:
        with one_at_a_time:
            try:
                return document(recipe.experiment())
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
        return menus() | {"defaults": Recipe().model_dump()}

    @app.post("/api/run")
    def run(recipe: Recipe) -> dict[str, Any]:
        return trained(recipe)

    @app.post("/api/page")
    def whole_page(recipe: Recipe) -> Response:
        headers = {"content-disposition": "attachment"}
        return Response(page(trained(recipe)), media_type="text/html", headers=headers)

    return app


def _asset(name: str) -> Response:
    """Return one of the static files; any other name is answered with status 404."""
    asset = next((each for each in STATIC.iterdir() if each.name == name), None)
    if asset is None:
        raise HTTPException(404, "no such file")
    return Response(asset.read_bytes(), media_type=TYPES["." + name.rpartition(".")[2]])


def serve(port: int, *, browser: bool, say: Callable[[str], None]) -> None:
    """Serve the lab on the loopback interface until it is interrupted; raises PortInUseError."""
    listener = listen("127.0.0.1", port)
    url = url_of(listener)
    say(f"The lab is running at {url} (press Ctrl-C to stop)")
    config = uvicorn.Config(lab(), log_level="warning", lifespan="off")
    if browser:
        # the socket is listening already: requests that arrive before the server runs wait in its backlog
        threading.Thread(target=_open_browser, args=(url, say), daemon=True).start()
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


def _open_browser(url: str, say: Callable[[str], None]) -> None:
    try:
        opened = webbrowser.open(url)
    except webbrowser.Error:
        opened = False
    if not opened:
        say(f"No browser was found; open {url} in one.")
