"""Blanks of every kind around values and labels are no part of them, whatever the other rows hold."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from separatrix.data.column_types import BLANKS, stripped, trimmed
from separatrix.data.reading import open_source


def test_the_blanks_are_those_of_python():
    assert [chr(code) for code in BLANKS] == [chr(code) for code in range(0x110000) if chr(code).isspace()]


@pytest.mark.parametrize("code", BLANKS, ids=hex)
def test_every_blank_is_stripped(code):
    blank = chr(code)
    for words in ([f"{blank}a", "b"], [f"a{blank}", "b"], [f"{blank * 2}a{blank}", "", None, "b"]):
        column = pa.array(["x", *words, "y"])
        expected = ["x", *(word and word.strip() for word in words), "y"]
        assert stripped(column, ()).to_pylist() == trimmed(column, ()).to_pylist() == expected
        assert stripped(column.slice(1, 2), ()).to_pylist() == expected[1:3]
    assert stripped(pa.array([f"NA{blank}", "NA"]), ("NA",)).to_pylist() == [None, "NA"]  # that without a blank was read


def test_words_without_blanks_around_them_are_left_alone():
    for words in (["a b", "c"], ["\u3042\u3044", "\u3002\u300d", "\u65e5\u672c"], ["\u20ac", "\u00c2", "\u2026"], [""], []):
        column = pa.array(words, pa.string())
        assert stripped(column, ()) is column


@pytest.mark.parametrize("blank", ["\u3000", "\u2009", "\u202f", "\u00a0"])
def test_values_and_labels_of_a_table(blank):
    rows = [f"{blank}{k}.5{blank},{'yes' if k % 2 else 'no'}{blank * (k % 3)},{blank}w{k % 2}" for k in range(60)]
    for last in ("0.1,no,w", "0.1,no ,w"):  # a blank of ASCII in another row makes no difference
        source = open_source(io.BytesIO("\n".join(["amount,label,word", *rows, last]).encode()), label="label")
        table = pa.Table.from_batches([batch.table for batch in source]).to_pydict()
        assert table["amount"] == [*(k + 0.5 for k in range(60)), 0.1]
        assert set(table["label"]) == {"yes", "no"} and set(table["word"]) == {"w0", "w1", "w"}


def test_labels_of_json_lines_and_parquet(tmp_path):
    labels = ["yes", "yes\u3000", "\u2009no"]
    lines = "".join(json.dumps({"x": 1, "y": label}, ensure_ascii=False) + "\n" for label in labels)
    parquet.write_table(pa.table({"x": [1, 1, 1], "y": labels}), tmp_path / "data.parquet")
    for data in (io.BytesIO(lines.encode()), str(tmp_path / "data.parquet")):
        (batch,) = open_source(data)
        assert batch.table["y"].to_pylist() == ["yes", "yes", "no"]
