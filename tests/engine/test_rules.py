"""Every rule against the reference, alone and in company: averages, votes, streams, ledgers."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from separatrix import (
    AveragedPerceptron,
    Perceptron,
    PocketPerceptron,
    VotedPerceptron,
    reference,
)
from separatrix.engine.rules import RULES, TIES, Rule
from separatrix.kernels import codes
from separatrix.kernels.learning import passes
from support.datasets import FORMS
from support.public_estimators import LEARNERS, ONLINE

DATA = Path(os.environ.get("SEPARATRIX_DATA", Path(__file__).parents[3] / "shared" / "data"))
every_rule = pytest.mark.parametrize("rule", RULES)


@st.composite
def problems(draw):
    """Quarters, so that float32 and all squares are exact; some rows are zero."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d, K = draw(st.integers(4, 14)), draw(st.integers(1, 5)), draw(st.integers(2, 4))
    X = rng.integers(-12, 13, size=(n, d)) / 4 * (rng.random((n, d)) < 0.7)
    y = rng.integers(0, K, size=n)
    y[:K] = np.arange(K)
    return X, y


settings = st.fixed_dictionaries(
    {
        "C": st.sampled_from([0.1, 1.0, 8.0]),
        "margin": st.sampled_from([0.0, 0.3, 1.0]),
        "fit_intercept": st.booleans(),
        "max_iter": st.integers(1, 3),
    }
)


def by_hand(X, y, K, order, rule, C, margin, fit_intercept, tie="mistake", **_):
    X = reference.augment(X) if fit_intercept else X
    if RULES[rule].spread:
        return reference.arow(X, y.tolist(), K, order, C, RULES[rule].spread == "full")
    options = {"tie": tie, "rule": rule, "C": C, "margin": margin}
    if K == 2:
        return reference.perceptron(X, (2 * y - 1).tolist(), order, **options)
    return reference.multiclass(X, y.tolist(), K, order, **options)


def board(model, fit_intercept):
    return np.column_stack([model.coef_, model.intercept_]) if fit_intercept else model.coef_


def same_mistakes(model, run):
    made = [(m.step, m.example, m.up, m.down) for m in model.ledger_]
    assert made == [(m.step, m.example, m.up, m.down) for m in run.mistakes]
    sizes = [[(m.correction, m.score) for m in mistakes] for mistakes in (model.ledger_, run.mistakes)]
    assert np.allclose(*sizes, rtol=1e-9, atol=1e-9)


def near_tie(X, y, order, run, rule, margin, fit_intercept, **_):
    """Tell whether a lead that a loss was taken of came so near to 1 that rounding may have decided."""
    if RULES[rule].ends:
        return False
    X = reference.augment(X) if fit_intercept else X
    for w, i in zip(run.weights, order, strict=False):
        s = np.atleast_2d(w) @ X[i]
        lead = s[0] * (2 * y[i] - 1) if len(s) == 1 else s[y[i]] - np.delete(s, y[i])
        if np.any(np.abs(lead - 1.0) < 1e-9) or (
            len(s) > 2 and np.any(np.abs(np.diff(np.sort(np.delete(s, y[i])))) < 1e-9) and w.any()
        ):
            return True
    return False


def test_the_table_and_the_kernels_agree():
    assert len({entry.code for entry in RULES.values()}) == len(RULES)
    for name, entry in RULES.items():
        assert (entry.name, Rule(name).entry, Rule(name).code) == (name, entry, entry.code)
        assert passes.follows_loss.py_func(entry.code) == entry.divides
        assert passes.keeps_matrix.py_func(entry.code) == (entry.spread == "full")
        assert passes.enough_lead.py_func(entry.code, 0.25) == {"sign": 0.0, "margin": 0.25, "loss": 1.0}[entry.asks]
        assert entry.sentence.endswith(".")
        if entry.divides and not entry.spread:
            assert np.isfinite(passes.step_size.py_func(entry.code, 1.0, 2.0, 0.5))
            assert name in reference.STEPS
    assert {code for code, _ in TIES.values()} == {codes.TIE_IS_MISTAKE, codes.TIE_IS_PLUS, codes.TIE_IS_FIRST}


@every_rule
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(problem=problems(), options=settings)
def test_rules_are_those_of_the_reference(rule, form, problem, options):
    X, y = problem
    model = Perceptron(rule=rule, order="cyclic", record=True, **options).fit(form(X), y)
    order = reference.cyclic(len(X), model.n_iter_)
    run = by_hand(X, y, len(model.classes_), order, rule, **options)
    assume(not near_tie(X, y, order, run, rule, **options))
    same_mistakes(model, run)
    assert np.allclose(board(model, options["fit_intercept"]), np.atleast_2d(run.last), rtol=1e-9, atol=1e-9)
    assert model.ledger_.verify(X, y)
    mean = AveragedPerceptron(rule=rule, order="cyclic", **options).fit(form(X), y)
    expected = np.atleast_2d(reference.averaged(run))
    assert np.allclose(board(mean, options["fit_intercept"]), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", [rule for rule, entry in RULES.items() if not entry.spread])
@given(problem=problems(), options=settings)
def test_one_against_the_rest(rule, problem, options):
    X, y = problem
    assume(y.max() > 1)
    model = Perceptron(rule=rule, order="cyclic", multi_class="ovr", **options).fit(X, y)
    board_ = reference.augment(X) if options["fit_intercept"] else X
    order = reference.cyclic(len(X), model.n_iter_)
    some = {k: options[k] for k in ("C", "margin")}
    runs = reference.one_vs_rest(board_, y.tolist(), y.max() + 1, order, rule=rule, **some)
    assume(not any(near_tie(X, y == k, order, run, rule, **options) for k, run in enumerate(runs)))
    expected = [run.last for run in runs]
    assert np.allclose(board(model, options["fit_intercept"]), expected, rtol=1e-9, atol=1e-9)
    assert model.ledger_.verify(X, y)


@every_rule
@given(problem=problems(), options=settings, form=st.sampled_from(list(FORMS)))
def test_every_ledger_replays_bit_for_bit_and_verifies(rule, problem, options, form):
    X, y = problem
    X = FORMS[form](X)
    for learner in LEARNERS:
        model = learner(rule=rule, random_state=1, **options).fit(X, y)
        assert np.array_equal(model.ledger_.weights(X).coef, model.coef_)
        assert np.array_equal(model.ledger_.weights(X).intercept, model.intercept_)
        assert model.ledger_.verify(X, y)


@every_rule
@given(problem=problems(), options=settings, sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_batches_of_any_size_give_the_same_weights(rule, problem, options, sizes):
    X, y = problem
    options = options | {"rule": rule}
    K = y.max() + 1
    for learner in ONLINE:
        whole = learner(order="cyclic", **options | {"max_iter": 1}).fit(X, y)
        one = learner(**options)
        for i in range(len(X)):
            one.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(K))
        late, at = learner(record=True, **options), 0
        some = learner(**options)
        while at < len(X):
            part = slice(at, at + sizes[at % len(sizes)])
            some.partial_fit(X[part], y[part], classes=np.arange(K))
            late.partial_fit(X[part], y[part])
            at = part.stop
        for model in (one, some):
            assert np.array_equal(model.coef_, whole.coef_)
            assert model.n_errors_ == whole.n_errors_
        assert np.array_equal(late.ledger_.weights().coef, late.coef_)
        assert late.ledger_.verify(X, y)


@every_rule
@given(problem=problems(), options=settings)
def test_votes(rule, problem, options):
    X, y = problem
    model = VotedPerceptron(rule=rule, order="cyclic", **options).fit(X, y)
    order = reference.cyclic(len(X), model.n_iter_)
    run = by_hand(X, y, y.max() + 1, order, rule, **options)
    assume(not near_tie(X, y, order, run, rule, **options))
    seen = reference.augment(X) if options["fit_intercept"] else X
    scores = np.stack([np.atleast_2d(w) @ seen.T for w in run.weights[1:]])
    if y.max() < 2:
        votes, gaps = np.sum(np.sign(scores[:, 0]), axis=0), np.abs(scores)
    else:
        votes = np.asarray([reference.voted_multiclass(run, x) for x in seen]).T
        gaps = np.diff(np.sort(scores, axis=1), axis=1)
    doubtful = np.sum(gaps.min(axis=1) < 1e-9, axis=0) if not RULES[rule].ends else 0
    assert np.all(np.abs((model.decision_function(X) * model.n_seen_).T - votes) <= 1e-6 + 2 * doubtful)


@every_rule
@given(problem=problems(), options=settings, weights=st.lists(st.integers(0, 3), min_size=14, max_size=14))
def test_weights_do_what_they_do_on_the_board(rule, problem, options, weights):
    X, y = problem
    weights = np.asarray(weights[: len(X)], float)
    weights[0] = 2.0
    model = Perceptron(rule=rule, order="cyclic", **options | {"max_iter": 1}).fit(X, y, sample_weight=weights)
    assert model.ledger_.verify(X, y)
    assert np.array_equal(model.ledger_.weights(X).coef, model.coef_)
    board_ = reference.augment(X) if options["fit_intercept"] else X
    order = reference.cyclic(len(X), 1)
    if RULES[rule].spread:
        full = RULES[rule].spread == "full"
        run = reference.arow(board_, y, y.max() + 1, order, options["C"], full, weight=weights)
    else:
        some = {"rule": rule, "weight": weights} | {k: options[k] for k in ("C", "margin")}
        learn = reference.perceptron if y.max() < 2 else reference.multiclass
        given = (2 * y - 1,) if y.max() < 2 else (y, y.max() + 1)
        run = learn(board_, *given, order, **some)
    assume(not near_tie(X[weights > 0], y[weights > 0], range(np.count_nonzero(weights)), run, rule, **options))
    assert np.allclose([m.correction for m in model.ledger_], [m.correction for m in run.mistakes])


def test_errors_are_told_from_corrections():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = Perceptron(rule="pa1", order="cyclic", max_iter=1).fit(X, y)
    one_by_one, wrong = Perceptron(rule="pa1"), 0
    for i in range(len(X)):
        wrong += i == 0 or one_by_one.predict(X[i : i + 1])[0] != y[i]
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    assert model.n_errors_ == one_by_one.n_errors_ == wrong
    assert model.n_mistakes_ > model.n_errors_
    plain = Perceptron(order="cyclic").fit(X, y)
    assert plain.n_errors_ == plain.n_mistakes_


@every_rule
def test_a_changed_ledger_does_not_verify(rule):
    X, y = load_digits(return_X_y=True)
    X, y = X[:200] / 16, y[:200] % 3
    model = Perceptron(rule=rule, order="cyclic", max_iter=2).fit(X, y)
    assert model.ledger_.verify(X, y)
    if not RULES[rule].ends:
        forged = model.ledger_.correction.copy()
        forged[len(forged) // 2] *= 1.001
        model.ledger_._correction.replace(forged)
        assert not model.ledger_.verify(X, y)
    model = Perceptron(rule=rule, order="cyclic", max_iter=2).fit(X, y)
    assert not model.ledger_.verify(X, (y + 1) % 3)


def test_the_margin_rule_keeps_its_margin_and_with_zero_is_the_perceptron():
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, size=(60, 3))
    X = X[X @ [1, 2, -1] != 0]
    y = (X @ [1, 2, -1] > 0).astype(int)
    kept = Perceptron(rule="margin", margin=4.0, max_iter=None, order="cyclic", fit_intercept=False).fit(X, y)
    assert kept.converged_ and np.min((2 * y - 1) * kept.decision_function(X)) > 4.0
    zero = Perceptron(rule="margin", margin=0.0, order="cyclic").fit(X, y)
    assert np.array_equal(zero.coef_, Perceptron(order="cyclic").fit(X, y).coef_)


def test_arow_starts_certain_of_nothing_and_a_warm_start_begins_so_again():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    for rule in ("arow", "arow-full"):
        model = AveragedPerceptron(rule=rule, warm_start=True, order="cyclic", max_iter=3).fit(X, y)
        spread = model.run_.last.spreads()[0]
        assert np.all(spread <= 1.0 + 1e-12) and np.all(np.isfinite(spread))
        again = model.fit(X, y)
        assert np.array_equal(again.ledger_.weights(X).coef, again.coef_)
        assert again.score(X, y) > 0.95


@every_rule
def test_early_stopping_goes_back_with_all_of_the_state(rule):
    X, y = load_digits(return_X_y=True)
    model = AveragedPerceptron(rule=rule, early_stopping=True, n_iter_no_change=1, random_state=0, max_iter=30)
    model.fit(X[:600] / 16, y[:600] % 3)
    assert np.array_equal(model.ledger_.weights(X[:600] / 16).coef, model.coef_)
    model.partial_fit(X[600:700] / 16, y[600:700] % 3)
    assert np.array_equal(model.ledger_.weights(X[:700] / 16).coef, model.coef_)


def test_the_whole_matrix_is_for_few_features():
    X = sp.random(20, 30_000, density=0.01, format="csr", random_state=0)
    with pytest.raises(ValueError, match=r'"arow-full" keeps a matrix of 30,001 × 30,001 .*rule="arow"'):
        Perceptron(rule="arow-full").fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(("name", "value"), [("C", 0.0), ("C", -1.0), ("C", "best"), ("margin", -0.1), ("rule", "adaline")])
def test_bad_settings_are_named(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        Perceptron(**{name: value}).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(("name", "value"), [("C", 3.0), ("margin", 0.5), ("rule", "pa")])
def test_the_rule_cannot_change_on_the_way(name, value):
    model = Perceptron(rule="pa1").partial_fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=f"{name} was .* when learning began"):
        model.set_params(**{name: value}).partial_fit([[0.0], [1.0]], [0, 1])


# The published online mistake rates.


@pytest.mark.skipif(not (DATA / "libsvm" / "svmguide3.csv").exists(), reason="needs the svmguide3 data")
@pytest.mark.parametrize(
    ("rule", "C", "published"),
    [("perceptron", 1.0, 0.332), ("pa", 1.0, 0.318), ("pa1", 1 / 16, 0.236), ("arow-full", 1.0, 0.222)],
)
def test_online_mistake_rates_on_svmguide3(rule, C, published):
    table = np.loadtxt(DATA / "libsvm" / "svmguide3.csv", delimiter=",", skiprows=1)
    X, y = np.ascontiguousarray(table[:, 1:]), table[:, 0]
    common = {"rule": rule, "C": C, "fit_intercept": False, "max_iter": 1, "order": "permutation"}
    rates = [Perceptron(random_state=seed, **common).fit(X, y).n_errors_ / len(y) for seed in range(20)]
    assert np.mean(rates) == pytest.approx(published, abs=0.01)


def test_the_pocket_counts_decisions_whatever_the_rule():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = PocketPerceptron(rule="pa1", C=0.1, random_state=0, max_iter=5).fit(X, y)
    assert model.pocket_mistakes_ == np.sum(model.predict(X) != y)


@pytest.mark.parametrize("rule", ["pa", "pa1", "pa2"])
@pytest.mark.parametrize("order", ["random", "permutation"])
def test_a_row_of_zeros_is_no_mistake_in_any_order(rule, order):
    X, y = [[0.0, 0.0], [4.0, 1.0], [-4.0, 1.0]], [1, 1, 0]
    model = Perceptron(rule=rule, C=100.0, order=order, fit_intercept=False, max_iter=50, random_state=0).fit(X, y)
    assert model.converged_


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32])
def test_narrow_sparse_data_have_the_grid_and_the_bounds_of_wide_ones(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 120, size=(60, 4)).astype(dtype)
    y = (X[:, 0] > 60).astype(int)
    narrow, wide = sp.csr_matrix(X), sp.csr_matrix(X.astype(float))
    both = [Perceptron(rule="pa1", C="auto", random_state=0).fit(data, y) for data in (narrow, wide)]
    assert both[0].C_scores_ == both[1].C_scores_
    for rule in ("pa", "perceptron"):
        model = Perceptron(rule=rule, random_state=0, max_iter=50).fit(narrow, y)
        assert [b.made for b in model.bounds(narrow, y).applying] == pytest.approx(
            [b.made for b in model.bounds(wide, y).applying]
        )
        assert model.bounds(narrow, y).bound == pytest.approx(model.bounds(wide, y).bound)


@pytest.mark.parametrize("rule", ["pa", "pa1", "pa2"])
def test_why_a_rule_that_only_comes_near_has_ended(rule, monkeypatch):
    monkeypatch.setattr("separatrix.engine.stopping.PASS_CAP", 40)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    with pytest.warns(ConvergenceWarning, match=f"rule='{rule}' need not bring every lead to 1"):
        Perceptron(rule=rule, max_iter=None, random_state=0).fit(X, X[:, 0] > 0)
