"""The store: commits in SQLite, on the disk before they are acknowledged. One process writes it.

SQLite silently drops a damaged end of its write-ahead log. Therefore the number of the last commit is also written to a
separate file, `head`, after the commit and before the reply (and synced to the disk every second): a store that ends before
its head has lost something that was acknowledged, and is not opened. Every row has a checksum, and the commit numbers must
be consecutive.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from separatrix.web.server.commits import Commit, merged

FORMAT = 1
KEYS_KEPT = 1_000_000
KEY_SECONDS = 24 * 3600.0
"""An idempotency key is remembered for a day, and at most the newest million are."""
SEGMENT = 4096
"""Compaction joins consecutive commits until they hold so many examples."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS base (name TEXT PRIMARY KEY, value BLOB NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS commits (
    last INTEGER PRIMARY KEY, first INTEGER NOT NULL, time REAL NOT NULL, examples INTEGER NOT NULL,
    mistakes_before INTEGER NOT NULL, mistakes INTEGER NOT NULL, undoes INTEGER, body BLOB NOT NULL, sum BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS commits_by_mistake ON commits (mistakes_before) WHERE mistakes > 0;
CREATE INDEX IF NOT EXISTS commits_undoing ON commits (undoes) WHERE undoes IS NOT NULL;
CREATE TABLE IF NOT EXISTS keys (
    key BLOB PRIMARY KEY, request BLOB NOT NULL, time REAL NOT NULL, reply BLOB NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_time ON keys (time);
"""
_COLUMNS = "first, last, time, examples, mistakes_before, mistakes, undoes, body, sum"


class StoreError(OSError):
    """The store cannot be read or written; the message gives the reason and what to do."""


class KeyedReply(NamedTuple):
    """An idempotency key, the checksum of its request, and the reply."""

    key: bytes
    request: bytes
    reply: bytes


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

    def checked(self) -> StoredCommit:
        """Return self; raise StoreError if the checksum does not match."""
        if _checksum(*self[:-1]) != self.sum:
            raise StoreError(f"the store is damaged: checksum mismatch in commit {self.last}")
        return self


def _checksum(*values: Any) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for value in values:
        part = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(struct.pack("<q", len(part)) + part)
    return digest.digest()


class CommitStore:
    """A folder with the commits of one model."""

    def __init__(self, folder: Path, *, writing: bool = True, accept_loss: bool = False) -> None:
        """Open a store, or create one; raises StoreError if another process writes it or it is damaged."""
        self.folder, self.writing, self.accept_loss = folder, writing, accept_loss
        self._lock: sqlite3.Connection | None = None
        self._head = -1
        self.db: sqlite3.Connection
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self.close()
            raise StoreError(f"{folder}: the store cannot be read: {error}") from None
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self.writing:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            self.db = sqlite3.connect(self.folder / "store.db", isolation_level=None, check_same_thread=False, timeout=10)
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.executescript(_SCHEMA)
        else:
            if not (self.folder / "store.db").exists():
                raise StoreError(f"{self.folder} contains no store")
            uri = f"{(self.folder / 'store.db').absolute().as_uri()}?mode=ro"
            self.db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        self.last, self.mistakes = 0, 0
        self.base: dict[str, Any] = {}
        self._verify()
        self._compare_head()

    def _locked(self) -> sqlite3.Connection:
        """Return the lock on the folder; the operating system releases it when this process ends."""
        lock = sqlite3.connect(self.folder / "lock", isolation_level=None, check_same_thread=False, timeout=0)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            raise StoreError(
                f"{self.folder} is being served by another process: only one server can write a store"
            ) from None
        return lock

    def _verify(self) -> None:
        """Read everything once: check the pages, the checksums, and that no commit is missing."""
        problem = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise StoreError(f"{self.folder}: the store is damaged: {problem}; restore it from a backup")
        for name, value, checksum in self.db.execute("SELECT name, value, sum FROM base"):
            if _checksum(name, value) != checksum:
                raise StoreError(f"{self.folder}: the store is damaged: checksum mismatch in its entry {name!r}")
            self.base[name] = orjson.loads(value)
        if self.base.get("model", {}).get("format", FORMAT) > FORMAT:
            raise StoreError(f"{self.folder} was written by a newer version of separatrix")
        for row in self.db.execute(f"SELECT {_COLUMNS} FROM commits ORDER BY last"):
            stored = StoredCommit(*row).checked()
            if stored.first != self.last + 1 or stored.mistakes_before != self.mistakes:
                raise StoreError(f"{self.folder}: the store is damaged: commits are missing after number {self.last}")
            self.last, self.mistakes = stored.last, self.mistakes + stored.mistakes
        for key, request, when, reply, checksum in self.db.execute("SELECT key, request, time, reply, sum FROM keys"):
            if _checksum(key, request, when, reply) != checksum:
                raise StoreError(
                    f"{self.folder}: the store is damaged: checksum mismatch in the reply of an idempotency key"
                )

    def _compare_head(self) -> None:
        path = self.folder / "head"
        acknowledged = self._read_head(path)
        if acknowledged is None and self.last and not self.accept_loss:
            raise StoreError(
                f"{path} is missing or damaged, so the last commits may be missing too. "
                f"Restore it from a backup, or continue with the {self.last:,} commits found with --accept-loss"
            )
        if acknowledged is not None and acknowledged > self.last and not self.accept_loss:
            raise StoreError(
                f"{self.folder}: {acknowledged:,} commits were acknowledged, but only {self.last:,} can be read: the end of "
                "the store is damaged or missing. Restore it from a backup, or continue without them with --accept-loss"
            )
        if self.writing:
            self._head = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            os.write(self._head, _slot(self.last) * 2)
            os.fsync(self._head)

    @staticmethod
    def _read_head(path: Path) -> int | None:
        try:
            written = path.read_bytes()
        except FileNotFoundError:
            return None
        slots = [written[at : at + _SLOT] for at in (0, _SLOT)]
        numbers = [struct.unpack_from("<q", slot)[0] for slot in slots if len(slot) == _SLOT]
        valid = [number for number, slot in zip(numbers, slots, strict=False) if slot == _slot(number)]
        return max(valid, default=None)

    # Writing.

    def describe(self, name: str, value: dict[str, Any]) -> None:
        """Record what the model started from; called once."""
        encoded = orjson.dumps(value)
        self.db.execute("INSERT INTO base VALUES (?, ?, ?)", (name, encoded, _checksum(name, encoded)))
        self.base[name] = value

    def append(self, commit: Commit, examples: int, keyed: list[KeyedReply]) -> int:
        """Write a commit in one transaction, on the disk when this returns; after a StoreError nothing was written."""
        now, number = time.time(), self.last + 1
        row = (number, number, now, examples, self.mistakes, commit.mistakes, commit.undoes, commit.pack())
        try:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute(f"INSERT INTO commits ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, _checksum(*row)))
            self.db.executemany(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?)",
                [(key, request, now, reply, _checksum(key, request, now, reply)) for key, request, reply in keyed],
            )
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back(number, error)
        self.last, self.mistakes = number, self.mistakes + commit.mistakes
        return number

    def _roll_back(self, number: int, error: sqlite3.Error) -> None:
        """Roll back; raise StoreError unless the file shows that the commit was written after all."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        written = self.db.execute("SELECT max(last) FROM commits").fetchone()[0]
        if written != number:
            raise StoreError(f"the store cannot be written: {error}") from None

    def confirm(self) -> None:
        """Write the number of the last commit to the head, before the reply; it may reach the disk a second later."""
        try:
            os.lseek(self._head, _SLOT * (self.last % 2), os.SEEK_SET)
            os.write(self._head, _slot(self.last))
        except OSError as error:
            raise StoreError(f"the head of the store cannot be written: {error.strerror}") from None

    def sync_head(self) -> None:
        """Sync the head to the disk."""
        os.fsync(self._head)

    def compact(self, until: int) -> int:
        """Delete old keys and join some small commits up to number `until`; return how many rows were removed."""
        oldest = time.time() - KEY_SECONDS
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.execute("DELETE FROM keys WHERE time < ?", (oldest,))
            excess = self.db.execute("SELECT count(*) FROM keys").fetchone()[0] - KEYS_KEPT
            if excess > 0:
                self.db.execute("DELETE FROM keys WHERE key IN (SELECT key FROM keys ORDER BY time LIMIT ?)", (excess,))
            n_removed = self._join(until)
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
        return n_removed

    def _join(self, until: int) -> int:
        """Join the next small commits; return how many rows were removed."""
        small = self.db.execute(
            f"SELECT {_COLUMNS} FROM commits WHERE last > ? AND last <= ? ORDER BY last LIMIT {SEGMENT + 1}",
            (self._joined_until, until),
        )
        group: list[tuple[StoredCommit, Commit]] = []
        for row in small:
            stored = StoredCommit(*row).checked()
            commit = stored.commit
            if commit.rebuilt or stored.undoes is not None or commit.n >= SEGMENT:
                group = []
                self._joined_until = stored.last
                continue
            group.append((stored, commit))
            if sum(commit.n for _, commit in group) >= SEGMENT:
                break
        else:
            return 0
        small.close()
        self._joined_until = group[-1][0].last
        first, last = group[0][0], group[-1][0]
        commit = merged([commit for _, commit in group])
        joined = (first.first, *last[1:4], first.mistakes_before, commit.mistakes, None, commit.pack())
        self.db.execute("DELETE FROM commits WHERE last >= ? AND last <= ?", (first.last, last.last))
        self.db.execute(
            f"INSERT INTO commits ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*joined, _checksum(*joined))
        )
        return len(group) - 1

    _joined_until = 0

    # Reading.

    def commits(self, after: int = 0, until: int | None = None) -> Iterator[StoredCommit]:
        """Yield the commits with numbers above `after`, up to `until`."""
        end = self.last if until is None else until
        query = f"SELECT {_COLUMNS} FROM commits WHERE last > ? AND last <= ? ORDER BY last"
        for row in self.db.execute(query, (after, end)):
            yield StoredCommit(*row).checked()

    def moment(self, *, time: float | None = None, examples: int | None = None) -> tuple[int, float, int]:
        """Return (number, time, examples) of the last commit at or before a moment."""
        column, value = ("time", time) if examples is None else ("examples", examples)
        row = self.db.execute(
            f"SELECT last, time, examples FROM commits WHERE {column} <= ? ORDER BY last DESC LIMIT 1", (value,)
        ).fetchone()
        return row or (0, 0.0, 0)

    def mistakes_page(self, before: int, limit: int) -> list[tuple[int, float, int, Commit]]:
        """Return (number, time, position in its commit, commit) of the mistakes below number `before`, newest first."""
        page: list[tuple[int, float, int, Commit]] = []
        condition = "mistakes > 0 AND mistakes_before < ? ORDER BY mistakes_before DESC LIMIT ?"
        query = f"SELECT {_COLUMNS} FROM commits WHERE {condition}"
        for row in self.db.execute(query, (before - 1, limit)):
            stored = StoredCommit(*row).checked()
            commit = stored.commit
            for at in range(min(stored.mistakes, before - 1 - stored.mistakes_before) - 1, -1, -1):
                page.append((stored.mistakes_before + at + 1, stored.time, at, commit))
                if len(page) == limit:
                    return page
        return page

    def undone(self) -> dict[int, int]:
        """Return the numbers of the undone mistakes, each with the number of the commit that undid it."""
        return dict(self.db.execute("SELECT undoes, last FROM commits WHERE undoes IS NOT NULL"))

    def reply_under(self, key: bytes) -> tuple[bytes, bytes] | None:
        """Return the checksum of the request and the reply of a key, or None if it is not remembered."""
        row: tuple[bytes, bytes] | None = self.db.execute("SELECT request, reply FROM keys WHERE key = ?", (key,)).fetchone()
        return row

    def reader(self) -> CommitStore:
        """Return the same store with a read-only connection, for another thread."""
        other = object.__new__(CommitStore)
        other.__dict__.update(self.__dict__)
        other.writing, other._lock, other._head = False, None, -1
        uri = f"{(self.folder / 'store.db').absolute().as_uri()}?mode=ro"
        other.db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        return other

    def close(self) -> None:
        """Close the database and release the folder."""
        if getattr(self, "db", None) is not None:
            self.db.close()
        if self._head >= 0:
            os.close(self._head)
            self._head = -1
        if self._lock is not None:
            self._lock.close()


_SLOT = 16


def _slot(number: int) -> bytes:
    packed = struct.pack("<q", number)
    return packed + hashlib.blake2b(packed, digest_size=_SLOT - 8).digest()
