"""Probabilities are calibrated on examples that were not trained on, and never contradict the prediction."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from separatrix import AveragedPerceptron, Perceptron, VotedPerceptron
from separatrix.engine.rows import NO_WEIGHT
from separatrix.learners.calibration import FOLDS, _folds, find_slope, probabilities
from support.public_estimators import LEARNERS, expected_failures

every_learner = pytest.mark.parametrize("learner", LEARNERS)


@pytest.mark.slow
@parametrize_with_checks(
    [learner(random_state=0, calibrate="sigmoid") for learner in LEARNERS], expected_failed_checks=expected_failures
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def overlapping(n_classes, n=600):
    X, y = make_classification(
        n, 8, n_informative=6, n_classes=n_classes, n_clusters_per_class=1, class_sep=0.7, flip_y=0.1, random_state=1
    )
    return train_test_split(X, y, random_state=0, stratify=y)


@every_learner
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_the_most_probable_class_is_the_predicted_one_and_the_log_loss_beats_the_class_shares(learner, n_classes, form):
    X, X_test, y, y_test = overlapping(n_classes)
    model = learner(random_state=0, calibrate="sigmoid").fit(form(X), y)
    shares = model.predict_proba(form(X_test))
    assert shares.shape == (len(X_test), n_classes)
    assert np.allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(form(X_test)))
    naive = np.tile(np.bincount(y) / len(y), (len(y_test), 1))
    assert log_loss(y_test, shares) < log_loss(y_test, naive)


@given(st.data(), st.sampled_from([1, 3, 10]), st.floats(1e-12, 1e12), st.sampled_from(["mistake", "+1", "-1"]))
def test_argmax_agrees_at_ties_and_near_ties(data, n_outputs, slope, tie):
    some = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 5e-324, -5e-324, 1 + 2**-52, 1e-17, 1e300]), st.floats(-1e3, 1e3))
    scores = data.draw(arrays(np.float64, (4, n_outputs), elements=some))
    decided = Perceptron(tie=tie).decide(scores, max(2, n_outputs))
    shares = probabilities(scores, slope, decided)
    assert np.array_equal(shares.argmax(axis=1), decided)
    assert np.all((shares >= 0) & (shares <= 1))
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12


@every_learner
@pytest.mark.parametrize("tie", ["mistake", "+1", "-1"])
def test_a_tie_goes_where_predict_sends_it(learner, tie):
    X, y = [[1.0], [-1.0], [2.0], [-2.0]], ["no", "yes", "no", "yes"]
    model = learner(random_state=0, calibrate="sigmoid", fit_intercept=False, tie=tie).fit(X, y)
    assert model.decision_function([[0.0]]).tolist() == [0.0]
    shares = model.predict_proba([[0.0]])
    assert model.classes_[shares.argmax(axis=1)] == model.predict([[0.0]])
    assert np.allclose(shares, 0.5)


@every_learner
def test_the_weights_are_those_of_an_uncalibrated_fit(learner):
    X, _, y, _ = overlapping(3)
    one, other = (learner(random_state=5, calibrate=c).fit(X, y) for c in (None, "sigmoid"))
    assert np.array_equal(one.coef_, other.coef_)
    assert list(one.ledger_) == list(other.ledger_)


def test_predict_proba_is_there_only_with_calibrate():
    X, _, y, _ = overlapping(2)
    model = Perceptron(random_state=0).fit(X, y)
    assert not hasattr(model, "predict_proba") and hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as refusal:
        model.predict_proba(X)
    assert "before fit" in str(refusal.value)
    model.set_params(calibrate="sigmoid")
    with pytest.raises(NotFittedError, match="fitted with calibrate=None"):
        model.predict_proba(X)
    assert model.fit(X, y).predict_proba(X).shape == (450, 2)
    assert not hasattr(model.set_params(calibrate=None).fit(X, y), "slope_")
    with pytest.raises(ValueError, match="'calibrate' parameter"):
        Perceptron(calibrate="isotonic").fit(X, y)


def test_a_stream_is_refused():
    X, _, y, _ = overlapping(2)
    model = AveragedPerceptron(calibrate="sigmoid")
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as refusal:
        model.fit(X, y).partial_fit(X, y)
    assert "a stream has no held-out scores" in str(refusal.value)


def test_the_callers_held_out_examples_are_used_where_given():
    X, X_val, y, y_val = overlapping(2)
    model = AveragedPerceptron(random_state=0, calibrate="sigmoid").fit(X, y, X_val=X_val, y_val=y_val)
    assert model.slope_ == find_slope(model.decision_function(X_val)[:, None], y_val, NO_WEIGHT)
    assert model.slope_ != clone(model).fit(X, y).slope_
    voted = VotedPerceptron(random_state=0, calibrate="sigmoid").fit(X, y, X_val=X_val, y_val=y_val)
    assert voted.slope_ == find_slope(voted.decision_function(X_val)[:, None], y_val, NO_WEIGHT)


def test_a_warm_start_needs_held_out_examples_of_the_callers():
    X, X_val, y, y_val = overlapping(2)
    model = Perceptron(random_state=0, calibrate="sigmoid", warm_start=True).fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match="needs X_val and y_val"):
        model.fit(X, y)
    assert np.array_equal(model.coef_, before)
    model.fit(X, y, X_val=X_val, y_val=y_val)


def test_the_slope_is_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=(200_000, 1))
    codes = (rng.random(200_000) < 1 / (1 + np.exp(-0.7 * scores[:, 0]))).astype(np.int32)
    assert find_slope(scores, codes, NO_WEIGHT) == pytest.approx(0.7, rel=0.01)
    assert find_slope(1000 * scores, codes, NO_WEIGHT) == pytest.approx(0.0007, rel=0.01)
    weight = np.where(rng.random(200_000) < 0.5, 1.0, 0.0)
    kept = weight == 1.0
    assert find_slope(scores, codes, weight) == pytest.approx(find_slope(scores[kept], codes[kept], NO_WEIGHT), rel=1e-3)


def test_scores_that_say_nothing_give_even_chances():
    scores = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    slope = find_slope(scores, np.array([0, 1, 1, 0], np.int32), NO_WEIGHT)
    assert np.allclose(probabilities(scores, slope, np.array([1, 0, 1, 0])), 0.5, atol=1e-3)


def test_held_out_examples_that_are_all_right_do_not_make_it_certain():
    scores = np.array([[1.0], [-1.0]] * 20)
    slope = find_slope(scores, np.array([1, 0] * 20, np.int32), NO_WEIGHT)
    assert 0.9 < probabilities(scores[:1], slope, np.array([1]))[0, 1] < 0.99


def test_folds_hold_out_every_example_once_but_a_classs_only_one_and_those_of_no_weight():
    codes = np.array([0] * 7 + [1] * 8 + [2], np.int32)
    weight = np.ones(16)
    weight[3] = 0.0
    fold = _folds(codes, weight, 0)
    assert np.flatnonzero(fold == -1).tolist() == [3, 15]
    assert sorted(np.bincount(fold[fold >= 0])) == [2, 3, 3, 3, 3]
    assert set(fold) == {-1, *range(FOLDS)}
    with pytest.raises(ValueError, match="no class has two examples"):
        Perceptron(calibrate="sigmoid").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(("load", "worst"), [(load_breast_cancer, 0.13), (load_digits, 0.16)])
def test_as_good_as_a_cross_validated_sigmoid_with_an_offset(load, worst):
    X, y = load(return_X_y=True)
    X = X / np.abs(X).max(axis=0).clip(1e-9)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    ours = AveragedPerceptron(random_state=0, calibrate="sigmoid").fit(X, y)
    theirs = CalibratedClassifierCV(AveragedPerceptron(random_state=0), ensemble=False, cv=5).fit(X, y)
    loss, peer = (log_loss(y_test, model.predict_proba(X_test)) for model in (ours, theirs))
    assert loss < worst and loss < peer + 0.01


@every_learner
def test_with_early_stopping_in_a_grid_search_by_log_loss(learner):
    X, X_test, y, _ = overlapping(3)
    model = learner(random_state=0, calibrate="sigmoid", early_stopping=True)
    search = GridSearchCV(model, {"max_iter": [1, 5]}, scoring="neg_log_loss", cv=3).fit(X, y)
    assert -search.best_score_ < np.log(3)
    assert np.array_equal(search.classes_[search.predict_proba(X_test).argmax(axis=1)], search.predict(X_test))


def test_class_weights_move_the_probabilities_with_the_boundary():
    X, X_test, y, _ = overlapping(2)
    model = AveragedPerceptron(random_state=0, calibrate="sigmoid", class_weight={0: 1, 1: 4}).fit(X, y)
    plain = AveragedPerceptron(random_state=0, calibrate="sigmoid").fit(X, y)
    assert model.predict_proba(X_test)[:, 1].mean() > plain.predict_proba(X_test)[:, 1].mean()


def test_a_slope_does_not_outlive_the_weights_it_was_found_for():
    X, X_test, y, _ = overlapping(2)
    model = Perceptron(random_state=0, calibrate="sigmoid").fit(X, y)
    model.set_params(calibrate=None).partial_fit(X, y).set_params(calibrate="sigmoid")
    with pytest.raises(NotFittedError, match="fit it again"):
        model.predict_proba(X_test)


def test_too_few_examples_for_early_stopping_within_the_folds_are_refused_in_one_sentence():
    X, y = make_classification(12, random_state=0)
    model = AveragedPerceptron(calibrate="sigmoid", early_stopping=True, random_state=0)
    with pytest.raises(ValueError, match=r"^calibrate trains on 4 of 5 parts .* validation_fraction=0\.1 leaves .* X_val"):
        model.fit(X, y)
    larger = clone(model).set_params(validation_fraction=0.3).fit(X, y)
    elsewhere = clone(model).fit(X, y, X_val=X, y_val=y)
    for fitted in (larger, elsewhere):
        assert np.array_equal(np.argmax(fitted.predict_proba(X), axis=1), fitted.predict(X))
