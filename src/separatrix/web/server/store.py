"""The store: commits in SQLite, on the disk before anybody is told of them. One process writes it.

SQLite's log drops a damaged end without a word. So the number of the last commit is also kept in a file of its own,
`head`, written after the commit and before the answer (and brought to the disk every second): a store that ends earlier
than its head has lost something that was acknowledged, and is refused. Every row carries its sum, and rows must follow each
other without a gap.
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
"""A key is remembered for a day, of the newest million."""
SEGMENT = 4096
"""Compaction joins commits, in their order, until they hold so many examples."""

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
    """A store that cannot be used, or not written to; the message says why and what to do."""


class KeyedReply(NamedTuple):
    """A request under a key, and what was answered."""

    key: bytes
    request: bytes
    reply: bytes


class StoredCommit(NamedTuple):
    """A commit, or several joined into one, with its place in the store."""

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
        """What is inside."""
        return Commit.unpack(self.body)

    def checked(self) -> StoredCommit:
        """Raise unless the sum is right."""
        if _sum(*self[:-1]) != self.sum:
            raise StoreError(f"the store is damaged: commit {self.last} is not what was written")
        return self


def _sum(*values: Any) -> bytes:
    total = hashlib.blake2b(digest_size=16)
    for value in values:
        part = value if isinstance(value, bytes) else repr(value).encode()
        total.update(struct.pack("<q", len(part)) + part)
    return total.digest()


class CommitStore:
    """A folder with the commits of one model."""

    def __init__(self, folder: Path, *, writing: bool = True, accept_loss: bool = False) -> None:
        """Open a store, or make one; raise StoreError where another process writes it or it is damaged."""
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
                raise StoreError(f"{self.folder} holds no store")
            uri = f"{(self.folder / 'store.db').absolute().as_uri()}?mode=ro"
            self.db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        self.last, self.mistakes = 0, 0
        self.base: dict[str, Any] = {}
        self._verify()
        self._compare_head()

    def _locked(self) -> sqlite3.Connection:
        """Hold the folder for as long as this process lives, however it ends."""
        lock = sqlite3.connect(self.folder / "lock", isolation_level=None, check_same_thread=False, timeout=0)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            lock.close()
            raise StoreError(f"{self.folder} is being served by another process: one server writes a store") from None
        return lock

    def _verify(self) -> None:
        """Read everything once: the pages, the sums, and that no commit is missing."""
        problem = self.db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise StoreError(f"{self.folder}: the store is damaged: {problem}; restore it from a copy")
        for name, value, total in self.db.execute("SELECT name, value, sum FROM base"):
            if _sum(name, value) != total:
                raise StoreError(f"{self.folder}: the store is damaged: what it says of its {name} is not what was written")
            self.base[name] = orjson.loads(value)
        if self.base.get("model", {}).get("format", FORMAT) > FORMAT:
            raise StoreError(f"{self.folder} was written by a newer version of separatrix")
        for row in self.db.execute(f"SELECT {_COLUMNS} FROM commits ORDER BY last"):
            stored = StoredCommit(*row).checked()
            if stored.first != self.last + 1 or stored.mistakes_before != self.mistakes:
                raise StoreError(f"{self.folder}: the store is damaged: commits are missing after number {self.last}")
            self.last, self.mistakes = stored.last, self.mistakes + stored.mistakes
        for key, request, when, reply, total in self.db.execute("SELECT key, request, time, reply, sum FROM keys"):
            if _sum(key, request, when, reply) != total:
                raise StoreError(f"{self.folder}: the store is damaged: the answer under a key is not what was written")

    def _compare_head(self) -> None:
        path = self.folder / "head"
        known = self._read_head(path)
        if known is None and self.last and not self.accept_loss:
            raise StoreError(
                f"{path} is missing or damaged: whether the last commits are there cannot be told. "
                f"Restore it, or go on with the {self.last:,} commits that are there by --accept-loss"
            )
        if known is not None and known > self.last and not self.accept_loss:
            raise StoreError(
                f"{self.folder}: {known:,} commits were acknowledged and only {self.last:,} can be read: the end of the "
                "store is damaged or missing. Restore it from a copy, or go on without them by --accept-loss"
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
        right = [number for number, slot in zip(numbers, slots, strict=False) if slot == _slot(number)]
        return max(right, default=None)

    # Writing.

    def describe(self, name: str, value: dict[str, Any]) -> None:
        """Write down what the model is, once."""
        told = orjson.dumps(value)
        self.db.execute("INSERT INTO base VALUES (?, ?, ?)", (name, told, _sum(name, told)))
        self.base[name] = value

    def append(self, commit: Commit, examples: int, keyed: list[KeyedReply]) -> int:
        """Write a commit in one transaction, on the disk when this returns; raise StoreError with nothing written."""
        now, number = time.time(), self.last + 1
        row = (number, number, now, examples, self.mistakes, commit.mistakes, commit.undoes, commit.pack())
        try:
            self.db.execute("BEGIN IMMEDIATE")
            self.db.execute(f"INSERT INTO commits ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, _sum(*row)))
            self.db.executemany(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?)",
                [(key, request, now, reply, _sum(key, request, now, reply)) for key, request, reply in keyed],
            )
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            self._back_out(number, error)
        self.last, self.mistakes = number, self.mistakes + commit.mistakes
        return number

    def _back_out(self, number: int, error: sqlite3.Error) -> None:
        """Roll back, and see what is really there: after a failed write only the file can tell."""
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")
        written = self.db.execute("SELECT max(last) FROM commits").fetchone()[0]
        if written != number:
            raise StoreError(f"the store cannot be written: {error}") from None

    def confirm(self) -> None:
        """Note that the last commit is there, before anybody is told. The note itself may reach the disk a second later."""
        try:
            os.lseek(self._head, _SLOT * (self.last % 2), os.SEEK_SET)
            os.write(self._head, _slot(self.last))
        except OSError as error:
            raise StoreError(f"the head of the store cannot be written: {error.strerror}") from None

    def sync_head(self) -> None:
        """See to it that the note is on the disk."""
        os.fsync(self._head)

    def compact(self, until: int) -> int:
        """Forget old keys, and join small commits up to number `until`, a few at a time; return how many rows went."""
        oldest = time.time() - KEY_SECONDS
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.execute("DELETE FROM keys WHERE time < ?", (oldest,))
            spare = self.db.execute("SELECT count(*) FROM keys").fetchone()[0] - KEYS_KEPT
            if spare > 0:
                self.db.execute("DELETE FROM keys WHERE key IN (SELECT key FROM keys ORDER BY time LIMIT ?)", (spare,))
            gone = self._join(until)
            self.db.execute("COMMIT")
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
        return gone

    def _join(self, until: int) -> int:
        small = self.db.execute(
            f"SELECT {_COLUMNS} FROM commits WHERE last > ? AND last <= ? ORDER BY last LIMIT {SEGMENT + 1}",
            (self._joined_until, until),
        )
        run: list[tuple[StoredCommit, Commit]] = []
        for row in small:
            stored = StoredCommit(*row).checked()
            commit = stored.commit
            if commit.rebuilt or stored.undoes is not None or commit.n >= SEGMENT:
                run = []
                self._joined_until = stored.last
                continue
            run.append((stored, commit))
            if sum(commit.n for _, commit in run) >= SEGMENT:
                break
        else:
            return 0
        small.close()
        self._joined_until = run[-1][0].last
        first, last = run[0][0], run[-1][0]
        whole = merged([commit for _, commit in run])
        joined = (first.first, *last[1:4], first.mistakes_before, whole.mistakes, None, whole.pack())
        self.db.execute("DELETE FROM commits WHERE last >= ? AND last <= ?", (first.last, last.last))
        self.db.execute(f"INSERT INTO commits ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*joined, _sum(*joined)))
        return len(run) - 1

    _joined_until = 0

    # Reading.

    def commits(self, after: int = 0, until: int | None = None) -> Iterator[StoredCommit]:
        """Yield the commits from the one after `after` on."""
        end = self.last if until is None else until
        query = f"SELECT {_COLUMNS} FROM commits WHERE last > ? AND last <= ? ORDER BY last"
        for row in self.db.execute(query, (after, end)):
            yield StoredCommit(*row).checked()

    def moment(self, *, time: float | None = None, examples: int | None = None) -> tuple[int, float, int]:
        """Return (number, time, examples) of the last commit at or before a moment that can be rebuilt exactly."""
        column, value = ("time", time) if examples is None else ("examples", examples)
        row = self.db.execute(
            f"SELECT last, time, examples FROM commits WHERE {column} <= ? ORDER BY last DESC LIMIT 1", (value,)
        ).fetchone()
        return row or (0, 0.0, 0)

    def mistakes_page(self, before: int, limit: int) -> list[tuple[int, float, int, Commit]]:
        """Return (number, time, place in its commit, commit) of the mistakes below number `before`, the newest first."""
        found: list[tuple[int, float, int, Commit]] = []
        which = "mistakes > 0 AND mistakes_before < ? ORDER BY mistakes_before DESC LIMIT ?"
        query = f"SELECT {_COLUMNS} FROM commits WHERE {which}"
        for row in self.db.execute(query, (before - 1, limit)):
            stored = StoredCommit(*row).checked()
            commit = stored.commit
            for at in range(min(stored.mistakes, before - 1 - stored.mistakes_before) - 1, -1, -1):
                found.append((stored.mistakes_before + at + 1, stored.time, at, commit))
                if len(found) == limit:
                    return found
        return found

    def undone(self) -> dict[int, int]:
        """Return the mistakes that were taken back, each with the number of the commit that did it."""
        return dict(self.db.execute("SELECT undoes, last FROM commits WHERE undoes IS NOT NULL"))

    def answered(self, key: bytes) -> tuple[bytes, bytes] | None:
        """Return the request and the reply under a key, where it is remembered."""
        row: tuple[bytes, bytes] | None = self.db.execute("SELECT request, reply FROM keys WHERE key = ?", (key,)).fetchone()
        return row

    def reader(self) -> CommitStore:
        """Return the same store, to be read by another thread."""
        other = object.__new__(CommitStore)
        other.__dict__.update(self.__dict__)
        other.writing, other._lock, other._head = False, None, -1
        uri = f"{(self.folder / 'store.db').absolute().as_uri()}?mode=ro"
        other.db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        return other

    def close(self) -> None:
        """Let go of the folder."""
        if getattr(self, "db", None) is not None:
            self.db.close()
        if self._head >= 0:
            os.close(self._head)
            self._head = -1
        if self._lock is not None:
            self._lock.close()


_SLOT = 16


def _slot(number: int) -> bytes:
    told = struct.pack("<q", number)
    return told + hashlib.blake2b(told, digest_size=_SLOT - 8).digest()
