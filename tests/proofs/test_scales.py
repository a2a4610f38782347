"""Certificates at every scale of float64, against an oracle that shares no code; exact numbers; proofs with long numbers."""

import json
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from separatrix import Certificate, certify, check_separation, fewest_mistakes
from support.exact_oracle import answer

LARGEST = np.finfo(np.float64).max


def checked(X, y, **options):
    certificate = certify(X, y, **options)
    assert certificate.verdict == "undecided" or certificate.verify(X, y)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verdict in repr(certificate) and certificate._repr_html_()
    return certificate


# What was found.


def test_rows_whose_squares_underflow_are_decided_exactly():
    tiny = 1e-171
    X = [
        *([6.000000000000001e-171, 0, -6.000000000000001e-171], [tiny, 4e-171, -5e-171], [5e-171, 8e-171, -1.3e-170]),
        *([tiny, tiny, -2e-171], [-4e-171, -8e-171, 1.2000000000000002e-170], [5e-171, 8e-171, -1.3e-170]),
    ]
    y = [0, 1, 0, 1, 1, 0]
    certificate = checked(X, y, fit_intercept=False)
    assert (certificate.verdict, certificate.separation) == answer(X, y, 2, False)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("exponent", [-560, -300, 0, 300, 560])
def test_a_separator_with_a_lead_of_0_is_refused_at_every_scale(bias, exponent):
    """A direction that leaves one row exactly on the boundary does not separate, however short the rows are."""
    X = np.ldexp(np.array([[3.0, 1.0], [1.0, 3.0], [-1.0, -1.0], [-2.0, -1.0], [1.0, -1.0]]), exponent)
    y = np.array([1, 1, 0, 0, 1])
    document = json.loads(certify(X, y, fit_intercept=bias).to_json())
    document["direction"] = document["margin"]["direction"] = [["1", "1"] + ["0"] * bias]
    for least in ("1", str(Fraction(2) ** exponent), "0x1/" + hex(1 << 1100)):
        document["margin"] |= {"least": least, "lower": 0.0}
        assert not Certificate.from_json(json.dumps(document)).verify(X, y)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "values", [[0.0, 5e-324], [1e-310, -1e-310], [1e300, -1e300], [1.7e308, -1.7e308], [1e-170, 2e-170]]
)
def test_the_smallest_and_the_largest_numbers_are_certified(values, bias):
    X = [[value] for value in values]
    certificate = checked(X, [0, 1], fit_intercept=bias)
    assert (certificate.verdict, certificate.separation) == answer(X, [0, 1], 2, bias)


@pytest.mark.parametrize("exponent", range(-1074, 1020, 61))
@pytest.mark.parametrize("bias", [True, False])
def test_a_power_of_two_changes_the_margin_and_nothing_else(exponent, bias):
    X, y = np.array([[4.0, 0.0], [1.0, 1.0], [0.0, 1.0], [-2.0, -2.0]]), [1, 0, 0, 1]
    certificate = checked(np.ldexp(X, exponent), y, fit_intercept=bias)
    assert certificate.verdict == "separable"
    if not bias:
        lower, upper = checked(X, y, fit_intercept=False).margin
        assert certificate.margin == pytest.approx((np.ldexp(lower, exponent), np.ldexp(upper, exponent)), rel=1e-9)
        assert certificate.mistake_bound == 26


def test_the_longest_row_is_found_where_squares_underflow():
    """The squares of the third row are rounded to less than those of the first, although it is longer."""
    unit = 8.89103499794031e-163
    X = np.array([[2, -2], [-1, 2], [-1, 3], [-2, -1], [2, -2]]) * unit
    for form in (np.asarray, sp.csr_matrix):
        certificate = certify(form(X), [0, 1, 2, 3, 1])
        assert certificate.verdict == "inseparable" and certificate.verify(form(X), [0, 1, 2, 3, 1])
        assert certificate.proof.radius_squared == 1 + Fraction(float(X[2, 0])) ** 2 + Fraction(float(X[2, 1])) ** 2


ROWS_OF_ALL_SIZES = [
    (
        [
            *([2.259211166966574e219, -2.259211166966574e219], [1.1769565753850028e56, -1.1769565753850028e56]),
            *([2.9864435792103006e-301, 8.959330737630903e-301], [1.94906280228e288, -3.89812560456e288]),
        ],
        [0, 1, 2, 3],
    ),
    (
        [
            [-1.439708941339806e-240, 0.0, 9.598059608932039e-241],
            [1.780059086805761e-308, 5.340177260417284e-308, 3.5601181736115224e-308],
            [1.1138771039116688e188, 2.2277542078233376e188, -3.341631311735007e188],
            [-429496729.6, -429496729.6, -644245094.4000001],
        ],
        [0, 1, 2, 3],
    ),
    (
        [
            *([2e195, -6e195, -6e195], [-9e56, -9e56, 0], [-4e-163, -4e-163, -2e-163]),
            *([4e299, 3e299, -3e299], [6e183, 3e183, 6e183], [2e-70, -2e-70, -1e-70]),
        ],
        [0, 1, 0, 0, 1, 1],
    ),
    (
        [
            [0.0, 7.762590461503545e230, -4.226356249085322e270],
            [1.3940783516979216e283, -7.762590461503545e230, -4.226356249085322e270],
        ],
        [0, 1],
    ),
]


@pytest.mark.parametrize(("X", "y"), ROWS_OF_ALL_SIZES)
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_short_rows_beside_very_long_ones_are_decided(X, y, form):
    """No power of two keeps the squares of all these rows: at the size of the longest, the norms of others become 0."""
    certificate = checked(form(X), y)
    assert (certificate.verdict, certificate.separation) == answer(X, y, max(y) + 1, True)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[3.8e286], [-1.3e44], [7.6e-298], [4.2e-314], [1.0e216]], [0, 1, 2, 3, 0]),
        (
            [
                *([-5.986310706507379e50, 5.986310706507379e50], [-1.4522219680684946e-122, -1.4522219680684946e-122]),
                *([-1.2166986024289024e-210, 1.2166986024289024e-210], [1.9848322066592192e-265, -3.9696644133184385e-265]),
                [-9830.400000000001, 0.0],
            ],
            [0, 1, 2, 2, 1],
        ),
    ],
)
def test_weights_beyond_the_largest_float_balance_rows_of_all_sizes(X, y):
    certificate = checked(X, y, fit_intercept=False)
    assert (certificate.verdict, certificate.separation) == answer(X, y, max(y) + 1, False)


def test_a_radius_that_is_too_large_is_refused_where_squares_underflow():
    X, y = [[1e-171], [-1e-171]], [0, 1]
    document = json.loads(certify(X, y, fit_intercept=False).to_json())
    document["radius_squared"] = "1/" + str(10**295)
    assert not Certificate.from_json(json.dumps(document)).verify(X, y)


# Numbers that float64 would round.

ABOVE = 2**53


@pytest.mark.parametrize(
    "X",
    [
        pytest.param([[ABOVE + 1, 0.5], [ABOVE, 0.5]], id="lists"),
        pytest.param(pd.DataFrame({"a": [ABOVE + 1, ABOVE], "b": [0.5, 0.5]}), id="pandas"),
        pytest.param(pd.DataFrame({"a": pd.array([ABOVE + 1, ABOVE], "Int64"), "b": [0.5, 0.5]}), id="pandas Int64"),
        pytest.param(pl.DataFrame({"a": [ABOVE + 1, ABOVE], "b": [0.5, 0.5]}), id="polars"),
        pytest.param(pa.table({"a": [ABOVE + 1, ABOVE], "b": [0.5, 0.5]}), id="arrow"),
        pytest.param([[Fraction(1, 3)], [Fraction(1, 2)]], id="fractions"),
        pytest.param([[Decimal("0.1")], [Decimal("0.5")]], id="decimals"),
        pytest.param(np.array([[Fraction(1, 3)], [Fraction(1, 2)]], object), id="objects"),
        pytest.param([[10**30 + 1], [10**30]], id="long integers"),
        pytest.param([(np.int64(ABOVE + 1), 0.5), (np.int64(ABOVE), 0.5)], id="integers of NumPy"),
        pytest.param(np.array([[str(ABOVE + 1)], [str(ABOVE)]]), id="texts"),
        pytest.param(pd.DataFrame({"a": [str(ABOVE + 1), str(ABOVE)]}), id="pandas texts"),
        pytest.param(np.array([[b"9007199254740993"], [b"9007199254740992"]]), id="bytes"),
    ],
)
def test_numbers_that_float64_would_round_are_refused(X):
    with pytest.raises(ValueError, match=r"X\[\d, 0\] = .* is not exactly a float64"):
        certify(X, [0, 1])


@pytest.mark.parametrize(
    "X", [[[Fraction(1, 4)], [0.5]], [[Decimal("0.25")], [2**60]], [[ABOVE + 1], [ABOVE]], [["0.1"], ["9007199254740992"]]]
)
def test_numbers_that_are_exact_are_certified(X):
    assert certify(X, [0, 1]).verdict == "separable"


def test_masked_values_are_refused():
    X = np.ma.array([[1.0, 2.0], [1.0, 3.0]], mask=[[0, 0], [0, 1]])
    for use in (certify, check_separation, fewest_mistakes):
        with pytest.raises(ValueError, match="masked"):
            use(X, [0, 1])
    X.mask = False
    assert certify(X, [0, 1]).verdict == "separable"


# Long proofs.


@pytest.mark.parametrize(("n", "d", "digits"), [(200, 60, 640), pytest.param(1000, 235, 4300, marks=pytest.mark.slow)])
def test_certificates_of_wide_data_are_written_whatever_their_digits(n, d, digits):
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(digits)
    try:
        rng = np.random.default_rng(0)
        certificate = checked(rng.standard_normal((n, d)), rng.integers(0, 2, n))
        assert certificate.verdict == "inseparable"
        with pytest.raises(ValueError, match="integer string conversion"):
            str(max(weight.denominator for weight in certificate.witness.weights))
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_deep_certificate_is_one_line_of_error():
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.from_json("[" * 100_000)


def test_columns_of_the_largest_numbers_are_certified():
    """The power of two above a column's largest number may itself be infinite."""
    X, y = [[1.7e308, 1e-300], [-1.7e308, 3e-310], [1e308, -1e-300]], [1, 0, 1]
    for bias in (True, False):
        certificate = checked(X, y, fit_intercept=bias, time_limit=60)
        assert (certificate.verdict, certificate.separation) == answer(X, y, 2, bias)
