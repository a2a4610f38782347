"""Random certificates at every scale, and tampered ones, against an oracle that shares no code: none is wrong.

A part makes 1000 certificates and tampers with each. There are 100 parts; the first ten are slow tests, the others soak:
`pytest -n 0 -m "slow or soak" tests/proofs/test_fuzz.py -v` prints a line for each.
"""

import json
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import Certificate, certify
from support.exact_oracle import answer
from support.scale import scaled

LARGEST = np.finfo(np.float64).max


def generated(seed):
    """Yield (how it was made, X as given, X, y, K, bias): data at all scales, as a whole, by column, by row and by cell."""
    rng = np.random.default_rng(seed)
    while True:
        K, d = int(rng.choice([2, 2, 2, 3, 4])), int(rng.integers(1, 4))
        n, bias = int(rng.integers(K, 9 if K == 2 else 6)), bool(rng.random() < 0.5)
        X = rng.integers(-3, 4, (n, d)) * rng.choice([1.0, 0.1])
        X = X + rng.integers(-2, 3, X.shape) * 2.0 ** -int(rng.integers(20, 52)) * (rng.random() < 0.3)
        kind = str(rng.choice(["plain", "whole", "columns", "rows", "cells"], p=[0.35, 0.35, 0.2, 0.07, 0.03]))
        shape = {"plain": None, "whole": (1, 1), "columns": (1, d), "rows": (n, 1), "cells": (n, d)}[kind]
        with np.errstate(all="ignore"):
            X = X if shape is None else np.ldexp(X, rng.integers(-1074, 1024, shape))
            longest = np.sqrt(((X * 2.0**-600) ** 2).sum(axis=1).max())
        y = np.r_[np.arange(K), rng.integers(0, K, n - K)]
        if longest < LARGEST * 2.0**-600:
            yield kind, sp.csr_matrix(X) if rng.random() < 0.25 else X, X, y, K, bias


VALUES = [None, 0, -1, True, 1e999, "0", "1/0", "1e9", "0x", "", [], {}, [[]], "9" * 5000, 10**400, {"rows": []}, "∞", -0.5]


def slightly_changed(value, rng):
    """Return a value of the same form: another number, row, verdict or kind of separation."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + int(rng.choice([-1, 1]))
    if isinstance(value, float):
        return value * float(rng.choice([0.5, 1 - 1e-15, 1 + 1e-15, 2.0, -1.0]))
    words = ["separable", "touching", "inseparable", "complete", "quasi-complete", "overlap", "+1", "-1", "first"]
    if isinstance(value, str) and value not in words:
        top, _, bottom = value.partition("/")
        choices = ["-" + value, top, f"{top}1/{bottom or 1}", f"1/{bottom or 3}", "0", f"{top}/{bottom or 1}7"]
        return str(rng.choice(choices))
    return str(rng.choice(words)) if isinstance(value, str) else value


def tampered(text, rng):
    """Return a certificate with one value replaced, slightly changed, removed or repeated."""
    document = json.loads(text)
    at, key = document, None
    while isinstance(at, dict | list) and at:
        parent, key = at, rng.choice(list(at)) if isinstance(at, dict) else int(rng.integers(len(at)))
        at = parent[key]
        if rng.random() < 0.3:
            break
    chance = rng.random()
    if chance < 0.5:
        parent[key] = slightly_changed(at, rng)
        if key in ("verdict", "direction") and document.get("margin") and rng.random() < 0.5:  # both places consistently
            document["margin"]["direction"] = document["direction"]
    elif chance < 0.6:
        if isinstance(parent, dict):
            parent["more"] = 1
        else:
            parent.append(parent[0])
    elif chance < 0.7:
        del parent[key]
    else:
        parent[key] = VALUES[int(rng.integers(len(VALUES)))]
    return json.dumps(document)


def check_tampered(certificate, source, y, truth, rng):
    """A tampered certificate is refused in one line, or what it claims is true."""
    forged = tampered(certificate.to_json(), rng)
    try:
        claim = Certificate.from_json(forged)
    except ValueError as problem:
        assert "\n" not in str(problem)
        return
    if claim.fault(source, y) is not None or claim == certificate:
        return
    assert claim.verdict == truth[0] and claim.separation in (truth[1], None), (source, y, forged)
    if claim.verdict == "separable":  # another interval may be true, too, but both hold the same margin
        (lower, upper), (other_lower, other_upper) = certificate.margin, claim.margin
        assert other_lower <= upper and lower <= other_upper, (source, y, forged)


def run_fuzz(seed, count):
    """Make and tamper with `count` certificates. Return how many verdicts were undecided."""
    certify([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], [1, 0, 0, 1])  # compiles, which no limit should include
    undecided, rng = 0, np.random.default_rng(seed)
    for kind, source, X, y, K, bias in islice(generated(seed), count):
        certificate = certify(source, y, fit_intercept=bias, time_limit=100)
        if certificate.verdict == "undecided":
            undecided += 1
            assert kind == "cells", (kind, X.tolist(), y.tolist(), K, bias)
            continue
        assert certificate.verify(source, y), (X.tolist(), y.tolist(), K, bias)
        assert Certificate.from_json(certificate.to_json()) == certificate
        assert certificate.verdict in repr(certificate) and certificate._repr_html_()
        truth = answer(X.tolist(), y.tolist(), K, bias)
        assert certificate.verdict == truth[0], (X.tolist(), y.tolist(), K, bias)
        assert certificate.separation in (truth[1], None), (X.tolist(), y.tolist(), K, bias)
        check_tampered(certificate, source, y, truth, rng)
    return undecided


def test_no_certificate_is_wrong_at_any_scale():
    assert run_fuzz(0, scaled(40)) <= 2


@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=pytest.mark.slow if k < 10 else pytest.mark.soak) for k in range(100)]
)
def test_no_certificate_is_wrong_in_all_of_the_fuzz(part):
    print(run_fuzz([2, part], 1000), "undecided of 1000")


def test_a_changed_certificate_is_refused_or_true():
    sets = [([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1], {}), ([[3, 2], [-2, 2], [-2, -3]], [1, 0, 1], {})]
    sets += [([[1, 0], [-1, 0], [0, 1]], [1, 1, 0], {"fit_intercept": False}), ([[1, 2], [8, 9], [5, 20]], [0, 1, 2], {})]
    rng = np.random.default_rng(0)
    for X, y, options in sets:
        certificate = certify(X, y, **options)
        for _ in range(scaled(100)):
            check_tampered(certificate, X, y, (certificate.verdict, certificate.separation), rng)
