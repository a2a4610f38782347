"""Finds the public estimators, so that a new one is tested the day it is exported."""

import inspect

from sklearn.base import BaseEstimator

import separatrix
from separatrix.learners.classifier import ErrorDrivenClassifier
from separatrix.learners.linear_base import LinearLearner

ESTIMATORS = [
    thing
    for name in separatrix.__all__
    if inspect.isclass(thing := getattr(separatrix, name)) and issubclass(thing, BaseEstimator)
    if not thing().__sklearn_tags__().input_tags.string  # text features have tests of their own
]
LEARNERS = [
    estimator for estimator in ESTIMATORS if issubclass(estimator, LinearLearner) and "order" in estimator().get_params()
]
ONLINE = [estimator for estimator in LEARNERS if hasattr(estimator, "partial_fit")]

ERROR_DRIVEN = [estimator for estimator in ESTIMATORS if issubclass(estimator, ErrorDrivenClassifier)]


def seeded(estimator, seed=0, **parameters):
    """An estimator whose chance is fixed, where it has any."""
    instance = estimator(**parameters)
    return instance.set_params(random_state=seed) if "random_state" in instance.get_params() else instance


def weights_of(fitted):
    """What a fit found: its weights or, in the space of a kernel, the coefficients of the mistakes."""
    return fitted.coef_ if hasattr(fitted, "coef_") else fitted.dual_coef_


ONLINE_WEIGHTS = (
    "a weight scales the correction; an online learner that meets an example twice is not the same as one correction of 2"
)
SOLVED_TO_TOL = "the weights of two equal problems agree as far as tol asks, not to the check's nine decimals"


def expected_failures(estimator):
    if isinstance(estimator, separatrix.FisherDiscriminant):
        return {}
    why = ONLINE_WEIGHTS if isinstance(estimator, tuple(ERROR_DRIVEN)) else SOLVED_TO_TOL
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
