"""What every page and service of ours has: who may ask, how much, what an error says, and how it is served.

Whoever can make a person's browser fetch a URL can reach a server on that person's loopback. So a request must
name a host that is ours (a foreign name that resolves to us is refused), and a write must not come from another site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from separatrix import __version__

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
    """A reply in JSON; a number that is not finite becomes null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The content as bytes."""
        return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def refusal(status: int, message: str, headers: dict[str, str] | None = None) -> JSON:
    """A refusal: one sentence under `error`."""
    return JSON({"error": message}, status_code=status, headers=headers)


def skeleton(title: str, *, hosts: Iterable[str] = (), body_limit: int, **options: Any) -> FastAPI:
    """An application that answers to the loopback names and `hosts`, and reads bodies of at most `body_limit` bytes."""
    app = FastAPI(title=title, version=__version__, default_response_class=JSON, docs_url=None, redoc_url=None, **options)
    app.add_exception_handler(AnyHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_middleware(Gate, hosts={*LOOPBACK, *hosts}, body_limit=body_limit)
    return app


class Gate:
    """Turns away foreign hosts, writes from other sites and large bodies; adds the headers; lets no error's trace out."""

    def __init__(self, app: ASGIApp, hosts: set[str], body_limit: int) -> None:
        self.app = app
        self.hosts = hosts
        self.body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def reply(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in present)]
            await send(message)

        turned_away = self._turned_away(scope)
        if turned_away is not None:
            await turned_away(scope, receive, reply)
            return
        try:
            await self.app(scope, _limited(receive, self.body_limit), reply)
        except Exception:
            if not begun:
                await refusal(500, "an internal error; the log has it")(scope, receive, reply)
            raise

    def _turned_away(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if _name(host) not in self.hosts:
            return refusal(421, f"this server does not answer to the host {_name(host)!r}")
        if scope["method"] not in READS:
            origin = headers.get(b"origin", b"").decode("latin-1")
            foreign = headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none")
            if foreign or (origin and origin.partition("://")[2] != host):
                return refusal(403, "a page of another site may not write here")
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.body_limit:
            return refusal(413, f"the body is longer than {self.body_limit} bytes")
        return None


def _limited(receive: Receive, limit: int) -> Callable[[], Any]:
    read = 0

    async def counting() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > limit:
            raise HTTPException(413, f"the body is longer than {limit} bytes")
        return message

    return counting


def _name(host: str) -> str:
    """The host without its port, in lower case."""
    end = host.find("]") if host.startswith("[") else -1
    return (host[: end + 1] if end > 0 else host.partition(":")[0]).lower()


async def _refused(request: Request, error: Exception) -> JSON:
    assert isinstance(error, AnyHTTPException)
    return refusal(error.status_code, str(error.detail), dict(error.headers or {}))


async def _malformed(request: Request, error: Exception) -> JSON:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "the body"
    return refusal(422, f"{place}: {first['msg']}")
