"""What bounds a comparison: budgets, interrupts; and that it takes, and gives, what `train` does."""

import json
import re
import time
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import StratifiedKFold

from separatrix import Perceptron, compare, load
from separatrix.analysis import model_trial
from separatrix.analysis.catalogue import MAP, View
from separatrix.analysis.model_features import Form, table_of
from separatrix.cli import app

RUNNER = CliRunner()


def test_interrupts_are_not_swallowed(monkeypatch):
    class Stopped(Perceptron):
        def fit(self, *args, **kwargs):
            raise KeyboardInterrupt

    monkeypatch.setattr("separatrix.analysis.catalogue.MAP", (View("stopped", "x", "y", lambda s: Stopped()),))
    with pytest.raises(KeyboardInterrupt):
        compare(*load_iris(return_X_y=True))


class Slow(ClassifierMixin, BaseEstimator):
    """Takes a millisecond for each row, and remembers how many rows it was given."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.fits.append(len(y))
        time.sleep(len(y) / 1000)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], int)


def test_a_model_that_exceeds_its_budget_is_dropped_before_it_is_fitted_to_all_rows(monkeypatch):
    views = View("slow", "x", "y", lambda s: Slow(), lambda m: 1), MAP[0]
    monkeypatch.setattr("separatrix.analysis.catalogue.MAP", views)
    monkeypatch.setattr(Slow, "fits", [])
    X, y = make_classification(4000, random_state=0)
    found = compare(X, y, budget=8)
    assert max(Slow.fits) == 1000
    row = found["slow"]
    assert row.dropped and row.accuracy is None and found.rows[-1] is row
    assert re.fullmatch(r"5 folds would take about [\d.]+ s or more, and budget=8 allows less", row.failure), row
    assert found["naive Bayes"].accuracy > 0.8 and not found["naive Bayes"].dropped
    assert f"slow: dropped: {row.failure}" in repr(found) and "dropped" in found.to_markdown()
    few = compare(X[:400], y[:400], budget=0.1)["slow"]  # judged by its first fold
    assert few.dropped and Slow.fits[-1] == 320
    monkeypatch.setattr("separatrix.analysis.catalogue.MAP", (views[0]._replace(form=Form.AS_IN_TRAIN), MAP[0]))
    assert compare(X[:400], y[:400], budget=0.1)["slow"].accuracy is not None  # what train gives is never dropped
    assert compare(X[:400], y[:400])["slow"].accuracy == pytest.approx(0.5, abs=0.1)


def test_an_interrupt_on_the_command_line_gives_what_there_is(monkeypatch):
    class Stopped(Slow):
        def fit(self, X, y):
            if len(y) > 90 and len([n for n in self.fits if n > 90]) == 2:
                raise KeyboardInterrupt
            return super().fit(X, y)

    views = View("stopped", "x", "y", lambda s: Stopped(), lambda m: 1), next(view for view in MAP if view.model == "LDA")
    monkeypatch.setattr("separatrix.analysis.catalogue.MAP", views)
    monkeypatch.setattr(Slow, "fits", [])
    done = RUNNER.invoke(app, ["compare", "iris", "--json"])
    assert done.exit_code == 130, done.output
    result = json.loads(done.stdout)
    assert result["interrupted"] and result["notes"] == [
        "interrupted in fold 3 of 5: the means are those of the folds before"
    ]
    assert [len(row["accuracies"]) for row in result["rows"]] == [2, 2]
    assert result["rows"][0]["note"] == "only 2 of 5 folds"
    Slow.fits[:] = [100, 100]
    done = RUNNER.invoke(app, ["compare", "iris"])
    assert done.exit_code == 130 and not done.stdout
    assert done.stderr == "separatrix compare: interrupted before any model was measured\n"


def test_the_row_of_train_is_what_train_gives(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 150)
    words = np.array([["good film", "fine plot", "see it"], ["bad film", "dull plot", "avoid it"]])
    frame = pd.DataFrame(
        {
            "size": (rng.normal(size=150) + y).round(3),
            "colour": rng.choice(["red", "green"], 150),
            "review": [
                " and ".join([*rng.choice(words[k], 2), str(rng.integers(100))]) for k in (y + (rng.random(150) < 0.2)) % 2
            ],
            "kind": np.where(y, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "all.csv", index=False)
    done = RUNNER.invoke(
        app, ["compare", str(tmp_path / "all.csv"), "--json", "--models", "separatrix train", "--seed", "3"]
    )
    result = json.loads(done.stdout)
    assert result["columns"] == "1 numeric, 1 categorical and 1 text columns"
    accuracies = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(y, frame["kind"]):
        frame.iloc[train].to_csv(tmp_path / "train.csv", index=False)
        trained = ["train", str(tmp_path / "train.csv"), "-o", str(tmp_path / "model.sepx"), "--seed", "3", "--quiet"]
        assert RUNNER.invoke(app, trained).exit_code == 0
        predicted = load(tmp_path / "model.sepx").predict(frame.iloc[test].drop(columns="kind"))
        accuracies.append(float(np.mean(predicted == frame["kind"].to_numpy()[test])))
    assert result["rows"][0]["accuracies"] == accuracies and 0.7 < np.mean(accuracies) < 1


def test_text_is_learned_from(tmp_path):
    path = tmp_path / "messages.csv"
    rows = ["spam,win free money now", "ham,see you at lunch", "spam,free prize: claim your money", "ham,is lunch at noon?"]
    path.write_text("\n".join(["kind,message", *rows]) + "\n")
    for options in ([], ["--text", "message"], ["--text", "1"]):
        done = RUNNER.invoke(app, ["compare", str(path), "--label", "kind", "--json", *options])
        result = json.loads(done.stdout)
        assert result["columns"] == "1 text column", done.output
        accuracies = {row["model"]: row["accuracy"] for row in result["rows"]}
        assert accuracies["separatrix train"] == accuracies["naive Bayes"] == accuracies["logistic regression"] == 1
        assert {row["model"]: row["failure"] for row in result["rows"]}["LDA"].startswith("fold 1: The number of samples")
    done = RUNNER.invoke(app, ["compare", str(path), "--label", "kind", "--json", "--categorical", "message"])
    assert json.loads(done.stdout)["columns"] == "1 categorical column"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("a,b,y\n1,x,1.5\n2,z,2.5\n3,x,1.5\n4,z,2.5\n", "labels are numbers with fractions, such as 1.5"),
        ("a,b,y\n1,x,u\n2,z,v\n3,z,w\n", "no class has two examples"),
        ("a,b,y\n1,x,u\n2,z,v\n", "its training rows have only 1 class: "),
    ],
)
def test_what_train_accepts_is_compared(tmp_path, text, note):
    path = tmp_path / "data.csv"
    path.write_text(text)
    assert RUNNER.invoke(app, ["train", str(path)]).exit_code == 0
    done = RUNNER.invoke(app, ["compare", str(path), "--models", "naive bayes, perceptron, separatrix train"])
    assert done.exit_code == 0 and note in " ".join(done.stdout.split()), done.output


def test_what_would_take_too_long_is_not_tried(monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr(model_trial, "PAIRS", 1000)
    assert compare(X, y, models="k-NN").rows[0].failure == "too slow: it compares 150 examples with 150"
    monkeypatch.undo()
    monkeypatch.setattr(model_trial, "VOTES", 1000)
    found = compare(X, y, models="voted perceptron")
    assert found.rows[0].note == "not measured after each pass: too many votes to count" and not found.curves


def test_numbers_that_identify_the_rows_are_left_out():
    n = 120
    x = np.random.default_rng(0).normal(size=n)
    table = pd.DataFrame({"customer_no": np.random.default_rng(1).permutation(n) + 5000, "x": x, "place": np.arange(n) ** 2})
    examples = table_of(table, {})
    assert list(examples.schema.parts) == ["x", "place"]
    assert examples.notes == [
        "column 'customer_no' looks like an identifier (its name, 120 different whole numbers in 120 rows): "
        "left out; keep it with roles={'customer_no': 'number'}",
        "column 'place' looks like an identifier (120 different whole numbers in 120 rows, in order): "
        "kept; leave it out with roles={'place': 'drop'}",
    ]


def test_learners_in_place_of_their_names_are_refused():
    with pytest.raises(TypeError, match=r"models takes names, such as 'naive Bayes', not Perceptron\(\)"):
        compare([[0.0], [1.0]], [0, 1], models=[Perceptron()])
