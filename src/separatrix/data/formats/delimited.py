"""Tables of text (CSV, TSV and their kin), a block at a time: a kernel finds the records, pyarrow reads their fields.

A column is of numbers (float64), whole numbers (int64: labels, or any column where the whole file is looked at first) or
text, as the first megabyte shows. Line ends inside quotes are read, and cost nothing where there are no quotes. Blanks
around values are no part of them. A word in a column of numbers is missing there (`stray_words.py`); one among labels that
were whole numbers up to it makes the labels text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from numpy.typing import NDArray

from separatrix.data import column_types as columns
from separatrix.data.arrow_arrays import number_array, numpy_array
from separatrix.data.batches import CLASS_NAMES, Options, TableBatch
from separatrix.data.column_types import TEXT, TYPES, WHOLE
from separatrix.data.dialects.dialect import sniff
from separatrix.data.dialects.number_columns import split_off
from separatrix.data.dialects.records import BLANKS, Records, places_of, split_rows, squeezed
from separatrix.data.encodings import AUTO, MARK, MENDED, undecodable
from separatrix.data.errors import LEAVE_OUT, DataError, Origin, ReadAgainError, counted, named, no_column, shown
from separatrix.data.formats.delimited_blocks import Fault, ReadBlock, TypedRecords
from separatrix.data.kept_columns import ROW_NAME, as_written, columns_to_keep
from separatrix.data.stray_words import StrayWords
from separatrix.data.streams import HEAD, Block, Stream, after_lines, blocks, in_order, whole_lines

STRAY_QUOTE = "a quote is never closed: it is read as a plain character"
HEADER_AGAIN = "the header is repeated: such lines are skipped"
PADDING = "\n"
"""What is behind the delimiter at the end of a line; no column can be called so."""


class DelimitedReader:
    """Reads delimited text; the first file tells how it is written, the others must be written alike."""

    kind = "columns"

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        self.file = stream.name
        head = stream.peek()
        self.dialect = sniff(head, stream.name, options)
        self.names = list(self.dialect.names)
        where = f"{stream.name}, line {self.dialect.line}"
        try:
            self.label = columns.label_name(self.names, options.label, self.dialect.label, where, options.label_needed)
        except DataError as problem:
            raise DataError(f"{problem}{self.why_alone}") from None
        unknown = sorted(set(options.types) - set(self.names))
        if unknown:
            raise DataError(f"{where}: {no_column(unknown[0], self.names)} (types names it)")
        self.kept = columns_to_keep(self.names, options.keep, where, [ROW_NAME] * self.dialect.row_names)
        self.kinds: dict[str, str] = {}
        self.strays = StrayWords()
        self.missing = options.missing
        ends_here = len(head) < HEAD and not head.endswith(b"\n")
        text = np.frombuffer(head.removeprefix(MARK) + b"\n" * ends_here, np.uint8)
        for block in after_lines(self.dialect.lead, [self._cut(Block(text, len(text)))]):
            self.missing = self._markers(block)
            if not options.settle:
                self._widen(block)
        if not options.settle:
            self.settled()

    def _markers(self, block: Block) -> tuple[str, ...]:
        """Return what stands for a missing value: not the words that are names of classes where labels have them."""
        if self.label is None:
            return self.missing
        content = block.text[: block.end].tobytes()
        words = {word for word in CLASS_NAMES if word in self.missing and word.encode() in content}
        if not words:
            return self.missing
        text, records = self._records(block)
        good = self._text_of(text, records, self._good(text, records)[0])
        if not len(good):
            return self.missing
        labels = self._parsed(good, {self.label: pa.binary()}, [self.label], ())[self.label].unique().to_pylist()
        words &= {label.strip().decode("utf-8", "replace") for label in labels if label}
        return tuple(marker for marker in self.missing if marker not in words)

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
        for block in after_lines(lead, blocks(stream, self.options.batch_bytes, self._cut)):
            self._widen(block)

    def _widen(self, block: Block) -> None:
        text, records = self._records(block)
        good, _ = self._good(text, records)
        table, _ = self._texts(self._text_of(text, records, good))
        for name, column in zip(self.names, table, strict=True):
            exact = self.options.settle or name == self.label
            kind = columns.kind_of(column, 1.0 if exact else columns.MOSTLY)
            if name == self.label and name not in self.options.types and columns.has_leading_zeros(column):
                kind = TEXT
            if not exact and kind == WHOLE and columns.is_rounded(column):
                kind = TEXT
            self.kinds[name] = columns.wider(self.kinds.get(name), kind)
            if self.options.settle and name not in self.options.unused and columns.inexact(column):
                raise DataError(
                    f"{self.file}, column {name}: whole numbers that long cannot be held exactly; scale them down"
                )

    def settled(self) -> None:
        """Fix the types: as asked for, as declared, or as found; numbers are whole only where that is certain."""
        for name in self.names:
            kind = self.options.kind_of(name) or self.dialect.kinds.get(name) or self.kinds.get(name, TEXT)
            if name in self.options.unused:
                kind = TEXT
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
            self.options,
            delimiter=own.delimiter,
            quote=own.quote or "",
            header="auto" if own.kinds else own.titled,
            columns=own.names if own.titled else (),
        )
        other = sniff(stream.peek(), stream.name, fixed)
        if other.names != own.names:
            theirs, ours = (", ".join(names[:6]) + (" …" if len(names) > 6 else "") for names in (other.names, own.names))
            how = "have another order than" if sorted(other.names) == sorted(own.names) else "are not those of"
            raise DataError(f"{stream.name}, line {other.line}: the columns {theirs} {how} {self.file}: {ours}")
        return other.lead

    def batches(self, stream: Stream) -> Iterator[TableBatch]:
        """Yield the rows of a stream."""
        lead = self._lead(stream)
        skips, before = self.options.skips, lead + 1
        numeric = [name for name in self.names if self.kinds[name] == columns.NUMBER]
        pieces = after_lines(lead, blocks(stream, self.options.batch_bytes, self._cut))
        for piece in in_order(self._work, pieces, self.options.threads):
            for line, what, n_lines in piece.faults:
                skips.report(f"{stream.name}, line {before + line}{what}", n_lines)
            for line, what in piece.oddities.items():
                self.options.notes.setdefault(f"{what} {stream.name}", f"{stream.name}, line {before + line}: {what}")
            for i in piece.mended[:1]:
                place = f"{stream.name}, line {before + int(piece.lines[i])}"
                self.options.notes.setdefault(f"encoding of {stream.name}", f"{place}: {MENDED}")
            for i, name, word in piece.words:
                place = f"{stream.name}, line {before + int(piece.lines[i])}"
                if name == self.label and self.options.expected is None:
                    self.kinds[name] = TEXT
                    raise ReadAgainError(f"{place}: the label {shown(word)} is no whole number, as those before it are")
                if name != self.label:
                    self.strays.add_word(name, word, place)
            if piece.table is not None and piece.table.num_rows:
                for name in numeric:
                    self.strays.add_values(name, piece.table[name])
                yield TableBatch(piece.table, Origin.of(stream.name, piece.lines.astype(np.int64) + before), piece.kept)
            before += piece.n_lines

    def _cut(self, block: Block) -> Block:
        """Return the whole records of a block, and where they are, if that had to be found out."""
        quote, delimiter = self.dialect.quote, self.dialect.delimiter
        if quote is None or delimiter == BLANKS or not np.any(block.text[: block.end] == ord(quote)):
            return whole_lines(block)
        records = split_rows(block.text, block.end, delimiter, quote, self.dialect.n_fields)
        return Block(block.text, records.end, records)

    def _records(self, block: Block) -> tuple[NDArray[np.uint8], Records]:
        text, end, records = block
        if self.dialect.delimiter == BLANKS:
            text = np.frombuffer(squeezed(text[:end]), np.uint8)
            end = len(text)
        return text, records or split_rows(text, end, self.dialect.delimiter, self.dialect.quote, self.dialect.n_fields)

    def _good(self, text: NDArray[np.uint8], records: Records) -> tuple[NDArray[np.bool_], list[int]]:
        """Return which records are rows, and which are the header that comes again, where files were put together."""
        headers = places_of(self.dialect.header, text, records) if self.dialect.header else []
        good = records.fields == self.dialect.n_fields
        good[headers] = False
        return good, headers

    def _text_of(self, text: NDArray[np.uint8], records: Records, good: NDArray[np.bool_]) -> Any:
        return records.text_of(text, good, self.dialect.delimiter, self.dialect.quote)

    def _work(self, block: Block) -> ReadBlock:
        text, records = self._records(block)
        good, headers = self._good(text, records)
        faults = []
        is_faulty = ~good & (records.fields != 0)
        is_faulty[headers] = False
        ends = np.append(records.lines[1:], records.n_lines)
        for k in np.flatnonzero(is_faulty):
            width, remedy = counted(int(records.fields[k]), "column"), records.remedy_of(k, text, self.dialect.delimiter)
            what = f": {width} where line {self.dialect.line} has {self.dialect.n_fields}; {remedy}"
            if records.fields[k] < 0:
                what = ": text goes on behind a closing quote; double it, or read quotes as they are with quote=''"
            faults.append(Fault(int(records.lines[k]), what, int(ends[k] - records.lines[k])))
        end = block.end if self.dialect.delimiter != BLANKS else len(text)
        if records.end < end:
            what = ": a quote is never closed; close it, or read quotes as they are with quote=''"
            faults.append(Fault(records.n_lines, what, int(np.count_nonzero(text[records.end : end] == ord("\n")))))
        lines = records.lines[good]
        try:
            fields = self._text_of(text, records, good)
            found, kept = self._typed(fields, len(lines)), self._as_written(fields) if len(lines) else None
        except pa.ArrowInvalid as problem:
            what = " ".join(str(problem).split())[:120]
            return ReadBlock(
                *(None, lines, records.n_lines),
                [*faults, Fault(int(lines[0]), f": something from here on cannot be read ({what})")],
            )
        table, words = found.table, found.words
        faults += [Fault(int(lines[i]), what) for i, what in found.wrong.items()]
        if found.wrong:
            fits = np.ones(len(lines), np.bool_)
            fits[list(found.wrong)] = False
            table, lines = table.filter(number_array(fits)), lines[fits]
            kept = None if kept is None else kept.filter(number_array(fits))
            row_of = np.cumsum(fits) - 1
            words = [(int(row_of[i]), name, word) for i, name, word in words if fits[i]]
            found.mended = [int(row_of[i]) for i in found.mended if fits[i]]
        faults.sort(key=lambda fault: fault.line)
        oddities = {int(records.lines[k]): STRAY_QUOTE for k in records.plain if good[k]}
        oddities |= {int(records.lines[k]): HEADER_AGAIN for k in headers}
        return ReadBlock(table, lines, records.n_lines, faults, words, found.mended, kept, oddities)

    def _as_written(self, text: Any) -> Any:
        """Return the columns of some records that are to be kept, if any."""
        fields = self._parsed(text, dict.fromkeys(self.kept, pa.binary()), self.kept, ()) if self.kept else None
        return as_written(fields, self.options.encoding == AUTO, self.dialect.spaced)

    def _typed(self, text: Any, n: int) -> TypedRecords:
        """Return the columns of some records, and what is wrong with rows of them."""
        if n == 0:
            return TypedRecords(None)
        try:
            types = {name: TYPES[self.kinds[name]] for name in self.names}
            spelled = self._spelled_label
            if spelled is not None:
                types[spelled] = pa.string()
            table, are_finite = self._parsed_in_parts(text, n, types), True
            if table is None:
                table = self._parsed(text, types)
                are_finite = all(self._is_finite(table[name]) for name in self.names)
            if are_finite:
                bare = {
                    name: columns.stripped(table[name], self._markers_in(name)) if self.kinds[name] == TEXT else table[name]
                    for name in self.names
                }
                if spelled is not None:
                    bare[spelled] = columns.whole_labels(bare[spelled])
                return TypedRecords(
                    table if all(bare[name] is table[name] for name in bare) else pa.RecordBatch.from_pydict(bare)
                )
        except pa.ArrowInvalid:
            pass
        return self._careful(text)

    @property
    def _spelled_label(self) -> str | None:
        """The column of labels that are whole numbers, unless said to be: they are read as text first, 02134 is not 2134."""
        label = self.label
        return label if label is not None and self.kinds[label] == WHOLE and label not in self.options.types else None

    @staticmethod
    def _is_finite(column: Any) -> bool:
        return column.type != pa.float64() or pc.all(pc.is_finite(column)).as_py() is not False

    def _careful(self, text: Any) -> TypedRecords:
        """Read strings first, so that what is not a number is found."""
        texts, found = self._texts(text)
        made = {}
        for j, (name, column) in enumerate(zip(self.names, texts, strict=True)):
            kind = self.kinds[name]
            if kind == TEXT:
                made[name] = column
                continue
            made[name], bad = columns.numbers(column, kind, name == self._spelled_label)
            if name == self.label and len(bad):
                # Labels that are whole numbers are written as the classes before them are: 1 for +1.
                whole = pc.cast(made[name], pa.string())
                made[name] = pc.if_else(pc.is_valid(whole), whole, column)
            infinite = [i for i in bad.tolist() if columns.is_infinite(column[i].as_py())]
            found.words += [(i, name, column[i].as_py()) for i in bad.tolist() if i not in infinite]
            if kind != WHOLE:
                made[name], overflown = columns.without_nan(made[name])
                place = f", column {j + 1 + self.dialect.row_names}" + (f" ({named(name)})" if self.dialect.titled else "")
                for i in [*infinite, *overflown.tolist()]:
                    value = shown(column[i].as_py())
                    found.wrong.setdefault(i, f"{place}: {value} is not a finite number; mend it, or {LEAVE_OUT}")
        found.words.sort(key=lambda word: word[0])
        found.table = pa.RecordBatch.from_pydict(made)
        return found

    def _texts(self, text: Any) -> tuple[list[Any], TypedRecords]:
        """Return the columns as strings without blanks around them, and the rows that cannot be decoded."""
        made, found = [], TypedRecords(None)
        mending = self.options.encoding == AUTO
        raw = self._parsed(text, dict.fromkeys(self.names, pa.binary())) if len(text) else None
        for place, name in enumerate(self.names, 1 + self.dialect.row_names):
            content = pa.nulls(0, pa.binary()) if raw is None else raw[name]
            column, bad, mended = columns.decoded(content, mending)
            found.mended += mended
            for i in bad:
                found.wrong[i] = f", column {place}: {undecodable(content[i].as_py(), self.options.encoding)}"
            is_text = self.kinds.get(name) == TEXT
            made.append((columns.stripped if is_text else columns.trimmed)(column, self._markers_in(name)))
        found.mended.sort()
        return made, found

    def _markers_in(self, name: str) -> tuple[str, ...]:
        """Return what stands for a missing value in a column."""
        words = self.options.label_words if name == self.label else ()
        return tuple(marker for marker in self.missing if marker not in words)

    def _spaced(self, markers: Sequence[str]) -> list[str]:
        """Return markers of missing values as they may be written."""
        return [*markers, *(f" {marker}" for marker in markers if self.dialect.spaced)]

    def _parsed_in_parts(self, text: Any, n: int, types: dict[str, Any]) -> Any:
        """Return the columns of n records, numbers read by a kernel and the others by pyarrow; None if that cannot be."""
        dialect, is_number = self.dialect, [types[name] == pa.float64() for name in self.names]
        has_other_fields = dialect.row_names or dialect.padded or dialect.delimiter == BLANKS
        if has_other_fields or not isinstance(text, np.ndarray):  # only a view of a block has room behind it
            return None
        parts = split_off(text, n, dialect.delimiter, dialect.quote, is_number, self._spaced(self.missing))
        if parts is None:
            return None
        numbers, rest = parts
        arrays = dict(zip((name for name in self.names if types[name] == pa.float64()), numbers, strict=True))
        others = [name for name in self.names if name not in arrays]
        if others:
            table = self._parsed(rest, {name: types[name] for name in others}, others, names=others)
            arrays |= {name: table[name] for name in others}
        return pa.RecordBatch.from_pydict({name: arrays[name] for name in self.names})

    def _parsed(
        self,
        text: Any,
        types: dict[str, Any],
        only: Sequence[str] = (),
        markers: tuple[str, ...] | None = None,
        names: Sequence[str] = (),
    ) -> Any:
        missing = self._spaced(self.missing if markers is None else markers)
        delimiter = "\t" if self.dialect.delimiter == BLANKS else self.dialect.delimiter
        names = names or [*[ROW_NAME] * self.dialect.row_names, *self.names, *[PADDING] * self.dialect.padded]
        table = arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(text)),
            arrow_csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            arrow_csv.ParseOptions(
                delimiter=delimiter,
                quote_char=self.dialect.quote or False,
                newlines_in_values=False,
                ignore_empty_lines=len(names) > 1,
            ),
            arrow_csv.ConvertOptions(
                column_types=types | {PADDING: pa.string()},
                include_columns=list(only or (name for name in names if name != ROW_NAME)),
                null_values=missing,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        batch = table.combine_chunks().to_batches()[0]
        if self.options.label_words and self.label is not None and markers is None and self.label in types:
            place, own = names.index(self.label) - self.dialect.row_names, self._markers_in(self.label)
            labels = self._parsed(text, {self.label: types[self.label]}, [self.label], own, names)
            batch = batch.set_column(place, self.label, labels[self.label])
        if not self.dialect.padded or only:
            return batch
        if np.any(numpy_array(pc.binary_length(pc.utf8_trim_whitespace(batch[PADDING]))) > 0):
            raise DataError(f"{self.file}: a line has a value behind its last column, where the first lines have none")
        return batch.drop_columns([PADDING])
