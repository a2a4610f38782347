"""Forgetting rows of data in memory: of a classifier's `fit`, and of a `Model` that fits features before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.data.errors import DataError
from separatrix.data.labels import without_label
from separatrix.engine.orders import Gaps
from separatrix.engine.parcel import Parcel
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Ints, feature_names_of
from separatrix.learners.forgetting import Forgetting, check_data
from separatrix.learners.linear_base import LinearLearner
from separatrix.modelfile.model import unfitted
from separatrix.training.forgetting.rows import check_count, left
from separatrix.training.memory import InMemory
from separatrix.training.recipe import fit_model


@dataclass
class Fit:
    """What a fit was given: examples, labels, and the settings of `fit`."""

    X: Any
    y: Any
    settings: dict[str, Any]

    def without(self, forgotten: Ints) -> Fit:
        """Return what is left."""
        weight = self.settings.get("sample_weight")
        changed = {} if weight is None else {"sample_weight": left(np.asarray(weight), forgotten)}
        return Fit(left(self.X, forgotten), left(self.y, forgotten), self.settings | changed)


def refitted(learner: LinearLearner, fit: Fit, forgotten: Ints, why: str = "") -> tuple[LinearLearner, Forgetting]:
    """Return the learner that is fitted on what is left, and how; `why` it must start from the beginning, or ""."""
    problem = trained_on(learner, fit)
    forgetting = Forgetting.of(learner, problem, forgotten, why)
    return fit_left(learner, forgetting, fit.without(forgotten)), forgetting


def fit_left(learner: LinearLearner, forgetting: Forgetting, fit: Fit) -> LinearLearner:
    """Return a new learner with the same parameters that is fitted on what is left; a threshold stays."""
    fresh = learner.unfitted()
    fresh.fit_without(forgetting, fit.X, fit.y, **fit.settings)
    if learner.threshold_ is not None and len(fresh.classes_) == 2:
        fresh.threshold_ = learner.threshold_
    return fresh


def trained_on(learner: LinearLearner, fit: Fit) -> Problem:
    """Return the problem that a learner was fitted on; raise where these data show that they are not it."""
    validation = fit.settings.get("X_val") is not None
    if hasattr(learner, "validation_scores_") and not validation and not learner.early_stopping:
        raise DataError("the model was fitted with held-out examples of its own: pass X_val and y_val again")
    if learner.early_stopping and not validation and learner.random_state is None:
        raise DataError("the held-out examples were drawn with random_state=None, and cannot be drawn again")
    fresh = learner.unfitted()
    _, classes, problem, _ = fresh.read_problem(fit.X, fit.y, **fit.settings)
    check_count(learner, problem.rows.n)
    run = learner.run_
    same_rows = (
        problem.rows.d == run.last.d and problem.rows.survey(problem.weight, feature_names_of(fresh)) == run.radius_squared
    )
    same_labels = np.array_equal(classes, learner.classes_)
    same_weights = np.array_equal(np.flatnonzero(problem.weight == 0.0), run.left_out)
    for same, what in ((same_rows, "X"), (same_labels, "y"), (same_weights, "sample_weight, X_val or random_state")):
        if not same:
            raise DataError(f"{what} is not what the model was trained on")
    check_data(learner, problem)
    return problem


class _Recorder:
    """Stands for a classifier in a fit of features, and keeps what it would be fitted on."""

    given: Fit

    def fit(self, X: Any, y: Any, **settings: Any) -> _Recorder:
        """Keep what comes in."""
        self.given = Fit(X, y, settings)
        return self


def featurized(features: Any, fit: Fit) -> tuple[Fit, Any, dict[str, Any]]:
    """Fit features with the parameters of some others; return what the classifier gets, the features, and facts."""
    recorder = _Recorder()
    if features.public_name() == "TableFeatures":
        fitted, facts = fit_model(recorder, unfitted(features), fit.X, fit.y, **fit.settings)
        return recorder.given, fitted["features"], facts
    fresh, settings = unfitted(features), dict(fit.settings)
    X = fresh.fit(fit.X, fit.y).transform(fit.X)
    if settings.get("X_val") is not None:
        settings["X_val"] = fresh.transform(settings["X_val"])
    return Fit(X, fit.y, settings), fresh, {}


def labelled(features: Any, fit: Fit) -> Ints:
    """Return the rows that have a label: a table's others are left out."""
    n = fit.X.shape[0] if hasattr(fit.X, "shape") else len(fit.y)
    missing = None
    if features.public_name() == "TableFeatures":
        missing = without_label(InMemory(fit.X, fit.y, as_table=True).labels)
    return np.arange(n) if missing is None else np.flatnonzero(~missing)


def order_document(forgetting: Forgetting, kind: str, n: int) -> dict[str, Any]:
    """Return the order with its gaps as JSON values."""
    return {
        "kind": kind,
        "seed": forgetting.seed,
        "examples_once": n + len(forgetting.gaps.numbers),
        "forgotten": forgetting.gaps.numbers.tolist(),
        "shuffled_runs": forgetting.gaps.run,
    }


def order_from(document: dict[str, Any]) -> Forgetting:
    """Return the order of a receipt, without an earlier training."""
    numbers = np.array(document["forgotten"], np.int64)
    return Forgetting(int(document["seed"]), Gaps(numbers, int(document["shuffled_runs"])))


def parameters_document(learner: LinearLearner) -> dict[str, Any]:
    """Return the class and the parameters of a learner as JSON values."""
    parcel = Parcel()
    values = {name: parcel.put_value(name, value) for name, value in learner.get_params(deep=False).items()}
    threshold = {} if learner.threshold_ is None else {"threshold": float(learner.threshold_)}
    return {"learner": learner.public_name(), "parameters": values} | threshold


def figures_of(learner: LinearLearner) -> dict[str, Any]:
    """Return what a receipt says of a training in figures."""
    return {
        "rows": int(learner.run_.rows_seen),
        "mistakes": int(learner.n_mistakes_),
        "passes": int(learner.n_iter_),
        "converged": bool(learner.converged_),
    }
