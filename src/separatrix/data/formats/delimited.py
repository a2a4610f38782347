"""Tables of text (CSV, TSV and their kin), a block at a time: a kernel finds the records, pyarrow reads their fields.

A column is of numbers (float64), whole numbers (int64: labels, or any column where the whole file is looked at first) or
text, as the first megabyte shows. Line ends inside quotes are read, and cost nothing where there are no quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from separatrix.data import column_types as columns
from separatrix.data import dialect
from separatrix.data.arrow_arrays import number_array
from separatrix.data.batches import Options, TableBatch
from separatrix.data.column_types import TEXT, TYPES, WHOLE
from separatrix.data.dialect import BLANKS, Records
from separatrix.data.errors import DataError, Origin, no_column, shown
from separatrix.data.streams import MARK, Block, Stream, blocks, in_order, last_line_end


@dataclass
class _Table:
    """The rows of a block, the lines before each, and what is wrong with others: (lines before, what)."""

    table: Any
    lines: NDArray[np.int32]
    n_lines: int
    faults: list[tuple[int, str]] = field(default_factory=list)


class DelimitedReader:
    """Reads delimited text; the first file tells how it is written, the others must be written alike."""

    kind = "columns"

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        self.file = stream.name
        head = stream.peek()
        self.dialect = dialect.sniff(head, stream.name, options)
        self.names = list(self.dialect.names)
        where = f"{stream.name}, line {self.dialect.line}"
        try:
            self.label = columns.label_name(self.names, options.label, self.dialect.label, where)
        except DataError as problem:
            raise DataError(f"{problem}{self.why_alone}") from None
        unknown = sorted(set(options.types) - set(self.names))
        if unknown:
            raise DataError(f"{where}: {no_column(unknown[0], self.names)} (types names it)")
        self.kinds: dict[str, str] = {}
        if not options.settle:
            text = np.frombuffer(head.removeprefix(MARK) + b"\n" * (not head.endswith(b"\n")), np.uint8)
            for block in _after(self.dialect.lead, [Block(text, self._cut(Block(text, len(text))))]):
                self._widen(block)
            self.settled()

    @property
    def why_alone(self) -> str:
        """What may be the reason, if the table has one column."""
        if len(self.names) > 1:
            return ""
        delimiter = self.options.delimiter
        wrong = "none of tab, semicolon, bar, comma and blanks" if delimiter is None else f"not {delimiter!r}"
        return f"; all is one column: the delimiter is {wrong}, and delimiter= names another"

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return pa.schema([(name, TYPES[self.kinds[name]]) for name in self.names])

    def settle(self, stream: Stream) -> None:
        """Widen the columns' types to what this file holds."""
        lead = self._lead(stream)
        for block in _after(lead, blocks(stream, self.options.batch_bytes, self._cut)):
            self._widen(block)

    def _widen(self, block: Block) -> None:
        text, records = self._records(block)
        good = records.fields == len(self.names)
        table, _ = self._texts(_text_of(text, records, good))
        for name, column in zip(self.names, table, strict=True):
            exact = self.options.settle or name == self.label
            self.kinds[name] = columns.wider(self.kinds.get(name), columns.kind_of(column, 1.0 if exact else columns.MOSTLY))
            if self.options.settle and columns.inexact(column):
                raise DataError(
                    f"{self.file}, column {name}: whole numbers that long cannot be held exactly; scale them down"
                )

    def settled(self) -> None:
        """Fix the types: as asked for, as declared, or as found; numbers are whole only where that is certain."""
        for name in self.names:
            kind = self.options.types.get(name) or self.dialect.kinds.get(name) or self.kinds.get(name, TEXT)
            if kind not in TYPES:
                raise DataError(f"types[{name!r}] is {kind!r}, not one of {', '.join(TYPES)}")
            if name == self.label and kind != WHOLE and name not in self.options.types:
                kind = TEXT
            elif kind == WHOLE and not (self.options.settle or name == self.label or name in self.options.types):
                kind = columns.NUMBER
            self.kinds[name] = kind

    def _lead(self, stream: Stream) -> int:
        """Return how many lines come before the first row of a file, which must be written as the first one is."""
        own = self.dialect
        if stream.name == self.file:
            return own.lead
        fixed = replace(
            self.options, delimiter=own.delimiter, quote=own.quote or "", header="auto" if own.kinds else own.titled
        )
        other = dialect.sniff(stream.peek(), stream.name, fixed)
        if other.names != own.names:
            theirs, ours = (", ".join(names[:6]) + (" …" if len(names) > 6 else "") for names in (other.names, own.names))
            raise DataError(f"{stream.name}, line {other.line}: the columns {theirs} are not those of {self.file}: {ours}")
        return other.lead

    def batches(self, stream: Stream) -> Iterator[TableBatch]:
        """Yield the rows of a stream."""
        lead = self._lead(stream)
        skips, before = self.options.skips, lead + 1
        pieces = _after(lead, blocks(stream, self.options.batch_bytes, self._cut))
        for piece in in_order(self._work, pieces, self.options.threads):
            for line, what in piece.faults:
                skips.report(f"{stream.name}, line {before + line}{what}")
            if piece.table is not None and piece.table.num_rows:
                yield TableBatch(piece.table, Origin.of(stream.name, piece.lines.astype(np.int64) + before))
            before += piece.n_lines

    def _cut(self, block: Block) -> int:
        quote, delimiter = self.dialect.quote, self.dialect.delimiter
        if quote is None or delimiter == BLANKS or quote.encode() not in block.text[: block.end].tobytes():
            return last_line_end(block)
        return dialect.split(block.text, block.end, delimiter, quote).end

    def _records(self, block: Block) -> tuple[NDArray[np.uint8], Records]:
        text, end = block
        if self.dialect.delimiter == BLANKS:
            text = np.frombuffer(dialect.squeezed(text[:end]), np.uint8)
            end = len(text)
        return text, dialect.split(text, end, self.dialect.delimiter, self.dialect.quote)

    def _work(self, block: Block) -> _Table:
        text, records = self._records(block)
        good = records.fields == len(self.names)
        faults = []
        for k in np.flatnonzero(~good & (records.fields != 0)):
            what = f": {records.fields[k]} columns where line {self.dialect.line} has {len(self.names)}"
            if records.fields[k] < 0:
                what = ": text goes on behind a closing quote; double it, or read quotes as they are with quote=''"
            faults.append((int(records.lines[k]), what))
        if records.end < (block.end if self.dialect.delimiter != BLANKS else len(text)):
            faults.append((records.n_lines, ": a quote is never closed; close it, or read quotes as they are with quote=''"))
        lines = records.lines[good]
        try:
            table, wrong = self._typed(_text_of(text, records, good), len(lines))
        except pa.ArrowInvalid as problem:
            what = " ".join(str(problem).split())[:120]
            return _Table(
                None, lines, records.n_lines, [*faults, (int(lines[0]), f": something from here on cannot be read ({what})")]
            )
        faults += [(int(lines[i]), what) for i, what in wrong.items()]
        if wrong:
            fits = np.ones(len(lines), np.bool_)
            fits[list(wrong)] = False
            table, lines = table.filter(number_array(fits)), lines[fits]
        faults.sort(key=lambda fault: fault[0])
        return _Table(table, lines, records.n_lines, faults)

    def _typed(self, text: Any, n: int) -> tuple[Any, dict[int, str]]:
        """Return the columns of some records, and what is wrong with rows of them."""
        if n == 0:
            return None, {}
        try:
            table = self._parsed(text, {name: TYPES[self.kinds[name]] for name in self.names})
            if self.dialect.spaced:
                texts = {
                    name: columns.trimmed(table[name], self.options.missing)
                    for name in self.names
                    if self.kinds[name] == TEXT
                }
                table = pa.RecordBatch.from_pydict({name: texts.get(name, table[name]) for name in self.names})
            if all(self._is_finite(table[name]) for name in self.names):
                return table, {}
        except pa.ArrowInvalid:
            pass
        return self._careful(text)

    @staticmethod
    def _is_finite(column: Any) -> bool:
        return column.type != pa.float64() or pc.all(pc.is_finite(column)).as_py() is not False

    def _careful(self, text: Any) -> tuple[Any, dict[int, str]]:
        """Read strings first, so that an error can name what is not a number."""
        table, wrong = self._texts(text)
        made = {}
        for j, (name, column) in enumerate(zip(self.names, table, strict=True)):
            place = f", column {j + 1}" + (f" ({name})" if self.dialect.titled else "")
            kind = self.kinds[name]
            if kind == TEXT:
                made[name] = column
                continue
            made[name], bad = columns.numbers(column, kind)
            if kind != WHOLE:
                made[name], infinite = columns.without_nan(made[name])
                bad = np.append(bad, infinite)
            for i in bad.tolist():
                what = "a whole number, as the labels before it are" if kind == WHOLE else "a finite number"
                advice = f"mend it, or read the column as text with types={{{name!r}: 'text'}}"
                wrong.setdefault(i, f"{place}: {shown(column[i].as_py())} is not {what}; {advice}")
        return pa.RecordBatch.from_pydict(made), wrong

    def _texts(self, text: Any) -> tuple[list[Any], dict[int, str]]:
        """Return the columns as strings, trimmed unless they are text as it stands, and the rows that are not UTF-8."""
        made, wrong = [], {}
        raw = self._parsed(text, dict.fromkeys(self.names, pa.binary())) if len(text) else None
        for j, name in enumerate(self.names):
            column, bad = columns.decoded(pa.nulls(0, pa.binary()) if raw is None else raw[name])
            for i in bad:
                wrong[i] = (
                    f", column {j + 1}: the text is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
                )
            if self.dialect.spaced or self.kinds.get(name) != TEXT:
                column = columns.trimmed(column, self.options.missing)
            made.append(column)
        return made, wrong

    def _parsed(self, text: Any, types: dict[str, Any]) -> Any:
        missing = list(self.options.missing)
        if self.dialect.spaced:
            missing += [f" {marker}" for marker in missing]
        delimiter = "\t" if self.dialect.delimiter == BLANKS else self.dialect.delimiter
        table = arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=self.names),
            arrow_csv.ParseOptions(delimiter=delimiter, quote_char=self.dialect.quote or False, newlines_in_values=False),
            arrow_csv.ConvertOptions(
                column_types=types, null_values=missing, strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
        return table.combine_chunks().to_batches()[0]


def _text_of(text: NDArray[np.uint8], records: Records, good: NDArray[np.bool_]) -> Any:
    """Return the bytes of the good records."""
    if good.all():
        return text[: records.end]
    bounds = np.append(records.starts, records.end)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    return b"".join(text[bounds[a] : bounds[b]].tobytes() for a, b in zip(edges[::2], edges[1::2], strict=True))


def _after(lead: int, source: Iterable[Block]) -> Iterator[Block]:
    """Leave out the first lines."""
    for text, end in source:
        begin = 0
        if lead:
            newline = text[:end] == ord("\n")
            lone_return = (text[:end] == ord("\r")) & ~np.append(newline[1:], False)
            ends = np.flatnonzero(newline | lone_return)
            begin = int(ends[min(lead, len(ends)) - 1]) + 1
            lead -= min(lead, len(ends))
        if begin < end:
            yield Block(text[begin:], end - begin)
