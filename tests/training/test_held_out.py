"""`train` with held-out rows: all figures, a threshold chosen on them and stored, and a report."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from separatrix import evaluate, load, train
from separatrix.cli import app
from separatrix.data.errors import DataError
from separatrix.files.blocks import held_out_rows

pytestmark = pytest.mark.filterwarnings("ignore::separatrix.training.recipe.TrainingWarning")
RNG = np.random.default_rng(3)
N = 600
X = RNG.normal(size=(N, 4))
LABELS = np.where(X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=N) > 1.0, "yes", "no")
FRAME = pd.DataFrame(X, columns=list("abcd")).round(4).assign(note=[f"<b>{k}</b>" for k in range(N)], kind=LABELS)
OPTIONS = {"label": "kind", "holdout": 0.3, "drop": ["note"]}
OUT = np.flatnonzero(held_out_rows(0, N, 0.3, 0))


def call(*arguments, status=0, input=None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=input)
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture
def path(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def held_out():
    frame = FRAME.iloc[OUT]
    return frame.drop(columns="kind"), frame["kind"]


@pytest.mark.parametrize("options", [{}, {"calibrate": True}, {"learner": "pocket"}, {"tie": "+1"}], ids=str)
def test_the_figures_are_those_of_evaluate_on_the_held_out_rows(options):
    model = train(FRAME, **OPTIONS, **options)
    expected = evaluate(model, *held_out())
    assert model.evaluation.rows == len(OUT) == model.summary["held_out"]
    assert np.array_equal(model.evaluation.confusion, expected.confusion)
    for name in ("roc_auc", "average_precision", "log_loss", "calibration_error", "balanced_accuracy"):
        ours, theirs = getattr(model.evaluation, name), getattr(expected, name)
        assert ours == theirs if theirs is None else ours == pytest.approx(theirs, rel=1e-9)
    assert model.summary["held_out_accuracy"] == expected.accuracy == model.summary["evaluation"]["accuracy"]
    assert model.estimator.threshold_ is None


@pytest.mark.parametrize("positive", ["no", "yes"])
@pytest.mark.parametrize("purpose", ["f1", "balanced", "cost=1:9"])
def test_the_best_threshold_is_stored_and_followed(tmp_path, purpose, positive):
    file = tmp_path / "model.sepx"
    model = train(FRAME, **OPTIONS, optimize=purpose, positive=positive, output=file)
    best = evaluate(train(FRAME, **OPTIONS), *held_out(), positive=positive).optimize(purpose)
    assert model.evaluation.threshold == pytest.approx(best.threshold) and best.threshold != 0.0
    assert np.array_equal(model.evaluation.confusion, best.confusion)
    rows = FRAME.drop(columns="kind")
    predicted = np.where(model.decision_function(rows) > model.estimator.threshold_, "yes", "no")
    assert np.array_equal(model.predict(rows), predicted) and np.array_equal(load(file).predict(rows), predicted)
    shown = str(model.summary)
    assert f"on the score of {positive}, best for {purpose} on the held-out rows: their figures are optimistic" in shown


def test_the_command_stores_it_and_every_verb_follows(path, tmp_path):
    file, plain, out = tmp_path / "m.sepx", tmp_path / "plain.sepx", tmp_path / "predictions.csv"
    arguments = ("train", path, "--label", "kind", "--drop", "note", "--holdout", 0.3, "-q")
    call(*arguments, "-o", plain)
    summary = json.loads(call(*arguments, "--optimize", "cost=1:9", "-o", file, "--json"))
    cut = summary["evaluation"]["threshold"]["score"]
    assert cut < 0 and load(file).estimator.threshold_ == cut
    assert b'\\"format\\":2' in file.read_bytes() and b'\\"format\\":1' in plain.read_bytes()
    assert "predicts yes where its score is above" in call("info", file)
    rows = FRAME.drop(columns="kind")
    call("predict", file, path, "-o", out, "--scores")
    predictions = pd.read_csv(out)
    assert predictions["prediction"].tolist() == load(file).predict(rows).tolist()
    assert predictions["score of yes"].to_numpy() == pytest.approx(load(plain).decision_function(rows))
    assert predictions["margin"].to_numpy() == pytest.approx(np.abs(predictions["score of yes"] - cut))
    assert json.loads(call("evaluate", file, path, "--json"))["threshold"]["score"] == cut
    moved = np.flatnonzero(load(file).predict(rows) != load(plain).predict(rows))
    assert len(moved) and call("explain", file, path, "--row", moved[0] + 1).splitlines()[1].startswith("yes")
    with closing(sqlite3.connect(":memory:")) as database:
        FRAME.to_sql("rows", database)
        labels = database.execute(f"SELECT {call('export', file, '--to', 'sql')} FROM rows ORDER BY rowid").fetchall()
    assert [label for (label, *_) in labels] == load(file).predict(rows).tolist()


def test_options_of_held_out_rows_are_checked_before_anything_is_trained(path, tmp_path):
    arguments = ("train", path, "--label", "kind")
    for options, message in {
        ("--optimize", "f1"): "--optimize is about held-out rows: use --holdout 0.2 or --validate",
        ("--report", tmp_path / "r.html"): "--report is about held-out rows",
        ("--optimize", "f2", "--holdout", 0.2): "--optimize f2 is not f1, balanced, accuracy or cost=FP:FN",
        ("--positive", "maybe", "--holdout", 0.2): "--positive maybe is not one of the classes no and yes",
        ("--report", tmp_path / "none" / "r.html", "--holdout", 0.2): "none does not exist",
        ("--report", tmp_path, "--holdout", 0.2): f"{tmp_path} is a folder: name a file in it",
        ("--optimize", "f1", "--holdout", 0.2, "--engine", "local:2"): "which only workers have with --engine",
    }.items():
        assert message in call(*arguments, *options, status=2)
    three = call("train", "iris", "--holdout", 0.3, "--optimize", "f1", status=2)
    assert "--optimize chooses a threshold between two classes, and there are 3" in three
    with pytest.raises(DataError, match=r"optimize= is about held-out rows: use holdout=0\.2 or validate="):
        train(FRAME, label="kind", optimize="f1")


def test_the_printed_block_is_short_and_says_what_is_optimistic(path):
    shown = call(
        "train", path, "--label", "kind", "--drop", "note", "--holdout", 0.3, "--calibrate", "--early-stopping", "-q"
    )
    lines = shown.splitlines()
    at = next(k for k, line in enumerate(lines) if "held-out accuracy" in line)
    assert lines[at + 1].startswith("  95 % interval 0.") and "always predicting no: 0." in lines[at + 1]
    assert lines[at + 2].startswith("  balanced accuracy 0.") and "ROC AUC 0." in lines[at + 2]
    assert lines[at + 3].startswith("  log loss 0.")
    optimistic = (
        "  the pass was chosen and probabilities were calibrated on these rows: the figures are optimistic for other rows"
    )
    assert lines[at + 4] == optimistic


@pytest.mark.parametrize("memory", ["2G", "64K"])
@pytest.mark.parametrize("validate", [False, True])
def test_the_report_shows_the_rows_that_are_wrong(path, tmp_path, memory, validate):
    report, model = tmp_path / "report.html", tmp_path / "m.sepx"
    held = ("--validate", path) if validate else ("--holdout", 0.3)
    arguments = ("train", path, "--label", "kind", "--drop", "note", *held, "--memory", memory, "--report", report)
    summary = json.loads(call(*arguments, "-o", model, "--json", "-q"))
    rows = (FRAME if validate else FRAME.iloc[OUT]).reset_index()
    expected = evaluate(load(model), rows.drop(columns=["kind", "index"]), rows["kind"])
    assert summary["report"] == str(report)
    for error, own in zip(summary["evaluation"]["errors"], expected.errors, strict=True):
        line = int(rows["index"][own.row]) + 2
        assert error["place"] == f"{path}, line {line}" and error["row"] == own.row
        assert error["values"]["note"] == f"<b>{line - 2}</b>" and error["true"] == rows["kind"][own.row]
    page = report.read_text()
    assert "&lt;b&gt;" in page and "<b>0</b>" not in page and "Weights" in page


def test_rows_from_a_pipe_and_of_numbers_have_errors_too(path, tmp_path):
    report = tmp_path / "report.html"
    arguments = ("train", "-", "--label", "kind", "--drop", "note", "--holdout", 0.3, "--report", report, "--json")
    summary = json.loads(call(*arguments, input=path.read_text()))
    assert summary["evaluation"]["errors"][0]["place"].startswith("held-out row ")
    model = train(X, label=LABELS, holdout=0.3, report=report)
    error = model.evaluation.errors[0]
    assert list(error.values.values()) == pytest.approx(X[int(error.place.rsplit(" ", 1)[1])].tolist())
