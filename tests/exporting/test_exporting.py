"""What is exported predicts the same, without this library."""

import pickle
import sqlite3
import subprocess
import sys

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import separatrix
from separatrix import AveragedPerceptron, Perceptron
from separatrix.engine.weights import Weights
from separatrix.exporting import to_onnx, to_sklearn, to_sql
from support.exported_models import run_onnx
from support.public_estimators import ESTIMATORS, seeded

X, Y = load_iris(return_X_y=True)
NAMES = ["sepal length", 'sepal "width"', "petal; length --", "select"]
CURVED = (separatrix.VotedPerceptron, separatrix.KernelPerceptron)
LINEAR = [estimator for estimator in ESTIMATORS if estimator not in CURVED]
LABELS = {
    "two": np.array(["it's", "not"])[(Y == 1).astype(int)],
    "truth": Y == 2,
    "three": np.array(["setosa", "Ünïcode", "virginica"])[Y],
    "numbers": Y - 1,
}
GRID = np.array([[a, b] for a in range(-6, 7) for b in range(-6, 7)], dtype=float)


def weighted(coef, intercept, **parameters):
    """A learner of these weights."""
    model = Perceptron(**parameters).fit(GRID[: 2 * len(coef)], np.arange(2 * len(coef)) % max(2, len(coef)))
    model.run_.last.load(Weights(np.array(coef, dtype=float), np.array(intercept, dtype=float)))
    model.run_.used = None
    return model


def tied(tie):
    """A learner of whole weights: many points of the grid score exactly 0."""
    model = weighted([[2, -3]], [1], tie=tie)
    assert np.sum(model.decision_function(GRID) == 0) > 3
    return model


def from_sqlite(model, rows, names, **options):
    """The labels that SQLite finds."""
    with sqlite3.connect(":memory:") as base:
        quoted = ", ".join('"' + name.replace('"', '""') + '" REAL' for name in names)
        base.execute(f"CREATE TABLE t ({quoted})")
        base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", rows)
        return [label for (label,) in base.execute(f"SELECT {to_sql(model, **options)} FROM t ORDER BY rowid")]


def outputs_of(graph, rows):
    """The outputs of a graph over features."""
    return list(run_onnx(graph, {"X": np.asarray(rows, dtype=np.float64)}).values())


@pytest.mark.parametrize("estimator", LINEAR)
@pytest.mark.parametrize("labels", LABELS)
class TestSamePredictions:
    def fitted(self, estimator, labels):
        return seeded(estimator).fit(pd.DataFrame(X, columns=NAMES), LABELS[labels])

    def test_scikit_learn(self, estimator, labels):
        model, frame = self.fitted(estimator, labels), pd.DataFrame(X, columns=NAMES)
        made = to_sklearn(model)
        assert isinstance(made, LinearSVC) and made.feature_names_in_.tolist() == NAMES
        assert np.array_equal(made.predict(frame), model.predict(frame))
        assert np.allclose(made.decision_function(frame), model.decision_function(frame), rtol=1e-12, atol=1e-12)

    def test_onnx(self, estimator, labels):
        model, frame = self.fitted(estimator, labels), pd.DataFrame(X, columns=NAMES)
        label, scores = outputs_of(to_onnx(model), X)
        assert np.asarray(label).tolist() == model.predict(frame).tolist()
        expected = model.decision_function(frame).reshape(len(X), -1)
        assert np.allclose(scores, expected, rtol=1e-12, atol=1e-12)

    def test_sql(self, estimator, labels):
        model, frame = self.fitted(estimator, labels), pd.DataFrame(X, columns=NAMES)
        assert from_sqlite(model, X.tolist(), NAMES) == model.predict(frame).tolist()


@pytest.mark.parametrize("tie", ["mistake", "+1", "-1"])
def test_a_score_of_zero_goes_where_predict_has_it(tie):
    model = tied(tie)
    expected = model.predict(GRID).tolist()
    assert to_sklearn(model).predict(GRID).tolist() == expected
    assert from_sqlite(model, GRID.tolist(), ["a", "b"], columns=["a", "b"]) == expected


@pytest.mark.parametrize("tie", ["mistake", "+1", "-1"])
def test_a_score_of_zero_in_onnx(tie):
    model = tied(tie)
    assert outputs_of(to_onnx(model), GRID)[0].tolist() == model.predict(GRID).tolist()


def test_the_first_of_tied_classes_wins_everywhere():
    model = weighted([[1, 0], [0, 1], [1, 1]], [0, 0, -2])
    scores = np.sort(model.decision_function(GRID), axis=1)
    assert np.sum(scores[:, -1] == scores[:, -2]) > 3
    expected = model.predict(GRID).tolist()
    assert to_sklearn(model).predict(GRID).tolist() == expected
    assert from_sqlite(model, GRID.tolist(), ["a", "b"], columns=["a", "b"]) == expected
    assert outputs_of(to_onnx(model), GRID)[0].tolist() == expected


@pytest.mark.parametrize("labels", ["two", "three"])
def test_probabilities_go_along(labels):
    model = AveragedPerceptron(calibrate="sigmoid", random_state=0).fit(X, LABELS[labels])
    made = to_sklearn(model)
    assert isinstance(made, LogisticRegression)
    assert np.allclose(made.predict_proba(X), model.predict_proba(X), rtol=1e-9, atol=1e-12)
    assert np.array_equal(made.predict(X), model.predict(X))
    assert np.allclose(outputs_of(to_onnx(model), X)[2], model.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_the_scikit_learn_object_needs_nothing_of_ours():
    model = Perceptron(random_state=0).fit(X, Y)
    code = """if True:
        import pickle, sys
        sys.modules["separatrix"] = None
        made, X = pickle.load(sys.stdin.buffer)
        print(made.predict(X).tolist())"""
    packed = pickle.dumps((to_sklearn(model), X))
    done = subprocess.run([sys.executable, "-c", code], input=packed, capture_output=True, check=True)
    assert done.stdout.decode().strip() == str(model.predict(X).tolist())


def test_an_onnx_file_is_the_same_every_time(tmp_path):
    model = Perceptron(random_state=0).fit(pd.DataFrame(X, columns=NAMES), Y)
    for name in "ab":
        to_onnx(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    onnx.checker.check_model(str(tmp_path / "a"), full_check=True)


def test_many_columns_and_classes_fit_in_one_sql_expression():
    digits, labels = load_digits(return_X_y=True)
    wide = np.hstack([digits] * 20)
    names = [f"pixel {j}" for j in range(wide.shape[1])]
    model = AveragedPerceptron(random_state=0, max_iter=2).fit(wide, labels)
    assert from_sqlite(model, wide[:100].tolist(), names, columns=names) == model.predict(wide[:100]).tolist()


def test_sql_of_missing_values_expressions_and_quotes():
    model = Perceptron(order="cyclic").fit([[1, 0], [0, 1], [0, 0]], ["cook", "clerk", "clerk"])
    assert from_sqlite(model, [(None, 1.0), (1.0, 0.0)], ["a", "b"], columns=["a", "b"]) == [None, "cook"]
    coded = ["CASE WHEN job = 'cook' THEN 1 ELSE 0 END", "CASE WHEN job = 'clerk' THEN 1 ELSE 0 END"]
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE t (job TEXT)")
        base.executemany("INSERT INTO t VALUES (?)", [("cook",), ("clerk",)])
        found = base.execute(f"SELECT {to_sql(model, expressions=coded)} FROM t").fetchall()
    assert found == [("cook",), ("clerk",)]
    assert "`a``b`" in to_sql(model, columns=["a`b", "c"], quote="`")
    assert "[a]]b]" in to_sql(model, columns=["a]b", "c"], quote="[")
    for options, why in [
        ({}, "trained without feature names"),
        ({"columns": ["a"]}, "1 columns, but the classifier has 2"),
        ({"columns": ["a", "b"], "quote": "'"}, "quote is .* one of"),
        ({"columns": ["a", "\0"]}, "cannot be the name of a column"),
    ]:
        with pytest.raises(ValueError, match=why):
            to_sql(model, **options)


def test_what_is_not_linear_is_refused():
    for export in (to_sklearn, to_sql):
        with pytest.raises(ValueError, match="a VotedPerceptron is not a linear function"):
            export(separatrix.VotedPerceptron().fit(X, Y))
        with pytest.raises(ValueError, match="not fitted"):
            export(Perceptron())
        with pytest.raises(ValueError, match="one class"):
            export(Perceptron().partial_fit(X, np.zeros(150)))
