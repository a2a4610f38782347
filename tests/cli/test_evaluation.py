"""`separatrix evaluate`: all figures, other thresholds, and what it says of them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import metrics

from separatrix import evaluate, load
from separatrix.cli import app


def call(*arguments, status=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result.output


def messages(path, n=200, seed=0):
    """Write a table of a text and a number, and return its labels."""
    rng = np.random.default_rng(seed)
    words = {"spam": ["free", "money", "prize", "now"], "ham": ["lunch", "noon", "see", "now"]}
    labels = rng.choice(["ham", "spam"], n, p=[0.75, 0.25])
    lines = ["kind,message,size"]
    for label in labels:
        seen = rng.choice(["ham", "spam"]) if rng.random() < 0.3 else label
        lines.append(f"{label},{' '.join(rng.choice(words[str(seen)], 3))},{rng.integers(0, 9)}")
    path.write_text("\n".join(lines) + "\n")
    return labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    messages(folder / "train.csv")
    messages(folder / "test.csv", seed=1)
    call("train", folder / "train.csv", "--label", "kind", "--text", "message", "-o", folder / "model.sepx", "-q")
    calibrated = ("--holdout", "0.3", "--calibrate", "-o", folder / "calibrated.sepx", "-q")
    call("train", folder / "train.csv", "--label", "kind", "--text", "message", *calibrated)
    return folder


def test_rows_that_were_trained_on_are_noted(folder):
    note = "rows, so the figures are optimistic: evaluate rows that it has not seen"
    assert f"the model was trained on these {note}" in call("evaluate", folder / "model.sepx", folder / "train.csv")
    facts = load(folder / "calibrated.sepx").facts
    held_out = call("evaluate", folder / "calibrated.sepx", folder / "train.csv")
    assert 100 < facts["rows"] < 200 and f"the model was trained on {facts['rows']} of these {note}" in held_out
    (folder / "copy.txt").write_bytes((folder / "train.csv").read_bytes())
    assert note in call("evaluate", folder / "model.sepx", folder / "copy.txt")
    assert note not in call("evaluate", folder / "model.sepx", folder / "test.csv")


def test_json_has_the_figures_of_scikit_learn(folder):
    document = json.loads(call("evaluate", folder / "calibrated.sepx", folder / "test.csv", "--json", "--curves"))
    import pandas as pd

    frame = pd.read_csv(folder / "test.csv")
    model, y = load(folder / "calibrated.sepx"), pd.read_csv(folder / "test.csv")["kind"]
    X = frame.drop(columns="kind")
    predicted, scores, shares = model.predict(X), model.decision_function(X), model.predict_proba(X)
    expected = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "macro_f1": metrics.f1_score(y, predicted, average="macro"),
        "weighted_f1": metrics.f1_score(y, predicted, average="weighted"),
        "roc_auc": metrics.roc_auc_score(y == "spam", scores),
        "average_precision": metrics.average_precision_score(y == "spam", scores),
        "log_loss": metrics.log_loss(y, shares),
        "brier": np.mean((shares[:, 1] - (y == "spam")) ** 2),
    }
    assert {name: document[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert document["confusion"]["matrix"] == metrics.confusion_matrix(y, predicted).tolist()
    assert document["baseline"] == {"label": "ham", "accuracy": np.mean(y == "ham")}
    assert document["threshold"]["score"] == 0.0 and document["positive"] == "spam"
    assert {"rows", "classes", "unknown_labels", "skipped", "unlabelled", "notes", "curves"} <= set(document)
    in_python = json.loads(evaluate(model, X, y).to_json())
    assert {key for key in in_python if in_python[key] != document[key]} <= {"data", "errors"}
    assert [error["row"] for error in in_python["errors"]] == [error["row"] for error in document["errors"]]
    (error, *_) = document["errors"]
    assert error["place"].startswith(str(folder / "test.csv")) and set(error["values"]) == {"message", "size"}
    line = int(error["place"].rsplit(" ", 1)[1])
    assert (
        (folder / "test.csv").read_text().splitlines()[line - 1].startswith(f"{error['true']},{error['values']['message']}")
    )


def test_a_person_sees_the_figures(folder):
    shown = call("evaluate", folder / "calibrated.sepx", folder / "test.csv")
    for words in ("200 rows, accuracy 0.", "95 % interval", "majority baseline", "always predicting ham", "ROC AUC"):
        assert words in shown
    assert "calibration error" in shown and "confusion: a line for each true class" in shown
    assert "log loss" not in call("evaluate", folder / "model.sepx", folder / "test.csv")


def test_a_threshold_of_the_score_or_of_the_probability(folder):
    def judged(*options):
        return json.loads(call("evaluate", folder / "calibrated.sepx", folder / "test.csv", "--json", *options))

    plain = judged()
    low = judged("--threshold", "-0.4")
    assert low["classes"]["spam"]["recall"] > plain["classes"]["spam"]["recall"]
    assert low["threshold"]["score"] == -0.4 and low["roc_auc"] == plain["roc_auc"]
    share = low["threshold"]["probability"]
    assert 0 < share < 0.5 and judged("--threshold", f"p={share!r}")["confusion"] == low["confusion"]
    assert judged("--threshold", "0.4", "--positive", "ham")["confusion"] == low["confusion"]
    assert judged("--threshold", "p=0.5")["confusion"] == plain["confusion"]


@pytest.mark.parametrize("purpose", ["f1", "balanced", "accuracy", "cost=1:5"])
def test_the_threshold_that_is_best_on_these_rows_is_said_to_be_optimistic(folder, purpose):
    arguments = ("evaluate", folder / "model.sepx", folder / "test.csv", "--optimize", purpose)
    document, plain = json.loads(call(*arguments, "--json")), json.loads(call(*arguments[:3], "--json"))
    figures = {
        "f1": lambda one: one["classes"]["spam"]["f1"],
        "balanced": lambda one: one["balanced_accuracy"],
        "accuracy": lambda one: one["accuracy"],
        "cost=1:5": lambda one: -one["confusion"]["matrix"][0][1] - 5 * one["confusion"]["matrix"][1][0],
    }
    assert figures[purpose](document) >= figures[purpose](plain)
    assert document["threshold"]["chosen_by"] == purpose
    shown = call(*arguments)
    assert f"best for {purpose}" in shown and "chosen on these rows: the figures are optimistic" in shown
    assert ("mean of a row" in shown) == purpose.startswith("cost")


def test_wrong_options_are_named(folder):
    arguments = ("evaluate", folder / "model.sepx", folder / "test.csv")
    for options, message in {
        ("--threshold", "x"): '--threshold: "x" is neither a score nor a probability such as p=0.3',
        ("--threshold", "p=0.3"): "a threshold of the probability needs a calibrated model",
        ("--threshold", "nan"): "is not a finite number",
        ("--threshold", "0", "--optimize", "f1"): "--threshold cannot be combined with --optimize",
        ("--optimize", "f2"): "--optimize f2 is not f1, balanced, accuracy or cost=FP:FN",
        ("--positive", "eggs"): "--positive eggs is not one of the classes ham and spam\n",
        ("--positive", "Spam"): "is not one of the classes ham and spam; did you mean 'spam'?",
    }.items():
        refused = call(*arguments, *options, status=2)
        assert message in refused and refused.count("\n") == 1, refused
    call("train", "iris", "-o", folder / "iris.sepx", "-q")
    assert "two classes, but there are 3" in call("evaluate", folder / "iris.sepx", "iris", "--optimize", "f1", status=2)
