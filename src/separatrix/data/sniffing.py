"""What a file is, told by its first bytes, then by its first lines."""

from __future__ import annotations

import re

from separatrix.data.errors import DataError
from separatrix.data.streams import MARK, Stream

FORMATS = ("svmlight", "csv", "tsv", "jsonl", "parquet", "arrow", "npz")
ALIASES = {"libsvm": "svmlight", "json": "jsonl", "ndjson": "jsonl", "feather": "arrow", "ipc": "arrow", "tab": "tsv"}

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"PK\x03\x04": "npz"}
_REFUSED = {
    b"\x93NUMPY": "a .npy file holds one array; save X and y together with numpy.savez",
    b"FEA1": "Feather version 1 is not read; write version 2",
    b"\x00\x00\x08": "IDX files are not read; save images and labels as X and y with numpy.savez",
    b"\xff\xfe": "the text is UTF-16; convert it to UTF-8",
    b"\xfe\xff": "the text is UTF-16; convert it to UTF-8",
    b"\x89HDF": "HDF5 is not read; write Parquet instead",
    b"\x80\x04": "pickles are not read: loading one can run any program; save X and y with numpy.savez",
    b"\x80\x05": "pickles are not read: loading one can run any program; save X and y with numpy.savez",
    b"SQLite": "databases are not read; write the table as CSV or Parquet",
}
_SVMLIGHT = re.compile(rb"\s*[+-]?[\d.][\d.,eE+-]*(\s+qid:\S+)?(\s+\d+:\S*)+\s*(#.*)?")
_LABEL = re.compile(rb"\s*[+-]?[\d.]+\s*(#.*)?")


def known(name: str) -> str:
    """Return the format that a name stands for."""
    form = ALIASES.get(name.lower(), name.lower())
    if form not in FORMATS:
        raise DataError(f"format {name!r} is not one of {', '.join(FORMATS)}")
    return form


def sniff(stream: Stream) -> str:
    r"""Tell the format of a stream.

    Examples
    --------
    >>> import io
    >>> sniff(Stream(io.BytesIO(b"+1 1:0.5 7:1\n"))), sniff(Stream(io.BytesIO(b"a,b\n1,2\n")))
    ('svmlight', 'csv')
    """
    head = stream.peek()
    if not head.strip():
        raise DataError(f"{stream.name}: the file is empty")
    for magic, form in _MAGIC.items():
        if head.startswith(magic):
            if form == "npz" and b".npy" not in head[:200]:
                raise DataError(f"{stream.name}: this is a zip archive and not a NumPy one; unpack it first")
            return form
    for magic, why in _REFUSED.items():
        if head.startswith(magic):
            raise DataError(f"{stream.name}: {why}")
    if b"\0" in head[:4096]:
        raise DataError(f"{stream.name}: these bytes are no format that is read: {', '.join(FORMATS)}")
    if b"\r" in head and b"\n" not in head:
        raise DataError(
            f"{stream.name}: lines end in a carriage return alone; convert them, for example with tr '\\r' '\\n'"
        )
    return _sniff_text(stream, head.removeprefix(MARK))


def _sniff_text(stream: Stream, head: bytes) -> str:
    first = head.lstrip()[:1]
    if first == b"{":
        return "jsonl"
    if first == b"[":
        raise DataError(f"{stream.name}: this is one JSON array; write an object a line, for example with jq -c '.[]'")
    lines = [line for line in head.splitlines()[:100] if line.strip() and not line.lstrip().startswith(b"#")]
    pairs = sum(_SVMLIGHT.fullmatch(line) is not None for line in lines)
    labels = sum(_LABEL.fullmatch(line) is not None for line in lines)
    return "svmlight" if pairs and 2 * (pairs + labels) > len(lines) else "csv"
