"""The margin of a given w, and the separator of largest margin: exact on the lectures, certified everywhere else."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from separatrix import MaxMarginClassifier, margin
from separatrix.data.lectures import EXAMPLES
from separatrix.solvers.soft_margin import circulation
from support.scale import property_examples

IRIS = load_iris()
WDBC = load_breast_cancer()
DIGITS = load_digits()


def hard(**settings):
    return MaxMarginClassifier(C=None, random_state=0, **settings)


def sonar(data_folder):
    table = np.loadtxt(data_folder / "uci" / "sonar.csv", delimiter=",", dtype=str, ndmin=2)
    return table[:, :-1].astype(float), table[:, -1]


# The margin of w.


def test_l4_6_the_unsigned_distance_and_the_signed_margin():
    example = EXAMPLES["L4.6"]
    assert margin([1, 0], example.X, example.y, signed=False) == 0.01
    assert margin([1, 0], example.X, example.y) == -1.0


@pytest.mark.parametrize("labels", [[1, -1, -1, 1], ["b", "a", "a", "b"], [True, False, False, True], [7.0, 2.0, 2.0, 7.0]])
def test_the_second_class_in_sorted_order_is_plus_one(labels):
    X = EXAMPLES["L4.1"].X
    assert margin([1, -5], X, labels) == pytest.approx(4 / np.sqrt(26), rel=1e-15)
    assert margin([1, -5], sp.csr_matrix(X), np.asarray(labels, dtype=object)) == pytest.approx(4 / np.sqrt(26), rel=1e-15)


def test_the_bias_moves_the_hyperplane_and_scale_does_not_matter():
    assert margin([2, 0], [[3, 1], [-1, 1]], [1, -1], b=-2) == 2.0
    assert margin([4e9, 0], [[3, 1], [-1, 1]], [1, -1], b=-4e9) == 2.0


@pytest.mark.parametrize(
    ("w", "y", "message"),
    [
        ([1], [1, -1], "w has 1 weights, but X has 2 features"),
        ([0, 0], [1, -1], "no direction"),
        ([1, 0], ["a", "a"], "could be either side"),
        ([1, 0], [1, 2, 3], "two classes, but y has 3"),
    ],
)
def test_what_has_no_margin_is_refused(w, y, message):
    with pytest.raises(ValueError, match=message):
        margin(w, np.eye(2)[: len(y)] if len(y) < 3 else np.ones((3, 2)), y)


# The hard margin.


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.separator])
def test_the_lectures_best_separators(name):
    example = EXAMPLES[name]
    model = hard(fit_intercept=False).fit(example.X, example.y)
    direction = np.asarray(example.separator) / np.linalg.norm(example.separator)
    assert model.coef_[0] / np.linalg.norm(model.coef_) == pytest.approx(direction, abs=1e-12)
    assert model.margin_ == pytest.approx(margin(direction, example.X, example.y), rel=1e-12)
    assert abs(model.dual_gap_) < 1e-12


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.asfortranarray])
@pytest.mark.parametrize("fit_intercept", [True, False, "augmented"])
def test_hard_margins_are_right_on_raw_features(form, fit_intercept):
    model = hard(fit_intercept=fit_intercept, tol=1e-9).fit(form(WDBC.data), WDBC.target)
    expected = {True: 4.13713684e-5, "augmented": 4.13707301e-5, False: 4.04756024e-5}[fit_intercept]
    assert model.margin_ == pytest.approx(expected, rel=1e-8)
    assert model.score(WDBC.data, WDBC.target) == 1.0
    assert 0 <= model.dual_gap_ + 1e-12 * model.objective_ <= 1e-9 * model.objective_


def test_where_svc_returns_a_plane_that_does_not_separate(data_folder):
    for X, y in (sonar(data_folder), (WDBC.data, WDBC.target)):
        model = hard(tol=1e-8).fit(X, y)
        assert margin(model.coef_[0], X, y, b=model.intercept_[0]) == pytest.approx(model.margin_, rel=1e-6)
        assert model.dual_gap_ <= 1e-8 * model.objective_
    assert hard(fit_intercept="augmented").fit(*sonar(data_folder)).margin_ == pytest.approx(1.0793134e-3, rel=1e-7)


def test_ten_classes_jointly_lead_by_one():
    model = hard().fit(DIGITS.data, DIGITS.target)
    scores = np.sort(model.decision_function(DIGITS.data), axis=1)
    assert (scores[:, -1] - scores[:, -2]).min() == pytest.approx(1.0)
    assert model.score(DIGITS.data, DIGITS.target) == 1.0
    assert model.margin_ == pytest.approx(0.76527559, rel=1e-7)
    assert model.margin_ == pytest.approx(1 / np.linalg.norm(model.coef_))


def test_a_wide_problem_is_left_to_the_descent():
    rng = np.random.default_rng(0)
    X = sp.random(60, 5000, 0.02, format="csr", random_state=0)
    for y in (rng.integers(2, size=60), rng.integers(3, size=60)):
        model = hard(tol=1e-5).fit(X, y)
        assert model.n_iter_ > 0
        assert model.score(X, y) == 1.0
        assert 0 <= model.dual_gap_ <= 1e-5 * model.objective_


@pytest.mark.parametrize(
    ("X", "y", "fit_intercept"),
    [
        (EXAMPLES["L4.xor"].X, EXAMPLES["L4.xor"].y, True),
        (EXAMPLES["L1.8"].X, EXAMPLES["L1.8"].y, False),
        (np.zeros((2, 2)), [0, 1], False),
        (np.ones((4, 1)), [0, 1, 0, 1], True),
        (IRIS.data, IRIS.target, True),
        (DIGITS.data, DIGITS.target == 8, True),
    ],
    ids=["XOR", "touching", "zero rows", "both labels", "iris", "digits 8"],
)
def test_what_cannot_be_separated_is_refused(X, y, fit_intercept):
    for C in (None, np.inf):
        with pytest.raises(ValueError, match="no plane separates"):
            MaxMarginClassifier(C=C, fit_intercept=fit_intercept).fit(X, y)


# The soft margin.


SCALED = StandardScaler().fit_transform(WDBC.data)


@pytest.mark.parametrize(("X", "y"), [(SCALED, WDBC.target), (IRIS.data[:100], IRIS.target[:100])], ids=["wdbc", "iris"])
@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("shift", [0.0, 1000.0], ids=["", "far from the origin"])
def test_the_same_plane_as_svc(X, y, C, shift):
    ours = MaxMarginClassifier(C=C, tol=1e-11, random_state=0).fit(X + shift, y)
    theirs = SVC(kernel="linear", C=C, tol=1e-12).fit(X, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=2e-6)
    assert ours.intercept_ + shift * ours.coef_.sum() == pytest.approx(theirs.intercept_, abs=2e-6)
    assert 0 <= ours.dual_gap_ + 1e-12 * ours.objective_ <= 1.2e-11 * ours.objective_


def objective(model, X, codes, cost, penalised=False):
    scores = model.decision_function(X)
    if scores.ndim == 1:
        losses = np.maximum(0, 1 - np.where(codes == 1, 1, -1) * scores)
    else:
        each = np.arange(len(codes))
        rivals = scores + 1.0
        rivals[each, codes] -= 1.0
        losses = rivals.max(axis=1) - scores[each, codes]
    penalty = np.sum(model.coef_**2) + (np.sum(model.intercept_**2) if penalised else 0)
    return 0.5 * penalty + cost @ losses


@pytest.mark.parametrize("fit_intercept", [True, False, "augmented"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)], ids=["dense", "csr", "f32"])
@pytest.mark.parametrize("K", [2, 3])
def test_the_gap_is_that_of_the_multipliers(K, form, fit_intercept):
    X, y = form(SCALED[:150, :4]), np.arange(150) % K
    weight = np.random.default_rng(1).integers(0, 3, size=150).astype(float)
    model = MaxMarginClassifier(C=0.5, fit_intercept=fit_intercept, tol=1e-3, random_state=0).fit(X, y, sample_weight=weight)
    data = SCALED[:150, :4].astype(np.float32).astype(float) if X.dtype == np.float32 else SCALED[:150, :4]
    primal = objective(model, data, y, 0.5 * weight, fit_intercept == "augmented")
    alpha = np.zeros((150, len(model.dual_coef_)))
    alpha[model.support_] = model.dual_coef_.T
    if fit_intercept == "augmented":
        data = np.hstack([data, np.ones((150, 1))])
    v = alpha.T @ data
    cost = 0.5 * weight
    if K == 2:
        multipliers = alpha[:, 0] * np.where(y == 1, 1, -1)
        assert np.all(multipliers >= 0)
        assert np.all(multipliers <= cost * (1 + 1e-12))
        gain = multipliers.sum()
    else:
        assert np.abs(alpha.sum(axis=1)).max() < 1e-12
        assert np.all(alpha <= np.where(np.arange(K) == y[:, None], cost[:, None] * (1 + 1e-12), 0))
        gain = alpha[np.arange(150), y].sum()
    if fit_intercept is True:
        assert np.abs(alpha.sum(axis=0)).max() < 1e-9
    assert model.objective_ == pytest.approx(primal, rel=1e-9)
    assert model.dual_gap_ == pytest.approx(primal - (gain - 0.5 * np.sum(v**2)), abs=1e-9 * primal)
    assert model.dual_gap_ <= 1e-3 * primal


def test_a_weight_of_two_is_the_example_twice():
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60)
    for y in (rng.integers(2, size=60), rng.integers(3, size=60)):
        weighted = MaxMarginClassifier(tol=1e-12, random_state=0).fit(X, y, sample_weight=weight)
        repeated = MaxMarginClassifier(tol=1e-12, random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-10)
        assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-4)


def test_one_against_the_rest_is_k_problems():
    model = MaxMarginClassifier(multi_class="ovr", tol=1e-8, random_state=0).fit(IRIS.data, IRIS.target)
    alone = MaxMarginClassifier(tol=1e-8, random_state=0).fit(IRIS.data, IRIS.target == 1)
    assert model.coef_.shape == (3, 4)
    assert model.coef_[1] == pytest.approx(alone.coef_[0], abs=1e-4)
    assert model.margin_[1] == pytest.approx(alone.margin_, rel=1e-4)


def test_too_few_passes_say_so():
    with pytest.warns(ConvergenceWarning, match=r"duality gap is .* after 2 passes, above tol=0\.0001"):
        MaxMarginClassifier(max_iter=2, random_state=0).fit(SCALED, WDBC.target)


@settings(max_examples=property_examples(40))
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30), d=st.integers(1, 4), K=st.integers(2, 4))
def test_the_gap_closes_on_integer_data(seed, n, d, K):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, size=(n, d)), rng.integers(K, size=n)
    if len(set(y)) < 2:
        return
    model = MaxMarginClassifier(tol=1e-5, random_state=seed).fit(X, y)
    assert -1e-9 <= model.dual_gap_ <= 1e-5 * model.objective_ + 1e-9


@given(st.integers(0, 10**6), st.integers(2, 7))
def test_circulations_stay_below_and_balance(seed, K):
    rng = np.random.default_rng(seed)
    flow = rng.random((K, K)) * (rng.random((K, K)) < 0.6)
    np.fill_diagonal(flow, 0.0)
    balanced = circulation(flow)
    assert np.all((balanced >= 0) & (balanced <= flow))
    assert balanced.sum(axis=0) == pytest.approx(balanced.sum(axis=1), abs=1e-12)


def test_a_failed_refit_leaves_the_earlier_fit():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0], [4.0, 4.0]]), [0, 0, 1, 1]
    model = MaxMarginClassifier().fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(np.ones((4, 5)), ["a", "b", "a", "b"], sample_weight=[-1, 1, 1, 1])
    assert model.predict(X).tolist() == y


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_class_weights_that_a_margin_cannot_have(weight):
    with pytest.raises(ValueError, match=r"class_weight\[1\] is"):
        MaxMarginClassifier(class_weight={1: weight}).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="class_weight names 'one'"):
        MaxMarginClassifier(class_weight={"one": 2.0}).fit([[0.0], [1.0]], [0, 1])
