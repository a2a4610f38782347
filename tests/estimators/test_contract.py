"""Every public estimator keeps scikit-learn's contract and takes the tables people have."""

import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import separatrix
from separatrix.engine.rules import RULES
from support.public_estimators import ESTIMATORS, LEARNERS, ONLINE, expected_failures, seeded, weights_of

IRIS = load_iris(as_frame=True)


def test_public_names_are_pinned():
    assert separatrix.__all__ == [
        "AveragedPerceptron",
        "Certificate",
        "Evaluation",
        "Explanation",
        "FisherDiscriminant",
        "KernelPerceptron",
        "Ledger",
        "MaxMarginClassifier",
        "Model",
        "PassiveAggressive",
        "Perceptron",
        "PocketPerceptron",
        "SeparationCheck",
        "SequenceEvaluation",
        "SequencePerceptron",
        "TableFeatures",
        "TextFeatures",
        "Trace",
        "VotedPerceptron",
        "__version__",
        "certify",
        "check_separation",
        "compare",
        "evaluate",
        "evaluate_sequences",
        "explain",
        "fewest_mistakes",
        "forget",
        "load",
        "load_svmlight",
        "margin",
        "read_conll",
        "save",
        "suspects",
        "trace",
        "train",
    ]
    assert [estimator.__name__ for estimator in ESTIMATORS] == [
        "AveragedPerceptron",
        "FisherDiscriminant",
        "KernelPerceptron",
        "MaxMarginClassifier",
        "PassiveAggressive",
        "Perceptron",
        "PocketPerceptron",
        "VotedPerceptron",
    ]
    with pytest.raises(AttributeError, match="no attribute 'Adaline'"):
        separatrix.Adaline  # noqa: B018


RULED = [separatrix.AveragedPerceptron(random_state=0, rule=rule) for rule in RULES if rule != "perceptron"]
CHOOSING = [separatrix.PassiveAggressive(random_state=0, C="auto", max_iter=20)]


@pytest.mark.filterwarnings("ignore:the classes differ in a direction in which none of them varies")
@parametrize_with_checks([seeded(estimator) for estimator in ESTIMATORS], expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(RULED + CHOOSING, expected_failed_checks=expected_failures)
def test_scikit_learn_contract_with_every_rule(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", LEARNERS)
def test_parameters_are_keyword_only_with_the_designed_defaults(estimator):
    expected = {
        "rule": "perceptron",
        "C": 1.0,
        "margin": 1.0,
        "tie": "mistake",
        "multi_class": "joint",
        "order": "shuffle",
        "fit_intercept": True,
        "max_iter": 20,
        "early_stopping": False,
        "validation_fraction": 0.1,
        "n_iter_no_change": 5,
        "class_weight": None,
        "calibrate": None,
        "warm_start": False,
        "random_state": None,
        "verbose": 0,
        "record": False,
    }
    if estimator is separatrix.AveragedPerceptron:
        expected["average_from"] = 1
    assert estimator().get_params() == expected
    parameters = inspect.signature(estimator).parameters.values()
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_tables_give_the_same_weights_as_arrays_and_keep_their_names(estimator, table):
    columns = {name: IRIS.data[name].to_numpy() for name in IRIS.data}
    labels = np.asarray(["setosa", "versicolor", "virginica"])[IRIS.target]
    ours = seeded(estimator, 3)
    plain = clone(ours).fit(np.column_stack(list(columns.values())), labels)
    series = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series, pa.table: pa.array}[table](labels)
    fitted = clone(ours).fit(table(columns), series)
    assert fitted.feature_names_in_.tolist() == list(columns)
    assert np.array_equal(weights_of(fitted), weights_of(plain))
    assert np.array_equal(fitted.predict(table(columns)), plain.predict(IRIS.data.to_numpy()))
    assert not hasattr(plain, "feature_names_in_")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_other_names_at_predict_are_refused(estimator):
    fitted = seeded(estimator).fit(IRIS.data, IRIS.target)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(IRIS.data.rename(columns={"sepal length (cm)": "length"}))


@pytest.mark.parametrize("estimator", LEARNERS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr_matrix", "csr_array"])
def test_pickle_and_deepcopy_keep_everything(estimator, make):
    mixed = np.random.default_rng(0).permutation(150)
    X, y = make(IRIS.data.to_numpy()[mixed]), IRIS.target.to_numpy()[mixed]
    fitted = estimator(random_state=0, record=True).fit(X, y)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert np.array_equal(again.coef_, fitted.coef_)
        assert np.array_equal(again.decision_function(X), fitted.decision_function(X))
        assert list(again.ledger_) == list(fitted.ledger_)
        assert np.array_equal(again.ledger_.weights().coef, fitted.ledger_.weights().coef)
        if estimator in ONLINE:
            again.partial_fit(X, y)
            assert again.n_seen_ == fitted.n_seen_ + 150


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipelines_grid_search_and_cross_validation(estimator):
    X, y = IRIS.data, IRIS.target
    model = make_pipeline(StandardScaler(), seeded(estimator))
    assert cross_val_score(model, X, y).mean() > 0.85
    name, values = ("fit_intercept", [True, False]) if hasattr(model[-1], "fit_intercept") else ("shrinkage", [None, 0.5])
    search = GridSearchCV(model, {f"{estimator.__name__.lower()}__{name}": values}, cv=3).fit(X, y)
    assert search.best_score_ > 0.85


def test_metadata_requests_name_the_weights_and_the_held_out_data():
    requests = separatrix.Perceptron().get_metadata_routing().fit.requests
    assert set(requests) == {"sample_weight", "X_val", "y_val"}
