"""JSON lines: one object a line, of numbers, strings, true and false, lists of strings, and objects of these.

The keys of an object in an object follow its own key and a dot, as in "user.age"; a null in its place is nothing at all.
A key that a line lacks is missing there, and so is NaN, which Python writes. What a key holds is told by the first megabyte.
A number among strings is read as its text, unless a model reads such texts as numbers; a string among numbers is missing
there unless it is a number (`stray_words.py`); among labels that are whole numbers it makes the labels text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from separatrix.data import column_types as columns
from separatrix.data.arrow_arrays import text_array
from separatrix.data.batches import Options, TableBatch
from separatrix.data.column_types import NUMBER, TEXT, WHOLE
from separatrix.data.encodings import AUTO, MENDED, is_utf8, mended, undecodable
from separatrix.data.errors import LEAVE_OUT, DataError, Origin, ReadAgainError, shown
from separatrix.data.kept_columns import columns_to_keep, flattened, json_columns
from separatrix.data.stray_words import StrayWords
from separatrix.data.streams import Block, Stream, blocks, in_order

MOST_OBJECTS = 200
"""How many keys may hold objects where Arrow is to parse them; lines with more are read one by one, which is slower."""
FLAG, LIST = "flag", "list"
_TYPES = columns.TYPES | {FLAG: pa.bool_(), LIST: pa.list_(pa.string())}
_WORDS = {WHOLE: "a whole number", FLAG: "true or false", LIST: "a list of strings"}


@dataclass
class _Lines:
    """The objects of a block: the table, its lines counted from 0, and what is wrong with others: (line, what).

    `words`: (line, key, value) for what is not what its key holds; `mended`: whether some bytes are not UTF-8.
    """

    table: Any
    lines: Any
    n_lines: int
    faults: list[tuple[int, str]] = field(default_factory=list)
    words: list[tuple[int, str, str]] = field(default_factory=list)
    mended: bool = False
    kept: Any = None


class JsonReader:
    """Reads JSON lines; the first megabyte tells the keys and what they hold."""

    kind = "columns"

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        self.kinds: dict[str, str] = {}
        self.strays = StrayWords()
        self._met: dict[str, Counter[str]] = {}
        self._rounded: set[str] = set()
        """Keys with whole numbers that float64 does not hold exactly, such as account numbers."""
        self._parents: set[str] = set()
        head = stream.peek()
        sample = head[: head.rfind(b"\n") + 1] or head
        for line, text in enumerate(sample.split(b"\n"), 1):
            values, what = _object(text, options.encoding, self._parents)
            if what and not options.skips.skipping:
                raise DataError(f"{stream.name}, line {line}: {what}")
            self._widen(values)
        self._forget_empty_parents()
        if not self._met:
            raise DataError(f"{stream.name}: there is no object with a key")
        for name, kind in options.types.items():
            if name not in self._met or kind not in _TYPES:
                raise DataError(f"{stream.name}: types[{name!r}] = {kind!r} is no key with one of {', '.join(_TYPES)}")
        self.label = columns.label_name(list(self._met), options.label, None, stream.name, options.label_needed)
        self.kept = columns_to_keep(list(self._met), options.keep, stream.name)
        if not options.settle:
            self.settled()

    def _widen(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            counts = self._met.setdefault(name, Counter())
            if (kind := _kind(value)) is not None and not (self.options.is_written(name) and self._says_nothing(value)):
                counts[kind] += 1
            if type(value) is int and abs(value) < 1 << 63 and float(value) != value:
                self._rounded.add(name)

    def _forget_empty_parents(self) -> None:
        """Have no column for a key that holds nothing where it does not hold an object."""
        for name in self._parents:
            if not self._met.get(name, Counter("value")):
                del self._met[name]

    def _says_nothing(self, value: Any) -> bool:
        """Tell whether a string stands for a number that is not there."""
        return isinstance(value, str) and (value.strip() in self.options.missing or columns.says_nothing(value))

    def settled(self) -> None:
        """Fix the types; numbers are whole only where that is certain."""
        for name, counts in self._met.items():
            exact = self.options.settle or name == self.label
            kind = _common(counts, 1.0 if exact else columns.MOSTLY)
            kind = NUMBER if kind == WHOLE and not exact and name not in self._rounded else kind
            self.kinds[name] = self.options.kind_of(name) or kind
            if self.options.is_written(name) and 2 * (counts[WHOLE] + counts[NUMBER]) > counts.total():
                self.kinds[name] = NUMBER

    @property
    def schema(self) -> pa.Schema:
        """The keys and their types."""
        return pa.schema([(name, _TYPES[kind]) for name, kind in self.kinds.items()])

    def settle(self, stream: Stream) -> None:
        """Widen the types to what this file holds."""
        for text, end, _ in blocks(stream, self.options.batch_bytes):
            for line in text[:end].tobytes().split(b"\n"):
                self._widen(_object(line, self.options.encoding, self._parents)[0])
        self._forget_empty_parents()

    def batches(self, stream: Stream) -> Iterator[TableBatch]:
        """Yield the rows of a stream."""
        before = 1
        numeric = [name for name, kind in self.kinds.items() if kind == NUMBER]
        for piece in in_order(self._work, blocks(stream, self.options.batch_bytes), self.options.threads):
            for line, what in piece.faults:
                self.options.skips.report(f"{stream.name}, line {before + line}: {what}")
            if piece.mended:
                self.options.notes.setdefault(f"encoding of {stream.name}", f"{stream.name}: {MENDED}")
            for line, name, word in piece.words:
                self._met_word(name, word, f"{stream.name}, line {before + line}")
            if piece.table is not None and piece.table.num_rows:
                for name in numeric:
                    self.strays.add_values(name, piece.table[name])
                yield TableBatch(piece.table, Origin.of(stream.name, piece.lines + before), piece.kept)
            before += piece.n_lines

    def _met_word(self, name: str, word: str, place: str) -> None:
        kind = self.kinds[name]
        if kind == NUMBER or (self.options.expected is not None and name != self.label):
            self.strays.add_word(name, word, place)
        elif self.options.expected is None:
            self.kinds[name] = TEXT
            raise ReadAgainError(f"{place}: key {shown(name)}: {shown(word)} is not {_WORDS[kind]}, as those before it are")

    def _work(self, block: Block) -> _Lines:
        read = self._read(block)
        if self.kept and read.table is not None:
            texts = block.text[: block.end].tobytes().split(b"\n")
            read.kept = json_columns((texts[line] for line in read.lines.tolist()), self.kept)
        return read

    def _read(self, block: Block) -> _Lines:
        text = block.text[: block.end]
        n_lines = int(np.count_nonzero(text == ord("\n")))
        is_mended = False
        if not is_utf8(text) and self.options.encoding == AUTO and (whole := mended(text.tobytes())) is not None:
            text, is_mended = np.frombuffer(whole.encode(), np.uint8), True
        elif not is_utf8(text):
            return self._careful(text.tobytes(), n_lines)
        try:
            table = self._parsed(text, self._nested_schema())
            if table.num_rows == n_lines and all(_is_finite(column) for column in table):
                return _Lines(self._bare(table), np.arange(n_lines), n_lines, mended=is_mended)
        except pa.ArrowInvalid:
            pass
        lines = self._careful(text.tobytes(), n_lines)
        lines.mended = is_mended
        return lines

    def _bare(self, table: Any) -> Any:
        """Return a table with no blanks around the labels."""
        if self.label is None:
            return table
        place, label = table.schema.get_field_index(self.label), table[self.label]
        if label.type != pa.string() or (bare := columns.stripped(label, ())) is label:
            return table
        return table.set_column(place, self.label, bare)

    def _careful(self, text: bytes, n_lines: int) -> _Lines:
        """Look at each line, so that what is wrong can be named, and values of another kind are fitted in."""
        found = _Lines(None, [], n_lines)
        objects = []
        for line, content in enumerate(text.split(b"\n")):
            values, what = _object(content, self.options.encoding)
            values = {name: value for name, value in values.items() if value is not None or name in self.kinds}
            unknown = next((name for name in values if name not in self.kinds), None)
            if unknown is not None:
                what = f"the key {shown(unknown)} is not among those of the first lines; give it there, as null if need be"
            else:
                what = what or self._misfit(values)
            if what:
                found.faults.append((line, what))
            elif content.strip():
                objects.append((line, values))
        kinds = dict(self.kinds)
        if self.label is not None and any(not _fits(values.get(self.label), kinds[self.label]) for _, values in objects):
            kinds[self.label] = TEXT  # of this block: the labels of all are text as soon as one is
        rows = []
        for line, values in objects:
            for name, value in values.items():
                if not _fits(value, self.kinds[name]) and (word := _fitted(value, self.kinds[name])) is None:
                    found.words.append((line, name, value if isinstance(value, str) else json.dumps(value)))
                if not _fits(value, kinds[name]):
                    values[name] = word if kinds[name] == self.kinds[name] else _fitted(value, kinds[name])
            rows.append(json.dumps(values, ensure_ascii=False).encode())
        found.lines = np.array([line for line, _ in objects], np.int64)
        try:
            schema = pa.schema([(name, _TYPES[kind]) for name, kind in kinds.items()])
            table = self._parsed(np.frombuffer(b"\n".join([*rows, b""]), np.uint8), schema) if rows else None
        except pa.ArrowInvalid as problem:
            what = " ".join(str(problem).split())[:120]
            found.faults.append((int(found.lines[0]), f"something from here on cannot be read ({what})"))
            return found
        found.table = None if table is None else self._bare(table)
        return found

    def _misfit(self, values: dict[str, Any]) -> str:
        """Say which value has no certain meaning: a number among texts that a model reads as numbers, or the reverse.

        1.234 among texts such as "1.234,5" would be taken for 1234.
        """
        for name, value in values.items():
            if not self.options.is_written(name) or value is None or isinstance(value, bool | list):
                continue
            is_typed, typed = not isinstance(value, str), self.kinds[name] == NUMBER
            if is_typed == typed or (not typed and isinstance(value, int)) or (typed and self._says_nothing(value)):
                continue
            kind, others = ("a number", "texts") if is_typed else ("a text", "numbers")
            what = f"key {shown(name)}: {shown(value)} is {kind} where most are {others}"
            return f"{what}; write all in one way, or {LEAVE_OUT}"
        return ""

    def _nested_schema(self) -> pa.Schema:
        """Return the schema with a structure for each object; raise ArrowInvalid where that would be too many.

        It is raised for a key that holds an object here and a value there, too.
        """
        if len(self._parents) > MOST_OBJECTS:
            raise pa.ArrowInvalid("too many objects")
        inner: dict[str, list[Any]] = {parent: [] for parent in ("", *self._parents)}
        for name in (*self.kinds, *self._parents):
            if name in self._parents and name in self.kinds:
                raise pa.ArrowInvalid("no one type")
            parent = max((each for each in self._parents if name.startswith(f"{each}.")), key=len, default="")
            inner[parent].append(name)

        def fields(parent: str) -> list[Any]:
            start = len(parent) + 1 if parent else 0
            return [
                (name[start:], pa.struct(fields(name)) if name in self._parents else _TYPES[self.kinds[name]])
                for name in inner[parent]
            ]

        return pa.schema(fields(""))

    def _parsed(self, text: Any, schema: pa.Schema) -> Any:
        """Return the objects as a batch with a column for each key."""
        table = arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(text)),
            arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
            pa.system_memory_pool(),  # as fast as Arrow's own pool, which keeps a quarter more of what it once had
        )
        if self._parents:
            while any(pa.types.is_struct(kind) for kind in table.schema.types):
                table = table.flatten()
            table = table.select(list(self.kinds))
        batches = table.combine_chunks().to_batches()
        if batches:
            return batches[0]
        return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in table.schema.types], schema=table.schema)


def _is_finite(column: Any) -> bool:
    return bool(column.type != pa.float64() or pc.all(pc.is_finite(column)).as_py() is not False)


def _object(text: bytes, encoding: str, parents: set[str] | None = None) -> tuple[dict[str, Any], str]:
    """Return the object of a line, flattened, empty for a blank one, and what is wrong with it."""
    if not text.strip():
        return {}, ""
    try:
        content = text.decode()
    except UnicodeDecodeError:
        repaired = mended(text) if encoding == AUTO else None
        if repaired is None:
            return {}, undecodable(text, encoding)
        content = repaired
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as problem:
        return {}, f"this is not JSON ({problem}); mend it, or {LEAVE_OUT}"
    if not isinstance(values, dict):
        return {}, f'{shown(content)} is not an object; each line is one, such as {{"x": 1, "label": "a"}}'
    try:
        values = flattened(values, parents)
    except KeyError as twice:
        return {}, f"two values are called {shown(twice.args[0])}, of a key and of an object in the line: rename one"
    for name, value in values.items():
        if isinstance(value, list) and not all(isinstance(item, str | None) for item in value):
            what = f"key {shown(name)} holds {shown(json.dumps(value))}"
            kinds = "only numbers, strings, true, false, lists of strings and objects of these are read"
            return {}, f"{what}; {kinds}: remove it, or give its values keys of their own"
        if isinstance(value, float) and value != value:
            values[name] = None  # Python writes NaN where a number is missing
        elif isinstance(value, float) and not abs(value) < np.inf:
            return {}, f"key {shown(name)}: {value} is not a finite number; put null for a missing value"
    return values, ""


def _kind(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return FLAG
        case int() if -(1 << 63) <= value < 1 << 63:
            return WHOLE
        case int() | float():
            return NUMBER
        case list():
            return LIST
    return TEXT


def _common(counts: Counter[str], mostly: float) -> str:
    """Return what a key holds whose values are of several kinds."""
    numeric, total = counts[WHOLE] + counts[NUMBER], counts.total()
    if total and (numeric == total or (numeric > mostly * total and numeric + counts[TEXT] == total >= 50)):
        return NUMBER if counts[NUMBER] or numeric < total else WHOLE
    if total and counts[LIST] and counts[LIST] + counts[TEXT] == total:
        return LIST
    return FLAG if total and counts[FLAG] == total else TEXT


def _fits(value: Any, kind: str) -> bool:
    """Tell whether a value is of a kind, or missing."""
    own = _kind(value)
    return own is None or own == kind or (own, kind) == (WHOLE, NUMBER)


def _fitted(value: Any, kind: str) -> Any:
    """Return a value as one of another kind: as text, as a list, or as the number that a text is; None if it is none."""
    if kind == TEXT:
        return "|".join(item for item in value if item) if isinstance(value, list) else json.dumps(value)
    if kind == LIST and isinstance(value, str):
        return [value]
    if kind == NUMBER and isinstance(value, str):
        number = columns.numbers(text_array([value.strip()]), NUMBER)[0][0].as_py()
        return number if number is not None and abs(number) < np.inf else None
    return None
