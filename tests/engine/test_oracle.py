"""The kernels against the reference: the same mistakes in the same order, bit-identical weights on integer data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import AveragedPerceptron, Perceptron, PocketPerceptron, VotedPerceptron, reference
from separatrix.engine import orders
from separatrix.engine.rows import Rows
from support.integer_problems import FORMS, as_columns, integer_problems, recorded


def made(X, bias):
    return reference.augment(X.astype(float)) if bias else X.astype(float)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(
    problem=integer_problems(2), tie=st.sampled_from(["mistake", "+1", "-1"]), bias=st.booleans(), passes=st.integers(1, 4)
)
def test_two_classes(form, problem, tie, bias, passes):
    X, y = problem
    run = reference.perceptron(made(X, bias), 2 * y - 1, reference.cyclic(len(X), passes), tie)
    model = Perceptron(order="cyclic", tie=tie, fit_intercept=bias, max_iter=passes, record=True).fit(form(X), y)
    mistakes = as_columns(run.mistakes)
    steps = model.n_iter_ * len(X)
    assert recorded(model) == [m for m in mistakes if m[0] <= steps]
    assert len(mistakes) == model.n_mistakes_
    w = np.append(model.coef_[0], model.intercept_) if bias else model.coef_[0]
    assert np.array_equal(w, run.last)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@given(problem=integer_problems(), tie=st.sampled_from(["mistake", "first"]), bias=st.booleans(), passes=st.integers(1, 4))
def test_k_classes_jointly(form, problem, tie, bias, passes):
    X, y = problem
    X, y = np.vstack([X, X[:1]]), np.append(y, 2)
    classes, y = np.unique(y, return_inverse=True)
    K = len(classes)
    run = reference.multiclass(made(X, bias), y, K, reference.cyclic(len(X), passes), tie)
    model = Perceptron(order="cyclic", tie=tie, fit_intercept=bias, max_iter=passes, record=True).fit(form(X), y)
    assert recorded(model) == as_columns(run.mistakes)
    W = np.column_stack([model.coef_, model.intercept_]) if bias else model.coef_
    assert np.array_equal(W, run.last)


@pytest.mark.parametrize("form", [FORMS["dense64"], FORMS["csr64"]], ids=["dense", "csr"])
@given(problem=integer_problems(), tie=st.sampled_from(["mistake", "+1", "-1"]))
def test_one_vs_rest(form, problem, tie):
    X, y = problem
    X, y = np.vstack([X, X[:1]]), np.unique(np.append(y, 2), return_inverse=True)[1]
    runs = reference.one_vs_rest(X.astype(float), y, y.max() + 1, reference.cyclic(len(X), 3), tie)
    model = Perceptron(order="cyclic", tie=tie, fit_intercept=False, multi_class="ovr", max_iter=3).fit(form(X), y)
    assert np.array_equal(model.coef_, [run.last for run in runs])
    expected = sorted(
        (m.step, m.example, k if m.up else -1, -1 if m.up else k) for k, run in enumerate(runs) for m in run.mistakes
    )
    assert sorted((m[0], m[1], m[2], m[3]) for m in recorded(model)) == expected
    voted = VotedPerceptron(order="cyclic", tie=tie, fit_intercept=False, multi_class="ovr", max_iter=3).fit(form(X), y)
    runs = reference.one_vs_rest(X.astype(float), y, y.max() + 1, reference.cyclic(len(X), voted.n_iter_), tie)
    votes = [[reference.voted(run, x) for run in runs] for x in X.astype(float)]
    assert np.array_equal(np.rint(voted.decision_function(form(X)) * voted.n_seen_), votes)


@given(
    problem=integer_problems(2),
    bias=st.booleans(),
    weights=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    tie=st.sampled_from(["mistake", "+1", "-1"]),
)
def test_weights_scale_the_correction_and_zero_is_not_presented(problem, bias, weights, tie):
    X, y = problem
    weights = weights[: len(X)]
    weights[0] = 1
    run = reference.perceptron(made(X, bias), 2 * y - 1, reference.cyclic(len(X), 3), tie, weights)
    model = Perceptron(order="cyclic", tie=tie, fit_intercept=bias, max_iter=3, record=True)
    model.fit(X, y, sample_weight=weights)
    assert recorded(model) == as_columns(run.mistakes)
    assert model.n_seen_ == model.n_iter_ * np.count_nonzero(weights)
    assert np.array_equal(model.coef_[0], run.last[: X.shape[1]])


@given(problem=integer_problems(2), bias=st.booleans(), passes=st.integers(1, 4), begin=st.integers(1, 3))
def test_average(problem, bias, passes, begin):
    X, y = problem
    model = AveragedPerceptron(order="cyclic", fit_intercept=bias, max_iter=passes, average_from=begin).fit(X, y)
    run = reference.perceptron(made(X, bias), 2 * y - 1, reference.cyclic(len(X), model.n_iter_))
    skipped = (begin - 1) * len(X)
    expected = reference.averaged(run, skipped) if model.n_seen_ > skipped else run.last
    assert np.array_equal(model.coef_[0], expected[: X.shape[1]])
    assert np.array_equal(model.ledger_.weights(X).coef, model.coef_)


@given(problem=integer_problems(), passes=st.integers(1, 4))
def test_average_of_k_classes(problem, passes):
    X, y = problem
    X, y = np.vstack([X, X[:1]]), np.unique(np.append(y, 2), return_inverse=True)[1]
    for form in (FORMS["dense64"], FORMS["csr64"]):
        model = AveragedPerceptron(order="cyclic", fit_intercept=False, max_iter=passes).fit(form(X), y)
        run = reference.multiclass(X.astype(float), y, y.max() + 1, reference.cyclic(len(X), model.n_iter_))
        assert np.array_equal(model.coef_, reference.averaged(run))


@given(problem=integer_problems(2), bias=st.booleans(), passes=st.integers(1, 3))
def test_votes(problem, bias, passes):
    X, y = problem
    for form in (FORMS["dense64"], FORMS["csr32"]):
        model = VotedPerceptron(order="cyclic", fit_intercept=bias, max_iter=passes).fit(form(X), y)
        run = reference.perceptron(made(X, bias), 2 * y - 1, reference.cyclic(len(X), model.n_iter_))
        votes = [reference.voted(run, x) for x in made(X, bias)]
        assert np.array_equal(model.decision_function(form(X)) * model.n_seen_, votes)


@given(problem=integer_problems(), passes=st.integers(1, 3))
def test_votes_of_k_classes(problem, passes):
    X, y = problem
    X, y = np.vstack([X, X[:1]]), np.unique(np.append(y, 2), return_inverse=True)[1]
    model = VotedPerceptron(order="cyclic", fit_intercept=False, max_iter=passes).fit(X, y)
    run = reference.multiclass(X.astype(float), y, y.max() + 1, reference.cyclic(len(X), model.n_iter_))
    votes = [reference.voted_multiclass(run, x) for x in X.astype(float)]
    assert np.array_equal(np.rint(model.decision_function(X) * model.n_seen_), votes)


@given(
    problem=integer_problems(2), bias=st.booleans(), passes=st.integers(1, 4), tie=st.sampled_from(["mistake", "+1", "-1"])
)
def test_pocket(problem, bias, passes, tie):
    X, y = problem
    model = PocketPerceptron(order="cyclic", fit_intercept=bias, max_iter=passes, tie=tie).fit(X, y)
    run = reference.perceptron(made(X, bias), 2 * y - 1, reference.cyclic(len(X), model.n_iter_), tie)
    best = reference.pocket(run, made(X, bias), 2 * y - 1, len(X), tie=tie)
    assert np.array_equal(model.coef_[0], best[: X.shape[1]])
    assert model.pocket_mistakes_ == reference.training_mistakes(best, made(X, bias), 2 * y - 1, tie)
    assert np.array_equal(model.ledger_.weights(X).coef, model.coef_)


@given(
    n=st.integers(1, 60),
    seed=st.integers(0, 9),
    order=st.sampled_from(["permutation", "random", "cyclic"]),
)
def test_orders_are_those_of_the_reference(n, seed, order):
    expected = {
        "permutation": reference.permutation(n, 3, seed),
        "random": reference.random(n, 3, seed),
        "cyclic": reference.cyclic(n, 3),
    }[order]
    assert visited(order, n, 4, seed) == expected


def visited(order, n, d, seed, passes=3):
    rows = Rows(np.zeros((n, d)))
    sequence = []
    for number in range(passes):
        for block in orders.visits(order, rows, seed, number):
            order_ = block.order if block.order.size else np.arange(n)
            sequence += order_[block.begin : block.end].tolist()
    return sequence


@pytest.mark.parametrize(("n", "d"), [(40_000, 4), (9_000, 64), (20_000, 200), (8_193, 1), (5_000, 4)])
def test_the_shuffle_is_that_of_the_reference_and_visits_every_row_once(n, d):
    run = orders.run_length(n, 8 * d)
    sequence = visited("shuffle", n, d, 7, passes=2)
    assert sequence == reference.shuffle(n, 2, 7, run, orders.STREAMS)
    assert sorted(sequence[:n]) == sorted(sequence[n:]) == list(range(n))
    assert sequence[:n] != sequence[n:]


@given(problem=integer_problems(), seed=st.integers(0, 5), order=st.sampled_from(["shuffle", "permutation", "random"]))
def test_learning_in_any_order_is_the_reference_in_that_order(problem, seed, order):
    X, y = problem
    X, y = np.vstack([X, X[:1]]), np.unique(np.append(y, 2), return_inverse=True)[1]
    model = Perceptron(order=order, random_state=seed, max_iter=3, fit_intercept=False, record=True).fit(X, y)
    sequence = visited(order, len(X), X.shape[1], seed, model.n_iter_)
    run = reference.multiclass(X.astype(float), y, y.max() + 1, sequence)
    assert recorded(model) == as_columns(run.mistakes)
    assert np.array_equal(model.coef_, run.last)


def test_many_runs_and_blocks_give_the_reference_too():
    rng = np.random.default_rng(0)
    X = rng.integers(-5, 6, size=(150_000, 3))
    y = (X @ [1, 2, -1] + rng.integers(-2, 3, size=len(X)) > 0).astype(int)
    model = Perceptron(random_state=1, max_iter=1, record=True).fit(X.astype(np.float32), y)
    order = reference.shuffle(len(X), 1, 1, orders.run_length(len(X), 12), orders.STREAMS)
    run = reference.perceptron(reference.augment(X.astype(float)), 2 * y - 1, order)
    assert recorded(model) == as_columns(run.mistakes)
    assert np.array_equal([*model.coef_[0], *model.intercept_], run.last)
