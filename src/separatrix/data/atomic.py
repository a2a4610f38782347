"""Files that appear whole or not at all: written beside their name, synced, and renamed.

A name that is no regular file, such as a FIFO or the null device, is never replaced: what was written is copied into it.
"""

from __future__ import annotations

import errno
import glob
import os
import platform
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from separatrix.data.errors import DataError, OutputError

WRITE_FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What goes wrong with a file that can be opened: the disk or the quota is full, the file too large, the device broken."""


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


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a regular file, or nothing yet: what is neither can be neither replaced nor read again."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    # What /dev/stdout leads to may have no name any more, as a deleted file: then it is not replaced, either.
    return stat.S_ISREG(mode) and os.path.exists(os.path.realpath(path))


def check_place(path: Path, regular: bool = False) -> None:
    """Raise where no file can get this name, before long work whose result it is to hold."""
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a file in it")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise DataError(f"{path}: the folder {folder} does not exist")
    if is_regular(path):
        if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
            raise DataError(f"{path}: no file can be written in the folder {folder}")
        return
    if regular:
        raise DataError(f"{path} is not a regular file, which it must be to be read again")
    _check_writable(path)


def _check_writable(path: Path) -> None:
    """Raise for what bytes cannot, or must not, be written into."""
    mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        what = "a block device" if stat.S_ISBLK(mode) else "a socket"
        raise DataError(f"{path} is {what}: name a file, a FIFO or a character device")
    if not os.access(path, os.W_OK):
        raise DataError(f"{path}: {os.strerror(errno.EACCES)}")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[str]:
    """Give the name of a new file beside `path`, which takes its place at the end, or is gone if anything failed.

    Of what is no regular file the new one lies elsewhere, and its bytes are copied at the end. Raises `OutputError` where
    the disk is full.
    """
    name = os.fspath(path)
    try:
        if is_regular(name):
            with _renamed(name) as temporary:
                yield temporary
        else:
            with _copied(name) as temporary:
                yield temporary
    except OSError as error:
        if error.errno in WRITE_FAULTS and not isinstance(error, OutputError):
            raise OutputError(error.errno, os.strerror(error.errno), name) from None
        raise


@contextmanager
def _copied(name: str) -> Iterator[str]:
    """Give the name of a temporary file, whose bytes are written into `name` at the end."""
    if os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    _check_writable(Path(name))
    with tempfile.TemporaryDirectory(prefix="separatrix-") as folder:
        temporary = os.path.join(folder, "output")
        open(temporary, "wb").close()
        yield temporary
        try:
            with open(temporary, "rb") as source, open(name, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except OSError as error:  # also a reader that has closed the FIFO
            raise OutputError(error.errno, error.strerror, name) from None


@contextmanager
def _renamed(name: str) -> Iterator[str]:
    """Give the name of a new file beside `name`, which takes its place at the end."""
    path = Path(os.path.realpath(name))
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
