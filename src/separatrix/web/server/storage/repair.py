"""Repair of a damaged store, with `--accept-loss`. Nothing is deleted: what cannot be used moves to a dated folder.

Every row and every snapshot that can be read and whose checksum matches counts. The newest state that can be proven is the
one that most commits without a hole lead to, from a snapshot or from the initial model; it is rebuilt before anything
changes. Commits that are missing before that snapshot become a recorded gap. What was acknowledged after that state is lost,
and the report says so.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from separatrix.data.atomic import replacing
from separatrix.data.errors import counted
from separatrix.modelfile.archive import load
from separatrix.web.server.forgetting.numbers import TIMES, times_forgotten
from separatrix.web.server.live.progressive_validation import ProgressiveValidation
from separatrix.web.server.storage import pins, snapshots
from separatrix.web.server.storage.pins import Pin
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import (
    DATABASE,
    HEAD,
    LOG,
    LOG_INDEX,
    PLAN,
    STAGE,
    Head,
    StoreError,
    StoreFolder,
    finish_repair,
    link_or_copy,
    read_head,
    read_only,
    sync_folder,
    write_new_head,
)
from separatrix.web.server.storage.store_rows import (
    COLUMNS,
    FORMAT,
    INSERT_COMMIT,
    INSERT_KEY,
    SCHEMA,
    Gap,
    StoredCommit,
    checksum_of,
    key_columns,
)

_NOT_DAMAGE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_FULL)


def repaired(folder: Path) -> list[str]:
    """Repair a store if it needs it; return the lines of the report, none if it is whole."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    place = StoreFolder(folder)
    try:
        if _is_whole(folder):
            return []
        report = _Repair(folder).run()
        finish_repair(folder)
        return report
    finally:
        place.close()


def _is_whole(folder: Path) -> bool:
    try:
        with closing(CommitStore(folder, writing=False)) as store:
            if "model" in store.base:
                snapshots.recover(store)
            return True
    except StoreError:
        return False


class _Rows(NamedTuple):
    """What can be read of a damaged database."""

    base: dict[str, dict[str, Any]]
    commits: list[StoredCommit]
    """In order of their numbers; some may be missing."""
    keys: list[tuple[Any, ...]]
    has_all_keys: bool
    pins: list[Pin]
    has_all_pins: bool


class _Repair:
    """One repair; `folder` is locked."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stage = folder, folder / STAGE
        self.head = read_head(folder)
        self.facts: dict[int, dict[str, Any]] = {}
        """What the snapshots that can be read say of themselves, by the number of their commit."""
        numbers = snapshots.snapshot_numbers(folder)
        for number in numbers:
            with suppress(*snapshots.UNREADABLE):
                self.facts[number] = load(snapshots.path_of(folder, number), plain=True).facts.get("server", {})
        self.rows = _readable_rows(folder, max([0, *numbers, *([self.head.number] if self.head else [])]))
        self.entry = self._entry()
        own = {number: (self.entry["id"], number) for number in self.facts}
        self.facts = {n: facts for n, facts in self.facts.items() if (facts.get("store"), facts.get("commit")) == own[n]}

    def _entry(self) -> dict[str, Any]:
        """Return what the store began with: from the database, or else from a snapshot."""
        entry = self.rows.base.get("model")
        for facts in self.facts.values():
            if entry is None and "store" in facts:
                entry = facts.get("model", {"id": facts["store"], "start": "lost", "settings": None})
        if entry is None:
            reason = "neither the database nor a snapshot can be read, so nothing can be repaired: restore it from a backup"
            raise StoreError(f"{self.folder}: {reason}")
        if entry.get("format", FORMAT) > FORMAT:
            raise StoreError(f"{self.folder} was written by a newer version of separatrix")
        return entry | {"format": FORMAT}

    def run(self) -> list[str]:
        """Prove a state, and stage the repaired store; the files in use do not change. Return the report."""
        problem = ""
        for end, base in self._candidates():
            examples, gaps = self._write_stage(end, base)
            try:
                with closing(CommitStore(self.stage, writing=False)) as store:
                    snapshots.recover(store)
                break
            except StoreError as error:
                problem = str(error).replace(str(self.stage), str(self.folder))
        else:
            raise StoreError(f"no state of the store can be proven, so it is left as it is: {problem}")
        damaged = self._damaged_folder()
        staged = {path.name for path in self.stage.iterdir()}
        replaced = {DATABASE, LOG, LOG_INDEX, HEAD}
        moved = [path for path in self.folder.iterdir() if path.name in replaced or _is_model_not_in(path, staged)]
        for path in moved:
            link_or_copy(path, damaged / path.name)
        report = self._report(damaged, end, examples, gaps)
        (damaged / "report.txt").write_text("\n".join(report) + "\n", encoding="utf-8")
        for path in (damaged, self.stage, self.folder):
            sync_folder(path)
        with replacing(self.folder / PLAN) as name:
            Path(name).write_bytes(orjson.dumps({"moved": sorted(path.name for path in moved)}))
        return report

    def _candidates(self) -> list[tuple[int, int]]:
        """Return (last commit, snapshot or 0) of the states that commits without a hole lead to, the newest first.

        A commit that put another model in place needs its file, so a chain may also end before it.
        """
        following = {row.first: row for row in self.rows.commits}
        candidates = []
        for base in [0, *self.facts]:
            end = base
            while row := following.get(end + 1):
                if row.commit.rebuilt:
                    candidates.append((end, base))
                end = row.last
            candidates.append((end, base))
        return sorted(set(candidates), reverse=True)

    def _write_stage(self, end: int, base: int) -> tuple[int, list[Gap]]:
        """Write a store that ends with a commit into the stage; return the number of its examples, and its gaps."""
        shutil.rmtree(self.stage, ignore_errors=True)
        self.stage.mkdir()
        commits, gaps, examples = self._history(end, base)
        entries = {name: value for name, value in self.rows.base.items() if name != "gaps"} | {"model": self.entry}
        times = max([0, *(int(facts.get("forgets", 0)) for facts in self.facts.values())])
        if times > times_forgotten(entries):  # of which the entries are lost
            entries[TIMES] = {"count": times}
        if gaps:
            entries["gaps"] = {"gaps": [list(gap) for gap in gaps]}
        with closing(sqlite3.connect(self.stage / DATABASE, isolation_level=None)) as db:
            db.executescript(SCHEMA)
            db.execute("BEGIN")
            facts = [(name, encoded := orjson.dumps(value), checksum_of(name, encoded)) for name, value in entries.items()]
            db.executemany("INSERT INTO base VALUES (?, ?, ?)", facts)
            db.executemany(INSERT_COMMIT, commits)
            keys = [(*key, checksum_of(*key)) for key in self.rows.keys if key[4] <= end]
            db.executemany(INSERT_KEY, keys)
            db.execute(pins.TABLE)
            db.executemany(pins.INSERT, [pin.until(end).row() for pin in self.rows.pins if pin.number <= end])
            db.execute("COMMIT")
        write_new_head(self.stage, Head(end, examples))
        for path in self.folder.glob("*.sepx"):
            number = _number_of(path)
            is_usable = number in self.facts if path.name.startswith("snapshot-") else True
            if number <= end and is_usable:
                link_or_copy(path, self.stage / path.name)
        return examples, gaps

    def _history(self, end: int, base: int) -> tuple[list[StoredCommit], list[Gap], int]:
        """Return the commits up to `end`, the gaps between them, and the examples up to `end`."""
        commits: list[StoredCommit] = []
        gaps: list[Gap] = []
        last = mistakes = examples = 0
        for row in self.rows.commits:
            if row.first <= last or row.last > end:
                continue
            if row.first > last + 1:
                gaps.append(Gap(last + 1, row.first - 1, row.mistakes_before, row.examples - row.commit.n, base))
            commits.append(row)
            last, mistakes, examples = row.last, row.mistakes_before + row.mistakes, row.examples
        if last < end:
            counts = ProgressiveValidation.resumed(self.facts[end]["progressive"])
            examples = counts.numbered
            gaps.append(Gap(last + 1, end, max(mistakes, counts.mistakes), examples, base))
        return commits, gaps, examples

    def _damaged_folder(self) -> Path:
        name = time.strftime("damaged-%Y%m%dT%H%M%SZ", time.gmtime())
        for count in range(1, 1000):
            path = self.folder / (name if count == 1 else f"{name}-{count}")
            with suppress(FileExistsError):
                path.mkdir()
                return path
        raise StoreError(f"{self.folder}: there is no name left for the folder {name}")

    def _report(self, damaged: Path, end: int, examples: int, gaps: list[Gap]) -> list[str]:
        """Return the lines that say what there is, what is missing, and where the damaged files are."""
        lines = [
            f"{self.folder} was repaired: the model has all commits up to number {end:,}, {counted(examples, 'example')}"
        ]
        later = [row for row in self.rows.commits if row.last > end]
        acknowledged = max([end, *(row.last for row in later), *([self.head.number] if self.head else [])])
        if acknowledged > end:
            known = {row.last: row.examples for row in later}
            if self.head and self.head.examples:
                known[self.head.number] = self.head.examples
            which = "a number of examples that is not known"
            if known.get(acknowledged, 0) > examples:
                which = f"examples {examples + 1:,} to {known[acknowledged]:,}"
            lines.append(f"lost: commits {end + 1:,} to {acknowledged:,}, {which}")
        if later:
            lines.append(f"of these, {counted(len(later), 'row')} can be read, but what they build on is missing")
        if self.head is None:
            lines.append(f"the file {HEAD} could not be read, so later commits may be lost too")
        for gap in gaps:
            commits = f"commits {gap.first:,} to {gap.last:,}"
            lines.append(f"missing from the ledger, though the model has learned from them: {commits}")
        if not self.rows.has_all_keys:
            lines.append("some idempotency keys are lost: a request that is sent again under one of them is learned again")
        if not self.rows.has_all_pins:
            lines.append("some pinned examples are lost: pin them again")
        lines.append(f"nothing was deleted: the damaged files are in {damaged}")
        return lines


def _is_model_not_in(path: Path, staged: set[str]) -> bool:
    return path.suffix == ".sepx" and path.name not in staged


def _number_of(path: Path) -> int:
    """Return the number of the commit that a model file belongs to; 0 for the initial model."""
    digits = path.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def _readable_rows(folder: Path, most: int) -> _Rows:
    """Return the rows whose checksums match; commits are looked for up to number `most`, and beyond while there are any."""
    base: dict[str, dict[str, Any]] = {}
    commits: list[StoredCommit] = []
    keys: list[tuple[Any, ...]] = []
    pinned: list[Pin] = []
    has_all_keys = has_all_pins = False
    if not (folder / DATABASE).exists():
        return _Rows(base, commits, keys, has_all_keys, pinned, has_all_pins)
    with suppress(sqlite3.DatabaseError), closing(_readable(folder)) as db:
        with suppress(sqlite3.DatabaseError):
            for name, value, checksum in db.execute("SELECT name, value, sum FROM base LIMIT 100000"):
                if isinstance(value, bytes) and checksum_of(name, value) == checksum:
                    base[name] = orjson.loads(value)
        commits = list(_readable_commits(db, most))
        columns = key_columns(db)
        for order in ("ASC", "DESC"):  # from both ends, up to what cannot be read
            with suppress(sqlite3.DatabaseError):
                seen: set[bytes] = set()
                for *values, checksum in db.execute(f"SELECT {columns} FROM keys ORDER BY key {order}"):
                    if values[0] in seen:
                        raise sqlite3.DatabaseError("the table leads back")
                    seen.add(values[0])
                    if checksum_of(*values) == checksum:
                        keys.append((*values, *((0, 0.0) if len(values) == 4 else ())))
                has_all_keys = has_all_keys or order == "ASC"
            if has_all_keys:
                break
        with suppress(sqlite3.DatabaseError, StoreError):
            for pin in pins.read_pins(db):
                pinned.append(pin)
            has_all_pins = True
    return _Rows(base, commits, keys, has_all_keys, pinned, has_all_pins)


def _readable(folder: Path) -> sqlite3.Connection:
    """Return a connection to a database; raises StoreError if something other than its content keeps it from being read."""
    db = None
    try:
        db = read_only(folder)
        size = sum((folder / name).stat().st_size for name in (DATABASE, LOG) if (folder / name).exists())
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(1 << 20, size))  # no row is longer than the files
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        if db is None or getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_DAMAGE:
            raise StoreError(f"{folder / DATABASE} cannot be read at the moment, so it is not repaired: {error}") from None
    return db


def _readable_commits(db: sqlite3.Connection, most: int) -> Iterator[StoredCommit]:
    """Yield the commits that are as they were written; a damaged table may lead back to rows that it has shown before."""
    after = 0
    while True:
        try:
            for row in db.execute(f"SELECT {COLUMNS} FROM commits NOT INDEXED WHERE last > ? ORDER BY last", (after,)):
                stored = StoredCommit(*row)
                is_whole = stored.is_whole()
                if stored.last <= after or (stored.last > most and not is_whole):
                    raise sqlite3.DatabaseError(f"commit {stored.last} does not follow commit {after}")
                after = stored.last
                if is_whole:
                    yield stored
            return
        except sqlite3.DatabaseError:
            after += 1  # past the row that cannot be read
            if after >= most:
                return
