"""Columns of numbers that a kernel reads are those that pyarrow reads, bit for bit, with the same notes and errors."""

import random
import struct

import pytest

from separatrix.data.errors import DataError, ReadAgainError
from separatrix.data.formats import delimited
from separatrix.data.reading import open_source

PLAIN = ["0", "-0", "7", "-12", "3.5", ".5", "5.", "1e3", "-2.5E-7", "0.1", "123456789012345678", "00012.50"]
ODD = [
    "",
    "?",
    "NA",
    "+4",
    "1e999",
    "0.12345678901234567890123",
    "word",
    " 8",
    "8 ",
    '"9"',
    "nan",
    "inf",
    "1e",
    "-",
    "1_0",
    "0x1",
]
TEXTS = ["red", "NA", "", '"a, b"', '"say ""hi"""', "é", '"two\nlines"', " blank ", "12"]


def number(rng):
    if rng.random() < 0.5:
        value = struct.unpack("<d", rng.randbytes(8))[0]
        return repr(value) if 1e-300 < abs(value) < 1e300 else "1.5"
    return rng.choice(PLAIN)


def read(path, **options):
    """Return all that a reading gives: columns with the bits of their numbers, lines, notes, or the error."""
    rows = []
    try:
        source = open_source(path, label="kind", batch_bytes=4096, **options)
        for batch in source:
            for name in batch.table.schema.names:
                values = batch.table[name].to_pylist()
                rows.append((name, [value.hex() if isinstance(value, float) else value for value in values]))
            rows.append([batch.origin.place(i) for i in range(len(batch))])
    except (DataError, ReadAgainError) as problem:
        return rows, str(problem)
    return rows, source.notes, source.skipped, source.problems


@pytest.mark.parametrize("seed", range(40))
def test_a_kernel_and_pyarrow_read_the_same_numbers(tmp_path, monkeypatch, seed):
    rng, used = random.Random(seed), []
    odd, line_end, delimiter = rng.choice([0, 0.002, 0.05]), rng.choice(["\n", "\r\n"]), rng.choice([",", ";", "\t"])
    odd_values = rng.sample(ODD, rng.randint(1, len(ODD)))
    kinds = [rng.choice(["number", "number", "text"]) for _ in range(rng.randint(1, 6))]
    lines = [delimiter.join([*(f"c{j}" for j in range(len(kinds))), "kind"])]
    for k in range(400):
        fields = [number(rng) if kind == "number" else rng.choice(TEXTS) for kind in kinds]
        if k > 100:
            fields = [rng.choice(odd_values) if rng.random() < odd else field for field in fields]
        ragged = [] if rng.random() > odd / 4 else ["more"]
        lines.append(delimiter.join([*fields, rng.choice(["0", "1"] if seed % 2 else ["a", "b", ""]), *ragged]))
    path = tmp_path / "table.csv"
    path.write_bytes(line_end.join(lines).encode() + line_end.encode() * rng.randint(0, 1))
    options = {"on_error": rng.choice(["raise", "skip"]), "threads": rng.choice([1, 2]), "delimiter": delimiter}
    split_off = delimited.split_off
    monkeypatch.setattr(delimited, "split_off", lambda *given: used.append(split_off(*given)) or used[-1])
    by_kernel = read(path, **options)
    monkeypatch.setattr(delimited, "split_off", lambda *given: None)
    assert by_kernel == read(path, **options)
    if not odd and "number" in kinds:
        assert used and all(parts is not None for parts in used)


def test_a_marker_that_is_a_number_is_missing(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size,kind\n-999,a\n-999.0,b\n3,a\n,b\n")
    (batch,) = open_source(path, missing=("-999", ""))
    assert batch.table["size"].to_pylist() == [None, -999.0, 3.0, None]


def test_one_other_column_may_be_empty(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("size,kind\n1,a\n2,\n3,\n4,b\n5,\n")
    (batch,) = open_source(path)
    assert batch.table["size"].to_pylist() == [1, 2, 3, 4, 5]
    assert batch.table["kind"].to_pylist() == ["a", None, None, "b", None]
