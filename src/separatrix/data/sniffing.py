"""Which format a file has, decided by its first bytes."""

from __future__ import annotations

from separatrix.data.errors import DataError, did_you_mean
from separatrix.data.formats import FORMATS, NAMES, Format
from separatrix.data.streams import Stream

_REFUSED = {
    b"\x93NUMPY": "a .npy file holds one array; save X and y together with numpy.savez",
    b"FEA1": "Feather version 1 is not supported; write version 2",
    b"\x00\x00\x08": "IDX files are not supported; save images and labels as X and y with numpy.savez",
    b"\x89HDF": "HDF5 is not supported; write Parquet instead",
    b"\x80\x04": "pickles are not read, since loading one can run arbitrary code; save X and y with numpy.savez",
    b"\x80\x05": "pickles are not read, since loading one can run arbitrary code; save X and y with numpy.savez",
    b"PK\x03\x04": "this is a zip archive and not a NumPy one; unpack it first, or, of a spreadsheet, save it as CSV",
    b"\xd0\xcf\x11\xe0": "this is a spreadsheet or another Office document; save it as CSV",
    b"SQLite": "databases are not supported; write the table as CSV or Parquet",
}


def format_called(name: str) -> Format:
    """Return the format of a name or an alias."""
    wanted = name.lower()
    entry = next((entry for entry in FORMATS.values() if wanted == entry.name or wanted in entry.aliases), None)
    if entry is None:
        raise DataError(f"format={name!r} is not one of {NAMES}{did_you_mean(name, FORMATS)}")
    return entry


def sniff(stream: Stream, encoding: str = "auto") -> str:
    r"""Return the name of the format of a stream; one of text is given as UTF-8 from now on.

    Examples
    --------
    >>> import io
    >>> sniff(Stream(io.BytesIO(b"+1 1:0.5 7:1\n"))), sniff(Stream(io.BytesIO(b"a,b\n1,2\n")))
    ('svmlight', 'csv')
    """
    head = stream.peek()
    if not head.strip():
        raise DataError(f"{stream.name}: the file is empty")
    if name := _recognized(head, binary=True):
        return name
    check_text(stream)
    stream.as_text(encoding)
    text = stream.peek()
    if not text.strip():
        raise DataError(f"{stream.name}: the file is empty")
    if b"\0" in text[:4096]:
        at = text.index(0)
        line = text.count(b"\n", 0, at) + 1
        raise DataError(
            f"{stream.name}: the file is not {NAMES}, or it is damaged: there is a zero byte (line {line}, offset {at})"
        )
    if text.lstrip().startswith(b"["):
        raise DataError(f"{stream.name}: this is one JSON array; write an object a line, for example with jq -c '.[]'")
    return _recognized(text, binary=False) or "csv"


def check_text(stream: Stream) -> None:
    """Raise for a file of a binary format, or of one that is not read."""
    head = stream.peek()
    for magic, reason in _REFUSED.items():
        if head.startswith(magic):
            raise DataError(f"{stream.name}: {reason}")
    if name := _recognized(head, binary=True):
        raise DataError(f"{stream.name}: this is {name}, and not a text")


def _recognized(head: bytes, binary: bool) -> str | None:
    """Return the name of the first format in the table that recognizes the first bytes."""
    recognizers = ((entry.name, entry.recognizes) for entry in FORMATS.values() if entry.binary == binary)
    return next((name for name, recognizes in recognizers if recognizes is not None and recognizes(head)), None)
