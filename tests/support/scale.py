"""How many cases the tests try: SEPARATRIX_TEST_SCALE multiplies every count, 1 unless it is set."""

import os

import pytest

SCALE = float(os.environ.get("SEPARATRIX_TEST_SCALE", "1"))


def scaled(count):
    """Return a count times the scale, at least 1."""
    return max(1, round(count * SCALE))


def counts(**count_of):
    """Return the values of a parameter: a count for each of `quick`, `slow` and `soak`, marked accordingly."""
    marks = {"quick": (), "slow": pytest.mark.slow, "soak": pytest.mark.soak}
    return [pytest.param(scaled(count), id=name, marks=marks[name]) for name, count in count_of.items()]
