"""`C="auto"`: the C that was chosen alone gives the same model; and `PassiveAggressive`, the drop-in, is the rule."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale

from separatrix import AveragedPerceptron, PassiveAggressive, Perceptron
from separatrix.engine.rules import RULES
from separatrix.learners import auto_c
from support.datasets import FORMS
from support.public_estimators import LEARNERS

# C="auto".


@pytest.mark.parametrize("rule", [rule for rule, entry in RULES.items() if entry.has_C])
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_chosen_c_alone_gives_the_same_model(rule, learner):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300] % 3
    auto = learner(rule=rule, C="auto", random_state=0, max_iter=4).fit(X, y)
    assert auto.C_ in auto.C_scores_ and len(auto.C_scores_) == 8
    assert auto.C_scores_[auto.C_] == max(auto.C_scores_.values())
    alone = clone(auto).set_params(C=auto.C_).fit(X, y)
    assert np.array_equal(auto.coef_, alone.coef_)
    assert not hasattr(alone, "C_")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("rule", [rule for rule, entry in RULES.items() if entry.has_C])
def test_machines_side_by_side_are_those_of_each_c(form, classes, rule, monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = form(X[:200] / 16), y[:200] % classes
    grid = [0.01, 0.3, 5.0]
    monkeypatch.setattr(auto_c, "grid_for", lambda *_: grid)
    monkeypatch.setattr(auto_c, "MOST_BYTES", 20_000)
    caught = {}
    train = auto_c.Machines.train

    def watched(self, *arguments):
        found = train(self, *arguments)
        caught.update(zip(self.presenter.Cs.tolist(), found, strict=True))
        return found

    monkeypatch.setattr(auto_c.Machines, "train", watched)
    auto = AveragedPerceptron(rule=rule, C="auto", random_state=0, max_iter=3)
    auto.fit(X, y, X_val=X, y_val=y)
    for C in grid:
        alone = AveragedPerceptron(rule=rule, C=C, random_state=0, max_iter=3).fit(X, y)
        assert np.allclose(caught[C].coef, alone.coef_, rtol=1e-6, atol=1e-9)
        assert auto.C_scores_[C] == pytest.approx(alone.score(X, y), abs=0.011)


def test_a_stream_uses_the_c_with_the_fewest_errors_so_far():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16, y[:400] % 3
    auto = AveragedPerceptron(rule="pa1", C="auto").partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    one_by_one = AveragedPerceptron(rule="pa1", C="auto")
    for i in range(len(X)):
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.array_equal(auto.coef_, one_by_one.coef_) and auto.C_ == one_by_one.C_
    alone = AveragedPerceptron(rule="pa1", C=auto.C_).partial_fit(X, y)
    assert np.array_equal(auto.coef_, alone.coef_)
    assert auto.C_scores_[auto.C_] == 1 - alone.n_errors_ / 400 == max(auto.C_scores_.values())
    after_fit = AveragedPerceptron(rule="pa1", C="auto", random_state=0).fit(X, y)
    chosen = after_fit.C_
    after_fit.partial_fit(X, y)
    assert after_fit.C_ == chosen and after_fit.ledger_.rule.C == chosen


def test_auto_needs_a_rule_with_a_c():
    X, y = load_breast_cancer(return_X_y=True)
    for learn in (Perceptron(C="auto").fit, Perceptron(C="auto").partial_fit):
        with pytest.raises(ValueError, match=r'C="auto" chooses for rules that have a C .*rule=\'perceptron\''):
            learn(X, y)


# PassiveAggressive.


def test_the_drop_in_takes_every_parameter_of_scikit_learns():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(pytest.importorskip("sklearn.linear_model"), "PassiveAggressiveClassifier", None)
        if theirs is None:
            pytest.skip("this scikit-learn has removed the class")
        ours, parameters = PassiveAggressive(), theirs().get_params()
    assert parameters.keys() <= ours.get_params().keys()
    assert {name: ours.get_params()[name] for name in parameters} == parameters


@pytest.mark.parametrize(("loss", "rule"), [("hinge", "pa1"), ("squared_hinge", "pa2")])
@pytest.mark.parametrize("average", [False, True, 40])
def test_the_drop_in_is_the_rule(loss, rule, average):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300] % 3
    ours = PassiveAggressive(loss=loss, average=average, shuffle=False, tol=None, max_iter=3, C=0.5).fit(X, y)
    kind = AveragedPerceptron if average else Perceptron
    same = kind(rule=rule, order="cyclic", max_iter=3, C=0.5).fit(X, y)
    if average == 40:
        assert ours.ledger_.average_after == 39
        assert np.array_equal(ours.ledger_.weights(X).coef, ours.coef_)
    else:
        assert np.array_equal(ours.coef_, same.coef_)


def test_the_drop_in_stops_when_the_loss_stalls():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = PassiveAggressive(C=0.01, random_state=0).fit(X, y)
    assert 6 <= model.n_iter_ < 200 and model.score(X, y) > 0.96
    assert PassiveAggressive(C=0.01, random_state=0, tol=None, max_iter=250).fit(X, y).n_iter_ == 250


def test_held_out_examples_that_are_only_looked_at_change_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    alone = PassiveAggressive(C=0.01, random_state=0).fit(X[:400], y[:400])
    watched = PassiveAggressive(C=0.01, random_state=0).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    assert watched.n_iter_ == alone.n_iter_ == len(watched.validation_scores_)
    assert np.array_equal(watched.coef_, alone.coef_)


def test_what_a_fit_did_not_find_is_gone():
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    model = PassiveAggressive(C="auto", random_state=0, max_iter=2).partial_fit(X, y)
    assert len(model._runs) == len(model.C_scores_) > 1
    model.fit(X, y)
    assert not hasattr(model, "_runs")
    chosen = model.C_
    model.set_params(tie="+1")
    with pytest.raises(ValueError, match='tie="\\+1" says'):
        model.fit(X[:60] * 9, np.arange(60) % 3)
    assert model.C_ == chosen
    model.set_params(C=1.0).fit(X, y)
    assert not hasattr(model, "C_") and not hasattr(model, "C_scores_")


def test_a_stream_that_begins_badly_is_refused_before_a_grid_is_made_of_it():
    with pytest.raises(ValueError, match="X contains NaN at row 0, column 1"):
        Perceptron(rule="pa1", C="auto").partial_fit([[1.0, np.nan], [2.0, 1.0]], [0, 1])


def test_two_examples_leave_no_choice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Perceptron(rule="pa1", C="auto").fit([[1.0], [2.0]], [0, 1])
    assert set(model.C_scores_.values()) == {0.0} and model.C_ == sorted(model.C_scores_)[5]


@pytest.mark.parametrize(("name", "value"), [("loss", "squared_hinge"), ("C", 3.0), ("tie", "+1")])
def test_the_drop_in_names_its_own_parameters(name, value):
    X, y = [[0.0], [1.0]], [0, 1]
    streamed, warm = PassiveAggressive().partial_fit(X, y), PassiveAggressive(warm_start=True).fit(X, y)
    for go_on in (streamed.set_params(**{name: value}).partial_fit, warm.set_params(**{name: value}).fit):
        with pytest.raises(ValueError, match=f"^{name} was .* when learning began"):
            go_on(X, y)
