"""A model file gives back the same model, bit for bit."""

import io
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

import separatrix
from separatrix import AveragedPerceptron, Model, Perceptron, TextFeatures, load, save
from separatrix.engine.rules import RULES
from separatrix.modelfile.errors import ModelFileError
from separatrix.modelfile.registry import CLASSIFIERS
from support.public_estimators import ESTIMATORS, ONLINE, seeded
from support.round_trip import IRIS, SPAM, TEXTS, X, Y, parts, round_trip, same, signed

STREAMS = [estimator for estimator in ESTIMATORS if hasattr(estimator(), "partial_fit")]
WAYS = {"two": Y == 1, "three": np.array(["setosa", "versicolor", "virginica"])[Y]}


def test_a_file_that_does_not_say_in_what_order_is_read(tmp_path):
    """As the first ones were written."""
    model = Perceptron(order="cyclic").fit(X, Y)
    save(model, tmp_path / "m.sepx")
    body, arrays = parts((tmp_path / "m.sepx").read_bytes())
    del body["estimator"]["runs"][0]["order"]
    (tmp_path / "old.sepx").write_bytes(signed(body, arrays))
    same(load(tmp_path / "old.sepx").estimator, model, X)


def test_every_public_classifier_has_a_place_in_the_file():
    taggers = {"SequencePerceptron"}  # tests/sequences/test_model_files.py
    assert {estimator.__name__ for estimator in ESTIMATORS} | taggers == set(CLASSIFIERS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_what_is_loaded_is_what_was_saved(estimator, way, make, tmp_path):
    model = seeded(estimator).fit(make(X), WAYS[way])
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, make(X))
    save(again, tmp_path / "again.sepx")
    assert (tmp_path / "again.sepx").read_bytes() == (tmp_path / "m.sepx").read_bytes()


@pytest.mark.parametrize("estimator", STREAMS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("begin", ["partial_fit", "fit"])
def test_a_loaded_learner_goes_on_as_the_unsaved_one(estimator, make, begin, tmp_path):
    rng = np.random.default_rng(0)
    order = rng.permutation(np.flatnonzero(Y < 2))
    kept = {"record": True} if "record" in estimator().get_params() else {}
    model = seeded(estimator, **kept)
    getattr(model, begin)(make(X[order]), Y[order])
    again = round_trip(model, tmp_path / "m.sepx")
    for learner in (again, model):  # a third class comes after the file was written
        learner.partial_fit(make(X[::3]), Y[::3])
    same(again, model, make(X))
    if kept:
        assert np.array_equal(again.ledger_.weights().coef, model.ledger_.weights().coef)


@pytest.mark.filterwarnings("ignore:labels come in runs")
@pytest.mark.parametrize(
    ("rule", "C"), [*((rule, 0.5) for rule in RULES), *((rule, "auto") for rule, entry in RULES.items() if entry.has_C)]
)
def test_rules_and_the_grid_of_a_stream_go_on(rule, C, tmp_path):
    model = separatrix.AveragedPerceptron(rule=rule, C=C).partial_fit(X, Y)
    again = round_trip(model, tmp_path / "m.sepx")
    weight = np.linspace(0.0, 2.0, len(X))
    for learner in (again, model):
        learner.partial_fit(X[::-1], Y[::-1], sample_weight=weight)
    same(again, model, X)
    assert len(getattr(again, "_runs", [])) == len(getattr(model, "_runs", []))


@pytest.mark.parametrize(
    "parameters",
    [
        {"early_stopping": True, "n_iter_no_change": 1},
        {"calibrate": "sigmoid"},
        {"class_weight": {0: 1, 1: 2.5, 2: 0.5}, "tie": "first"},
        {"class_weight": "balanced", "order": "cyclic", "fit_intercept": False, "multi_class": "ovr"},
        {"rule": "pa1", "C": "auto", "record": True},
        {"max_iter": np.int64(3), "margin": np.float32(0.5)},
    ],
)
def test_parameters_and_what_they_leave_behind(parameters, tmp_path):
    model = separatrix.AveragedPerceptron(random_state=3, **parameters).fit(X, Y)
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, X)
    if "calibrate" in parameters:
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_random_state_goes_on_where_it_was(tmp_path):
    model = Perceptron(random_state=np.random.RandomState(5), warm_start=True, max_iter=2).fit(X, Y)
    save(model, tmp_path / "m.sepx")
    again = load(tmp_path / "m.sepx").estimator
    assert np.array_equal(again.fit(X, Y).coef_, model.fit(X, Y).coef_)


def test_infinite_parameters_and_hard_margins(tmp_path):
    two = Y < 2
    model = separatrix.MaxMarginClassifier(C=np.inf).fit(X[two], Y[two])
    same(round_trip(model, tmp_path / "m.sepx"), model, X)
    ovr = separatrix.MaxMarginClassifier(multi_class="ovr").fit(X, Y)
    same(round_trip(ovr, tmp_path / "m.sepx"), ovr, X)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-5, 7], np.int8),
        np.array([1, 2**63 + 1], np.uint64),
        np.array([-1.0, 2.0], np.float32),
        np.array([False, True]),
        np.array(["é", "e\u0301"]),  # not the same string, and neither is normalised
        np.array(["", "\ud800", "日本"], dtype="U9"),
        np.array(["no", "yes"], dtype=object),
    ],
    ids=lambda labels: f"{labels.dtype}-{len(labels)}",
)
def test_labels_come_back_exactly(labels, tmp_path):
    model = Perceptron(random_state=0).fit(X, labels[Y % len(labels)])
    again = round_trip(model, tmp_path / "m.sepx")
    assert again.classes_.dtype == model.classes_.dtype and again.classes_.tolist() == model.classes_.tolist()
    assert [type(label) for label in again.classes_.tolist()] == [type(label) for label in model.classes_.tolist()]


def test_feature_names_come_back_and_are_checked(tmp_path):
    model = Perceptron(random_state=0).fit(IRIS.data, Y)
    again = round_trip(model, tmp_path / "m.sepx")
    same(again, model, IRIS.data)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(IRIS.data[IRIS.data.columns[::-1]])
    with pytest.raises(ValueError, match="X has 2 features, but Perceptron is expecting 4"):
        round_trip(Perceptron(random_state=0).fit(X, Y), tmp_path / "m.sepx").predict(X[:, :2])


def test_weights_of_few_nonzeros_take_little_room_and_keep_the_sign_of_zero(tmp_path):
    d = 1 << 18
    rows = sp.random(50, d, 1e-4, format="csr", random_state=0)
    model = separatrix.AveragedPerceptron(random_state=0).fit(rows, np.arange(50) % 2)
    model.run_.last.W[:3] = [-0.0, 0.0, -0.0]
    model.run_.used = None
    again = round_trip(model, tmp_path / "m.sepx")
    assert again.run_.last.W[:3].tobytes() == model.run_.last.W[:3].tobytes()
    assert np.array_equal(again.coef_, model.coef_)
    assert os.path.getsize(tmp_path / "m.sepx") < d


def test_without_the_ledger_it_predicts_and_learns_the_same(tmp_path):
    model = separatrix.AveragedPerceptron(random_state=0, record=True).fit(X, Y)
    save(model, tmp_path / "whole.sepx")
    again = round_trip(model, tmp_path / "m.sepx", ledger=False)
    assert os.path.getsize(tmp_path / "m.sepx") < os.path.getsize(tmp_path / "whole.sepx") / 2
    assert load(tmp_path / "m.sepx").info()["ledger"] == {
        "mistakes": 0,
        "left_out": model.n_mistakes_,
        "rows_stored": False,
    }
    for learner in (again, model):
        learner.partial_fit(X, Y)
    assert np.array_equal(again.coef_, model.coef_) and again.n_mistakes_ == model.n_mistakes_
    for ask in (again.ledger_.weights, lambda: again.ledger_.verify(X, Y), lambda: again.bounds(X, Y)):
        with pytest.raises(ValueError, match="the model was saved without them"):
            ask()
    assert separatrix.trace(load(tmp_path / "m.sepx").estimator, X, Y).rows
    with pytest.raises(ModelFileError, match="VotedPerceptron predicts with its mistakes"):
        save(separatrix.VotedPerceptron().fit(X, Y), tmp_path / "v.sepx", ledger=False)


@pytest.mark.parametrize("columns", ["hashed", "vocabulary"])
def test_the_featurizer_is_inside(columns, tmp_path):
    features = TextFeatures(columns=columns, n_features=512).fit(TEXTS)
    model = Perceptron(random_state=0).fit(features.transform(TEXTS), SPAM)
    facts = {"rows": 6, "columns": ["text", "label"], "name": "Ünïcode"}
    save(model, tmp_path / "m.sepx", features=features, facts=facts)
    again = load(tmp_path / "m.sepx")
    assert again.predict(TEXTS).tolist() == SPAM.tolist() and again.facts == facts
    assert np.array_equal(again.decision_function(TEXTS), model.decision_function(features.transform(TEXTS)))
    assert again.features.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    assert again.info()["features"] == "TextFeatures" and repr(again).startswith("<Model: TextFeatures → Perceptron, ")
    save(again, tmp_path / "again.sepx")
    assert (tmp_path / "again.sepx").read_bytes() == (tmp_path / "m.sepx").read_bytes()
    with pytest.raises(ModelFileError, match="makes 100 features and the classifier was trained on"):
        save(model, tmp_path / "m.sepx", features=TextFeatures(n_features=100).fit(TEXTS))


def test_the_same_training_gives_the_same_bytes_in_another_process(tmp_path):
    code = """if True:
        import sys
        from sklearn.datasets import load_iris
        from separatrix import AveragedPerceptron, save
        save(AveragedPerceptron(random_state=0, record=True).fit(*load_iris(return_X_y=True)), sys.argv[1])"""
    for name in "ab":
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / name], check=True, env=os.environ | {"PYTHONHASHSEED": "random"}
        )
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_cannot_be_kept_is_refused(tmp_path):
    path = tmp_path / "m.sepx"
    with pytest.raises(ValueError, match="not fitted"):
        save(Perceptron(), path)
    with pytest.raises(ModelFileError, match="a LogisticRegression cannot be stored in a model file"):
        save(LogisticRegression(max_iter=1000).fit(X, Y), path)

    class Mine(Perceptron):
        pass

    Mine.__name__ = "Perceptron"
    with pytest.raises(ModelFileError, match="cannot be stored in a model file"):
        save(Mine(random_state=0).fit(X, Y), path)
    for facts in ({"when": object()}, {"x": float("nan")}):
        with pytest.raises(ModelFileError, match="facts must be JSON values"):
            save(Perceptron(random_state=0).fit(X, Y), path, facts=facts)
    assert not path.exists()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickle_and_joblib_keep_the_model_too(estimator):
    model = seeded(estimator).fit(X, Y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    for again in (joblib.load(buffer), pickle.loads(pickle.dumps(model))):
        same(again, model, X)
        if estimator in ONLINE:
            same(again.partial_fit(X, Y), pickle.loads(pickle.dumps(model)).partial_fit(X, Y), X)


def test_a_model_follows_the_estimator_protocol_without_inheriting_it():
    texts, labels = TEXTS * 5, np.tile(SPAM, 5)
    model = Model(AveragedPerceptron(random_state=0, rule="pa1"), TextFeatures(n_features=256))
    assert "sklearn" not in {base.__module__.partition(".")[0] for base in type(model).__mro__}
    copied = clone(model)
    assert copied.get_params()["features__n_features"] == 256 and copied.estimator is not model.estimator
    assert repr(copied) == "<Model: TextFeatures → AveragedPerceptron, not fitted>"
    assert cross_val_score(model, texts, labels, cv=3).tolist() == [1.0, 1.0, 1.0]
    grid = GridSearchCV(model, {"estimator__C": [0.5, 1.0], "features__n_features": [64, 256]}, cv=2).fit(texts, labels)
    assert grid.best_estimator_.score(texts, labels) == 1.0 and is_classifier(model)
    assert grid.best_estimator_.classes_.tolist() == ["ham", "spam"]
    with pytest.raises(ValueError, match="'C' is not a parameter of Model"):
        model.set_params(C=1.0)
