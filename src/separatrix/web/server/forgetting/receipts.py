"""Reading the receipts of a server's forgetting; `separatrix check` looks for them without the packages of the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

KIND = "separatrix serve forget"
"""What the receipts of servers say they are."""


def read_receipts(path: Path) -> list[dict[str, Any]]:
    """Return the receipts of a file: one receipt, the answer to a request to forget, or a list of receipts.

    Raises ValueError if there are none.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    document = document.get("receipts", document) if isinstance(document, dict) else document
    listed = document if isinstance(document, list) else [document]
    return [checked_receipt(entry) for entry in listed]


def checked_receipt(document: Any) -> dict[str, Any]:
    """Return a receipt of a server, which may be part of an answer; raises ValueError."""
    if isinstance(document, dict) and isinstance(document.get("receipt"), dict):
        document = document["receipt"]
    if not isinstance(document, dict) or document.get("receipt") != KIND:
        raise ValueError("it is not a receipt of a server's forgetting")
    numbers = document.get("removed", {}).get("examples")
    if not (isinstance(numbers, list) and all(type(number) is int and number > 0 for number in numbers)):
        raise ValueError("the receipt names no examples")
    return document
