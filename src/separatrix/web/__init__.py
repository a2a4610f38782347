"""The web applications: the lab (`lab/`) and the feedback server (`server/`, `many/`), and the clients of the server.

The applications stand on `skeleton.py` (security headers, limits, error replies) and are served by `listening.py`; their
pages are in `static/`. HTTP requests come in; JSON, pages and model files go out. Everything but the clients needs the
packages of `separatrix[web]`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.web.async_client import AsyncClient as AsyncClient
    from separatrix.web.client import Client as Client
    from separatrix.web.exchange import ServerError as ServerError
    from separatrix.web.exchange import ServerUnreachableError as ServerUnreachableError

__all__ = ["AsyncClient", "Client", "ServerError", "ServerUnreachableError"]


def __getattr__(name: str) -> Any:
    """Import the clients on first use: `import separatrix.web` alone stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module 'separatrix.web' has no attribute {name!r}")
    if name == "AsyncClient":
        from separatrix.web.async_client import AsyncClient

        return AsyncClient
    from separatrix.web import client

    return getattr(client, name)
