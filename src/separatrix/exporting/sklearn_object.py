"""A fitted linear classifier as a scikit-learn object."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.protocols import Classifier
from separatrix.exporting.linear_decision import linear_decision


def to_sklearn(model: Classifier) -> Any:
    """Return a scikit-learn classifier that predicts the same, and pickles without this library.

    It is a `LinearSVC`, or a `LogisticRegression` with the same probabilities if the classifier was calibrated.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.exporting import to_sklearn
    >>> model = Perceptron(order="cyclic").fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1])
    >>> to_sklearn(model).predict([[1, 1], [1, 0]]).tolist()
    [1, 0]
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    coef, intercept, classes, names, zero_is_positive, slope = linear_decision(model)
    if zero_is_positive:
        # scikit-learn gives a score of 0 to the first class, so b moves up to the next number: w·x + b = 0 becomes > 0.
        intercept = np.nextafter(intercept, np.inf)
    classifier: Any = LinearSVC() if slope is None else LogisticRegression()
    classifier.coef_, classifier.intercept_ = (coef, intercept) if slope is None else (slope * coef, slope * intercept)
    classifier.classes_, classifier.n_features_in_ = classes, coef.shape[1]
    classifier.n_iter_ = np.zeros(1, np.int32)
    if names is not None:
        classifier.feature_names_in_ = np.array(names, dtype=object)
    return classifier
