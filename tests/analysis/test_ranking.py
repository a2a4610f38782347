"""Rows of several classes are ranked by what decides between the classes, and not by raw scores."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_iris

from separatrix import AveragedPerceptron, evaluate


@pytest.mark.parametrize("calibrate", [None, "sigmoid"])
def test_rows_of_several_classes_are_ranked_by_what_decides(calibrate):
    X, y = load_iris(return_X_y=True)
    model = AveragedPerceptron(rule="pa1", random_state=0, calibrate=calibrate).fit(X[::2], y[::2])
    evaluation, scores = evaluate(model, X[1::2], y[1::2]), model.decision_function(X[1::2])
    ahead = scores - np.column_stack([np.max(np.delete(scores, k, axis=1), axis=1) for k in range(3)])
    ranked = ahead if calibrate is None else model.predict_proba(X[1::2])
    expected = [metrics.roc_auc_score(y[1::2] == k, ranked[:, k]) for k in range(3)]
    assert evaluation.roc_auc == pytest.approx(np.mean(expected), rel=1e-12)
    assert evaluation.roc_auc > 0.99 > 0.9 > np.mean([metrics.roc_auc_score(y[1::2] == k, scores[:, k]) for k in range(3)])
    if calibrate:
        assert evaluation.roc_auc == pytest.approx(metrics.roc_auc_score(y[1::2], ranked, multi_class="ovr"), rel=1e-12)
