"""Every worked example of the lectures comes out exactly, under its own lecture's setting (promise 1)."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from separatrix import AveragedPerceptron, Perceptron, VotedPerceptron, reference
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rows import Rows


def learn(name, estimator=Perceptron, **settings):
    example = EXAMPLES[name]
    settings = {"order": "cyclic", "fit_intercept": False, "tie": example.tie} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator(**settings).fit(example.X, example.y), example


def path(model, example):
    """The weights after each mistake."""
    return [model.ledger_.at(k, example.X).coef[0].tolist() for k in range(len(model.ledger_) + 1)]


def test_l1_2_a_score_of_zero_is_plus_one():
    model, _ = learn("L1.8")
    assert model.predict(np.zeros((1, 2))).tolist() == [1]


def test_l1_5_and_6_the_update_moves_the_score_by_the_squared_norm():
    model, example = learn("L4.1", record=True)
    for k, mistake in enumerate(model.ledger_):
        x, y = example.X[mistake.example], example.y[mistake.example]
        before, after = (model.ledger_.at(j).coef[0] @ x for j in (k, k + 1))
        assert mistake.score == before
        assert after == before + y * (x @ x)


def test_l1_8_touching_cycles_for_ever_and_names_the_cycle():
    model, example = learn("L1.8", max_iter=None)
    assert path(model, example) == [[0, 0], [1, -0.5], [1, 0.5], [1, -0.5]]
    assert model.cycle_ == (2, 1)
    assert (model.cycle_.start, model.cycle_.period) == (2, 1)
    assert not model.converged_
    assert np.all(np.where(example.X @ [1, 0] >= 0, 1, -1) == example.y)


def test_l2_2_the_score_is_the_sum_of_weight_times_value():
    names, w = ["BIAS", "free", "money"], np.array([[-3, 4, 2]])
    text = {"BIAS": 1, "free": 1, "money": 1}
    assert Rows(np.array([[text[name] for name in names]])).scores(w, np.zeros(1)).tolist() == [[-3 + 4 + 2]] == [[3]]


def test_l2_4_converges_after_two_mistakes():
    model, example = learn("L2.4")
    assert path(model, example) == [[0, 0], [3, 2], [1, -1]]
    assert [m.example for m in model.ledger_] == [0, 2]
    assert (model.mistakes_per_pass_, model.converged_, model.n_mistakes_) == ([2, 0], True, 2)
    assert model.decision_function([[5, 5]]).tolist() == [0]
    assert model.predict([[5, 5]]).tolist() == [-1]


def test_l2_5_win_the_vote():
    classes = ["SPORTS", "POLITICS", "TECH"]
    W = np.array([[-2, 4, 4, 0, 0], [1, 2, 0, 4, 0], [2, 0, 2, 0, 0]])
    scores = Rows(np.array([[1, 1, 0, 1, 1]])).scores(W, np.zeros(3))
    assert scores.tolist() == [[2, 7, 2]]
    assert classes[np.argmax(scores)] == "POLITICS"


def test_l2_5_the_multiclass_update_raises_the_true_class_and_lowers_the_predicted_one():
    X, y = np.array([[1.0, 2.0], [3.0, 1.0]]), ["a", "b"]
    model = Perceptron(order="cyclic", fit_intercept=False, max_iter=1, tie="first").partial_fit(
        X, y, classes=["a", "b", "c"]
    )
    assert [(m.up, m.down) for m in model.ledger_] == [("b", "a")]
    assert model.coef_.tolist() == [[-3, -1], [3, 1], [0, 0]]


def test_l2_6_the_zero_one_form_of_the_update_is_the_same():
    example = EXAMPLES["L2.4"]
    w = np.zeros(2)
    for x, y in zip(example.X, example.y, strict=True):
        w = w + ((y + 1) / 2 - float(w @ x > 0)) * x
    assert w.tolist() == learn("L2.4", max_iter=1)[0].coef_[0].tolist() == [1, -1]


def test_l3_5_and_6_the_bias_is_one_more_feature_and_the_bound_is_two():
    model, example = learn("L3.6", fit_intercept=True)
    assert (model.n_mistakes_, model.converged_) == (2, True)
    assert model.radius_**2 == pytest.approx(2)
    augmented, _ = learn("L3.6")
    augmented.fit(reference.augment(example.X), example.y)
    assert [*model.coef_[0], *model.intercept_] == augmented.coef_[0].tolist()


def test_l4_1_after_each_round():
    model, example = learn("L4.1")
    assert path(model, example) == [[0, 0], [4, 0], [3, -1], [1, -3]]
    run = reference.perceptron(example.X, example.y, reference.cyclic(4, 1))
    assert [w.tolist() for w in run.weights[1:]] == [[4, 0], [3, -1], [3, -1], [1, -3]]
    assert (model.mistakes_per_pass_, model.converged_) == ([3, 0], True)


def test_l4_2_a_score_of_zero_is_a_mistake_for_either_label():
    for label in (1, -1):
        assert Perceptron(fit_intercept=False).partial_fit([[1, 1]], [label], classes=[-1, 1]).n_mistakes_ == 1


def test_l4_3_the_updated_weights_can_still_be_wrong_on_the_same_example():
    X, y = [[10, 0], [1, 0]], [1, -1]
    model = Perceptron(order="cyclic", fit_intercept=False, max_iter=1).fit(X, y)
    assert model.coef_.tolist() == [[9, 0]]
    assert model.predict([[1, 0]]).tolist() == [1]


def test_l4_5_xor_comes_back_to_the_start():
    model, example = learn("L4.xor", max_iter=None)
    assert path(model, example) == [[0, 0], [1, 1], [0, 2], [1, 1], [0, 0]]
    assert model.cycle_ == (1, 1)
    assert not model.converged_


def test_l4_8_survival_counts_average_and_votes():
    model, example = learn("L4.1", AveragedPerceptron, max_iter=1)
    assert (model.coef_ * 4).tolist() == [[11, -5]]
    assert model.ledger_.survival().tolist() == [0, 1, 2, 1]
    run = reference.perceptron(example.X, example.y, reference.cyclic(4, 1))
    assert [(w.tolist(), c) for w, c in reference.survivors(run)] == [([4, 0], 1), ([3, -1], 2), ([1, -3], 1)]
    voted, _ = learn("L4.1", VotedPerceptron, max_iter=1)
    x = np.array([1.0, 2.0])
    assert voted.decision_function([x])[0] * 4 == np.sign(4) + 2 * np.sign(1) + np.sign(-5) == 2
    assert model.decision_function([x])[0] * 4 == 1


def test_l4_8_with_equal_counts_voting_is_the_majority_and_averaging_the_sum():
    """And so the averaged boundary is a hyperplane, while the voted one need not be: above, between, below."""
    X, y = [[3, 0], [-4, 2], [0, -4]], [1, 1, 1]  # voters (3, 0), (-1, 2), (-1, -2), one vote each
    voted = VotedPerceptron(fit_intercept=False).partial_fit(X, y, classes=[-1, 1])
    averaged = AveragedPerceptron(fit_intercept=False).partial_fit(X, y, classes=[-1, 1])
    voters = np.array([voted.ledger_.at(k).coef[0] for k in (1, 2, 3)])
    line = np.array([[1, 5], [1, 0], [1, -5]])
    assert voters.tolist() == [[3, 0], [-1, 2], [-1, -2]]
    assert voted.predict(line).tolist() == np.sign(np.sign(line @ voters.T).sum(axis=1)).tolist() == [1, -1, 1]
    assert averaged.predict(line).tolist() == np.sign((line @ voters.T).sum(axis=1)).tolist() == [1, 1, 1]


def test_l5_3_random_draws_converge_only_after_a_clean_sweep():
    model, example = learn("L4.1", order="random", max_iter=None, random_state=5)
    assert model.converged_
    assert model.score(example.X, example.y) == 1.0
    stuck, _ = learn("L4.xor", order="random", max_iter=50, random_state=5)
    assert not stuck.converged_


def test_erratum_l5_started_from_zero_a_negative_example_is_a_mistake():
    model = Perceptron(tie="+1", fit_intercept=False).partial_fit([[1, 0], [1, 0]], [1, -1], classes=[-1, 1])
    assert [m.example for m in model.ledger_] == [1]


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if example.separator])
def test_the_stated_separators_are_the_best_there_are(name):
    example = EXAMPLES[name]
    A = example.X * example.y[:, None]
    best = np.asarray(example.separator, float)
    gamma = (A @ best).min() / np.linalg.norm(best)
    angles = np.linspace(0, 2 * np.pi, 100_001)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])[:, : A.shape[1]]
    reached = (directions @ A.T).min(axis=1).max()
    assert 0 < gamma - 1e-3 < reached <= gamma + 1e-12
