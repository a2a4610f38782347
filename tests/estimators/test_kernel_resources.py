"""What a kernel perceptron spends and keeps: the cache, the cost of a pass, a budget, threads, copies, and Ctrl-C."""

import os
import pickle
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from separatrix import KernelPerceptron, reference
from separatrix.solvers import dual
from support.integer_problems import recorded
from support.kernel_runs import DIGITS, PREDICT_WITH, visiting_order


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_cache_changes_nothing(form):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(2500, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + rng.integers(-3, 4, size=2500) > 0).astype(int) + (X[:, 2] > 2)
    models = [
        KernelPerceptron(kernel="poly", gamma=1, coef0=1, cache_mb=mb, max_iter=4, random_state=0, record=True).fit(
            form(X), y
        )
        for mb in (0, 1, 3, 1000)
    ]
    assert models[0].n_mistakes_ > 2 * len(models[0].support_)
    for other in models[1:]:
        assert list(other.ledger_) == list(models[0].ledger_)
        assert np.array_equal(other.decision_function(form(X)), models[0].decision_function(form(X)))


def test_training_costs_examples_times_mistakes_however_many_passes_there_are():
    X, y, asked = DIGITS[0] / 16, DIGITS[1], []

    def counted(A, B):
        asked.append(len(A) * len(B))
        return (1 + A @ B.T) ** 3

    model = KernelPerceptron(kernel=counted, cache_mb=0, max_iter=50, random_state=0).fit(X, y)
    assert model.converged_
    short_blocks = -(-len(X) // dual.SHORT_BLOCK)
    among_themselves = sum(min(m, short_blocks) for m in model.mistakes_per_pass_) * dual.SHORT_BLOCK**2
    assert sum(asked) <= len(X) * model.n_mistakes_ + among_themselves
    assert sum(asked) < model.n_iter_ * len(X) * len(model.support_) / 3


class TestBudget:
    X, y = DIGITS[0][:400] / 16, DIGITS[1][:400] % 3

    def fitted(self, budget, **parameters):
        model = KernelPerceptron(gamma=0.05, budget=budget, max_iter=3, random_state=7).set_params(**parameters)
        return model.fit(self.X, self.y)

    def test_it_is_kept_and_says_what_it_dropped(self):
        model, free = self.fitted(20), self.fitted(None)
        assert len(model.support_) == len(model.support_vectors_) == 20
        assert set(model.support_) == set(model.ledger_.example[:25]) & set(model.support_)
        dropped = model.dropped_
        assert np.array_equal(dropped.mistake, np.flatnonzero(~np.isin(model.ledger_.example, model.support_)))
        assert np.array_equal(model.ledger_.example[dropped.mistake], dropped.example)
        assert 0 < dropped.lost.min() <= dropped.lost.max() < 1
        assert f"{len(dropped)} mistakes" in repr(dropped) and "budget of 20;" in repr(dropped)
        assert len(free.dropped_) == 0 and "no budget" in repr(free.dropped_)
        assert model.score(self.X, self.y) > 0.8

    def test_a_budget_that_suffices_changes_nothing(self):
        free, large = self.fitted(None, record=True), self.fitted(10**6, record=True)
        assert [m[:-1] for m in large.ledger_] == [m[:-1] for m in free.ledger_]
        assert "sufficed" in repr(large.dropped_)
        for how in PREDICT_WITH:
            scores = [model.set_params(predict_with=how).decision_function(self.X) for model in (free, large)]
            assert np.allclose(*scores, rtol=0, atol=1e-9)

    def test_a_linear_kernel_needs_no_more_than_its_dimension(self):
        free, tight = (self.fitted(b, kernel="linear", max_iter=5, predict_with="last") for b in (None, 65))
        assert free.ledger_.example.tolist() == tight.ledger_.example.tolist()
        assert len(tight.support_) < len(free.support_)
        assert tight.dropped_.lost.max() < 1e-7
        assert np.allclose(tight.dual_coef_ @ tight.support_vectors_, free.dual_coef_ @ free.support_vectors_)

    @pytest.mark.parametrize("multi_class", ["joint", "ovr"])
    @pytest.mark.parametrize("order", ["cyclic", "random"])
    def test_a_mistake_corrects_by_its_projection(self, multi_class, order):
        model = self.fitted(9, multi_class=multi_class, order=order, record=True, max_iter=2)
        G = rbf_kernel(self.X, gamma=0.05) + 1
        weights, stored, mistakes, lost = [np.zeros((3, 400))], [], [], []
        for step, i in enumerate(visiting_order(model, self.X), start=1):
            s, label, change = weights[-1] @ G[i], self.y[i], np.zeros(3)
            if multi_class == "joint":
                r = reference.rival(label, s, "mistake")
                if r != label:
                    change[[label, r]] = 1, -1
                    mistakes.append((step, i, label, r))
            else:
                sides = np.where(np.arange(3) == label, 1, -1)
                change = np.where(sides * s <= 0, sides, 0)
                mistakes += [(step, i, *((k, -1) if k == label else (-1, k))) for k in np.flatnonzero(change)]
            alpha = np.zeros(400)
            if change.any():
                if i not in stored and len(stored) < 9:
                    stored.append(i)
                alpha[stored] = np.linalg.solve(G[np.ix_(stored, stored)], G[stored, i])
                lost += [1 - alpha @ G[i] / G[i, i]] * np.count_nonzero(change > 0 if multi_class == "joint" else change)
            weights.append(weights[-1] + np.outer(change, alpha))
        assert [m[:4] for m in recorded(model)] == mistakes
        assert model.support_.tolist() == stored
        gone = np.array([example not in stored for _, example, *_ in mistakes])
        assert np.allclose(model.dropped_.lost, np.array(lost)[gone])
        assert model.ledger_.verify(self.X, self.y)
        assert np.allclose(model.ledger_.weights().coef, weights[-1])
        assert np.allclose(model.decision_function(self.X), G @ np.mean(weights[1:], axis=0).T)
        assert np.allclose(model.set_params(predict_with="last").decision_function(self.X), G @ weights[-1].T)
        drawn = np.random.default_rng([7, 0, 2]).integers(1, model.n_seen_ + 1, size=400)
        at_random = [weights[t] @ k for t, k in zip(drawn, G, strict=True)]
        assert np.allclose(model.set_params(predict_with="random").decision_function(self.X), at_random)
        if multi_class == "joint":
            voted = [np.bincount([np.argmax(W @ k) for W in weights[1:] if W.any()], minlength=3) for k in G[:20]]
            votes = model.set_params(predict_with="voted").decision_function(self.X[:20]) * model.n_seen_
            assert np.allclose(votes, voted, atol=1e-6)

    def test_the_weights_on_the_way_take_a_record(self):
        with pytest.raises(ValueError, match=r"predict_with='voted'.*record=True"):
            self.fitted(20, predict_with="voted")
        model, recording = self.fitted(20), self.fitted(20, record=True)
        for ask in (lambda m: m.set_params(predict_with="random").predict(self.X), lambda m: m.after(300)):
            with pytest.raises(ValueError, match="record=True"):
                ask(model)
            assert ask(recording) is not None
        model.set_params(predict_with="averaged"), recording.set_params(predict_with="averaged")
        assert np.allclose(model.dual_coef_, recording.dual_coef_)
        early = recording.after(15)
        assert len(early.support_) < 20
        assert np.allclose(early.decision_function(self.X), self.fitted_on(15))

    def fitted_on(self, steps):
        run = self.fitted(20, record=True)
        order = visiting_order(run, self.X)[:steps]
        model = KernelPerceptron(gamma=0.05, order="cyclic", max_iter=1).fit(self.X[order], self.y[order])
        return model.decision_function(self.X)

    def test_early_stopping_goes_back_with_or_without_a_record(self):
        parameters = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 20}
        one, other = self.fitted(15, **parameters), self.fitted(15, record=True, **parameters)
        assert one.ledger_.cut is not None
        assert one.ledger_.cut == other.ledger_.cut
        assert np.allclose(one.dual_coef_, other.dual_coef_)


def test_pickles_predict_the_same():
    X, y = DIGITS[0][:300], DIGITS[1][:300]
    for model in (KernelPerceptron(random_state=0), KernelPerceptron(kernel="rbf", budget=30, record=True, random_state=0)):
        again = pickle.loads(pickle.dumps(model.fit(X, y)))
        for how in PREDICT_WITH:
            scores = [m.set_params(predict_with=how).decision_function(X) for m in (model, again)]
            assert np.array_equal(*scores)
        assert list(again.ledger_) == list(model.ledger_)
        assert repr(again.dropped_) == repr(model.dropped_)


def test_ctrl_c_is_heard_between_blocks_and_leaves_the_old_fit(monkeypatch):
    X, y = DIGITS
    model = KernelPerceptron(random_state=0, max_iter=1).fit(X[:300], y[:300])
    before, calls, kernel = model.decision_function(X), [], dual.dual.present

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return kernel(*arguments)

    monkeypatch.setattr(dual.dual, "present", interrupted)
    before_test = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before_test)
    assert len(calls) == 3
    assert np.array_equal(model.decision_function(X), before)


def test_the_number_of_threads_changes_nothing():
    from threadpoolctl import threadpool_limits

    X, y = np.vstack([DIGITS[0]] * 2) / 17, np.tile(DIGITS[1], 2)
    scores = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = KernelPerceptron(random_state=0, max_iter=2, predict_with="voted").fit(X, y)
            scores.append((list(model.ledger_), model.decision_function(X).tolist()))
    assert scores[0] == scores[1]
