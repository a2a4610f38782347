"""Objects within the objects of JSON lines: their keys become columns, as in a flat file of the same values."""

import io
import json

import pytest

from separatrix import train
from separatrix.data.errors import DataError
from separatrix.data.reading import open_source

ROWS = [
    {"id": 1, "customer": {"plan": "free", "seats": 3, "address": {"city": "Rome"}}, "tags": ["vip"], "team": "a"},
    {"id": 2, "customer": {"plan": "pro", "seats": 40, "address": {"city": None}}, "tags": [], "team": "b"},
    {"id": 3, "customer": None, "tags": None, "team": "a"},
    {"id": 4, "customer": {"plan": "pro", "seats": 2.5, "address": {}}, "team": "b"},
]


def flat(values, path=""):
    result = {}
    for name, value in values.items():
        result |= flat(value, f"{path}{name}.") if isinstance(value, dict) else {path + name: value}
    return result


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def read(rows, **options):
    source = open_source(io.BytesIO(lines(rows)), **options)
    batches = list(source)
    return [row for batch in batches for row in batch.table.to_pylist()], source


def test_objects_within_objects_read_as_a_flat_file_does():
    rows = ROWS[:2] + ROWS[3:]
    nested, source = read(rows)
    plain, _ = read([flat(row) for row in rows])
    assert nested == plain and source.schema.names[:4] == ["id", "customer.plan", "customer.seats", "customer.address.city"]
    assert [row["customer.seats"] for row in nested] == [3, 40, 2.5]


@pytest.mark.parametrize("first", [ROWS, ROWS[::-1], [ROWS[2], *ROWS]])
def test_null_in_place_of_an_object_leaves_its_columns_missing(first):
    rows, _ = read(first)
    of_null = next(row for row in rows if row["id"] == 3)
    assert {of_null[name] for name in of_null if name.startswith("customer")} == {None}


def test_blocks_that_differ_are_read_alike():
    many = [*ROWS[:2], *({**ROWS[k % 2], "id": k} for k in range(3, 4000)), {"id": 5000, "customer": None, "team": "a"}]
    rows, _ = read(many, batch_bytes=4096)
    assert [row["id"] for row in rows] == [row["id"] for row in many] and rows[-1]["customer.plan"] is None
    assert [row["customer.plan"] for row in rows[:-1]] == [row["customer"]["plan"] for row in many[:-1]]
    with pytest.raises(DataError, match=r"the key 'customer\.age' is not among those of the first lines"):
        read([*many[:2], *many[:2] * 20_000, {"id": 6, "customer": {"age": 3}, "team": "a"}])


def test_a_model_of_such_a_file_predicts_rows_by_the_same_names(tmp_path):
    path = tmp_path / "tickets.jsonl"
    path.write_bytes(lines([{**ROWS[k % 2], "id": k} for k in range(40)]))
    model = train(str(path), label="team", drop=["customer.address.city", "id", "tags"])
    assert model.predict({"customer.plan": ["free", "pro"], "customer.seats": [3, 40]}).tolist() == ["a", "b"]
    kept = open_source(str(path), keep=["customer.seats"])
    assert next(iter(kept)).kept["customer.seats"].to_pylist()[:2] == ["3", "40"]
