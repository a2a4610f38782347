"""In River our learners learn what they learn here, bit for bit, one named example at a time."""

import copy
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import AveragedPerceptron, PassiveAggressive, Perceptron, VotedPerceptron, load, save
from separatrix.engine.rules import RULES
from support.public_estimators import ONLINE

river = pytest.importorskip("river")
from river import compose, evaluate, metrics, preprocessing  # noqa: E402


def stream(n=400, classes=("ham", "spam", "other"), names=150, seed=0):
    """Examples of a few named features each, some of which come up late."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(names, len(classes)))
    for i in range(n):
        some = rng.permutation(20 + (names - 20) * i // n)[:6]
        x = {f"f{j}": float(rng.normal()) for j in some}
        scores = sum(value * hidden[int(name[1:])] for name, value in x.items())
        yield x, classes[int(np.argmax(scores))]


def matrix(examples):
    """The same examples as CSR, columns in the order in which the names were first met."""
    index, indptr, indices, data = {}, [0], [], []
    for x, _ in examples:
        for name, value in x.items():
            indices.append(index.setdefault(name, len(index)))
            data.append(float(value))
        indptr.append(len(indices))
    return sp.csr_matrix((data, indices, indptr), shape=(len(examples), len(index))), list(index)


@pytest.mark.parametrize("estimator", ONLINE)
@pytest.mark.parametrize("classes", [("ham", "spam"), (3, 1, 2), (False, True)])
def test_a_stream_of_dicts_is_a_stream_of_rows(estimator, classes):
    examples = list(stream(classes=classes))
    X, names = matrix(examples)
    ours = estimator(record=True).partial_fit(X, [y for _, y in examples])
    theirs = estimator(record=True).to_river()
    for x, y in examples:
        theirs.learn_one(x, y)
    fitted = theirs.fitted()
    assert fitted.feature_names_in_.tolist() == names and fitted.classes_.tolist() == sorted(classes)
    assert np.array_equal(fitted.coef_, ours.coef_) and np.array_equal(fitted.intercept_, ours.intercept_)
    assert list(fitted.ledger_) == list(ours.ledger_)
    assert (fitted.n_errors_, fitted.n_seen_, fitted.radius_) == (ours.n_errors_, ours.n_seen_, ours.radius_)
    assert [theirs.predict_one(x) for x, _ in examples] == ours.predict(X).tolist()
    scores = np.array([list(theirs.decision_function_one(x).values()) for x, _ in examples[:50]])
    expected = ours.decision_function(X[:50])
    assert np.array_equal(scores if len(classes) > 2 else scores[:, 1], expected)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_grows_with_the_names(rule):
    examples = list(stream(200, names=100))
    X, _ = matrix(examples)
    ours = AveragedPerceptron(rule=rule).partial_fit(X, [y for _, y in examples])
    theirs = AveragedPerceptron(rule=rule).to_river()
    for x, y in examples:
        theirs.learn_one(x, y)
    assert np.array_equal(theirs.fitted().coef_, ours.coef_)


@pytest.mark.parametrize(
    "learner",
    [Perceptron(), AveragedPerceptron(), PassiveAggressive(average=True), AveragedPerceptron(rule="pa1", C="auto")],
)
def test_progressive_validation_agrees_with_our_own(learner):
    examples = list(stream())
    X, _ = matrix(examples)
    labels = [y for _, y in examples]
    right = 0  # River does not score the first example, when nothing can be predicted
    own = copy.deepcopy(learner)
    for i, label in enumerate(labels):
        right += i > 0 and own.predict(X[i])[0] == label
        own.partial_fit(X[i], [label])
    found = evaluate.progressive_val_score(examples, learner.to_river(), metrics.Accuracy())
    assert found.get() == right / (len(examples) - 1)


def test_our_count_of_errors_is_rivers():
    """With classes known from the start, and ties as predict has them, progressive validation finds `n_errors_`."""
    examples = list(stream(classes=("a", "b")))
    X, _ = matrix(examples)
    begun = Perceptron(tie="first").partial_fit(sp.csr_matrix((1, X.shape[1])), ["a"], classes=["a", "b"])
    begun.feature_names_in_ = np.array(matrix(examples)[1], dtype=object)
    theirs = begun.to_river()
    found = evaluate.progressive_val_score(examples, theirs, metrics.Accuracy())
    assert theirs.fitted().n_errors_ == begun.n_errors_ + round((1 - found.get()) * len(examples))


def test_it_goes_on_from_what_was_learned_and_can_be_saved(tmp_path):
    examples = list(stream())
    X, _ = matrix(examples)
    labels = [y for _, y in examples]
    theirs = Perceptron(record=True).to_river()
    for x, y in examples[:200]:
        theirs.learn_one(x, y)
    assert theirs.learner is not theirs.fitted() and not hasattr(theirs.learner, "_run")
    save(theirs.fitted(), tmp_path / "m.sepx")
    for again in (load(tmp_path / "m.sepx").estimator.to_river(), pickle.loads(pickle.dumps(theirs)), copy.deepcopy(theirs)):
        for x, y in examples[200:]:
            again.learn_one(x, y)
        assert np.array_equal(again.fitted().coef_, Perceptron().partial_fit(X, labels).coef_)
    dense = Perceptron(record=True).fit(X[:200].toarray(), labels[:200])
    goes_on = dense.to_river()
    goes_on.learn_one({0: 1.0, "new": 2.0}, "ham")
    assert goes_on.fitted().n_features_in_ == X.shape[1] + 1
    assert np.array_equal(goes_on.fitted().ledger_.weights().coef, goes_on.fitted().coef_)
    assert theirs.clone().predict_one(examples[0][0]) is None


def test_it_stands_in_a_pipeline_and_takes_strings():
    model = compose.Pipeline(preprocessing.StandardScaler(), Perceptron().to_river())
    examples = list(stream(classes=("a", "b")))
    assert evaluate.progressive_val_score(examples, model, metrics.Accuracy()).get() > 0.5
    words = Perceptron().to_river()
    words.learn_one({"job": "cook", "age": 30, "old": False}, True)
    words.learn_one({"job": "clerk", "age": 30, "old": False}, False)
    assert words.fitted().feature_names_in_.tolist() == ["job=cook", "age", "old", "job=clerk"]
    assert words.predict_one({"job": "pilot"}) in (True, False)


def test_weights_scale_the_corrections():
    examples = list(stream(classes=("a", "b")))
    X, _ = matrix(examples)
    labels = [y for _, y in examples]
    weight = np.linspace(0.0, 2.0, len(labels))
    ours = Perceptron(class_weight={"a": 2.0}).partial_fit(X, labels, sample_weight=weight)
    theirs = Perceptron(class_weight={"a": 2.0}).to_river()
    for (x, y), w in zip(examples, weight.tolist(), strict=True):
        theirs.learn_one(x, y, w=w)
    assert np.array_equal(theirs.fitted().coef_, ours.coef_) and theirs.fitted().n_seen_ == ours.n_seen_


def test_what_a_stream_cannot_do_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="held-out"):
        AveragedPerceptron(calibrate="sigmoid").to_river()
    with pytest.raises(ValueError, match="balanced"):
        Perceptron(class_weight="balanced").to_river()
    model = VotedPerceptron().to_river()
    with pytest.raises(ValueError, match="nothing was learned"):
        model.fitted()
    assert model.predict_one({"a": 1}) is None and model.decision_function_one({"a": 1}) == {}
    for x in ({"a": float("nan")}, {"a": float("inf")}, {"a": 1e200}, {"a": [1]}, {"a": None}):
        with pytest.raises(ValueError, match=r"x contains|must be a number"):
            model.learn_one(x, 1)
    with pytest.raises(ValueError, match="weight"):
        model.learn_one({"a": 1}, 1, w=-1)
    with pytest.raises(NotImplementedError):
        model.predict_proba_one({"a": 1})
    monkeypatch.setattr(sys.modules["separatrix.estimators.river"], "Classifier", object)
    with pytest.raises(ImportError, match=r"separatrix\[river\]"):
        Perceptron().to_river()


def test_labels_that_come_in_runs_are_warned_about_once():
    learner = Perceptron().to_river()
    with pytest.warns(UserWarning, match="labels come in runs") as caught:
        for i in range(1000):
            learner.learn_one({"x": float(i % 7)}, "early" if i < 500 else "late")
    assert len(caught) == 1
