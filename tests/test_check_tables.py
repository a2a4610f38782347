"""Tables with words on the command line: certified as the features of a model, or without some columns."""

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from separatrix import Certificate, load
from separatrix.cli import app

MIXED = "id,age,city,churned\n1,22,Rome,no\n2,35,Paris,no\n3,58,Rome,yes\n4,41,Berlin,yes\n5,29,,no\n6,61,Berlin,yes\n"


def test_words_are_certified_as_the_features_of_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my customers.csv").write_text(MIXED)
    told = CliRunner().invoke(app, ["certify", "my customers.csv", "--label", "churned"])
    assert told.exit_code == 2 and "'Rome' is not a finite number; leave the column out by --drop, or" in told.output
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop", "town"], "there is no column 'town' to leave out; the columns are id, age, city, churned"),
        (["--drop", "id", "--model", "a.sepx"], "the model has its columns: with --model none can be dropped"),
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
