"""Options of `train` that make the model file smaller: what they leave out, and what they say of it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix import load, train
from separatrix.cli import app
from separatrix.data.errors import DataError

PLAIN = {"learner": "last", "rule": "perceptron", "bias": False, "order": "cyclic"}
FLAGS = ("--learner", "last", "--rule", "perceptron", "--no-bias", "--order", "cyclic")


@pytest.fixture
def close(tmp_path):
    """Rows that need the last bit of 2²⁴ + 1, which float32 does not have: the second row scores 1, and then 0."""
    path = tmp_path / "close.svm"
    path.write_text("1 1:16777217 2:16777216\n1 1:1 2:-1\n-1 1:-1 2:-1\n")
    return path


def call(*arguments, status=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output + repr(done.exception)
    return done.output


def test_changed_predictions_are_counted_on_the_training_rows(close, tmp_path):
    path = tmp_path / "m.sepx"
    assert "float32 changes 1 of 3 training predictions" in call("train", close, *FLAGS, "--float32", "-o", path)
    assert json.loads(call("train", close, *FLAGS, "--float32", "-o", path, "--json"))["float32_changed"] == 1
    assert load(path).estimator.coef_.tolist() == [[16777216.0, 16777216.0]]
    model = train(str(close), **PLAIN, float32=True, output=path)
    assert model.summary["float32_changed"] == 1
    assert np.count_nonzero(load(path).predict([[1.0, -1.0]]) != model.predict([[1.0, -1.0]])) == 1
    assert "float32" not in call("train", close, *FLAGS, "-o", path)


def test_rows_on_the_disk_are_counted_too(tmp_path):
    path = tmp_path / "rows.svm"
    close = "1 1:16777217 2:16777216\n" + "1 1:1 2:-1\n-1 1:-1 2:-1\n" * 30_000
    path.write_text(close)
    told = json.loads(
        call("train", path, *FLAGS, "--memory", "1M", "--passes", 1, "--float32", "-o", tmp_path / "m.sepx", "--json")
    )
    assert told["spilled_bytes"] and told["float32_changed"] == 30_000


def test_a_model_that_cannot_resume(tmp_path):
    whole, small = tmp_path / "whole.sepx", tmp_path / "small.sepx"
    call("train", "iris", "-o", whole)
    call("train", "iris", "-o", small, "--no-resume")
    assert small.stat().st_size < whole.stat().st_size
    both = [call("predict", path, "iris", "--scores") for path in (whole, small)]
    assert both[0] == both[1]
    assert "cannot continue to learn: it was saved with --no-resume" in call("info", small)
    assert "cannot continue" not in call("info", whole)
    assert [json.loads(call("info", path, "--json"))["resumable"] for path in (whole, small)] == [True, False]
    assert load(small).info()["resumable"] is False
    assert load(small).facts == load(whole).facts
    told = " ".join(call("explain", small, "iris").split())
    assert "unavailable: the model was saved with --no-resume; train with --record, and save without --no-resume" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"float32": True}, "float32=True is about the model file: name one with output="),
        ({"resume": False}, "resume=False is about the model file: name one with output="),
        (
            {"resume": False, "learner": "voted", "output": "m.sepx"},
            "predicts with its mistakes, which resume=False leaves out",
        ),
        ({"resume": False, "record": True, "output": "m.sepx"}, "record=True stores rows of mistakes, which resume=False"),
        ({"float32": True, "engine": "local:2", "output": "m.sepx"}, "which only workers have with engine="),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_training(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        train("iris", **options)


def test_the_command_line_speaks_of_options():
    assert call("train", "iris", "--no-resume", status=2).endswith("--no-resume is about the model file: name one with -o\n")
