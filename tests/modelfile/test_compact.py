"""Models that take less room: weights without zeros, weights in float32, and files without what only learning needs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix import (
    AveragedPerceptron,
    KernelPerceptron,
    Perceptron,
    PocketPerceptron,
    VotedPerceptron,
    explain,
    load,
    save,
)
from separatrix.data.errors import DataError
from separatrix.engine import parcel
from separatrix.engine.parcel import Parcel, StateError
from separatrix.modelfile.errors import ModelFileError
from separatrix.web.server.storage.snapshots import prepared_to_stream
from support.round_trip import X, Y, parts, round_trip, same

D, N = 20_000, 400


@pytest.fixture(scope="module")
def rows():
    """Sparse rows of many features, most of which one or two classes meet, as hashed texts are."""
    rng = np.random.default_rng(0)
    matrix = sp.random(N, D, density=0.002, format="csr", rng=rng)
    return matrix, rng.integers(0, 3, N)


def stored(path):
    return parts(path.read_bytes())


# What is zero is left out.


@settings(max_examples=60)
@given(st.integers(1, 5), st.integers(1, 3000), st.floats(0, 1), st.booleans(), st.integers(0, 2**32))
def test_weights_come_back_bit_for_bit(K, d, share, float32, seed):
    rng = np.random.default_rng(seed)
    weights = np.where(rng.random((K, d)) < share, rng.standard_normal((K, d)), 0.0)
    weights.flat[rng.integers(0, K * d)] = -0.0
    box = Parcel(float32=float32)
    box.put_weights("w", weights)
    again = Parcel(box.arrays).take_weights("w", (K, d))
    expected = weights.astype(np.float32).astype(np.float64) if float32 else weights
    assert again.dtype == np.float64 and again.tobytes() == expected.tobytes()
    size, width = sum(array.nbytes for array in box.arrays.values()), 4 if float32 else 8
    held = np.count_nonzero(weights) + 1
    assert size <= weights.size * width
    if weights.size * width >= parcel.MASKED_BYTES:
        assert size <= held * width + -(-weights.size // 8)


@pytest.mark.parametrize("estimator", [Perceptron, AveragedPerceptron, PocketPerceptron])
@pytest.mark.parametrize("rule", ["perceptron", "arow"])
def test_a_sparse_model_is_small_and_the_same(rows, tmp_path, estimator, rule):
    X, y = rows
    model = estimator(rule=rule, max_iter=3, random_state=0).fit(X, y)
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, X)
    body, arrays = stored(tmp_path / "m.sepx")
    masks = {name.split(".")[-2] for name in arrays if name.endswith(".mask")}
    expected = {"last_coef"} | ({"late_coef"} if estimator is AveragedPerceptron else set())
    assert body["format"] == 2 and masks >= expected | ({"sigma"} if rule == "arow" else set())
    assert (tmp_path / "m.sepx").stat().st_size < 0.9 * sum(8 * 3 * D for _ in masks) + 1e5
    if rule == "arow":
        assert np.array_equal(again.run_.last.spreads()[0], model.run_.last.spreads()[0])
    save(again, tmp_path / "again.sepx")
    assert (tmp_path / "again.sepx").read_bytes() == (tmp_path / "m.sepx").read_bytes()
    if estimator is not PocketPerceptron:
        same(again.partial_fit(X, y), model.partial_fit(X, y), X)


def test_small_models_stay_in_the_first_format(tmp_path):
    save(AveragedPerceptron(rule="arow").fit(X, Y), tmp_path / "m.sepx")
    body, arrays = stored(tmp_path / "m.sepx")
    assert body["format"] == 1 and not any(name.endswith(".mask") for name in arrays)


# float32.


def test_float32_rounds_the_weights_and_nothing_else(rows, tmp_path):
    X, y = rows
    model = Perceptron(rule="pa1", max_iter=3, random_state=0).fit(X, y)
    save(model, tmp_path / "double.sepx")
    again = round_trip(model, tmp_path / "single.sepx", float32=True)
    assert np.array_equal(again.coef_, model.coef_.astype(np.float32).astype(np.float64))
    assert not np.array_equal(again.coef_, model.coef_) and np.array_equal(again.intercept_, model.intercept_)
    assert list(again.ledger_) == list(model.ledger_)
    body, arrays = stored(tmp_path / "single.sepx")
    assert body["format"] == 2 and arrays["estimator.run0.last_coef.values"].dtype == np.float32
    saved = (tmp_path / "double.sepx").stat().st_size - (tmp_path / "single.sepx").stat().st_size
    assert saved == pytest.approx(4 * np.count_nonzero(model.coef_), abs=100)
    again.partial_fit(X, y)  # it continues, from the rounded weights


def test_weights_beyond_float32_are_refused(tmp_path):
    model = Perceptron().fit([[1e60, 0.0], [0.0, 1.0]], [0, 1])
    with pytest.raises(ModelFileError, match="last_coef has weights that are too large for float32"):
        save(model, tmp_path / "m.sepx", float32=True)
    assert not (tmp_path / "m.sepx").exists()


# Without what further learning needs.


LEARNERS = [
    AveragedPerceptron(rule="pa1", random_state=0),
    AveragedPerceptron(rule="arow-full", random_state=0),
    Perceptron(rule="arow", record=True, random_state=0),
    Perceptron(rule="pa2", C="auto", random_state=0),
    PocketPerceptron(random_state=0),
    AveragedPerceptron(calibrate="sigmoid", random_state=0),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_model_that_cannot_resume_predicts_the_same(tmp_path, learner):
    model = learner.unfitted().fit(X, Y)
    again = round_trip(model, tmp_path / "m.sepx", resume=False)
    assert again.coef_.tobytes() == model.coef_.tobytes() and again.intercept_.tobytes() == model.intercept_.tobytes()
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.predict(X), model.predict(X))
    if model.calibrate:
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    for name in ("n_mistakes_", "mistakes_per_pass_", "n_iter_", "radius_", "n_seen_"):
        assert getattr(again, name) == getattr(model, name)
    body, arrays = stored(tmp_path / "m.sepx")
    assert body["format"] == 2 and body["whole"] is False
    kinds = {name.removeprefix("estimator.run0.") for name in arrays if name.startswith("estimator.run0.")}
    assert kinds == {"used_coef", "used_intercept", "tally", "per_pass", "left_out", "ledger.pass_starts"}
    save(again, tmp_path / "again.sepx")  # nothing comes back that was left out
    assert stored(tmp_path / "again.sepx")[1].keys() == arrays.keys()


def test_it_says_clearly_that_it_cannot_continue(tmp_path):
    model = AveragedPerceptron(rule="pa1", warm_start=True, record=True, random_state=0).fit(X, Y)
    save(model, tmp_path / "m.sepx", resume=False)
    again = load(tmp_path / "m.sepx")
    message = "saved with resume=False, .* cannot continue to learn; train again"
    scores = again.decision_function(X)
    for learn in (again.estimator.partial_fit, again.estimator.fit):
        with pytest.raises(ValueError, match=message):
            learn(X, Y)
    with pytest.raises(ValueError, match=message):
        again.estimator.to_river()
    with pytest.raises(ValueError, match=message):
        again.estimator.run_.resize(10)
    with pytest.raises(ValueError, match=message):
        again.estimator.run_.add_class(3)
    with pytest.raises(DataError, match=message):
        prepared_to_stream(load(tmp_path / "m.sepx", plain=True))
    assert np.array_equal(again.decision_function(X), scores)  # and nothing was lost by trying
    with pytest.raises(ValueError, match=r"mistakes of the ledger were not kept \(the model was saved without them\)"):
        again.estimator.ledger_.weights()
    assert explain(again, X[0]).terms and again.info()["ledger"]["left_out"] == model.n_mistakes_
    fresh = again.estimator.set_params(warm_start=False).fit(X, Y)
    same(fresh, AveragedPerceptron(rule="pa1", record=True, random_state=0).fit(X, Y), X)


def test_of_a_stream_that_tries_several_c_only_the_best_is_stored(tmp_path):
    model = Perceptron(rule="pa1", C="auto", random_state=0)
    model.partial_fit(X, Y)
    assert len(model.runs()) > 1
    again = round_trip(model, tmp_path / "m.sepx", resume=False)
    assert len(again.runs()) == 1 and again.C_ == model.C_ and np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("learner", [VotedPerceptron(), KernelPerceptron()])
def test_learners_that_predict_with_their_mistakes_refuse(tmp_path, learner):
    with pytest.raises(ModelFileError, match="predicts with its mistakes: the ledger cannot be left out"):
        save(learner.fit(X, Y), tmp_path / "m.sepx", resume=False)


def test_a_name_is_needed_for_what_is_missing():
    with pytest.raises(StateError, match=r"w is missing"):
        Parcel({}).take_weights("w", (1, 2))
