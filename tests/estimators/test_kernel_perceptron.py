"""The kernel perceptron: the same mistakes as on the board, and four predictions from them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from separatrix import KernelPerceptron, Perceptron, VotedPerceptron, reference
from separatrix.solvers import dual, dual_votes, kernel_matrix
from support.integer_problems import FORMS, as_columns, integer_problems, recorded
from support.kernel_runs import DIGITS, PREDICT_WITH, polynomial, visiting_order
from support.scale import property_examples

XOR = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]), np.array([1, -1, -1, 1])


def common(A, B):
    return np.minimum(A[:, None], B).sum(axis=2)


INTEGER_KERNELS = {
    "linear": ({"kernel": "linear"}, lambda A, B: A @ B.T),
    "quadratic": (polynomial(2, 1), lambda A, B: (1 + A @ B.T) ** 2),
    "homogeneous cubic": (polynomial(3, 0), lambda A, B: (A @ B.T) ** 3),
    "constant": (polynomial(0, 5), lambda A, B: np.ones((len(A), len(B)))),
    "callable": (
        {"kernel": lambda A, B: np.minimum(A[:, None], B).sum(axis=2)},
        lambda A, B: np.minimum(A[:, None], B).sum(2),
    ),
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that even a dozen examples go through every path."""
    monkeypatch.setattr(dual, "BLOCK", 5)
    monkeypatch.setattr(dual, "SHORT_BLOCK", 2)
    monkeypatch.setattr(dual, "ROWS_PER_TASK", 2)
    monkeypatch.setattr(dual, "COLUMNS", 3)
    monkeypatch.setattr(dual, "PARALLEL_ENTRIES", 0)
    monkeypatch.setattr(kernel_matrix, "COLUMNS", 3)
    monkeypatch.setattr(dual_votes, "VALUES_BYTES", 64)


def run_of(G, y, K, order, tie="mistake", weight=None):
    labels = 2 * y - 1 if K == 2 else y
    return reference.kernel_perceptron(G, labels, K, order, "first" if K > 2 and tie == "-1" else tie, weight)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kernel", INTEGER_KERNELS)
@pytest.mark.parametrize("cache_mb", [0, 1e-4, 1])
@settings(max_examples=property_examples(8))
@given(
    problem=integer_problems(4),
    tie=st.sampled_from(["mistake", "+1", "-1"]),
    bias=st.booleans(),
    order=st.sampled_from(["cyclic", "permutation", "random", "shuffle"]),
    weights=st.none() | st.lists(st.integers(0, 3), min_size=13, max_size=13),
)
def test_mistakes_and_predictions_are_those_of_the_reference(kernel, cache_mb, problem, tie, bias, order, weights):
    X, y = problem
    K = len(np.unique(y))
    if K > 2:
        y, tie = np.unique(y, return_inverse=True)[1], "mistake" if tie == "+1" else tie
    if weights is not None:
        weights = weights[: len(X)]
        weights[0] = 1
    parameters, function = INTEGER_KERNELS[kernel]
    model = KernelPerceptron(
        **parameters, tie=tie, order=order, fit_intercept=bias, cache_mb=cache_mb, max_iter=3, random_state=5, record=True
    ).fit(X, y, sample_weight=weights)
    G = function(X.astype(float), X.astype(float)) + bias
    run = run_of(G, y, K, visiting_order(model, X, weights), tie, weights)
    assert recorded(model) == as_columns(run.mistakes)
    assert model.n_seen_ == len(run.weights) - 1
    assert model.ledger_.verify(X, y)
    assert np.array_equal(model.ledger_.weights().coef.reshape(run.last.shape), run.last)

    Z = np.vstack([X[::-1], X + 1])
    scores = {how: model.set_params(predict_with=how).decision_function(Z) for how in PREDICT_WITH}
    columns = function(Z.astype(float), X.astype(float)) + bias
    vote = reference.voted if K == 2 else reference.voted_multiclass
    drawn = np.random.default_rng([5, 0, 2]).integers(1, model.n_seen_ + 1, size=len(Z))
    assert np.array_equal(scores["last"], (run.last @ columns.T).T)
    mean = np.sum(run.weights[1:], axis=0) @ columns.T / model.n_seen_
    assert np.array_equal(scores["averaged"], mean.T)
    assert np.array_equal(np.rint(scores["voted"] * model.n_seen_), [vote(run, k) for k in columns])
    assert np.array_equal(scores["random"], [run.weights[t] @ k for t, k in zip(drawn, columns, strict=True)])


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=property_examples(10))
@given(
    problem=integer_problems(4),
    tie=st.sampled_from(["mistake", "-1"]),
    bias=st.booleans(),
    order=st.sampled_from(["cyclic", "permutation", "random", "shuffle"]),
    multi_class=st.sampled_from(["joint", "ovr"]),
)
def test_a_linear_kernel_is_the_perceptron(problem, tie, bias, order, multi_class):
    X, y = problem
    same = {"tie": tie, "order": order, "fit_intercept": bias, "multi_class": multi_class, "record": True}
    same |= {"max_iter": 4, "random_state": 3}
    one = Perceptron(**same).fit(X, y)
    for form in (FORMS["dense32"], FORMS["integers"], FORMS["csc"]):
        other = KernelPerceptron(kernel="linear", predict_with="last", **same).fit(form(X), y)
        assert list(other.ledger_) == list(one.ledger_)
        assert (other.mistakes_per_pass_, other.converged_, other.n_seen_) == (
            one.mistakes_per_pass_,
            one.converged_,
            one.n_seen_,
        )
        assert np.array_equal(other.decision_function(form(X)), one.decision_function(X))
        assert np.array_equal(other.predict(form(X)), one.predict(X))
        assert np.array_equal(other.dual_coef_ @ other.support_vectors_, one.coef_)
        assert np.array_equal(other.intercept_, one.intercept_)
        assert other.ledger_.verify(form(X), y)
    votes = VotedPerceptron(**same).fit(X, y).decision_function(X)
    assert np.array_equal(other.set_params(predict_with="voted").decision_function(form(X)), votes)


def test_float32_rows_of_large_whole_numbers_stay_exact():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(400, 500)).astype(np.float32)
    y = rng.integers(0, 3, size=400)
    one = Perceptron(max_iter=3, random_state=0, record=True).fit(X, y)
    other = KernelPerceptron(kernel="linear", max_iter=3, random_state=0, record=True).fit(X, y)
    assert list(one.ledger_) == list(other.ledger_)


def test_xor_needs_a_polynomial_of_degree_two():
    X, y = XOR
    model = KernelPerceptron(kernel="poly", degree=2, gamma=1, coef0=1, max_iter=None).fit(X, y)
    assert model.converged_
    for how in PREDICT_WITH[:1]:
        assert model.set_params(predict_with=how).score(X, y) == 1.0
    with pytest.warns(ConvergenceWarning, match="come back, with a period of 1"):
        linear = KernelPerceptron(kernel="linear", max_iter=None, order="cyclic", fit_intercept=False).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="come back"):
        flat = Perceptron(max_iter=None, order="cyclic", fit_intercept=False).fit(X, y)
    assert linear.cycle_ == flat.cycle_
    assert not linear.converged_


@pytest.mark.parametrize("K", [2, 10])
@pytest.mark.parametrize("how", PREDICT_WITH)
def test_named_precomputed_and_called_kernels_agree(K, how):
    X, y = DIGITS[0][:600] / 16, DIGITS[1][:600] % K
    train, test = X[:400], X[400:]
    for named, function in (
        ({"kernel": "rbf", "gamma": 0.1}, lambda A, B: rbf_kernel(A, B, gamma=0.1)),
        ({"kernel": "poly", "gamma": 0.5, "coef0": 1.0}, lambda A, B: polynomial_kernel(A, B, 3, 0.5, 1.0)),
    ):
        same = {"predict_with": how, "random_state": 1, "max_iter": 3}
        by_name = KernelPerceptron(**named, **same).fit(train, y[:400])
        called = KernelPerceptron(kernel=function, **same).fit(train, y[:400])
        given = KernelPerceptron(kernel="precomputed", **same).fit(function(train, train), y[:400])
        sparse = KernelPerceptron(**named, **same).fit(sp.csr_array(train), y[:400])
        scores = by_name.decision_function(test)
        assert np.allclose(called.decision_function(test), scores, rtol=1e-9)
        assert np.allclose(given.decision_function(function(test, train)), scores, rtol=1e-9)
        assert np.allclose(sparse.decision_function(sp.csr_array(test)), scores, rtol=1e-9)
        if how in ("last", "averaged"):
            again = function(test, by_name.support_vectors_) @ by_name.dual_coef_.T + by_name.intercept_
            assert np.allclose(again if K > 2 else again[:, 0], scores, rtol=1e-9)


def test_one_vs_rest_is_k_runs_of_the_reference():
    X, y = DIGITS[0][:200], DIGITS[1][:200] % 4
    model = KernelPerceptron(
        kernel="poly",
        degree=2,
        gamma=1,
        fit_intercept=False,
        multi_class="ovr",
        order="cyclic",
        max_iter=3,
        predict_with="last",
    ).fit(X, y)
    G, order = (X @ X.T) ** 2, reference.cyclic(200, model.n_iter_)
    runs = [reference.kernel_perceptron(G, np.where(y == k, 1, -1), 2, order) for k in range(4)]
    assert np.array_equal(model.ledger_.weights().coef, [run.last for run in runs])
    assert np.array_equal(model.decision_function(X), G @ np.transpose([run.last for run in runs]))
    assert model.ledger_.verify(X, y)


def test_a_fit_says_what_a_smaller_one_would_have():
    X, y = DIGITS[0][:500], DIGITS[1][:500]
    quadratic = polynomial(2, 1)
    long = KernelPerceptron(**quadratic, max_iter=5, random_state=0).fit(X, y)
    short = KernelPerceptron(**quadratic, max_iter=2, random_state=0).fit(X, y)
    then = long.after(1000)
    assert (then.n_iter_, then.mistakes_per_pass_, then.n_seen_) == (2, short.mistakes_per_pass_, 1000)
    for how in PREDICT_WITH:
        scores = [model.set_params(predict_with=how).decision_function(X) for model in (then, short)]
        assert np.array_equal(*scores)
    assert long.after(250).n_iter_ == 1
    assert long.after(250).ledger_.verify(X, y)
    assert long.n_seen_ == long.after(long.n_seen_).n_seen_ == 500 * long.n_iter_
    with pytest.raises(ValueError, match="between 1 and"):
        long.after(0)


def test_the_ledger_refuses_other_data():
    X, y = DIGITS[0][:200], DIGITS[1][:200]
    for parameters in (polynomial(2, 1), {"kernel": "rbf"}):
        model = KernelPerceptron(**parameters, random_state=0, record=True).fit(X, y)
        assert model.ledger_.verify(X, y)
        assert not model.ledger_.verify(X, np.roll(y, 1))
        assert not model.ledger_.verify(X[::-1], y)
        assert not model.ledger_.verify(X[:100], y[:100])
        assert not model.ledger_.verify(X, y + 1)


@pytest.mark.parametrize("how", PREDICT_WITH)
def test_early_stopping_goes_back_to_the_best_pass(how):
    X, y = DIGITS[0] / 16, DIGITS[1]
    noisy = y.copy()
    noisy[::7] = (noisy[::7] + 1) % 10
    model = KernelPerceptron(
        early_stopping=True, n_iter_no_change=2, predict_with=how, random_state=0, kernel="linear", max_iter=30
    ).fit(X[:1200], noisy[:1200], X_val=X[1200:], y_val=y[1200:])
    best = int(np.argmax(model.validation_scores_))
    assert len(model.ledger_.pass_starts) == best + 1
    assert model.n_iter_ == len(model.validation_scores_) == best + 3
    assert model.score(X[1200:], y[1200:]) == model.validation_scores_[best]
    assert model.n_seen_ == 1200 * model.n_iter_
    held = KernelPerceptron(early_stopping=True, predict_with=how, random_state=0).fit(X, y)
    assert held.score(X, y) > 0.95
    assert held.n_seen_ == held.n_iter_ * (len(X) - sum(round(0.1 * size) for size in np.bincount(y)))


def test_it_is_within_a_point_of_a_support_vector_machine_on_digits():
    X, y = DIGITS[0] / 16, DIGITS[1]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)  # in their own order the folds would be other writers' digits
    ours = cross_val_score(KernelPerceptron(random_state=0), X, y, cv=folds).mean()
    theirs = cross_val_score(SVC(), X, y, cv=folds).mean()
    assert ours > theirs - 0.01


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_gamma_is_that_of_scikit_learn(gamma, form):
    X, y = form(DIGITS[0][:200]), DIGITS[1][:200]
    theirs = SVC(gamma=gamma).fit(X, y)._gamma
    assert KernelPerceptron(gamma=gamma).fit(X, y).gamma_ == pytest.approx(theirs, rel=1e-6)


def test_kernels_that_cannot_be():
    X, y = XOR
    with pytest.raises(ValueError, match=r"must be square, but X has shape \(4, 2\)"):
        KernelPerceptron(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match=r"returned an array of shape \(4,\) for 4 and 4 rows"):
        KernelPerceptron(kernel=lambda A, B: np.ones(len(A))).fit(X, y)
    with pytest.raises(ValueError, match="returned NaN or infinity"):
        KernelPerceptron(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)
    with pytest.raises(ValueError, match="'kernel' parameter"):
        KernelPerceptron(kernel="cosine").fit(X, y)
    with pytest.raises(ValueError, match="outgrew float64"):
        KernelPerceptron(kernel="poly", degree=400, gamma=1e3).fit(X, y)
    model = KernelPerceptron(kernel="poly", degree=40, gamma=1).fit(X, y)
    with pytest.raises(ValueError, match="outgrew float64"):
        model.predict(1e100 * X)
    with pytest.raises(ValueError, match="'predict_with' parameter"):
        model.set_params(predict_with="best").predict(X)


def test_nothing_is_kept_of_a_fit_that_failed():
    X, y = XOR
    model = KernelPerceptron(kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 3), np.nan), y)
    assert model.predict(X).shape == (4,)
    with pytest.raises(AttributeError, match="no dual_coef_ before it is fitted"):
        KernelPerceptron().dual_coef_  # noqa: B018


WEIGHTS = "a weight scales the correction; it is not the same as meeting the example twice"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}
EXPECTED["check_estimators_nan_inf"] = "it predicts on rows of another width than those fitted, which are refused for that"


@parametrize_with_checks([KernelPerceptron(kernel="precomputed", random_state=0)], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learn_contract_of_a_precomputed_kernel(estimator, check):
    check(estimator)


def test_progress_is_shown(capsys):
    KernelPerceptron(verbose=1, max_iter=2, random_state=0).fit(*DIGITS)
    assert "KernelPerceptron" in capsys.readouterr().err


def test_mnist(data_folder):
    from benchmarks import datasets

    X, y, X_test, y_test = datasets.mnist()
    model = KernelPerceptron(**polynomial(4, 1), fit_intercept=False, max_iter=4, random_state=0).fit(X[:6000], y[:6000])
    errors = {how: 1 - model.set_params(predict_with=how).score(X_test[:2000], y_test[:2000]) for how in PREDICT_WITH}
    assert max(errors["averaged"], errors["voted"]) < min(errors["last"], errors["random"])
    assert errors["averaged"] < 0.08
