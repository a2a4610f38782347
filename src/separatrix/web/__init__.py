"""The web applications: the lab (`lab/`) and the feedback server (`server/`), and the client of the server.

Both applications stand on `skeleton.py` (security headers, limits, error replies) and are served by `listening.py`; their
pages are in `static/`. HTTP requests come in; JSON, pages and model files go out. Everything but the client needs the
packages of `separatrix[web]`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.web.client import Client as Client
    from separatrix.web.client import ServerError as ServerError

__all__ = ["Client", "ServerError"]


def __getattr__(name: str) -> Any:
    """Import the client on first use: `import separatrix.web` alone stays cheap."""
    if name not in __all__:
        raise AttributeError(f"module 'separatrix.web' has no attribute {name!r}")
    from separatrix.web import client

    return getattr(client, name)
