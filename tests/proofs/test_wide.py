"""Wide data, such as text: a separator is stated as a sum of examples, and nothing is written out in full."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import Certificate, certify, fewest_mistakes
from separatrix.proofs import prover
from separatrix.proofs.proof import Witness
from support.standalone_checker import standalone
from support.wide_text import text


def exact_weights(X, codes, proof, total):
    """Return Σλa in fractions, a dictionary of numbers for each class."""
    W = [{} for _ in range(1 if proof.n_classes == 2 else proof.n_classes)]
    for i, rival, weight in zip(total.rows, total.rivals, total.weights, strict=True):
        terms = {0: weight if codes[i] == 1 else -weight} if len(W) == 1 else {codes[i]: weight, rival: -weight}
        row = {**exact_row(X, i), **({proof.d: Fraction(1)} if proof.bias else {})}
        for k, factor in terms.items():
            for j, value in row.items():
                W[k][j] = W[k].get(j, 0) + factor * value
    return W


def exact_row(X, i):
    row = sp.csr_array(X)[[i]]
    return {int(j): Fraction(float(v)) for j, v in zip(row.indices, row.data, strict=True)}


def check_in_fractions(X, y, certificate):
    """Check a separator that is a sum, its margin and its bound without any code of ours."""
    proof, codes = certificate.proof, [certificate.classes.index(label) for label in y.tolist()]
    W = exact_weights(X, codes, proof, proof.direction)
    least = None
    for i, own in enumerate(codes):
        row = {**exact_row(X, i), **({proof.d: Fraction(1)} if proof.bias else {})}
        scores = [sum((w.get(j, 0) * value for j, value in row.items()), Fraction(0)) for w in W]
        if len(W) == 1:
            lead = scores[0] if own else -scores[0]
        else:
            lead = min(scores[own] - score for k, score in enumerate(scores) if k != own)
        least = lead if least is None else min(least, lead)
    square = sum(value * value for w in W for value in w.values())
    part = proof.margin
    assert least >= part.least > 0 and Fraction(part.lower) ** 2 * square <= part.least**2
    short = exact_weights(X, codes, proof, part.weights)
    length = sum(value * value for w in short for value in w.values())
    assert length <= (Fraction(part.upper) * sum(part.weights.weights)) ** 2
    assert proof.mistake_bound >= (proof.radius_squared * min(2, len(W)) * square / part.least**2).__floor__()


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("bias", [True, False])
def test_text_is_separable_by_a_sum_of_examples_that_holds_exactly(n_classes, bias):
    X, y = text(120, 3000, n_classes)
    certificate = certify(X, y, fit_intercept=bias)
    assert (certificate.verdict, certificate.separation) == ("separable", "complete")
    assert isinstance(certificate.proof.direction, Witness)
    check_in_fractions(X, y, certificate)
    lower, upper = certificate.margin
    assert 0 < lower <= upper < 3 * lower
    assert certify(X, y, fit_intercept=bias) == certificate
    read = Certificate.from_json(certificate.to_json())
    with pytest.raises(ValueError, match=r"call verify\(X, y\)"):
        _ = read.separator
    assert "sum of" in repr(read)
    assert read == certificate and read.verify(X, y) and not read.verify(X, y[::-1])
    w, b = read.separator
    scores = X @ np.atleast_2d(w).T + np.atleast_1d(b)
    assert (np.where(y == 1, 1, -1) * scores[:, 0] > 0).all() if n_classes == 2 else (np.argmax(scores, axis=1) == y).all()
    moving = set(np.flatnonzero((np.atleast_2d(w) != (w[0] if n_classes > 2 else 0)).any(axis=0)).tolist())
    assert set(read.infinite) - {"intercept"} == moving


@pytest.mark.parametrize("n_classes", [2, 5])
def test_columns_without_entries_change_nothing_but_the_width_of_the_separator(n_classes):
    X, y = text(300, 20_000, n_classes)
    X = sp.csr_matrix(X)[:, np.unique(X.indices)]
    places = np.sort(np.random.default_rng(0).choice(20_000, X.shape[1], replace=False))
    wide = sp.csr_matrix((X.data, places[X.indices], X.indptr), shape=(300, 20_000))
    certificate, spread = certify(X, y), certify(wide, y)
    assert spread.verify(wide, y) and spread.proof.direction == certificate.proof.direction
    np.testing.assert_allclose(spread.margin, certificate.margin, rtol=1e-8)
    w, u = np.atleast_2d(spread.separator[0]), np.atleast_2d(certificate.separator[0])
    np.testing.assert_array_equal(w[:, places], u)
    assert X.shape[1] > 2000 and w.shape[1] == 20_000 and np.count_nonzero(w) == np.count_nonzero(u)


def test_a_tampered_sum_is_refused():
    X, y = text(60, 3000, 3)
    proof = certify(X, y, exact=False).proof
    total, part = proof.direction, proof.margin
    heavier = replace(total, weights=(total.weights[0] * 1000, *total.weights[1:]))
    fewer = Witness(total.rows[1:], total.rivals[1:], total.weights[1:])
    least = sorted(total.weights)[0]
    forged = [
        replace(proof, direction=heavier, margin=replace(part, direction=heavier)),
        replace(proof, direction=fewer),
        replace(proof, margin=replace(part, least=part.least * 2)),
        replace(proof, margin=replace(part, lower=part.lower * (1 + 1e-6))),
        replace(proof, margin=replace(part, upper=part.upper * (1 - 1e-6))),
        replace(proof, mistake_bound=int(proof.mistake_bound * 0.999)),
        replace(proof, mistake_bound=proof.mistake_bound * 2),
        replace(proof, direction=replace(total, weights=(-least, *total.weights[1:]))),
        replace(proof, geometric=part),
    ]
    assert Certificate(proof, [0, 1, 2]).verify(X, y)
    assert [Certificate(each, [0, 1, 2]).verify(X, y) for each in forged] == [False] * len(forged)


def test_equal_rows_of_two_classes_are_a_witness():
    X, y = text(90, 4000, 3)
    X, y = sp.vstack([X, X[[7]]], format="csr"), np.append(y, 0)
    certificate = certify(X, y)
    assert certificate.verdict == "inseparable" and certificate.witness.rows == (7, 90) and certificate.verify(X, y)
    dense = certify(X.toarray(), y)
    assert dense.witness == certificate.witness and dense.separator[0].tolist() == certificate.separator[0].tolist()
    bounds = fewest_mistakes(X, y, time_limit=2)
    assert bounds.lower == 1 and bounds.mistaken
    assert fewest_mistakes(*text(90, 4000, 3), time_limit=2).upper == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_words_that_a_class_lacks_are_infinite(n_classes):
    """Equal rows in two classes forbid a separator; a word that one class lacks still separates the rows that have it."""
    X, y = text(90, 4000, n_classes)
    X, y = sp.vstack([X, X[[7]]], format="csr"), np.append(y, (y[7] + 1) % n_classes)
    certificate = certify(X, y)
    assert (certificate.verdict, certificate.separation) == ("inseparable", "quasi-complete") and certificate.verify(X, y)
    classes_of = np.array([np.asarray(abs(X[y == k]).sum(axis=0)).reshape(-1) > 0 for k in range(n_classes)]).sum(axis=0)
    assert certificate.infinite == np.flatnonzero((0 < classes_of) & (classes_of < n_classes)).tolist()
    shared = sp.csr_array(np.ones((len(y), 2500)))
    assert certify(shared, y).separation is None
    read = Certificate.from_json(certificate.to_json())
    assert read == certificate and read.verify(X, y) and not read.verify(X, (y + 1) % n_classes)


def test_both_ways_of_proving_agree_wherever_both_decide(monkeypatch):
    rng, decided = np.random.default_rng(1), 0
    for case in range(60):
        n, d, K = rng.integers(4, 14), rng.integers(1, 5), int(rng.integers(2, 5))
        X = [rng.integers(-3, 4, (n, d)) / 1.0, rng.standard_normal((n, d)), rng.integers(-3, 4, (n, d)) / 10][case % 3]
        if case % 5 == 0:
            X = X * 2.0 ** rng.integers(-1040, 1000)
        y = np.append(np.arange(K), rng.integers(0, K, n - min(n, K)))[:n]
        if case % 2:
            y = np.argmax(X @ rng.standard_normal((d, K)) + rng.standard_normal(K), axis=1)
        if len(np.unique(y)) < 2:
            continue
        bias = bool(rng.integers(2))
        monkeypatch.setattr(prover, "WIDE", 2000)
        narrow = certify(X, y, fit_intercept=bias, exact=False)
        monkeypatch.setattr(prover, "WIDE", 0)
        data = sp.csr_array(X) if case % 4 else X
        wide = certify(data, y, fit_intercept=bias, time_limit=1)
        if "undecided" in (narrow.verdict, wide.verdict):
            continue
        decided += 1
        assert wide.verdict == narrow.verdict and wide.verify(X, y) and wide.separation in (None, narrow.separation)
        if wide.verdict == "separable":
            check_in_fractions(X, y, wide)
            assert wide.margin[0] <= narrow.margin[1] * (1 + 1e-9) and narrow.margin[0] <= wide.margin[1] * (1 + 1e-9)
    assert decided > 30


def test_the_standalone_checker_reads_sums(tmp_path):
    rng = np.random.default_rng(0)
    X, y = np.round(rng.standard_normal((20, 700)), 2), np.arange(20) % 3
    data, proof = tmp_path / "wide.csv", tmp_path / "proof.json"
    np.savetxt(data, np.column_stack([X, y]), fmt="%.2f", delimiter=",")
    certificate = certify(X, y)
    certificate.to_json(proof)
    assert isinstance(certificate.proof.direction, Witness)
    assert standalone(proof, data)[0] == 0
    document = json.loads(proof.read_text())
    document["mistake_bound"] = document["mistake_bound"] * 99 // 100
    proof.write_text(json.dumps(document))
    assert standalone(proof, data) == (1, "NOT VALID: not this w's bound\n")


TESTS = str(Path(__file__).parents[1])
MEMORY = """
import sys
sys.path.insert(0, {tests!r})
from support.wide_text import text
from separatrix import certify
X, y = text(*{shape})
data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
certificate = certify(X, y, time_limit={limit})
assert certificate.verdict == "separable", certificate
status = open("/proc/self/status").read()  # ru_maxrss would include the process that started this one
print(int(status.split("VmHWM:")[1].split()[0]) * 1024, data)
"""


@pytest.mark.slow
def test_memory_stays_within_eight_times_the_data_and_500_mb():
    """Twenty classes of 262,144 features have 5 million weights: 42 MB each time that they are written out."""
    program = MEMORY.format(tests=TESTS, shape=(2500, 1 << 18, 20), limit=60)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    used, data = map(int, done.stdout.split())
    assert used < 8 * data + 500e6


@pytest.mark.soak
def test_memory_of_52_classes_stays_within_eight_times_the_data_and_500_mb():
    """The sizes of the report: 25,000 × 262,144 with 52 classes asked for 663 GB."""
    program = MEMORY.format(tests=TESTS, shape=(25_000, 1 << 18, 52), limit=None)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    used, data = map(int, done.stdout.split())
    assert used < 8 * data + 500e6


@pytest.mark.parametrize("twins", [False, True])
def test_rows_of_length_1_in_millions_of_columns_are_decided(twins):
    X, y = text(300, 3_000_000, 2)
    if twins:
        X, y = sp.vstack([X, X[[0]]], format="csr"), np.append(y, 1 - y[0])
    certificate = certify(X, y)
    assert certificate.verdict == ("inseparable" if twins else "separable") and certificate.verify(X, y)
