"""Decimal numbers that are hardest to round: beside the middle between two neighbouring float64, and at the ends."""

import random
from fractions import Fraction
from math import inf, nextafter

import numpy as np
import pytest

from separatrix.data.formats.svmlight import parse
from separatrix.data.streams import PADDING, Block
from separatrix.web.server.reading.feature_index import FeatureIndex
from support.scale import counts

PART = 2_000


def decimal(value, digits, direction):
    """Return a positive fraction with so many digits, rounded down, or one unit of the last place above that."""
    exponent = len(str(value.numerator)) - len(str(value.denominator)) - digits + 1
    scaled = value / Fraction(10) ** exponent
    whole = scaled.numerator // scaled.denominator + direction
    return f"{whole}e{exponent}"


def hard(draw):
    """Return a number whose digits stay near the middle of two floats, for as many digits as are written."""
    kind = draw.random()
    if kind < 0.1:
        return repr(draw.choice([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.0, 2.0**53 + 2, 1e22, 1e23]))
    if kind < 0.2:
        return f"{draw.randrange(10**19)}e{draw.randint(-340, 300)}"
    low = abs(np.frombuffer(draw.randbytes(8), np.float64)[0].item())
    low = low if low < 1.7e308 else draw.random()
    middle = (Fraction(low) + Fraction(nextafter(low, inf))) / 2
    return decimal(middle, draw.choice([17, 18, 19, 19, 20, 25, 40, 400]), draw.choice([0, 1]))


def block(text):
    return Block(np.frombuffer(text + bytes(PADDING), np.uint8), len(text))


@pytest.mark.parametrize("number", counts(quick=2_000, soak=300_000))
def test_hard_decimals_are_rounded_as_float_rounds_them(number):
    draw, done = random.Random(300), 0
    while done < number:
        texts = [text for text in (hard(draw) for _ in range(min(PART, number - done))) if float(text) < inf]
        done += len(texts)
        parsed = parse(block("".join(f"0 1:{text}\n" for text in texts).encode()), 1)
        assert parsed.n_faults == 0
        assert parsed.values.tobytes() == np.array([*map(float, texts)]).tobytes()
        small = [text for text in texts if float(text) < 1e100]
        lines = FeatureIndex(()).read("".join(f'{{"features":{{"a":{t}}},"label":"x"}}\n' for t in small[:50]).encode(), 20)
        if lines is not None:  # else one of them is left to orjson
            assert lines.data.tobytes() == np.array([*map(float, small[:50])]).tobytes()
