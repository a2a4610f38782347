"""The checker's arithmetic against plain fractions: signs, sums, lengths and the radius, at every scale of float64."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix.proofs.exact_examples import ExactExamples
from separatrix.proofs.proof import Witness
from support.scale import counts

SCALES = [(-1074, 1023), (-600, 600), (-440, -420), (425, 440), (-3, 3)]
TINY = [Fraction(1, 1 << bits) for bits in (30, 60, 200)]


def random_examples(rng):
    """Return X, as the checker gets it and as fractions, codes, K and bias."""
    K, d, bias = int(rng.choice([2, 2, 3, 4])), int(rng.integers(1, 6)), bool(rng.random() < 0.5)
    n = int(rng.integers(K, 8))
    while True:
        base = rng.integers(-4, 5, (n, d)).astype(float) if rng.random() < 0.5 else rng.standard_normal((n, d))
        base[-1] = base[0] * (1 + 2.0**-52) if rng.random() < 0.3 else base[-1]
        shape = [(1, 1), (1, d), (n, 1), (n, d)][rng.integers(4)]
        with np.errstate(all="ignore"):
            X = np.ldexp(base, rng.integers(*SCALES[rng.integers(len(SCALES))], shape))
            X = X.astype(np.float32) if rng.random() < 0.1 else X
            if np.isfinite(np.abs(X.astype(float)).sum()):
                break
    rows = [[Fraction(value) for value in row] + [Fraction(1)] * bias for row in X.tolist()]
    codes = np.r_[np.arange(K), rng.integers(0, K, n - K)]
    return sp.csr_array(X) if rng.random() < 0.4 else X, rows, codes, K, bias


def random_direction(rng, rows, K):
    """Return vectors of small numbers and powers of two, of which some are chosen so that a row scores 0, or nearly so."""

    def number():
        power = int(rng.integers(-1200, 1200)) if rng.random() < 0.3 else int(rng.integers(-3, 3))
        return Fraction(int(rng.integers(-5, 6))) * Fraction(2) ** power

    vectors = [[number() for _ in rows[0]] for _ in range(1 if K == 2 else K)]
    x, j = rows[int(rng.integers(len(rows)))], int(rng.integers(len(rows[0])))
    for w in vectors if x[j] and rng.random() < 0.5 else []:
        rest = sum((a * b for a, b in zip(w, x, strict=True)), Fraction(0)) - w[j] * x[j]
        w[j] = -rest / x[j] * (1 + Fraction(int(rng.integers(-1, 2)), 1 << int(rng.integers(30, 2000))))
    return vectors


def random_sum(rng, rows, codes, K):
    """Return a witness with weights of all sizes, and its vectors Σλa."""
    pairs = [(i, rival) for i in range(len(rows)) for rival in range(K) if rival != codes[i]]
    chosen = [pairs[p] for p in rng.permutation(len(pairs))[: rng.integers(1, len(pairs) + 1)]]
    sizes = [int(rng.integers(-1200, 1200)) if rng.random() < 0.2 else int(rng.integers(-3, 60)) for _ in chosen]
    weights = [Fraction(int(rng.integers(1, 6)), 3) * Fraction(2) ** size for size in sizes]
    vectors = [[Fraction(0)] * len(rows[0]) for _ in range(1 if K == 2 else K)]
    for (i, rival), weight in zip(chosen, weights, strict=True):
        for j, value in enumerate(rows[i]):
            if K == 2:
                vectors[0][j] += weight * value * (1 if codes[i] else -1)
            else:
                vectors[codes[i]][j] += weight * value
                vectors[rival][j] -= weight * value
    return Witness(*map(tuple, zip(*chosen, strict=True)), tuple(weights)), vectors


@pytest.mark.parametrize("count", counts(quick=150, slow=3000))
def test_the_checker_computes_what_fractions_do(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        X, rows, codes, K, bias = random_examples(rng)
        examples = ExactExamples(X, codes, K, bias)
        if rng.random() < 0.5:
            vectors = random_direction(rng, rows, K)
            direction = tuple(map(tuple, vectors))
        else:
            direction, vectors = random_sum(rng, rows, codes, K)
            assert examples.total(direction).length() ** 2 >= sum(value * value for w in vectors for value in w)
            nonzero = {(k, j): value for k, w in enumerate(vectors) for j, value in enumerate(w) if value}
            assert examples.combination(direction) == nonzero
        scores = [[sum((a * b for a, b in zip(w, x, strict=True)), Fraction(0)) for w in vectors] for x in rows]
        leads = {(i, 0): s[0] if codes[i] else -s[0] for i, s in enumerate(scores)}
        if K > 2:
            leads = {(i, r): s[codes[i]] - s[r] for i, s in enumerate(scores) for r in range(K) if r != codes[i]}
        some = abs(list(leads.values())[int(rng.integers(len(leads)))])
        for threshold in (Fraction(0), some, *(some * (1 + sign * tiny) for tiny in TINY for sign in (-1, 1))):
            signs = np.concatenate([block for _, _, block in examples.signs(direction, threshold)])
            for place, lead in leads.items():
                assert signs[place] == (lead > threshold) - (lead < threshold), (rows, codes, direction, threshold, place)
        square = max(sum(value * value for value in x) for x in rows)
        assert examples.within_radius(square) and examples.within_radius(square * (1 + Fraction(1, 10**10)))
        if square:
            assert not any(examples.within_radius(square * (1 - tiny)) for tiny in TINY)
            assert not examples.within_radius(square * (1 + Fraction(1, 10**8)))


def test_lengths_whose_squares_overflow_together_are_exact():
    """Two squares below the largest float64 may have a sum above it."""
    X, codes = np.array([[1e120, 0.0], [0.0, 1e120], [1.0, 1.0]]), np.array([0, 1, 2])
    total = Witness((0, 1), (2, 2), (Fraction(10) ** 34, Fraction(10) ** 34))
    square = 4 * Fraction(1e120) ** 2 * Fraction(10) ** 68
    assert square <= ExactExamples(X, codes, 3, False).total(total).length() ** 2 <= square * (1 + Fraction(1, 10**9))
