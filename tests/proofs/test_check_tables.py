"""Tables with words on the command line: certified as the features of a model, or without some columns."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from separatrix import AveragedPerceptron, Certificate, TextFeatures, load, save
from separatrix.cli import app
from support.standalone_checker import standalone

MIXED = "id,age,city,churned\n1,22,Rome,no\n2,35,Paris,no\n3,58,Rome,yes\n4,41,Berlin,yes\n5,29,,no\n6,61,Berlin,yes\n"


def test_words_are_certified_as_the_features_of_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my customers.csv").write_text(MIXED)
    told = CliRunner().invoke(app, ["certify", "my customers.csv", "--label", "churned"])
    assert told.exit_code == 2 and "'Rome' is not a finite number; leave the column out with --drop, or" in told.output
    few = CliRunner().invoke(app, ["certify", "my customers.csv", "--label", "churned", "--drop", "city", "--drop", "id"])
    assert few.exit_code == 0 and "separable: 6 examples, 1 feature, 2 classes" in few.output
    assert CliRunner().invoke(app, ["train", "my customers.csv", "--label", "churned", "-o", "a.sepx"]).exit_code == 0
    made = CliRunner().invoke(app, ["certify", "my customers.csv", "--model", "a.sepx", "-o", "p.json"])
    assert made.exit_code == 0 and "my customers.csv in the features of a.sepx is separable" in made.output
    features = load("a.sepx").features
    rows = list(csv.DictReader(MIXED.splitlines()))
    table = {"id": [int(row["id"]) for row in rows], "age": [int(row["age"]) for row in rows]}
    X = features.transform(table | {"city": [row["city"] or None for row in rows]})
    certificate = Certificate.from_json(Path("p.json"))
    assert certificate.verify(X, np.array([row["churned"] for row in rows]))
    assert (
        certificate.feature_names == features.get_feature_names_out().tolist() and "city=Rome" in certificate.feature_names
    )
    checked = CliRunner().invoke(app, ["check", "p.json", "my customers.csv", "--model", "a.sepx"])
    assert checked.exit_code == 0 and checked.output.startswith("VALID")
    Path("my customers.csv").write_text(MIXED.replace("6,61,Berlin,yes", "6,22,Rome,yes"))
    assert CliRunner().invoke(app, ["check", "p.json", "my customers.csv", "--model", "a.sepx"]).exit_code == 1


def test_names_in_another_order_are_refused(tmp_path, monkeypatch):
    """The coefficients that diverge are told by name, so a certificate whose names are exchanged claims something else."""
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("age,dose,ill\n1,5,0\n2,6,0\n3,9,1\n4,7,1\n")
    assert CliRunner().invoke(app, ["certify", "data.csv", "-o", "p.json"]).exit_code == 0
    document = json.loads(Path("p.json").read_text())
    Path("forged.json").write_text(json.dumps(document | {"feature_names": ["dose", "age"]}))
    Path("unnamed.json").write_text(json.dumps(document | {"feature_names": None}))
    frame = pd.read_csv("data.csv")
    for name, is_valid in [("p.json", True), ("forged.json", False), ("unnamed.json", True)]:
        claim = Certificate.from_json(Path(name))
        assert claim.verify(frame[["age", "dose"]], frame["ill"]) is is_valid
        assert claim.verify(frame[["age", "dose"]].to_numpy(), frame["ill"])  # which has no names to compare with
        assert (
            CliRunner().invoke(app, ["check", name, "data.csv"]).exit_code == standalone(name, "data.csv")[0] == 1 - is_valid
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop", "town"], "there is no column 'town'; the columns are id, age, city, churned"),
        (["--drop", "id", "--model", "a.sepx"], "--drop cannot be combined with --model"),
        (["--drop", "id", "--drop", "age", "--drop", "city"], "there is no column beside the label"),
        (["--model", "none.sepx"], "none.sepx"),
        (["--model", "a.sepx", "--positive", "maybe"], "no example has the class 'maybe'; the classes are no, yes"),
    ],
)
def test_what_cannot_be_dropped_or_modelled_is_said(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(MIXED)
    CliRunner().invoke(app, ["train", "data.csv", "--label", "churned", "-o", "a.sepx"])
    told = CliRunner().invoke(app, ["certify", "data.csv", *options])
    assert told.exit_code == 2 and message in told.output and len(told.output.splitlines()) == 1, told.output


def test_trace_and_compare_leave_columns_out(tmp_path):
    (tmp_path / "data.csv").write_text(MIXED)
    arguments = [str(tmp_path / "data.csv"), "--drop", "city", "--drop", "id"]
    assert "(22)" in CliRunner().invoke(app, ["trace", *arguments]).output
    told = CliRunner().invoke(app, ["compare", *arguments, "--folds", "2", "--models", "perceptron", "--json"])
    assert told.exit_code == 0, told.output


def test_the_average_begins_where_it_is_told_to(tmp_path):
    (tmp_path / "data.csv").write_text(MIXED)
    train = ["train", str(tmp_path / "data.csv"), "--label", "churned", "-o", str(tmp_path / "a.sepx")]
    told = CliRunner().invoke(app, [*train, "--average-from", "6"])
    assert told.exit_code == 0 and "average_from=6" in told.output and load(tmp_path / "a.sepx").estimator.average_from == 6
    late = CliRunner().invoke(app, [*train, "--average-from", "11"])
    assert late.exit_code == 2 and "--average-from 11 is after the last of 10 passes" in late.output
    last = CliRunner().invoke(app, [*train, "--average-from", "2", "--learner", "last"])
    assert last.exit_code == 2 and "--average-from" in last.output


def test_a_model_of_one_text_is_described_and_says_what_it_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, y = ["free money", "see you", "free prize", "at lunch"], ["spam", "ham", "spam", "ham"]
    features = TextFeatures()
    save(AveragedPerceptron(random_state=0).fit(features.fit_transform(texts), y), "text.sepx", features=features)
    Path("both.csv").write_text("kind,message\nspam,free money\nham,see you\n")
    told = CliRunner().invoke(app, ["info", "text.sepx"])
    assert told.exit_code == 0 and "a text, by TextFeatures()" in told.output
    for verb in ("predict", "explain"):
        refused = CliRunner().invoke(app, [verb, "text.sepx", "both.csv", "--header"])
        assert (
            refused.exit_code == 2
            and "has the columns kind, message, but text.sepx reads a single text column" in refused.output
        )
    judged = CliRunner().invoke(app, ["evaluate", "text.sepx", "both.csv", "--label", "kind"])
    assert judged.exit_code == 0 and "accuracy 1.0000" in judged.output


def test_a_model_that_is_none_and_a_file_that_is_not_there_are_told_in_one_breath(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(MIXED)
    told = CliRunner().invoke(app, ["evaluate", "data.csv", "data.csv"])
    assert told.output.startswith("separatrix evaluate: data.csv: not a model file")
    told = CliRunner().invoke(app, ["evaluate", "none.sepx", "data.csv"])
    assert told.output == "separatrix evaluate: none.sepx: No such file or directory\n"
    told = CliRunner().invoke(app, ["trace", "data.csv"])
    assert "'Rome' is not a finite number; leave the column out with --drop" in told.output
