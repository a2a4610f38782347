"""NumPy's masked arrays: what is masked is refused, and never read as the number below the mask."""

import numpy as np
import pytest

from separatrix import certify
from support.public_estimators import ERROR_DRIVEN, ESTIMATORS

X = np.array([[1.0, 2.0], [2.0, -1.0], [-1.0, 0.5], [0.0, -2.0], [3.0, 1.0], [-2.0, -2.0]])
Y = np.array([0, 1, 0, 1, 1, 0])
MASKED = np.ma.array(X, mask=np.arange(12).reshape(6, 2) == 3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_masked_values_are_not_read_as_numbers(estimator):
    fitted = estimator().fit(np.ma.array(X), np.ma.array(Y))
    for read in (lambda: estimator().fit(MASKED, Y), lambda: fitted.predict(MASKED), lambda: certify(MASKED, Y)):
        with pytest.raises(ValueError, match="X is a masked array with 1 masked value: fill in"):
            read()
    with pytest.raises(ValueError, match="y is a masked array with 2 masked values"):
        estimator().fit(X, np.ma.array(Y, mask=[1, 1, 0, 0, 0, 0]))


@pytest.mark.parametrize("estimator", ERROR_DRIVEN)
def test_masked_weights_are_refused(estimator):
    with pytest.raises(ValueError, match="sample_weight is a masked array"):
        estimator().fit(X, Y, sample_weight=np.ma.array(np.ones(6), mask=[1, 0, 0, 0, 0, 0]))
