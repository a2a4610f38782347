"""Listening on a port, and serving an application there until the process is asked to end.

A client that does not send its request in time is disconnected; on shutdown, accepted requests have a few seconds to finish.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 5
CONNECTIONS = 4096
GRACE_SECONDS = 3
"""On shutdown, accepted requests are finished within this time; what is not answered then, never is."""
_SWITCH_SECONDS = 0.0005
"""The interpreter's switch interval: a long computation in one thread must not delay predictions in another."""


class PortInUseError(OSError):
    """Another program listens on the port."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the host and port; port 0 takes a free one. Raises PortInUseError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY only with this
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise PortInUseError(f"cannot listen on {host}:{port}: {error.strerror}; try another --port") from None
    listener.listen(1024)
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL under which a listening socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HeaderDeadlineProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request headers do not arrive within `HEADER_SECONDS`."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the deadline of the first request."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        """Stop the deadline once the headers are complete; an occasional byte does not extend it."""
        super().data_received(data)
        waiting = self.cycle is None or self.cycle.response_complete
        if not waiting and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif waiting and self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_SECONDS, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        self._deadline = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.close()


class _Server(uvicorn.Server):
    """Calls `ready` once it accepts requests; on Ctrl-C and SIGTERM it shuts down and returns."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=HeaderDeadlineProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=CONNECTIONS,
    )


def allow_open_files(wanted: int) -> int:
    """Let the process have so many files and connections open, or as many as it may; return how many those are."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY:
            wanted = min(hard, wanted)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    except (ImportError, ValueError, OSError):
        return CONNECTIONS


def serve(app: ASGIApp, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until the process receives SIGINT or SIGTERM; `ready` is called once requests are accepted."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    allow_open_files(2 * CONNECTIONS)
    _Server(_config(app), ready).run(sockets=[listener])
