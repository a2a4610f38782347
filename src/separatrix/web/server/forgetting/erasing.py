"""Erasing: after a forgetting, nothing of the examples is left in any file of the folder, and their backups are marked.

Snapshots that have learned from them, unfinished ones, and what a repair has put aside are deleted, of which the latter's
reports stay. The database is written anew, because SQLite leaves what was deleted in unused space, and its log is emptied.
Until all of it is done the entry of the forgetting says so, and it is done again after a failure or a kill.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson

from separatrix.data.atomic import replacing
from separatrix.web.server.forgetting.numbers import FORGOTTEN
from separatrix.web.server.forgetting.receipts import read_receipts
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import STAGE, StoreError, read_only, sync_folder

BACKUPS = "backups.jsonl"
"""The file of a store in which `backup` notes what it wrote, a line each."""
_PATIENCE = 5.0
"""How long to wait for others who read the database, in seconds."""


def erase(store: CommitStore) -> None:
    """Erase what the folder still has of forgotten examples; raises StoreError if it cannot be done now."""
    left = [forgetting for forgetting in store.forgettings if not forgetting.is_erased]
    if not left:
        return
    first = min(forgetting.commit for forgetting in left)
    deleted = _deleted_files(store, first)
    _rewrite_database(store)
    for forgetting in left:
        # Listed here again: one may have been noted after the receipt was written, and before its transaction ended.
        listed = backups_with(store.folder, forgetting.commit, forgetting.order) or forgetting.receipt["backups"]
        receipt = forgetting.receipt | {"deleted": sorted(deleted), "backups": listed}
        receipt["backups"] = marked_backups(receipt)
        store.describe(forgetting.name, forgetting._replace(receipt=receipt, is_erased=True).entry())


def has_traces(store: CommitStore) -> bool:
    """Tell whether the folder may still have something of forgotten examples."""
    return any(not forgetting.is_erased for forgetting in store.forgettings)


def _deleted_files(store: CommitStore, first: int) -> list[str]:
    """Delete the files that may have learned from commit `first`, or hold it; return their names."""
    folder = store.folder
    models = [*folder.glob("snapshot-*.sepx"), *folder.glob("rebuilt-*.sepx")]
    doomed = [path for path in models if path.stem[-12:].isdecimal() and int(path.stem[-12:]) >= first]
    doomed += [path for path in folder.glob("damaged-*/*") if path.name != "report.txt"]
    try:
        snapshots.remove_unfinished(store)
        shutil.rmtree(folder / STAGE, ignore_errors=True)
        for path in doomed:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{error.filename} has forgotten examples, and cannot be deleted: {error.strerror}") from None
    sync_folder(folder)
    return [str(path.relative_to(folder)) for path in doomed]


def _rewrite_database(store: CommitStore) -> None:
    end = time.monotonic() + _PATIENCE
    try:
        store.db.execute("VACUUM")
        while store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > end:
                raise StoreError("the log of the database cannot be emptied while somebody else, such as a backup, reads it")
            time.sleep(0.05)
    except sqlite3.Error as error:
        raise StoreError(f"the database cannot be written anew without the forgotten examples: {error}") from None


# Backups.


def note_backup(folder: Path, output: Path, commit: int, examples: int, forgets: int, when: float) -> None:
    """Note in a store that a backup was written, so that receipts can name it; raises OSError.

    `forgets` is how often the store had forgotten that was copied.
    """
    entry = {"file": str(output.absolute()), "time": when, "commit": commit, "examples": examples, "forgets": forgets}
    with open(folder / BACKUPS, "ab") as file:
        file.write(orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))


def mark_overtaken(folder: Path, output: Path, copied: dict[str, Any]) -> None:
    """Mark a new backup with what its store has forgotten while it was made; `copied` are the entries that it has."""
    with closing(read_only(folder)) as db:
        entries = db.execute("SELECT name, value FROM base WHERE name LIKE ?", (f"{FORGOTTEN}%",)).fetchall()
    for name, value in sorted(entries):
        if name not in copied:
            _mark(output, orjson.loads(value)["receipt"])


def backups_with(folder: Path, commit: int, order: int) -> list[dict[str, Any]]:
    """Return the known backups that hold a commit as it was before forgetting number `order`, with what is known of each."""
    newest: dict[str, dict[str, Any]] = {}
    with suppress(FileNotFoundError):
        for line in (folder / BACKUPS).read_bytes().splitlines():
            with suppress(orjson.JSONDecodeError, KeyError, TypeError):  # a line that a kill has cut
                entry = orjson.loads(line)
                newest[str(entry["file"])] = entry
    # An earlier version did not note how often: none of its backups here was made after this forgetting.
    with_it = (entry for _, entry in sorted(newest.items()) if entry["commit"] >= commit)
    return [entry for entry in with_it if entry.get("forgets", 0) < order]


def mark_of(backup: Path) -> Path:
    """Return the file beside a backup that says what was forgotten since."""
    return backup.with_name(f"{backup.name}.forgotten.json")


def marked_backups(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    """Write a receipt beside each backup that it names, where that is possible; return the backups, marked or not."""
    return [backup | {"marked": _mark(Path(backup["file"]), receipt)} for backup in receipt["backups"]]


def _mark(backup: Path, receipt: dict[str, Any]) -> bool:
    mark = mark_of(backup)
    try:
        if not backup.is_file():
            return False
        receipts = [other for other in read_receipts(mark) if other["id"] != receipt["id"]] if mark.exists() else []
        with replacing(mark) as name:
            Path(name).write_bytes(orjson.dumps([*receipts, receipt], option=orjson.OPT_INDENT_2))
    except (OSError, ValueError):
        return False
    return True
