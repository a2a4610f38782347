"""Passes, ends and memory: convergence, cycles, the cap, early stopping, Ctrl-C, read-only and memory-mapped data."""

import os
import signal
import threading
import time
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from discovery import LEARNERS
from separatrix import AveragedPerceptron, Perceptron, VotedPerceptron, training
from separatrix.data.lectures import EXAMPLES

RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 6))
Y2 = (X @ [1, -1, 0.5, 0, 0, 0] + RNG.normal(size=400) > 0).astype(int)
Y3 = RNG.integers(3, size=400)
XOR = EXAMPLES["L4.xor"]


@pytest.mark.parametrize("period", [1, 2, 3, 5])
@pytest.mark.parametrize("lead", [0, 1, 4])
def test_brent_finds_any_period_whatever_comes_before(period, lead):
    finder = training.CycleFinder()
    flat = training.Flat(1, 1, False)
    for number in range(200):
        flat.W[0] = number if number < lead else lead + (number - lead) % period
        if found := finder.period(flat):
            break
    assert found == period


@pytest.mark.parametrize("seed", range(12))
def test_cycles_are_named_by_their_first_pass_and_their_period(seed):
    rng = np.random.default_rng(seed)
    data, y = rng.integers(-3, 4, size=(7, 2)), [0, 1, 0, 1, 2, 1, 0] if seed % 2 else [0, 1, 0, 1, 1, 1, 0]
    model = Perceptron(order="cyclic", max_iter=None).fit(data, y)
    assert model.cycle_ is not None or model.converged_
    if model.cycle_ is not None:
        start, period = model.cycle_
        begins = [k for _, k in model.ledger_.pass_starts] + [len(model.ledger_)]
        seen = [tuple(np.append(*model.ledger_.at(k, data)).tolist()) for k in begins]
        assert seen[start - 1] == seen[start - 1 + period]
        assert len(set(seen[: start - 1 + period])) == start - 1 + period


def test_some_cycles_start_late_and_are_long():
    data, y = [[2, -3], [-2, -2], [-2, 2], [3, 1], [-3, -3], [-1, 0]], [1, 0, 0, 0, 1, 1]
    assert Perceptron(order="cyclic", max_iter=None).fit(data, y).cycle_ == (4, 10)


def test_a_cycle_is_noted_but_does_not_shorten_a_given_number_of_passes():
    model = Perceptron(order="cyclic", fit_intercept=False, max_iter=7).fit(XOR.X, XOR.y)
    assert (model.n_iter_, model.cycle_, model.mistakes_per_pass_) == (7, (1, 1), [4] * 7)


def test_without_a_cycle_to_find_the_cap_ends_it_and_says_what_it_means(monkeypatch):
    monkeypatch.setattr(training, "PASS_CAP", 50)
    with pytest.warns(ConvergenceWarning, match="50 passes did not separate the data"):
        model = Perceptron(max_iter=None, random_state=0).fit(XOR.X, XOR.y)
    assert (model.n_iter_, model.converged_, model.cycle_) == (50, False, None)


def test_convergence_stops_the_passes():
    model = Perceptron(random_state=0, max_iter=1000).fit(X, (X[:, 0] > 0).astype(int))
    assert model.converged_
    assert model.mistakes_per_pass_[-1] == 0
    assert all(model.mistakes_per_pass_[:-1])
    assert model.n_iter_ == len(model.mistakes_per_pass_) < 1000


@pytest.mark.parametrize("estimator", LEARNERS)
@pytest.mark.parametrize("y", [Y2, Y3], ids=["two classes", "three"])
@pytest.mark.parametrize("own", [False, True], ids=["a fraction", "the caller's"])
def test_early_stopping_restores_the_best_pass_of_the_weights_that_are_used(estimator, y, own):
    settings = {"random_state": 1, "max_iter": 40, "early_stopping": True, "n_iter_no_change": 3}
    held = {"X_val": X[300:], "y_val": y[300:]} if own else {}
    data, labels = (X[:300], y[:300]) if own else (X, y)
    model = estimator(**settings).fit(data, labels, **held)
    best = int(np.argmax(model.validation_scores_)) + 1
    assert model.n_iter_ == len(model.validation_scores_) == min(best + 3, 40)
    assert model.ledger_.cut.pass_number == best
    assert model.ledger_.cut.dropped == sum(model.mistakes_per_pass_[best:])
    assert len(model.ledger_) == sum(model.mistakes_per_pass_[:best])
    assert model.n_seen_ == (300 if own else 360) * model.n_iter_
    assert not model.converged_
    again = model.ledger_.weights(data)
    assert np.array_equal(again.coef, model.coef_)
    if own:
        assert model.score(X[300:], y[300:]) == max(model.validation_scores_)
        shorter = estimator(random_state=1, max_iter=best).fit(data, labels)
        if estimator.__name__ != "PocketPerceptron":  # without early stopping the pocket also tries the last weights
            assert np.array_equal(shorter.coef_, model.coef_)
            assert np.array_equal(shorter.decision_function(X), model.decision_function(X))


def test_held_out_examples_are_not_learned_from():
    model = Perceptron(random_state=3, early_stopping=True, validation_fraction=0.25, max_iter=30).fit(X, Y2)
    learned = set(model.ledger_.example.tolist())
    presented = model.n_seen_ // model.n_iter_
    assert presented == 300
    assert len(learned) <= 300


def test_the_callers_held_out_data_are_scored_without_stopping_too():
    model = AveragedPerceptron(random_state=0, max_iter=6).fit(X[:300], Y2[:300], X_val=X[300:], y_val=Y2[300:])
    assert len(model.validation_scores_) == 6
    assert model.ledger_.cut is None
    assert model.validation_scores_[-1] == model.score(X[300:], Y2[300:])


def test_going_on_after_an_early_stop_goes_on_from_the_restored_weights():
    model = AveragedPerceptron(random_state=1, early_stopping=True, n_iter_no_change=2, max_iter=30).fit(X, Y3)
    model.partial_fit(X, Y3)
    assert np.array_equal(model.ledger_.weights(np.vstack([X, X])).coef, model.coef_)


@pytest.mark.parametrize("estimator", LEARNERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_and_memory_mapped_data_are_read_in_place(estimator, dtype, tmp_path):
    data = X.astype(dtype)
    np.save(tmp_path / "X.npy", data)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    frozen = data.copy()
    frozen.flags.writeable = False
    csr = sp.csr_matrix(data)
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    models = [estimator(random_state=0, max_iter=2).fit(form, Y2) for form in (data, mapped, frozen)]
    estimator(random_state=0, max_iter=2).fit(csr, Y2)
    assert all(np.array_equal(model.coef_, models[0].coef_) for model in models)


def test_no_copy_of_the_data_is_made():
    data = np.zeros((20_000, 200))
    data[:, 0] = np.arange(20_000) % 2 * 2 - 1
    y = (data[:, 0] > 0).astype(int)
    forms = [data, data.astype(np.float32), np.asfortranarray(data), data.astype(np.int64), sp.csr_matrix(data)]
    Perceptron().fit(data[:10], y[:10])
    for form in forms:
        tracemalloc.start()
        Perceptron(max_iter=2, random_state=0).fit(form, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8_000_000  # a block of copied rows, the labels and the ledger; the data are 16 and 32 MB


@pytest.mark.parametrize("estimator", [Perceptron, VotedPerceptron])
def test_ctrl_c_is_heard_between_blocks_and_leaves_the_old_fit(estimator):
    data = np.random.default_rng(0).normal(size=(100_000, 20))
    y = np.random.default_rng(1).integers(2, size=100_000)
    model = estimator(max_iter=5, random_state=0).fit(data[:100], y[:100])
    before = model.coef_.copy()
    model.set_params(max_iter=1_000_000)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, y)
    assert time.perf_counter() - begin < 5
    assert np.array_equal(model.coef_, before)


def test_kernels_run_without_the_interpreter_lock():
    data = np.random.default_rng(0).normal(size=(300_000, 40))
    y = np.random.default_rng(1).integers(2, size=300_000)
    Perceptron(max_iter=1).fit(data, y)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    Perceptron(max_iter=20, random_state=0).fit(data, y)
    done.set()
    thread.join()
    assert len(ticks) > 20


def test_the_progress_bar_counts_passes_and_mistakes(capsys):
    Perceptron(max_iter=3, random_state=0, verbose=1).fit(X, Y2, X_val=X, y_val=Y2)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "mistakes" in shown
    assert "held-out accuracy" in shown


def test_class_weight_scales_corrections():
    y = np.where(Y2, "yes", "no")
    double = Perceptron(order="cyclic", max_iter=2, class_weight={"yes": 2.0}).fit(X, y)
    weights = Perceptron(order="cyclic", max_iter=2).fit(X, y, sample_weight=1.0 + Y2)
    assert np.array_equal(double.coef_, weights.coef_)
    stream = Perceptron(class_weight={"yes": 2.0}).partial_fit(X, y, classes=["no", "yes"])
    once = Perceptron(order="cyclic", max_iter=1, class_weight={"yes": 2.0}).fit(X, y)
    assert np.array_equal(stream.coef_, once.coef_)


def test_averaging_that_begins_after_convergence_is_the_last_weights():
    y = (X[:, 0] > 0).astype(int)
    late = AveragedPerceptron(random_state=0, average_from=900, max_iter=1000).fit(X, y)
    last = Perceptron(random_state=0, max_iter=1000).fit(X, y)
    assert np.array_equal(late.coef_, last.coef_)
