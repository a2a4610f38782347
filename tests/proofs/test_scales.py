"""Certificates at every scale of float64, against an oracle that shares no code; exact numbers; proofs with long numbers."""

import json
import sys
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from separatrix import Certificate, certify
from support.exact_oracle import answer
from support.scale import scaled

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
    ],
)
def test_numbers_that_float64_would_round_are_refused(X):
    with pytest.raises(ValueError, match=r"X\[\d, 0\] = .* is not exactly a float64"):
        certify(X, [0, 1])


@pytest.mark.parametrize("X", [[[Fraction(1, 4)], [0.5]], [[Decimal("0.25")], [2**60]], [[ABOVE + 1], [ABOVE]]])
def test_numbers_that_are_exact_are_certified(X):
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


# Fuzz.


def generated(seed):
    """Yield (how it was made, X, y, K, bias): small data at all scales, as a whole, by column, by row and by cell."""
    rng = np.random.default_rng(seed)
    while True:
        K, d = int(rng.choice([2, 2, 2, 3, 4])), int(rng.integers(1, 4))
        n, bias = int(rng.integers(K, 9 if K == 2 else 6)), bool(rng.random() < 0.5)
        X = rng.integers(-3, 4, (n, d)) * rng.choice([1.0, 0.1])
        X = X + rng.integers(-2, 3, X.shape) * 2.0 ** -int(rng.integers(20, 52)) * (rng.random() < 0.3)
        kind = str(rng.choice(["plain", "whole", "columns", "rows", "cells"], p=[0.3, 0.3, 0.2, 0.15, 0.05]))
        shape = {"plain": None, "whole": (1, 1), "columns": (1, d), "rows": (n, 1), "cells": (n, d)}[kind]
        with np.errstate(all="ignore"):
            X = X if shape is None else np.ldexp(X, rng.integers(-1074, 1024, shape))
            longest = np.sqrt(((X * 2.0**-600) ** 2).sum(axis=1).max())
        y = np.r_[np.arange(K), rng.integers(0, K, n - K)]
        if longest < LARGEST * 2.0**-600:
            yield kind, sp.csr_matrix(X) if rng.random() < 0.25 else X, X, y, K, bias


def run_fuzz(seed, count):
    undecided = 0
    for kind, source, X, y, K, bias in islice(generated(seed), count):
        certificate = checked(source, y, fit_intercept=bias, time_limit=20)
        if certificate.verdict == "undecided":
            undecided += 1
            assert kind == "cells", (kind, X.tolist(), y.tolist(), K, bias)
            continue
        verdict, separation = answer(X.tolist(), y.tolist(), K, bias)
        assert certificate.verdict == verdict, (X.tolist(), y.tolist(), K, bias)
        assert certificate.separation in (separation, None), (X.tolist(), y.tolist(), K, bias)
    return undecided


def test_no_certificate_is_wrong_at_any_scale():
    assert run_fuzz(0, scaled(20)) <= 2


@pytest.mark.slow
def test_no_certificate_is_wrong_at_any_scale_many_times():
    run_fuzz(1, scaled(200))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(100))
def test_no_certificate_is_wrong_in_all_of_the_fuzz(part):
    run_fuzz([2, part], 1000)


# Malformed certificates.


def mutations(text, rng):
    """Yield a certificate with one value replaced, removed or repeated, and with bytes changed."""
    values = [
        None,
        0,
        -1,
        True,
        1e999,
        "0",
        "1/0",
        "1e9",
        "0x",
        "",
        [],
        {},
        [[]],
        "9" * 5000,
        10**400,
        {"rows": []},
        "∞",
        -0.5,
    ]
    while True:
        document = json.loads(text)
        at, key = document, None
        while isinstance(at, dict | list) and at:
            parent, key = at, rng.choice(list(at)) if isinstance(at, dict) else int(rng.integers(len(at)))
            at = parent[key]
            if rng.random() < 0.4:
                break
        if rng.random() < 0.15:
            if isinstance(parent, dict):
                parent["more"] = 1
            else:
                parent.append(parent[0])
        elif rng.random() < 0.1:
            del parent[key]
        else:
            parent[key] = values[int(rng.integers(len(values)))]
        yield json.dumps(document)


def run_mutations(seed, count):
    sets = [([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1], {}), ([[3, 2], [-2, 2], [-2, -3]], [1, 0, 1], {})]
    sets += [([[1, 0], [-1, 0], [0, 1]], [1, 1, 0], {"fit_intercept": False}), ([[1, 2], [8, 9], [5, 20]], [0, 1, 2], {})]
    rng = np.random.default_rng(seed)
    for X, y, options in sets:
        certificate = certify(X, y, **options)
        text = certificate.to_json()
        for forged in islice(mutations(text, rng), count // len(sets)):
            try:
                claim = Certificate.from_json(forged)
            except ValueError as problem:
                assert "\n" not in str(problem)
                continue
            if claim.fault(X, y) is None and claim != certificate:
                # a weaker claim may be true: a wider margin, or no claim about the kind of separation
                assert claim.verdict == certificate.verdict and claim.separation in (certificate.separation, None), forged


def test_a_changed_certificate_is_refused_or_true():
    run_mutations(0, scaled(400))


@pytest.mark.soak
def test_changed_certificates_are_refused_or_true_all_of_them():
    run_mutations(1, 100_000)


def test_a_deep_certificate_is_one_line_of_error():
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.from_json("[" * 100_000)
