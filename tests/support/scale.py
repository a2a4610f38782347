"""How many cases the tests try: SEPARATRIX_TEST_SCALE multiplies every count, 1 unless it is set."""

import os

import pytest

SCALE = float(os.environ.get("SEPARATRIX_TEST_SCALE", "1"))


def scaled(count):
    """Return a count times the scale, at least 1."""
    return max(1, round(count * SCALE))


def few_and_many(few, many):
    """Return the values of a parameter: a count for the default run, and the full count for the soak."""
    return [pytest.param(scaled(few), id="few"), pytest.param(scaled(many), id="many", marks=pytest.mark.soak)]
