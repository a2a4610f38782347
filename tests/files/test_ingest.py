"""Reading a source into blocks: rows without a label, and which rows are held out; how often it is read."""

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix.data.errors import DataError
from separatrix.data.reading import Source, open_source
from separatrix.features.table import TableFeaturizer
from separatrix.files import ingest
from separatrix.files.blocks import held_out_rows
from separatrix.files.ingest import read_blocks


@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_rows_without_a_label_are_left_out_and_the_split_stays(tmp_path, batch_rows):
    n = 200
    labels = np.array(["ab"[i % 2] for i in range(n)], object)
    labels[::9] = ""
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "".join(f"{i / 8},{label}\n" for i, label in enumerate(labels)))
    source = open_source(path, batch_rows=batch_rows)
    gathered = read_blocks(source, TableFeaturizer(numbers="standard"), memory=1 << 24, fraction=0.3, seed=5)
    out, missing = held_out_rows(0, n, 0.3, 5), labels == ""
    assert gathered.unlabelled == missing.sum() == 23
    assert gathered.notes == [f"left out 23 rows without a label (empty, NA, ? or null), the first: {path}, line 2"]
    assert gathered.blocks.n == (~out & ~missing).sum() and gathered.held_out.n == (out & ~missing).sum()
    assert gathered.blocks.whole(gathered.classes)[1].tolist() == labels[~out & ~missing].tolist()
    assert gathered.features.schema.n_rows == gathered.blocks.n  # the columns are learned from labelled rows alone


def test_labels_missing_from_a_validation_file_and_from_numbers(tmp_path):
    (tmp_path / "train.csv").write_text("x,y\n1,a\n2,b\n3,a\n")
    (tmp_path / "valid.csv").write_text("x,y\n1,a\n2,\n3,NA\n")
    sources = [open_source(tmp_path / name) for name in ("train.csv", "valid.csv")]
    gathered = read_blocks(sources[0], TableFeaturizer(), memory=1 << 24, validation=sources[1])
    assert (gathered.unlabelled, gathered.held_out.n) == (0, 1)
    assert gathered.notes == [
        f"left out 2 rows without a label (empty, NA, ? or null), the first: {tmp_path}/valid.csv, line 3"
    ]
    np.savez(tmp_path / "data.npz", X=np.eye(4), y=np.array([1.0, np.nan, 0.0, 1.0]))
    gathered = read_blocks(open_source(tmp_path / "data.npz"), None, memory=1 << 24)
    assert gathered.classes.tolist() == [0, 1] and gathered.unlabelled == 1 and gathered.blocks.n == 3


def test_no_label_at_all_and_labels_that_must_be_there(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,\n2,NA\n")
    with pytest.raises(DataError, match="there is no row with a label to learn from; left out 2 rows"):
        read_blocks(open_source(path), TableFeaturizer(), memory=1 << 24)
    with pytest.raises(DataError, match="line 2: the label is missing"):
        read_blocks(open_source(path), TableFeaturizer(), memory=1 << 24, missing_label="raise")


def test_missing_labels_of_svmlight_do_not_change_the_others(tmp_path):
    rows = [f"{k % 3} 1:{k % 5} 2:{k % 7}\n" for k in range(3000)]
    rows[2000] = "7.0 1:1\n"
    (tmp_path / "data.svm").write_text("".join([*rows, "nan 1:1\n", "? 2:2\n"]))
    for batch_bytes in (1 << 21, 1 << 10):
        source = open_source(tmp_path / "data.svm", batch_bytes=batch_bytes)
        gathered = read_blocks(source, None, memory=1 << 20)
        assert gathered.classes.tolist() == [0, 1, 2, 7] and gathered.classes.dtype == np.int64
        assert gathered.unlabelled == 2 and gathered.blocks.n == 3000


@pytest.mark.parametrize("fraction", [0.0, 0.3])
@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_a_value_that_cannot_be_learned_from_is_named_by_its_line(tmp_path, fraction, batch_rows):
    n = 500
    out = held_out_rows(0, n, fraction, 5) if fraction else np.zeros(n, bool)
    at = next(i for i in range(400, n) if i % 9 and not out[i])
    rows = [f"{'perhaps' if i == at else 'yes'},{'' if i % 9 == 0 else 'ab'[i % 2]}" for i in range(n)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["member,y", *rows]) + "\n")
    features = TableFeaturizer(roles={"member": "boolean"})
    message = rf"data\.csv, line {at + 2}, column 'member': 'perhaps' is neither true nor false"
    with pytest.raises(ValueError, match=message):
        read_blocks(open_source(path, batch_rows=batch_rows), features, memory=1 << 24, fraction=fraction, seed=5)


def test_a_small_table_is_read_once_and_a_larger_one_twice_with_the_same_rows(tmp_path, monkeypatch):
    path = tmp_path / "mixed.csv"
    rows = [f"{k * 0.37 % 5:.3f},{'abc'[k % 3]},{k % 2}" for k in range(500)] + ["1,2,3,4", "0.5,c,1"]
    path.write_text("\n".join(["width,kind,label", *rows]) + "\n")
    readings, results = [], []
    monkeypatch.setattr(Source, "__iter__", lambda self, read=Source.__iter__: readings.append(self.name) or read(self))
    for most in (1 << 28, 0):
        monkeypatch.setattr(ingest, "MOST_KEPT", most)
        source = open_source(path, on_error="skip", batch_rows=64)
        gathered = read_blocks(source, TableFeaturizer(), memory=1 << 24, fraction=0.2)
        X = gathered.blocks.read(0).rows.source
        results.append((X.toarray().tolist(), gathered.held_out.n, source.skipped, source.problems, gathered.notes))
        gathered.close()
    assert len(readings) == 1 + 2
    assert results[0] == results[1]
    assert results[0][2] == 1


@pytest.mark.parametrize("form", ["train", "validate"])
def test_held_out_rows_of_another_width_are_refused_where_rows_are_dense(tmp_path, form):
    width = {"train": 5, "validate": 5} | {form: 3}
    for name, d in width.items():
        np.savez(tmp_path / f"{name}.npz", X=np.arange(4.0 * d).reshape(4, d), y=[0, 1, 0, 1])
    sources = [open_source(tmp_path / f"{name}.npz") for name in ("train", "validate")]
    message = rf"validate\.npz has {width['validate']} features, but .*train\.npz, which is trained on, has {width['train']}"
    with pytest.raises(DataError, match=message):
        read_blocks(sources[0], None, memory=1 << 24, validation=sources[1])


def test_files_may_be_dense_and_sparse(tmp_path):
    X, y = np.arange(20.0).reshape(4, 5) % 3, np.array([0, 1, 0, 1])
    rows = sp.csr_matrix(X)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": rows.shape, "format": "csr"}
    for first, other in (("dense", "sparse"), ("sparse", "dense")):
        for name, form in ((f"{first}-1.npz", first), (f"{first}-2.npz", other)):
            np.savez(tmp_path / name, y=y, **({"X": X} if form == "dense" else parts))
        gathered = read_blocks(open_source(tmp_path / f"{first}-*.npz"), None, memory=1 << 24)
        read = gathered.blocks.together()
        assert sp.issparse(read) == (first == "sparse")
        assert np.array_equal(read.toarray() if sp.issparse(read) else read, np.vstack([X, X]))


def test_an_infinite_label_is_refused_by_its_row(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(4), y=np.array([1.0, np.nan, 0.0, -np.inf]))
    with pytest.raises(DataError, match=r"data\.npz, row 4: the label is infinity"):
        read_blocks(open_source(tmp_path / "data.npz"), None, memory=1 << 24)
