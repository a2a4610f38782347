"""Every format, plain or compressed, one file or many: the same rows, in bounded batches that know their places."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file, load_iris

import separatrix
from separatrix.cli import app
from separatrix.data.errors import DataError
from separatrix.data.in_memory import read_source
from separatrix.data.reading import open_source
from support.file_formats import (
    COMPRESSIONS,
    MATRICES,
    ROWS,
    TABLE,
    TABLES,
    X,
    Y,
    every_compression,
    matrix_of,
    rows_of,
    save,
    write,
)

# Round trips.


@every_compression
@pytest.mark.parametrize("form", TABLES)
def test_a_table_comes_back_from_every_format(tmp_path, form, compression):
    path = write(tmp_path / "data", COMPRESSIONS[compression](TABLES[form]))
    source = open_source(path)
    assert (source.kind, source.label) == ("columns", "kind")
    assert rows_of(source) == ROWS
    assert rows_of(source) == ROWS  # and again
    assert [str(kind) for kind in source.schema.types] == ["double", "double", "string", "string"]


@every_compression
@pytest.mark.parametrize("form", MATRICES)
def test_a_matrix_comes_back_from_every_format(tmp_path, form, compression):
    path = write(tmp_path / "data", COMPRESSIONS[compression](MATRICES[form]))
    source = open_source(path)
    assert source.kind == "rows"
    for _ in range(2):
        whole, y = matrix_of(source)
        assert np.array_equal(whole, X.toarray()) and np.array_equal(y, Y)
    assert source.n_features == 9


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=() if form in ("csv", "svmlight") else pytest.mark.slow) for form in (*TABLES, *MATRICES)],
)
def test_standard_input_is_read_once_and_named(form):
    data = (TABLES | MATRICES)[form]
    code = """
from separatrix.data.reading import open_source
source = open_source("-")
print(source.name, sum(len(batch) for batch in source), source.fingerprint())
try:
    next(iter(source))
except ValueError as problem:
    print(problem)
"""
    first, second = piped(code, gzip.compress(data) if form in ("csv", "svmlight", "parquet") else data).splitlines()
    assert first.startswith(f"standard input {len(ROWS) if form in TABLES else 50} ")
    assert second == "standard input can be read only once; put the data into a file to read them again"


def piped(code, data):
    environment = os.environ | {"PYTHONPATH": str(Path(separatrix.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_fingerprint_is_of_the_bytes_and_not_of_the_name(tmp_path):
    one, two = write(tmp_path / "one.csv", TABLES["csv"]), write(tmp_path / "two", TABLES["csv"])
    three = write(tmp_path / "three", TABLES["csv"].replace(b"blau", b"bleu"))
    marks = [open_source(path).fingerprint() for path in (one, two, three)]
    assert marks[0] == marks[1] != marks[2]
    assert open_source(io.BytesIO(TABLES["csv"])).fingerprint() == marks[0]
    code = "from separatrix.data.reading import open_source; s = open_source('-'); list(s); print(s.fingerprint())"
    assert piped(code, TABLES["csv"]).strip() == marks[0]
    assert open_source("iris").fingerprint() == open_source("iris").fingerprint() != open_source("wine").fingerprint()


# Shards.


@pytest.mark.parametrize("form", TABLES)
def test_a_pattern_reads_its_files_in_order(tmp_path, form):
    for name in ("part-2", "part-1", "part-3"):
        write(tmp_path / name, TABLES[form] if name != "part-2" else gzip.compress(TABLES[form]))
    source = open_source(str(tmp_path / "part-*"))
    assert rows_of(source) == ROWS * 3
    assert [Path(file).name for file in source.files] == ["part-1", "part-2", "part-3"]
    places = [batch.origin.place(0) for batch in source]
    assert [Path(place.split(",")[0]).name for place in places] == ["part-1", "part-2", "part-3"]
    both = open_source([tmp_path / "part-3", tmp_path / "part-1"])
    assert rows_of(both) == ROWS * 2 and both.files[0].endswith("part-3")


def test_each_shard_has_its_own_lines_before_the_table(tmp_path):
    write(tmp_path / "a", "x,kind\n1,a\n")
    write(tmp_path / "b", "# later\n\nx,kind\n\n2,b\n")
    source = open_source(str(tmp_path / "*"))
    assert rows_of(source) == [{"x": 1, "kind": "a"}, {"x": 2, "kind": "b"}]
    assert [batch.origin.first for batch in source] == [2, 5]


def test_shards_of_svmlight_grow_wider(tmp_path):
    write(tmp_path / "a.svm", "1 1:1\n")
    write(tmp_path / "b.svm", "-1 4:2\n")
    source = open_source(str(tmp_path / "*.svm"))
    assert [batch.X.shape for batch in source] == [(1, 1), (1, 4)]
    assert source.n_features == 4
    assert [batch.X.shape for batch in source] == [(1, 4), (1, 4)]
    assert [batch.X.shape for batch in open_source(str(tmp_path / "*.svm"), n_features=6)] == [(1, 6), (1, 6)]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("a,b\n1,2\n", "1 1:1\n", "b looks like svmlight, but"),
        ("a,b\n1,2\n", "a,c\n1,2\n", "b, line 1: the columns a, c are not those of"),
        ("a,b\n1,2\n", "b,a\n1,2\n", "b, line 1: the columns b, a have another order than"),
        ("a,b\n1,2\n", "1,2\n3,4\n", "b, line 1: the columns 1, 2 are not those of"),
        ("1,2\n1,2\n", "1,2,3\n1,2,3\n", "b, line 1: the columns c0, c1, c2 are not those of"),
        ('{"a": 1}\n', '{"b": 1}\n', "b, line 1: the key 'b' is not among those"),
        ("a,b\n1,2\n", "", "b: the file is empty"),
    ],
)
def test_shards_that_do_not_fit_together(tmp_path, first, second, message):
    write(tmp_path / "a", first)
    write(tmp_path / "b", second)
    with pytest.raises(DataError) as caught:
        list(open_source(str(tmp_path / "*")))
    assert message in str(caught.value)


def test_parquet_shards_with_other_columns(tmp_path):
    parquet.write_table(TABLE, tmp_path / "a")
    parquet.write_table(TABLE.drop_columns("width"), tmp_path / "b")
    with pytest.raises(DataError, match="b: the columns height, colour, kind are not those of"):
        list(open_source(str(tmp_path / "*")))


# Batches.


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("form", ["csv", "jsonl", "svmlight", "parquet", "arrow", "npz", "sparse npz"])
def test_batches_are_bounded_in_order_and_know_their_places(tmp_path, form, threads):
    n = 3000
    path = tmp_path / "data"
    table = pa.table({"x": np.arange(n) / 8, "text": [f"row {i}" for i in range(n)], "y": np.arange(n)})
    wide = np.arange(2 * n, dtype=np.float64).reshape(n, 2)
    match form:
        case "csv":
            path.write_text("x,text,y\n\n" + "".join(f"{i / 8},row {i},{i}\n" for i in range(n)))
        case "jsonl":
            path.write_text("".join(f'{{"x": {i / 8}, "text": "row {i}", "y": {i}}}\n' for i in range(n)))
        case "svmlight":
            path.write_text("# first\n" + "".join(f"{i} 1:{2 * i} 2:{2 * i + 1}\n" for i in range(n)))
        case "parquet":
            parquet.write_table(table, path, row_group_size=700)
        case "arrow":
            feather.write_feather(table, path)
        case "npz":
            save(path, X=wide, y=np.arange(n))
        case "sparse npz":
            m = sp.csr_matrix(wide)
            parts = {"indptr": m.indptr, "indices": m.indices, "data": m.data, "shape": m.shape, "format": "csr"}
            save(path, y=np.arange(n), **parts)
    for rows, size in ((100, 1 << 20), (1 << 20, 4096), (7, 4096)):
        batches = list(open_source(path, batch_rows=rows, batch_bytes=size, threads=threads))
        assert max(len(batch) for batch in batches) <= rows
        assert len(batches) >= max(n // rows, 3 if size == 4096 else 1)
        if batches[0].__class__.__name__ == "TableBatch":
            assert max(batch.table.nbytes for batch in batches) <= 4 * size + 64
            assert [label for batch in batches for label in batch.table["y"].to_pylist()] == list(range(n))
            assert [text for batch in batches for text in batch.table["text"].to_pylist()] == table["text"].to_pylist()
        else:
            assert np.concatenate([batch.y for batch in batches]).tolist() == list(range(n))
            parts = [batch.X.toarray() if sp.issparse(batch.X) else batch.X for batch in batches]
            assert np.array_equal(np.concatenate(parts), wide)
        shift = {"csv": 3, "svmlight": 2}.get(form, 1)
        numbers = [batch.origin.number(i) for batch in batches for i in range(len(batch))]
        assert numbers == list(range(shift, n + shift))


PEAK = """
import sys
from separatrix.data.reading import open_source
rows = sum(len(batch) for batch in open_source(sys.argv[1], batch_bytes=1 << 20, threads=2))
print(rows, next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is asked for as on Linux")
@pytest.mark.parametrize("form", ["csv", "svmlight", "jsonl", "parquet", "npz"])
def test_a_file_ten_times_as_long_takes_no_more_memory(tmp_path, form):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(10_000, 20))
    lines = {
        "csv": lambda: "".join(",".join(map(repr, row)) + ",a\n" for row in values.tolist()),
        "svmlight": lambda: "".join(
            "1 " + " ".join(f"{j}:{x!r}" for j, x in enumerate(row, 1)) + "\n" for row in values.tolist()
        ),
        "jsonl": lambda: "".join(json.dumps(dict(enumerate(row))) + "\n" for row in values.tolist()),
    }
    peaks = []
    for times in (2, 20):
        path = tmp_path / f"{times}"
        if form in lines:
            path.write_text(lines[form]() * times)
        elif form == "parquet":
            table = pa.table({f"c{j}": column for j, column in enumerate(values.T)})
            parquet.write_table(pa.concat_tables([table] * times), path, row_group_size=10_000)
        else:
            with path.open("wb") as file:
                np.savez(file, X=np.tile(values, (times, 1)), y=np.zeros(times * 10_000))
        environment = os.environ | {"PYTHONPATH": str(Path(separatrix.__file__).parents[1])}
        done = subprocess.run(
            [sys.executable, "-c", PEAK, path], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        rows, peak = map(int, done.stdout.split())
        assert rows == times * 10_000
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]


# Built-in names, and the verbs that read examples into memory.


def test_built_in_names_are_sources_too():
    source = open_source("iris", batch_rows=40)
    assert source.kind == "rows" and source.feature_names[0] == "sepal length (cm)" and source.n_features == 4
    assert [len(batch) for batch in source] == [40, 40, 40, 30]
    bunch = load_iris()
    X, y = (np.concatenate([getattr(batch, side) for batch in source]) for side in "Xy")
    assert X.tobytes() == bunch.data.tobytes() and X.dtype == bunch.data.dtype
    assert y.tolist() == bunch.target_names[bunch.target].tolist() and y.dtype == bunch.target_names.dtype
    assert source.feature_names == tuple(bunch.feature_names)
    (batch,) = open_source("lecture:L4.1")
    assert batch.X.tolist() == [[4, 0], [1, 1], [0, 1], [-2, -2]] and batch.origin.place(1) == "lecture:L4.1, row 2"
    with pytest.raises(DataError, match="iris is built in and has its own labels"):
        open_source("iris", label="species")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "svmlight", "npz"])
def test_examples_are_the_same_from_every_format(tmp_path, form):
    path, y = tmp_path / "data", np.array([1, -1, 1])
    exact = np.array([[2**60 + 1, 3], [5, -7], [0, 9]])
    match form:
        case "csv":
            path.write_text("".join(f"{a},{b},{label:+d}\n" for (a, b), label in zip(exact.tolist(), y, strict=True)))
        case "jsonl":
            path.write_text(
                "".join(f'{{"a": {a}, "b": {b}, "y": {label}}}\n' for (a, b), label in zip(exact, y, strict=True))
            )
        case "parquet":
            parquet.write_table(pa.table({"a": exact[:, 0], "b": exact[:, 1], "y": y}), path)
        case "svmlight":
            exact[0, 0] = 2**53
            dump_svmlight_file(exact, y, str(path), zero_based=False)
        case "npz":
            save(path, X=exact, y=y)
    found = read_source(str(path))
    dense = found.X.toarray() if sp.issparse(found.X) else found.X
    assert dense.tolist() == exact.tolist() and found.y.tolist() == y.tolist() and found.y.dtype == np.int64
    done = CliRunner().invoke(app, ["certify", str(path)])
    assert done.exit_code == 0 and "is separable: 3 examples, 2 features" in done.output
    if form in ("svmlight", "csv"):
        assert (
            CliRunner()
            .invoke(app, ["certify", "-"], input=path.read_bytes())
            .output.startswith("standard input is separable")
        )


def test_whole_numbers_that_no_type_holds_are_refused(tmp_path):
    for text, message in [
        ("9007199254740993,1,a\n1,2.5,b\n", "whole numbers above 2**53 beside fractions"),
        ("123456789012345678901,1,a\n1,2,b\n", "whole numbers that long cannot be held exactly"),
    ]:
        with pytest.raises(DataError) as caught:
            read_source(str(write(tmp_path / "data.csv", text)))
        assert message in str(caught.value)
    assert read_source(str(write(tmp_path / "data.csv", "100000000000000000000,1,a\n1,2,b\n"))).X[0, 0] == 1e20
