"""Weights of classes and of examples: a larger one pulls towards its class, in every rule and at every C."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PassiveAggressiveClassifier, SGDClassifier
from sklearn.metrics import balanced_accuracy_score

from separatrix import AveragedPerceptron, PassiveAggressive, Perceptron, load, save
from separatrix.cluster import fit
from separatrix.engine.rules import RULES

every_rule = pytest.mark.parametrize("rule", RULES)


def overlapping(n_classes, seed, n=400, d=5, last=0.25):
    """Gaussian classes that overlap; the last one has a share of `last`."""
    rng = np.random.default_rng([n_classes, seed])
    y = rng.choice(n_classes, size=n, p=[*[(1 - last) / (n_classes - 1)] * (n_classes - 1), last])
    return 1.5 * np.eye(n_classes, d)[y] + rng.normal(size=(n, d)), y


@every_rule
@pytest.mark.parametrize("learner", [AveragedPerceptron, Perceptron])
@pytest.mark.parametrize(("n_classes", "how"), [(2, "joint"), (3, "joint"), (3, "ovr")])
def test_the_predicted_share_rises_with_the_weight(rule, learner, n_classes, how):
    for C in (0.001, 1.0, 100.0) if RULES[rule].has_C else (1.0,):
        shares = []
        for weight in (1, 2, 5, 10, 50):
            settings = {"rule": rule, "C": C, "max_iter": 5, "multi_class": how, "class_weight": {n_classes - 1: weight}}
            found = []
            for seed in range(10):
                X, y = overlapping(n_classes, seed)
                found.append(np.mean(learner(random_state=seed, **settings).fit(X, y).predict(X) == n_classes - 1))
            shares.append(np.mean(found))
        assert np.all(np.diff(shares) > 0), (C, shares)
        assert shares[-1] > shares[0] + 0.25, (C, shares)


@every_rule
@pytest.mark.parametrize("positives", [0.02, 0.1])
def test_balanced_weights_reach_the_balanced_accuracy_of_logistic_regression(rule, positives):
    (X, y), (X_test, y_test) = (overlapping(2, seed, n, last=positives) for seed, n in ((0, 8000), (1, 20_000)))
    theirs = LogisticRegression(class_weight="balanced").fit(X, y)
    ours = AveragedPerceptron(rule=rule, max_iter=10, class_weight="balanced", random_state=0).fit(X, y)
    without = AveragedPerceptron(rule=rule, max_iter=10, random_state=0).fit(X, y)
    reached, peer, before = (balanced_accuracy_score(y_test, model.predict(X_test)) for model in (ours, theirs, without))
    assert reached > peer - 0.01
    assert before < peer - 0.05


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("average", [False, True])
def test_passive_aggressive_has_the_weights_of_scikit_learn(loss, n_classes, average):
    for C, seed in itertools.product((0.01, 1.0, 10.0), range(3)):
        X, y = overlapping(n_classes, seed, n=120)
        X = np.column_stack([X, np.ones(len(X))])  # they leave the constant out of ‖x‖²
        sample_weight = np.random.default_rng(seed).integers(1, 5, len(y)) / 2.0
        settings = {"fit_intercept": False, "shuffle": False, "max_iter": 3, "tol": None, "average": average}
        if n_classes == 2:  # of more, they weigh a class in its own problem only
            settings["class_weight"] = {1: 5.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn 1.10 removes it
            theirs = PassiveAggressiveClassifier(C=C, loss=loss, **settings).fit(X, y)
        ours = PassiveAggressive(C=C, loss=loss, multi_class="ovr", **settings).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
        rate = "pa1" if loss == "hinge" else "pa2"
        theirs = SGDClassifier(loss="hinge", penalty=None, learning_rate=rate, eta0=C, **settings)
        theirs.fit(X, y, sample_weight=sample_weight)
        ours.fit(X, y, sample_weight=sample_weight)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)


def test_passive_aggressive_continues_with_such_weights_from_a_file(tmp_path):
    X, y = overlapping(2, 0)
    settings = {"loss": "squared_hinge", "class_weight": {1: 3.0}}
    whole, half = PassiveAggressive(**settings), PassiveAggressive(**settings)
    whole.partial_fit(X, y, classes=[0, 1])
    save(half.partial_fit(X[:200], y[:200], classes=[0, 1]), tmp_path / "half.sepx")
    rest = load(tmp_path / "half.sepx").estimator.partial_fit(X[200:], y[200:])
    assert np.array_equal(whole.coef_, rest.coef_)


@pytest.mark.parametrize("rule", ["pa", "pa2", "arow"])
def test_weights_relative_to_the_heaviest_are_the_same_in_a_stream_a_file_and_a_shard(rule, tmp_path):
    X, y = overlapping(3, 0)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0, 20.0], len(y))
    settings = {"rule": rule, "class_weight": {2: 2.0}, "record": True}
    whole = AveragedPerceptron(order="cyclic", max_iter=1, **settings).fit(X, y, sample_weight=weight)
    stream = AveragedPerceptron(**settings)
    for begin, end in itertools.pairwise([0, 1, 50, 51, 200, 400]):
        stream.partial_fit(X[begin:end], y[begin:end], classes=[0, 1, 2], sample_weight=weight[begin:end])
        save(stream, tmp_path / "stream.sepx")
        stream = load(tmp_path / "stream.sepx").estimator
    assert np.array_equal(whole.coef_, stream.coef_)
    stream = pickle.loads(pickle.dumps(stream))
    assert np.array_equal(whole.partial_fit(X, y).coef_, stream.partial_fit(X, y).coef_)
    balanced = {"rule": rule, "class_weight": "balanced", "max_iter": 3, "random_state": 0}
    one = AveragedPerceptron(**balanced).fit(X, y)
    assert np.array_equal(one.coef_, fit(AveragedPerceptron(**balanced), [(X, y)]).estimator.coef_)
    shards = fit(AveragedPerceptron(**balanced), [(X[:200], y[:200]), (X[200:], y[200:])]).estimator
    assert shards.score(X, y) == pytest.approx(one.score(X, y), abs=0.03)


@every_rule
def test_weights_of_one_change_nothing_and_a_weight_of_zero_leaves_out(rule):
    X, y = overlapping(3, 1, n=100)
    model = Perceptron(rule=rule, order="cyclic", max_iter=3)
    plain = model.fit(X, y).coef_
    assert np.array_equal(plain, model.fit(X, y, sample_weight=np.ones(100)).coef_)
    some = np.arange(100) % 3 > 0
    left_out = model.fit(X, y, sample_weight=some.astype(float)).coef_
    assert np.array_equal(left_out, model.fit(X[some], y[some]).coef_)


@pytest.mark.parametrize(
    ("rule", "same"), [("pa", 1.0), ("pa1", 2.0), ("pa2", 1.0), ("perceptron", 2.0), ("margin", 2.0), ("arow", 1.0)]
)
def test_what_a_weight_does_to_the_first_correction(rule, same):
    X, y = np.array([[3.0, 4.0], [-1.0, 0.0]]), [1, 0]

    def first(weight, learner=Perceptron, **settings):
        model = learner(max_iter=1, fit_intercept=False, **settings).fit(X, y, sample_weight=[weight, 1e-300])
        return (model.ledger_.at(1, X).coef / X[0])[0, 0]

    plain = first(1.0, rule=rule, order="cyclic")
    assert first(2.0, rule=rule, order="cyclic") == same * plain
    assert first(0.5, rule=rule, order="cyclic") == 0.5 * plain
    for loss, name in (("hinge", "pa1"), ("squared_hinge", "pa2")):
        if name == rule:
            assert first(2.0, PassiveAggressive, loss=loss, shuffle=False) == 2.0 * plain


def test_heavy_weights_that_overflow_are_refused():
    X, y = overlapping(2, 0)
    model = PassiveAggressive(loss="squared_hinge", C=100.0, class_weight={1: 1000.0}, max_iter=200, tol=None)
    with pytest.raises(ValueError, match="outgrew float64"):
        model.fit(X, y)


@every_rule
def test_a_run_that_an_earlier_version_pickled_goes_on(rule):
    X, y = overlapping(2, 0)
    model = AveragedPerceptron(rule=rule, random_state=0, max_iter=3).fit(X, y)
    state = model.run_.__getstate__()
    expected = state.pop("heaviest")
    earlier = object.__new__(type(model.run_))
    earlier.__setstate__(state)
    assert np.array_equal(earlier.heaviest, expected)
