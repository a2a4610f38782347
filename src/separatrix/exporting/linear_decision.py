"""The numbers that a linear classifier decides with: what every export starts from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.pipelines import parts_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats


class LinearDecision(NamedTuple):
    """The weights, biases and classes of a linear classifier, and the featurizer before it or None.

    Of two classes, a score above `threshold` means `classes[1]`, and `tie_is_positive` tells whether the threshold itself
    does; `slope` is that of the calibrated probabilities, or None.
    """

    coef: Floats
    intercept: Floats
    classes: Array
    names: list[str] | None
    threshold: float
    tie_is_positive: bool
    slope: float | None
    features: Any


def linear_decision(model: Classifier) -> LinearDecision:
    """Return the numbers of a fitted classifier, of a `Model`, or of a pipeline of our parts; raise if it is not linear."""
    estimator, features = parts_of(model)
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        raise ValueError(f"this {name} is not fitted: call fit before exporting it")
    is_linear = hasattr(estimator, "coef_") and hasattr(estimator, "intercept_")
    if not is_linear or getattr(estimator, "stores_rows", False):
        raise ValueError(f"a {name} is not a linear function of the features: it cannot be exported")
    if len(estimator.classes_) < 2:
        raise ValueError("a classifier of one class has no boundary to export")
    names = getattr(estimator, "feature_names_in_", None)
    has_threshold = len(estimator.classes_) == 2 and getattr(estimator, "threshold_", None) is not None
    return LinearDecision(
        np.array(estimator.coef_, dtype=np.float64, order="C"),
        np.array(estimator.intercept_, dtype=np.float64),
        estimator.classes_.copy(),
        None if names is None else [str(name) for name in names],
        float(estimator.threshold_) if has_threshold else 0.0,
        len(estimator.classes_) == 2 and getattr(estimator, "tie", "") == "+1",
        getattr(estimator, "slope_", None),
        features,
    )
