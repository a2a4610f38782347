"""The trace says what the run did, step by step, and the two lines of the proof hold at every mistake."""

import csv
import io
import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from separatrix import AveragedPerceptron, MaxMarginClassifier, Perceptron, load, reference, save, trace
from separatrix.cli import app
from separatrix.data.lectures import EXAMPLES
from support.scale import property_examples

IRIS = load_iris()


def lecture(name, **settings):
    example = EXAMPLES[name]
    return trace(
        Perceptron(**{"order": "cyclic", "fit_intercept": False, "tie": example.tie} | settings), example.X, example.y
    )


def test_l4_1_every_step_with_the_proof():
    steps = lecture("L4.1")
    assert [row["w"] for row in steps.rows] == [[4, 0], [3, -1], [3, -1], *[[1, -3]] * 5]
    assert [row["score"] for row in steps.rows] == [0, 4, -1, -4, 4, -2, -3, 4]
    assert [row["pass"] for row in steps.rows] == [1] * 4 + [2] * 4
    assert [row["norm2"] for row in steps.mistakes] == [16, 10, 10]
    assert [row["k_R2"] for row in steps.mistakes] == [16, 32, 48]
    gamma = 4 / np.sqrt(26)
    assert steps.gamma == pytest.approx(gamma, rel=1e-12)
    assert [row["progress"] for row in steps.mistakes] == pytest.approx([gamma, 2 * gamma, 4 * gamma], rel=1e-12)
    assert [row["k_gamma"] for row in steps.mistakes] == pytest.approx([gamma, 2 * gamma, 3 * gamma], rel=1e-12)
    assert [row["k2_gamma2"] for row in steps.mistakes] == pytest.approx([k * k * 16 / 26 for k in (1, 2, 3)], rel=1e-11)
    assert steps.holds is True
    assert steps.bound == pytest.approx(26, rel=1e-11)
    assert "at most 26 mistakes on these examples. Here it made 3." in " ".join(steps.explanation().split())


def test_l2_4_two_mistakes():
    steps = lecture("L2.4")
    assert [(row["example"], row["w"]) for row in steps.mistakes] == [(0, [3, 2]), (2, [1, -1])]
    assert steps.gamma == pytest.approx(1 / np.sqrt(2))
    assert steps.holds


@pytest.mark.filterwarnings("ignore:the weights at the start of pass")
def test_a_cycle_is_named_and_line_1_holds_without_a_separator():
    steps = lecture("L1.8", max_iter=None)
    assert [row["w"] for row in steps.mistakes] == [[1, -0.5], [1, 0.5], [1, -0.5]]
    assert "The weights at the start of pass 2 come back every pass" in " ".join(steps.explanation().split())
    assert steps.gamma is None
    assert [row["holds"] for row in steps.mistakes] == [True] * 3
    assert [row["k_gamma"] for row in steps.mistakes] == [None] * 3
    xor = lecture("L4.xor", max_iter=None)
    assert [row["w"] for row in xor.rows] == [[1, 1], [0, 2], [1, 1], [0, 0]]
    assert json.loads(xor.to_json())["cycle"] == {"start": 1, "period": 1}


@st.composite
def integer_data(draw, classes):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d, K = draw(st.integers(4, 14)), draw(st.integers(1, 3)), draw(classes)
    X, y = rng.integers(-5, 6, size=(n, d)), rng.integers(K, size=n)
    y[:K] = np.arange(K)
    return X, y


ORDERS = {
    "cyclic": lambda n, passes: reference.cyclic(n, passes),
    "permutation": lambda n, passes: reference.permutation(n, passes, 7),
    "shuffle": lambda n, passes: reference.shuffle(n, passes, 7, 1, 16),
    "random": lambda n, passes: reference.random(n, passes, 7),
}


@settings(max_examples=property_examples(60))
@given(
    data=integer_data(st.sampled_from([2, 3])),
    order=st.sampled_from(sorted(ORDERS)),
    bias=st.booleans(),
    tie=st.sampled_from(["mistake", "first"]),
    form=st.sampled_from([np.asarray, sp.csr_matrix, np.asfortranarray]),
)
def test_traces_are_the_board_step_by_step(data, order, bias, tie, form):
    X, y = data
    model = Perceptron(order=order, fit_intercept=bias, tie=tie, max_iter=4, random_state=7).fit(form(X.astype(float)), y)
    steps = trace(model, form(X.astype(float)), y)
    assert steps.model is model
    board = reference.augment(X) if bias else X
    presented = ORDERS[order](len(X), model.n_iter_)
    if len(set(y)) == 2:
        run = reference.perceptron(board, np.where(y == 1, 1, -1), presented, "-1" if tie == "first" else tie)
    else:
        run = reference.multiclass(board, y, len(set(y)), presented, tie)
    assert [row["example"] for row in steps.rows] == presented
    assert [row["w"] for row in steps.rows] == [w.tolist() for w in run.weights[1:]]
    assert [row["step"] for row in steps.mistakes] == [m.step for m in run.mistakes]
    assert [row["score"] for row in steps.mistakes] == [m.score for m in run.mistakes]
    assert all(row["holds"] for row in steps.mistakes)
    assert [row["norm2"] for row in steps.mistakes] == [float(np.sum(run.weights[m.step] ** 2)) for m in run.mistakes]


@given(data=integer_data(st.sampled_from([2, 3, 4])), seed=st.integers(0, 99))
def test_both_lines_hold_at_every_mistake_with_weights_too(data, seed):
    X, y = data
    weight = np.random.default_rng(seed).integers(0, 4, size=len(y)).astype(float)
    if not weight.any():
        return
    model = Perceptron(max_iter=5, random_state=seed).fit(X, y, sample_weight=weight)
    steps = trace(model, X, y)
    assert steps.model is model
    assert steps.holds is True
    assert not set(np.flatnonzero(weight == 0)) & {row["example"] for row in steps.rows}
    assert len(steps.rows) == model.n_seen_


def test_an_estimator_fitted_on_other_data_is_left_alone():
    model = Perceptron(random_state=3).fit(IRIS.data[:100], IRIS.target[:100])
    before = model.coef_.copy()
    steps = trace(model, IRIS.data, IRIS.target)
    assert steps.model is not model
    assert np.array_equal(model.coef_, before)
    assert steps.rows[-1]["pass"] == 20
    assert trace(Perceptron(), IRIS.data, IRIS.target, max_steps=10).complete is False


def test_the_last_weights_are_the_models_and_early_stopping_is_cut():
    model = Perceptron(random_state=1, early_stopping=True, n_iter_no_change=2, max_iter=30).fit(IRIS.data, IRIS.target)
    steps = trace(model, IRIS.data, IRIS.target)
    assert steps.model is model
    w = np.asarray(steps.rows[-1]["w"])
    assert np.array_equal(w[:, :-1], model.coef_)
    assert np.array_equal(w[:, -1], model.intercept_)
    assert steps.rows[-1]["pass"] == model.ledger_.cut.pass_number


def test_the_proof_does_not_speak_of_a_warm_start():
    X, y = IRIS.data[:100], IRIS.target[:100]
    model = AveragedPerceptron(warm_start=True, random_state=0, max_iter=1).fit(X, y).fit(X, y)
    steps = trace(model, X, y)
    assert steps.holds is None
    assert "does not apply to this run" in steps.explanation()


def test_what_cannot_be_traced_is_refused():
    with pytest.raises(TypeError, match="MaxMarginClassifier is not one of them"):
        trace(MaxMarginClassifier(), IRIS.data, IRIS.target)
    with pytest.raises(ValueError, match="one-vs-rest is K runs at once"):
        trace(Perceptron(multi_class="ovr"), IRIS.data, IRIS.target)


def test_every_form_says_the_same(monkeypatch):
    steps = lecture("L4.1")
    frame = steps.to_frame()
    assert frame["w"].tolist() == [row["w"] for row in steps.rows]
    assert frame.loc[frame["mistake"], "norm2"].tolist() == [16, 10, 10]
    read = list(csv.DictReader(io.StringIO(steps.to_csv())))
    assert [json.loads(row["w"]) for row in read] == frame["w"].tolist()
    assert json.loads(steps.to_json())["steps"] == steps.rows
    markdown = steps.to_markdown().splitlines()
    assert len([line for line in markdown if line.startswith("|")]) == 2 + 8
    assert "| 1 | 3 | (−2, −2) | 1 | −4 | mistake 3 | (1, −3) | 10 ≤ 48 | 3.138 ≥ 2.353 |" in markdown
    assert steps._repr_html_().count("<tr>") == 9
    assert "mistake 3  (1, −3)  10 ≤ 48" in repr(steps)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas"):
        steps.to_frame()


def test_long_traces_are_shown_without_their_middle():
    steps = trace(Perceptron(random_state=0, max_iter=2), IRIS.data, IRIS.target)
    assert len(steps.rows) == 300
    assert "240 steps" in repr(steps)


def run(*arguments):
    return CliRunner().invoke(app, ["trace", *arguments])


def test_the_command_line_prints_the_table_and_the_theorem():
    result = run("lecture:L4.1")
    assert result.exit_code == 0
    assert "mistake 3" in result.stdout
    assert "hence k ≤ R²/γ² = 16/0.6154 = 26" in " ".join(result.stdout.split())
    for form in ("csv", "json", "markdown"):
        steps = lecture("L4.1")
        expected = {"csv": steps.to_csv, "json": steps.to_json, "markdown": steps.to_markdown}[form]()
        assert run("lecture:L4.1", "--format", form).stdout.rstrip() == expected.rstrip()
    assert json.loads(run("lecture:L3.6", "--json").stdout)["radius"] == pytest.approx(np.sqrt(2))
    assert json.loads(run("iris", "--json", "--passes", "2").stdout)["classes"] == ["setosa", "versicolor", "virginica"]


def test_the_command_line_reads_a_csv_file(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text("kind,a,b\nyes,1,2\nno,3,-1\nyes,2,2\n")
    steps = json.loads(run(str(file), "--label", "kind", "--json", "--no-bias").stdout)
    assert steps["classes"] == ["no", "yes"]
    assert [row["w"] for row in steps["steps"]][:3] == [[1, 2], [-2, 3], [-2, 3]]


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", [], "the file is empty"),
        ("a,b\n1,x\n", ["--label", "c"], "there is no column 'c'; the columns are a, b"),
        ("a,b,c\n1,2,x\n1,oh,y\n", [], "line 3, column 2 (b): 'oh' is not a finite number"),
        ("a,b,c\n1,2,x\n1,y\n", [], "line 3: 2 columns where line 1 has 3"),
        ("a,b\n1,x\n2,x\n", [], "only 1 class"),
        ("a,b\n1,x\n2,y\n", ["--order", "sorted"], "--order: 'sorted' is not one of shuffle"),
        ("a,b\n1,x\n2,y\n", ["--format", "xml"], "--format: 'xml' is not one of"),
        (None, [], "no such file, and no built-in name"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, text, arguments, message):
    file = tmp_path / "bad.csv"
    if text is not None:
        file.write_text(text)
    result = run(str(file), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_random_draws_with_rows_left_out_are_the_models_own_run():
    X, y = [[4, 0], [1, 1], [0, 1], [-2, -2], [3, 1]], [1, -1, -1, 1, 1]
    model = Perceptron(order="random", random_state=0, max_iter=3).fit(X, y, sample_weight=[1, 5, 1, 1, 0])
    steps = trace(model, X, y)
    assert steps.model is model
    assert len(steps.mistakes) == len(model.ledger_)


def test_an_early_stop_is_told_as_it_was():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    model = Perceptron(early_stopping=True, n_iter_no_change=2, random_state=0, max_iter=20).fit(X, y)
    steps = trace(model, X, y)
    assert json.loads(steps.to_json())["n_mistakes"] == len(steps.mistakes) == len(model.ledger_)
    assert f"After {model.ledger_.cut.pass_number} pass" in steps.explanation()
    assert f"Training returned to this pass after {model.n_iter_}" in " ".join(steps.explanation().split())


@pytest.mark.parametrize("rule", ["margin", "pa1", "arow", "arow-full"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_last_step_has_the_last_weights_whatever_the_rule(rule, form, classes):
    X, y = form(IRIS.data), IRIS.target % classes
    model = Perceptron(rule=rule, random_state=0, max_iter=2).fit(X, y)
    steps = trace(model, X, y)
    assert steps.model is model
    assert np.array_equal(np.atleast_2d(steps.rows[-1]["w"]), np.column_stack([model.coef_, model.intercept_]))


CHANGES = [{"rule": "pa1"}, {"order": "cyclic"}, {"order": "random"}, {"fit_intercept": False}]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_parameters_changed_after_the_fit_change_nothing_of_its_trace(change, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    model = Perceptron(order="permutation", random_state=0, max_iter=3).fit(X, y)
    before = trace(model, X, y)
    save(model.set_params(**change), tmp_path / "model.sepx")
    for again in (model, load(tmp_path / "model.sepx").estimator):
        after = trace(again, X, y)
        assert after.model is again
        assert after.to_json() == before.to_json() and repr(after) == repr(before)
