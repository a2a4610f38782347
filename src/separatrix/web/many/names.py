"""The names of models, which are also the names of their folders, and the folders that hold a store.

A name consists of lower-case ASCII letters, digits, dashes and underscores. Names that differ only in case, in Unicode
normalization or in a final dot would be one folder on some file systems, and a name with a slash or two dots would leave it.
"""

from __future__ import annotations

import re
from pathlib import Path

from separatrix.web.server.storage.store_folder import DATABASE

MOST_LETTERS = 64
_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{MOST_LETTERS - 1}}}")
_DEVICES = frozenset(("con", "prn", "aux", "nul", *(f"{port}{k}" for port in ("com", "lpt") for k in range(10))))
"""Windows takes a file of such a name for a device."""


def problem_of(name: str) -> str:
    """Return why a model cannot have a name; empty if it can.

    Examples
    --------
    >>> problem_of("billing-eu")
    ''
    >>> problem_of("con")
    "the name 'con' is reserved: Windows takes such a file for a device"
    """
    if not _NAME.fullmatch(name):
        allowed = f"1 to {MOST_LETTERS} lower-case letters (a-z), digits, dashes and underscores"
        return f"{name[:80]!a} cannot be the name of a model: a name has {allowed}, the first a letter or a digit"
    if name in _DEVICES:
        return f"the name {name!r} is reserved: Windows takes such a file for a device"
    return ""


def stored(folder: Path) -> list[str]:
    """Return the names of the models whose stores are in a folder, sorted."""
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if not problem_of(path.name) and (path / DATABASE).is_file())
