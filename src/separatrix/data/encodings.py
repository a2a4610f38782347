"""Character encodings: which one a text has, and its bytes as UTF-8, which is what every reader of text expects.

UTF-8 is read as it is and costs nothing. Where no encoding is given, it is told by a byte order mark; by the zeros between
the letters of UTF-16; and else by whether the first megabyte is UTF-8. What is not is taken for windows-1252, which latin-1
text is, too. A byte that is not UTF-8 and comes later than that is taken for windows-1252 by itself (`mended`).
"""

from __future__ import annotations

import codecs
from typing import Any

from separatrix.data.errors import LEAVE_OUT, DataError, did_you_mean

AUTO, UTF8, FALLBACK = "auto", "utf-8", "windows-1252"
MARK = codecs.BOM_UTF8
"""The byte order mark with which some programs begin UTF-8; it is no part of the text."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
MENDED = "the text is not all UTF-8: other bytes are read as windows-1252; if that is wrong, name it with encoding="
_NAME_IT = "name the encoding with encoding="
_CHUNK = 1 << 20
_KNOWN = ("utf-8", "utf-16", "latin-1", "windows-1252", "windows-1250", "windows-1251", "iso-8859-15", "mac-roman", "cp437")


def encoding_called(name: str) -> str:
    """Return the name by which Python knows an encoding of text, or "auto".

    Examples
    --------
    >>> encoding_called("Latin1"), encoding_called("UTF8"), encoding_called("auto")
    ('iso8859-1', 'utf-8', 'auto')
    """
    if name.lower() == AUTO:
        return AUTO
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        codec = None
    if codec is None or not getattr(codec, "_is_text_encoding", True):
        raise DataError(
            f"encoding {name!r} is not known{did_you_mean(name, _KNOWN)}; use for example utf-8, utf-16 or latin-1"
        )
    return UTF8 if codec.name in ("utf-8", "utf-8-sig", "ascii") else codec.name


def assumed(name: str, encoding: str) -> str:
    """Return the note about a file whose encoding was detected and is not UTF-8."""
    return f"{name}: the text is not UTF-8: read as {encoding}; if that is wrong, name it with encoding="


def detected(head: bytes, whole: bool = True) -> str:
    """Return the encoding of a text by its first bytes, or by the `whole` of it.

    Examples
    --------
    >>> texts = "né".encode(), "né".encode("latin-1"), "a,b".encode("utf-16"), "a,b".encode("utf-16-be")
    >>> [detected(text) for text in texts]
    ['utf-8', 'windows-1252', 'utf-16', 'utf-16-be']
    """
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    if b"\0" in head[:4096]:
        even, odd = head[:4096:2], head[1:4096:2]
        zeros = even.count(0) / len(even), odd.count(0) / max(1, len(odd))
        if min(zeros) < 0.05 and max(zeros) > 0.4:
            return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
        return UTF8
    try:
        codecs.getincrementaldecoder(UTF8)().decode(head, whole)
    except UnicodeDecodeError as problem:
        valid = sum(byte >= 0xC2 for byte in head[: problem.start])
        rest = head[problem.start :].decode(UTF8, "replace")
        wrong = rest.count("\ufffd")
        valid += sum(character > "\x7f" for character in rest) - wrong
        return UTF8 if valid > 10 * wrong else FALLBACK
    return UTF8


def mended(text: bytes) -> str | None:
    r"""Return text with the bytes that are not UTF-8 taken for windows-1252; None where one is neither.

    Examples
    --------
    >>> mended(b"caf\xe9 \xc3\xa9"), mended(b"\x81")
    ('café é', None)
    """
    try:
        return text.decode(UTF8, _MEND)
    except UnicodeDecodeError:
        return None


def _in_windows_1252(problem: UnicodeError) -> tuple[str, int]:
    assert isinstance(problem, UnicodeDecodeError)
    return problem.object[problem.start : problem.end].decode(FALLBACK), problem.end


_MEND = "separatrix-windows-1252"
codecs.register_error(_MEND, _in_windows_1252)


def undecodable(text: bytes, encoding: str) -> str:
    r"""Say which byte of a text the encoding does not have, "auto" being UTF-8 and windows-1252.

    Examples
    --------
    >>> undecodable(b"caf\xe9", "utf-8")
    "byte 0xe9 is not utf-8; name the encoding with encoding=, or leave such lines out with on_error='skip'"
    """
    try:
        text.decode(UTF8, _MEND if encoding == AUTO else "strict")
    except UnicodeDecodeError as problem:
        byte = f"byte 0x{problem.object[problem.start]:02x}"
    known = f"neither {UTF8} nor {FALLBACK}" if encoding == AUTO else f"not {encoding}"
    return f"{byte} is {known}; {_NAME_IT}, or {LEAVE_OUT}"


def is_undecodable(message: str) -> bool:
    """Tell whether `undecodable` gave a message."""
    return _NAME_IT in message


def is_utf8(text: Any) -> bool:
    """Tell whether an array of bytes is UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pa.py_buffer(len(text).to_bytes(8, "little").rjust(16, b"\0"))
    try:
        pc.cast(pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(text)]), pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


class Transcoder:
    """The bytes of a file as UTF-8 with line feeds; `head` are those that were read already.

    A byte that the encoding does not have comes through as it is, where it is not ASCII, so that the reader of the lines can
    name or skip its line.
    """

    def __init__(self, file: Any, head: bytes, encoding: str, name: str, lone_returns: bool = False) -> None:
        self.file, self.encoding, self.name, self.lone_returns = file, encoding, name, lone_returns
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
        self._raw, self._ready, self._at, self._lines, self._ended = head, memoryview(b""), 0, 1, False

    def readinto(self, view: memoryview) -> int:
        """Fill `view`, or a part of it; return how many bytes, 0 at the end."""
        while not self._ready:
            if self._ended:
                return 0
            raw, self._raw = self._raw or self.file.read(_CHUNK), b""
            self._ended = not raw
            text = self._decoded(raw)
            if self.lone_returns:
                text = text.replace("\r", "\n")
            self._lines += text.count("\n")
            self._ready = memoryview(text.encode(UTF8, "surrogateescape"))
        size = min(len(view), len(self._ready))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        buffer = bytearray(size)
        return bytes(buffer[: self.readinto(memoryview(buffer))])

    def _decoded(self, raw: bytes) -> str:
        pending = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(raw, self._ended)
        except UnicodeDecodeError as problem:
            before = problem.object[: problem.start].decode(self.encoding, "replace").count("\n")
            raise DataError(
                f"{self.name}, line {self._lines + before}: byte 0x{problem.object[problem.start]:02x} at offset "
                f"{self._at - pending + problem.start} is not {self.encoding}; name another encoding with encoding="
            ) from None
        except UnicodeError:  # such as UTF-16 without its mark
            raise DataError(
                f"{self.name}, line {self._lines}: the text is not {self.encoding}; name another encoding with encoding="
            ) from None
        self._at += len(raw)
        return text


def first_undecodable(file: Any, encoding: str) -> int | None:
    """Return the offset in a file of the first byte that the encoding does not have."""
    decoder, at = codecs.getincrementaldecoder(encoding)(), 0
    while True:
        raw = file.read(_CHUNK)
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(raw, not raw)
        except UnicodeDecodeError as problem:
            return at - pending + problem.start
        if not raw:
            return None
        at += len(raw)
