"""Files that appear whole or not at all: written beside their name, synced, and renamed."""

from __future__ import annotations

import errno
import glob
import os
import platform
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from separatrix.data.errors import DataError


def _writer(process: int | str) -> str:
    """Who writes a file: the machine and the process."""
    return f"{platform.node()[:40].replace('.', '-')}-{process}"


def _clear_left_behind(path: Path) -> None:
    """Remove what writers of this file that were killed have left beside it."""
    for left in path.parent.glob(f".{glob.escape(path.name[:160])}.{glob.escape(_writer(''))}*.part"):
        process = left.name.split(".")[-3].rpartition("-")[2]
        if process.isdigit() and not _runs(int(process)):
            left.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if sys.platform == "win32":  # where asking is killing
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def check_place(path: Path) -> None:
    """Raise where no file can get this name, before long work whose result it is to hold."""
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file in it")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path}: the folder {path.absolute().parent} does not exist")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give the name of a new file beside `path`, which takes its place at the end, or is gone if anything failed."""
    name, path = os.fspath(path), Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    _clear_left_behind(path)
    temporary = path.with_name(f".{path.name[:160]}.{_writer(os.getpid())}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None
    try:
        rights = temporary.stat().st_mode
        yield str(temporary)
        temporary.chmod(rights)  # safetensors makes its files private
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with suppress(OSError, AttributeError):  # the name itself, where folders can be synced
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
