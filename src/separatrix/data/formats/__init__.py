"""The file formats, one reader module each, and the table of them.

In comes a `Stream` of bytes; out go batches of rows or of columns that know their file and line. A new format takes a module
here, with a class that has `kind` ("rows" or "columns") and `batches(stream)`, and one entry in `FORMATS`: recognition by
content, the names accepted for `format=` and `--format`, and the help texts all read this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Format:
    """One file format.

    Attributes
    ----------
    name : what `--format` and `Source.format` call it
    title : what people call it
    reader : "module.Class" in this package, called with a stream and the options
    recognizes : tells from the first bytes whether a file has this format; None for CSV, which any other text is taken for
    binary : whether the format is not text
    aliases : other names for `--format`
    variant_of : the name of the format that it is read as, with `options` for those that are not given
    """

    name: str
    title: str
    reader: str = ""
    recognizes: Callable[[bytes], bool] | None = None
    binary: bool = False
    aliases: tuple[str, ...] = ()
    variant_of: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def open(self, stream: Any, options: Any) -> Any:
        """Return a reader of a stream; its module is imported now, since each needs other packages."""
        module, class_name = self.reader.split(".")
        return getattr(import_module(f"{__name__}.{module}"), class_name)(stream, options)


_NUMBER = rb"([+-]?[\d.][\d.,eE+-]*|\?|NA|-?(?i:nan))"
"""A label, which may be missing."""
_SVMLIGHT = re.compile(rb"\s*" + _NUMBER + rb"(\s+qid:\S+)?(\s+\d+:[^\s:,;]*)+\s*(#.*)?")  # 14:05:11 is a time
_LABEL = re.compile(rb"\s*[+-]?[\d.]+\s*(#.*)?")


def _begins_with(*magic: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magic)


def _is_svmlight(head: bytes) -> bool:
    """Tell whether most lines are a label with index:value pairs; some may be a label alone."""
    lines = [line for line in head.splitlines()[:100] if line.strip() and not line.lstrip().startswith(b"#")]
    pairs = sum(b":" in line and _SVMLIGHT.fullmatch(line) is not None for line in lines)
    labels = sum(_LABEL.fullmatch(line) is not None for line in lines)
    return bool(pairs) and 2 * (pairs + labels) > len(lines)


FORMATS = {
    entry.name: entry
    for entry in (
        Format("svmlight", "svmlight", "svmlight.SvmlightReader", _is_svmlight, aliases=("libsvm",)),
        Format("csv", "CSV", "delimited.DelimitedReader"),
        Format("tsv", "TSV", variant_of="csv", options={"delimiter": "\t"}, aliases=("tab",)),
        Format(
            *("jsonl", "JSON lines", "jsonlines.JsonReader"),
            recognizes=lambda head: head.lstrip().startswith(b"{"),
            aliases=("json", "ndjson"),
        ),
        Format("parquet", "Parquet", "arrow.ParquetReader", _begins_with(b"PAR1"), binary=True),
        Format(
            *("arrow", "Arrow", "arrow.ArrowReader", _begins_with(b"ARROW1", b"\xff\xff\xff\xff")),
            binary=True,
            aliases=("feather", "ipc"),
        ),
        Format(
            *("npz", "npz", "npz.ArchiveReader"),
            recognizes=lambda head: head.startswith(b"PK\x03\x04") and b".npy" in head[:200],
            binary=True,
        ),
    )
}
*_names, _last_name = FORMATS
NAMES = f"{', '.join(_names)} or {_last_name}"
TITLES = ", ".join(entry.title for entry in FORMATS.values())
