"""The rows of a store: commits, the replies of idempotency keys, and facts about the store, each with a checksum."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from typing import Any, NamedTuple

from separatrix.web.server.live.commits import Commit
from separatrix.web.server.storage.store_folder import REMEDY, StoreError

FORMAT = 4
"""Format 1 had no gaps, and knew idempotency keys by the time of the clock; format 2 had no pins and no corrections that
stick; format 3 forgot no examples."""
SCHEMA = """
BEGIN;
CREATE TABLE IF NOT EXISTS base (name TEXT PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS commits (
    last INTEGER PRIMARY KEY, first INTEGER NOT NULL, time REAL NOT NULL, examples INTEGER NOT NULL,
    mistakes_before INTEGER NOT NULL, mistakes INTEGER NOT NULL, undoes INTEGER, body BLOB NOT NULL, sum BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS commits_by_mistake ON commits (mistakes_before) WHERE mistakes > 0;
CREATE INDEX IF NOT EXISTS commits_undoing ON commits (undoes) WHERE undoes IS NOT NULL;
CREATE TABLE IF NOT EXISTS keys (
    key BLOB PRIMARY KEY, request BLOB NOT NULL, time REAL NOT NULL, reply BLOB NOT NULL, sum BLOB NOT NULL,
    number INTEGER NOT NULL DEFAULT 0, served REAL NOT NULL DEFAULT 0) WITHOUT ROWID;
COMMIT;
"""
"""A key has the number of its commit, and how many seconds the store had been served by then."""
COLUMNS = "first, last, time, examples, mistakes_before, mistakes, undoes, body, sum"
KEY_COLUMNS = "key, request, time, reply, number, served, sum"
INSERT_COMMIT = f"INSERT INTO commits ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_KEY = f"INSERT OR REPLACE INTO keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"


FORGOTTEN_REQUEST = b""
"""What stands in place of the checksum of a request of which examples were forgotten; such a key is remembered for ever."""


class KeyedReply(NamedTuple):
    """An idempotency key, the checksum of its request, and the reply."""

    key: bytes
    request: bytes
    reply: bytes


class Gap(NamedTuple):
    """Commits that a repair did not find, and the snapshot that has what was learned in them, at or after their end."""

    first: int
    last: int
    mistakes: int
    """The mistakes up to its end, and the examples."""
    examples: int
    snapshot: int


class Moment(NamedTuple):
    """The last commit at or before a moment, its time (None if it is not known), and the examples up to it."""

    number: int = 0
    time: float | None = None
    examples: int = 0


class StoredCommit(NamedTuple):
    """A commit, or several joined into one, as a row of the store."""

    first: int
    last: int
    time: float
    examples: int
    mistakes_before: int
    mistakes: int
    undoes: int | None
    body: bytes
    sum: bytes

    @property
    def commit(self) -> Commit:
        """The commit itself."""
        return Commit.unpack(self.body)

    def is_whole(self) -> bool:
        """Return whether the checksum matches."""
        return checksum_of(*self[:-1]) == self.sum

    def checked(self) -> StoredCommit:
        """Return self; raise StoreError if the checksum does not match."""
        if not self.is_whole():
            raise StoreError(f"the store is damaged: checksum mismatch in commit {self.last}{REMEDY}")
        return self


def checksum_of(*values: Any) -> bytes:
    """Return the checksum of the values of a row."""
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        part = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(struct.pack("<q", len(part)))
        digest.update(part)
    return digest.digest()


def key_columns(db: sqlite3.Connection) -> str:
    """Return the columns of the table of keys; format 1 had neither numbers nor ages."""
    has_numbers = any(column[1] == "number" for column in db.execute("PRAGMA table_info(keys)"))
    return KEY_COLUMNS if has_numbers else KEY_COLUMNS.replace("number, served, ", "")
