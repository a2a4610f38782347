"""The Starlette application that the lab and the server start from: host check, body limit, security headers, error replies.

Any web page can make a browser send requests to a server on the loopback interface. Two checks prevent misuse: the Host
header must be one of our names (this defeats DNS rebinding), and a request that writes must not come from another origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
READS = ("GET", "HEAD", "OPTIONS")


class JSON(Response):
    """A JSON response; numbers that are not finite become null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the content as bytes."""
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def error_reply(status: int, message: str, headers: dict[str, str] | None = None) -> JSON:
    """Return an error response: {"error": message}."""
    return JSON({"error": message}, status_code=status, headers=headers)


def skeleton(*, hosts: Iterable[str] = (), body_limit: int, lifespan: Lifespan[Starlette] | None = None) -> Starlette:
    """Return an application that accepts the loopback names and `hosts`, and bodies of at most `body_limit` bytes."""
    app = Starlette(lifespan=lifespan)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(GateMiddleware, hosts={*LOOPBACK, *hosts}, body_limit=body_limit)
    return app


class GateMiddleware:
    """Rejects foreign hosts, cross-origin writes and large bodies; adds security headers; hides tracebacks from clients."""

    def __init__(self, app: ASGIApp, hosts: set[str], body_limit: int) -> None:
        self.app = app
        self.hosts = hosts
        self.body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_started = False

        async def reply(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in present)]
            await send(message)

        rejection = self._rejection(scope)
        if rejection is not None:
            await rejection(scope, receive, reply)
            return
        try:
            await self.app(scope, _limited(receive, self.body_limit), reply)
        except Exception:
            if not has_started:
                await error_reply(500, "internal error; see the log of the server")(scope, receive, reply)
            raise

    def _rejection(self, scope: Scope) -> Response | None:
        """Return the error response to a request that may not pass, or None."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if _host_name(host) not in self.hosts:
            return error_reply(421, f"this server does not answer to the host {_host_name(host)!r}")
        if scope["method"] not in READS:
            origin = headers.get(b"origin", b"").decode("latin-1")
            foreign = headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none")
            if foreign or (origin and origin.partition("://")[2] != host):
                return error_reply(403, "cross-origin requests may not write")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.body_limit:
            return error_reply(413, f"the body is longer than {self.body_limit} bytes")
        return None


def _limited(receive: Receive, limit: int) -> Callable[[], Any]:
    """Return a `receive` that stops with status 413 once the body exceeds the limit."""
    size = 0

    async def counting() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, f"the body is longer than {limit} bytes")
        return message

    return counting


def _host_name(host: str) -> str:
    """Return the host without its port, in lower case."""
    end = host.find("]") if host.startswith("[") else -1
    return (host[: end + 1] if end > 0 else host.partition(":")[0]).lower()


async def _http_error(request: Request, error: Exception) -> JSON:
    assert isinstance(error, HTTPException)
    return error_reply(error.status_code, str(error.detail), dict(error.headers or {}))
