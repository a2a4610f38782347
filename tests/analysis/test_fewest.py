"""The fewest mistakes are bounded from both sides, and both sides are what they claim to be."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, load_svmlight_file

from separatrix import fewest_mistakes, suspects
from separatrix.analysis.linear_rule import LinearRule
from separatrix.data.lectures import EXAMPLES
from support.scale import property_examples

XOR = EXAMPLES["L4.xor"]


def hold(found, X, y):
    """The classifier makes `upper` mistakes, and every witness sums to exactly 0."""
    X, y = np.asarray(X, float), np.asarray(y)
    wrong = np.flatnonzero(found.classifier.predict(X) != y)
    assert len(wrong) <= found.upper == len(found.mistaken)
    assert set(wrong) <= set(found.mistaken)
    classes = np.unique(y)
    for witness in found.witnesses:
        sums = {}
        for i, rival, weight in zip(witness.rows, witness.rivals, witness.weights, strict=True):
            assert weight > 0
            own = int(np.flatnonzero(classes == y[i])[0])
            for place, sign in ((own, 1), (rival, -1)):
                for j, value in enumerate([*X[i].tolist(), 1.0]):
                    sums[place, j] = sums.get((place, j), 0) + sign * weight * Fraction(value)
        assert not any(v for (_, j), v in sums.items() if j < X.shape[1])


def test_xor_needs_one_mistake_with_a_bias():
    found = fewest_mistakes(XOR.X, XOR.y)
    assert (found.lower, found.upper, found.optimal) == (1, 1, True)
    hold(found, XOR.X, XOR.y)
    assert "exactly 1" in repr(found)


@pytest.mark.parametrize(("tie", "number"), [("mistake", 2), ("+1", 1), ("-1", 1)])
def test_xor_without_a_bias_depends_on_what_a_score_of_zero_means(tie, number):
    found = fewest_mistakes(XOR.X, XOR.y, fit_intercept=False, tie=tie)
    assert (found.lower, found.upper) == (number, number)


def test_l1_8_touching_is_no_mistake_where_zero_is_plus_one():
    example = EXAMPLES["L1.8"]
    answers = [fewest_mistakes(example.X, example.y, fit_intercept=False, tie=tie).upper for tie in ("+1", "-1", "mistake")]
    assert answers == [0, 1, 1]


def test_iris_versicolor_against_virginica_is_exactly_one():
    X, y = load_iris(return_X_y=True)
    found = fewest_mistakes(X[y > 0], y[y > 0], time_limit=30)
    assert (found.lower, found.upper) == (1, 1)
    hold(found, X[y > 0], y[y > 0])


def test_three_classes_jointly():
    X, y = load_iris(return_X_y=True)
    found = fewest_mistakes(X, y, time_limit=30)
    assert found.lower == found.upper == 1
    hold(found, X, y)


def test_separable_data_need_none():
    X, y = load_iris(return_X_y=True)
    found = fewest_mistakes(X, (y == 0).astype(int))
    assert (found.lower, found.upper, found.witnesses) == (0, 0, ())


def test_banknote_is_exactly_seven(data_folder):
    table = np.genfromtxt(data_folder / "uci" / "banknote_authentication.csv", delimiter=",")
    table = table[~np.isnan(table).any(axis=1)]
    found = fewest_mistakes(table[:, :4], table[:, 4].astype(int), time_limit=30)
    assert (found.lower, found.upper) == (7, 7)
    hold(found, table[:, :4], table[:, 4].astype(int))


def test_heart_scale_is_between_ten_and_twenty_seven(data_folder):
    X, y = load_svmlight_file(str(data_folder / "libsvm" / "heart_scale"))
    found = fewest_mistakes(X, y, time_limit=30)
    if found.lower < 10:  # tests that run beside this one leave it half of the time or less
        found = fewest_mistakes(X, y, time_limit=120)
    assert found.lower >= 10
    assert found.upper <= 27
    hold(found, X.toarray(), y)


@pytest.mark.parametrize(
    ("n", "K", "limit", "factor"),
    [(20_000, 2, 2, 1.5), (5_000, 4, 2, 2.5), pytest.param(100_000, 2, 8, 1.5, marks=pytest.mark.slow)],
)
def test_many_examples_with_flipped_labels_get_a_useful_bracket(n, K, limit, factor):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 20))
    y = (X @ rng.standard_normal((20, K)) + 0.3 * np.arange(K)).argmax(axis=1)
    y, bad = flipped(y, 4, share=0.01)
    found = fewest_mistakes(X, y, time_limit=limit)
    assert 1 <= found.lower <= len(bad)
    assert found.upper <= factor * len(bad)
    assert len({row for witness in found.witnesses for row in witness.rows}) == sum(
        len(set(witness.rows)) for witness in found.witnesses
    )
    hold(found, X, y)


def test_predictions_are_exact_where_float_scores_round():
    rule = LinearRule(np.array([[1.0, 2.0**-60]]), np.array([-1.0]), np.array([0, 1]), "mistake")
    assert rule.predict([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]]).tolist() == [1, 0, 0]
    third = Fraction(1, 3)
    three = LinearRule(np.array([[0], [third], [third]], object), np.array([third, 0, 0], object), np.arange(3), "mistake")
    assert three.predict([[1.0], [1.0 + 2.0**-50], [0.5]]).tolist() == [0, 1, 0]


def brute_force(X, y, tie):
    """The fewest mistakes without a bias in the plane: a finite set of directions decides every sign pattern."""
    A = [(int(a), int(b)) for a, b in X]
    directions = {(1, 0), (0, 1), (-1, 0), (0, -1)}
    for a, b in A:
        directions |= {(-b, a), (b, -a), (a, b), (-a, -b)}
    ordered = sorted(directions, key=lambda v: np.arctan2(v[1], v[0]))
    between = [(p[0] + q[0], p[1] + q[1]) for p, q in itertools.pairwise([*ordered, ordered[0]])]
    scaled = [(7 * p[0] + q[0], 7 * p[1] + q[1]) for p, q in itertools.product(ordered, ordered)]
    best = len(A)
    for w in [*ordered, *between, *scaled]:
        scores = [w[0] * a + w[1] * b for a, b in A]
        wrong = 0
        for s, label in zip(scores, y, strict=True):
            right = s * label > 0 or (s == 0 and tie == f"{label:+d}")
            wrong += not right
        best = min(best, wrong)
    return best


@settings(max_examples=property_examples(40))
@given(
    points=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from([-1, 1])), min_size=2, max_size=7),
    tie=st.sampled_from(["mistake", "+1", "-1"]),
)
def test_the_interval_holds_the_true_number(points, tie):
    X, y = [p[:2] for p in points], [p[2] for p in points]
    if len(set(y)) < 2:
        return
    found = fewest_mistakes(X, y, fit_intercept=False, tie=tie, time_limit=2)
    true = brute_force(X, y, tie)
    assert found.lower <= true <= found.upper
    assert found.optimal


@pytest.mark.parametrize(
    ("X", "y", "bias", "number"),
    [
        ([[0.199999999998], [0.2], [0.0], [0.30000000000000004], [0.0]], [1, 3, 3, 2, 0], True, 1),
        ([[0.30000000000000004], [1e-14], [0.0], [0.0], [-0.30000000000000004]], [3, 0, 1, 2, 3], True, 2),
        ([[0.0], [-0.03], [-1e13], [2.0000000000000002e-07], [-200.0]], [1, 3, 2, 3, 0], True, 1),
        ([[-(2**45)], [-(2**45) - 4], [2**44], [-(2**44) - 2], [-(2**44) + 2]], [2, 0, 0, 1, 0], True, 1),
        ([[0, 0], [-0.50000000000005, 1.4999999999999], [-1, 3], [-1e-13, -2e-13]], [3, 0, 1, 2], False, 1),
    ],
)
def test_the_interval_closes_where_floating_point_cannot_separate_the_rest(X, y, bias, number):
    found = fewest_mistakes(X, y, fit_intercept=bias, time_limit=30)
    assert (found.lower, found.upper) == (number, number)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.filterwarnings("error")
def test_the_smallest_floats_do_not_overflow(K):
    X = np.array([[1, 2], [2, 1], [3, 1], [1, 1], [2, 2], [3, 3]]) * 5e-324
    found = fewest_mistakes(X, np.arange(6) % K, time_limit=10)
    assert found.optimal


def test_bad_input():
    with pytest.raises(ValueError, match="only 1 class"):
        fewest_mistakes([[1.0], [2.0]], [1, 1])
    with pytest.raises(ValueError, match="tie must be one of"):
        fewest_mistakes([[1.0], [2.0]], [1, 2], tie="0")
    with pytest.raises(ValueError, match="only 1 class"):
        suspects([[1.0], [2.0]], [1, 1])


def flipped(y, seed, share=0.02):
    rng = np.random.default_rng(seed)
    bad = rng.choice(len(y), round(share * len(y)), replace=False)
    noisy = y.copy()
    noisy[bad] = (y[bad] + rng.integers(1, y.max() + 1, size=len(bad))) % (y.max() + 1)
    return noisy, bad


def test_flipped_digits_are_the_most_suspicious():
    X, y = load_digits(return_X_y=True)
    noisy, bad = flipped(y, 0)
    found = suspects(X, noisy)
    assert sorted(found.rows) == list(range(len(y)))
    assert np.isin(found.rows[: len(bad)], bad).mean() > 0.85
    caught = [s for s in found[: len(bad)] if s.row in bad]
    assert np.mean([s.suggested == y[s.row] for s in caught]) > 0.8
    assert caught[0].margin < 0 < caught[0].mistakes
    assert "most suspicious first" in repr(found)


def test_a_mislabelled_iris_is_found_with_a_witness():
    X, y = load_iris(return_X_y=True)
    names = np.asarray(["setosa", "versicolor", "virginica"])[y]
    names[10] = "virginica"
    found = suspects(X, names)
    assert (found[0].row, found[0].label, found[0].suggested) == (10, "virginica", "setosa")
    assert found[0].witness > 0
