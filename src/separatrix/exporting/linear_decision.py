"""The numbers that a linear classifier decides with: what every export starts from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from separatrix.engine.pipelines import parts_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats


class LinearDecision(NamedTuple):
    """The weights, biases and classes of a linear classifier.

    A threshold of the classifier is subtracted from the bias, so that exported scores decide by their sign.
    `zero_is_positive` tells whether a score of exactly 0 of two classes means `classes[1]`; `slope` is that of the
    calibrated probabilities, or None.
    """

    coef: Floats
    intercept: Floats
    classes: Array
    names: list[str] | None
    zero_is_positive: bool
    slope: float | None


def linear_decision(model: Classifier) -> LinearDecision:
    """Return the numbers of a fitted classifier, or of a `Model` without a featurizer; raise if it is not linear."""
    estimator, features = parts_of(model)
    name = type(estimator).__name__
    if features is not None:
        raise ValueError(
            "the classifier can be exported, but its featurizer cannot: export model.estimator and pass it features"
        )
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"this {name} is not fitted: call fit before exporting it")
    if not hasattr(estimator, "coef_") or getattr(estimator, "stores_rows", False):
        raise ValueError(f"a {name} is not a linear function of the features: it cannot be exported")
    if len(estimator.classes_) < 2:
        raise ValueError("a classifier of one class has no boundary to export")
    names = getattr(estimator, "feature_names_in_", None)
    threshold = getattr(estimator, "threshold_", None) if len(estimator.classes_) == 2 else None
    if threshold and hasattr(estimator, "slope_"):
        raise ValueError(
            f"this {name} is calibrated and predicts by a threshold of {threshold:.6g}: no export has probabilities and "
            "another threshold; set threshold_ = None, or train without calibrate"
        )
    return LinearDecision(
        np.array(estimator.coef_, dtype=np.float64, order="C"),
        np.array(estimator.intercept_, dtype=np.float64) - (threshold or 0.0),
        estimator.classes_.copy(),
        None if names is None else [str(name) for name in names],
        len(estimator.classes_) == 2 and getattr(estimator, "tie", "") == "+1",
        getattr(estimator, "slope_", None),
    )
