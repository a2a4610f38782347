"""Objects in the objects of JSON lines: their keys are columns, named by the way to them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from separatrix.data.errors import DataError
from separatrix.data.kept_columns import flattened, json_columns
from separatrix.data.reading import open_source

RNG = np.random.default_rng(3)


def table_of(path, **reading):
    """Return what is read of a file, all batches."""
    return pa.Table.from_batches([batch.table for batch in open_source(str(path), **reading)])


def nested(n):
    """Yield objects, some without a part, some with null in the place of one, and one that is deep."""
    for i in range(n):
        user = {"age": int(RNG.integers(18, 80)), "name": f"Zoë {i}", "home": {"town": "Ulm", "zip": None}}
        row = {"id": i, "user": user, "note": "läuft", "tags": ["a", "b"][: i % 3], "kind": "yes" if i % 2 else "no"}
        if i % 5 == 1:
            del user["age"]
        if i % 7 == 2:
            row["user"] = None
        if i % 11 == 3:
            user["home"] = None
        if i % 13 == 4:
            del row["user"]
        yield row


def by_hand(row):
    """Return the same object with flat keys."""
    user = row.get("user") or {}
    home = user.get("home") or {}
    flat = {"user.age": user.get("age"), "user.name": user.get("name")}
    flat |= {"user.home.town": home.get("town"), "user.home.zip": home.get("zip")}
    return {name: value for name, value in row.items() if name != "user"} | flat


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("batch_bytes", [400, 1 << 20])
def test_a_file_of_nested_objects_is_that_of_flat_ones(tmp_path, batch_bytes, encoding):
    rows = list(nested(200))
    for name, objects in (("nested.jsonl", rows), ("flat.jsonl", map(by_hand, rows))):
        text = "\n".join(json.dumps(each, ensure_ascii=False) for each in objects)
        (tmp_path / name).write_bytes(text.encode(encoding))
    read, expected = (
        table_of(tmp_path / name, label="kind", batch_bytes=batch_bytes) for name in ("nested.jsonl", "flat.jsonl")
    )
    names = ["id", "note", "tags", "kind", "user.age", "user.name", "user.home.town", "user.home.zip"]
    assert sorted(read.schema.names) == sorted(expected.schema.names) == sorted(names)
    for name in names:
        assert read[name].to_pylist() == expected[name].to_pylist(), name


def test_a_key_may_hold_an_object_in_some_lines_and_a_word_in_others(tmp_path):
    path = tmp_path / "mixed.jsonl"
    path.write_text('{"at": {"town": "Ulm"}, "y": 1}\n{"at": "Bonn", "y": 0}\n{"at": {}, "y": 1}\n')
    table = table_of(path, label="y")
    assert table["at"].to_pylist() == [None, "Bonn", None] and table["at.town"].to_pylist() == ["Ulm", None, None]


def test_two_values_of_one_name_are_an_error(tmp_path):
    path = tmp_path / "twice.jsonl"
    path.write_text('{"a": 1}\n{"a": {"b": 1}, "a.b": 2}\n')
    with pytest.raises(DataError, match=r"line 2: two values are called 'a\.b'"):
        table_of(path)


@pytest.mark.parametrize("depth", [3, 150, 500])
def test_a_deep_object_is_read(depth, tmp_path):
    value = 7
    for _ in range(depth):
        value = {"k": value}
    name = ".".join("k" * depth)
    assert flattened(value) == {name: 7}
    path = tmp_path / "deep.jsonl"
    path.write_text("".join(json.dumps({"y": i, "empty": {}, **value}) + "\n" for i in range(3)))
    assert table_of(path, label="y").to_pydict() == {"y": [0, 1, 2], name: [7.0] * 3}


def test_kept_columns_are_as_they_are_written():
    lines = [b'{"user": {"price": 1.50}, "id": "007"}', b'{"id": null, "user": null}']
    assert json_columns(lines, ["user.price", "id"]).to_pylist() == [
        {"user.price": "1.50", "id": '"007"'},
        {"user.price": None, "id": "null"},
    ]
