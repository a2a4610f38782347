"""Bytes: which files a name stands for, what is inside a compressed one, and blocks that end where a line does."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.data import encodings
from separatrix.data.atomic import is_regular
from separatrix.data.encodings import MARK
from separatrix.data.errors import DataError
from separatrix.kernels.threads import cores as cores
from separatrix.kernels.threads import in_order as in_order

Bytes = NDArray[np.uint8]
Result = TypeVar("Result")

STDIN = "-"
PADDING = 16
"""Bytes behind the end of a block that a kernel may look at."""
LONGEST = 1 << 28
"""No line is longer than this: a file without line ends must not fill the memory."""
HEAD = 1 << 20
"""How much of a file is looked at to tell what it is."""
HASHED = 1 << 23
"""How many bytes are hashed at a time: the thread needs the interpreter's lock, which imports hold, in between."""

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"\x1f\x9d": "compress"}


class Block(NamedTuple):
    """Whole lines: text[:end], the last byte a line end, with room behind it; and what looking for the end has found."""

    text: Bytes
    end: int
    records: Any = None


def is_pipe(place: str | IO[bytes]) -> bool:
    """Tell whether a place can be read only once: standard input, a FIFO or a device by its path, an unseekable object."""
    if isinstance(place, str):
        return place == STDIN or not (is_regular(place) or os.path.isdir(place))
    return not place.seekable()


class Stream:
    """The bytes of one file, a pipe or a binary file object, decompressed."""

    def __init__(self, place: str | IO[bytes], name: str | None = None) -> None:
        self.digest = hashlib.sha256() if is_pipe(place) else None
        self.owned = isinstance(place, str) and place != STDIN
        raw: Any = sys.stdin.buffer if place == STDIN else _open(place) if isinstance(place, str) else place
        self.name = name or ("standard input" if place == STDIN else str(getattr(raw, "name", "the file object")))
        if self.digest is not None or not hasattr(raw, "peek"):
            raw = io.BufferedReader(_Raw(raw, self.digest, self.owned), 1 << 16)
        self._raw: Any = raw
        self._file: Any = None
        self._copy: Any = None
        self._head = b""
        self.compression: str | None = None
        self.encoding: str | None = None
        """The encoding of the text, once that is known (`as_text`)."""

    @property
    def file(self) -> Any:
        """The decompressed bytes, as a file."""
        if self._file is None:
            start = self._guarded(lambda: self._raw.peek(8)[:8])
            self.compression = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
            self._file = self._decompressed()
        return self._file

    @property
    def size(self) -> int | None:
        """How many bytes there are, where that is known."""
        try:
            return os.fstat(self._raw.fileno()).st_size if self.file is self._raw else None
        except (OSError, AttributeError):
            return None

    def _decompressed(self) -> Any:
        if self.compression is None:
            return self._raw
        if self.compression not in ("gzip", "bz2", "zstd"):
            raise DataError(f"{self.name}: {self.compression} is not supported; compress with gzip, bzip2 or zstd instead")
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(self._raw, mode="r"), self.compression)

    def peek(self, size: int = HEAD) -> bytes:
        """Return the first bytes (fewer where there are no more) and leave them to be read."""
        if len(self._head) < size:
            buffer = bytearray(size - len(self._head))
            self._head += bytes(buffer[: self._fill(memoryview(buffer))])
        return self._head[:size]

    def as_text(self, encoding: str = encodings.AUTO) -> str:
        """Give the text as UTF-8 with line feeds, without a mark at the front, from now on; return the encoding it has."""
        if self.encoding is None:
            head = self.peek()
            whole = len(head) < HEAD
            self.encoding = encodings.detected(head, whole) if encoding == encodings.AUTO else encoding
            if self.encoding != encodings.UTF8:
                self._file = encodings.Transcoder(self.file, head, self.encoding, self.name)
                self._head = b""
                head = self.peek()
            while head.startswith(MARK):
                head = self._head = head[len(MARK) :]
            if b"\r" in head and b"\n" not in head:
                self._file = encodings.Transcoder(self.file, head, encodings.UTF8, self.name, lone_returns=True)
                self._head = b""
        return self.encoding

    def readinto(self, view: memoryview) -> int:
        """Fill `view` as far as there are bytes; return how many."""
        taken = min(len(self._head), len(view))
        view[:taken] = self._head[:taken]
        self._head = self._head[taken:]
        return taken + self._fill(view[taken:])

    def _fill(self, view: memoryview) -> int:
        filled = 0
        while filled < len(view):
            got = self._guarded(lambda: self.file.readinto(view[filled:]))  # noqa: B023
            if not got:
                break
            filled += got
        return filled

    def _guarded(self, read: Callable[[], Result]) -> Result:
        try:
            return read()
        except OSError as problem:
            what = problem.strerror or " ".join(str(problem).split())
            if self.compression is not None:
                what = f"the {self.compression} data are corrupted or truncated ({what}); fetch the file again"
            raise DataError(f"{self.name}: {what}") from None

    def seekable(self, folder: Path | None = None) -> IO[bytes]:
        """Return the whole as a file that can be read anywhere: the file itself, or a temporary copy of what it gives."""
        if self._copy is None:
            if self.file is self._raw and self.digest is None and self._raw.seekable():
                self._copy = self._raw
            else:
                self._copy = tempfile.TemporaryFile(prefix="separatrix-", dir=folder)
                buffer = bytearray(1 << 20)
                while got := self.readinto(memoryview(buffer)):
                    self._copy.write(memoryview(buffer)[:got])
        self._copy.seek(0)
        return self._copy  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close what was opened here."""
        if self._copy is not None and self._copy is not self._raw:
            self._copy.close()
        if self.owned:
            self._raw.close()


class _Raw(io.RawIOBase):
    """Any binary file object as one that `io.BufferedReader` takes; hashed as it flows by where a digest is given."""

    def __init__(self, source: Any, digest: Any = None, owned: bool = False) -> None:
        self.source = source
        self.digest = digest
        self.owned = owned

    def close(self) -> None:
        super().close()
        if self.owned:
            self.source.close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self.source.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self.source.seek(offset, whence))

    def readinto(self, buffer: Any) -> int:
        data = self.source.read(len(buffer))
        if isinstance(data, str):
            raise DataError("the file is opened as text: open it in binary mode")
        buffer[: len(data)] = data
        if self.digest is not None:
            self.digest.update(data)
        return len(data)


def _open(path: str) -> Any:
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory; give a file, or a pattern such as {path.rstrip('/')}/*.csv") from None
    except (OSError, ValueError) as problem:
        raise DataError(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None


def all_bytes(path: str) -> bytes:
    """Return the bytes of a file, or of a pipe."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    with _open(path) as file:
        return bytes(file.read())


def expand(spec: str | os.PathLike[str]) -> list[str]:
    """Return the files that a path or a pattern stands for, in order.

    Examples
    --------
    >>> expand("points.csv")
    ['points.csv']
    """
    path = os.fspath(spec)
    if path == STDIN or Path(path).exists() or not glob.has_magic(path):
        return [path]
    files = sorted(file for file in glob.glob(path, recursive=True) if not Path(file).is_dir())
    if not files:
        raise DataError(f"{path}: no file matches this pattern")
    return files


def whole_lines(block: Block) -> Block:
    """Return the whole lines of a block."""
    step = 1 << 16
    for end in range(block.end, 0, -step):
        begin = max(0, end - step)
        at = block.text[begin:end].tobytes().rfind(b"\n")
        if at >= 0:
            return Block(block.text, begin + at + 1)
    return Block(block.text, 0)


def blocks(stream: Stream, size: int, cut: Callable[[Block], Block] = whole_lines) -> Iterator[Block]:
    """Yield the stream in blocks of about `size` bytes, cut where a record ends; the last one is given a line end."""
    carried = np.empty(0, np.uint8)
    if stream.peek(len(MARK)) == MARK:
        stream.readinto(memoryview(bytearray(len(MARK))))
    while True:
        n_carried = len(carried)
        text = np.empty(n_carried + size + PADDING, np.uint8)
        text[:n_carried] = carried
        got = stream.readinto(memoryview(text.data)[n_carried : n_carried + size])
        end = n_carried + got
        text[end:] = 0
        if got < size:
            if end and text[end - 1] != ord("\n"):
                text[end] = ord("\n")
                end += 1
            if end:
                yield Block(text, end)
            return
        whole = cut(Block(text, end))
        at = whole.end
        if at:
            yield whole
        carried = text[at:end].copy()
        if len(carried) > LONGEST:
            raise DataError(f"{stream.name}: a line is longer than {LONGEST >> 20} MB, or a quote in it is never closed")
        if not at:
            size = max(size, len(carried))


def after_lines(lead: int, source: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks without the first lines."""
    for block in source:
        text, end, _ = block
        begin = 0
        if lead:
            newline = text[:end] == ord("\n")
            lone_return = (text[:end] == ord("\r")) & ~np.append(newline[1:], False)
            ends = np.flatnonzero(newline | lone_return)
            begin = int(ends[min(lead, len(ends)) - 1]) + 1
            lead -= min(lead, len(ends))
        if begin < end:
            yield block if begin == 0 else Block(text[begin:], end - begin)


def digest_of(place: str | IO[bytes]) -> bytes:
    """Return a hash of the bytes of a file, as they lie on the disk."""
    if not isinstance(place, str):
        place.seek(0)
        return hashlib.sha256(place.read()).digest()
    digest, buffer = hashlib.sha256(), memoryview(bytearray(HASHED))
    with _open(place) as file:
        while got := file.readinto(buffer):
            digest.update(buffer[:got])
    return digest.digest()


class FileDigests:
    """Hashes of files, computed in a thread from now on: also while this one imports packages or parses the files."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self._digests: dict[str, bytes] = {}
        self._thread = threading.Thread(target=self._compute, daemon=True)
        self._thread.start()

    def _compute(self) -> None:
        with suppress(DataError, OSError):  # whoever reads the files is told
            for path in expand(self._spec):
                if is_regular(path):
                    self._digests[path] = digest_of(path)

    def of(self, place: str | IO[bytes]) -> bytes:
        """Return the hash of a file, which is computed now if it was none of those."""
        self._thread.join()
        digest = self._digests.get(place) if isinstance(place, str) else None
        return digest_of(place) if digest is None else digest
