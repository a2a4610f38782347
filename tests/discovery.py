"""Finds the public estimators, so that a new one is tested the day it is exported."""

import inspect

from sklearn.base import BaseEstimator

import separatrix
from separatrix.learner import LinearLearner

ESTIMATORS = [
    thing
    for name in separatrix.__all__
    if inspect.isclass(thing := getattr(separatrix, name)) and issubclass(thing, BaseEstimator)
    if not thing().__sklearn_tags__().input_tags.string  # text features have tests of their own
]
ONLINE = [estimator for estimator in ESTIMATORS if hasattr(estimator, "partial_fit")]
LEARNERS = [estimator for estimator in ESTIMATORS if issubclass(estimator, LinearLearner)]
