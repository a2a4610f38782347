"""The theorem on generated data: the bound is never exceeded, and both lines of the proof hold at every mistake."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import Perceptron
from separatrix.data.lectures import EXAMPLES


@st.composite
def separable(draw):
    """Integer data separated by an integer w* (the bias its last entry) with a margin that is known by construction."""
    d, n = draw(st.integers(1, 4)), draw(st.integers(2, 25))
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    w = rng.integers(-5, 6, size=d + 1)
    w[0] = w[0] or 1
    X = rng.integers(-9, 10, size=(50 * n, d))
    scores = X @ w[:-1] + w[-1]
    keep = np.flatnonzero(scores != 0)[:n]
    y = np.sign(scores[keep])
    return X[keep], y, w


@given(
    data=separable(),
    order=st.sampled_from(["cyclic", "shuffle", "permutation", "random"]),
    tie=st.sampled_from(["mistake", "+1", "-1"]),
)
def test_mistakes_never_exceed_the_radius_margin_bound(data, order, tie):
    X, y, w = data
    if len(set(y)) < 2:
        return
    length = np.linalg.norm(w)
    gamma = np.min(y * (X @ w[:-1] + w[-1])) / length
    model = Perceptron(order=order, tie=tie, max_iter=None, random_state=0).fit(X, y)
    R = np.sqrt(np.max(np.sum(X**2, axis=1)) + 1)
    assert model.radius_ == pytest.approx(R)
    assert model.converged_
    assert model.n_mistakes_ <= R**2 / gamma**2 * (1 + 1e-12)
    for L in range(1, len(model.ledger_) + 1):
        coef, intercept = model.ledger_.at(L, X)
        v = np.append(coef[0], intercept)
        assert v @ v <= L * R**2 * (1 + 1e-12)
        assert v @ w / length >= L * gamma * (1 - 1e-12)


@given(seed=st.integers(0, 10**6), K=st.integers(3, 5))
def test_k_classes_jointly_make_at_most_twice_the_bound(seed, K):
    rng = np.random.default_rng(seed)
    W = rng.integers(-4, 5, size=(K, 3))
    X = rng.integers(-6, 7, size=(400, 3))
    scores = np.sort(X @ W.T, axis=1)
    leads = scores[:, -1] - scores[:, -2]
    keep = np.flatnonzero(leads > 0)[:30]
    if keep.size == 0 or len(set(y := np.argmax(X[keep] @ W.T, axis=1))) < 3:
        return
    gamma = leads[keep].min() / np.linalg.norm(W)
    R = np.sqrt(np.max(np.sum(X[keep] ** 2, axis=1)))
    model = Perceptron(fit_intercept=False, max_iter=None, random_state=0).fit(X[keep], y)
    assert model.converged_
    assert model.n_mistakes_ <= 2 * R**2 / gamma**2 * (1 + 1e-12)


def test_the_numbers_of_l4_example_1():
    example = EXAMPLES["L4.1"]
    model = Perceptron(order="cyclic", fit_intercept=False).fit(example.X, example.y)
    gamma = np.min(example.y * (example.X @ example.separator)) / np.linalg.norm(example.separator)
    assert (model.radius_, gamma**2) == (4.0, pytest.approx(16 / 26))
    assert model.n_mistakes_ == 3 <= model.radius_**2 / gamma**2 == pytest.approx(26)
