"""Parameters without scikit-learn: the same values pass, the same values are refused, as scikit-learn's own checks say."""

import math
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
import pytest
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint

from separatrix.engine.parameters import (
    NotFittedError,
    ParameterError,
    Parameterized,
    boolean,
    choices,
    none,
    number,
    seed,
    verbosity,
    whole,
)

VALUES = [None, "auto", "l2", "", 0, 1, 2, -1, 2**32, 10**400, True, np.True_, 0.0, 0.5, 1.0, -0.5, math.inf, math.nan, [1]]
VALUES += [-math.inf, np.int64(3), np.float32(0.5), b"l2", np.random.RandomState(0), 1j]
PAIRS = [
    (none, [None]),
    (boolean, ["boolean"]),
    (verbosity, ["verbose"]),
    (seed, ["random_state"]),
    (choices("auto", "l2"), [StrOptions({"auto", "l2"})]),
    (whole(1), [Interval(Integral, 1, None, closed="left")]),
    (whole(0, 2), [Interval(Integral, 0, 2, closed="both")]),
    (whole(), [Integral]),
    (number(0), [Interval(Real, 0, None, closed="left")]),
    (number(0, closed="right"), [Interval(Real, 0, None, closed="right")]),
    (number(0, 1, closed="neither"), [Interval(Real, 0, 1, closed="neither")]),
    (number(0, 1, closed="both") | choices("auto"), [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})]),
    (number(closed="neither"), [Interval(Real, None, None, closed="neither")]),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[str(ours) for ours, _ in PAIRS])
def test_a_constraint_allows_what_scikit_learns_allows(ours, theirs):
    constraints = [make_constraint(constraint) for constraint in theirs]
    for value in VALUES:
        assert ours.allows(value) == any(constraint.is_satisfied_by(value) for constraint in constraints), value


class Inner(Parameterized):
    constraints: ClassVar = {"size": whole(1)}

    def __init__(self, size=1):
        self.size = size


class Outer(Parameterized):
    saved_as = "Public"
    constraints: ClassVar = {"rate": number(0, closed="neither") | choices("auto")}

    def __init__(self, *, rate=1.0, inner=None):
        self.rate = rate
        self.inner = inner


def test_parameters_are_read_set_and_checked():
    outer = Outer(inner=Inner())
    assert outer.get_params(deep=False) == {"inner": outer.inner, "rate": 1.0}
    assert outer.set_params(rate="auto", inner__size=3).get_params()["inner__size"] == 3
    outer.check_parameters()
    with pytest.raises(
        ParameterError, match=r"The 'rate' parameter of Public must be .*\(0, inf\) or 'auto'. Got 0 instead"
    ):
        outer.set_params(rate=0).check_parameters()
    with pytest.raises(ParameterError, match="'size' parameter of Inner must be an int"):
        Inner(0.5).check_parameters()
    with pytest.raises(ParameterError, match="'speed' is not a parameter of Public"):
        outer.set_params(speed=1)
    assert issubclass(ParameterError, TypeError) and issubclass(ParameterError, ValueError)
    assert issubclass(NotFittedError, AttributeError) and issubclass(NotFittedError, ValueError)
