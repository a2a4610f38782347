"""The store: commits in SQLite, on the disk before they are acknowledged. One process writes it.

SQLite silently drops a damaged end of its write-ahead log. Therefore the number of the last commit is also written to a
separate file, `head`, after the commit and before the reply (and synced to the disk every second): a store that ends before
its head has lost something that was acknowledged, and is not opened. Every row has a checksum, and the commit numbers must
be consecutive, but for the gaps that a repair has recorded (repair.py).

The number of a commit is the store's order. Times are labels: the clock of a machine may be set back.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from separatrix import __version__
from separatrix.web.server.forgetting.numbers import FORGOTTEN, Forgetting
from separatrix.web.server.live.commits import Commit
from separatrix.web.server.storage import pins
from separatrix.web.server.storage import store_folder as folders
from separatrix.web.server.storage import store_rows as rows
from separatrix.web.server.storage.joining import joined
from separatrix.web.server.storage.store_folder import REMEDY, Head, StoreError, StoreFolder, read_head, read_only
from separatrix.web.server.storage.store_rows import COLUMNS, KEY_COLUMNS, Gap, KeyedReply, StoredCommit, checksum_of

log = logging.getLogger("separatrix.serve")
KEYS_KEPT = 1_000_000
KEY_SECONDS = 24 * 3600.0
"""An idempotency key is remembered for a day of serving, and at most the newest million are."""


class CommitStore:
    """A folder with the commits of one model."""

    def __init__(self, folder: Path, *, writing: bool = True) -> None:
        """Open a store, or create one; raises StoreError if another process writes it or it is damaged."""
        self.folder, self.writing = folder, writing
        self.last = self.mistakes = self.examples = 0
        self.base: dict[str, Any] = {}
        self._place: StoreFolder | None = None
        self._head_trouble, self._is_unsynced, self._joined_until = "", False, 0
        self.db: sqlite3.Connection
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self.close()
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise StoreError(f"{folder}: the disk is full: make room and start again") from None
            raise StoreError(f"{folder}: the store cannot be read: {error}{REMEDY}") from None
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Check the store with a connection that only reads, so that one that is refused stays as it is; then open it."""
        if self.writing:
            self._place = StoreFolder(self.folder)
        elif (self.folder / folders.PLAN).exists():
            raise StoreError(f"{self.folder}: a repair was interrupted; start the server on it, which finishes the repair")
        database, write_ahead = self.folder / folders.DATABASE, self.folder / folders.LOG
        head = read_head(self.folder)  # before the commits, which a server may be adding to
        if database.exists():
            self.db = read_only(self.folder)
            self.db.execute("BEGIN")
            self._verify()
            if self.writing:  # a reader sees one moment of it to its end, whatever is forgotten meanwhile
                self.db.execute("COMMIT")
        elif not self.writing:
            raise StoreError(f"{self.folder} contains no store")
        elif write_ahead.exists() and write_ahead.stat().st_size:  # SQLite would delete it
            raise StoreError(f"{database} is missing, but its log {folders.LOG} is there: put it back{REMEDY}")
        self._compare(head)
        if self._place is not None:
            if hasattr(self, "db"):
                self.db.close()
            self.db = sqlite3.connect(database, isolation_level=None, check_same_thread=False, timeout=10)
            self.db.execute("PRAGMA journal_mode=WAL")
            self.db.execute("PRAGMA synchronous=FULL")
            self.db.executescript(rows.SCHEMA)
            self.db.execute(pins.TABLE)
            self._upgrade()
            # A first page in the log gives its index blocks on the disk, while there is room: without, a full disk is fatal.
            self.describe("opened", {"time": time.time(), "separatrix": __version__})
            self._place.open_head(Head(self.last, self.examples))
            self._place.hold()
            self._served = self.db.execute("SELECT max(served) FROM keys").fetchone()[0] or 0.0
            self._opened = time.monotonic()

    @property
    def forgettings(self) -> list[Forgetting]:
        """What was forgotten, in order."""
        return [Forgetting.of(name, entry) for name, entry in sorted(self.base.items()) if name.startswith(FORGOTTEN)]

    @property
    def gaps(self) -> list[Gap]:
        """The commits that a repair did not find."""
        return [Gap(*gap) for gap in self.base.get("gaps", {}).get("gaps", [])]

    def _verify(self) -> None:
        """Read everything once: check the pages and indexes, the checksums, and that no commit is missing."""
        problem = self.db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if problem != "ok":
            raise StoreError(f"{self.folder}: the store is damaged: {problem}{REMEDY}")
        if not self.db.execute("SELECT 1 FROM sqlite_master").fetchone():
            return  # the process ended while it was created
        for name, value, checksum in self.db.execute("SELECT name, value, sum FROM base"):
            if checksum_of(name, value) != checksum:
                raise StoreError(f"{self.folder}: the store is damaged: checksum mismatch in its entry {name!r}{REMEDY}")
            self.base[name] = orjson.loads(value)
        if self.base.get("model", {}).get("format", rows.FORMAT) > rows.FORMAT:
            raise StoreError(f"{self.folder} was written by a newer version of separatrix")
        gap_after = {gap.first - 1: gap for gap in self.gaps}
        for row in self.db.execute(f"SELECT {COLUMNS} FROM commits ORDER BY last"):
            stored = StoredCommit(*row).checked()
            self._pass_over(gap_after)
            if stored.first != self.last + 1 or stored.mistakes_before != self.mistakes:
                reason = f"commits are missing after number {self.last}"
                raise StoreError(f"{self.folder}: the store is damaged: {reason}{REMEDY}")
            self.last, self.mistakes, self.examples = stored.last, self.mistakes + stored.mistakes, stored.examples
        self._pass_over(gap_after)
        for *values, checksum in self.db.execute(f"SELECT {rows.key_columns(self.db)} FROM keys"):
            if checksum_of(*values) != checksum:
                reason = "checksum mismatch in the reply of an idempotency key"
                raise StoreError(f"{self.folder}: the store is damaged: {reason}{REMEDY}")
        for _ in pins.read_pins(self.db):
            pass

    def _pass_over(self, gap_after: dict[int, Gap]) -> None:
        """Count the commits of a gap that follows here."""
        while gap := gap_after.get(self.last):
            self.last, self.mistakes, self.examples = gap.last, gap.mistakes, gap.examples

    def _compare(self, head: Head | None) -> None:
        newest = max((int(path.stem[9:]) for path in self.folder.glob(f"snapshot-{'[0-9]' * 12}.sepx")), default=0)
        if newest and "model" not in self.base:
            raise StoreError(f"{self.folder}: there are snapshots, but the database is empty{REMEDY}")
        if newest > self.last and self.writing:
            reason = f"there is a snapshot of commit {newest:,}, but the store ends with commit {self.last:,}"
            raise StoreError(f"{self.folder}: {reason}: its end is missing{REMEDY}")
        if head is None and self.last:
            reason = f"is missing or damaged, so the commits after the {self.last:,} that were found may be missing too"
            raise StoreError(f"{self.folder / folders.HEAD} {reason}{REMEDY}")
        if head is not None and head.number > self.last:
            reason = f"{head.number:,} commits were acknowledged, but only {self.last:,} can be read"
            raise StoreError(f"{self.folder}: {reason}: the end of the store is damaged or missing{REMEDY}")

    def _upgrade(self) -> None:
        """Bring a store of an earlier format, which was found whole, to the format of this version."""
        columns = rows.key_columns(self.db)
        with self._writing():
            if columns != KEY_COLUMNS:
                self.db.execute("DROP INDEX IF EXISTS keys_by_time")
                for column in ("number INTEGER NOT NULL DEFAULT 0", "served REAL NOT NULL DEFAULT 0"):
                    self.db.execute(f"ALTER TABLE keys ADD COLUMN {column}")
                keys = self.db.execute("SELECT key, request, time, reply FROM keys").fetchall()
                sums = ((checksum_of(*key, 0, 0.0), key[0]) for key in keys)
                self.db.executemany("UPDATE keys SET sum = ? WHERE key = ?", sums)
            self.db.execute("CREATE INDEX IF NOT EXISTS keys_by_age ON keys (served, number)")
            if self.base.get("model", {}).get("format", rows.FORMAT) < rows.FORMAT:
                self.describe("model", self.base["model"] | {"format": rows.FORMAT})

    # Writing.

    def describe(self, name: str, value: dict[str, Any]) -> None:
        """Record a fact about the store, such as what the model started from."""
        self._enter(name, value)
        self.base[name] = value

    def _enter(self, name: str, value: dict[str, Any]) -> None:
        encoded = orjson.dumps(value)
        self.db.execute("INSERT OR REPLACE INTO base VALUES (?, ?, ?)", (name, encoded, checksum_of(name, encoded)))

    def problem(self) -> str:
        """Return why nothing can be stored at the moment; empty if nothing is known to be wrong."""
        try:
            self.check_ours()
        except StoreError as error:
            return str(error)
        return self._head_trouble

    def check_ours(self) -> None:
        """Raise StoreError if the folder is no longer the one that was opened."""
        assert self._place is not None
        self._place.check_ours()

    def append(
        self, commit: Commit, examples: int, keyed: list[KeyedReply], statements: Iterable[pins.Statement] = ()
    ) -> int:
        """Write a commit in one transaction, on the disk when this returns; after a StoreError nothing was written.

        `statements` change other tables in the same transaction.
        """
        if self._head_trouble:
            self._write_head()
            if self._head_trouble:
                raise StoreError(self._head_trouble)
        now, number = time.time(), self.last + 1
        row = (number, number, now, examples, self.mistakes, commit.mistakes, commit.undoes, commit.pack())
        checksum = checksum_of(*row)
        served = self._served + time.monotonic() - self._opened
        replies = [(key, request, now, reply, number, served) for key, request, reply in keyed]
        try:
            self._begin()
            self.db.execute(rows.INSERT_COMMIT, (*row, checksum))
            self.db.executemany(rows.INSERT_KEY, [(*reply, checksum_of(*reply)) for reply in replies])
            for statement in statements:
                self.db.execute(*statement)
            self.db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            self._is_unsynced = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
            if not self._is_written(number, checksum):
                raise StoreError(f"the store cannot be written: {error}") from None
        except BaseException:
            self._roll_back()
            raise
        self.last, self.mistakes, self.examples = number, self.mistakes + commit.mistakes, examples
        return number

    def _begin(self) -> None:
        """Begin to write; raises StoreError if the folder is no longer ours, or another process has written to it."""
        self._roll_back()
        self.db.execute("BEGIN IMMEDIATE")
        self.check_ours()
        written = self.db.execute("SELECT max(last) FROM commits").fetchone()[0] or 0
        if written > self.last:
            reason = f"it has {written:,} commits, and this server knows of {self.last:,}"
            raise StoreError(f"{self.folder} was written by another server: {reason}; end all but one")

    def _roll_back(self) -> None:
        if self.db.in_transaction:
            with suppress(sqlite3.Error):  # what is left of it is tried again before the next commit
                self.db.execute("ROLLBACK")

    def _is_written(self, number: int, checksum: bytes) -> bool:
        """Return whether the file has this very commit: SQLite may report an error of what it has written."""
        try:
            row = self.db.execute("SELECT sum FROM commits WHERE last = ?", (number,)).fetchone()
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be read, so it is not known whether this was stored: {error}") from None
        return row is not None and row[0] == checksum

    def has(self, number: int, commit: Commit) -> bool:
        """Return whether the store has this very commit, although writing it has failed."""
        return any(stored.body == commit.pack() for stored in self.commits(number - 1, number))

    def reread(self) -> None:
        """Take up what the file has beyond what is known here, after a write of which nobody knows how it ended."""
        self._roll_back()
        if self._is_unsynced:  # the log may hold a commit whose sync failed, and a kill would bring it back: write over it
            self.describe("opened", self.base["opened"])
            self._is_unsynced = False
        self.base |= {name: orjson.loads(value) for name, value in self.db.execute("SELECT name, value FROM base")}
        query = "SELECT mistakes_before + mistakes FROM commits WHERE last = ?"
        (self.mistakes,) = self.db.execute(query, (self.last,)).fetchone() or (self.mistakes,)
        for row in self.db.execute(f"SELECT {COLUMNS} FROM commits WHERE last > ? ORDER BY last", (self.last,)):
            stored = StoredCommit(*row).checked()
            if stored.first != self.last + 1:
                raise StoreError(f"{self.folder}: commits are missing after number {self.last}")
            self.last, self.mistakes, self.examples = stored.last, self.mistakes + stored.mistakes, stored.examples

    def confirm(self) -> None:
        """Write the number of the last commit to the head, before the reply; it may reach the disk a second later.

        The commit is on the disk: a head that cannot be written does not take it back, and the next commit is refused.
        """
        self._write_head()

    def _write_head(self, sync: bool = False) -> None:
        assert self._place is not None
        try:
            if not sync or self._head_trouble:
                self._place.write_head(self.last, self.examples)
            if sync:
                self._place.sync_head()
            self._head_trouble = ""
        except OSError as error:
            if not self._head_trouble:
                log.error("the head of the store cannot be written: %s; the next commit is refused until it can", error)
            self._head_trouble = f"the head of the store cannot be written: {error.strerror}"

    def sync_head(self) -> None:
        """Sync the head to the disk; after a failure it is written again, because the disk may have dropped it."""
        self._write_head(sync=True)

    def compact(self, until: int) -> int:
        """Delete old keys and join some small commits up to number `until`; return how many rows were removed."""
        oldest = self._served + time.monotonic() - self._opened - KEY_SECONDS
        with self._writing():
            self.db.execute("DELETE FROM keys WHERE served < ? AND request != x''", (oldest,))  # forgotten ones stay
            excess = self.db.execute("SELECT count(*) FROM keys").fetchone()[0] - KEYS_KEPT
            if excess > 0:
                oldest_keys = "SELECT key FROM keys ORDER BY served, number LIMIT ?"
                self.db.execute(f"DELETE FROM keys WHERE key IN ({oldest_keys})", (excess,))
            removed, self._joined_until = joined(self, self._joined_until, until)
            return removed

    def change(self, statements: Iterable[pins.Statement]) -> None:
        """Change tables other than that of the commits, in one transaction; after a StoreError nothing was changed."""
        try:
            with self._writing():
                for statement in statements:
                    self.db.execute(*statement)
        except sqlite3.Error as error:
            raise StoreError(f"the store cannot be written: {error}") from None

    def rewrite(self, change: Callable[[], tuple[str, dict[str, Any], int]]) -> None:
        """Make one transaction of a change of the commits, and of the entry that says so.

        `change` returns the name of the entry, the entry, and how many mistakes there are now. After a StoreError nothing
        was changed.
        """
        name, entry, mistakes = "", dict[str, Any](), 0
        try:
            with self._writing():
                name, entry, mistakes = change()
                self._enter(name, entry)
        except sqlite3.Error as error:
            self._is_unsynced = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR
            if not self.db.execute("SELECT 1 FROM base WHERE name = ?", (name,)).fetchone():
                raise StoreError(f"the store cannot be written: {error}") from None
        self.base[name], self.mistakes, self._joined_until = entry, mistakes, 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Make a transaction of what is done meanwhile."""
        try:
            self._begin()
            yield
            self.db.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    # Reading.

    def commits(self, after: int = 0, until: int | None = None) -> Iterator[StoredCommit]:
        """Yield the commits with numbers above `after`, up to `until`; raises StoreError where some are missing."""
        end = self.last if until is None else until
        query = f"SELECT {COLUMNS} FROM commits WHERE last > ? AND last <= ? ORDER BY last"
        for row in self.db.execute(query, (after, end)):
            stored = StoredCommit(*row).checked()
            if stored.first != after + 1:
                raise StoreError(f"{self.folder}: the commits after number {after} are missing or joined")
            after = stored.last
            yield stored

    def leads(self, after: int, until: int) -> bool:
        """Return whether all commits from `after` to `until` are here, none joined with one that is not among them."""
        query = "SELECT first, last FROM commits WHERE last > ? AND last <= ? ORDER BY last"
        for first, last in self.db.execute(query, (after, until)):
            if first != after + 1:
                return False
            after = last
        return after == until

    def mistakes_page(self, before: int, limit: int) -> list[tuple[int, StoredCommit, int, Commit]]:
        """Return (number, row, position in its commit, commit) of the mistakes below number `before`, newest first."""
        page: list[tuple[int, StoredCommit, int, Commit]] = []
        condition = "mistakes > 0 AND mistakes_before < ? ORDER BY mistakes_before DESC LIMIT ?"
        query = f"SELECT {COLUMNS} FROM commits WHERE {condition}"
        for row in self.db.execute(query, (before - 1, limit)):
            stored = StoredCommit(*row).checked()
            commit = stored.commit
            for at in range(min(stored.mistakes, before - 1 - stored.mistakes_before) - 1, -1, -1):
                page.append((stored.mistakes_before + at + 1, stored, at, commit))
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
        other.writing, other._place = False, None
        other.db = read_only(self.folder)
        return other

    def close(self) -> None:
        """Close the database and release the folder."""
        if getattr(self, "db", None) is not None:
            self.db.close()
        if self._place is not None:
            self._place.close()
