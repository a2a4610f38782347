"""Predictions as files: a row each, with its line in the file where lines may be left out."""

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from separatrix.cli import app

BROKEN = "too,many,fields,here,by,far"


def call(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


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
