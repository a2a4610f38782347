"""Finds the public estimators, so that a new one is tested the day it is exported."""

import inspect

from sklearn.base import BaseEstimator

import separatrix
from separatrix.classifier import ErrorDrivenClassifier
from separatrix.learner import LinearLearner

ESTIMATORS = [
    thing
    for name in separatrix.__all__
    if inspect.isclass(thing := getattr(separatrix, name)) and issubclass(thing, BaseEstimator)
]
ONLINE = [estimator for estimator in ESTIMATORS if hasattr(estimator, "partial_fit")]
LEARNERS = [estimator for estimator in ESTIMATORS if issubclass(estimator, LinearLearner)]
ERROR_DRIVEN = [estimator for estimator in ESTIMATORS if issubclass(estimator, ErrorDrivenClassifier)]


def weights_of(fitted):
    """What a fit found: its weights or, in the space of a kernel, the coefficients of the mistakes."""
    return fitted.coef_ if hasattr(fitted, "coef_") else fitted.dual_coef_
