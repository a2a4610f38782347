"""Blocks and training on them: bounded memory, the same model as `fit`, and going on from any state."""

import copy
import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits

from separatrix import AveragedPerceptron, PassiveAggressive, Perceptron
from separatrix.engine.rules import RULES
from separatrix.files.blocks import Blocks, LabelIndex, held_out_rows
from separatrix.files.out_of_core import TrainingState, begin, resume

X, Y = load_digits(return_X_y=True)
X, Y = X[:600] / 16, Y[:600] % 3
FORMS = {"dense": np.asarray, "csr": sp.csr_matrix}


def blocks_of(X, y, block_bytes=1 << 30, batch=37, seed=None):
    """Return the examples in blocks of so many bytes in a file, or in memory where they are fewer."""
    blocks = Blocks(memory=1, block_bytes=block_bytes, seed=seed)
    for at in range(0, X.shape[0], batch):
        blocks.add(X[at : at + batch], y[at : at + batch])
    return blocks


def streamed(learner, X, y, held_out=None, **options):
    blocks = blocks_of(X, y, **options)
    classes = blocks.settle()
    if held_out is not None:
        held_out.settle(classes)
        held_out.d = blocks.d
    return resume(learner, blocks, held_out, begin(learner, blocks, classes, held_out))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("order", "size"), [("shuffle", 1 << 30), ("permutation", 1 << 30), ("random", 1 << 30), ("cyclic", 40_000)]
)
def test_the_model_is_that_of_fit(form, rule, order, size):
    settings = {"rule": rule, "order": order, "max_iter": 3, "random_state": 5}
    here = form(X)
    blocks = blocks_of(here, Y, size)
    learner = AveragedPerceptron(**settings)
    resume(learner, blocks, None, begin(learner, blocks, blocks.settle(), None))
    expected = AveragedPerceptron(**settings).fit(here, Y)
    assert np.array_equal(learner.coef_, expected.coef_) and np.array_equal(learner.intercept_, expected.intercept_)
    assert learner.mistakes_per_pass_ == expected.mistakes_per_pass_ and learner.radius_ == expected.radius_
    assert learner.n_errors_ == expected.n_errors_ and learner.converged_ == expected.converged_
    assert learner.ledger_.verify(here, Y)
    assert (len(blocks) > 1) == (size < 1 << 30) == (blocks.spilled > 0)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("order", ["shuffle", "permutation", "random"])
def test_sorted_examples_are_mixed_on_their_way_to_the_disk(form, order):
    settings = {"order": order, "max_iter": 4, "random_state": 1, "rule": "pa1"}
    by_class = np.argsort(Y, kind="stable")
    here, labels = form(X[by_class]), Y[by_class]
    mixed = streamed(AveragedPerceptron(**settings), here, labels, block_bytes=30_000, seed=1)
    assert mixed.n_seen_ == 4 * len(Y) and mixed.score(X, Y) > 0.85
    assert mixed.ledger_.verify(here, labels)  # examples keep the numbers that they came with
    again = streamed(AveragedPerceptron(**settings), here, labels, block_bytes=30_000, seed=1)
    assert np.array_equal(mixed.coef_, again.coef_)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_mixed_block_is_a_sample_of_the_whole(form):
    n = 4000
    y = np.repeat([0, 1], n // 2)
    here = form(np.column_stack([np.arange(n), y, np.ones(n)]).astype(float))
    blocks = blocks_of(here, y, block_bytes=20_000, batch=100, seed=3)
    assert blocks.settle().tolist() == [0, 1] and len(blocks) > 3 and blocks.in_runs()
    seen = []
    for k, problem in enumerate(blocks):
        rows = problem.rows.source.toarray() if sp.issparse(problem.rows.source) else problem.rows.source
        assert np.array_equal(rows[:, 0], blocks.numbers(k)) and np.array_equal(rows[:, 1], problem.codes)
        assert 0.4 < problem.codes.mean() < 0.6
        seen += rows[:, 0].tolist()
    assert sorted(seen) == list(range(n))
    chosen = np.array([3, 1000, 3999])
    taken = blocks.take(chosen).source
    assert np.array_equal(np.asarray(taken[:, [0]].todense() if sp.issparse(taken) else taken[:, [0]]).ravel(), chosen)
    assert blocks.class_counts().tolist() == [n // 2, n // 2]


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    cut=st.integers(1, 40),
    seed=st.integers(0, 5),
    mixed=st.booleans(),
)
def test_a_copy_of_the_state_goes_on_to_the_same_model(sizes, cut, seed, mixed):
    settings = {"rule": "arow", "order": "shuffle", "max_iter": 5, "random_state": seed, "early_stopping": True}
    settings |= {"n_iter_no_change": 2}

    def run(stop_after):
        learner, caught = AveragedPerceptron(**settings), []
        blocks = blocks_of(X[:300], Y[:300], block_bytes=20_000, batch=sizes[0], seed=seed if mixed else None)
        out = blocks_of(X[300:], Y[300:])
        out.settle(blocks.settle())
        state = begin(learner, blocks, blocks.labels.settled()[0], out)

        def note(state, n):
            caught.append(n)
            if len(caught) == stop_after:
                raise InterruptedError

        try:
            return resume(learner, blocks, out, state, after_block=note), None
        except InterruptedError:
            told = copy.deepcopy((state.facts(), state.arrays(), state.run))
            again = TrainingState.resumed(told[2], told[0], told[1])
            return resume(AveragedPerceptron(**settings), blocks, out, again), again

    whole, _ = run(None)
    resumed, _ = run(cut)
    assert np.array_equal(whole.coef_, resumed.coef_)
    assert whole.mistakes_per_pass_ == resumed.mistakes_per_pass_
    assert whole.validation_scores_ == resumed.validation_scores_
    assert np.array_equal(whole.ledger_.step, resumed.ledger_.step)


def test_early_stopping_goes_back_to_the_best_pass():
    out = blocks_of(X[400:], Y[400:])
    settings = {"early_stopping": True, "n_iter_no_change": 2, "max_iter": 20, "random_state": 0, "order": "cyclic"}
    learner = streamed(Perceptron(**settings), X[:400], Y[:400], out, block_bytes=20_000)
    expected = Perceptron(**settings).fit(X[:400], Y[:400], X_val=X[400:], y_val=Y[400:])
    assert np.array_equal(learner.coef_, expected.coef_)
    assert learner.validation_scores_ == expected.validation_scores_


def test_balanced_classes_and_chosen_c():
    settings = {"class_weight": "balanced", "rule": "pa1", "order": "cyclic", "max_iter": 2}
    learner = streamed(AveragedPerceptron(**settings), X, Y, block_bytes=20_000)
    assert np.array_equal(learner.coef_, AveragedPerceptron(**settings).fit(X, Y).coef_)
    settings = {"C": "auto", "rule": "pa1", "random_state": 0, "max_iter": 2}
    learner = streamed(AveragedPerceptron(**settings), X, Y)
    expected = AveragedPerceptron(**settings).fit(X, Y)
    assert learner.C_ == expected.C_ and np.array_equal(learner.coef_, expected.coef_)


def test_calibrated_on_held_out_examples():
    out = blocks_of(X[400:], Y[400:])
    learner = streamed(AveragedPerceptron(calibrate="sigmoid", random_state=0), X[:400], Y[:400], out)
    assert np.array_equal(np.argmax(learner.predict_proba(X), axis=1), learner.predict(X))
    learner = AveragedPerceptron(calibrate="sigmoid", random_state=0)
    assert streamed(clone(learner), X, Y).slope_ == learner.fit(X, Y).slope_  # examples left out in turn
    with pytest.raises(ValueError, match="do not fit in memory: hold some out"):
        streamed(clone(learner), X, Y, block_bytes=20_000)


def test_a_ledger_that_grows_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr("separatrix.files.out_of_core.LEDGER_BYTES", 32 * 100)
    learner = streamed(PassiveAggressive(random_state=0, max_iter=3), X, Y)
    whole = PassiveAggressive(random_state=0, max_iter=3, tol=None).fit(X, Y)
    assert np.array_equal(learner.coef_, whole.coef_) and learner.mistakes_per_pass_ == whole.mistakes_per_pass_
    assert len(learner.ledger_) == 0 and learner.ledger_.total == whole.n_mistakes_ == learner.n_mistakes_
    with pytest.raises(ValueError, match="mistakes of the ledger were not kept"):
        learner.ledger_.weights(X)
    assert "none of" in repr(learner.ledger_)


@pytest.mark.parametrize("limit", [32 * 100, 32 * 1300])
def test_a_stream_counts_the_mistakes_that_a_ledger_given_up_does_not_keep(monkeypatch, limit):
    whole = Perceptron(random_state=0, max_iter=3, order="cyclic").fit(X, Y)
    before = whole.n_mistakes_
    assert before > 100
    whole.partial_fit(X, Y)
    monkeypatch.setattr("separatrix.files.out_of_core.LEDGER_BYTES", min(limit, 32 * (before + 1)))
    learner = streamed(Perceptron(random_state=0, max_iter=3, order="cyclic"), X, Y).partial_fit(X, Y)
    assert learner.ledger_.absent == learner.ledger_.total
    assert learner.mistakes_per_pass_ == whole.mistakes_per_pass_ and learner.n_mistakes_ == whole.n_mistakes_


@pytest.mark.parametrize("sparse_first", [True, False])
def test_dense_and_sparse_batches_make_the_same_blocks(sparse_first):
    whole = (X * 16).astype(np.float64)
    mixed, plain = (Blocks(memory=1, block_bytes=20_000) for _ in range(2))
    for k, at in enumerate(range(0, len(X), 37)):
        part = whole[at : at + 37]
        mixed.add(sp.csr_matrix(part) if (k % 2 == 0) == sparse_first else part, Y[at : at + 37])
        plain.add(sp.csr_matrix(part) if sparse_first else part, Y[at : at + 37])
    models = []
    for blocks in (mixed, plain):
        classes = blocks.settle()
        assert len(blocks) > 2 and blocks.spilled
        learner = Perceptron(random_state=0, max_iter=2)
        models.append(resume(learner, blocks, None, begin(learner, blocks, classes, None)))
    assert np.array_equal(models[0].coef_, models[1].coef_) and models[0].mistakes_per_pass_ == models[1].mistakes_per_pass_


def test_labels_of_every_kind():
    for met, expected in (
        ([1.0, -1.0, 1.0], [-1, 1]),
        ([1.5, 2.0], [1.5, 2.0]),
        (["b", "a"], ["a", "b"]),
        ([True, False], [False, True]),
        ([3, 2, 3], [2, 3]),
    ):
        labels = LabelIndex()
        codes = labels.codes(np.asarray(met))
        classes, places = labels.settled()
        assert classes.tolist() == expected
        assert classes[places[codes]].tolist() == [expected[expected.index(g)] for g in met]
        assert labels.among(classes[1:]).min() == -1


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match="only 1 class"):
        streamed(Perceptron(), X, np.zeros(len(X)))


def test_held_out_rows_are_a_matter_of_their_numbers():
    whole = held_out_rows(0, 100_000, 0.1, 7)
    parts = [held_out_rows(at, 999, 0.1, 7) for at in range(0, 99_900, 999)]
    assert np.array_equal(np.concatenate(parts), whole[:99_900])
    assert abs(whole.mean() - 0.1) < 0.005
    assert not np.array_equal(whole, held_out_rows(0, 100_000, 0.1, 8))


INTERRUPTED = {
    "a cycle that starts late": ([[2, -3], [-2, -2], [-2, 2], [3, 1], [-3, -3], [-1, 0]], [1, 0, 0, 0, 1, 1]),
    "weights that come back within a pass": ([[1, 0], [1, 0], [1, 0], [1, 0]], [0, 1, 0, 1]),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", INTERRUPTED)
@pytest.mark.parametrize("max_iter", [None, 40])
def test_a_cycle_is_the_same_wherever_training_was_interrupted(name, max_iter):
    X, y = (np.array(column, float) for column in INTERRUPTED[name])
    settings = {"order": "cyclic", "max_iter": max_iter}
    expected = Perceptron(**settings).fit(X, y)
    blocks = blocks_of(X, y, block_bytes=1, batch=2)
    classes, checkpoints = blocks.settle(), []

    def checkpoint(state, n):
        checkpoints.append((copy.deepcopy(state.run), json.loads(json.dumps(state.facts()))))

    learner = Perceptron(**settings)
    resume(learner, blocks, None, begin(learner, blocks, classes, None), after_block=checkpoint)
    assert expected.cycle_ is not None and len(blocks) > 1
    assert len(checkpoints) == len(blocks) * expected.n_iter_
    resumed = [TrainingState.resumed(run, facts, {}) for run, facts in checkpoints]
    for model in [learner, *(resume(Perceptron(**settings), blocks, None, state) for state in resumed)]:
        assert (model.cycle_, model.mistakes_per_pass_) == (expected.cycle_, expected.mistakes_per_pass_)
        assert np.array_equal(model.coef_, expected.coef_)


def test_checkpoints_without_digests_have_no_cycle_in_the_passes_before_them():
    X, y = (np.array(column, float) for column in INTERRUPTED["weights that come back within a pass"])
    blocks = blocks_of(X, y, block_bytes=1, batch=2)
    learner = Perceptron(order="cyclic", max_iter=9)
    state = begin(learner, blocks, blocks.settle(), None)
    old = []

    def checkpoint(state, n):
        facts = {k: v for k, v in state.facts().items() if k not in ("digests", "reason", "losses", "cycle", "verdict")}
        old.append((copy.deepcopy(state.run), facts, state.history.passes))

    resume(learner, blocks, None, state, after_block=checkpoint)
    for run, facts, passes in old[:-1]:
        again = resume(Perceptron(order="cyclic", max_iter=9), blocks, None, TrainingState.resumed(run, facts, {}))
        assert again.mistakes_per_pass_ == learner.mistakes_per_pass_
        assert again.cycle_ is None or (again.cycle_.start > passes and again.cycle_.period == 1)


def test_a_class_of_weight_0_can_make_no_mistake():
    X, y = np.array([[1.0], [-1.0], [1.0]]), [0, 1, 2]
    settings = {"order": "random", "max_iter": 50, "random_state": 0, "class_weight": {2: 0.0}}
    expected = Perceptron(**settings).fit(X, y)
    assert expected.converged_
    learner = streamed(Perceptron(**settings), X, y)
    assert learner.converged_ and learner.mistakes_per_pass_ == expected.mistakes_per_pass_
