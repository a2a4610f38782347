"""Models that grow while they are served: new classes and names cost little, and are refused beyond a limit."""

import numpy as np
import orjson
import pytest

from separatrix import AveragedPerceptron, Model, Perceptron
from separatrix.engine.weights import Flat
from separatrix.web.server.live.commits import Commit
from separatrix.web.server.live.live_model import LearningStoppedError, LiveModel
from separatrix.web.server.reading.request_reader import Limits, RequestError
from support.served_store import ServedStore
from support.server_process import examples, matrix
from web.server.live.test_engine import blocks


def labelled(n, seed=0, n_classes=None):
    """Examples whose labels come in no sorted order, many of them for the first time."""
    labels = np.random.default_rng(seed).permutation(n_classes or n)
    for i, (x, _) in enumerate(examples(n, seed=seed, names=40)):
        yield x, f"c{labels[i % len(labels)]}"


@pytest.mark.parametrize(
    "learner",
    [
        AveragedPerceptron(),
        AveragedPerceptron(rule="arow"),
        Perceptron(tie="first"),
        Perceptron(multi_class="ovr", fit_intercept=False),
    ],
    ids=repr,
)
def test_classes_in_spare_room_are_learned_as_if_there_were_none(learner):
    """Outputs in the order of arrival, with room for more: the model is that of `partial_fit`, ties included."""
    stream = list(labelled(240, n_classes=60))
    X, names = matrix(stream)
    whole = type(learner)(**learner.get_params()).partial_fit(X, [y for _, y in stream])
    first, second = LiveModel(Model(learner)), LiveModel(Model(learner))
    for block, labels, new in blocks(stream, [1, 2, 3, 30, 31, 200]):
        second.apply(Commit.unpack(first.learn(block, labels, new, None, False).pack()))
        assert second.state() == first.state()
        scores, model = first.scores(block), first.model(None).estimator
        assert first.decide(scores) == model.predict(_csr(block, model)).tolist()
        assert len(first.classes) == 1 or np.array_equal(
            scores, model.decision_function(_csr(block, model)).reshape(block.n, -1)
        )
    assert first.run.last.K > len(first.classes), "there is room for more"
    model = first.model(names).estimator
    assert np.array_equal(model.coef_, whole.coef_) and np.array_equal(model.intercept_, whole.intercept_)
    assert model.classes_.tolist() == whole.classes_.tolist() and model.classes_.dtype == whole.classes_.dtype
    assert np.array_equal(model.run_.tally, whole.run_.tally)
    again = LiveModel.resumed(first.model(names), orjson.loads(orjson.dumps(first.facts())))
    assert again.state() == first.state()
    for block, labels, new in blocks([({"f0": 1.0, "new": 2.0}, "newest"), ({"f0": 1.0}, "c1")], []):
        assert again.learn(block, labels, new, None, False).pack() == first.learn(block, labels, new, None, False).pack()
    assert again.state() == first.state()


def _csr(block, model):
    import scipy.sparse as sp

    return sp.csr_matrix((block.data, block.indices, block.indptr), shape=(block.n, model.n_features_in_))


def test_new_classes_and_names_move_the_weights_a_few_times(tmp_path, monkeypatch):
    moved, grow = [], Flat.grow
    monkeypatch.setattr(Flat, "grow", lambda flat, K, d: moved.append((K, d)) or grow(flat, K, d))
    one = ServedStore(tmp_path / "s")
    stream = list(labelled(600))
    one.learn(stream[:200])
    at_once = len(moved)
    assert at_once <= 4 * 2, "a request of many classes makes room for all of them together"
    for pair in stream[200:]:
        one.learn([pair])
    assert len(one.live_model.classes) == 600
    assert len(moved) - at_once <= 4 * 4, "400 requests with a new class each"
    one.crash()


def test_a_class_beyond_the_limit_is_refused_and_the_others_go_on(tmp_path):
    one = ServedStore(tmp_path / "s", limits=Limits(classes=5))
    stream = list(labelled(30, n_classes=5))
    one.learn(stream)
    before = one.live_model.state()
    with pytest.raises(RequestError, match="6 classes exceed the limit of 5") as refused:
        one.learn([*stream[:2], ({"never": 1.0}, "sixth")])
    assert refused.value.status == 422 and "--max-classes" in refused.value.message
    assert one.live_model.state() == before and "never" not in one.writer.buffer.index.column
    assert one.learn(stream)["examples"] == 60
    one.crash()


def test_learning_can_be_stopped():
    live_model = LiveModel(Model(AveragedPerceptron()))
    block, labels, names = next(blocks(list(labelled(50)), []))
    calls = []
    with pytest.raises(LearningStoppedError):
        live_model.learn(block, labels, names, None, False, lambda: len(calls) > 10 or calls.append(1))
    assert 10 <= live_model.steps < 50
