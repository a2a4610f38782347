"""Asking for labels: the same rows as a plain reference asks for, the theorem's bound, and one pass where all are asked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import Perceptron, train
from separatrix.analysis.bounds import asking_bound, perceptron_bound
from separatrix.data.errors import DataError
from separatrix.engine.asking import asking_probability, margins
from support.scale import property_examples

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def problem(n, d, classes, seed):
    """Whole numbers, labelled by hidden weights; rows whose lead would be small are left out, so there is a margin."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(d, classes))
    X = rng.integers(-3, 4, size=(8 * n, d))
    scores = X @ hidden
    lead = np.sort(scores, axis=1)[:, -1] - np.sort(scores, axis=1)[:, -2]
    far = np.argsort(-lead)[:n]
    far.sort()
    return X[far].astype(float), np.argmax(scores[far], axis=1), hidden


def plain_asking(X, y, b, budget, seed):
    """The perceptron that asks, as in the paper, classes in pairs; the asked rows, the errors, Σp, and the weights."""
    chances = np.random.default_rng(seed).random(len(X))
    classes = int(y.max()) + 1
    rows = np.column_stack([X, np.ones(len(X))])
    W = np.zeros((classes, rows.shape[1]))
    asked, errors, expected = [], 0, 0.0
    for i, x in enumerate(rows):
        scores = W @ x
        order = np.argsort(-scores, kind="stable")
        margin = scores[order[0]] - scores[order[1]]
        if classes == 2:
            margin /= 2.0  # one weight vector, (−w, w)
        wrong = order[0] != y[i] or margin == 0.0
        errors += wrong
        if len(asked) == budget:
            continue
        expected += b / (b + margin)
        if chances[i] < b / (b + margin):
            asked.append(i)
            rival = max((k for k in range(classes) if k != y[i]), key=lambda k: (scores[k], -k))
            if scores[y[i]] <= scores[rival]:
                W[y[i]] += x
                W[rival] -= x
    return asked, int(errors), expected, W


def asked_training(X, y, b, seed=0, **options):
    return train(X, label=y, learner="last", rule="perceptron", ask=b, seed=seed, **options)


@settings(max_examples=property_examples(25), deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.sampled_from([0.05, 1.0, 30.0]), st.sampled_from([None, 7]))
def test_the_rows_and_weights_are_those_of_a_plain_reference(seed, classes, b, budget):
    X, y, _ = problem(80, 5, classes, seed)
    if len(np.unique(y)) < classes:
        return
    asked, errors, expected, W = plain_asking(X, y, b, budget, seed)
    model = asked_training(X, y, b, seed, ask_budget=budget)
    assert model.summary["asked"] == len(asked) == model.estimator.n_seen_
    assert model.summary["asked_expected"] == pytest.approx(expected, abs=1e-3)
    assert round(model.summary["progressive_error"] * len(y)) == errors
    mine = np.column_stack([model.estimator.coef_, model.estimator.intercept_])
    assert np.array_equal(mine, W if classes > 2 else W[1:]), "whole numbers: the same bits"
    assert not model.estimator.converged_


def test_asking_for_everything_is_one_pass_over_everything():
    X, y, _ = problem(300, 6, 3, 1)
    model = asked_training(X, y, 1e18)
    whole = Perceptron(order="cyclic", max_iter=1).fit(X, y)
    assert model.summary["asked"] == 300 and np.array_equal(model.estimator.coef_, whole.coef_)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_expected_errors_are_within_the_bound_and_the_labels_are_those_expected(classes):
    X, y, hidden = problem(150, 4, classes, 3)
    rows = np.column_stack([X, np.ones(len(X))])
    radius = np.sqrt((rows**2).sum(axis=1).max()) * (np.sqrt(2.0) if classes > 2 else 1.0)
    if classes == 2:
        u = np.append(hidden[:, 1] - hidden[:, 0], 0.0)
        gamma = ((2 * y - 1) * (rows @ u)).min() / np.linalg.norm(u)
    else:
        scores = X @ hidden
        others = np.where(np.arange(classes) == y[:, None], -np.inf, scores).max(axis=1)
        gamma = (scores[np.arange(len(y)), y] - others).min() / np.linalg.norm(hidden)
    assert gamma > 0
    for b in (0.5 * radius**2, 0.05 * radius**2):
        runs = [asked_training(X, y, b, seed).summary for seed in range(60)]
        errors = np.array([run["progressive_error"] * len(y) for run in runs])
        asked = np.array([run["asked"] for run in runs])
        expected = np.array([run["asked_expected"] for run in runs])
        deviation = errors.std() / np.sqrt(len(runs))
        assert errors.mean() <= asking_bound(radius, gamma, b) + 4 * deviation
        spread = (asked - expected).std() / np.sqrt(len(runs))
        assert abs((asked - expected).mean()) <= 4 * spread + 1e-9, "Σ(Z − p) has mean 0"
        assert asked.mean() < len(y)
    assert asking_bound(radius, gamma, 0.5 * radius**2) == pytest.approx(perceptron_bound(radius, gamma))


def test_probabilities_and_margins():
    assert asking_probability(margins(np.array([[0.0], [-3.0]])), 1.0).tolist() == [1.0, 0.25]
    with pytest.raises(ValueError, match="b must be above 0"):
        asking_bound(1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"passes": 3}, "leave out passes="),
        ({"order": "random"}, "leave out order="),
        ({"early_stopping": True, "holdout": 0.2}, "ask= cannot be combined with early_stopping="),
        ({"C": "auto"}, "chosen by all labels"),
        ({"ask": -1.0}, "ask=-1 must be a positive number"),
        ({"learner": "voted"}, "ask= supports the learners"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, message):
    X, y, _ = problem(50, 3, 2, 0)
    with pytest.raises(DataError, match=message):
        train(X, label=y, **({"ask": 1.0} | options))


def test_a_model_that_asked_has_no_bound_of_its_risk():
    X, y, _ = problem(150, 4, 2, 3)
    model = asked_training(X, y, 1.0).estimator
    assert model.n_seen_ < len(y)
    assert model.bounds(X, model.classes_[y]).risk is None
