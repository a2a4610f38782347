"""The ledger replays to exactly the fitted weights, stays small, and tells a true record from a forged one."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import AveragedPerceptron, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.engine.mistake_columns import Column
from support.public_estimators import LEARNERS
from support.scale import property_examples

RNG = np.random.default_rng(8)
X = RNG.normal(size=(200, 9))
Y2 = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)
Y4 = RNG.integers(4, size=200)


@pytest.mark.parametrize("estimator", LEARNERS)
@pytest.mark.parametrize("y", [Y2, Y4], ids=["two classes", "four"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, np.asfortranarray], ids=["dense", "csr", "fortran"])
@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
@pytest.mark.parametrize("record", [False, True])
def test_replay_is_bit_for_bit(estimator, y, form, multi_class, record):
    data, weight = form(X), RNG.random(200)
    model = estimator(random_state=0, max_iter=3, multi_class=multi_class, record=record).fit(data, y, sample_weight=weight)
    weights = model.ledger_.weights() if record else model.ledger_.weights(data)
    assert np.array_equal(weights.coef, model.coef_)
    assert np.array_equal(weights.intercept, model.intercept_)
    assert model.ledger_.verify(data, y)


@pytest.mark.parametrize("estimator", LEARNERS)
def test_replay_after_warm_start_starts_from_the_earlier_weights(estimator):
    model = estimator(random_state=0, max_iter=2, warm_start=True).fit(X, Y4)
    before = model.run_.last.weights()
    model.set_params(random_state=1).fit(X, Y4)
    assert np.array_equal(model.ledger_.at(0, X).coef, before.coef)
    assert np.array_equal(model.ledger_.weights(X).coef, model.coef_)
    with pytest.raises(ValueError, match="same classes"):
        model.fit(X, Y2)


def test_each_entry_names_pass_step_example_pair_and_score():
    model = Perceptron(order="cyclic", fit_intercept=False, record=True)
    model.fit([[4, 0], [1, 1], [0, 1], [-2, -2], [-1, 1]], ["up", "down", "down", "up", "up"])
    first, second = list(model.ledger_)[:2]
    assert first == (1, 1, 0, "up", "down", 1.0, 0.0)
    assert (second.pass_number, second.step, second.example, second.up, second.score) == (1, 2, 1, "down", 4.0)
    later = [m for m in model.ledger_ if m.pass_number == 2]
    assert all(5 < m.step <= 10 and m.example == m.step - 6 for m in later)
    assert len(later) == model.mistakes_per_pass_[1] > 0
    assert "mistakes in" in repr(model.ledger_)


def test_a_mistake_costs_ten_bytes():
    model = Perceptron(random_state=0).fit(X, Y4)
    assert len(model.ledger_) > 100
    assert model.ledger_.nbytes == 10 * len(model.ledger_)
    assert len(pickle.dumps(model.ledger_)) < 10 * len(model.ledger_) + 3000


def test_columns_widen_only_when_they_must():
    column = Column("u4", "i8")
    column.append(np.array([1, 2**32 - 1]))
    assert column.values.dtype == np.uint32
    column.append(np.array([2**40]))
    assert column.values.tolist() == [1, 2**32 - 1, 2**40]


def test_more_than_127_classes():
    rng = np.random.default_rng(0)
    data, y = rng.normal(size=(900, 5)), np.arange(900) % 300
    model = Perceptron(random_state=0, max_iter=2).fit(data, y)
    assert model.ledger_.up.max() > 127
    assert np.array_equal(model.ledger_.weights(data).coef, model.coef_)


def test_weights_need_the_rows_from_somewhere():
    model = Perceptron(random_state=0).fit(X, Y2)
    with pytest.raises(ValueError, match="record=True"):
        model.ledger_.weights()
    with pytest.raises(ValueError, match="not what the ledger was written on"):
        model.ledger_.weights(X[:, :3])
    with pytest.raises(ValueError, match="between 0 and"):
        model.ledger_.at(10**6, X)


@settings(max_examples=property_examples(30))
@given(st.integers(0, 10_000))
def test_a_forged_ledger_does_not_verify(seed):
    rng = np.random.default_rng(seed)
    data = rng.integers(-5, 6, size=(40, 4)).astype(float)
    y = rng.integers(3, size=40)
    y[:3] = range(3)
    model = Perceptron(order="cyclic", max_iter=3, record=True).fit(data, y)
    ledger = model.ledger_
    assert ledger.verify(data, y)
    m = int(rng.integers(len(ledger)))
    other = y.copy()
    other[ledger.example[m]] = (other[ledger.example[m]] + 1) % 3
    assert not ledger.verify(data, other)
    forged = pickle.loads(pickle.dumps(ledger))
    score = ledger.score.copy()
    score[m] += 1
    forged._score.replace(score)
    assert not forged.verify(data, y)
    never_wrong = set(range(40)) - set(ledger.example.tolist())
    if never_wrong:
        forged = pickle.loads(pickle.dumps(ledger))
        example = ledger.example.copy()
        example[-1] = never_wrong.pop()
        forged._example.replace(example)
        assert not forged.verify(data, y)
    assert not ledger.verify(data[:5], y[:5])


def test_verify_knows_what_a_tie_means():
    data, y = np.array([[1.0, 0.0], [0.0, 1.0]]), [1, -1]
    strict = Perceptron(order="cyclic", fit_intercept=False, max_iter=1).fit(data, y)
    assert [m.example for m in strict.ledger_] == [0, 1]
    strict.ledger_.tie = Perceptron(order="cyclic", tie="+1").fit(data, y).ledger_.tie
    assert not strict.ledger_.verify(data, y)


def test_survival_counts_are_the_steps_between_mistakes():
    model = AveragedPerceptron(random_state=0, max_iter=3).fit(X, Y2)
    survived = model.ledger_.survival()
    assert survived.sum() == model.n_seen_
    assert len(survived) == len(model.ledger_) + 1
    assert np.array_equal(survived[-1:], model.ledger_.survival(len(model.ledger_))[-1:])


def test_voters_keep_each_mistaken_row_once():
    model = VotedPerceptron(random_state=0, max_iter=5).fit(X, Y2)
    assert model.ledger_.stored.n == len(set(model.ledger_.example.tolist())) < len(model.ledger_)


def test_votes_do_not_depend_on_the_batch():
    data = np.rint(4 * X)
    model = VotedPerceptron(random_state=0, max_iter=5).fit(data, Y4)
    whole = model.decision_function(data)
    assert np.array_equal(np.vstack([model.decision_function(data[i : i + 7]) for i in range(0, 200, 7)]), whole)


def test_the_pocket_never_has_more_training_mistakes_than_the_last_weights():
    for seed in range(5):
        options = {"random_state": seed, "max_iter": 5}
        last, best = Perceptron(**options).fit(X, Y4), PocketPerceptron(**options).fit(X, Y4)
        assert best.pocket_mistakes_ <= np.sum(last.predict(X) != Y4)
        assert best.pocket_mistakes_ == np.sum(best.predict(X) != Y4)


def test_a_converged_warm_start_makes_no_mistake_and_still_replays():
    y = (X[:, 0] > 0).astype(int)
    for estimator in LEARNERS:
        model = estimator(random_state=0, warm_start=True, record=True, max_iter=500).fit(X, y)
        model.fit(X, y)
        assert len(model.ledger_) == 0
        assert np.array_equal(model.ledger_.weights().coef, model.coef_)
        assert model.predict(X).shape == (200,)


def test_passes_are_numbered_on_after_an_early_stop():
    model = Perceptron(random_state=1, early_stopping=True, n_iter_no_change=2, max_iter=30).fit(X, Y4)
    chosen = model.ledger_.cut.pass_number
    model.partial_fit(X, Y4)
    numbers = [m.pass_number for m in model.ledger_]
    assert numbers == sorted(numbers)
    assert numbers[-1] == chosen + 1


def test_one_vs_rest_ledgers_verify_under_every_tie():
    for tie in ("mistake", "+1", "-1"):
        model = Perceptron(tie=tie, multi_class="ovr", fit_intercept=False)
        data, y = [[1, 0], [1, 1], [0, 1]], ["c", "b", "a"]
        model.partial_fit(data, y)
        assert model.ledger_.verify(data, y)


def test_data_that_are_no_data_do_not_verify():
    model = Perceptron(random_state=0, max_iter=2).fit(X, Y4)
    assert not model.ledger_.verify(X, np.where(Y4 == 0, 9, Y4))
    assert model.ledger_.verify(X, Y4.tolist())
    with pytest.raises(ValueError, match="NaN"):
        model.ledger_.verify(np.full_like(X, np.nan), Y4)
    with pytest.raises(ValueError):
        model.ledger_.weights(X[0])


def test_a_rival_that_the_rule_would_not_name_does_not_verify():
    data, y = np.eye(3), ["a", "b", "c"]
    model = Perceptron(order="cyclic", fit_intercept=False, max_iter=1).fit(data, y)
    down = model.ledger_.down.copy()
    assert down[0] == 1
    down[0] = 2
    model.ledger_._down.replace(down)
    assert not model.ledger_.verify(data, y)


def test_the_pocket_of_one_vs_rest_counts_decisions():
    for seed in range(4):
        model = PocketPerceptron(random_state=seed, max_iter=5, multi_class="ovr").fit(X, Y4)
        assert model.pocket_mistakes_ == np.sum(model.predict(X) != Y4)


def test_a_pickled_ledger_holds_its_rows_once():
    wide = np.random.default_rng(0).normal(size=(300, 200))
    model = VotedPerceptron(random_state=0, max_iter=3).fit(wide, np.arange(300) % 2)
    again = pickle.loads(pickle.dumps(model))
    stored = model.ledger_.stored.rows().source.nbytes
    assert len(pickle.dumps(model)) < 1.3 * stored
    assert not again.ledger_.stored.rows().parts[0].flags.writeable
