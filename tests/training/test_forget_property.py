"""Forgetting rows equals training without them, bit for bit, whatever is trained, on what, and in which order."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import AveragedPerceptron, PassiveAggressive, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.engine import orders
from separatrix.engine.rules import MULTI_CLASS, ORDERS, RULES, TIES
from separatrix.modelfile.archive import learned_checksum
from separatrix.training.forgetting.checking import fault_of
from separatrix.training.forgetting.forget import forget
from separatrix.training.forgetting.refitting import Fit, fit_left, order_from
from support.scale import counts

LEARNERS = (Perceptron, AveragedPerceptron, VotedPerceptron, PocketPerceptron, PassiveAggressive)


def case(rng):
    """Return a learner, not fitted, data for it, the settings of its fit, and rows to forget."""
    n, d, K = int(rng.integers(6, 60)), int(rng.integers(1, 7)), int(rng.integers(2, 5))
    X = rng.integers(-3, 4, size=(n, d)).astype(float) if rng.random() < 0.4 else rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, K)) + rng.normal(size=(n, K)) * rng.choice([0.0, 0.5, 2.0]), axis=1)
    y[:K] = np.arange(K)
    if rng.random() < 0.3:
        y = y[np.argsort(y, kind="stable")]
    if rng.random() < 0.2:
        y = np.array(["red", "green", "blue", "grey"])[y]
    kind = rng.integers(4)
    X = sp.csr_matrix(X) if kind == 0 else X.astype(np.float32) if kind == 1 else np.asfortranarray(X) if kind == 2 else X
    settings = {}
    if rng.random() < 0.3:
        settings["sample_weight"] = rng.choice([0.0, 0.25, 1.0, 1.5, 3.0], size=n, p=[0.1, 0.2, 0.3, 0.2, 0.2])
        settings["sample_weight"][:K] = 1.0
    if rng.random() < 0.15:
        settings |= {"X_val": X[::3], "y_val": y[::3]}
    class_ = LEARNERS[rng.integers(len(LEARNERS))]
    parameters = {
        "C": "auto" if rng.random() < 0.05 else float(rng.choice([0.1, 1.0, 10.0])),
        "fit_intercept": bool(rng.random() < 0.7),
        "max_iter": int(rng.integers(1, 9)),
        "early_stopping": bool(rng.random() < 0.1 and n > 25),
        "n_iter_no_change": int(rng.integers(1, 4)),
        "class_weight": "balanced" if rng.random() < 0.1 else None,
        "calibrate": "sigmoid" if rng.random() < 0.03 else None,
        "random_state": int(rng.integers(1000)),
        "record": bool(rng.random() < 0.2),
        "multi_class": str(rng.choice([*MULTI_CLASS])),
    }
    parameters["tie"] = str(rng.choice([tie for tie in TIES if tie != "+1" or K == 2]))
    if class_ is PassiveAggressive:
        parameters |= {"shuffle": bool(rng.random() < 0.7), "loss": str(rng.choice(["hinge", "squared_hinge"]))}
        parameters |= {"average": [False, True, 5][rng.integers(3)], "tol": [None, 1e-3][rng.integers(2)], "max_iter": 15}
    else:
        rules = [rule for rule in RULES if parameters["C"] != "auto" or RULES[rule].has_C]
        parameters |= {"rule": str(rng.choice(rules)), "order": str(rng.choice(ORDERS)), "margin": float(rng.integers(3))}
    if class_ is AveragedPerceptron:
        parameters["average_from"] = int(rng.integers(1, 4))
    return class_(**parameters), Fit(X, y, settings)


def rows_to_forget(rng, model, fit):
    """Return one row or several; often rows on which no mistake was made, or the last ones of a class."""
    n = fit.X.shape[0]
    right = np.setdiff1d(np.arange(n), model.ledger_.example)
    choice = rng.random()
    if choice < 0.35 and right.size:
        return rng.choice(right, size=min(len(right), int(rng.integers(1, 4))), replace=False)
    if choice < 0.4 and len(np.unique(fit.y)) > 2:
        return np.flatnonzero(fit.y == fit.y[0])
    return rng.choice(n, size=int(rng.integers(1, max(2, n // 5))), replace=False)


def is_plain(model, fit, rows):
    """Tell whether nothing is fitted from the data but the weights, so that a weight of 0 does what forgetting does."""
    fitted = model.C == "auto" or model.class_weight is not None or model.calibrate is not None
    inside = model.early_stopping and "X_val" not in fit.settings
    return not fitted and not inside and set(np.delete(fit.y, rows)) == set(fit.y)


def check_against_weights_of_zero(model, fit, rows, after):
    """Compare with a plain fit in which the rows have a weight of 0, and so are not presented."""
    n = fit.X.shape[0]
    weight = np.array(fit.settings.get("sample_weight", np.ones(n)))
    weight[rows] = 0.0
    whole = type(model)(**model.get_params()).fit(fit.X, fit.y, **fit.settings | {"sample_weight": weight})
    number = np.cumsum(~np.isin(np.arange(n), rows)) - 1
    then, now = whole.run_, after.run_
    for name in ("coef", "intercept"):
        for weights in ("weights", "last_weights"):
            one, other = (run.weights() if weights == "weights" else run.last.weights() for run in (then, now))
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(then.late.W, now.late.W)
    assert all(np.array_equal(a, b) for a, b in zip(then.last.spreads(), now.last.spreads(), strict=True))
    for column in ("step", "up", "down", "correction", "score", "shrink"):
        assert np.array_equal(getattr(then.ledger, column), getattr(now.ledger, column)), column
    assert np.array_equal(number[then.ledger.example], now.ledger.example)
    assert then.ledger.pass_starts == now.ledger.pass_starts and then.ledger.cut == now.ledger.cut
    assert np.array_equal(then.tally, now.tally) and then.ledger.kept == now.ledger.kept
    for name in ("n_seen_", "n_iter_", "n_errors_", "converged_", "cycle_", "mistakes_per_pass_", "radius_"):
        assert getattr(whole, name) == getattr(after, name), name
    for name in ("validation_scores_", "pocket_mistakes_"):
        assert getattr(whole, name, None) == getattr(after, name, None)
    assert np.array_equal(whole.decision_function(fit.X), after.decision_function(fit.X))


def forget_a_case(seed):
    rng = np.random.default_rng([22, seed])
    orders_in_runs = rng.random() < 0.3
    learner, fit = case(rng)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if orders_in_runs:  # as it is in large data: neighbours are visited together
            patch.setattr(orders, "FEWEST_RUNS", 8)
        try:
            model = learner.fit(fit.X, fit.y, **fit.settings)
        except ValueError:
            return None  # weights that outgrow float64, or a class too small to hold any out
        kinds = []
        for again in range(1 + (rng.random() < 0.3)):  # a model that has forgotten can forget again
            rows = np.sort(rows_to_forget(rng, model, fit))
            if len(set(np.delete(fit.y, rows))) < 2:
                return kinds
            before = learned_checksum(model)
            try:
                after, receipt = forget(model, rows, fit.X, fit.y, **fit.settings)
            except ValueError as error:
                assert any(
                    why in str(error)
                    for why in ("hold out", "outgrew", "every sample_weight", "held-out scores", "not among")
                )
                return kinds
            assert learned_checksum(model) == before
            if is_plain(model, fit, rows) and again == 0:
                check_against_weights_of_zero(model, fit, rows, after)
            fit = fit.without(rows)
            fresh = fit_left(model, order_from(receipt["order"]), fit)
            assert learned_checksum(fresh) == learned_checksum(after) == receipt["after"]["learned"]
            if rng.random() < 0.2:
                assert fault_of(json.loads(json.dumps(receipt)), fit.X, fit.y, **fit.settings) is None
            kinds.append(
                "beginning" if receipt["replay"]["why"] else "free" if not receipt["replay"]["presented"] else "part"
            )
            model = after
    return kinds


@pytest.mark.parametrize("count", counts(quick=150, slow=1000, soak=10_000))
def test_forgetting_rows_equals_training_without_them(count):
    kinds = [kind for seed in range(count) for kind in forget_a_case(seed) or ()]
    assert len(kinds) > 0.8 * count
    for kind in ("beginning", "free", "part"):
        assert kinds.count(kind) > 0.1 * len(kinds), kind
