"""The folder of a store: its lock, its head, the room that opening it takes, and whether it is still ours.

The head is a file beside the database with the number of the last acknowledged commit. A lock that was removed, or a folder
that was moved or deleted, would let two servers acknowledge what only one of them stores: the files are therefore known by
device and inode, and compared before each commit.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sqlite3
import struct
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

DATABASE, HEAD, LOCK = "store.db", "head", "lock"
LOG, LOG_INDEX, JOURNAL = f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal"
REMEDY = ". Restore it from a backup, or repair it with --accept-loss, which deletes nothing"
STAGE, PLAN = ".repair", "repair.json"
"""The folder of a repaired store, and the file that says that it is complete and which files it replaces."""
_INDEX_REGION = 1 << 15
"""SQLite's index of its log grows by so many bytes, for 4,096 pages of the log each."""
_ROOM = 1 << 18
"""The bytes that must be free for a store to be opened, besides the index of its log."""


class StoreError(OSError):
    """The store cannot be read or written; the message gives the reason and what to do."""


class Head(NamedTuple):
    """The number of the last acknowledged commit, the examples up to it, and when; format 1 had the number only."""

    number: int
    examples: int | None = None
    time: float | None = None


_SLOT, _OLD_SLOT = 32, 16


def _slot(head: Head) -> bytes:
    packed = struct.pack("<qqd", head.number, head.examples or 0, head.time or 0.0)
    return packed + hashlib.blake2b(packed, digest_size=8).digest()


def _old_slot(number: int) -> bytes:
    packed = struct.pack("<q", number)
    return packed + hashlib.blake2b(packed, digest_size=8).digest()


def read_head(folder: Path) -> Head | None:
    """Return the head of a store, or None if it is missing or damaged."""
    try:
        content = (folder / HEAD).read_bytes()
    except OSError:
        return None
    heads = []
    if len(content) == 2 * _OLD_SLOT:
        slots = [content[at : at + _OLD_SLOT] for at in (0, _OLD_SLOT)]
        heads = [Head(number) for slot in slots for number in struct.unpack_from("<q", slot) if slot == _old_slot(number)]
    elif len(content) == 2 * _SLOT:
        slots = [content[at : at + _SLOT] for at in (0, _SLOT)]
        heads = [head for slot in slots if _slot(head := Head(*struct.unpack_from("<qqd", slot))) == slot]
    return max(heads, default=None, key=lambda head: head.number)


def write_new_head(folder: Path, head: Head) -> None:
    """Write the head of a store that nobody serves."""
    with open(folder / HEAD, "wb") as file:
        file.write(_slot(head) * 2)
        file.flush()
        os.fsync(file.fileno())


def finish_repair(folder: Path) -> None:
    """Put the repaired store in place, if there is one; an interrupted repair is finished at the next start (repair.py)."""
    if not (folder / PLAN).exists():
        return
    names = json.loads((folder / PLAN).read_bytes())["moved"]
    for name in names:  # which the folder of damaged files has
        if name != DATABASE:
            (folder / name).unlink(missing_ok=True)
    for name in (HEAD, DATABASE):
        if (folder / STAGE / name).exists():
            os.replace(folder / STAGE / name, folder / name)
    sync_folder(folder)
    (folder / PLAN).unlink()
    shutil.rmtree(folder / STAGE, ignore_errors=True)


def undo_change_of_mode(folder: Path) -> None:
    """Let SQLite undo a change of a database to a write-ahead log that a killed process left half made.

    Such a change, of a new or a restored database, is the one that uses a journal. A connection that only reads cannot undo
    it.
    """
    database, log = folder / DATABASE, folder / LOG
    if (folder / JOURNAL).exists() and database.exists() and not (log.exists() and log.stat().st_size):
        with closing(sqlite3.connect(database, timeout=10)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()


def link_or_copy(path: Path, target: Path) -> None:
    """Give a file that never changes a second name."""
    try:
        os.link(path, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copy2(path, target)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to the disk, where folders can be synced."""
    with suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_only(folder: Path) -> sqlite3.Connection:
    """Return a connection to the database of a store that only reads."""
    uri = f"{(folder / DATABASE).absolute().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)


class StoreFolder:
    """The folder of a store that this process writes; the lock is released when it is closed, or the process ends."""

    def __init__(self, path: Path) -> None:
        """Create the folder where it does not exist, and lock it; raises StoreError if another process writes it."""
        self.path = path
        self._head = -1
        self._lock: sqlite3.Connection | None = None
        self._identities: list[tuple[str, tuple[int, int]]] = []
        path.mkdir(parents=True, exist_ok=True)
        self._check_room()
        self._lock = self._locked()
        try:
            finish_repair(path)
            undo_change_of_mode(path)
        except BaseException:
            self.close()
            raise

    def _check_room(self) -> None:
        """Raise StoreError on a full disk: SQLite maps the index of its log, and a page without a block would be fatal."""
        log = self.path / LOG
        pages = log.stat().st_size // 4096 if log.exists() else 0
        room = _ROOM + _INDEX_REGION * (pages // 4096 + 1)
        place = self.path / f".room-{os.getpid()}"
        try:
            file = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                with suppress(OSError):  # where an open file can be removed, a kill leaves none
                    place.unlink()
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file, 0, room)
            finally:
                os.close(file)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            reason = f"{self.path}: the disk is full: opening the store takes {room / 1e6:.1f} MB; make room and start again"
            raise StoreError(reason) from None
        finally:
            with suppress(OSError):
                place.unlink()

    def _locked(self) -> sqlite3.Connection:
        lock = sqlite3.connect(self.path / LOCK, isolation_level=None, check_same_thread=False, timeout=0)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            lock.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                reason = f"{self.path} is being served by another process: only one server can write a store"
                raise StoreError(reason) from None
            raise StoreError(f"{self.path / LOCK} cannot be locked: {error}") from None
        return lock

    def hold(self) -> None:
        """Remember which files are ours; called when the database is open.

        None of them is opened: to close a file would release the locks that SQLite has on it in this process.
        """
        names = [LOCK, DATABASE, LOG, HEAD]
        paths = [self.path.absolute(), *(self.path.absolute() / name for name in names)]
        self._identities = [(str(path), _identity(str(path))) for path in paths if path.exists()]

    def check_ours(self) -> None:
        """Raise StoreError if the folder or one of the files that this process writes was moved, deleted or replaced."""
        for path, identity in self._identities:
            try:
                is_ours = _identity(path) == identity
            except OSError:
                is_ours = False
            if not is_ours:
                raise StoreError(
                    f"{path} was moved, deleted or replaced while it was served: nothing more is learned; "
                    "put it back, or end this server and start it on the folder that is right"
                )

    # The head.

    def open_head(self, head: Head) -> None:
        """Write the head, and keep it open."""
        self._head = os.open(self.path / HEAD, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        os.write(self._head, _slot(head) * 2)
        os.fsync(self._head)

    def write_head(self, number: int, examples: int) -> None:
        """Write the number of the last commit; it may reach the disk later."""
        os.lseek(self._head, _SLOT * (number % 2), os.SEEK_SET)
        os.write(self._head, _slot(Head(number, examples, time.time())))

    def sync_head(self) -> None:
        """Sync the head to the disk."""
        os.fsync(self._head)

    def close(self) -> None:
        """Release the folder."""
        if self._head >= 0:
            os.close(self._head)
            self._head = -1
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
