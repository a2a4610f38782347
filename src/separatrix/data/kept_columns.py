"""Columns that are given beside the rows as they are written in the file, so that predictions can stand beside them.

Typed reading makes 7 of 007 and 1.5 of 1.50. The columns of a text file that are kept are read once more as text; those of
JSON lines are the text of the JSON values; those of Parquet and Arrow files are the columns themselves.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from separatrix.data import column_types as columns
from separatrix.data.arrow_arrays import text_array
from separatrix.data.encodings import mended

ALL = "all"
ROW_NAME = "\r"
"""The name before a row of R's, in a column without a name; no column can be called so."""


def columns_to_keep(names: Sequence[str], wanted: Sequence[str], where: str, unnamed: Sequence[str] = ()) -> list[str]:
    """Return the columns that are meant, in the order of the file: names or numbers from 0, with commas between, or "all".

    The `unnamed` ones, which come first, are among all of them.

    Examples
    --------
    >>> columns_to_keep(["id", "last, first", "age"], ["last, first", "0"], "people.csv")
    ['id', 'last, first']
    """
    if ALL in wanted:
        return [*unnamed, *names]
    asked = [part.strip() for each in wanted for part in ([each] if each in names else each.split(","))]
    chosen = {columns.label_name(names, name, None, where) for name in asked if name}
    return [name for name in names if name in chosen]


def as_written(fields: pa.RecordBatch | None, mending: bool, spaced: bool) -> pa.RecordBatch | None:
    """Return columns of bytes as text; where a blank follows each delimiter (`spaced`), without the blanks around values."""
    if fields is None:
        return None
    texts = [columns.decoded(column, mending)[0] for column in fields.columns]
    if spaced:
        texts = [pc.utf8_trim_whitespace(text) for text in texts]
    names = ["row name" if name == ROW_NAME else name for name in fields.schema.names]
    return pa.RecordBatch.from_arrays(texts, names=names)


def flattened(values: dict[str, Any], parents: set[str] | None = None, whole: Collection[str] = ()) -> dict[str, Any]:
    """Return an object without objects in it: the keys of an inner one follow its own key and a dot.

    `parents` gets the names of the inner objects; those named in `whole` stay as they are. Raises KeyError where two values
    would have the same name.

    Examples
    --------
    >>> flattened({"id": 7, "user": {"age": 37, "home": {"town": "Ulm"}}})
    {'id': 7, 'user.age': 37, 'user.home.town': 'Ulm'}
    """
    if not any(isinstance(value, dict) and name not in whole for name, value in values.items()):
        return values
    flat: dict[str, Any] = {}
    waiting = [(name, value) for name, value in reversed(values.items())]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict) and name not in whole:
            waiting += [(f"{name}.{key}", inner) for key, inner in reversed(value.items())]
            if parents is not None:
                parents.add(name)
        elif name in flat:
            raise KeyError(name)
        else:
            flat[name] = value
    return flat


class _Numeral(str):
    """A number as it is written in JSON."""


def json_columns(lines: Iterable[bytes], names: Sequence[str]) -> pa.RecordBatch:
    """Return some keys of JSON objects, one on each line, as the text of their values; null if an object has no such key.

    Examples
    --------
    >>> json_columns([b'{"id": "007", "price": 1.50}', b'{"id": null}'], ["id", "price"]).to_pylist()
    [{'id': '"007"', 'price': '1.50'}, {'id': 'null', 'price': None}]
    """
    texts: list[list[str | None]] = []
    for line in lines:
        try:
            content = line.decode()
        except UnicodeDecodeError:
            content = mended(line) or line.decode("utf-8", "replace")
        values = flattened(json.loads(content, parse_float=_Numeral))
        texts.append([_json_text(values[name]) if name in values else None for name in names])
    arrays = [text_array(text[k] for text in texts) for k in range(len(names))]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _json_text(value: Any) -> str:
    return str(value) if isinstance(value, _Numeral) else json.dumps(value, ensure_ascii=False)
