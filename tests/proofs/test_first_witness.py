"""The first witness is one of all, whatever the order in which a search would meet them: compared with all there are."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from separatrix import certify
from separatrix.proofs.search.first_witness import MOST_EQUATIONS
from separatrix.proofs.search.rationals import dependency
from support.scale import scaled


def vectors_of(X, codes, n_classes, bias):
    """The pairs (row, rival) and their vectors, by the definition."""
    rows = [[*map(int, x), *([1] if bias else [])] for x in X]
    if n_classes == 2:
        return [((i, 1 - c), [v if c == 1 else -v for v in rows[i]]) for i, c in enumerate(codes)]
    out = []
    for i, c in enumerate(codes):
        for rival in range(n_classes):
            if rival != c:
                blocks = [[0] * len(rows[0]) for _ in range(n_classes)]
                blocks[c], blocks[rival] = rows[i], [-v for v in rows[i]]
                out.append(((i, rival), [value for block in blocks for value in block]))
    return out


def first_by_enumeration(pairs):
    """The lexicographically smallest weights from the last pair on, of all witnesses that cannot do without a pair."""
    best = None
    for size in range(1, len(pairs[0][1]) + 2):
        for which in combinations(range(len(pairs)), size):
            weights = dependency(np.array([pairs[t][1] for t in which], object))
            if weights is None or min(weights) <= 0:
                continue
            total = sum(weights)
            dense = [Fraction(0)] * len(pairs)
            for t, weight in zip(which, weights, strict=True):
                dense[t] = weight / total
            if best is None or dense[::-1] < best[::-1]:
                best = dense
    return None if best is None else {pairs[t][0]: weight for t, weight in enumerate(best) if weight}


@pytest.mark.parametrize(("n_classes", "bias"), [(2, True), (2, False), (3, True)])
def test_it_is_the_smallest_of_all_witnesses(n_classes, bias):
    rng = np.random.default_rng(n_classes + bias)
    compared = 0
    for _ in range(scaled(25)):
        n = int(rng.integers(4, 11 if n_classes == 2 else 7))
        X = rng.integers(-2, 3, (n, 2))
        codes = np.append(rng.integers(0, n_classes, n - n_classes), np.arange(n_classes))
        expected = first_by_enumeration(vectors_of(X, codes, n_classes, bias))
        certificate = certify(X.astype(float), codes, fit_intercept=bias)
        if expected is None:
            assert certificate.verdict == "separable"
            continue
        witness = certificate.witness
        weights = dict(zip(zip(witness.rows, witness.rivals, strict=True), witness.weights, strict=True))
        is_decisive = bias or len({codes[row] for row, _ in expected}) == 2
        if is_decisive:  # else both a first witness and one of the other side are needed
            assert weights == expected
        assert certificate.verify(X.astype(float), codes)
        compared += 1
    assert compared >= 5


def test_it_does_not_depend_on_the_scale_of_the_features_or_on_later_rows():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    witness = certify(X, y).witness
    last = max(witness.rows) + 1
    assert last < 40
    assert certify(X[:last], y[:last]).witness == witness == certify(X * [4.0, 0.25, 1024.0], y).witness


def test_larger_problems_keep_the_witness_that_was_found():
    rng = np.random.default_rng(6)
    X, y = rng.integers(-3, 4, (200, MOST_EQUATIONS)), rng.integers(0, 2, 200)
    certificate = certify(X.astype(float), y)
    assert certificate.verdict == "inseparable" and certificate.verify(X.astype(float), y)
