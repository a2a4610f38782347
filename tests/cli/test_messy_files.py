"""What the verbs say of files with missing labels, other encodings, and lines that cannot be read."""

import json

import pytest
from click.testing import CliRunner

from separatrix.cli import app


def run(*arguments, status=0, **options):
    result = CliRunner().invoke(app, list(map(str, arguments)), **options)
    assert result.exit_code == status, result.output + str(result.exception)
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


ROWS = [f"{i % 7},{i % 5},{'yes' if i % 7 > 2 else 'no'}\n" for i in range(60)]


def test_rows_without_a_label_are_counted_by_train_and_evaluate(folder):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2,\n3,4,NA\n5,6,?\n")
    printed = run("train", "data.csv", "-o", "model.sepx").stdout
    assert "  left out 3 rows without a label, the first: data.csv, line 62\n" in printed
    assert "60 rows, 2 classes (no 27, yes 33)" in printed
    summary = json.loads(run("train", "data.csv", "--json").stdout)
    assert summary["unlabelled"] == summary["facts"]["unlabelled"] == 3 and summary["rows"] == 60
    printed = run("evaluate", "model.sepx", "data.csv").stdout
    assert "data.csv: 60 rows" in printed and "left out 3 rows without a label, the first: data.csv, line 62" in printed
    evaluation = json.loads(run("evaluate", "model.sepx", "data.csv", "--json").stdout)
    assert evaluation["unlabelled"] == 3 and evaluation["rows"] == 60 and evaluation["unknown_labels"] == {}
    for verb in (["train", "data.csv"], ["evaluate", "model.sepx", "data.csv"]):
        assert "data.csv, line 62: the label is missing" in run(*verb, "--missing-label", "raise", status=2).stderr
    assert run("predict", "model.sepx", "data.csv").stdout.count("\n") == 64  # a row to predict needs no label


def test_tidy_files_say_nothing_of_missing_labels(folder):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS))
    summary = json.loads(run("train", "data.csv", "--json").stdout)
    assert summary["unlabelled"] == 0 and summary["notes"] == [] and "unlabelled" not in summary["facts"]


@pytest.mark.parametrize("verb", ["certify", "trace", "compare"])
def test_rows_without_a_label_are_told_by_verbs_that_hold_all_examples(folder, verb):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2,\n3,4,NA\n")
    models = ["--models", "perceptron"] if verb == "compare" else []
    result = CliRunner().invoke(app, [verb, "data.csv", *models])
    assert result.exit_code in (0, 1), result.output
    assert f"separatrix {verb}: note: left out 2 rows without a label, the first: data.csv, line 62" in result.stderr


def test_shards_leave_them_out_too(folder):
    for part in range(2):
        (folder / f"part-{part}.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2,\n" * part)
    printed = run("train", "part-*.csv", "--engine", "local:1").stdout
    assert "120 rows" in printed and "left out 1 row without a label, the first: part-1.csv, line 62" in printed
