"""An undecided verdict is rare: easy data without a margin, tiny margins and overlaps, long integers, near dependencies."""

import numpy as np
import pytest

from separatrix import certify, fewest_mistakes
from separatrix.proofs.search.refinement import Program
from support.exact_oracle import answer
from support.scale import counts, scaled


def labelled(rng, X, K, share):
    """Return labels of K random linear scores, a share of them random, and each class at least once."""
    y = (X @ rng.standard_normal((K, X.shape[1])).T + rng.standard_normal(K) * rng.choice([0.0, 1.0])).argmax(axis=1)
    y = np.where(rng.random(len(y)) < share, rng.integers(0, K, len(y)), y)
    y[:K] = np.arange(K)
    return y


def grid(rng):
    """Multiples of 0.1, where sums that should be 0 are not."""
    K = int(rng.choice([2, 2, 3, 5]))
    X = np.round(rng.standard_normal((int(rng.integers(K, 120)), int(rng.integers(1, 8)))) * rng.choice([0.5, 2, 10]), 1)
    return X, labelled(rng, X, K, rng.choice([0, 0, 0.05]))


def narrow(rng, n=None, d=None):
    """A gap or an overlap of 10⁻⁹ to 10⁻¹⁴ around a random plane, with columns of several sizes."""
    d = int(rng.integers(2, 12)) if d is None else d
    n = int(rng.integers(2 * d + 2, 200)) if n is None else n
    gap = 10.0 ** -rng.uniform(9, 14) * rng.choice([1, 1, -1])
    w = rng.standard_normal(d)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, d))
    scores = X @ w
    y = (scores > 0).astype(int)
    is_near = rng.random(n) < rng.choice([0.1, 0.5, 1.0])
    target = np.where(is_near, gap, np.abs(scores) + gap) * np.where(y == 1, 1, -1)
    return (X + np.outer(target - scores, w)) * 10.0 ** rng.choice([0, rng.uniform(-3, 3)], d), y


def long_integers(rng):
    """Integers of 40 to 53 binary digits, some columns nearly constant, and more than two classes."""
    K, d = int(rng.choice([3, 3, 4, 6])), int(rng.integers(1, 6))
    top = 1 << int(rng.integers(40, 53))
    X = rng.integers(-top, top, (int(rng.integers(K, 40)), d))
    if rng.random() < 0.5:
        X[:, 0] = top + rng.integers(-50, 50, len(X))
    return X, labelled(rng, X / top, K, 0.0)


def nearly_dependent(rng, n=None):
    """Columns that are combinations of others up to rounding."""
    K, d = int(rng.choice([2, 2, 3])), int(rng.integers(2, 8))
    X = np.round(rng.standard_normal((int(rng.integers(3 * d, 200)) if n is None else n, d)), int(rng.choice([1, 15])))
    y = labelled(rng, X, K, rng.choice([0, 0.02, 0.5]))
    return np.hstack([X, X @ rng.choice([0.1, 0.3, 0.7, 1 / 3, -1.1], (d, int(rng.integers(1, 4))))]), y


def scattered(rng):
    """Rows whose lengths differ by a factor of 10³⁰; of noise by 10²⁵⁰. Of short rows little but the bias is left."""
    K, d, share = int(rng.choice([2, 2, 3, 4])), int(rng.integers(2, 12)), rng.choice([0, 0.02, 1.0])
    n = int(rng.integers(25, 50)) * d * (K - 1)
    lowest, highest = (-150, 100) if share == 1 else (-15, 16)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(lowest, highest, (n, 1))
    return X, labelled(rng, X, K, share)


def integers_beyond_float64(rng):
    """Rows (a, b) with pa − qb = ±1, where pa has up to 92 binary digits, beside short ones: only (p, −q) separates them."""
    p, q = 998_244_353, 754_974_721
    y = rng.permutation(np.arange(int(rng.integers(10, 120))) % 2)
    rows = []
    for sign in np.where(y == 1, 1, -1).tolist():
        a = sign * pow(p, -1, q) % q + int(rng.choice([0, 10**4, 9 * 10**9]) * rng.random()) * q
        rows.append([a, (a * p - sign) // q, *(rng.choice([-1, 1], 3) * (a // 7))])
    return np.array(rows, np.int64), y


KINDS = [scattered, integers_beyond_float64, grid, narrow, long_integers, nearly_dependent]


@pytest.mark.parametrize("count", counts(quick=12, slow=25, soak=1000))
@pytest.mark.parametrize("kind", KINDS)
def test_no_verdict_is_undecided(kind, count):
    for i in range(count):
        rng = np.random.default_rng([7, i])
        X, y = kind(rng)
        exact = "auto" if rng.random() < 0.5 else False
        certificate = certify(X, y, fit_intercept=bool(rng.random() < 0.7), exact=exact, time_limit=60)
        assert certificate.verdict != "undecided", (i, X.shape)
        if exact and certificate.verdict == "separable" and kind in KINDS[2:]:
            lower, upper = certificate.margin
            assert upper <= 1e5 * lower, (i, lower, upper)


@pytest.mark.parametrize(("kind", "options"), [(narrow, {"n": 4000, "d": 12}), (nearly_dependent, {"n": 10_000})])
def test_many_rows_are_decided_as_well(kind, options):
    for i in range(2):
        X, y = kind(np.random.default_rng([8, i]), **options)
        assert certify(X, y, exact=False, time_limit=60).verdict != "undecided"


def test_the_fewest_mistakes_are_0_exactly_where_the_data_are_separable():
    inseparable = 0
    for i in range(scaled(8)):
        X, y = [narrow, nearly_dependent][i % 2](np.random.default_rng([10, i]))
        if certify(X, y, exact=False, time_limit=60).verdict == "separable":
            bracket = fewest_mistakes(X, y, time_limit=20)
            assert (bracket.lower, bracket.upper) == (0, 0)
            assert (bracket.classifier.predict(X) == y).all()
        elif inseparable < scaled(1):  # the search for fewer mistakes takes all the time that it gets
            inseparable += 1
            bracket = fewest_mistakes(X, y, time_limit=3)
            assert 1 <= bracket.lower <= bracket.upper and bracket.witnesses
    assert inseparable < i


def test_a_clean_pass_that_only_rounding_makes_clean_is_not_taken_for_a_separator():
    """On a grid of 0.1 the perceptron's float scores have the wrong sign now and then; the verdict comes all the same."""
    for i in range(scaled(40)):
        rng = np.random.default_rng([9, i])
        X = rng.integers(-3, 4, (7, 2)) * 0.1
        y = np.r_[0, 1, rng.integers(0, 2, 5)]
        certificate = certify(X, y, exact=False)
        assert (certificate.verdict, certificate.separation) == answer(X.tolist(), y.tolist(), 2, True)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.5 + 2.0**-31], [1.5 + 2.0**-31], [0.5 + 2.0**-30]], [0, 1, 0]),
        ([[3 + 2.0**-32, -2 - 2.0**-31], [3.0, -2 - 2.0**-32], [-3 + 2.0**-31, 2 + 2.0**-32], [3.0, -1.0]], [0, 1, 0, 1]),
    ],
)
def test_numbers_that_differ_by_multiples_of_a_power_of_two_near_2_to_the_31_are_told_apart(X, y):
    """Ranks are computed modulo a prime; modulo 2³¹ − 1 many such numbers are congruent."""
    certificate = certify(X, y)
    assert (certificate.verdict, certificate.separation) == answer(X, y, 2, True)


@pytest.mark.parametrize(
    ("X", "y", "bias"),
    [
        ([[9.33452291968953e-61], [9.33452291968953e-61], [3.1115076447262055e-61]], [0, 1, 0], True),
        ([[7.762590461503545e229], [-4.3934705024835905e157], [-7.957171782556587e86], [-819.2]], [0, 1, 2, 3], True),
        ([[-4.7733380657453736e-153], [-7.98336123813888e292], [-6.0185310748088136e-36], [-1.28e-49]], [0, 1, 2, 3], False),
    ],
    ids=["equal rows", "one column of all sizes", "without a bias"],
)
def test_a_determinant_that_is_a_multiple_of_a_mersenne_prime_decides_nothing(X, y, bias):
    certificate = certify(np.array(X), y, fit_intercept=bias, exact=False, time_limit=60)
    assert (certificate.verdict, certificate.separation) == answer(X, y, max(y) + 1, bias)[:2]


@pytest.mark.parametrize("seed", [31, 104])
def test_witnesses_with_pairs_of_weight_0_are_told_from_those_without(seed):
    """Floating point gives a few pairs of a witness a positive weight that is 0 in exact arithmetic."""
    rng = np.random.default_rng(seed)
    n, d, gap = int(rng.integers(8, 30)), int(rng.integers(3, 9)), 1e-9
    X, y = (rng.random((n, d)) < 0.5).astype(float), rng.integers(0, 2, n)
    y[:2] = [0, 1]
    j = int(rng.integers(d))
    X[:, j] = np.where(y == 1, X[:, j] + gap, -X[:, j] - gap)
    X[1 if y[0] == 0 else 0] = X[0 if y[0] == 0 else 1]
    X[np.flatnonzero(y == 1)[0], j] -= gap
    certificate = certify(X, y)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap") and certificate.verify(X, y)


def test_tiny_sets_need_no_long_search_for_a_witness_that_does_not_exist(monkeypatch):
    """Refined linear programs tried 400 times to find one; the exact simplex has told by then that there is none."""

    def unasked(self):
        raise AssertionError("the data are known to be separable")

    monkeypatch.setattr(Program, "witnesses", unasked)
    t = 2**44
    X = [[t - 1, t, 3 * t + 1], [t + 2, -t + 2, -3 * t], [-2 * t - 1, -t - 2, -3 * t - 2], [-2 * t, -t, -3 * t - 1]]
    certificate = certify([*X, [t - 1, 2 * t, 3 * t + 2]], [1, 1, 1, 0, 1])
    lower, upper = certificate.margin
    assert certificate.verdict == "separable" and upper <= lower * (1 + 1e-9)
