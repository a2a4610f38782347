"""Bodies of requests and of answers: read within a limit of time and memory, and written part after part.

The memory that a request may need is claimed while its body arrives, and released once it is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from separatrix.web.server.memory_budget import MemoryBudget, MemoryLimitError, megabytes
from separatrix.web.server.reading.request_reader import RequestError

log = logging.getLogger("separatrix.serve")

BODY_SECONDS = 20.0
"""A request body must arrive within this time."""
ANSWER_SECONDS, ANSWER_RATE = 20.0, 1 << 18
"""An answer in parts must be taken within this time, and a second more for each so many bytes."""
MEMORY_PER_BYTE = 24
"""The memory that a request needs while it is parsed and learned from, per byte of its body; at most 18 were measured."""
_CLAIMED = "separatrix.claimed"


class BodyReader:
    """Reads request bodies; the memory of all together and the time for each are limited."""

    def __init__(self, budget: MemoryBudget, payloads_logged: bool) -> None:
        self.budget, self.payloads_logged = budget, payloads_logged

    async def body(self, request: Request) -> bytes:
        """Return the body of a request."""
        parts = []
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.stream():
                    self._claim(request, MEMORY_PER_BYTE * len(part))
                    parts.append(part)
        except TimeoutError:
            raise RequestError(408, f"the body did not arrive within {BODY_SECONDS:g} seconds") from None
        except ClientDisconnect:
            raise RequestError(400, "the client disconnected") from None
        body = b"".join(parts)
        if self.payloads_logged:
            log.info("%s %s", request.url.path, printable(body[:2000].decode("utf-8", "replace")))
        return body

    def _claim(self, request: Request, n_bytes: int) -> None:
        """Claim memory for a request; it is released with the answer."""
        so_far = request.scope.get(_CLAIMED, 0)
        try:
            self.budget.claim(n_bytes)
        except MemoryLimitError:
            if so_far + n_bytes > self.budget.limit:
                most = megabytes(self.budget.limit // MEMORY_PER_BYTE)
                limit = f"{megabytes(self.budget.limit)} of memory for all requests (--max-memory)"
                raise RequestError(413, f"the body is longer than {most}, which is what {limit} allow") from None
            raise RequestError(429, "too many large requests at a time: try again shortly", 1) from None
        request.scope[_CLAIMED] = so_far + n_bytes


class ReleaseMiddleware:
    """Releases the memory that a request has claimed once it is answered, however it ends."""

    def __init__(self, app: ASGIApp, budget: MemoryBudget) -> None:
        self.app, self.budget = app, budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        try:
            await self.app(scope, receive, send)
        finally:
            self.budget.release(scope.pop(_CLAIMED, 0))


class PartedResponse(Response):
    """An answer that is written part after part, so that it is never in memory as a whole."""

    def __init__(self, parts: AsyncIterator[bytes], media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self.parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the parts, as long as the client is there; one that takes them too slowly is disconnected."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        allowed, loop = ANSWER_SECONDS, asyncio.get_running_loop()
        begun, request = loop.time(), Request(scope, receive)
        try:
            async for part in self.parts:
                if await request.is_disconnected():
                    return
                async with asyncio.timeout_at(begun + allowed):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                allowed += len(part) / ANSWER_RATE
        except TimeoutError:
            log.warning("a client took its answer too slowly and was disconnected")
            return  # the answer stays incomplete, so the server closes the connection
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def printable(text: str) -> str:
    r"""Return a text on one line, with every character escaped that is not printable.

    Examples
    --------
    >>> print(printable("gärten\n2030-01-01 INFO forged \x1b[2J \u202e"))
    gärten\n2030-01-01 INFO forged \x1b[2J \u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
