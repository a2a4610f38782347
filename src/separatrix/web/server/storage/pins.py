"""Pinned examples as rows of the store: each with its label, the commit that pinned it, and what broke it, if anything.

A pin is written in the transaction of the commit that pins or breaks it, so it survives whatever the commit survives.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson

from separatrix.web.server.storage.store_folder import REMEDY, StoreError
from separatrix.web.server.storage.store_rows import checksum_of

TABLE = """CREATE TABLE IF NOT EXISTS pins (
    example INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL, sum BLOB NOT NULL)"""
_COLUMNS = "example, number, body, sum"
INSERT = f"INSERT OR REPLACE INTO pins ({_COLUMNS}) VALUES (?, ?, ?, ?)"
Statement = tuple[str, tuple[Any, ...]]
"""A statement of SQL and its values."""


@dataclass(frozen=True)
class Pin:
    """A pinned example.

    Attributes
    ----------
    example : its number in the order of learning
    number : the commit that pinned it
    label : what the model must predict
    source : the example as a request has it: {"features": …}, {"text": …}, {"row": …} or {"vector": …}
    broken : since when and by what the prediction is wrong; None while it is right
    """

    example: int
    number: int
    label: Any
    source: dict[str, Any]
    broken: dict[str, Any] | None = None

    def row(self) -> tuple[Any, ...]:
        """Return the row of the store."""
        body = orjson.dumps({"label": self.label, "source": self.source, "broken": self.broken})
        return self.example, self.number, body, checksum_of(self.example, self.number, body)

    def statement(self) -> Statement:
        """Return the statement that writes it."""
        return INSERT, self.row()

    def until(self, number: int) -> Pin:
        """Return it without what later commits than `number` broke, which a repair has not found."""
        return replace(self, broken=None) if self.broken and self.broken["commit"] > number else self

    def removal(self) -> Statement:
        """Return the statement that removes it."""
        return "DELETE FROM pins WHERE example = ?", (self.example,)


def read_pins(db: sqlite3.Connection) -> Iterator[Pin]:
    """Yield the pins of a store, none of a store of an earlier format; raises StoreError if a checksum does not match."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'pins'").fetchone():
        return
    for example, number, body, checksum in db.execute(f"SELECT {_COLUMNS} FROM pins ORDER BY example"):
        if checksum_of(example, number, body) != checksum:
            raise StoreError(f"the store is damaged: checksum mismatch in the pinned example {example}{REMEDY}")
        yield Pin(example, number, **orjson.loads(body))
