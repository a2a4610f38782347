"""check_separation of text and small integers: every coefficient and level is told, in little memory."""

import tracemalloc
from math import inf

import numpy as np
import scipy.sparse as sp

from separatrix import check_separation
from separatrix.analysis.separation.check import _empty_cells
from separatrix.analysis.separation.collinear import nearly_dependent
from separatrix.engine.rows import Rows


def text_with_many_classes(n, d, n_classes):
    """Return rows of 30 words each, which a linear function tells apart."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, d, 30 * n)
    X = sp.csr_matrix((rng.random(30 * n), words, np.arange(0, 30 * n + 1, 30)), (n, d))
    X.sum_duplicates()
    y = np.argmax(X @ rng.normal(size=(d, n_classes)), axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def test_the_coefficients_of_text_are_told_in_little_memory():
    X, y = text_with_many_classes(1200, 60_000, 30)
    check_separation(X[:100], y[:100])  # compiled
    tracemalloc.start()
    check = check_separation(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert check.separation == "complete" and check.rows == list(range(1200))
    W, b = check.certificate.separator
    relative = np.column_stack([W, b])[1:] - np.append(W[0], b[0])
    places = np.argwhere(relative)
    assert len(check.infinite) == len(places) > 100_000
    names = [*(f"x{j}" for j in range(60_000)), "intercept"]
    for place in (0, 5, 77_777, len(places) - 1, -1):
        each, (k, j) = check.infinite[place], places[place]
        assert (each.name, each.against_first, each.certain) == (names[j], k + 1, None)
        assert each.limit == (inf if relative[k, j] > 0 else -inf)
    assert f"… {len(places):,} in all" in repr(check)
    assert peak < 80e6  # a fraction for each: 290e6


def test_the_empty_levels_of_binary_text_are_told_in_little_memory():
    X, y = text_with_many_classes(1200, 60_000, 30)
    X.data[:] = 1
    tracemalloc.start()
    check = check_separation(X, y, time_limit=1e-9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    dense = X[:, :200].toarray() == 1
    expected = [
        (f"x{j}", level, k, int(has.sum()))
        for j in range(200)
        for level, has in (("1", dense[:, j]), ("0", ~dense[:, j]))
        for k in range(30)
        if dense[:, j].any() and not has[y == k].any()
    ]
    assert check.empty[: len(expected)] == expected and len(check.empty) > 500_000
    assert f"… {len(check.empty):,} in all" in repr(check)
    assert peak < 65e6  # an object for each: 80e6


def test_collinear_columns_of_data_whose_direction_is_a_sum_of_examples():
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (120, 80)).astype(float)
    X[:, 70] = 2 * X[:, 3]
    y = rng.integers(0, 30, 120)
    check = check_separation(X, y)
    assert check.separation == "complete" and len(check.certificate.proof.direction) > 0
    assert [each.column for each in check.collinear] == ["x70"]
    W, b = check.certificate.separator
    W = W.copy()
    W[:, 3] += 2 * W[:, 70]
    W[:, 70] = 0
    relative = np.column_stack([W, b])[1:] - np.append(W[0], b[0])
    names = [*(f"x{j}" for j in range(80)), "intercept"]
    expected = [(names[j], inf if relative[k, j] > 0 else -inf, None, k + 1) for k, j in np.argwhere(relative)]
    assert check.infinite == expected and check.infinite != expected[1:]


def test_columns_of_small_integers_are_examined_in_little_memory():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60_000, 60)).astype(np.uint8)
    codes = rng.integers(0, 3, 60_000)
    rows = Rows(X)
    names = [f"x{j}" for j in range(60)]
    tracemalloc.start()
    assert nearly_dependent(rows, True, {}) == [] and len(_empty_cells(rows, codes, [0, 1, 2], names)) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.nbytes  # 32 times, where all of them were turned into floats at once
    nearly = np.column_stack([X, X[:, 3] + 2.0 * X[:, 5] + rng.normal(size=60_000) * 1e-14])
    assert nearly_dependent(Rows(nearly), True, {}) == nearly_dependent(Rows(sp.csr_array(nearly)), True, {}) == [60]
