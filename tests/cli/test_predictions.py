"""Predictions as files: a row each, with its line in the file where lines may be left out."""

import csv
import io
import json
import subprocess
import sys
import threading
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from separatrix import load, save
from separatrix.cli import app
from separatrix.cli.model_rows import ModelRows
from separatrix.cli.predictions import write_predictions

BROKEN = "too,many,fields,here,by,far"


def call(*arguments, status=0, piped=None):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], input=piped)
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a file of 400 rows, and a model of it."""
    folder, draw = tmp_path_factory.mktemp("predictions"), np.random.default_rng(0)
    rows = [f"{x:.3f},{'yes' if x > 0 else 'no'}" for x in draw.normal(size=400)]
    (folder / "rows.csv").write_text("\n".join(["x,kind", *rows]) + "\n")
    call("train", folder / "rows.csv", "-o", folder / "m.sepx", "-q")
    return folder


def read_predictions(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return (pq.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)).to_pylist()


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_predictions_have_their_lines_where_lines_may_be_left_out(folder, ending):
    whole, part = folder / f"whole{ending}", folder / f"part{ending}"
    call("predict", folder / "m.sepx", folder / "rows.csv", "-o", whole)
    all_rows = read_predictions(whole)
    assert len(all_rows) == 400 and "line" not in all_rows[0]
    lines = (folder / "rows.csv").read_text().splitlines()
    for place in (300, 50, 49, 1):
        lines.insert(place, BROKEN)
    (folder / "broken.csv").write_text("\n".join(lines) + "\n")
    call("predict", folder / "m.sepx", folder / "broken.csv", "--on-error", "skip", "-o", part)
    rows = read_predictions(part)
    assert next(iter(rows[0])) == "line"
    assert [row.pop("line") for row in rows] == [k for k in range(2, 406) if lines[k - 1] != BROKEN]
    assert rows == all_rows


def test_predictions_of_several_files_and_of_formats_without_lines_have_their_places(folder):
    table = pyarrow.csv.read_csv(folder / "rows.csv")
    for k in range(2):
        pq.write_table(table.slice(200 * k, 200), folder / f"part-{k}.parquet")
    done = call("predict", folder / "m.sepx", folder / "part-*.parquet", "--on-error", "skip")
    rows = [line.split(",")[:2] for line in done.splitlines()]
    assert rows[0] == ['"file"', '"row"']
    names = [f'"{folder / f"part-{k}.parquet"}"' for k in range(2)]
    assert rows[1:] == [[name, str(number)] for name in names for number in range(1, 201)]


CODES = [
    ["id", "when", "price", "note, long", "x", "prediction"],
    ["007", "2024-01-05", "1.50", 'a, "b"', "0.5", "old"],
    ["008", "", "12345678901234567890", "", "-0.50", "new"],
    ["1e3", "5/6", "NA", "two\nlines", "+1", ""],
]


@pytest.fixture(scope="module")
def codes(folder):
    """A file of values that typed reading would change, which the model reads only `x` of."""
    with open(folder / "codes.csv", "w", newline="") as file:
        csv.writer(file).writerows(CODES)
    return folder / "codes.csv"


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_kept_columns_come_first_and_as_they_are_written(folder, codes, ending):
    output = folder / f"kept{ending}"
    call("predict", folder / "m.sepx", codes, "--keep", "all", "-o", output)
    names = ["id", "when", "price", "note, long", "x", "prediction (as read)", "prediction", "margin"]
    if ending == ".csv":
        rows = [dict(zip(names, row, strict=True)) for row in csv.reader(io.StringIO(output.read_text()))][1:]
    else:
        rows = read_predictions(output)
    assert [list(row) for row in rows] == [names] * 3
    assert [list(row.values())[:6] for row in rows] == CODES[1:]
    assert [row["prediction"] for row in rows] == ["yes", "no", "yes"]


def test_columns_to_keep_are_named_or_counted(folder, codes):
    def heads(*keep, source=codes):
        written = call("predict", folder / "m.sepx", source, *keep)
        return next(csv.reader([written.splitlines()[0]]))[:-2]

    assert heads("--keep", "price,id") == ["id", "price"]  # in the order of the file
    assert heads("--keep", "note, long", "--keep", "0") == ["id", "note, long"]
    assert heads() == []
    assert (
        "the column 'prediction' of the file is written as 'prediction (as read)'"
        in CliRunner().invoke(app, ["predict", str(folder / "m.sepx"), str(codes), "--keep", "prediction"]).stderr
    )
    for wrong, why in (("idd", "did you mean 'id'?"), ("9", "there is no column 9; there are 6, counted from 0")):
        assert why in call("predict", folder / "m.sepx", codes, "--keep", wrong, status=2)
    (folder / "rows.svm").write_text("1 1:2.5\n-1 1:1\n")
    call("train", folder / "rows.svm", "-o", folder / "svm.sepx", "-q")
    refused = call("predict", folder / "svm.sepx", folder / "rows.svm", "--keep", "all", status=2)
    assert "svmlight data have no named columns that could be kept" in refused


def test_columns_of_a_file_without_a_header_are_kept_by_number(folder):
    lines = [f"00{k}, {k % 5}.50, {'a' if k % 5 < 2 else 'b'}" for k in range(60)]
    (folder / "bare.csv").write_text("\n".join(lines) + "\n")
    call("train", folder / "bare.csv", "-o", folder / "bare.sepx", "-q")
    written = call("predict", folder / "bare.sepx", folder / "bare.csv", "--keep", "0,1").splitlines()[1:]
    assert [row[:2] for row in csv.reader(written)] == [[f"00{k}", f"{k % 5}.50"] for k in range(60)]


def test_kept_columns_stand_beside_their_rows_where_lines_are_left_out(folder):
    rows = (folder / "rows.csv").read_text().splitlines()
    broken = [rows[0], *[line for row in rows[1:50] for line in (row, BROKEN)]]
    (folder / "broken.csv").write_text("\n".join(broken) + "\n")
    arguments = ("predict", folder / "m.sepx", folder / "broken.csv", "--on-error", "skip", "--keep", "x")
    written = list(csv.DictReader(call(*arguments).splitlines()))
    assert [row["x"] for row in written] == [row.split(",")[0] for row in rows[1:50]]
    assert list(written[0])[:3] == ["line", "x", "prediction"]
    assert [int(row["line"]) for row in written] == list(range(2, 100, 2))


def test_json_values_are_kept_as_they_are_written(folder):
    lines = [
        '{"id": 12345678901234567890, "code": "007", "price": 1.50, "tags": ["p", "q"], "x": 0.5}',
        '{"code": null, "price": 2, "tags": [], "x": -1.0, "id": 3}',
    ]
    (folder / "kept.jsonl").write_text("\n".join(lines) + "\n")
    call("predict", folder / "m.sepx", folder / "kept.jsonl", "--keep", "all", "-o", folder / "again.jsonl")
    written = (folder / "again.jsonl").read_text().splitlines()
    assert written[0].startswith(lines[0].removesuffix("}") + ', "prediction": "yes", "margin": ')
    assert json.loads(written[1]).items() >= json.loads(lines[1]).items()
    table = csv.DictReader(call("predict", folder / "m.sepx", folder / "kept.jsonl", "--keep", "all").splitlines())
    assert [(row["id"], row["code"], row["price"], row["tags"]) for row in table] == [
        ("12345678901234567890", "007", "1.50", '["p", "q"]'),
        ("3", "", "2", "[]"),
    ]


def test_columns_of_parquet_are_kept_with_their_types(folder):
    columns = {
        "id": pa.array([2**62 + 1, None]),
        "price": pa.array([Decimal("1.50"), Decimal("2.00")]),
        "day": pa.array([date(2024, 1, 5), None]),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
        "tags": pa.array([["p"], None]),
        "x": pa.array([0.5, float("nan")]),
    }
    pq.write_table(pa.table(columns), folder / "typed.parquet")
    arguments = ("predict", folder / "m.sepx", folder / "typed.parquet", "--keep", "all")
    call(*arguments, "-o", folder / "typed-out.parquet")
    kept = pq.read_table(folder / "typed-out.parquet").select(list(columns))
    assert kept.schema.field("price").type == columns["price"].type and kept.schema.field("day").type == pa.date32()
    assert kept.slice(0, 1).to_pylist() == pa.table(columns).slice(0, 1).to_pylist()
    first, second = csv.reader(call(*arguments).splitlines()[1:])
    assert first[:6] == [str(2**62 + 1), "1.50", "2024-01-05", "a", '["p"]', "0.5"] and second[0] == second[2] == ""
    call(*arguments, "-o", folder / "typed-out.jsonl")
    read = read_predictions(folder / "typed-out.jsonl")
    assert read[0]["day"] == "2024-01-05" and read[0]["price"] == "1.50" and read[1]["x"] is None


def test_predictions_are_read_from_a_pipe_and_written_as_they_are_made(folder):
    whole = call("predict", folder / "m.sepx", folder / "rows.csv", "--keep", "x")
    assert call("predict", folder / "m.sepx", "-", "--keep", "x", piped=(folder / "rows.csv").read_bytes()) == whole
    command = [sys.executable, "-m", "separatrix", "predict", str(folder / "m.sepx"), "-", "--keep", "x"]
    content = (folder / "rows.csv").read_text().split("\n", 1)
    is_read, n_written = threading.Event(), [0]

    def feed(pipe):
        pipe.write(content[0].encode() + b"\n")
        while not is_read.is_set() and n_written[0] < 8_000_000:
            pipe.write(content[1].encode() * 100)
            n_written[0] += 40_000
        pipe.close()

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        thread = threading.Thread(target=feed, args=(process.stdin,))
        thread.start()
        assert process.stdout.readline() == b'"x","prediction","margin"\n'
        assert process.stdout.readline().startswith(content[1][:5].encode()) and thread.is_alive()
        is_read.set()
        n_read = 1 + sum(1 for _ in process.stdout)
        thread.join()
    assert n_read == n_written[0] < 8_000_000


class Pieces:
    """A file that stores how much was written, and how much at once at most, and nothing else."""

    most = total = 0

    def write(self, content):
        self.most, self.total = max(self.most, len(content)), self.total + len(content)

    def flush(self):
        pass


def test_a_large_file_is_written_in_pieces(folder):
    content = (folder / "rows.csv").read_text().split("\n", 1)
    (folder / "large.csv").write_text(content[0] + "\n" + content[1] * 400)
    for form in ("csv", "jsonl"):
        rows = ModelRows(folder / "m.sepx", str(folder / "large.csv"), {"keep": ["all"], "batch_bytes": 1 << 14})
        file = Pieces()
        assert write_predictions(rows, file, form, True) == 160_000
        assert 0 < file.most < file.total / 50


def test_the_margin_is_the_distance_from_the_threshold(folder):
    model = load(folder / "m.sepx")
    model.estimator.threshold_ = 0.25
    save(model, folder / "threshold.sepx")
    rows = list(csv.DictReader(call("predict", folder / "threshold.sepx", folder / "rows.csv", "--scores").splitlines()))
    assert all(float(row["margin"]) == abs(float(row["score of yes"]) - 0.25) for row in rows)
    assert all((row["prediction"] == "yes") == (float(row["score of yes"]) > 0.25) for row in rows)


def test_shards_are_predicted_with_their_columns(folder):
    call("predict", folder / "m.sepx", folder / "rows.csv", "--keep", "kind", "--engine", "local:1", "-o", folder / "shards")
    whole = call("predict", folder / "m.sepx", folder / "rows.csv", "--keep", "kind")
    assert (folder / "shards" / "rows.csv").read_text() == whole
