"""A threshold other than 0 moves every decision between two classes, and nothing else."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    MaxMarginClassifier,
    Model,
    Perceptron,
    VotedPerceptron,
    evaluate,
    load,
    save,
)
from separatrix.exporting import to_sklearn, to_sql
from separatrix.modelfile.archive import describe
from separatrix.plots.fitted_classifier import scores_of
from separatrix.web.server.live.live_model import LiveModel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.where(X @ [1.0, -1.0, 0.5] + 0.7 * RNG.normal(size=120) > 0.3, "yes", "no")
CLASSIFIERS = [
    Perceptron(random_state=0),
    AveragedPerceptron(random_state=0, calibrate="sigmoid"),
    VotedPerceptron(random_state=0),
    KernelPerceptron(random_state=0),
    FisherDiscriminant(),
    MaxMarginClassifier(C=1.0, tol=1e-3),
]


def by_name(model):
    return type(model).__name__


def shifted(model):
    """A fitted copy whose threshold is the 70th percentile of the scores."""
    model = clone(model).fit(X, Y)
    scores = model.decision_function(X)
    model.threshold_ = float(np.quantile(scores, 0.7)) + 1e-9
    return model, scores


@pytest.mark.parametrize("model", CLASSIFIERS, ids=by_name)
def test_predictions_follow_the_threshold_and_scores_do_not(model):
    model, scores = shifted(model)
    expected = np.where(scores > model.threshold_, "yes", "no")
    assert not np.array_equal(expected, np.where(scores > 0, "yes", "no"))
    assert np.array_equal(model.predict(X), expected)
    assert np.array_equal(Model(model).predict(X), expected)
    assert np.array_equal(model.decision_function(X), scores)
    assert evaluate(model, X, Y).accuracy == np.mean(expected == Y)
    assert evaluate(model, X, Y).threshold == model.threshold_
    assert evaluate(model, X, Y, positive="no").threshold == -model.threshold_
    assert clone(model).fit(X, Y).threshold_ is None
    assert model.fit(X, Y).threshold_ is None


@pytest.mark.parametrize("model", CLASSIFIERS, ids=by_name)
def test_a_file_stores_the_threshold_in_a_format_that_older_versions_refuse(model, tmp_path):
    plain, path = clone(model).fit(X, Y), tmp_path / "model.sepx"
    save(plain, path)
    assert b'\\"format\\":1,' in path.read_bytes()
    assert describe(path).threshold is None
    model, _ = shifted(model)
    save(model, path)
    assert b'\\"format\\":2,' in path.read_bytes()
    for plain_classes in (True, False):
        loaded = load(path, plain=plain_classes)
        assert loaded.estimator.threshold_ == model.threshold_
        assert np.array_equal(loaded.predict(X), model.predict(X))
    assert describe(path).threshold == model.threshold_
    assert loaded.info()["threshold"] == model.threshold_


def test_probabilities_stay_and_the_calibrated_slope_too():
    model, _ = shifted(AveragedPerceptron(random_state=0, calibrate="sigmoid"))
    plain = AveragedPerceptron(random_state=0, calibrate="sigmoid").fit(X, Y)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize("tie", ["mistake", "+1"])
def test_a_score_equal_to_the_threshold_goes_as_tie_says(tie):
    model = Perceptron(order="cyclic", tie=tie).fit([[0.0], [2.0]], ["no", "yes"])
    model.threshold_ = float(model.decision_function([[3.0]])[0])
    assert model.predict([[3.0]]).tolist() == ["yes" if tie == "+1" else "no"]
    assert evaluate(model, [[3.0]], ["yes"]).accuracy == (tie == "+1")


def test_learning_on_is_not_shifted_and_keeps_the_threshold():
    plain, model = (Perceptron(random_state=0).partial_fit(X, Y, classes=["no", "yes"]) for _ in range(2))
    model.threshold_ = 0.7
    for learner in (plain, model):
        learner.partial_fit(X, Y)
    assert np.array_equal(plain.coef_, model.coef_) and model.threshold_ == 0.7


def test_exports_and_pictures_follow():
    model, _ = shifted(Perceptron(random_state=0))
    exported = to_sklearn(model)
    assert np.array_equal(exported.predict(X), model.predict(X))
    assert f"> {model.threshold_!r}" in to_sql(model, columns=["a", "b", "c"])
    assert np.array_equal(scores_of(model, X)[:, 0] > 0, model.predict(X) == "yes")


def test_the_server_follows():
    model, scores = shifted(Perceptron(random_state=0))
    live = LiveModel(Model(model))
    assert live.decide(scores[:, None]) == model.predict(X).tolist()
    assert live.model(None).estimator.threshold_ == model.threshold_


def test_a_threshold_of_three_classes_means_nothing_and_one_that_is_no_number_is_refused():
    labels = np.where(X[:, 0] > 1, "maybe", Y)
    model = Perceptron(random_state=0).fit(X, labels)
    before = model.predict(X)
    model.threshold_ = 3.0
    assert np.array_equal(model.predict(X), before)
    model = Perceptron(random_state=0).fit(X, Y)
    model.threshold_ = float("nan")
    with pytest.raises(ValueError, match="threshold_ is nan: it must be a finite number, or None"):
        model.predict(X)


def test_the_threshold_of_an_evaluation_can_be_given_to_the_classifier():
    model = AveragedPerceptron(random_state=0).fit(X, Y)
    best = evaluate(model, X, Y).optimize("cost=1:8")
    model.threshold_ = best.threshold
    again = evaluate(model, X, Y)
    assert json.loads(again.to_json())["confusion"] == json.loads(best.to_json())["confusion"]
    assert again.by_class["yes"].recall > 0.95
