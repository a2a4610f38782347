"""What the plots read from a fitted classifier: its classes, its scores, and its weights if it is linear."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from separatrix.engine.labels import Codes, encode_as, labels_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats
from separatrix.engine.weights import Weights
from separatrix.modelfile.model import Model


def classifier_of(estimator: Classifier) -> Any:
    """Return the fitted classifier itself: the last step of a pipeline, the best of a search, the estimator of a `Model`."""
    if isinstance(estimator, type):
        raise TypeError(f"pass a fitted {estimator.__name__}, not the class: {estimator.__name__}().fit(X, y)")
    last = getattr(estimator, "best_estimator_", estimator)
    if isinstance(last, Model):
        last = last.estimator
    if isinstance(last, Pipeline):
        last = last[-1]
    if not hasattr(last, "predict"):
        raise TypeError(f"{type(estimator).__name__} is not a classifier: it has no predict")
    check_is_fitted(last)
    if not hasattr(last, "classes_"):
        raise TypeError(f"{type(last).__name__} is not a classifier: it has no classes_")
    return last


def names_of(estimator: Classifier, d: int, feature_names: Any = None) -> list[str]:
    """Return a name for each of d features: the caller's, those of the fit, or x0, x1, …"""
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    if feature_names is None:
        return [f"x{j}" for j in range(d)]
    if len(feature_names) != d:
        raise ValueError(f"there are {len(feature_names)} feature names for {d} features")
    return [str(name) for name in feature_names]


def codes_of(estimator: Classifier, X: Any, y: Any, who: str) -> tuple[Array, Codes]:
    """Return the classes of a fitted classifier, and the number of the class of each label."""
    classes = classifier_of(estimator).classes_
    return classes, encode_as(classes, labels_of(X, y, who))


def scores_of(estimator: Classifier, X: Any) -> Floats:
    """Return scores of shape (rows, outputs): one output for two classes, else one per class.

    The threshold of a classifier is subtracted, so that the sign decides. One without `decision_function` gets a score of 1
    for the predicted class and −1 for the others.
    """
    classes = classifier_of(estimator).classes_
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if scores.ndim == 1 or scores.shape[1] == len(classes):
            threshold = getattr(getattr(estimator, "estimator", estimator), "threshold_", None) or 0.0
            return scores.reshape(len(scores), -1) - (threshold if len(classes) == 2 else 0.0)
    predicted = np.asarray(estimator.predict(X))
    scores = np.where(predicted[:, None] == classes[None], 1.0, -1.0)
    return scores if len(classes) > 2 else scores[:, 1:]


def leads_of(scores: Floats) -> Floats:
    """Return by how much each class leads its best rival, shape (rows, classes); for two classes −score and score."""
    if scores.shape[1] == 1:
        return np.hstack([-scores, scores])
    order = np.sort(scores, axis=1)
    rival = np.where(scores == order[:, -1:], order[:, -2:-1], order[:, -1:])
    return np.asarray(scores - rival)


def linear_weights(estimator: Classifier, X: Any, scores: Floats) -> Weights | None:
    """Return the weights if the scores of X are ⟨w,x⟩ + b, else None: votes and kernels have no such weights."""
    coef, intercept = getattr(estimator, "coef_", None), getattr(estimator, "intercept_", None)
    if coef is None or intercept is None or np.ndim(coef) != 2 or np.shape(coef) != (scores.shape[1], X.shape[1]):
        return None
    weights = Weights(np.asarray(coef, dtype=np.float64), np.atleast_1d(np.asarray(intercept, dtype=np.float64)))
    linear_scores = np.asarray(X @ weights.coef.T) + weights.intercept
    scale = float(abs(X).max()) * np.abs(weights.coef).sum() + np.abs(weights.intercept).sum()
    return weights if np.allclose(linear_scores, scores, rtol=1e-6, atol=1e-9 * float(scale)) else None


def has_features(estimator: Classifier) -> bool:
    """Return whether the rows of X are examples, and not kernel values between examples."""
    return not get_tags(classifier_of(estimator)).input_tags.pairwise
