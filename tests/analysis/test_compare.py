"""The map of classifiers, on the reader's own data: every model a row, prepared inside the fold, none aborts the rest."""

import json
import shlex
import statistics
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import Perceptron, TextFeatures, compare
from separatrix.analysis.catalogue import MAP, NaiveBayes, Setting, View
from separatrix.analysis.comparison import VIEWS, sparkline
from separatrix.analysis.model_features import Form, table_of
from separatrix.cli import app

RUNNER = CliRunner()
NAMES = {view.model for view in MAP}
QUICK = ["naive Bayes", "LDA", "logistic regression", "AveragedPerceptron"]


def auto_mpg(data_folder):
    """The slide's table (L2 12): good or bad by the median, six numeric columns, one of makers, six missing values."""
    lines = (data_folder / "auto_mpg" / "auto-mpg.data").read_text().splitlines()
    rows = [shlex.split(line) for line in lines]
    mpg = [float(row[0]) for row in rows]
    middle = statistics.median(mpg)
    names = ["cylinders", "displacement", "horsepower", "weight", "acceleration", "year"]
    table = {name: [row[j + 1] for row in rows] for j, name in enumerate(names)}
    table["maker"] = [{"1": "america", "2": "europe", "3": "asia"}[row[7]] for row in rows]
    return table, ["good" if value > middle else "bad" for value in mpg]


def mixed(n=120):
    rng = np.random.default_rng(0)
    size = rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue"], n)
    label = np.where(size + (colour == "red") + 0.3 * rng.normal(size=n) > 0.3, "yes", "no")
    words, numbers = colour.astype(object), size.copy()
    words[::17], numbers[::13] = None, np.nan
    return pd.DataFrame({"size": numbers, "colour": words}), label


@pytest.mark.parametrize("load", [load_iris, pytest.param(load_breast_cancer, marks=pytest.mark.slow)])
def test_every_model_is_a_row_in_well_under_a_minute(load):
    begin = time.perf_counter()
    found = compare(*load(return_X_y=True))
    assert time.perf_counter() - begin < 60
    assert {row.model for row in found.rows} == NAMES
    for row in found.rows:
        assert row.failure is None, row
        assert found.baseline + 0.2 < row.accuracy <= 1 and 0 <= row.spread < 0.1
        assert row.accuracy == np.mean(row.accuracies) and len(row.accuracies) == 5
        assert row.view in VIEWS and row.fit_seconds > 0 and row.predict_seconds > 0 and row.parameters > 0


def test_auto_mpg_with_its_makers_and_its_missing_values(data_folder):
    table, y = auto_mpg(data_folder)
    found = compare(pd.DataFrame(table), y)
    assert found.columns == "6 numeric and 1 categorical columns, 6 missing values"
    assert all(row.failure is None and row.accuracy > 0.85 for row in found.rows)
    assert len(found.rows) == len(MAP)


def test_the_views_are_those_of_the_lectures():
    views = {view.model: view.view for view in MAP}
    assert {views[name] for name in ("naive Bayes", "LDA", "QDA")} == {"generative"}
    assert {views[name] for name in ("k-NN", "decision tree", "logistic regression")} == {"discriminative"}
    assert {views[name] for name in ("Perceptron", "linear SVM", "MaxMarginClassifier")} == {"discriminant function"}
    learns = {view.model: view.learns for view in MAP}
    assert learns["naive Bayes"].startswith("one pass") and learns["logistic regression"] == "gradient"
    assert all("mistakes" in how for model, how in learns.items() if model.endswith("Perceptron"))


def test_accuracy_is_that_of_scikit_learns_own_cross_validation():
    X, y = load_breast_cancer(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    found = compare(X, y, models=["logistic regression", "Perceptron"], random_state=3, curves=False)
    for name, model in (
        ("logistic regression", LogisticRegression(max_iter=1000)),
        ("Perceptron", Perceptron(random_state=3)),
    ):
        expected = cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=folds)
        assert found[name].accuracies == pytest.approx(expected)
    assert not found.curves


def test_the_same_seed_gives_the_same_rows_and_curves():
    X, y = mixed()
    one, other = (compare(X, y, random_state=7) for _ in range(2))
    assert [(row.model, row.accuracies, row.parameters) for row in one.rows] == [
        (row.model, row.accuracies, row.parameters) for row in other.rows
    ]
    assert one.curves == other.curves
    assert compare(X, y, random_state=8, models=QUICK).rows[0].accuracies != one[QUICK[0]].accuracies


def test_held_out_accuracy_rises_and_then_falls_while_training_accuracy_goes_on_rising():
    X, y = make_classification(300, 100, n_informative=5, n_redundant=0, flip_y=0.3, random_state=0)
    found = compare(X, y, models=["AveragedPerceptron", "VotedPerceptron", "LDA"])
    assert set(found.curves) == {"AveragedPerceptron", "VotedPerceptron"}
    for model, curve in found.curves.items():
        held_out = [step.held_out for step in curve]
        best = int(np.argmax(np.round(held_out, 9)))
        assert [step.number for step in curve] == list(range(1, 21))
        assert 0 < best < 10
        assert held_out[0] < held_out[best] - 0.02 and held_out[-1] < held_out[best] - 0.04
        assert curve[-1].training > curve[best].training + 0.04
        assert held_out[-1] == pytest.approx(found[model].accuracy)
    assert (
        "is best after pass 3, 0.697, and 0.653 after pass 20; training accuracy is 0.868 there and 0.953 here"
        in found.to_markdown()
    )


def test_a_run_that_converges_keeps_its_last_accuracy():
    X = np.array([[i, 1] for i in range(-20, -5)] + [[i, 1] for i in range(6, 21)], float)
    found = compare(X, [0] * 15 + [1] * 15, models=["Perceptron"])
    assert found.curves["Perceptron"][-1][1:] == (1.0, found["Perceptron"].accuracy)
    assert 1 <= len(found.curves["Perceptron"]) < 20


@pytest.mark.parametrize("table", ["pandas", "polars", "pyarrow", "objects", "text"])
def test_tables_of_every_kind_give_the_same(table):
    X, y = mixed()
    columns = {
        "size": [None if v != v else v for v in X["size"]],
        "colour": [v if isinstance(v, str) else None for v in X["colour"]],
    }
    same = {
        "pandas": lambda: X,
        "polars": lambda: pl.DataFrame(columns),
        "pyarrow": lambda: pa.table(columns),
        "objects": lambda: np.array(list(zip(*columns.values(), strict=True)), dtype=object),
        "text": lambda: [["?" if v is None else str(v) for v in row] for row in zip(*columns.values(), strict=True)],
    }[table]()
    found = compare(same, y, models=QUICK, curves=False)
    expected = compare(X, y, models=QUICK, curves=False)
    assert found.columns == expected.columns == "1 numeric and 1 categorical columns, 18 missing values"
    assert [row.accuracies for row in found.rows] == [row.accuracies for row in expected.rows]


def test_sparse_matrices_stay_sparse_and_the_largest_are_refused_by_those_that_cannot():
    rng = np.random.default_rng(0)
    X = sp.random(80, 12_000, density=0.005, random_state=0, format="csr")
    y = rng.integers(0, 2, 80)
    found = compare(X, y)
    assert "too large: it needs dense tables of 80 × 12,000" in found["LDA"].failure
    assert found["QDA"].failure is not None
    assert "12,000 features" in found["FisherDiscriminant"].failure
    assert [row.model for row in found.rows if row.failure] == ["LDA", "QDA", "FisherDiscriminant"]
    assert [row.model for row in found.rows][-3:] == ["LDA", "QDA", "FisherDiscriminant"]
    dense = (rng.random((60, 5)) < 0.4).astype(float)
    y = (dense[:, 0] + dense[:, 1] > 0).astype(int)
    assert compare(sp.csr_array(dense), y, models="LDA").rows[0].accuracy > 0.8


def test_a_model_that_fails_is_a_row_with_its_reason():
    X, y = load_iris(return_X_y=True)
    found = compare(X[:101], y[:101])
    assert found.folds == 5
    rare = "1 class with fewer examples than the 5 folds: 2 (1): not every fold tests them"
    assert found.notes == [f"{rare}; no fold both learns and tests a class of one example"]
    named = compare(X[:101], y[:101], feature_names=list("abcd"), models="lda")
    assert [note.split(" (")[0] for note in named.notes[:-1]] == [
        "column 'c' alone predicts the label",
        "column 'd' alone predicts the label",
    ]
    assert "only 1 sample in class 2" in found["QDA"].failure
    assert found["LDA"].accuracy > 0.9
    assert found.rows[-1].model == "QDA"
    assert "QDA: failed: fold" in repr(found) and found["QDA"].failure in found.to_markdown()


def test_negative_counts_are_no_counts():
    X = sp.csr_matrix([[1.0, 0.0], [0.0, -1.0], [2.0, 0.0], [0.0, -2.0]])
    assert "Negative values" in compare(X, [0, 1, 0, 1], models=["naive Bayes"]).rows[0].failure


def test_what_a_model_warns_of_is_a_note(monkeypatch):
    hurried = View("hurried", "discriminative", "gradient", lambda s: LogisticRegression(max_iter=1))
    monkeypatch.setattr("separatrix.analysis.catalogue.MAP", (hurried,))
    found = compare(*load_iris(return_X_y=True))
    assert "failed to converge" in found.rows[0].note
    assert "hurried: lbfgs failed to converge" in repr(found)


def test_nothing_of_the_test_rows_is_used_to_prepare_them():
    table = pd.DataFrame({"a": [1.0, 3.0, np.nan, 100.0, np.nan], "b": ["x", "y", "x", "z", None]})
    fold = table_of(table, {}).fold(np.array([0, 1, 2]), np.array([3, 4]))
    seen, unseen, n_numbers = fold.prepared(Form.AS_THEY_ARE)
    assert n_numbers == 1  # a, then: a is missing, b=x, b=y
    assert seen.tolist() == [[1, 0, 1, 0], [3, 0, 0, 1], [2, 1, 1, 0]]  # what is missing is the mean
    assert unseen.tolist() == [[100, 0, 0, 0], [2, 1, 0, 0]]
    seen, unseen, _ = fold.prepared(Form.SCALED)
    assert seen[:, 0].tolist() == [-1, 1, 0] and unseen[:, 0].tolist() == [98, 0]
    seen, unseen, _ = fold.prepared(Form.FULL_RANK)
    assert seen[:, 1:].tolist() == [[0, 0], [0, 1], [1, 0]] and unseen[1].tolist() == [0, 1, 0]
    seen, unseen, _ = fold.prepared(Form.AS_IN_TRAIN)  # a > 1, a is missing, b=x, b=y
    assert seen.toarray().tolist() == [[0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]]


def test_texts_are_counted_or_weighed_by_the_training_rows_alone():
    table = pd.DataFrame({"text": ["to be or not", "to be is be", "not at all, you", "what is it to you"]})
    fold = table_of(table, {"text": "text"}).fold(np.array([0, 1]), np.array([2, 3]))
    counts, unseen, n_numbers = fold.prepared(Form.AS_THEY_ARE)
    assert n_numbers == 0 and counts.shape == (2, 10)  # to be or not is, to-be be-or or-not be-is is-be
    assert sorted(counts.toarray()[1].tolist()) == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]
    assert counts.sum() == 14 and unseen.toarray().sum(axis=1).tolist() == [1, 2]
    ours, expected = fold.prepared(Form.AS_IN_TRAIN), TextFeatures(n_features=2**18).fit(table["text"][:2])
    weighed = expected.transform(table["text"])
    assert ours.train.max() == weighed[:2].max() and ours.train.nnz == weighed[:2].nnz
    assert ours.train is fold.prepared(Form.SCALED).train or (ours.train != fold.prepared(Form.SCALED).train).nnz == 0


def test_columns_are_told_apart_as_train_does():
    table = pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "yes": [True, False, True],
            "text of numbers": ["1.5", "?", " 2 "],
            "zip": ["02139", "10001", "94103"],
            "code": pd.Categorical([1, 2, 1]),
            "maybe": pd.array([1, None, 2], dtype="Int64"),
            "word": ["a", None, "b"],
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
            "nothing": [None, None, None],
        }
    )
    examples = table_of(table, {})
    roles = {name: role.role for name, role in examples.schema.roles.items()}
    assert roles == {
        **{"whole": "number", "yes": "boolean", "text of numbers": "number", "zip": "category", "code": "category"},
        **{"maybe": "number", "word": "category", "day": "date", "nothing": "drop"},
    }
    assert examples.describe() == "3 numeric, 3 categorical, 1 boolean and 1 date columns, 4 missing values"
    assert "column 'nothing' has no value in the first 3 rows: left out" in examples.notes
    markers = pd.DataFrame({"hp": ["#N/A", "nil", " NULL ", "-nan", "4"]})  # those of a file, not only the usual ones
    assert table_of(markers, {}).describe() == "1 numeric column, 4 missing values"
    chosen = table_of(table, {"maybe": "drop"}, categorical=["whole", 1])
    assert {name for name, role in chosen.schema.roles.items() if role.role == "category"} == {
        *("whole", "yes", "zip", "code", "word")
    }


def test_naive_bayes_of_mixed_features_multiplies_the_parts():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    numbers = rng.normal(size=(200, 2)) + y[:, None]
    codes = (rng.random(200) < 0.2 + 0.3 * y).astype(int)
    X = np.column_stack([numbers, codes == 0, codes == 1]).astype(float)
    ours = NaiveBayes(2).fit(X, y).predict(X)
    parts = GaussianNB().fit(numbers, y), CategoricalNB().fit(codes[:, None], y)
    joint = parts[0].predict_joint_log_proba(numbers) + parts[1].predict_joint_log_proba(codes[:, None])
    assert np.array_equal(ours, np.argmax(joint - np.log(np.bincount(y) / 200), axis=1))
    assert np.array_equal(NaiveBayes(2).fit(numbers, y).predict(numbers), parts[0].predict(numbers))
    assert np.array_equal(NaiveBayes(0).fit(X[:, 2:], y).predict(X[:, 2:]), parts[1].predict(codes[:, None]))


def test_parameters_are_counted():
    X, y = load_iris(return_X_y=True)
    found = compare(X, y, curves=False)
    sizes = {row.model: row.parameters for row in found.rows}
    assert sizes["naive Bayes"] == 3 * 4 * 2 + 2
    assert sizes["LDA"] == 3 * 4 + 10 + 2 and sizes["QDA"] == 3 * 4 + 3 * 10 + 2
    assert sizes["k-NN"] == 120 * 4
    assert sizes["Perceptron"] == sizes["logistic regression"] == 3 * 5
    assert sizes["VotedPerceptron"] > 3 * 5


def test_bad_input_is_named():
    X, y = load_iris(return_X_y=True)
    wrong = [
        (lambda: compare(X, np.zeros(150)), "only 1 class"),
        (lambda: compare(X, np.where(y == 0, np.nan, y)), "NaN"),
        (lambda: compare(X, [None, *y[1:]]), "row 0 has no label"),
        (lambda: compare(X, y + 0.5), "continuous"),
        (lambda: compare(X, y[:10]), "inconsistent"),
        (lambda: compare(X, None), "y is None"),
        (lambda: compare(X[0], y), "need rows and columns"),
        (lambda: compare(np.empty((0, 2)), []), r"shape \(0, 2\): there is nothing to learn from"),
        (lambda: compare(pd.DataFrame({"a": []}), []), "there are no rows"),
        (lambda: compare(np.empty((5, 0), dtype=object), y[:5]), "X has no columns"),
        (lambda: compare(sp.csr_matrix((5, 0)), y[:5]), "nothing to learn from"),
        (lambda: compare(np.where(X > 7, np.inf, X), y), r"infinity at row \d+, column 0"),
        (lambda: compare(X, y, models="adaline"), "there is no model 'adaline'; there are naive Bayes"),
        (lambda: compare(X, y, models=[]), "no model is named"),
        (lambda: compare(X, y, folds=1), "2 or more"),
        (lambda: compare(X, y, categorical=["maker"]), "there is no column 'maker'"),
        (lambda: compare(X, y, categorical=[4]), "there is no column 4"),
        (lambda: compare(sp.csr_matrix(X), y, categorical=[0]), "sparse matrix has columns of numbers"),
        (lambda: compare(X, y, feature_names=["a"]), "1 feature names for 4 columns"),
        (lambda: compare([["1", "a"], ["-inf", "b"]], [0, 1]), "row 1, column 'x0': '-inf' is not a finite number"),
        (lambda: compare(pd.DataFrame(np.where(X > 7, np.inf, X)), y), r"row \d+, column '0': inf is infinity"),
        (lambda: compare(X, y, roles={"x9": "drop"}), "there is no column 'x9'"),
        (lambda: compare(X, y, roles={"x0": "words"}), "'words', not one of number"),
        (lambda: compare(X, y, budget=0), "seconds above 0"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()


def test_a_result_is_many_things():
    X, y = load_iris(return_X_y=True)
    found = compare(X, y, models="lda, K-NN,averaged_perceptron")
    assert {row.model for row in found.rows} == {"LDA", "k-NN", "AveragedPerceptron"}
    told = json.loads(found.to_json())
    assert told == json.loads(json.dumps(found.to_dict()))
    assert told["rows"][0]["model"] == "LDA" and len(told["curves"]["AveragedPerceptron"]) == 20
    assert set(told["curves"]["AveragedPerceptron"][0]) == {"number", "training", "held_out"}
    assert told["classes"] == [0, 1, 2]
    frame = found.to_frame()
    assert frame["accuracy"].is_monotonic_decreasing and list(frame["model"]) == [row.model for row in found.rows]
    markdown = found.to_markdown().splitlines()
    assert markdown[3].startswith("| model | view |") and len({line.count("|") for line in markdown[3:8]}) == 1
    assert found._repr_html_().count("<tr>") == 4
    shown = repr(found).splitlines()
    assert [line.split(":")[0] for line in shown if ": models " in line] == list(VIEWS)
    assert max(map(len, shown)) <= 100
    with pytest.raises(KeyError, match="there are LDA"):
        found["QDA"]
    assert sparkline([0.5, 0.75, 1.0]) == "▁▅█" and sparkline([0.5, 0.501]) == "▁▁"


def test_the_verb_prints_a_table_markdown_and_json(tmp_path):
    X, y = mixed()
    X.assign(answer=y).to_csv(tmp_path / "mixed.csv", index=False)
    path = str(tmp_path / "mixed.csv")
    few = ["--models", "lda,perceptron"]
    done = RUNNER.invoke(app, ["compare", path, "--label", "answer", *few], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    assert "1 numeric and 1 categorical columns, 18 missing values, 2 classes" in " ".join(done.output.split())
    assert "generative: models p(x, y)" in done.output and "one pass, moments" in done.output
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    told = json.loads(RUNNER.invoke(app, ["compare", path, "--json", "--folds", "3", *few]).stdout)
    assert told["folds"] == 3 and told["name"] == path and {row["model"] for row in told["rows"]} == {"LDA", "Perceptron"}
    coded = json.loads(RUNNER.invoke(app, ["compare", "iris", "--json", *few, "--categorical", "petal width (cm)"]).stdout)
    assert coded["columns"] == "3 numeric and 1 categorical columns"
    assert RUNNER.invoke(app, ["compare", "iris", "--markdown", *few]).stdout.count("\n| ") == 4


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        (None, [], "no such file"),
        ("", [], "the file is empty"),
        ("a,b,y\n", [], "there is no example in it"),
        ("a,b,y\n1,x,u\n2,z,u\n", [], "only 1 class: 'u'"),
        ("a,b,y\n1,x,u\n2,z\n", [], "line 3: 2 columns where line 1 has 3"),
        ("a,b,y\n1,x,u\n2,z,v\n", ["--label", "w"], "there is no column 'w'; the columns are a, b, y"),
        ("a,b,y\n1,x,u\n2,z,v\n", ["--categorical", "w"], "there is no column 'w'; the columns are a, b"),
        ("a,b,y\n1,x,u\n2,z,v\n", ["--models", "svm"], "there is no model 'svm'"),
        ("a,b,y\n1,x,u\n2,z,v\n", ["--drop", "a", "--drop", "b"], "there is no column to learn from"),
        ("a,b,y\n1,x,u\n2,z,\n", ["--missing-label", "raise"], "line 3: the label is missing"),
        ("a,y\ninf,u\n2,v\n", [], "line 2, column 1 (a): 'inf' is not a finite number"),
        ("a,y\n?,u\n,v\n", [], "no column to learn from; column 'a' has no value"),
    ],
)
def test_the_verb_refuses_bad_input_in_one_line(tmp_path, text, options, complaint):
    path = tmp_path / "data.csv"
    if text is not None:
        path.write_text(text)
    done = RUNNER.invoke(app, ["compare", str(path), *options])
    assert done.exit_code == 2
    assert complaint in done.stderr and str(path) in done.stderr
    assert not done.stdout and done.stderr.count("\n") == 1


def test_a_model_can_be_made_from_its_line():
    for view in MAP:
        assert hasattr(view.make(Setting(0, 3)), "fit"), view.model


def test_curves_choose_no_parameter_on_the_rows_that_they_hold_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = X[:, 0] + 2.0 * rng.normal(size=120) > 0
    comparison = compare(X, y, models=["averaged PA-I"], random_state=0)
    assert comparison.curves["averaged PA-I"][-1].held_out == pytest.approx(comparison["averaged PA-I"].accuracy)
