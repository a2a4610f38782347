"""How many cases the tests try: SEPARATRIX_TEST_SCALE multiplies every count, SEPARATRIX_PROPERTY_SCALE those of properties.

Both are 1 unless they are set.
"""

import os

import pytest

SCALE = float(os.environ.get("SEPARATRIX_TEST_SCALE", "1"))
PROPERTY_SCALE = float(os.environ.get("SEPARATRIX_PROPERTY_SCALE", "1"))


def scaled(count):
    """Return a count times the scale, at least 1."""
    return max(1, round(count * SCALE))


def property_examples(count):
    """Return how many examples Hypothesis tries for a property: a count times both scales, at least 1."""
    return max(1, round(count * SCALE * PROPERTY_SCALE))


def counts(**count_of):
    """Return the values of a parameter: a count for each of `quick`, `slow` and `soak`, marked accordingly."""
    marks = {"quick": (), "slow": pytest.mark.slow, "soak": pytest.mark.soak}
    return [pytest.param(scaled(count), id=name, marks=marks[name]) for name, count in count_of.items()]
