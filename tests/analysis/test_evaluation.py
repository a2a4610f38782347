"""The figures of an evaluation: those of scikit-learn, with ties, one class, and labels that the model does not know."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import (
    AveragedPerceptron,
    Evaluation,
    FisherDiscriminant,
    KernelPerceptron,
    Model,
    Perceptron,
    TableFeatures,
    TextFeatures,
    VotedPerceptron,
    evaluate,
)
from separatrix.analysis.evaluating.counting import Tally
from separatrix.analysis.evaluating.display import as_text
from separatrix.analysis.evaluating.ranking import comparable

CLOSE = {"rel": 1e-12, "abs": 1e-12}


def random_rows(seed, K, n=300, n_labels=None, tied=False):
    """Return true classes (−1 beyond K), decisions, scores and probabilities of n rows."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n_labels or K, n)
    scores = rng.normal(size=(n, 1 if K == 2 else K)) + 0.8 * (true[:, None] == (1 if K == 2 else np.arange(K)))
    scores = np.round(scores, 1 if tied else 12)
    if K == 2:
        decided = (scores[:, 0] > 0).astype(np.int64)
        p = 1 / (1 + np.exp(-2 * scores[:, 0]))
        shares = np.column_stack([1 - p, p])
    else:
        decided = np.argmax(scores, axis=1)
        shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return true, decided, scores, shares


def evaluation_of(true, decided, scores, shares, K, batch=None, **settings):
    """Return the evaluation of rows, in batches; labels are "c0", "c1" …"""
    tally = Tally([f"c{k}" for k in range(K)], **settings)
    for begin in range(0, len(true), batch or len(true)):
        part = slice(begin, begin + (batch or len(true)))
        codes = np.where(true[part] < K, true[part], -1)
        unknown = [f"c{k}" for k in true[part][codes < 0]]
        tally.add(codes, decided[part], scores[part], shares[part], unknown=unknown)
    return tally.evaluation("rows")


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_labels", [1, None, 1000])
@pytest.mark.parametrize("K", [2, 3, 7])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_counts_equal_those_of_scikit_learn(K, n_labels, tied):
    true, decided, scores, shares = random_rows(K, K, n_labels=K + 2 if n_labels == 1000 else n_labels, tied=tied)
    evaluation = evaluation_of(true, decided, scores, shares, K)
    assert evaluation.rows == len(true)
    assert evaluation.accuracy == pytest.approx(metrics.accuracy_score(true, decided), **CLOSE)
    assert evaluation.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(true, decided), **CLOSE)
    for average, figure in (("macro", evaluation.macro_f1), ("weighted", evaluation.weighted_f1)):
        assert figure == pytest.approx(metrics.f1_score(true, decided, average=average, zero_division=0), **CLOSE)
    theirs = metrics.precision_recall_fscore_support(true, decided, labels=range(K), zero_division=0)
    for k, figures in enumerate(evaluation.by_class.values()):
        assert figures[:4] == pytest.approx([column[k] for column in theirs], **CLOSE)
    labels = range(max(true.max() + 1, K))
    matrix = metrics.confusion_matrix(true, decided, labels=labels)
    assert np.array_equal(evaluation.confusion, matrix[:K, :K])
    assert np.array_equal(evaluation.of_unknown, matrix[K:, :K].sum(axis=0))
    label, count = max(((k, int(np.sum(true == k))) for k in labels), key=lambda pair: pair[1])
    assert (evaluation.baseline.label, evaluation.baseline.accuracy) == (f"c{label}", count / len(true))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("n_labels", [None, 1000])
@pytest.mark.parametrize("K", [2, 3, 7])
def test_figures_of_scores_equal_those_of_scikit_learn(K, n_labels, tied):
    true, decided, scores, shares = random_rows(K, K, n_labels=K + 2 if n_labels else None, tied=tied)
    evaluation = evaluation_of(true, decided, scores, shares, K)
    known = true < K
    columns = np.column_stack([-scores, scores]) if K == 2 else comparable(scores, None)
    expected = [
        (
            metrics.roc_auc_score(true[known] == k, columns[known, k]),
            metrics.average_precision_score(true[known] == k, columns[known, k]),
        )
        for k in range(K)
    ]
    for figures, pair in zip(evaluation.by_class.values(), expected, strict=True):
        assert (figures.roc_auc, figures.average_precision) == pytest.approx(pair, **CLOSE)
    mean = np.mean(expected, axis=0) if K > 2 else expected[1]
    assert (evaluation.roc_auc, evaluation.average_precision) == pytest.approx(mean, **CLOSE)
    assert evaluation.undefined == {}


@pytest.mark.parametrize("K", [2, 3, 7])
def test_figures_of_probabilities_equal_those_of_scikit_learn(K):
    true, decided, scores, shares = random_rows(K, K)
    evaluation = evaluation_of(true, decided, scores, shares, K)
    assert evaluation.log_loss == pytest.approx(metrics.log_loss(true, shares), **CLOSE)
    brier = np.mean((shares[:, 1] - true) ** 2) if K == 2 else np.mean(np.sum((shares - np.eye(K)[true]) ** 2, axis=1))
    assert evaluation.brier == pytest.approx(brier, **CLOSE)
    hit, p = (true, shares[:, 1]) if K == 2 else (true == decided, shares.max(axis=1))
    observed, predicted = calibration_curve(hit, p, n_bins=10)
    bins = evaluation.calibration.bins()
    assert [one["observed"] for one in bins] == pytest.approx(observed, **CLOSE)
    assert [one["predicted"] for one in bins] == pytest.approx(predicted, **CLOSE)
    sizes = np.array([one["rows"] for one in bins])
    assert evaluation.calibration_error == pytest.approx(sizes @ np.abs(observed - predicted) / len(true), **CLOSE)


def test_certain_probabilities_have_the_log_loss_of_scikit_learn():
    shares = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
    true = np.array([0, 1, 1])
    tally = Tally(["no", "yes"])
    tally.add(true, np.array([0, 0, 1]), None, shares)
    assert tally.evaluation().log_loss == pytest.approx(metrics.log_loss(true, shares), **CLOSE)


@pytest.mark.parametrize("tied", [False, True])
def test_curves_equal_those_of_scikit_learn(tied):
    true, decided, scores, shares = random_rows(5, 2, tied=tied)
    ranking = evaluation_of(true, decided, scores, shares, 2).rankings[1]
    false_rate, true_rate, _ = metrics.roc_curve(true, scores[:, 0], drop_intermediate=False)
    assert np.allclose(ranking.roc(), (false_rate, true_rate), rtol=0, atol=1e-15)
    precision, recall, _ = metrics.precision_recall_curve(true, scores[:, 0])
    assert np.allclose(ranking.precision_recall(), (recall[:-1][::-1], precision[:-1][::-1]), rtol=0, atol=1e-15)


def test_rows_of_one_class_have_no_roc_curve_and_the_reason_is_given():
    true, decided, scores, shares = random_rows(1, 2, n_labels=1)
    evaluation = evaluation_of(true, decided, scores, shares, 2)
    assert (evaluation.roc_auc, evaluation.average_precision) == (None, None)
    assert evaluation.undefined == {
        "roc_auc": "the rows are of 1 class, and two are compared",
        "average_precision": "no row is of c1",
    }
    assert "undefined: the rows are of 1 class, and two are compared" in repr(evaluation)
    assert not evaluation.beats_baseline
    assert "the accuracy is no better than always predicting c0 (1.0000)" in evaluation.remarks()


def test_a_class_without_rows_is_left_out_of_the_means_and_named():
    true, decided, scores, shares = random_rows(2, 3, n_labels=2)
    evaluation = evaluation_of(true, decided, scores, shares, 3)
    both = [metrics.roc_auc_score(true == k, comparable(scores, None)[:, k]) for k in range(2)]
    assert evaluation.roc_auc == pytest.approx(np.mean(both), **CLOSE)
    assert "no row is of c2: balanced accuracy, ROC AUC and average precision leave them out" in evaluation.remarks()


def test_batches_change_nothing():
    rows = random_rows(3, 3, n_labels=4)
    one, many = evaluation_of(*rows, 3), evaluation_of(*rows, 3, batch=7)
    assert np.array_equal(one.confusion, many.confusion)
    assert one.roc_auc == many.roc_auc
    assert one.log_loss == pytest.approx(many.log_loss, **CLOSE)
    assert [error.row for error in one.errors] == [error.row for error in many.errors]


def test_beyond_the_room_for_scores_a_sample_is_stored_and_said():
    true, decided, scores, shares = random_rows(4, 2, n=20_000)
    whole = evaluation_of(true, decided, scores, shares, 2)
    some = evaluation_of(true, decided, scores, shares, 2, batch=300, most_scores=4_000)
    assert 1_500 < len(some.sample.codes) <= 4_000
    assert some.accuracy == whole.accuracy
    assert some.roc_auc == pytest.approx(whole.roc_auc, abs=0.03)
    assert any(f"are of {len(some.sample.codes):,} of 20,000 rows" in remark for remark in some.remarks())
    with pytest.raises(ValueError, match="a threshold needs all scores, and of 20,000 rows a sample was stored"):
        some.optimize("f1")


def test_the_interval_is_wilson_s():
    # Wilson (1927): for 9 of 10 and z = 1.96 the interval is about (0.596, 0.982).
    tally = Tally(["no", "yes"])
    tally.add(np.array([1] * 9 + [0]), np.ones(10, np.int64))
    low, high = tally.evaluation().interval
    assert (round(low, 4), round(high, 4)) == (0.5958, 0.9821)
    for k in (0, 10):  # never beyond 0 and 1
        tally = Tally(["no", "yes"])
        tally.add(np.ones(10, np.int64), np.array([1] * k + [0] * (10 - k)))
        assert tally.evaluation().interval[k // 10] == (0.0 if k == 0 else 1.0)


# Thresholds.


@pytest.mark.parametrize("positive", ["c0", "c1"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("criterion", ["f1", "balanced", "accuracy", "cost=1:5", "cost=7:0.5", "cost=0:1"])
def test_the_best_threshold_is_as_good_as_any(criterion, tied, positive):
    true, decided, scores, shares = random_rows(6, 2, n=120, n_labels=3, tied=tied)
    evaluation = evaluation_of(true, decided, scores, shares, 2, positive=positive)
    best = evaluation.optimize(criterion)
    label = int(positive[1])
    score = scores[:, 0] * (1 if label else -1)

    def value(threshold):
        known = true < 2  # labels that are no class are wrong whatever the threshold is
        y, predicted = true[known] == label, score[known] > threshold
        if criterion == "f1":
            return metrics.f1_score(y, predicted)
        if criterion == "balanced":
            return metrics.balanced_accuracy_score(y, predicted)
        if criterion == "accuracy":
            return metrics.accuracy_score(y, predicted)
        fp, fn = map(float, criterion[5:].split(":"))
        return -(fp * np.sum(predicted & ~y) + fn * np.sum(~predicted & y))

    candidates = np.concatenate([score, score + 1e-9, score - 1e-9, [0.0, -100.0, 100.0]])
    assert value(best.threshold) == pytest.approx(max(map(value, candidates)), **CLOSE)
    assert best.chosen_by == criterion
    assert any("optimistic" in remark for remark in best.remarks())
    assert metrics.accuracy_score(true, np.where(score > best.threshold, label, 1 - label)) == pytest.approx(best.accuracy)
    if criterion.startswith("cost"):
        assert best.cost(criterion) * best.rows == pytest.approx(-value(best.threshold))


def test_the_threshold_stays_0_where_nothing_is_better():
    tally = Tally(["no", "yes"])
    tally.add(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), np.array([[-3.0], [-1.0], [0.5], [2.0]]))
    assert {tally.evaluation().best_threshold(one) for one in ("f1", "balanced", "accuracy", "cost=2:1")} == {0.0}


def test_a_threshold_moves_decisions_and_the_most_confident_errors():
    scores = np.array([-2.0, -1.0, 0.5, 1.0, 3.0])[:, None]
    true = np.array([0, 1, 0, 1, 0])
    tally = Tally(["no", "yes"])
    tally.add(true, (scores[:, 0] > 0).astype(np.int64), scores)
    evaluation = tally.evaluation()
    assert [(error.row, error.true, error.predicted) for error in evaluation.errors] == [(4, 0, 1), (1, 1, 0), (2, 0, 1)]
    moved = evaluation.at(0.75)
    assert [(error.row, error.predicted) for error in moved.errors] == [(4, 1), (1, 0)]
    assert moved.confusion.tolist() == [[2, 1], [1, 1]]
    assert evaluation.threshold == 0.0 and moved.threshold == 0.75
    assert "0.75  (score of yes)" in repr(moved)


def test_wrong_thresholds_are_refused():
    two, three = (evaluation_of(*random_rows(1, K), K) for K in (2, 3))
    with pytest.raises(ValueError, match="two classes, but there are 3"):
        three.optimize("f1")
    with pytest.raises(ValueError, match="optimize='f2' is not f1, balanced, accuracy or cost=FP:FN"):
        two.optimize("f2")
    for wrong in ("cost", "cost=1", "cost=1:-2", "cost=0:0", "cost=a:b", "cost=nan:1"):
        with pytest.raises(ValueError, match="cost=1:5 means that a false negative costs 5 times"):
            two.optimize(wrong)
    with pytest.raises(ValueError, match="not a finite number"):
        two.at(float("nan"))
    with pytest.raises(ValueError, match="positive='c9' is not one of the classes c0 and c1"):
        Tally(["c0", "c1"], positive="c9")
    with pytest.raises(ValueError, match="there are 3 classes"):
        Tally(["c0", "c1", "c2"], positive="c1")


# Of classifiers.


def blobs(K, seed=0, n=200):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    return rng.normal(size=(n, 4)) + 1.5 * np.eye(max(4, K))[y, :4], np.array(["ham", "spam", "eggs", "toast"])[y]


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(random_state=0),
        Perceptron(random_state=0, tie="+1", multi_class="ovr"),
        AveragedPerceptron(random_state=0, calibrate="sigmoid"),
        VotedPerceptron(random_state=0),
        KernelPerceptron(random_state=0),
        FisherDiscriminant(),
        make_pipeline(StandardScaler(), AveragedPerceptron(random_state=0)),
        LogisticRegression(),
        GaussianNB(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_classifier_is_evaluated(model, K):
    X, y = blobs(K)
    X_test, y_test = blobs(K, 1)
    model.fit(X, y)
    evaluation = evaluate(model, X_test, y_test)
    assert isinstance(evaluation, Evaluation)
    assert evaluation.accuracy == pytest.approx(model.score(X_test, y_test), **CLOSE)
    assert (evaluation.log_loss is None) == (not hasattr(model, "predict_proba"))
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X_test)
        assert evaluation.log_loss == pytest.approx(metrics.log_loss(y_test, shares, labels=model.classes_), **CLOSE)
    if hasattr(model, "decision_function") and K == 2:
        auc = metrics.roc_auc_score(y_test == model.classes_[1], model.decision_function(X_test))
        assert evaluation.roc_auc == pytest.approx(auc, **CLOSE)


def test_a_pipeline_and_a_search_decide_at_the_threshold_of_their_last_step():
    X, y = blobs(2)
    pipeline = make_pipeline(StandardScaler(), AveragedPerceptron(random_state=0)).fit(X, y)
    pipeline[-1].threshold_ = 0.8
    search = GridSearchCV(pipeline, {"averagedperceptron__C": [0.1, 1.0]}, cv=3).fit(X, y)
    search.best_estimator_[-1].threshold_ = -0.5
    for model, threshold in ((pipeline, 0.8), (search, -0.5)):
        evaluation = evaluate(model, X, y)
        assert evaluation.threshold == threshold
        assert np.array_equal(evaluation.confusion, evaluation.at(threshold).confusion)
        assert evaluation.accuracy == np.mean(model.predict(X) == y)
        assert all(error.true != error.predicted for error in evaluation.errors)


def test_a_model_of_raw_texts_and_tables_is_evaluated_as_it_predicts():
    texts, labels = ["free money", "see you at noon"] * 20, ["spam", "ham"] * 20
    frame = pd.DataFrame({"message": texts, "size": np.arange(40) % 7})
    for data in (texts, frame):
        model = Model().fit(data, labels)
        assert evaluate(model, data, labels).accuracy == model.score(data, labels) == 1.0


def test_labels_that_the_model_does_not_know_are_wrong():
    X, y = blobs(2)
    model = Perceptron(random_state=0).fit(X, y)
    y = np.where(np.arange(len(y)) % 10 == 0, "eggs", y)
    evaluation = evaluate(model, X, y)
    assert evaluation.unknown_labels == {"eggs": 20}
    assert evaluation.accuracy == pytest.approx(model.score(X, y), **CLOSE)
    assert evaluation.macro_f1 == pytest.approx(metrics.f1_score(y, model.predict(X), average="macro"), **CLOSE)
    assert any("20 rows have labels unknown to the model, counted as wrong: eggs (20)" in r for r in evaluation.remarks())
    with pytest.raises(ValueError, match="none of 200 rows has a label that the model knows: a"):
        evaluate(model, X, ["a"] * 200)
    with pytest.raises(ValueError, match="none of 200 rows has a label that the model knows: 1"):
        evaluate(model, X, np.ones(200, int))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[200, 3\]"):
        evaluate(model, X, y[:3])
    with pytest.raises(Exception, match="not fitted"):
        evaluate(Perceptron(), X, y)


def test_texts_and_tables_are_evaluated_and_errors_show_their_values():
    texts = ["free money", "see you at noon", "money money", "lunch at noon"] * 5
    labels = ["spam", "ham", "spam", "ham"] * 5
    model = Model(Perceptron(random_state=0), TextFeatures(n_features=256)).fit(texts, labels)
    evaluation = evaluate(model, [*texts, "free money now"], [*labels, "ham"], positive="spam")
    assert evaluation.accuracy == pytest.approx(20 / 21)
    (error,) = evaluation.errors
    assert (error.values, error.row) == ({"text": "free money now"}, 20)
    frame = pd.DataFrame({"size": [1.0, 9.0] * 10, "from": ["shop", "home"] * 10})
    model = Model(AveragedPerceptron(random_state=0), TableFeatures()).fit(frame, ["spam", "ham"] * 10)
    evaluation = evaluate(model, frame.iloc[:3], ["spam", "ham", "ham"])
    (error,) = evaluation.errors
    assert (error.values, error.row) == ({"size": 1.0, "from": "shop"}, 2)


# As text and JSON.


def test_json_has_everything():
    true, decided, scores, shares = random_rows(8, 2, n_labels=3)
    evaluation = evaluation_of(true, decided, scores, shares, 2)
    document = json.loads(evaluation.optimize("f1").to_json(curves=True))
    assert document["accuracy_interval"] | {"low": 0, "high": 0} == {
        "low": 0,
        "high": 0,
        "confidence": 0.95,
        "method": "Wilson",
    }
    assert document["threshold"]["chosen_by"] == "f1" and document["positive"] == "c1"
    assert document["classes"]["c1"]["roc_auc"] == document["roc_auc"]
    assert document["curves"]["c1"]["roc"][0] == [0, 0] and document["curves"]["c1"]["roc"][-1] == [1, 1]
    assert "curves" not in evaluation.to_dict()
    assert sum(one["rows"] for one in document["calibration"]) == np.sum(true < 2)


@pytest.mark.parametrize("K", [2, 20, 200])
def test_it_is_readable_at_80_columns(K):
    evaluation = evaluation_of(*random_rows(9, K), K)
    lines = as_text(evaluation).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == f"rows: 300 rows, accuracy {evaluation.accuracy:.4f}"
    assert len(lines) < 60
    assert lines[1].startswith(f"95 % interval      {evaluation.interval[0]:.4f} to")
    assert repr(evaluation) == as_text(evaluation)


def test_a_notebook_shows_names_escaped():
    tally = Tally(["<b>no</b>", "yes"])
    tally.add(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([[-1.0], [-1.0], [1.0]]))
    html = tally.evaluation("<script>")._repr_html_()
    assert "<b>no" not in html and "<script>" not in html and "&lt;b&gt;no&lt;/b&gt;" in html
