"""Backup of a store, also while it is served, and its restoration. A backup is one file: a zip archive, not compressed.

The database is copied in one read transaction, which fixes the last commit; the model files up to that commit are copied
after it, and none of them ever changes. A backup is rebuilt and checked before it gets its name, and a restored store is
before it gets its.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from separatrix import __version__
from separatrix.data.atomic import replacing
from separatrix.data.errors import DataError
from separatrix.web.server.forgetting.again import forget_again
from separatrix.web.server.forgetting.erasing import erase, has_traces, mark_of, mark_overtaken, note_backup
from separatrix.web.server.forgetting.numbers import times_forgotten
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import (
    DATABASE,
    LOG,
    LOG_INDEX,
    PLAN,
    Head,
    StoreError,
    link_or_copy,
    read_head,
    read_only,
    sync_folder,
    write_new_head,
)

FORMAT = 1
MANIFEST = "manifest.json"
_MEMBER = re.compile(rf"{re.escape(DATABASE)}|start\.sepx|(?:snapshot|rebuilt)-\d{{12}}\.sepx")
_PIECE = 1 << 20


class Contents(NamedTuple):
    """What a backup holds: all commits up to a number, the examples in them, when it was made, and its size in bytes.

    `problem` says why the backup could not be noted in its store; `forgotten` are the examples that `restore` forgot again.
    """

    commit: int
    examples: int
    time: float
    size: int
    problem: str = ""
    forgotten: tuple[int, ...] = ()


def back_up(folder: Path, output: Path) -> Contents:
    """Write a backup of a store to a file; raises StoreError if the store is not whole."""
    if not (folder / DATABASE).exists() or (folder / PLAN).exists():
        CommitStore(folder, writing=False)  # which says why it cannot be read
    with _stage_beside(output) as stage:
        head = read_head(folder)
        try:
            with closing(read_only(folder)) as source, closing(sqlite3.connect(stage / DATABASE)) as copy:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.Error as error:
            raise StoreError(f"{folder}: the store cannot be copied: {error}") from None
        if head is not None:
            write_new_head(stage, head)
        for path in folder.glob("*.sepx"):
            with suppress(FileNotFoundError):  # an old snapshot that was removed meanwhile
                if _MEMBER.fullmatch(path.name):
                    link_or_copy(path, stage / path.name)
        with _errors_of(stage, folder):
            store = _proven(stage)
        position = {"store": store.base["model"]["id"], "commit": store.last, "examples": store.examples}
        position["folder"] = str(folder.absolute())
        names = sorted(path.name for path in stage.glob("*.sepx"))
        manifest = {"format": FORMAT, "separatrix": __version__, "time": time.time(), **position}
        manifest["files"] = {name: _digest(stage / name) for name in (DATABASE, *names)}
        with replacing(output) as name:
            with zipfile.ZipFile(name, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
                archive.writestr(MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
                for member in manifest["files"]:
                    archive.write(stage / member, member)
            size = os.path.getsize(name)
    problem = ""
    try:
        mark_of(output).unlink(missing_ok=True)  # it was of an earlier backup of this name
        note_backup(folder, output, store.last, store.examples, times_forgotten(store.base), manifest["time"])
        mark_overtaken(folder, output, store.base)
    except OSError as error:
        problem = (
            f"{error.filename} cannot be written ({error.strerror}), so receipts of forgetting will not name this backup"
        )
    return Contents(store.last, store.examples, manifest["time"], size, problem)


def restore(backup: Path, folder: Path, receipts: Iterable[Path] = (), *, of_many: bool = False) -> Contents:
    """Write the store of a backup to a new folder, without what was forgotten after it was made (forgetting/again.py).

    Raises DataError if the backup is damaged, or a receipt is of another store and the receipts are not `of_many` stores.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(f"{folder} exists and is not empty: restore to a new folder")
    with _stage_beside(folder) as stage:
        try:
            with zipfile.ZipFile(backup) as archive:
                manifest = _manifest(backup, archive)
                for name, entry in manifest["files"].items():
                    _extract(backup, archive, name, entry, stage / name)
        except DataError:
            raise
        except (zipfile.BadZipFile, LookupError, TypeError, ValueError, AttributeError, RuntimeError, EOFError) as error:
            raise DataError(f"{backup} is not a backup of a store, or it is damaged: {error}") from None
        write_new_head(stage, Head(manifest["commit"], manifest["examples"], manifest["time"]))
        with _errors_of(stage, folder):
            store = _proven(stage)
        if (store.last, store.base["model"]["id"]) != (manifest["commit"], manifest["store"]):
            raise DataError(f"{backup} is damaged: its database ends with commit {store.last:,}, not {manifest['commit']:,}")
        made_of = manifest.get("folder")
        with _errors_of(stage, folder):
            forgotten = forget_again(stage, backup, Path(made_of) if isinstance(made_of, str) else None, receipts, of_many)
        sync_folder(stage)
        if folder.exists():
            folder.rmdir()
        stage.chmod(0o777 & ~_umask())  # a temporary folder is private
        os.replace(stage, folder)
        sync_folder(folder.absolute().parent)
    counts = store.last, store.examples, manifest["time"], os.path.getsize(backup)
    return Contents(*counts, forgotten=tuple(forgotten))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextmanager
def _stage_beside(path: Path) -> Iterator[Path]:
    """Yield a new folder beside `path`, which is gone at the end unless it was renamed."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise DataError(f"{path}: the folder {parent} does not exist")
    stage = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", dir=parent))
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def _errors_of(stage: Path, folder: Path) -> Iterator[None]:
    """Name the folder that a person knows in errors about its copy."""
    try:
        yield
    except StoreError as error:
        raise StoreError(str(error).replace(str(stage), str(folder))) from None


def _proven(stage: Path) -> CommitStore:
    """Return a store, closed, after its model was rebuilt, without snapshots beyond its end."""
    with closing(CommitStore(stage, writing=False)) as store:
        if "model" not in store.base:
            raise StoreError(f"{stage} contains no store")
        for path in stage.glob("*-*.sepx"):
            if int(path.stem.rpartition("-")[2]) > store.last:
                path.unlink()
        snapshots.recover(store)
        has_forgotten = has_traces(store)
    if has_forgotten:  # it was copied after a forgetting, and before the traces of that were erased
        with closing(CommitStore(stage)) as store:
            erase(store)
            store.db.execute("PRAGMA journal_mode=DELETE")
    for name in (LOG, LOG_INDEX):  # which are empty
        (stage / name).unlink(missing_ok=True)
    return store


def _digest(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _manifest(backup: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the manifest of a backup, whose names and types are as `back_up` wrote them."""
    info = archive.getinfo(MANIFEST)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > 64 * _PIECE:
        raise ValueError("its manifest is compressed, or too large")
    manifest: dict[str, Any] = orjson.loads(archive.read(MANIFEST))
    if manifest["format"] > FORMAT:
        raise DataError(f"{backup} was written by a newer version of separatrix")
    numbers = (manifest["commit"], manifest["examples"])
    if not (all(type(number) is int and number >= 0 for number in numbers) and type(manifest["time"]) is float):
        raise ValueError("its manifest has no commit")
    for name in manifest["files"]:
        if not _MEMBER.fullmatch(name):
            raise ValueError(f"{name!r} is no file of a store")
    if DATABASE not in manifest["files"]:
        raise ValueError("it has no database")
    return manifest


def _extract(backup: Path, archive: zipfile.ZipFile, name: str, entry: dict[str, Any], path: Path) -> None:
    """Write a member to a file, and compare it with the manifest."""
    info = archive.getinfo(name)
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != entry["bytes"]:
        raise ValueError(f"{name} is not as its manifest says")
    digest = hashlib.sha256()
    with archive.open(info) as source, open(path, "wb") as target:
        while piece := source.read(_PIECE):
            digest.update(piece)
            target.write(piece)
        target.flush()
        os.fsync(target.fileno())
    if digest.hexdigest() != entry["sha256"]:
        raise DataError(f"{backup} is damaged: checksum mismatch in {name}")
