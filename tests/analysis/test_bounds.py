"""The theorems as numbers, and no run ever makes more mistakes than the theorem that speaks of it allows."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from separatrix import AveragedPerceptron, Perceptron, certify
from separatrix.analysis.best_separator import best_separator
from separatrix.analysis.freund_schapire import smallest_shortfall
from separatrix.bounds import (
    effective_mistakes,
    freund_schapire_bound,
    generalisation_bound,
    joint_bound,
    margin_rule_bound,
    mixing_bound,
    pa1_bound,
    pa2_bound,
    passive_aggressive_bound,
    perceptron_bound,
)
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rows import Rows
from separatrix.engine.rules import RULES
from support.public_estimators import LEARNERS
from support.scale import property_examples
from support.wide_text import text

IRIS = load_iris()


def learn(name, **settings):
    example = EXAMPLES[name]
    settings = {"order": "cyclic", "fit_intercept": False, "tie": example.tie} | settings
    return Perceptron(**settings).fit(example.X, example.y).bounds(example.X, example.y)


def test_the_theorems_in_numbers():
    assert perceptron_bound(4, 4 / np.sqrt(26)) == pytest.approx(26)
    assert mixing_bound(4, 2) == perceptron_bound(4, 2) == 4
    assert joint_bound(4, 2) == 8
    assert margin_rule_bound(4, 2, beta=6) == 7
    assert freund_schapire_bound(2, 0.5, shortfall=0) == perceptron_bound(2, 0.5)
    assert freund_schapire_bound(2, 1, shortfall=3) == 25
    assert freund_schapire_bound(2, 1, shortfall=3, passes=4) == 64
    assert passive_aggressive_bound(4, 1 / 2) == 4
    assert pa1_bound(2, 3, loss=1, C=1) == 4 * (9 + 2)
    assert pa2_bound(2, 3, squared_loss=1, C=1) == 4.5 * (9 + 2)
    assert generalisation_bound(10, 100, 0.05) == pytest.approx(0.1 + np.sqrt(2 * np.log(20) / 100))
    assert effective_mistakes(np.array([2.0, 2.0, 2.0])) == pytest.approx(3)
    assert effective_mistakes(np.array([3.0, 1.0])) == 1.6
    with pytest.raises(ValueError, match="margin must be above 0"):
        perceptron_bound(1, 0)
    with pytest.raises(ValueError, match="n ≥ 1"):
        generalisation_bound(1, 10, delta=0)


def test_the_numbers_of_the_lectures():
    bounds = learn("L4.1")
    assert (bounds.mistakes, bounds.passes, bounds.radius) == (3, 2, 4)
    assert bounds.gamma == pytest.approx(4 / np.sqrt(26))
    assert {b.theorem: b.possible for b in bounds.applying} == pytest.approx(
        {"radius–margin bound R²/γ²": 26, "Freund–Schapire (R‖v‖ + ‖hinge‖)², 2 passes": 8}
    )
    assert bounds.theorem.startswith("Freund–Schapire")
    spread = learn("L3.6", fit_intercept=True)
    assert [b.possible for b in spread.applying] == pytest.approx([2, 2])
    assert spread.mistakes == 2


def test_xor_has_no_margin_and_is_bounded_all_the_same():
    bounds = learn("L4.xor", max_iter=3)
    assert bounds.gamma is None
    assert bounds.bound == pytest.approx(12)
    assert bounds.mistakes == 12
    assert bounds.holds


def test_what_applies_depends_on_the_run():
    X, y = IRIS.data, IRIS.target
    one = Perceptron(max_iter=1, random_state=0).fit(X, y).bounds(X, y)
    assert one.theorem == "Freund–Schapire (R‖v‖ + ‖hinge‖)², one pass"
    assert one.risk == pytest.approx(generalisation_bound(one.mistakes, 150))
    several = Perceptron(max_iter=5, random_state=0).fit(X, y).bounds(X, y)
    assert several.risk is None
    drawn = Perceptron(order="random", random_state=0).fit(X, y).bounds(X, y)
    assert (drawn.theorem, drawn.bound, drawn.to_dict()["bound"]) == ("none", np.inf, None)
    assert "drawn with replacement" in repr(drawn)
    warm = Perceptron(warm_start=True, random_state=0).fit(X, y).fit(X, y).bounds(X, y)
    assert warm.theorem == "none"
    assert "zero weights" in repr(warm)
    setosa = (y == 0).astype(int)
    weighted = Perceptron(class_weight={0: 1, 1: 3}, random_state=1).fit(X, setosa).bounds(X, setosa)
    assert weighted.theorem == "radius–margin bound R²/γ², weighted"
    assert weighted.applying[0].quantity == "(Σs)²/Σs²"
    assert weighted.holds
    apart = Perceptron(multi_class="ovr", random_state=0).fit(X, y).bounds(X, y)
    assert apart.theorem == "one against the rest: the K bounds together"
    assert apart.mistakes <= apart.bound


def test_a_certificate_spares_the_search():
    example = EXAMPLES["L4.1"]
    model = Perceptron(order="cyclic", fit_intercept=False).fit(example.X, example.y)
    told = certify(example.X, example.y, fit_intercept=False, exact=False)
    bounds = model.bounds(example.X, example.y, certificate=told)
    assert bounds.gamma == told.margin[0] < 0.78
    assert model.radius_**2 / told.margin[0] ** 2 in [b.possible for b in bounds.applying]
    xor = EXAMPLES["L4.xor"]
    model.fit(xor.X, xor.y)
    assert model.bounds(xor.X, xor.y, certificate=certify(xor.X, xor.y, fit_intercept=False)).gamma is None


def test_other_data_are_refused():
    model = Perceptron(random_state=0).fit(IRIS.data[:100], IRIS.target[:100])
    with pytest.raises(ValueError, match="not the data of the fit"):
        model.bounds(IRIS.data[:100], 1 - IRIS.target[:100])


def test_a_stream_is_one_pass():
    mixed = np.random.default_rng(0).permutation(100)
    X, y = IRIS.data[mixed], IRIS.target[mixed]
    model = AveragedPerceptron()
    for part in (slice(0, 30), slice(30, 70), slice(70, 100)):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    bounds = model.bounds(X, y)
    assert bounds.passes == 1
    assert bounds.risk is not None
    assert 0 < bounds.mistakes <= bounds.bound


@st.composite
def data(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d, K = draw(st.integers(4, 25)), draw(st.integers(1, 4)), draw(st.sampled_from([2, 2, 3]))
    X = rng.integers(-6, 7, size=(n, d))
    y = np.argmax(
        X @ rng.integers(-3, 4, size=(d, K)) + rng.normal(size=(n, K)) * draw(st.sampled_from([0.01, 2.0])), axis=1
    )
    y[:K] = np.arange(K)
    return X, y


@settings(max_examples=property_examples(25))
@given(
    data=data(),
    estimator=st.sampled_from(LEARNERS),
    rule=st.sampled_from(list(RULES)),
    C=st.sampled_from([0.01, 1.0, 100.0]),
    order=st.sampled_from(["cyclic", "shuffle", "permutation", "random"]),
    bias=st.booleans(),
    multi_class=st.sampled_from(["joint", "ovr"]),
    passes=st.sampled_from([1, 3, 40]),
    weights=st.sampled_from([None, "some"]),
    form=st.sampled_from([np.asarray, sp.csr_matrix]),
)
def test_no_run_makes_more_mistakes_than_its_theorem_allows(
    data, estimator, rule, C, order, bias, multi_class, passes, weights, form
):
    X, y = data
    rng = np.random.default_rng(len(y))
    weight = None if weights is None else rng.integers(1, 4, size=len(y)).astype(float)
    settings = {
        "rule": rule,
        "C": C,
        "order": order,
        "fit_intercept": bias,
        "multi_class": multi_class,
        "max_iter": passes,
        "random_state": 1,
    }
    X = form(X.astype(float))
    bounds = estimator(**settings).fit(X, y, sample_weight=weight).bounds(X, y)
    assert bounds.holds
    assert bounds.applying or weights or order == "random" or rule != "perceptron"
    assert bounds.applying or bounds.why_none
    if bounds.gamma is not None and not weights and multi_class == "joint" and not rule.startswith("arow"):
        assert bounds.applying
    assert all(b.possible >= 0 for b in bounds.applying)


@given(data=data(), bias=st.booleans(), passes=st.integers(1, 5))
def test_the_smallest_shortfall_is_below_the_margin_bound_and_any_other_v(data, bias, passes):
    X, y = data
    K = len(set(y))
    rows, codes = Rows(X.astype(float)), y.astype(np.int32)
    R = np.sqrt(np.max(np.sum(X**2, axis=1)) + bias) * (np.sqrt(2) if K > 2 else 1)
    separator = best_separator(rows, codes, K, bias=bias)
    found = smallest_shortfall(rows, codes, K, R, passes, bias=bias, separator=separator)
    assert found.bound <= passes * len(y) * (1 + 1e-9)
    if separator is not None:
        assert found.bound <= (R / separator.gamma) ** 2 * (1 + 1e-9)
    board = np.hstack([X, np.ones((len(X), 1))]) if bias else X

    def value(v):
        scores = board @ v.T
        if K == 2:
            leads = np.where(y == 1, 1, -1) * scores[:, 0]
        else:
            true = scores[np.arange(len(y)), y].copy()
            scores[np.arange(len(y)), y] = -np.inf
            leads = true - scores.max(axis=1)
        return (R * np.linalg.norm(v) + np.sqrt(passes) * np.linalg.norm(np.maximum(0, 1 - leads))) ** 2

    assert found.bound == pytest.approx(value(found.v), rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert found.bound <= value(found.v + 0.1 * rng.normal(size=found.v.shape)) * (1 + 1e-3)


def test_a_certificate_of_other_data_is_refused():
    X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    model = Perceptron(order="cyclic", fit_intercept=False).fit(X, y)
    assert model.bounds(X, y, certificate=certify(X, y, fit_intercept=False)).gamma > 0
    for other in (certify([[0.0], [1.0]], [0, 1]), certify(X, y)):
        with pytest.raises(ValueError, match="certificate does not hold"):
            model.bounds(X, y, certificate=other)


def test_examples_of_weight_zero_do_not_count():
    X, y = [[4, 0], [1, 1], [0, 1], [-2, -2], [4, 0]], [1, -1, -1, 1, -1]
    model = Perceptron(order="cyclic", fit_intercept=False).fit(X, y, sample_weight=[1, 1, 1, 1, 0])
    report = model.bounds(X, y)
    assert report.gamma == pytest.approx(4 / np.sqrt(26))


def test_the_risk_is_not_told_where_the_examples_were_seen_before():
    X, y = IRIS.data, IRIS.target
    warm = Perceptron(warm_start=True, random_state=0).fit(X, y).set_params(max_iter=1).fit(X, y)
    assert warm.bounds(X, y).passes == 1 and warm.bounds(X, y).risk is None
    chosen = Perceptron(rule="pa1", C="auto", max_iter=1, random_state=0).fit(X, y)
    assert chosen.bounds(X, y).risk is None
    assert Perceptron(rule="pa1", max_iter=1, random_state=0).fit(X, y).bounds(X, y).risk is not None


@pytest.mark.parametrize(
    "change",
    [{"rule": "pa"}, {"rule": "arow"}, {"order": "random"}, {"fit_intercept": False}, {"C": "auto"}, {"margin": 9.0}],
    ids=str,
)
@pytest.mark.parametrize("rule", ["perceptron", "margin", "pa2"])
def test_parameters_changed_after_the_fit_change_nothing_of_its_bounds(rule, change):
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    model = Perceptron(rule=rule, order="permutation", random_state=0, max_iter=1).fit(X, y)
    before = model.bounds(X, y)
    assert before.applying and before.risk is not None
    assert model.set_params(**change).bounds(X, y) == before


def test_a_stream_has_its_own_order_and_a_random_fit_keeps_its_own():
    X, y = load_iris(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(100)
    X, y = X[mixed], y[mixed]
    stream = Perceptron(order="random").partial_fit(X, y)
    assert stream.bounds(X, y) == Perceptron().partial_fit(X, y).bounds(X, y)
    drawn = Perceptron(order="random", random_state=0, max_iter=1).fit(X, y)
    assert drawn.set_params(order="cyclic").bounds(X, y).risk is None


@pytest.mark.parametrize("rule", ["pa", "pa1", "pa2", "margin"])
def test_no_bound_is_claimed_for_classes_that_came_late(rule):
    X, y = np.array([[2.0, -3.0], [2.0, 1.0], [-3.0, -2.0], [2.0, -3.0]]), np.array([1, 2, 0, 1])
    model = Perceptron(rule=rule, C=10.0)
    for x, label in zip(X, y, strict=True):
        model.partial_fit([x], [label])
    bounds = model.bounds(X, y)
    assert bounds.holds and not bounds.applying and "first met in the middle of the stream" in repr(bounds)


@pytest.mark.parametrize("stream", [False, True])
def test_rows_of_weight_0_count_neither_in_the_radius_nor_in_the_margin(stream):
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [100.0, 0.0], [0.01, 1.0]]), np.array([1, 0, 0, 0])
    weight = np.array([1.0, 1.0, 0.0, 0.0])
    model = Perceptron(fit_intercept=False)
    model = model.partial_fit(X, y, sample_weight=weight) if stream else model.fit(X, y, weight)
    alone = Perceptron(fit_intercept=False).fit(X[:2], y[:2]).bounds(X[:2], y[:2])
    bounds = model.bounds(X, y)
    assert (bounds.radius, bounds.gamma) == (alone.radius, alone.gamma) == (1.0, pytest.approx(1.0))


def test_rows_of_a_class_of_weight_0_are_left_out_of_streams():
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0], [100.0, 0.0]]), np.array([1, 0, 2])
    model = Perceptron(fit_intercept=False, class_weight={0: 1, 1: 1, 2: 0}).partial_fit(X, y, classes=[0, 1, 2])
    assert model.bounds(X, y).radius == 1.0


def test_columns_that_are_0_in_all_rows_cost_neither_memory_nor_a_better_bound():
    X, y = text(300, 3000, 3)
    narrow = Perceptron(max_iter=2).fit(X, y).bounds(X, y)
    X = sp.csr_array((X.data, X.indices, X.indptr), (300, 300_000))
    model = Perceptron(max_iter=2).fit(X, y)
    tracemalloc.start()
    wide = model.bounds(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [(b.theorem, b.possible) for b in wide.applying] == [(b.theorem, b.possible) for b in narrow.applying]
    assert wide.gamma == narrow.gamma and wide.holds
    assert peak < 60e6  # the search among all weights: 200e6


def test_where_weights_are_too_many_to_search_the_bounds_of_the_starting_points_stand(monkeypatch):
    X, y = text(300, 3000, 3)
    model = Perceptron(max_iter=2).fit(X, y)
    searched = model.bounds(X, y)
    monkeypatch.setattr("separatrix.analysis.freund_schapire._MOST_NUMBERS", 10_000)
    quick = model.bounds(X, y)
    assert quick.holds and quick.gamma == searched.gamma
    assert searched.bound <= quick.bound < 600
