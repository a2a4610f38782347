"""Passes, ends and memory: convergence, cycles, the cap, early stopping, Ctrl-C, read-only and memory-mapped data."""

import importlib
import os
import pkgutil
import signal
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from separatrix import AveragedPerceptron, Perceptron, VotedPerceptron, kernels
from separatrix.data.lectures import EXAMPLES
from separatrix.engine import presenting, rows, stopping
from separatrix.engine.rows import Rows
from separatrix.kernels.learning.rows import AHEAD, NEAR
from support.public_estimators import LEARNERS

RNG = np.random.default_rng(4)
X = RNG.normal(size=(400, 6))
Y2 = (X @ [1, -1, 0.5, 0, 0, 0] + RNG.normal(size=400) > 0).astype(int)
Y3 = RNG.integers(3, size=400)
XOR = EXAMPLES["L4.xor"]


@pytest.mark.parametrize("period", [1, 2, 3, 5])
@pytest.mark.parametrize("lead", [0, 1, 4])
def test_brent_finds_any_period_whatever_comes_before(period, lead):
    finder = stopping.CycleFinder()
    for number in range(200):
        state = np.array([number if number < lead else lead + (number - lead) % period])
        if found := finder.period([state]):
            break
    assert found == period


@pytest.mark.parametrize("seed", range(12))
def test_cycles_are_named_by_their_first_pass_and_their_period(seed):
    rng = np.random.default_rng(seed)
    data, y = rng.integers(-3, 4, size=(7, 2)), [0, 1, 0, 1, 2, 1, 0] if seed % 2 else [0, 1, 0, 1, 1, 1, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
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
    with pytest.warns(ConvergenceWarning, match="start of pass 4 come back, with a period of 10"):
        assert Perceptron(order="cyclic", max_iter=None).fit(data, y).cycle_ == (4, 10)


def test_a_cycle_is_noted_but_does_not_shorten_a_given_number_of_passes():
    model = Perceptron(order="cyclic", fit_intercept=False, max_iter=7).fit(XOR.X, XOR.y)
    assert (model.n_iter_, model.cycle_, model.mistakes_per_pass_) == (7, (1, 1), [4] * 7)


@pytest.mark.parametrize("order", ["shuffle", "permutation", "random"])
def test_without_a_cycle_to_find_a_proof_ends_it_and_the_warning_says_so(order):
    with pytest.warns(ConvergenceWarning, match="proven inseparable.* ended after 32"):
        model = Perceptron(max_iter=None, random_state=0, order=order).fit(XOR.X, XOR.y)
    assert (model.n_iter_, model.converged_, model.cycle_) == (32, False, None)


def test_touching_is_proven_too():
    example = EXAMPLES["L1.8"]
    with pytest.warns(ConvergenceWarning, match="only by touching"):
        Perceptron(max_iter=None, random_state=0, fit_intercept=False, tie="+1").fit(example.X, example.y)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_the_proof_is_about_what_is_presented_and_how(multi_class):
    corners = np.array([[0, 0], [9, 0], [0, 9], [9, 9], [4, 4]])
    with pytest.warns(ConvergenceWarning, match="proven inseparable"):
        Perceptron(max_iter=None, random_state=0, multi_class=multi_class).fit(corners, [0, 1, 1, 0, 2])
    weight = [1, 1, 1, 0, 0]
    if multi_class == "joint":
        assert Perceptron(max_iter=None, random_state=0).fit(corners, [0, 1, 1, 0, 2], sample_weight=weight).converged_


def test_separable_data_are_waited_for_however_long_it_takes(monkeypatch):
    monkeypatch.setattr(stopping, "PASS_CAP", 60)
    model = Perceptron(max_iter=None, random_state=0, fit_intercept=False).fit([[100, 1], [100, 0]], [1, -1])
    assert model.converged_
    assert model.n_iter_ > 60


@pytest.mark.parametrize("y", [[0, 1, 1, 0, 0], [0, 1, 1, 2, 0], [0, 0, 0, 1, 2]])
def test_a_class_of_which_nothing_is_presented_does_not_disturb_the_search_for_a_proof(y, monkeypatch):
    monkeypatch.setattr(stopping, "PASS_CAP", 40)
    data, weight = np.array([[1.0], [-1.0], [1.0], [0.0], [0.0]]), [1, 1, 1, 0, 0]
    with pytest.warns(ConvergenceWarning, match=r"proven inseparable|nothing could be proven"):
        Perceptron(max_iter=None, random_state=0, fit_intercept=False).fit(data, y, sample_weight=weight)


def test_even_separable_data_are_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr(stopping, "SEPARABLE_PASS_CAP", 100)
    with pytest.warns(ConvergenceWarning, match="proven separable, but 100 passes were not enough"):
        Perceptron(max_iter=None, random_state=0).fit([[1.0], [1 + 2**-40]], [0, 1])


def test_where_nothing_is_proven_the_cap_ends_it(monkeypatch):
    monkeypatch.setattr(stopping, "PASS_CAP", 50)
    monkeypatch.setattr(Perceptron, "prove", lambda *_: "undecided")
    with pytest.warns(ConvergenceWarning, match="50 passes did not separate the data, and nothing could be proven"):
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


def held_out_rows(model, y):
    """The rows that an early stop on a fraction of the data holds out."""
    codes = np.unique(y, return_inverse=True)[1]
    return model._held_out(None, None, Rows(X[: len(y)]), np.unique(y), codes, np.empty(0)).which


@pytest.mark.parametrize("estimator", LEARNERS)
def test_held_out_examples_are_scored_and_not_learned_from(estimator):
    model = estimator(random_state=3, early_stopping=True, validation_fraction=0.25, max_iter=30).fit(X, Y3)
    held_out = held_out_rows(model, Y3)
    assert len(held_out) == 100
    assert not set(model.ledger_.example.tolist()) & set(held_out.tolist())
    assert model.n_seen_ == 300 * model.n_iter_
    assert model.score(X[held_out], Y3[held_out]) == max(model.validation_scores_)


def test_a_label_that_occurs_once_stays_in_training():
    y = np.where(np.arange(400) == 7, 2, Y2)
    model = Perceptron(early_stopping=True, validation_fraction=0.9, random_state=0).fit(X, y)
    assert 7 not in held_out_rows(model, y)
    assert 7 in model.ledger_.example


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
    for forms in ((data, mapped, frozen), (sp.csr_matrix(data), csr)):
        models = [estimator(random_state=0, max_iter=2).fit(form, Y2) for form in forms]
        assert all(np.array_equal(model.coef_, models[0].coef_) for model in models)
        assert all(
            np.array_equal(model.predict(form), models[0].predict(data)) for model, form in zip(models, forms, strict=True)
        )


def test_no_copy_of_the_data_is_made():
    data = np.zeros((20_000, 200))
    data[:, 0] = np.arange(20_000) % 2 * 2 - 1
    y = (data[:, 0] > 0).astype(int)

    def use(form):
        model = Perceptron(max_iter=2, random_state=0).fit(form, y)
        model.ledger_.weights(form)
        assert model.ledger_.verify(form, y)

    for form in (data, data.astype(np.float32), np.asfortranarray(data), data.astype(np.int64), sp.csr_matrix(data)):
        use(form)  # compiles what is not compiled yet
        tracemalloc.start()
        use(form)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8_000_000  # a block of copied rows, the labels and the ledger; the data are 16 and 32 MB


@pytest.mark.parametrize("estimator", [Perceptron, VotedPerceptron])
@pytest.mark.parametrize("order", ["cyclic", "shuffle", "permutation"])
def test_ctrl_c_is_heard_between_blocks_and_leaves_the_old_fit(estimator, order, monkeypatch):
    data = RNG.normal(size=(20_000, 9))
    y = RNG.integers(2, size=20_000)
    model = estimator(max_iter=1, random_state=0, order=order).fit(X, Y2)
    before = model.coef_.copy()
    monkeypatch.setattr(rows, "BLOCK_ROWS", 1000)
    calls, kernel = [], presenting.passes.present

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return kernel(*arguments)

    monkeypatch.setattr(presenting.passes, "present", interrupted)
    before_test = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(data, y)
    finally:
        signal.signal(signal.SIGINT, before_test)
    assert len(calls) == 2
    assert np.array_equal(model.coef_, before)
    assert model.predict(X).shape == (400,)


def test_kernels_run_without_the_interpreter_lock():
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(kernels.__path__, "separatrix.kernels.")]
    found = {name: thing for m in modules for name, thing in vars(m).items() if hasattr(thing, "targetoptions")}
    assert {"present", "replay", "survey", "score_rows", "vote"} <= set(found)
    assert all(thing.targetoptions["nogil"] for thing in found.values())


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


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_weights_that_are_asked_for_early_are_the_same(index):
    rng, K, d = np.random.default_rng(0), 21, 4_000
    held = rng.random((120, d)) < rng.choice([0.001, 0.01], (120, 1))
    X = sp.csr_matrix(held * rng.integers(1, 4, (120, d)), dtype=float)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    y = rng.integers(K, size=120)
    sparse, dense = (AveragedPerceptron(max_iter=3, random_state=0).fit(data, y) for data in (X, X.toarray()))
    assert K * d > NEAR and np.diff(X.indptr).min() < AHEAD < np.diff(X.indptr).max()
    assert np.array_equal(sparse.coef_, dense.coef_) and np.array_equal(sparse.predict(X), dense.predict(X.toarray()))
