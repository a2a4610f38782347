"""The records of delimited text, and the fields of one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from separatrix.kernels.parsing import records as kernels

BLANKS = " "
"""The delimiter of a table whose fields are set apart by runs of blanks."""


@dataclass(frozen=True)
class Records:
    """The records of some text: where each begins, the lines before it, its fields; and where the whole ones end."""

    starts: NDArray[np.int64]
    lines: NDArray[np.int32]
    fields: NDArray[np.int32]
    end: int
    n_lines: int


def split(text: NDArray[np.uint8], end: int, delimiter: str, quote: str | None, most: int | None = None) -> Records:
    """Find the records of text[:end], or the first `most` of them."""
    room = min(end + 1, most or end + 1)
    starts, lines, fields = np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    view = text.view()
    view.flags.writeable = False
    marks = (np.uint8(ord("\t" if delimiter == BLANKS else delimiter)), np.uint8(ord(quote) if quote else 0))
    n, whole, n_lines = kernels.split(view, 0, end, *marks, starts, lines, fields)
    return Records(starts[:n], lines[:n], fields[:n], int(whole), int(n_lines))


def squeezed(text: bytes | NDArray[np.uint8]) -> bytes:
    r"""Put one tab for each run of blanks outside quotes, and none at the ends of lines.

    Examples
    --------
    >>> squeezed(b'  18.0   8\t"ford torino" \n')
    b'18.0\t8\t"ford torino"\n'
    """
    source = np.frombuffer(bytes(text), np.uint8)
    out = np.empty(len(source), np.uint8)
    size = kernels.squeeze(source, len(source), np.uint8(ord('"')), out)
    return out[: int(size)].tobytes()


def cells(record: str, delimiter: str, quote: str | None) -> list[str]:
    """Return the fields of a record, without their quotes.

    Examples
    --------
    >>> cells("1,'a, b',c", ",", "'")
    ['1', 'a, b', 'c']
    """
    delimiter = "\t" if delimiter == BLANKS else delimiter
    record = record.rstrip("\r\n")
    if not quote or quote not in record:
        return record.split(delimiter)
    cell = re.compile(
        rf"{quote}((?:[^{quote}]|{quote}{quote})*){quote}([^{re.escape(delimiter)}]*)|([^{re.escape(delimiter)}]*)"
    )
    fields, at = [], 0
    while at <= len(record):
        match = cell.match(record, at)
        assert match is not None
        quoted = match[1] is not None
        fields.append(match[1].replace(quote * 2, quote) + match[2] if quoted else match[3])
        at = match.end() + 1
    return fields
