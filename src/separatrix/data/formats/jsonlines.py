"""JSON lines: one object a line, of numbers, strings, true and false, and lists of strings.

A key that a line lacks is missing there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from separatrix.data import column_types as columns
from separatrix.data.batches import Options, TableBatch
from separatrix.data.column_types import NUMBER, TEXT, WHOLE
from separatrix.data.errors import DataError, Origin, shown
from separatrix.data.streams import Block, Stream, blocks, in_order

FLAG, LIST = "flag", "list"
_TYPES = columns.TYPES | {FLAG: pa.bool_(), LIST: pa.list_(pa.string())}
_WORDS = {NUMBER: "a number", WHOLE: "a whole number", TEXT: "a string", FLAG: "true or false", LIST: "a list of strings"}


class JsonReader:
    """Reads JSON lines; the first megabyte tells the keys and what they hold."""

    kind = "columns"

    def __init__(self, stream: Stream, options: Options) -> None:
        self.options = options
        self.kinds: dict[str, str] = {}
        head = stream.peek()
        sample = head[: head.rfind(b"\n") + 1] or head
        for line, text in enumerate(sample.split(b"\n"), 1):
            values, what = _object(text)
            if what and not options.skips.skipping:
                raise DataError(f"{stream.name}, line {line}: {what}")
            self._widen(values)
        if not self.kinds:
            raise DataError(f"{stream.name}: there is no object with a key")
        for name, kind in options.types.items():
            if name not in self.kinds or kind not in _TYPES:
                raise DataError(f"{stream.name}: types[{name!r}] = {kind!r} is no key with one of {', '.join(_TYPES)}")
        self.label = columns.label_name(list(self.kinds), options.label, None, stream.name)
        if not options.settle:
            self.settled()

    def _widen(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            kind, previous = _kind(value), self.kinds.get(name)
            if previous is None or (previous, kind) == (WHOLE, NUMBER):
                self.kinds[name] = kind or ""
            elif not previous and kind:
                self.kinds[name] = kind

    def settled(self) -> None:
        """Fix the types; numbers are whole only where that is certain."""
        for name, kind in self.kinds.items():
            whole = kind == WHOLE and (self.options.settle or name == self.label)
            self.kinds[name] = self.options.types.get(name) or (NUMBER if kind == WHOLE and not whole else kind or TEXT)

    @property
    def schema(self) -> pa.Schema:
        """The keys and their types."""
        return pa.schema([(name, _TYPES[kind]) for name, kind in self.kinds.items()])

    def settle(self, stream: Stream) -> None:
        """Widen the types to what this file holds."""
        for text, end in blocks(stream, self.options.batch_bytes):
            for line in text[:end].tobytes().split(b"\n"):
                self._widen(_object(line)[0])

    def batches(self, stream: Stream) -> Iterator[TableBatch]:
        """Yield the rows of a stream."""
        before = 1
        for table, lines, n_lines, faults in in_order(
            self._work, blocks(stream, self.options.batch_bytes), self.options.threads
        ):
            for line, what in faults:
                self.options.skips.report(f"{stream.name}, line {before + line}: {what}")
            if table is not None and table.num_rows:
                yield TableBatch(table, Origin.of(stream.name, lines + before))
            before += n_lines

    def _work(self, block: Block) -> tuple[Any, Any, int, list[tuple[int, str]]]:
        text = block.text[: block.end]
        n_lines = int(np.count_nonzero(text == ord("\n")))
        try:
            table = self._parsed(text)
            if table.num_rows == n_lines and all(_is_finite(column) for column in table):
                return table, np.arange(n_lines), n_lines, []
        except pa.ArrowInvalid:
            pass
        return self._careful(text.tobytes(), n_lines)

    def _careful(self, text: bytes, n_lines: int) -> tuple[Any, Any, int, list[tuple[int, str]]]:
        """Look at each line, so that what is wrong can be named."""
        good_lines, numbers, faults = [], [], []
        for line, content in enumerate(text.split(b"\n")):
            values, what = _object(content)
            what = what or next((said for name, value in values.items() if (said := self._misfit(name, value))), "")
            if what:
                faults.append((line, what))
            elif content.strip():
                good_lines.append(content)
                numbers.append(line)
        try:
            table = self._parsed(np.frombuffer(b"\n".join([*good_lines, b""]), np.uint8)) if good_lines else None
        except pa.ArrowInvalid as problem:
            what = " ".join(str(problem).split())[:120]
            return (
                None,
                np.empty(0, np.int64),
                n_lines,
                [*faults, (numbers[0], f"something from here on cannot be read ({what})")],
            )
        return table, np.array(numbers, np.int64), n_lines, faults

    def _misfit(self, name: str, value: Any) -> str:
        """Say what is wrong with a value, or nothing."""
        expected, kind = self.kinds.get(name), _kind(value)
        if expected is None:
            return f"the key {shown(name)} is not among those of the first lines; give it there, as null if need be"
        if kind is None or kind == expected or (kind, expected) == (WHOLE, NUMBER):
            return ""
        return f"key {shown(name)}: {shown(json.dumps(value))} is not {_WORDS[expected]}, as those before it are; mend it"

    def _parsed(self, text: Any) -> Any:
        table = arrow_json.read_json(
            pa.BufferReader(pa.py_buffer(text)),
            arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            arrow_json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="error"),
            pa.system_memory_pool(),  # as fast as Arrow's own pool, which keeps a quarter more of what it once had
        )
        batches = table.combine_chunks().to_batches()
        if batches:
            return batches[0]
        return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in self.schema.types], schema=self.schema)


def _is_finite(column: Any) -> bool:
    return bool(column.type != pa.float64() or pc.all(pc.is_finite(column)).as_py() is not False)


def _object(text: bytes) -> tuple[dict[str, Any], str]:
    """Return the object of a line, empty for a blank one, and what is wrong with it."""
    if not text.strip():
        return {}, ""
    try:
        values = json.loads(text)
    except UnicodeDecodeError:
        return {}, "the text is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
    except (ValueError, RecursionError) as problem:
        return {}, f"this is not JSON ({problem})"
    if not isinstance(values, dict):
        return {}, f'{shown(text.decode())} is not an object; each line is one, such as {{"x": 1, "label": "a"}}'
    for name, value in values.items():
        if isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(item, str | None) for item in value)):
            what = f"key {shown(name)} holds {shown(json.dumps(value))}"
            return {}, f"{what}; only numbers, strings, true, false and lists of strings are read"
        if isinstance(value, float) and not abs(value) < np.inf:
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
