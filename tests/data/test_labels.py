"""Rows without a label, in every format, and labels with blanks around them."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from separatrix.data.errors import DataError, Origin
from separatrix.data.formats.svmlight import load_svmlight
from separatrix.data.in_memory import read_source
from separatrix.data.labels import Unlabelled, alike, as_one, labels_at, matching, without_label
from separatrix.data.reading import open_source


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (np.array([1.0, np.nan, 2.0]), [1]),
        (np.array([1, 2]), []),
        (np.array(["a", "nan", " ", "b"]), [1, 2]),
        (pa.array(["a", None, "NaN", " ? ", "nana"]), [1, 2, 3]),
        (pa.array([1.0, None, float("nan")]), [1, 2]),
        (pa.array([1, None]), [1]),
        (pa.array([True, None]), [1]),
        (pa.array(["a", "b"]), []),
        (pa.array(["a", "b"], pa.large_string()), []),
        (pa.array([None, None], pa.string()), [0, 1]),
    ],
)
def test_what_counts_as_no_label(labels, missing):
    found = without_label(labels)
    assert ([] if found is None else np.flatnonzero(found).tolist()) == missing
    counter = Unlabelled()
    kept = counter.kept(labels, Origin("data.csv", 2))
    assert counter.count == len(missing)
    if missing:
        assert counter.first == f"data.csv, line {2 + missing[0]}" and kept.sum() == len(labels) - len(missing)
        assert len(labels_at(labels, np.flatnonzero(kept))) == len(labels) - len(missing)
        with pytest.raises(DataError, match=f"line {2 + missing[0]}: the label is missing; .* missing_label='skip'"):
            Unlabelled.as_chosen("raise").kept(labels, Origin("data.csv", 2))


def test_a_choice_that_is_none():
    with pytest.raises(DataError, match="missing_label='ignore': it must be skip, raise or keep"):
        Unlabelled.as_chosen("ignore")


def test_examples_in_memory_leave_them_out(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n1,2,x\n2,3,\n4,4,NA\n5,6,z\n")
    examples = read_source(str(path))
    assert examples.X.tolist() == [[1, 2], [5, 6]] and examples.y.tolist() == ["x", "z"]
    assert examples.notes == (f"left out 2 rows without a label (empty, NA, ? or null), the first: {path}, line 3",)
    np.savez(tmp_path / "data.npz", X=np.eye(3), y=np.array([1.0, np.nan, 0.0]))
    examples = read_source(str(tmp_path / "data.npz"))
    assert examples.y.tolist() == [1, 0] and examples.y.dtype == np.int64 and len(examples.notes) == 1
    parquet.write_table(pa.table({"a": [1.0, 2.0], "y": [None, float("nan")]}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match="there is no row with a label; left out 2 rows"):
        read_source(str(tmp_path / "data.parquet"))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1.0", "0", "1", "0.0"], [1, 0, 1, 0]),
        (["1e1", "10", "+10", "-0", "0"], [10, 10, 10, 0, 0]),
        ([".5", "0.5", "2"], [0.5, 0.5, 2.0]),
        (["1.0", "0"], ["1.0", "0"]),
        (["01", "1", "1.0"], ["01", "1", "1.0"]),  # 01 is a name, and so may the others be
        (["1", "1.0", "x"], ["1", "1.0", "x"]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        ([1, 2], [1, 2]),
    ],
)
def test_equal_numbers_are_one_label_where_all_are_numbers(labels, classes):
    assert as_one(labels) == classes and len({type(label) for label in as_one(labels)}) == 1
    assert bool(alike(labels)) == (len(set(classes)) < len(labels) or "01" in classes or "x" in classes)


@pytest.mark.parametrize(
    ("labels", "classes", "meant"),
    [
        (["1.0", "0.0"], [0, 1], {"1.0": 1, "0.0": 0}),
        ([1, 0], ["0.0", "1.0"], {1: "1.0", 0: "0.0"}),
        ([True, False], ["False", "True"], {True: "True", False: "False"}),
        (["TRUE", "FALSE"], ["False", "True"], {"TRUE": "True", "FALSE": "False"}),
        (["<=50K.", ">50k"], ["<=50K", ">50K"], {"<=50K.": "<=50K", ">50k": ">50K"}),
        (["1", "2"], ["01", "02", "2.0"], {"1": "01"}),  # 2 might be either
        (["yes"], ["Yes", "YES"], {}),
        (["maybe", "1"], ["yes", "no"], {}),
    ],
)
def test_a_label_that_differs_just_a_little_matches_one_class(labels, classes, meant):
    assert matching(labels, classes) == meant


def test_examples_in_memory_have_one_class_for_equal_numbers(tmp_path):
    for k, labels in enumerate((("1", "0"), ("1.0", "0.0"))):
        (tmp_path / f"part-{k}.csv").write_text("a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    examples = read_source(str(tmp_path / "part-*.csv"))
    assert examples.y.tolist() == [1, 0, 1, 0]
    assert examples.notes == ("the labels '0' and '0.0', '1' and '1.0' are equal numbers: taken for one class",)


@pytest.mark.parametrize("word", ["nan", "NaN", "NAN", "-nan", "NA", "?"])
@pytest.mark.parametrize("missing_first", [False, True])
def test_svmlight_labels_that_are_missing(tmp_path, word, missing_first):
    lines = ["1 1:0.5", f"{word} 1:2 2:1  # who knows", "-1 2:1", f"{word}", "3 1:1"]
    path = tmp_path / "data.svm"
    path.write_text("\n".join(lines[1:] + lines[:1] if missing_first else lines) + "\n")
    examples = read_source(str(path))
    assert sorted(examples.y.tolist()) == [-1, 1, 3] and examples.y.dtype == np.int64 and examples.X.shape == (3, 2)
    line = 1 if missing_first else 2
    assert examples.notes == (f"left out 2 rows without a label (empty, NA, ? or null), the first: {path}, line {line}",)
    with pytest.raises(DataError, match=f"line {line}, column 1: '{word.replace('?', '.')}' is not a finite number"):
        load_svmlight(path)
    for wrong in ("none", "n", "nano", "-", "??"):
        with pytest.raises(DataError, match="is not a finite number; a line begins with its label"):
            list(open_source(io.BytesIO(f"1 1:1\n{wrong} 1:1\n2 1:1\n".encode())))


def test_nan_of_json_lines_is_missing():
    nan = float("nan")
    rows = [{"x": 1.5, "word": "a", "y": 1}, {"x": nan, "word": nan, "y": 0}, {"x": 2.5, "y": nan}]
    source = open_source(io.BytesIO("".join(json.dumps(row) + "\n" for row in rows * 3).encode()), label="y")
    table = pa.Table.from_batches([batch.table for batch in source])
    assert table["x"].to_pylist() == [1.5, None, 2.5] * 3 and table["word"].to_pylist() == ["a", None, None] * 3
    assert table["y"].to_pylist() == [1, 0, None] * 3 and source.notes == [] and source.skipped == 0
    with pytest.raises(DataError, match="inf is not a finite number"):
        list(open_source(io.BytesIO(b'{"x": Infinity, "y": 1}\n')))


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.time64("us"), pa.duration("s")])
def test_dates_are_no_labels_and_refused_before_anything_is_learned(tmp_path, kind):
    labels = pa.array(list(range(40)), pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    parquet.write_table(pa.table({"x": [float(k) for k in range(40)], "y": labels}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"the label holds dates or times \(.*\), which are no names of classes"):
        Unlabelled().kept(labels, Origin("t.parquet", 1, "row"))
    if kind != pa.duration("s"):
        with pytest.raises(DataError, match=r"t\.parquet: the label holds dates or times"):
            read_source(str(tmp_path / "t.parquet"))
