"""The Fisher discriminant: the formulas of L3, the direction of its peer, thresholds, shrinkage, singular covariances."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning, eigh
from scipy.stats import norm
from sklearn.covariance import oas
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

from separatrix import FisherDiscriminant, reference
from support.datasets import IRIS, PAIRS, SPECIES, WDBC

TWO_CLASSES = pytest.mark.parametrize(("X", "y"), [*PAIRS, WDBC], ids=["without 0", "without 1", "without 2", "WDBC"])


def direction(w):
    w = np.ravel(w)
    return w / np.linalg.norm(w)


def within(X, y):
    return sum(np.cov(X[y == label].T, bias=True) for label in np.unique(y))


def quotient(w, X, y):
    means = [X[y == label].mean(axis=0) for label in np.unique(y)]
    between = sum((w @ (means[k] - means[j])) ** 2 for k in range(len(means)) for j in range(k))
    return between / (w @ within(X, y) @ w)


@TWO_CLASSES
def test_l3_3_the_direction_is_that_of_the_formula_and_of_the_peer(X, y):
    model = FisherDiscriminant().fit(X, y)
    first, second = model.classes_
    assert np.allclose(model.coef_[0], reference.fisher(X[y == second], X[y == first]), rtol=1e-8)
    peer = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.5, 0.5]).fit(X, y)
    assert np.allclose(direction(model.coef_), direction(peer.coef_), rtol=0, atol=1e-8)
    assert np.array_equal(model.predict(X), peer.predict(X))
    assert np.array_equal(model.predict(X) == second, model.decision_function(X) > 0)


@TWO_CLASSES
def test_l3_2_the_mean_and_the_variance_of_the_projections(X, y):
    model = FisherDiscriminant().fit(X, y)
    w = model.coef_[0]
    r = model.transform(X)
    assert np.allclose(r[:, 0], X @ w / np.linalg.norm(w))
    for k, label in enumerate(model.classes_):
        assert np.allclose(model.projected_means_[k], r[y == label].mean(axis=0))
        assert np.allclose(model.projected_variances_[k], r[y == label].var(axis=0))
        assert np.allclose(model.projected_means_[k], w @ X[y == label].mean(axis=0) / np.linalg.norm(w))
        assert np.allclose(model.projected_variances_[k], w @ np.cov(X[y == label].T, bias=True) @ w / (w @ w))


def test_l3_1_and_2_iris_with_its_three_classes_in_two_projections():
    model = FisherDiscriminant().fit(IRIS, SPECIES)
    r = model.transform(IRIS)
    assert r.shape == (150, 2)
    assert np.allclose(r, IRIS @ (model.scalings_ / np.linalg.norm(model.scalings_, axis=0)))
    for k in range(3):
        assert np.allclose(model.projected_means_[k], r[SPECIES == k].mean(axis=0))
        assert np.allclose(model.projected_variances_[k], r[SPECIES == k].var(axis=0))
    assert model.score(IRIS, SPECIES) == 0.98


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda w: max(map(abs, w)) > 0.01), st.integers(0, 3))
def test_no_direction_has_a_larger_quotient(w, which):
    X, y = [*PAIRS, (IRIS, SPECIES)][which]
    model = FisherDiscriminant().fit(X, y)
    assert model.quotients_[0] == pytest.approx(quotient(model.scalings_[:, 0], X, y))
    assert quotient(np.array(w), X, y) <= model.quotients_[0] * (1 + 1e-9)


def test_k_classes_solve_the_generalised_eigenproblem():
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 0.5]
    model = FisherDiscriminant().fit(X, y)
    S, means = within(X, y), model.means_
    B = sum(np.outer(means[k] - means[j], means[k] - means[j]) for k in range(10) for j in range(k))
    assert np.allclose(model.quotients_, eigh(B, S, eigvals_only=True)[::-1][:9])
    assert np.allclose(model.scalings_.T @ S @ model.scalings_, np.eye(9), atol=1e-9)
    assert np.allclose(B @ model.scalings_, S @ model.scalings_ * model.quotients_)
    assert (model.projected_means_[-1] > model.projected_means_[0]).all()


@pytest.mark.parametrize("n_components", [1, 2, None])
def test_k_classes_go_to_the_nearest_projected_mean(n_components):
    model = FisherDiscriminant(n_components=n_components).fit(IRIS, SPECIES)
    places, means = IRIS @ model.scalings_, model.means_ @ model.scalings_
    assert places.shape[1] == (n_components or 2)
    nearest = np.argmin(((places[:, None] - means) ** 2).sum(axis=2), axis=1)
    assert np.array_equal(model.predict(IRIS), nearest)
    assert model.transform(IRIS).shape == places.shape
    if n_components is None:
        peer = LinearDiscriminantAnalysis(solver="lsqr", priors=np.ones(3) / 3).fit(IRIS, SPECIES)
        assert np.array_equal(model.predict(IRIS), peer.predict(IRIS))


@TWO_CLASSES
def test_thresholds(X, y):
    made = {name: FisherDiscriminant(threshold=name).fit(X, y) for name in ("midpoint", "equal_error", "priors")}
    first, second = (X[y == label] for label in np.unique(y))
    middle = (first.mean(axis=0) + second.mean(axis=0)) / 2
    assert made["midpoint"].decision_function(middle[None]) == pytest.approx(0, abs=1e-9)
    scores = [made["equal_error"].decision_function(side) for side in (first, second)]
    errors = [norm.sf(0, scores[0].mean(), scores[0].std()), norm.cdf(0, scores[1].mean(), scores[1].std())]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)
    odds = np.log(len(second) / len(first))
    assert made["priors"].intercept_ == pytest.approx(made["midpoint"].intercept_ + odds / 2)
    assert np.array_equal(made["priors"].coef_, made["midpoint"].coef_)
    given_priors = FisherDiscriminant(threshold="priors", priors=[3, 9]).fit(X, y)
    assert given_priors.priors_.tolist() == [0.25, 0.75]
    assert given_priors.intercept_ == pytest.approx(made["midpoint"].intercept_ + np.log(3) / 2)


def test_priors_are_the_best_threshold_for_gaussians_of_one_covariance():
    rng = np.random.default_rng(0)
    shape = np.array([[1.0, 0.4], [0.0, 0.8]])
    X = rng.normal(size=(40_000, 2)) @ shape + np.repeat([[0.0, 0.0], [1.0, -0.5]], [36_000, 4_000], axis=0)
    y = np.repeat([0, 1], [36_000, 4_000])
    model = FisherDiscriminant(threshold="priors").fit(X, y)
    log_odds = LinearDiscriminantAnalysis().fit(X, y).decision_function(X)
    assert np.allclose(2 * model.decision_function(X), log_odds, atol=0.1)
    assert model.score(X, y) > FisherDiscriminant().fit(X, y).score(X, y) + 0.1


def test_redundant_features_change_nothing_and_are_not_warned_of():
    X, y = WDBC
    plain = FisherDiscriminant().fit(X, y)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 0.1), 1e6 * X[:, 3]])
    model = FisherDiscriminant().fit(wide, y)
    assert np.allclose(model.decision_function(wide), plain.decision_function(X), rtol=1e-7, atol=1e-7)
    assert model.coef_[0, 31] == 0.0
    assert model.quotients_ == pytest.approx(plain.quotients_)
    assert np.allclose(FisherDiscriminant().fit(wide.astype(np.float32), y).quotients_, plain.quotients_, rtol=1e-4)


def test_a_feature_that_tells_the_classes_apart_without_varying_decides():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    X[:, 1] = 0.1 + 1e-3 * y
    with pytest.warns(LinAlgWarning, match=r"rank 2, for 3 features.*shrinkage"):
        model = FisherDiscriminant().fit(X, y)
    assert np.allclose(direction(model.coef_), [0, 1, 0], atol=1e-6)
    assert model.score(X, y) == 1.0
    assert np.allclose(model.projected_means_, [[0.1], [0.101]])


@pytest.mark.parametrize("threshold", ["midpoint", "equal_error", "priors"])
def test_fewer_examples_than_features(threshold):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 200)) + 0.5 * y[:, None]
    model = FisherDiscriminant(threshold=threshold)
    with pytest.warns(LinAlgWarning, match="rank 38, for 200 features"):
        model.fit(X, y)
    assert model.score(X, y) == 1.0
    r = model.transform(X)[:, 0]
    assert r[y == 0].std() < 1e-6 * np.ptp(r)
    fresh = rng.normal(size=(2000, 200)) + 0.5 * (np.arange(2000) % 2)[:, None]
    shrunk = FisherDiscriminant(threshold=threshold, shrinkage="auto").fit(X, y)
    assert 0 < shrunk.shrinkage_ < 1
    assert shrunk.score(fresh, np.arange(2000) % 2) > 0.95
    with pytest.warns(LinAlgWarning, match="rank 37"):
        three = FisherDiscriminant().fit(X, np.arange(40) % 3)
    assert three.score(X, np.arange(40) % 3) == 1.0


def test_one_example_a_class_is_the_nearest_mean():
    with pytest.warns(LinAlgWarning, match="rank 0"):
        model = FisherDiscriminant().fit([[0, 0], [3, 4]], [0, 1])
    assert np.allclose(direction(model.coef_), [0.6, 0.8])
    assert model.predict([[1, 1], [2, 3]]).tolist() == [0, 1]
    assert model.transform([[3, 4]]) == pytest.approx(5)


def test_equal_means_have_no_direction():
    xor, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
    with pytest.warns(LinAlgWarning, match="same mean"):
        model = FisherDiscriminant().fit(xor, y)
    assert model.coef_.tolist() == [[0, 0]]
    assert model.predict(xor).tolist() == [-1] * 4
    assert model.transform(xor).tolist() == [[0]] * 4
    with pytest.warns(LinAlgWarning, match="same mean"):
        FisherDiscriminant(threshold="equal_error").fit(np.zeros((4, 2)), y)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_shrinkage_lowers_the_covariances_between_features(alpha):
    X, y = PAIRS[0]
    S = within(X, y)
    shrunk = (1 - alpha) * S + alpha * np.diag(S.diagonal())
    w = np.linalg.solve(shrunk, X[y == 2].mean(axis=0) - X[y == 1].mean(axis=0))
    assert np.allclose(FisherDiscriminant(shrinkage=alpha).fit(X, y).coef_[0], w)


def test_automatic_shrinkage_is_the_published_one_and_the_same_in_pieces():
    X, y = PAIRS[0]
    residuals = np.vstack([X[y == label] - X[y == label].mean(axis=0) for label in (1, 2)])
    _, expected = oas(residuals / residuals.std(axis=0), assume_centered=True)
    batch = FisherDiscriminant(shrinkage="auto").fit(X, y)
    assert batch.shrinkage_ == pytest.approx(expected)
    stream = FisherDiscriminant(shrinkage="auto")
    for begin in range(0, 100, 9):
        stream.partial_fit(X[begin : begin + 9], y[begin : begin + 9])
    assert np.allclose(stream.coef_, batch.coef_, rtol=1e-10)


def test_shrinkage_pays_where_examples_are_few():
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        plain = cross_val_score(FisherDiscriminant(), X[:120], y[:120], cv=3).mean()
        shrunk = cross_val_score(FisherDiscriminant(shrinkage="auto"), X[:120], y[:120], cv=3).mean()
    assert shrunk > plain


@pytest.mark.parametrize("seed", range(3))
def test_the_units_of_the_features_do_not_matter(seed):
    X, y = WDBC
    units = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, X.shape[1])
    plain, scaled = (FisherDiscriminant(shrinkage=0.1 * seed).fit(form, y) for form in (X, X * units))
    assert np.allclose(scaled.coef_ * units, plain.coef_, rtol=1e-9)
    assert np.allclose(scaled.intercept_, plain.intercept_, rtol=1e-9)
