"""The lab and the feedback server: two applications on one skeleton. All but the client needs `separatrix[web]`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from separatrix.web.client import Client as Client
    from separatrix.web.client import ServerError as ServerError

__all__ = ["Client", "ServerError"]


def __getattr__(name: str) -> Any:
    """Import the client when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'separatrix.web' has no attribute {name!r}")
    from separatrix.web import client

    return getattr(client, name)
