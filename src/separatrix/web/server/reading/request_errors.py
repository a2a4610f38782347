"""What a request is refused with, and the check that it has no field that would be ignored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from separatrix.data.errors import did_you_mean


class RequestError(Exception):
    """An error reply: the HTTP status, the message, and the seconds after which a retry may succeed."""

    def __init__(self, status: int, message: str, wait: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.wait = status, message, wait


def check_fields(fields: Mapping[str, Any], known: Collection[str], place: str = "") -> None:
    """Raise RequestError for a field that means nothing here, as a misspelt one does."""
    for name in fields:
        if name not in known:
            guess = did_you_mean(name, known) or f": the fields are {', '.join(known)}"
            raise RequestError(422, f"{place}unknown field {name!r:.60}{guess}")
