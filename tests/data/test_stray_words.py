"""Words in columns of numbers, blanks around values, and tables that end lines in their own way."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from separatrix.data.errors import DataError, ReadAgainError
from separatrix.data.reading import open_source

NUMBERS = [(1000 + i % 97, "ab"[i % 2]) for i in range(200_000)]


def as_csv(pairs):
    return ("x,y\n" + "".join(f"{x},{y}\n" for x, y in pairs)).encode()


def as_json(pairs):
    quoted = (x if isinstance(x, int) else f'"{x}"' for x, _ in pairs)
    return "".join(f'{{"x": {x}, "y": "{y}"}}\n' for x, (_, y) in zip(quoted, pairs, strict=True)).encode()


FORMS = pytest.mark.parametrize("written", [as_csv, as_json], ids=["csv", "jsonl"])


def columns(source):
    return pa.Table.from_batches([batch.table for batch in source])


@FORMS
def test_few_words_late_in_a_column_of_numbers_are_missing(written):
    source = open_source(io.BytesIO(written([*NUMBERS, ("unknown", "a"), (7, "b"), ("n/k", "a")])))
    table = columns(source)
    assert table["x"].type == pa.float64() and table["x"].null_count == 2
    assert table["x"][-2].as_py() == 7 and table.num_rows == 200_003
    line = 200_001 + (written is as_csv)
    assert source.notes == [
        "column x: 2 values of 200,003 are not numbers, the first 'unknown' at the file object, "
        f"line {line}: taken as missing"
    ]
    assert columns(source)["x"].null_count == 2 and len(source.notes) == 1


@FORMS
def test_many_words_make_a_column_text_in_the_next_reading(written):
    source = open_source(io.BytesIO(written([*NUMBERS, *[("metal", "a")] * 9000])))
    assert source.schema.field("x").type == pa.float64()
    with pytest.raises(
        ReadAgainError, match=r"column x: 9,000 values of 209,000 are not numbers, .* the column is text now"
    ):
        columns(source)
    assert source.schema.field("x").type == pa.string()
    table = columns(source)
    assert table["x"].type == pa.string() and table["x"].null_count == 0
    assert table["x"][5].as_py() == "1005" and table["x"][-1].as_py() == "metal"
    assert source.notes[0].endswith(": taken for text")


@FORMS
def test_a_model_that_has_learned_numbers_keeps_them(written):
    data = written([*NUMBERS, *[("unknown", "a")] * 9000])
    source = open_source(io.BytesIO(data), expected={"x": "number", "not there": "text"})
    assert columns(source)["x"].null_count == 9000 and "9,000 values of 209,000" in source.notes[0]
    source = open_source(io.BytesIO(data), expected={"x": "text"})
    assert columns(source)["x"][0].as_py() == "1000"
    with pytest.raises(DataError, match=r"column x: 100 values of 100 are not numbers, .*; the model has learned numbers"):
        columns(open_source(io.BytesIO(written([("word", "a")] * 100)), expected={"x": "number"}))


def test_a_type_that_was_given_is_kept_and_a_pipe_cannot_be_read_again():
    data = as_csv([*NUMBERS, *[("metal", "a")] * 9000])
    with pytest.raises(DataError, match="column x: 9,000 values of 209,000 are not numbers") as caught:
        columns(open_source(io.BytesIO(data), types={"x": "number"}))
    assert not isinstance(caught.value, ReadAgainError)
    pipe = io.BytesIO(data)
    pipe.seekable = lambda: False
    with pytest.raises(DataError, match="put the data into a file") as caught:
        columns(open_source(pipe))
    assert not isinstance(caught.value, ReadAgainError)


@FORMS
def test_labels_that_are_words_late_are_text_throughout(written):
    pairs = [(1000 + i % 7, i % 2) for i in range(200_000)]
    data = written([*pairs, (1, "maybe"), (1, "01")])
    if written is as_json:
        data = data.replace(b'"y": "0"', b'"y": 0').replace(b'"y": "1"', b'"y": 1')
    source = open_source(io.BytesIO(data))
    assert source.schema.field("y").type == pa.int64()
    with pytest.raises(ReadAgainError, match="'maybe' is no"):
        columns(source)
    assert columns(source)["y"].unique().to_pylist() == ["0", "1", "maybe", "01"]
    source = open_source(
        io.BytesIO(data), expected={}, batch_bytes=1 << 19
    )  # with a model: whole numbers as they were learned
    *first, last = list(source)
    assert all(batch.table["y"].type == pa.int64() for batch in first[:1])
    assert set(last.table["y"].to_pylist()) == {"0", "1", "maybe", "01"}


def test_labels_with_leading_zeros_are_text():
    early = open_source(io.BytesIO(b"x,zip\n1,02134\n2,10001\n3,2134\n"))
    assert columns(early)["zip"].to_pylist() == ["02134", "10001", "2134"]
    late = open_source(io.BytesIO(b"x,zip\n" + b"1,10001\n2, 0\n3,-5\n" * 60_000 + b"4,-07\n"))
    assert late.schema.field("zip").type == pa.int64()
    with pytest.raises(ReadAgainError, match="line 180002: the label '-07' is no whole number"):
        columns(late)
    assert columns(late)["zip"].unique().to_pylist() == ["10001", "0", "-5", "-07"]
    whole = open_source(io.BytesIO(b"x,zip\n1,02134\n2,+7\n"), types={"zip": "whole"})
    assert columns(whole)["zip"].to_pylist() == [2134, 7]


def test_json_keys_of_several_kinds_early_on():
    lines = '{"a": 1, "b": true, "y": 1}\n{"a": "x", "b": "no", "y": "2"}\n{"a": 2.5, "b": 3, "y": null}\n'
    table = columns(open_source(io.BytesIO(lines.encode())))
    assert table.to_pydict() == {"a": ["1", "x", "2.5"], "b": ["true", "no", "3"], "y": ["1", "2", None]}
    lines = '{"a": 1, "y": 1}\n' * 99 + '{"a": "7.5", "y": 1}\n{"a": "?", "y": 1}\n'
    source = open_source(io.BytesIO(lines.encode()))
    assert columns(source)["a"].to_pylist()[-2:] == [7.5, None] and "the first '?'" in source.notes[0]


# Blanks.


def test_blanks_around_values_are_no_part_of_them(tmp_path):
    data = 'a,b,y\n 1 ,x ,yes\n2,"  x ",yes \n3, NA ,\tno\n? ,"NA","no "\n5,\u00a0z,no\n'
    (batch,) = open_source(io.BytesIO(data.encode()))
    assert batch.table.to_pydict() == {
        "a": [1.0, 2.0, 3.0, None, 5.0],
        "b": ["x", "x", None, "NA", "z"],
        "y": ["yes", "yes", "no", "no", "no"],
    }
    parquet.write_table(pa.table({"t": [" a ", "b"], "y": ["yes ", "yes"]}), tmp_path / "data.parquet")
    (batch,) = open_source(tmp_path / "data.parquet")
    assert batch.table.to_pydict() == {"t": [" a ", "b"], "y": ["yes", "yes"]}
    (batch,) = open_source(io.BytesIO(b'{"t": " a ", "y": "yes "}\n{"t": "b", "y": "yes"}\n'))
    assert batch.table.to_pydict() == {"t": [" a ", "b"], "y": ["yes", "yes"]}
    np.savez(tmp_path / "data.npz", X=np.eye(2), y=np.array(["yes ", "yes"]))
    (batch,) = open_source(tmp_path / "data.npz")
    assert batch.y.tolist() == ["yes", "yes"]


def test_none_may_be_the_name_of_a_class():
    data = b"a,b,y\n1,None,None\n2,x,mild\n3,none,None\n4,,\n"
    (batch,) = open_source(io.BytesIO(data))
    assert batch.table["y"].to_pylist() == ["None", "mild", "None", None]
    (batch,) = open_source(io.BytesIO(data), label="a")
    assert batch.table["y"].to_pylist() == [None, "mild", None, None]


# Tables as programs write them.


@pytest.mark.parametrize(
    "data",
    [
        "sep=;\na;b;y\n1;2;x\n3;4;z\n",
        '"sep=;"\r\na;b;y\r\n1;2;x\r\n3;4;z\r\n',
        "a,b,y,\n1,2,x,\n3,4,z,\n",
        "a,b,y\n1,2,x,\n3,4,z,\n",
        "a\tb\ty\t\n1\t2\tx\t\n3\t4\tz\t\n",
        "a,b,y\n1,2,x\n3,4,z\n\n   \n\n",
        "\n\na,b,y\n1,2,x\n3,4,z",
        'a,b,y\n1,"2","x"\n"3",4,"z"\n',
    ],
)
def test_tables_as_programs_write_them(data):
    source = open_source(io.BytesIO(data.encode()))
    assert source.label == "y"
    assert columns(source).to_pydict() == {"a": [1, 3], "b": [2, 4], "y": ["x", "z"]}


def test_a_value_behind_the_last_column_is_not_lost_without_a_word():
    data = "a,b,y,\n" + "1,2,x,\n" * 200_000 + "3,4,z,oops\n"
    with pytest.raises(DataError, match="a line has a value behind its last column"):
        columns(open_source(io.BytesIO(data.encode())))


def test_an_empty_last_column_that_has_a_name_stays():
    source = open_source(io.BytesIO(b"a,b,y\n1,2,\n3,4,\n"))
    assert source.schema.names == ["a", "b", "y"] and columns(source)["y"].null_count == 2


def test_a_very_long_line_and_doubled_quotes():
    data = 'a,t,y\n1,"' + "word " * 400_000 + '",x\n2,"he said ""hi""",z\n'
    table = columns(open_source(io.BytesIO(data.encode()), batch_bytes=1 << 16, header=True, quote='"', delimiter=","))
    assert table["t"][1].as_py() == 'he said "hi"' and len(table["t"][0].as_py()) == 5 * 400_000 - 1
