"""`max_iter=None`, `tol` and `early_stopping` mean the same in memory, on blocks, on shards and in the dual."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from separatrix import AveragedPerceptron, KernelPerceptron, PassiveAggressive, Perceptron
from separatrix.cluster import fit
from separatrix.files.blocks import Blocks
from separatrix.files.out_of_core import begin, resume

XOR = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1, 0, 0, 1])
LATE = np.array([[2.0, -3.0], [-2, -2], [-2, 2], [3, 1], [-3, -3], [-1, 0]]), np.array([1, 0, 0, 0, 1, 1])
RNG = np.random.default_rng(7)
POINTS = RNG.integers(-8, 9, size=(60, 3)).astype(float)
SEPARABLE = POINTS, (POINTS @ [3, -2, 1] + 0.5 > 0).astype(int)
NOISE = RNG.integers(3, size=60)
THREE = POINTS, np.where(NOISE == 2, 2, SEPARABLE[1])
NOISY = POINTS, np.where(NOISE == 0, 1 - SEPARABLE[1], SEPARABLE[1])


def in_memory(learner, X, y, held_out=None):
    X_val, y_val = held_out or (None, None)
    return learner.fit(X, y, X_val=X_val, y_val=y_val)


def filled(X, y, blocks):
    batch = -(-len(y) // blocks)
    stored = Blocks(1 if blocks > 1 else 1 << 30, block_bytes=8 * X.shape[1] * batch)
    for at in range(0, len(y), batch):
        stored.add(X[at : at + batch], y[at : at + batch])
    return stored


def on_blocks(learner, X, y, held_out=None, *, blocks):
    examples = filled(X, y, blocks)
    classes, out = examples.settle(), None
    if held_out is not None:
        out = filled(*held_out, 1)
        out.settle(classes)
    assert len(examples) == blocks
    return resume(learner, examples, out, begin(learner, examples, classes, out))


def on_shards(learner, X, y, held_out=None, *, shards):
    cut = [(X[s::shards], y[s::shards]) for s in range(shards)]
    return fit(learner, cut, held_out=None if held_out is None else [held_out]).estimator


def in_the_dual(learner, X, y, held_out=None):
    names = ("order", "max_iter", "early_stopping", "n_iter_no_change", "random_state", "fit_intercept")
    settings = {name: getattr(learner, name) for name in names}
    return in_memory(KernelPerceptron(kernel="linear", predict_with="last", **settings), X, y, held_out)


def one_block(*arguments):
    return on_blocks(*arguments, blocks=1)


def several_blocks(*arguments):
    return on_blocks(*arguments, blocks=2)


def one_shard(*arguments):
    return on_shards(*arguments, shards=1)


def several_shards(*arguments):
    return on_shards(*arguments, shards=2)


ELSEWHERE = [one_block, several_blocks, one_shard, in_the_dual]
WITHOUT_DUAL = [one_block, several_blocks, one_shard]


def facts(model):
    return model.mistakes_per_pass_, model.n_iter_, model.converged_, model.cycle_, model.n_seen_


def messages(train, *arguments):
    """Return the model and the warnings about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = train(*arguments)
    return model, [str(warning.message) for warning in caught if issubclass(warning.category, ConvergenceWarning)]


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
@pytest.mark.parametrize(("data", "cycle"), [(XOR, (1, 1)), (LATE, (4, 10))], ids=["XOR", "late"])
def test_until_convergence_a_cycle_ends_training_with_a_warning(elsewhere, data, cycle):
    (expected, said), (model, warned) = (
        messages(train, Perceptron(order="cyclic", max_iter=None), *data) for train in (in_memory, elsewhere)
    )
    assert facts(model) == facts(expected) and model.cycle_ == cycle and not model.converged_
    assert len(warned) == len(said) == 1
    assert warned[0].replace("scores", "weights") == said[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_on_several_shards_a_cycle_of_the_mixed_weights_ends_training():
    model = several_shards(Perceptron(order="cyclic", max_iter=None), *XOR)
    assert model.cycle_ is not None and not model.converged_
    assert model.n_iter_ < 20


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
@pytest.mark.parametrize("max_iter", [None, 1000])
def test_separable_data_end_with_the_same_clean_pass(elsewhere, max_iter):
    expected, model = (train(Perceptron(order="cyclic", max_iter=max_iter), *SEPARABLE) for train in (in_memory, elsewhere))
    assert expected.converged_ and expected.mistakes_per_pass_[-1] == 0
    assert facts(model) == facts(expected)


@pytest.mark.parametrize("order", ["cyclic", "shuffle", "random"])
@pytest.mark.parametrize("elsewhere", [several_blocks, several_shards])
def test_separable_data_end_with_a_clean_pass_in_any_order(elsewhere, order):
    model = elsewhere(Perceptron(order=order, max_iter=None, random_state=1), *SEPARABLE)
    assert model.converged_ and model.score(*SEPARABLE) == 1.0


@pytest.mark.parametrize("elsewhere", [one_block, in_the_dual, one_shard])
def test_shuffled_separable_data_end_with_the_same_clean_pass(elsewhere):
    settings = {"order": "permutation", "max_iter": None, "random_state": 3}
    expected, model = (train(Perceptron(**settings), *SEPARABLE) for train in (in_memory, elsewhere))
    assert expected.converged_ and facts(model) == facts(expected)


def test_without_a_cycle_to_find_a_proof_ends_training_in_memory():
    settings = {"order": "shuffle", "max_iter": None, "random_state": 0}
    expected, said = messages(in_memory, Perceptron(**settings), *XOR)
    model, warned = messages(one_block, Perceptron(**settings), *XOR)
    assert expected.n_iter_ == model.n_iter_ == 32 and said == warned and "inseparable" in said[0]


@pytest.mark.parametrize("elsewhere", WITHOUT_DUAL)
@pytest.mark.parametrize("tol", [1e-3, 0.05])
def test_a_loss_that_stalls_ends_training_after_the_same_pass(elsewhere, tol):
    settings = {"shuffle": False, "max_iter": 200, "tol": tol, "n_iter_no_change": 3}
    expected, model = (train(PassiveAggressive(**settings), *NOISY) for train in (in_memory, elsewhere))
    assert 3 < expected.n_iter_ < 200 and not expected.converged_
    assert facts(model) == facts(expected) and np.array_equal(model.coef_, expected.coef_)


def test_on_several_shards_a_loss_that_stalls_ends_training():
    model = several_shards(PassiveAggressive(max_iter=500, tol=1e-3, random_state=0), *NOISY)
    assert 5 < model.n_iter_ < 500


@pytest.mark.parametrize("elsewhere", WITHOUT_DUAL)
@pytest.mark.parametrize("kind", [Perceptron, AveragedPerceptron])
@pytest.mark.parametrize("data", [NOISY, THREE], ids=["two classes", "three"])
def test_early_stopping_goes_back_to_the_same_pass(elsewhere, kind, data):
    X, y = data
    settings = {"order": "cyclic", "max_iter": 60, "early_stopping": True, "n_iter_no_change": 3}
    arguments = X[::2], y[::2], (X[1::2], y[1::2])
    expected, model = (train(kind(**settings), *arguments) for train in (in_memory, elsewhere))
    assert 1 + np.argmax(expected.validation_scores_) == expected.n_iter_ - 3 < 60
    assert facts(model) == facts(expected) and model.validation_scores_ == expected.validation_scores_
    assert np.array_equal(model.coef_, expected.coef_) and np.array_equal(model.intercept_, expected.intercept_)


def test_early_stopping_in_the_dual_goes_back_to_the_same_pass():
    X, y = NOISY
    learner = Perceptron(order="cyclic", max_iter=60, early_stopping=True, n_iter_no_change=3)
    arguments = X[::2], y[::2], (X[1::2], y[1::2])
    expected, model = (train(learner, *arguments) for train in (in_memory, in_the_dual))
    assert expected.n_iter_ < 60 and len(model.ledger_) == len(expected.ledger_)
    assert facts(model) == facts(expected) and model.validation_scores_ == expected.validation_scores_


def test_on_several_shards_early_stopping_goes_back_to_the_best_pass():
    X, y = NOISY
    settings = {"order": "cyclic", "max_iter": 60, "early_stopping": True, "n_iter_no_change": 3}
    held_out = X[1::2], y[1::2]
    model = several_shards(Perceptron(**settings), X[::2], y[::2], held_out)
    assert model.n_iter_ - (1 + int(np.argmax(model.validation_scores_))) == 3
    assert model.score(*held_out) == max(model.validation_scores_)


@pytest.mark.parametrize("elsewhere", [in_memory, *WITHOUT_DUAL])
def test_weights_that_outgrow_float64_are_an_error_everywhere(elsewhere):
    X, y = np.array([[1.0, 1.0], [1.0, 1.01], [1.01, 1.0], [1.0, 0.5]]), np.array([0, 0, 1, 0])
    learner = Perceptron(order="cyclic", max_iter=8, class_weight={0: 1e308, 1: 1e308})
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="outgrew float64"):
        elsewhere(learner, X, y)
