"""Certificates: verdicts with exact proofs, on the lectures' examples, random data against enumeration, and awkward data."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris

from separatrix import Certificate, Perceptron, certify
from separatrix.data.lectures import EXAMPLES
from separatrix.proofs.proof import Witness
from support.brute_force import answer
from support.scale import property_examples


def certified(X, y, **options):
    certificate = certify(X, y, **options)
    assert certificate.verdict == "undecided" or certificate.verify(X, y)
    assert Certificate.from_json(certificate.to_json()) == certificate
    return certificate


def lecture(name, bias=False):
    return certified(EXAMPLES[name].X, EXAMPLES[name].y, fit_intercept=bias)


# The lectures' examples.


def test_l1_8_is_separable_only_by_touching():
    certificate = lecture("L1.8")
    assert (certificate.verdict, certificate.ties, certificate.separation) == ("touching", "+1", "quasi-complete")
    assert certificate.witness == Witness((0, 1), (0, 0), (Fraction(1, 2), Fraction(1, 2)))
    assert certificate.separator[0].tolist() == [1.0, 0.0]
    assert certificate.margin == (0.0, 0.0)
    assert certificate.mistake_bound is None
    assert certificate.infinite == [0]
    assert "touching" in repr(certificate) and "tie='+1'" in repr(certificate)


def test_l1_8_with_a_bias_is_separable():
    certificate = lecture("L1.8", bias=True)
    assert (certificate.verdict, certificate.separation, certificate.geometric_margin) == (
        "separable",
        "complete",
        (0.5, 0.5),
    )


@pytest.mark.parametrize("bias", [False, True])
def test_xor_is_inseparable_with_a_quarter_on_each_point(bias):
    certificate = lecture("L4.xor", bias)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap")
    assert certificate.witness.rows == (0, 1, 2, 3)
    assert certificate.witness.weights == (Fraction(1, 4),) * 4
    assert certificate.margin is None and certificate.separator is None and certificate.infinite == []
    assert "1/4 × row 0" in repr(certificate)
    assert certificate._repr_html_().startswith("<div><strong>inseparable")


@pytest.mark.parametrize(
    ("name", "w", "margin_squared", "bound"),
    [("L4.1", [1, -5], Fraction(16, 26), 26), ("L2.4", [1, -1], Fraction(1, 2), 26), ("L3.6", [1], Fraction(1), 1)],
)
def test_the_separable_examples_have_exact_margins(name, w, margin_squared, bound):
    certificate = lecture(name)
    lower, upper = certificate.margin
    assert certificate.separator[0].tolist() == w
    assert Fraction(lower) ** 2 <= margin_squared <= Fraction(upper) ** 2
    assert upper <= np.nextafter(lower, np.inf)
    assert certificate.geometric_margin == certificate.margin
    assert certificate.mistake_bound == bound
    assert f"{bound:,} mistakes" in repr(certificate)


def test_l3_6_the_bias_doubles_the_radius_and_the_bound():
    certificate = lecture("L3.6", bias=True)
    assert (certificate.margin, certificate.radius, certificate.mistake_bound) == ((1.0, 1.0), pytest.approx(2**0.5), 2)


# Random data against enumeration.

VALUES = st.integers(-3, 3)


@st.composite
def problems(draw):
    K = draw(st.sampled_from([2, 2, 2, 3]))
    d = draw(st.integers(1, 3 if K == 2 else 2))
    n = draw(st.integers(K, 6 if K == 2 else 4))
    X = draw(st.lists(st.lists(VALUES, min_size=d, max_size=d), min_size=n, max_size=n))
    rest = draw(st.lists(st.integers(0, K - 1), min_size=n - K, max_size=n - K))
    return np.array(X), np.array([*range(K), *rest]), K, draw(st.booleans())


@settings(max_examples=property_examples(60))
@given(problems())
def test_verdict_separation_and_margin_are_those_of_enumeration(problem):
    X, y, K, bias = problem
    verdict, separation, margin_squared = answer(X.tolist(), y.tolist(), K, bias)
    certificate = certified(X, y, fit_intercept=bias)
    assert (certificate.verdict, certificate.separation) == (verdict, separation)
    if verdict == "separable":
        lower, upper = certificate.margin
        assert Fraction(lower) ** 2 <= margin_squared <= Fraction(upper) ** 2
        assert upper - lower <= 1e-9 * upper
        learner = Perceptron(fit_intercept=bias, max_iter=100, random_state=0).fit(X, y)
        assert learner.n_mistakes_ <= certificate.mistake_bound
    else:
        m, K = X.shape[1] + bias, len(certificate.classes)
        assert len(certificate.witness) <= (m + 1 if bias and K == 2 else 2 * m + 2 if K == 2 else 2 * (K - 1) * m + 2)
        if verdict == "touching":
            w = np.array(certificate.separator[0], float)
            scores = X @ w if K == 2 else X @ w.T
            right = (scores >= 0 if certificate.ties == "+1" else scores > 0) if K == 2 else np.argmax(scores, axis=1)
            assert np.array_equal(right.astype(int), y)


@settings(max_examples=property_examples(60))
@given(problems(), st.randoms(use_true_random=False))
def test_a_corrupted_certificate_never_verifies(problem, random):
    X, y, _, bias = problem
    certificate = certify(X, y, fit_intercept=bias)
    proof = certificate.proof
    for wrong in corruptions(proof, X, random):
        assert not Certificate(wrong, certificate.classes).verify(X, y), wrong


def corruptions(proof, X, random):
    others = {"separable", "touching", "inseparable", "undecided"} - {proof.verdict}
    yield from (replace(proof, verdict=other) for other in others)
    yield from (replace(proof, separation=o) for o in {"complete", "quasi-complete", "overlap"} - {proof.separation})
    yield replace(proof, radius_squared=proof.radius_squared * 2 + 1)
    yield replace(proof, n=proof.n + 1)
    if proof.witness is not None:
        t = random.randrange(len(proof.witness))
        weights = list(proof.witness.weights)
        if proof.bias or X[proof.witness.rows[t]].any():  # a row of zeros may have any weight
            weights[t] += Fraction(1, 7)
            yield replace(proof, witness=replace(proof.witness, weights=tuple(weights)))
        weights[t] = Fraction(-1)
        yield replace(proof, witness=replace(proof.witness, weights=tuple(weights)))
        yield replace(proof, witness=replace(proof.witness, rows=(proof.n, *proof.witness.rows[1:])))
        yield replace(proof, witness=None)
    if proof.margin is not None:
        yield replace(proof, direction=tuple(tuple(-v for v in vector) for vector in proof.direction))
        yield replace(proof, mistake_bound=proof.mistake_bound - 1)
        yield replace(
            proof, margin=replace(proof.margin, lower=proof.margin.lower * 1.001, upper=proof.margin.upper * 1.002)
        )
        yield replace(proof, margin=replace(proof.margin, upper=proof.margin.upper * 0.999, lower=0.0))
        yield replace(proof, margin=replace(proof.margin, least=proof.margin.least * 2))
        yield replace(proof, margin=None)
    elif proof.separation == "quasi-complete":
        yield replace(proof, direction=tuple(tuple(-v for v in vector) for vector in proof.direction))
        yield replace(proof, direction=tuple(tuple(Fraction(0) for _ in vector) for vector in proof.direction))
        yield replace(proof, direction=None)
    if proof.spanning is not None:
        yield replace(proof, spanning=None)
        yield replace(proof, equations=(*proof.equations, (Fraction(0),) * (proof.d + proof.bias)))


@settings(max_examples=property_examples(40))
@given(problems())
def test_sparse_is_certified_like_dense(problem):
    X, y, _, bias = problem
    certificate = certified(sp.csr_matrix(X.astype(float)), y, fit_intercept=bias)
    dense = certify(X, y, fit_intercept=bias)
    assert (certificate.verdict, certificate.separation, certificate.margin) == (
        dense.verdict,
        dense.separation,
        dense.margin,
    )
    assert certificate.verify(X, y)


# Input.


def test_names_classes_and_infinite_coefficients():
    frame = pd.DataFrame({"age": [1.0, 2, 3, 4, 2, 3], "rash": [0.0, 0, 0, 0, 1, 1]})
    certificate = certified(frame, ["well", "ill", "well", "ill", "ill", "ill"])
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete")
    assert certificate.infinite == ["rash"]
    assert certificate.classes == ["ill", "well"]


def test_real_classes_jointly_have_rivals():
    X, y = load_iris(return_X_y=True)
    certificate = certified(X, y)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete")
    assert set(certificate.witness.rivals) <= {0, 1, 2}


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0]], [1], "two classes"),
        ([[1.0], [2.0]], [1, 1], "two classes"),
        ([[1.0], [np.nan]], [0, 1], "NaN at row 1, column 0"),
        ([[1.0], [np.inf]], [0, 1], "infinity"),
        ([[1.7e308, 1.7e308], [0.0, 0.0]], [0, 1], "above the largest float64"),
        ([[1], [2**70 + 1]], [0, 1], "not exactly a float64"),
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent"),
    ],
)
def test_bad_input_gets_a_clear_error(X, y, message):
    with pytest.raises(ValueError, match=message):
        certify(X, y)


def test_bad_options_get_a_clear_error():
    with pytest.raises(ValueError, match="exact must be"):
        certify([[1], [2]], [0, 1], exact="maybe")
    with pytest.raises(ValueError, match="time_limit must be"):
        certify([[1], [2]], [0, 1], time_limit=-1)
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.from_json('{"format": "something else"}')


# Awkward data.


def test_duplicates_with_both_labels():
    X = [[1.5, 2, 0.1], [1.5, 2, 0.1], [3, 4, 0.7], [-1, 0, 0.3]]
    certificate = certified(X, [0, 1, 1, 0])
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete")
    assert certificate.witness == Witness((0, 1), (1, 0), (Fraction(1, 2), Fraction(1, 2)))


def test_all_zero_rows():
    zeros = np.zeros((4, 3))
    certificate = certified(zeros, [0, 1, 0, 1], fit_intercept=False)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap")
    assert certified(zeros, [0, 1, 0, 1]).separation == "overlap"
    one = certified([[0.0, 0.0], [1, 2], [2, 1]], [0, 1, 1], fit_intercept=False)
    assert (one.verdict, one.ties, one.witness.rows) == ("touching", "-1", (0,))


def test_constant_columns_and_fewer_rows_than_columns():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.integers(-2, 3, (40, 2)), np.full((40, 1), 7), np.zeros((40, 2))], axis=1)
    certificate = certified(X, rng.integers(0, 2, 40))
    assert (certificate.verdict, certificate.separation) == ("inseparable", "overlap")
    assert len(certificate.proof.equations) == 3
    wide = rng.normal(size=(10, 60))
    assert certified(wide, [0, 1] * 5).verdict == "separable"


def test_one_column():
    assert certified([[1], [2], [3]], [0, 0, 1]).verdict == "separable"
    assert certified([[1], [2], [3]], [0, 1, 0]).verdict == "inseparable"
    assert certified([[1], [2], [2]], [0, 0, 1]).separation == "quasi-complete"
    assert certified([[1], [2], [3]], [0, 0, 1], fit_intercept=False).verdict == "inseparable"


def test_features_from_a_trillionth_to_a_trillion():
    rng = np.random.default_rng(1)
    scales = 10.0 ** np.linspace(-12, 12, 6)
    X = rng.normal(size=(60, 6))
    w = rng.normal(size=6)
    y = X @ w > 0.1
    assert certified(X * scales, y).verdict == certified(X, y).verdict == "separable"
    y[0] = ~y[0]
    X = np.concatenate([X, X[1:2], X[2:3]])
    y = np.concatenate([y, [~y[1], y[2]]])
    assert certified(X * scales, y).verdict == "inseparable"


def test_integers_above_two_to_the_53rd_are_not_rounded():
    big = 2**60
    apart = certified(np.array([[big], [big + 1]]), [0, 1])
    assert apart.verdict == "separable"
    assert certified(np.array([[big], [big + 1], [big]]), [0, 1, 1]).verdict == "inseparable"
    assert certified(np.array([[big + 2], [big + 1], [big]]), [0, 1, 0]).verdict == "inseparable"


def test_the_time_limit_leaves_it_undecided():
    X, y = load_breast_cancer(return_X_y=True)
    certificate = certify(X, y, time_limit=1e-9)
    assert (certificate.verdict, certificate.separation, certificate.separator) == ("undecided", None, None)
    assert not certificate.verify(X, y)
    assert "undecided" in repr(certificate)


@pytest.mark.parametrize("exact", ["auto", True])
def test_the_interval_holds_where_the_nearest_point_is_not_found(monkeypatch, exact):
    X, y = load_iris(return_X_y=True)
    monkeypatch.setattr("separatrix.proofs.search.margin_interval.nearest", lambda Z: None)
    certificate = certify(X, y == 0, exact=exact)
    assert certificate.verdict == "separable" and certificate.verify(X, y == 0)
    low, high = certificate.geometric_margin
    assert low <= 0.817555769 <= high
