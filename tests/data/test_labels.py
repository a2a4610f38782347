"""Rows without a label, in every format, and labels with blanks around them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from separatrix.data.errors import DataError, Origin
from separatrix.data.in_memory import read_source
from separatrix.data.labels import Unlabelled, labels_at, without_label


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
    with pytest.raises(DataError, match="missing_label='ignore': it must be skip or raise"):
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


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.time64("us"), pa.duration("s")])
def test_dates_are_no_labels_and_refused_before_anything_is_learned(tmp_path, kind):
    labels = pa.array(list(range(40)), pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    parquet.write_table(pa.table({"x": [float(k) for k in range(40)], "y": labels}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"the label holds dates or times \(.*\), which are no names of classes"):
        Unlabelled().kept(labels, Origin("t.parquet", 1, "row"))
    if kind != pa.duration("s"):
        with pytest.raises(DataError, match=r"t\.parquet: the label holds dates or times"):
            read_source(str(tmp_path / "t.parquet"))
