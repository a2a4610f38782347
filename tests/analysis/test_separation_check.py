"""check_separation: the kind of separation, infinite coefficients by name and sign, rows, empty levels, collinearity."""

import json
import subprocess
import sys
import warnings
from fractions import Fraction
from math import inf

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from separatrix import Certificate, check_separation
from separatrix.cli import app
from support import brute_force, exact_oracle
from support.scale import scaled

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import statsmodels.api as sm

AGES = [50, 40, 60, 45, 52, 48, 39]
ILL = [1, 0, 0, 1, 0, 1, 1]
MUTATION = [0, 0, 0, 0, 0, 1, 1]
FRAME = pd.DataFrame({"age": AGES, "mutation": MUTATION, "ill": ILL})
LEVELS = pd.DataFrame({
    "a": [5, 3, 4, 8, 1, 2, 7, 6, 9, 5], "b": list("uuvvvvwwww"), "y": "no no no yes no yes yes no no yes".split(),
})  # fmt: skip


def limits(check):
    return {c.name: c.limit for c in check.infinite}


def small_problem(rng, K):
    n, d = int(rng.integers(4, 8)), int(rng.integers(1, 3))
    codes = rng.permutation(np.r_[np.arange(K), rng.integers(0, K, n - K)]) if n >= K else np.arange(K)
    return rng.integers(-2, 3, (len(codes), d)), codes


def leads(X, codes, direction, bias):
    """Return the exact lead of each row against each rival, by the row."""
    for x, own in zip(X.tolist(), codes.tolist(), strict=True):
        row = [Fraction(v) for v in x] + [Fraction(1)] * bias
        scores = [sum(w * v for w, v in zip(vector, row, strict=True)) for vector in direction]
        scores = [Fraction(0), scores[0]] if len(scores) == 1 else scores
        yield [scores[own] - score for k, score in enumerate(scores) if k != own]


@pytest.mark.parametrize("K", [2, 3])
def test_small_problems_agree_with_enumeration_or_the_exact_simplex(K):
    rng = np.random.default_rng(K)
    seen = set()
    for _ in range(scaled(60 if K == 2 else 20)):
        X, codes = small_problem(rng, K)
        bias = bool(rng.integers(2))
        check = check_separation(X, codes, fit_intercept=bias)
        oracle = brute_force if K == 2 else exact_oracle
        assert check.separation == oracle.answer(X.tolist(), codes.tolist(), K, bias)[1]
        assert check.verify() and check.finite == (check.separation == "overlap")
        seen.add(check.separation)
        if check.certificate.proof.direction is not None:
            by_row = list(leads(X, codes, check.certificate.proof.direction, bias))
            assert check.rows == [i for i, each in enumerate(by_row) if max(each) > 0]
            assert all(min(each) >= 0 for each in by_row)
        else:
            assert check.rows == [] and check.infinite == []
    assert seen == {"complete", "quasi-complete", "overlap"}


def determined_by_the_simplex(X, codes, bias, j):
    """Return the signs that coefficient j has in directions without a negative lead that are positive where any is."""
    pairs = [a for _, _, a in brute_force.pair_vectors(X.tolist(), codes.tolist(), 2, bias)]
    dim = len(pairs[0])
    box = [[int(i == k) for k in range(2 * dim)] for i in range(2 * dim)]
    weak = [[*(-v for v in a), *a] for a in pairs]
    limits = [0] * len(weak) + [1] * len(box)
    outside = [a for a in pairs if exact_oracle.largest([*a, *(-v for v in a)], weak + box, limits) > 0]
    signs = set()
    for sign in (1, -1):  # the largest t with every lead outside ≥ t and sign·wⱼ ≥ t
        unit = [sign * int(i == j) for i in range(dim)]
        strict = [[*(-v for v in a), *a, 1] for a in [*outside, unit]] + [[*row, 0] for row in weak + box]
        if exact_oracle.largest([0] * (2 * dim) + [1], strict, [0] * (len(outside) + 1) + limits) > 0:
            signs.add(sign)
    return signs


def test_a_certain_sign_is_the_sign_in_every_direction():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(scaled(25)):
        X, codes = small_problem(rng, 2)
        check = check_separation(X, codes)
        if check.collinear:
            continue
        for each in check.infinite:
            j = X.shape[1] if each.name == "intercept" else int(each.name[1:])
            signs = determined_by_the_simplex(X, codes, True, j)
            sign = 1 if each.limit > 0 else -1
            assert sign in signs and each.certain is (signs == {sign})
            seen.add(each.certain)
    assert seen == {True, False}


def test_a_dummy_that_one_class_lacks():
    check = check_separation(FRAME[["age", "mutation"]], FRAME["ill"])
    assert check.separation == "quasi-complete" and check.verdict == "inseparable"
    assert limits(check) == {"mutation": inf} and check.infinite[0].certain
    assert check.rows == [5, 6] and check.row_labels is None
    assert [(cell.column, cell.level, cell.label, cell.n_rows) for cell in check.empty] == [("mutation", "1", 0, 2)]
    assert limits(check_separation(FRAME[["age", "mutation"]], 1 - FRAME["ill"])) == {"mutation": -inf}


def test_all_kinds_of_data_give_the_same_answer():
    table = FRAME[["age", "mutation"]]
    y = FRAME["ill"]
    for X in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        assert limits(check_separation(X, y)) == {"mutation": inf}
    for X in (table.to_numpy(), table.to_numpy().tolist(), sp.csr_matrix(table.to_numpy())):
        check = check_separation(X, y)
        assert limits(check) == {"x1": inf} and check.rows == [5, 6] and check.collinear == []
    assert limits(check_separation(X=table, y=y)) == {"mutation": inf}
    labelled = table.set_axis(list("abcdefg"))
    assert check_separation(labelled, y).row_labels == ["f", "g"]


def test_a_column_that_separates_alone():
    check = check_separation(pd.DataFrame({"x": [1, 2, 3, 4], "noise": [1, 0, 2, 1]}), ["low", "low", "high", "high"])
    assert check.separation == "complete" and check.alone == ["x"] and check.rows == [0, 1, 2, 3]
    certain = {c.name: c.limit for c in check.infinite if c.certain}
    assert certain.get("x") == -inf  # towards "low", the second class in order
    assert "x alone separates" in repr(check)


@pytest.mark.parametrize(("gap", "separation"), [(1e-9, "complete"), (0.0, "quasi-complete"), (-1e-9, "overlap")])
def test_a_gap_and_an_overlap_of_a_billionth(gap, separation):
    x = [[0.0], [1.0], [2.0], [2.0 + gap], [3.0], [4.0]]
    assert check_separation(x, [0, 0, 0, 1, 1, 1]).separation == separation


def test_exactly_collinear_columns_are_named_with_their_dependency():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, (2, 40))
    X = pd.DataFrame({"a": a, "b": b, "sum": a + b, "four": 4, "half": a / 2, "zero": 0})
    y = rng.integers(0, 2, 40)
    check = check_separation(X, y)
    assert check.separation == "overlap"
    assert {each.column: each.terms for each in check.collinear} == {
        "sum": {"a": 1, "b": 1},
        "four": {"intercept": 4},
        "half": {"a": Fraction(1, 2)},
        "zero": {},
    }
    text = repr(check)
    assert "sum = a + b" in text and "half = 1/2 × a" in text and "zero = 0 in every row" in text
    assert check.advice == ["drop sum, four, half, zero: the others determine it, and the estimates are not unique"]


def test_a_dependency_up_to_rounding_is_told_apart():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40))
    check = check_separation(pd.DataFrame({"a": a, "b": b, "c": 0.1 * a + 0.7 * b}), a > 0)
    assert [(each.column, each.terms) for each in check.collinear] == [("c", None)]


def test_a_dependency_that_fails_in_one_late_row_is_none():
    X = np.zeros((500, 3), int)
    X[:, 0], X[:, 1] = np.arange(500), 2 * np.arange(500)
    X[333, 1] += 1
    X[:, 2] = X[:, 1]
    check = check_separation(X, np.arange(500) % 2)
    assert {each.column: each.terms for each in check.collinear} == {"x2": {"x1": 1}}


def test_signs_with_all_dummies_are_those_without_the_redundant_one():
    X = pd.get_dummies(LEVELS["b"]).astype(int).assign(a=LEVELS["a"])
    full = check_separation(X, LEVELS["y"])
    assert [each.column for each in full.collinear] == ["w"]
    assert limits(full) == limits(check_separation(X.drop(columns="w"), LEVELS["y"])) == {"u": -inf}


def test_a_formula_names_levels_and_leaves_out_missing_values():
    check = check_separation("y ~ a + C(b)", LEVELS)
    assert check.separation == "quasi-complete" and check.rows == [0, 1] and check.outcome == "y"
    assert [(c.column, c.level, c.label) for c in check.empty] == [("C(b)", "the reference level", "yes")]
    assert limits(check) == {"Intercept": -inf, "C(b)[T.v]": inf, "C(b)[T.w]": inf}
    other = check_separation("y ~ a + C(b, Treatment('w'))", LEVELS)
    assert limits(other) == {"C(b, Treatment('w'))[T.u]": -inf}
    holes = pd.concat([LEVELS.iloc[[4]].assign(a=np.nan), LEVELS], ignore_index=True)
    assert check_separation("y ~ a + C(b)", holes).rows == [1, 2]
    assert "1 of 11 rows" in check_separation("y ~ a + C(b)", holes).notes[0]
    assert limits(check_separation("I(a > 4) ~ b", LEVELS.assign(a=[1, 2, 9, 1, 9, 1, 9, 1, 9, 1])))["Intercept"] == -inf
    assert check_separation("y ~ a + C(b)", pl.from_pandas(LEVELS)).rows == [0, 1]


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ aa", "there is no column 'aa'.*did you mean 'a'"),
        ("y ~ frame", "there is no column 'frame'"),
        ("y", "has no outcome or no terms"),
        ("y ~ a +* b", "cannot be used"),
    ],
)
def test_formulas_that_cannot_be_used(formula, message):
    with pytest.raises(ValueError, match=message):
        check_separation(formula, LEVELS)


def test_statsmodels_models_and_results():
    X = sm.add_constant(FRAME[["age", "mutation"]])
    for model in (sm.Logit(FRAME["ill"], X), sm.Probit(FRAME["ill"], X), sm.GLM(FRAME["ill"], X, sm.families.Binomial())):
        check = check_separation(model)
        assert check.separation == "quasi-complete" and limits(check) == {"mutation": inf} and check.verify()
        assert check.outcome == "ill"
    overlapping = sm.Logit(FRAME["ill"], X[["const", "age"]]).fit(disp=False)
    assert check_separation(overlapping).separation == "overlap"
    with pytest.raises(TypeError, match="fit_intercept is for X and y"):
        check_separation(overlapping, fit_intercept=True)
    with pytest.raises(TypeError, match="OLS has no two classes"):
        check_separation(sm.OLS(FRAME["ill"], X))
    with pytest.raises(TypeError, match="GLM with the family Poisson"):
        check_separation(sm.GLM(FRAME["ill"], X, sm.families.Poisson()))


def test_a_glm_of_counts_has_both_classes_in_a_row():
    X = sm.add_constant(pd.DataFrame({"x": [1, 2, 3, 4], "d": [0, 0, 0, 1]}))
    counts = pd.DataFrame({"ill": [1, 2, 1, 3], "well": [2, 1, 1, 0]})
    check = check_separation(sm.GLM(counts, X, sm.families.Binomial()))
    assert limits(check) == {"d": inf} and check.rows == [3] and check.n_rows == 4
    weighted = sm.GLM(
        [1, 0, 1, 0, 1], sm.add_constant([1, 1, 2, 2, 3]), sm.families.Binomial(), freq_weights=[1, 1, 1, 0, 1]
    )
    assert check_separation(weighted).separation == "quasi-complete"


def test_a_multinomial_model():
    y = np.array(["a", "b", "c", "a", "b", "c", "a", "b", "c", "b"])
    d = [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    X = pd.DataFrame({"const": 1.0, "x": [3, 1, 2, 1, 3, 2, 2, 3, 1, 2], "d": d})
    check = check_separation(sm.MNLogit(y, X))
    assert check.separation == "quasi-complete" and check.verify()
    assert {(c.name, c.against_first): c.limit for c in check.infinite if c.name == "d"} == {
        ("d", "b"): inf,
        ("d", "c"): inf,
    }
    assert ("d", "1", "a", 3) in check.empty and set(check.rows) >= {7, 8, 9}
    assert "d (b) → +∞" in repr(check)


def test_scikit_learn_estimators_and_pipelines():
    X, y = FRAME[["age", "mutation"]], FRAME["ill"]
    check = check_separation(LogisticRegression(), X, y)
    assert limits(check) == {"mutation": inf} and "penalty" in check.notes[0]
    columns = make_column_transformer((OneHotEncoder(), ["b"]), (StandardScaler(), ["a"]), verbose_feature_names_out=False)
    pipeline = make_pipeline(columns, LogisticRegression())
    unfitted = check_separation(pipeline, LEVELS[["a", "b"]], LEVELS["y"])
    assert not hasattr(columns, "transformers_")
    fitted = check_separation(pipeline.fit(LEVELS[["a", "b"]], LEVELS["y"]), LEVELS[["a", "b"]], LEVELS["y"])
    assert limits(unfitted) == limits(fitted) == {"b_u": -inf}
    assert [each.column for each in fitted.collinear] == ["b_w"]
    with pytest.raises(TypeError, match="RidgeClassifier is no logistic regression"):
        check_separation(RidgeClassifier(), X, y)
    with pytest.raises(TypeError, match="needs data"):
        check_separation(LogisticRegression())


def test_hostile_names_and_rows_show_as_text():
    names = ["<script>alert(1)</script>", "two\nlines", "=1+1", ""]
    X = pd.DataFrame(
        [[1, 0, 5, 2], [2, 0, 4, 2], [1, 1, 3, 1], [2, 1, 2, 4], [3, 0, 4, 4]], columns=names, index=["<b>", *"cdef"]
    )
    check = check_separation(X, ["<i>", "j", "j", "j", "<i>"])
    assert "<script>" not in check._repr_html_() and "&lt;script&gt;" in check._repr_html_()
    assert "two\nlines" not in repr(check)
    assert json.loads(json.dumps(check.to_dict()))["separation"] == check.separation
    assert all(len(line) <= 60 for line in check.text(60).splitlines())


def test_many_rare_levels_are_decided():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.logistic(size=400) > 0).astype(int)
    level = np.minimum(rng.geometric(0.12, 400) - 1, 29)
    check = check_separation(np.column_stack([X, level[:, None] == np.arange(1, 30)]), y)
    pure = {k for k in range(1, 30) if len(set(y[level == k])) == 1}
    assert check.separation == "quasi-complete"
    assert limits(check) == {f"x{k + 2}": inf if y[level == k][0] else -inf for k in pure}
    assert all(each.certain for each in check.infinite)
    assert check.rows == np.flatnonzero(np.isin(level, list(pure))).tolist()


def test_undecided_is_said():
    rng = np.random.default_rng(0)
    check = check_separation(rng.normal(size=(3000, 30)), rng.integers(0, 2, 3000), time_limit=1e-9)
    assert check.separation == "undecided" and check.finite is None and "time_limit=" in repr(check)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_reports_on_a_formula_and_on_columns(tmp_path):
    file, proof = tmp_path / "levels.csv", tmp_path / "proof.json"
    LEVELS.to_csv(file, index=False)
    formula = "y ~ a + C(b)"
    done = run("certify", file, "--model-formula", formula, "-o", proof)
    assert done.exit_code == 1 and "C(b) = the reference level (2 rows) has no row with y = yes" in done.stdout
    assert "2 of 10 are separated: 1, 2" in done.stdout
    assert Certificate.from_json(proof).separation == "quasi-complete"
    assert run("check", proof, file, "--model-formula", formula).exit_code == 0
    assert run("check", proof, file, "--model-formula", "y ~ a").exit_code == 1
    numbers = tmp_path / "numbers.csv"
    FRAME.to_csv(numbers, index=False)
    document = json.loads(run("certify", numbers, "--logistic", "--json").stdout)
    assert [(each["name"], each["limit"]) for each in document["infinite"]] == [("mutation", "inf")]
    undecided = run("certify", "digits", "--logistic", "--positive", "8", "--time-limit", "1e-9")
    assert undecided.exit_code in (1, 3) and "more time with --time-limit" in undecided.stdout
    for wrong in (["--label", "y"], ["--drop", "a"], ["--no-bias"]):
        done = run("certify", file, "--model-formula", formula, *wrong)
        assert done.exit_code == 2 and "cannot be combined with --model-formula" in done.stderr


@pytest.mark.parametrize("package", ["statsmodels", "patsy"])
def test_without_the_extra_x_and_y_work_and_a_formula_names_it(package):
    code = f"""
import sys
sys.modules[{package!r}] = None
from separatrix import check_separation
assert check_separation([[0], [1], [1]], [0, 1, 1]).separation == "complete"
try:
    check_separation("y ~ a", {{"y": [0, 1], "a": [1, 2]}})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == f"a formula needs the package {package}: pip install 'separatrix[stats]'\n", done.stderr
