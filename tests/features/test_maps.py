"""Feature maps: what they make, what they call it, and the disc of L5 solved exactly."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from separatrix import Perceptron, certify, features
from separatrix.features import Bias, DiscMap, PolynomialMap, RandomFourier, disc_weights

MAPS = [getattr(features, name) for name in features.__all__ if inspect.isclass(getattr(features, name))]
GRID = np.array([[a, b] for a in range(-6, 9) for b in range(-6, 9)])
X = np.array([[4.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-2.0, -2.0]])
POINT = st.tuples(st.integers(-20, 20), st.integers(-20, 20))


@parametrize_with_checks([made() for made in MAPS])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_maps_are_these():
    assert [made.__name__ for made in MAPS] == ["Bias", "DiscMap", "PolynomialMap", "RandomFourier"]


@pytest.mark.parametrize("made", MAPS)
def test_every_map_shows_an_example_and_takes_keywords(made):
    assert ">>>" in inspect.getdoc(made)
    keywords = [p.kind is p.KEYWORD_ONLY for p in inspect.signature(made).parameters.values()]
    assert all(keywords) or made is PolynomialMap


def test_l4_10_and_l3_5_the_constant_comes_first_or_last():
    assert Bias().fit_transform(X)[0].tolist() == [4, 0, 1]
    assert Bias(position="first").fit_transform(X)[0].tolist() == [1, 4, 0]
    z, y = Bias(position="first").fit_transform(X), [1, -1, -1, 1]
    inside = Perceptron(fit_intercept=False, order="cyclic").fit(z, y)
    beside = Perceptron(fit_intercept=True, order="cyclic").fit(X, y)
    assert inside.coef_[0].tolist() == [*beside.intercept_, *beside.coef_[0]]


@pytest.mark.parametrize("made", MAPS)
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sparse_rows_give_what_dense_ones_give(made, form, dtype):
    fitted = made()
    if "random_state" in fitted.get_params():
        fitted.set_params(random_state=0)
    dense = fitted.fit_transform(X.astype(dtype))
    fitted.fit(form(X.astype(dtype)))
    mapped = fitted.transform(form(X.astype(dtype)))
    assert np.allclose(mapped.toarray() if sp.issparse(mapped) else mapped, dense)
    assert sp.issparse(mapped) == (made is not RandomFourier)
    assert mapped.dtype == dense.dtype == (np.float32 if dtype == np.float32 else np.float64)
    if made is not RandomFourier:
        assert isinstance(mapped, form)


NAMES = {
    Bias: ["height", "width", "BIAS"],
    DiscMap: ["height", "width", "xᵀx", "BIAS"],
    PolynomialMap: ["1", "height", "width", "height^2", "height width", "width^2"],
    RandomFourier: ["randomfourier0", "randomfourier1"],
}


@pytest.mark.parametrize("made", MAPS)
def test_tables_keep_their_names(made):
    table = pd.DataFrame(X, columns=["height", "width"])
    fitted = made(n_components=2) if made is RandomFourier else made()
    mapped = fitted.set_output(transform="pandas").fit_transform(table)
    assert mapped.columns.tolist() == NAMES[made]
    assert fitted.get_feature_names_out().tolist() == NAMES[made]
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(table.rename(columns={"width": "depth"}))


@pytest.mark.parametrize("made", MAPS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_nan_and_infinity_are_named_by_row_and_column(made, form):
    bad = X.copy()
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 2, column 1"):
        made().fit(form(bad))
    bad[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity \(inf\) at row 2, column 1"):
        made().fit(form(X)).transform(form(bad))
    with pytest.raises(ValueError, match="X has 3 features"):
        made().fit(form(X)).transform(form(np.ones((1, 3))))
    with pytest.raises(ValueError, match="0 sample"):
        made().fit(form(np.empty((0, 2))))


def test_what_cannot_be_mapped():
    with pytest.raises(ValueError, match="'position' parameter"):
        Bias(position="middle").fit(X)
    with pytest.raises(ValueError, match="'degree' parameter"):
        PolynomialMap(degree=-1).fit(X)
    with pytest.raises(ValueError, match="'n_components' parameter"):
        RandomFourier(n_components=0).fit(X)
    with pytest.raises(ValueError, match="'gamma' parameter"):
        RandomFourier(gamma=-1.0).fit(X)
    large = np.array([[1, 0], [1e20, 0]], dtype=np.float32)
    for form in (np.asarray, sp.csr_matrix):
        with pytest.raises(ValueError, match="row 1 of X is too large: its squared norm is above the largest float32"):
            DiscMap().fit_transform(form(large))
    with pytest.raises(ValueError, match="finite radius of 0 or more"):
        disc_weights([0, 0], -1)
    with pytest.raises(ValueError, match="finite centre"):
        disc_weights([np.nan, 0], 1)
    with pytest.raises(ValueError, match="column 'colour' holds 'red'"):
        Bias().fit(pd.DataFrame({"colour": ["red", "blue"]}))


@given(POINT, st.integers(0, 25), st.lists(POINT, min_size=1, max_size=30))
def test_l5_2_the_exact_weights_of_a_disc(centre, radius, points):
    w, intercept = disc_weights(centre, radius)
    mu = np.array(centre)
    assert w[0].tolist() == [*(2 * mu), -1, -(mu @ mu)]
    assert intercept.tolist() == [radius**2]
    scores = DiscMap().fit_transform(points) @ w[0] + intercept
    distances = ((np.array(points) - mu) ** 2).sum(axis=1)
    assert np.array_equal(scores, radius**2 - distances)
    assert np.array_equal(scores >= 0, distances <= radius**2)


def test_l5_2_a_perceptron_learns_the_disc_and_no_line_does():
    inside = ((GRID - [1, 2]) ** 2).sum(axis=1) <= 25
    assert (((GRID - [1, 2]) ** 2).sum(axis=1) == 25).sum() == 12
    y = np.where(inside, 1, -1)
    assert certify(GRID, y).verdict == "inseparable"
    with pytest.warns(ConvergenceWarning, match="no pass of this run would ever be without a mistake"):
        raw = Perceptron(max_iter=None, order="cyclic").fit(GRID, y)
    assert not raw.converged_
    phi = DiscMap().fit_transform(GRID)
    certificate = certify(phi, y, fit_intercept=False)
    assert certificate.verdict == "separable"
    assert certificate.verify(phi, y)
    model = make_pipeline(DiscMap(), Perceptron(fit_intercept=False, max_iter=None, random_state=0)).fit(GRID, y)
    assert model[-1].converged_
    assert np.array_equal(model.predict(GRID), y)


def test_products_make_xor_separable():
    xor, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
    assert certify(xor, y).verdict == "inseparable"
    assert certify(PolynomialMap().fit_transform(xor), y).verdict == "separable"
    product = PolynomialMap(degree=(2, 2), interaction_only=True, include_bias=False)
    assert product.fit_transform(xor).tolist() == [[1], [-1], [-1], [1]]


@pytest.mark.parametrize("gamma", [0.05, 1.0, "scale"])
def test_inner_products_of_random_features_approach_the_gaussian_kernel(gamma):
    iris = load_iris().data
    used = 1 / (4 * iris.var()) if gamma == "scale" else gamma
    kernel = rbf_kernel(iris, gamma=used)
    errors = []
    for n_components in (100, 10_000):
        Z = RandomFourier(n_components=n_components, gamma=gamma, random_state=0).fit_transform(iris)
        errors.append(np.sqrt(np.mean((Z @ Z.T - kernel) ** 2)))
    assert errors[0] < 2 / np.sqrt(100)
    assert errors[1] < 2 / np.sqrt(10_000)
