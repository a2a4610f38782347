"""The delimiter of a table of text, and whether quotes delimit its fields."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from separatrix.data.batches import Options
from separatrix.data.dialects.headers import NUMBER, names_known
from separatrix.data.dialects.records import BLANKS, cells, split, squeezed

CANDIDATES = "\t,;|"
CONSISTENT = 0.9
"""A delimiter is consistent that cuts this share of the lines into the same number of fields."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.]*,\d+\s*")
TITLES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", BLANKS: "blanks"}


def delimiter_of(text: bytes, options: Options, whole: bool, name: str) -> str:
    """Return the delimiter of a table that begins with `text`; `whole`: there is no more of it.

    A model that was trained on a file without a header knows its delimiter: another file has it, too, where it cuts that
    into the same columns.
    """
    delimiter, layout = _delimiter(text, options, whole), options.layout
    if layout is None or layout.delimiter is None or layout.delimiter == delimiter:
        return delimiter
    own = layout.delimiter
    cut = squeezed(text) if own == BLANKS else text
    counts = Counter(n for n in np.abs(_fields(cut, own, quote_of(cut, own, options, whole))).tolist() if n)
    (usual, often), *_ = counts.most_common(1) or [(0, 0)]
    if often < CONSISTENT * counts.total() or layout.names_of(usual, options.label_needed) is None:
        return delimiter
    if delimiter.encode() in text:
        as_learned = f"read with {TITLES.get(own, repr(own))} between the columns, as the model was trained"
        options.notes.setdefault(f"delimiter of {name}", f"{name}: {as_learned}; delimiter= names another delimiter")
    return own


def _fields(text: bytes, delimiter: str, quote: str | None) -> NDArray[np.int32]:
    """Return the number of fields of each of the first records, negative where a quote is not right."""
    return split(np.frombuffer(text, np.uint8), len(text), delimiter, quote, 1000).fields


def _delimiter(text: bytes, options: Options, whole: bool) -> str:
    scores = {}
    for delimiter in CANDIDATES:
        quote = quote_of(text, delimiter, options, whole)
        scores[delimiter] = _agreement(np.abs(_fields(text, delimiter, quote)))
    consistent = [delimiter for delimiter, (share, _) in scores.items() if share >= CONSISTENT]
    best = max(scores, key=lambda delimiter: scores[delimiter][0])
    if len(consistent) > 1:
        evidence = [_Evidence(text, delimiter, scores[delimiter][1], options, whole) for delimiter in consistent]
        best = max(evidence, key=_Evidence.rank).delimiter
    short = text[: text.rfind(b"\n", 0, 1 << 16) + 1]
    spread = squeezed(short)
    records = split(np.frombuffer(spread, np.uint8), len(spread), BLANKS, quote_of(spread, BLANKS, options, False))
    share, many = _agreement(np.abs(records.fields))
    if share >= CONSISTENT and (many > scores[best][1] or scores[best][0] < 0.5):
        titles, _, rows = spread.decode("utf-8", "replace").partition("\n")
        words = (rows or titles).split()
        if sum(NUMBER.fullmatch(word) is not None for word in words) * 2 >= len(words):
            return BLANKS
    return best if scores[best][0] else ","


class _Evidence:
    """What the first lines show for a delimiter that cuts nearly all of them into as many fields, where others do so, too.

    The characters of a set (`Comedy|Drama`), of a decimal comma or of a place (`48.1;11.5`) may be in every row, but not in
    the header, and they leave fields in pieces that hold the delimiter.
    """

    def __init__(self, text: bytes, delimiter: str, width: int, options: Options, whole: bool) -> None:
        self.delimiter, self.width = delimiter, width
        quote = quote_of(text, delimiter, options, whole)
        records = split(np.frombuffer(text, np.uint8), len(text), delimiter, quote, 100)
        bounds = [*records.starts.tolist(), records.end]
        filled = [ends for ends, n in zip(pairwise(bounds), records.fields.tolist(), strict=True) if n]
        lines = [text[begin:end].decode("utf-8", "replace").strip("\r\n") for begin, end in filled]
        first = [cell.strip() for cell in cells(lines[0], delimiter, quote)]
        self.is_known = names_known(first, options)
        self.fits_header = len(first) == width
        apart = re.escape(delimiter)
        quoted = re.compile(rf'(?:^|(?<={apart}))"(?:[^"]|"")*"(?=$|{apart})')
        pieces = [piece for line in lines for piece in quoted.sub("", line).split(delimiter)]
        others = set(CANDIDATES) - {delimiter}
        whole_cells = sum(not others & set(piece) or _DECIMAL_COMMA.fullmatch(piece) is not None for piece in pieces)
        self.share = round(whole_cells / len(pieces), 1)
        self.is_spaced = all(piece[:1] == " " for line in lines for piece in line.split(delimiter)[1:])

    def rank(self) -> tuple[bool, bool, float, int, bool]:
        """Return what is the greater the better it fits; of equal ones, the first of the candidates is taken."""
        return self.is_known, self.fits_header, self.share, self.width, not self.is_spaced


def _agreement(fields: NDArray[np.int32]) -> tuple[float, int]:
    """Return which share of the records has the usual number of fields, where that is above 1, and that number."""
    counts = Counter(n for n in fields.tolist() if n)
    usual, often = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    return (often / counts.total(), usual) if usual > 1 else (0.0, 1)


def quote_of(text: bytes, delimiter: str, options: Options, whole: bool) -> str | None:
    """Return the character around quoted fields; None where quotes are plain characters."""
    if options.quote != "auto":
        return options.quote or None
    if b'"' not in text:
        return "'" if delimiter != BLANKS and _in_apostrophes(text, delimiter.encode()) else '"'
    records = split(np.frombuffer(text, np.uint8), len(text), delimiter, '"')
    left = text[records.end :]
    broken = bool((records.fields < 0).any()) or (left.count(b"\n") > (0 if whole else 100))
    return None if broken and not _is_quoted(text, delimiter) else '"'


def _in_apostrophes(text: bytes, delimiter: bytes) -> bool:
    """Tell whether each of the first rows has fields in apostrophes, and apostrophes nowhere else."""
    lines = [line.strip() for line in text.split(b"\n", 101)[:100]]
    quoted = re.compile(rb"'[^']*'")
    fields = [[field.strip() for field in line.split(delimiter)] for line in lines if line]
    return (
        len(fields) > 2
        and all(any(map(quoted.fullmatch, line)) for line in fields[1:])
        and all(quoted.fullmatch(field) or b"'" not in field for line in fields for field in line)
    )


def _is_quoted(text: bytes, delimiter: str) -> bool:
    """Tell whether more records have as many fields as the first when quotes are read: then a broken one is an error."""
    likeness = []
    for quote in ('"', None):
        fields = _fields(text, delimiter, quote)
        fields = fields[fields != 0]
        likeness.append(float(np.mean(fields == fields[0])) if len(fields) and fields[0] > 1 else 0.0)
    return likeness[0] > max(0.9, likeness[1])
