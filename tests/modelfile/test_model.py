"""`Model` is a scikit-learn classifier of raw data, without inheriting from scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from separatrix import AveragedPerceptron, Model, Perceptron, TableFeatures, TextFeatures, explain, load, save, train
from separatrix.exporting import to_sql
from separatrix.modelfile.errors import ModelFileError
from support.public_estimators import ONLINE_WEIGHTS

N = 180
RNG = np.random.default_rng(3)
LABELS = np.array(["spam" if k % 3 == 0 else "ham" for k in range(N)])
TABLE = {
    "age": (RNG.integers(18, 80, N) + 3.0 * (LABELS == "spam")).tolist(),
    "job": RNG.choice(["clerk", "cook", "smith"], N).tolist(),
    "message": [f"{'free money now' if k % 3 == 0 else 'see you at noon'} {k * 7919 % 97}" for k in range(N)],
}
MATRIX = RNG.normal(size=(N, 6)) + (LABELS == "spam")[:, None]
RAW = {
    "pandas": pd.DataFrame(TABLE),
    "polars": pl.DataFrame(TABLE),
    "arrow": pa.table(TABLE),
    "texts": TABLE["message"],
    "series": pd.Series(TABLE["message"]),
    "array": MATRIX,
    "csr": sp.csr_matrix(MATRIX),
    "objects": np.array(list(zip(*TABLE.values(), strict=True)), dtype=object),
}
DOES_NOT_APPLY = {
    "check_classifier_data_not_an_array": "a data frame is a table, whose numbers become bins; an array is taken as it is",
    **{f"check_sample_weight_equivalence_on_{kind}_data": ONLINE_WEIGHTS for kind in ("dense", "sparse")},
}


@pytest.mark.filterwarnings("ignore:Estimator Model does not inherit")
def test_scikit_learns_checks():
    results = check_estimator(Model(), expected_failed_checks=DOES_NOT_APPLY, on_fail=None, on_skip=None)
    assert {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"} == {}
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == {*DOES_NOT_APPLY}
    assert len(results) > 50


@pytest.mark.parametrize("holder", RAW)
def test_cross_validation_on_raw_data(holder):
    scores = cross_val_score(Model(), RAW[holder], LABELS, cv=3)
    assert len(scores) == 3 and scores.min() > 0.6
    predicted = cross_val_predict(Model(), RAW[holder], LABELS, cv=3)
    assert np.mean(predicted == LABELS) == pytest.approx(scores.mean())


@pytest.mark.parametrize("holder", RAW)
def test_fit_is_train_bit_for_bit(holder, tmp_path):
    model, trained = Model().fit(RAW[holder], LABELS), train(RAW[holder], label=LABELS)
    assert model.estimator.coef_.tobytes() == trained.estimator.coef_.tobytes()
    assert model.estimator.intercept_.tobytes() == trained.estimator.intercept_.tobytes()
    assert model.predict(RAW[holder]).tolist() == trained.predict(RAW[holder]).tolist()
    assert (model.features is None) == (holder in ("array", "csr"))
    if model.features is not None:
        assert model.features.get_state()[0]["columns"] == trained.features.get_state()[0]["columns"]
    save(model, tmp_path / "m.sepx")
    assert load(tmp_path / "m.sepx").score(RAW[holder], LABELS) == model.score(RAW[holder], LABELS)


def test_fit_leaves_the_parameters_as_they_are():
    learner, features = AveragedPerceptron(random_state=0), TextFeatures(n_features=256)
    model = Model(learner, features)
    before = model.get_params()
    model.fit(TABLE["message"], LABELS)
    assert model.get_params() == before and not learner.is_fitted() and not features.is_fitted()
    assert model.estimator is not learner and model.estimator.is_fitted() and model.features.is_fitted()
    again = clone(model)
    assert not again.is_fitted() and again.get_params()["features__n_features"] == 256
    assert repr(again) == "<Model: TextFeatures → AveragedPerceptron, not fitted>"
    recipe = Model().fit(pd.DataFrame(TABLE), LABELS)
    assert recipe.get_params(deep=False) == {"estimator": None, "features": "auto"} == clone(recipe).get_params(deep=False)
    assert repr(clone(recipe)) == "<Model: the recipe of train, not fitted>"


def test_parameters_of_the_recipe_can_be_searched():
    frame = RAW["pandas"]
    assert Model().get_params()["estimator__rule"] == "pa1" and Model().get_params()["features__text__n_features"] == 2**18
    grid = {"estimator__C": [0.01, 1.0], "estimator__rule": ["pa1", "arow"], "features__n_bins": [4, 8]}
    search = GridSearchCV(Model(), grid, cv=2).fit(frame, LABELS)
    assert search.best_score_ > 0.9 and len(search.cv_results_["params"]) == 8
    changed = Model().set_params(estimator__C=0.25)
    assert changed.get_params()["estimator__C"] == 0.25 and changed.get_params()["features"] == "auto"
    assert changed.fit(frame, LABELS).estimator.C == 0.25 and isinstance(changed.features, TableFeatures)
    assert Model().get_params()["estimator__C"] == 1.0


def test_what_came_in():
    model = Model().fit(RAW["polars"], LABELS)
    assert model.n_features_in_ == 3 and model.feature_names_in_.tolist() == ["age", "job", "message"]
    assert model.classes_.tolist() == ["ham", "spam"] and is_classifier(model)
    array = Model().fit(MATRIX, LABELS)
    assert array.n_features_in_ == 6 and not hasattr(array, "feature_names_in_")
    assert model.decision_function(RAW["polars"]).shape == (N,)
    check_is_fitted(model)
    for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(Model(), attribute)
    with pytest.raises(NotFittedError, match="this Model is not fitted yet: call fit first"):
        Model().predict(MATRIX)
    with pytest.raises(NotFittedError, match="not fitted"):
        save(Model(), "never.sepx")


def test_weights_and_rows_without_a_label():
    frame, weight = RAW["pandas"], np.where(LABELS == "spam", 2.0, 1.0)
    labels = pd.Series(LABELS).where(np.arange(N) != 7)
    with pytest.warns(UserWarning, match=r"left out 1 row without a label .*, the first: the table, row 7"):
        model = Model().fit(frame, labels, sample_weight=weight)
    kept = np.arange(N) != 7
    alone = Model().fit(frame[kept], LABELS[kept], sample_weight=weight[kept])
    assert np.array_equal(model.estimator.coef_, alone.estimator.coef_)
    unweighted = Model().fit(frame[kept], LABELS[kept])
    assert not np.array_equal(model.estimator.coef_, unweighted.estimator.coef_)
    right = alone.predict(frame) == LABELS
    assert alone.score(frame, LABELS, sample_weight=weight) == pytest.approx((weight * right).sum() / weight.sum())


def test_labels_with_blanks_around_them_stay_as_they_are():
    labels = np.array([" spam" if label == "spam" else "ham " for label in LABELS])
    model = Model().fit(RAW["pandas"], labels)
    assert model.classes_.tolist() == [" spam", "ham "]
    assert model.score(RAW["pandas"], labels) == Model().fit(RAW["pandas"], LABELS).score(RAW["pandas"], LABELS) > 0.9


def test_labels_in_a_column_are_scored_as_they_are_fitted():
    model = Model().fit(RAW["pandas"], LABELS[:, None])
    assert model.score(RAW["pandas"], LABELS[:, None]) == model.score(RAW["pandas"], LABELS) > 0.9
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[180, 1\]"):
        model.score(RAW["pandas"], ["spam"])


def test_held_out_rows_are_featurized():
    frame = RAW["pandas"]
    learner = AveragedPerceptron(random_state=0, max_iter=4)
    for features in ("auto", TableFeatures()):
        model = Model(learner, features).fit(frame[:120], LABELS[:120], X_val=frame[120:], y_val=LABELS[120:])
        assert model.estimator.validation_scores_[-1] == model.score(frame[120:], LABELS[120:])


def test_probabilities_where_there_are_some():
    frame = RAW["pandas"]
    model = Model().fit(frame, LABELS)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"not calibrated: .* calibrate=True, or call set_params\(estimator__calib"):
        model.predict_proba(frame)
    calibrated = clone(model).set_params(estimator__calibrate="sigmoid").fit(frame, LABELS)
    shares = calibrated.predict_proba(frame)
    assert np.allclose(shares.sum(axis=1), 1) and (shares.argmax(axis=1) == (calibrated.predict(frame) == "spam")).all()
    assert np.array_equal(shares, train(frame, label=LABELS, calibrate=True).predict_proba(frame))
    figures = cross_validate(calibrated, frame, LABELS, cv=2, scoring=["neg_log_loss", "roc_auc"])
    assert figures["test_neg_log_loss"].max() < 0 and figures["test_roc_auc"].min() > 0.9
    assert CalibratedClassifierCV(Model(), cv=2).fit(frame, LABELS).predict_proba(frame).shape == (N, 2)


def test_a_warm_start_goes_on():
    learner = Perceptron(random_state=0, warm_start=True, max_iter=1)
    model = Model(learner, None).fit(MATRIX, LABELS)
    once = model.estimator.coef_.copy()
    assert not np.array_equal(model.fit(MATRIX, LABELS).estimator.coef_, once) and not learner.is_fitted()
    plain = Perceptron(random_state=0, warm_start=True, max_iter=1)
    assert np.array_equal(plain.fit(MATRIX, LABELS).fit(MATRIX, LABELS).coef_, model.estimator.coef_)


def test_fitted_models_are_pickled():
    model = pickle.loads(pickle.dumps(Model().fit(RAW["arrow"], LABELS)))
    assert model.score(RAW["arrow"], LABELS) > 0.9 and model.facts["rows"] == N


def test_a_column_alone_is_the_only_column_of_a_model():
    model = train({"message": TABLE["message"], "kind": LABELS.tolist()}, label="kind", text="message")
    expected = model.predict({"message": TABLE["message"]}).tolist()
    for holder in (list, pd.Series, pl.Series, pa.array, np.array):
        assert model.predict(holder(TABLE["message"])).tolist() == expected


def test_a_column_alone_is_explained_as_it_is_predicted():
    model = Model().fit(RAW["texts"], LABELS)
    score = model.decision_function(RAW["texts"][:1])[0]
    for x in (RAW["texts"][0], RAW["texts"][:1], RAW["series"][:1], {"text": RAW["texts"][0]}):
        assert explain(model, x).score == pytest.approx(score)
    by_table = model.importances(3, X=pd.DataFrame({"text": RAW["texts"]}))
    assert model.importances(3, X=RAW["texts"]) == model.importances(3, X=RAW["series"]) == by_table


@pytest.mark.parametrize(
    ("features", "holder"),
    [(TableFeatures(roles={"message": "drop"}), "pandas"), (TextFeatures(columns="vocabulary"), "texts")],
)
def test_a_pipeline_of_data_frames_is_explained(features, holder):
    pipeline = make_pipeline(features, Perceptron(random_state=0)).set_output(transform="pandas").fit(RAW[holder], LABELS)
    assert explain(pipeline, RAW[holder][:1]).score == pytest.approx(pipeline.decision_function(RAW[holder][:1])[0])


def test_a_trained_model_can_be_cross_validated():
    for data in (RAW["pandas"], RAW["texts"]):
        model = train(data, label=LABELS, passes=4)
        assert cross_val_score(model, data, LABELS, cv=3).min() > 0.9 and model.summary["rows"] == N
        assert np.array_equal(clone(model).fit(data, LABELS).estimator.coef_, model.estimator.coef_)


def test_table_features_of_ones_own_read_as_train_does():
    labels = pd.Series(LABELS).where(np.arange(N) != 7)
    with pytest.warns(UserWarning, match="left out 1 row without a label"):
        model = Model(features=TableFeatures(n_bins=4)).fit(RAW["pandas"], labels)
    assert model.features.n_bins == 4 and model.facts["unlabelled"] == 1 and model.facts["label"] == "label"
    with config_context(transform_output="pandas"):
        assert model.predict(RAW["pandas"]).shape == (N,) and sp.issparse(model.transform(RAW["pandas"]))
    numbers = Model(features=TableFeatures()).fit(MATRIX, LABELS)
    assert numbers.features.feature_names_in_.tolist() == [f"x{j}" for j in range(6)]


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(TableFeatures(), AveragedPerceptron(random_state=0, record=True)).fit(RAW["pandas"], LABELS)


def test_a_pipeline_is_saved_and_explained(pipeline, tmp_path):
    save(pipeline, tmp_path / "m.sepx")
    loaded = load(tmp_path / "m.sepx")
    assert loaded.predict(RAW["pandas"]).tolist() == pipeline.predict(RAW["pandas"]).tolist()
    row = {name: column[0] for name, column in TABLE.items()}
    assert str(explain(pipeline, row)) == str(explain(loaded, row))
    alone = make_pipeline("passthrough", Perceptron(random_state=0)).fit(MATRIX, LABELS)
    assert to_sql(alone, columns=[*"abcdef"]) == to_sql(alone[-1], columns=[*"abcdef"])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((StandardScaler(), Perceptron()), "step 'standardscaler' of the pipeline is a StandardScaler: a model is"),
        ((StandardScaler(), LogisticRegression()), "step 'logisticregression' .* is none of our classifiers"),
    ],
)
def test_anything_else_in_a_pipeline_is_named(steps, message, tmp_path):
    fitted = make_pipeline(*steps).fit(MATRIX, LABELS)
    for use in (lambda: save(fitted, tmp_path / "m"), lambda: explain(fitted, MATRIX[0]), lambda: to_sql(fitted)):
        with pytest.raises((ValueError, ModelFileError), match=message):
            use()


def test_wrong_parameters_are_named():
    with pytest.raises(ValueError, match=r"'C' is not a parameter of Model; .*; did you mean 'estimator__C'"):
        Model().set_params(C=1.0)
    with pytest.raises(ValueError, match="features='words' must be 'auto', None, or one of"):
        Model(features="words").fit(MATRIX, LABELS)
    with pytest.raises(ValueError, match="requires y to be passed"):
        Model().fit(RAW["pandas"], None)
    with pytest.raises(ValueError, match="the table has 180 rows, but there are 3 labels"):
        Model().fit(RAW["pandas"], LABELS[:3])


def test_a_threshold_can_be_set_on_the_model_and_is_stored(tmp_path):
    texts, labels = ["free money", "see you at noon", "money now", "noon is fine"], ["spam", "ham", "spam", "ham"]
    model = Model().fit(texts, labels)
    assert model.threshold_ is None
    low, high = np.sort(model.decision_function(texts))[-2:]
    model.threshold_ = (low + high) / 2
    assert (model.predict(texts) == "spam").sum() == 1
    save(model, tmp_path / "model.sepx")
    assert load(tmp_path / "model.sepx").threshold_ == model.threshold_
    with pytest.raises(ValueError, match="not fitted"):
        Model().threshold_ = 1.0
