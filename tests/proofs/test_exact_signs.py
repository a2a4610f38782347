"""The search's exact signs and sums, against fractions; and where the checker is called from."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix.engine.rows import Rows
from separatrix.proofs.search.exact_signs import exact_signs, is_balanced
from separatrix.proofs.search.pairs import Pairs


def naive_signs(X, codes, K, bias, w):
    """Compute every lead with fractions; the row's own class gets 0."""
    rows = [[Fraction(value) for value in row] + [Fraction(1)] * bias for row in X.tolist()]
    m, signs = len(rows[0]), []
    for x, own in zip(rows, codes, strict=True):
        parts = [w[k * m : (k + 1) * m] for k in range(1 if K == 2 else K)]
        scores = [sum(a * b for a, b in zip(part, x, strict=True)) for part in parts]
        leads = [scores[0] if own else -scores[0]] if K == 2 else [scores[own] - score for score in scores]
        signs += [(lead > 0) - (lead < 0) for lead in leads]
    return signs


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["small integers", "large integers", "floats", "tiny steps", "sparse"])
def test_signs_are_those_of_fractions(K, bias, kind):
    rng = np.random.default_rng(3)
    X = rng.integers(-3, 4, (40, 3))
    X = {
        "large integers": X * 2**57 + rng.integers(-1, 2, X.shape),
        "floats": X * 0.1,
        "tiny steps": X + rng.integers(-1, 2, X.shape) * 2.0**-51,
    }.get(kind, X)
    codes = np.r_[np.arange(K), rng.integers(0, K, len(X) - K)]
    source = sp.csr_array(X.astype(float)) if kind == "sparse" else X
    pairs = Pairs(Rows(source), codes, K, bias)
    for w in (rng.integers(-2, 3, pairs.dim).astype(float), rng.standard_normal(pairs.dim)):
        exact = [Fraction(value) for value in w.tolist()]
        expected = naive_signs(X, codes, K, bias, exact)
        assert exact_signs(pairs, w).tolist() == expected
        assert exact_signs(pairs, [value / 3 for value in exact]).tolist() == expected


def test_a_combination_is_balanced_only_where_it_is_exactly_zero():
    pairs = Pairs(Rows(np.array([[0.1, 1.0], [0.3, 3.0], [0.1, 1.0]])), np.array([1, 0, 0]), 2, False)
    assert is_balanced(pairs, np.array([0, 2]), [Fraction(1), Fraction(1)])
    assert not is_balanced(pairs, np.array([0, 1]), [Fraction(3), Fraction(1)])  # 3 × 0.1 is not 0.3 in float64


@pytest.mark.parametrize("K", [2, 5])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_signs_and_leads_of_many_pairs_are_computed_by_blocks(monkeypatch, K, form):
    rng = np.random.default_rng(4)
    X, codes = rng.integers(-3, 4, (101, 4)).astype(float), np.arange(101) % K
    pairs = Pairs(Rows(form(X)), codes, K, True)
    w = rng.integers(-3, 4, pairs.dim).astype(float)
    whole, leads = exact_signs(pairs, w), pairs.leads(w)
    monkeypatch.setattr("separatrix.proofs.search.pairs._PAIRS_AT_ONCE", 37)
    assert exact_signs(pairs, w).tolist() == whole.tolist() == naive_signs(X, codes, K, True, [Fraction(v) for v in w])
    assert pairs.leads(w).tolist() == leads.tolist()


def test_signs_of_many_classes_take_little_memory():
    rng = np.random.default_rng(5)
    pairs = Pairs(Rows(rng.standard_normal((30_000, 2))), np.arange(30_000) % 100, 100, True)
    w = rng.standard_normal(pairs.dim)
    exact_signs(pairs, w)  # compiled, and what is kept of the pairs computed
    tracemalloc.start()
    exact_signs(pairs, w)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # 3 million leads, in several arrays: 190e6
