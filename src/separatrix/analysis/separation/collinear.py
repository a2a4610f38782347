"""Columns that are exact linear combinations of others, and the dimension of a face: ranks over the rationals.

A dependency is guessed from a few rows by an exact solution, and checked exactly on all rows; a row on which it fails joins
the few. What is returned is therefore proven, and at most one row joins for each column.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from separatrix.engine.rows import Floats, Ints, Rows
from separatrix.proofs.clock import check_time
from separatrix.proofs.search.exact_signs import exact_signs
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import System, independent
from separatrix.proofs.search.separation import reduced

Dependencies = dict[int, dict[int, Fraction]]
"""For each column that is a combination of columns before it: these, with their coefficients. The intercept comes first."""

MOST_COLUMNS = 1000
"""Of more columns the dependencies are not searched for."""
_NEARLY, _ROWS_AT_ONCE = 1e-10, 2000
MOST_CELLS = 5e7
"""How many rows × columns² an elimination may have."""


def dependencies(rows: Rows, bias: bool) -> Dependencies | None:
    """Return the exact dependencies among the columns of (x, 1), or None where there are too many columns.

    Examples
    --------
    >>> rows = Rows(np.array([[1.0, 0, 1, 2], [0, 1, 1, 0], [1, 1, 2, 2], [5, 7, 12, 10]]))
    >>> [(column, {j: str(c) for j, c in terms.items()}) for column, terms in dependencies(rows, True).items()]
    [(2, {0: '1', 1: '1'}), (3, {0: '2'})]
    """
    m = rows.d + bias
    if m > MOST_COLUMNS:
        return None
    vectors = Pairs(rows, np.ones(rows.n, np.int64), 2, bias)
    order = [m - 1, *range(m - 1)] if bias else list(range(m))
    few: Ints = np.unique(np.linspace(0, rows.n - 1, min(rows.n, 4 * m)).astype(np.int64))
    while True:
        table, shifts = vectors.whole(few)
        chosen, pivots = independent(table[:, order])
        if len(pivots) == m:
            return {}
        columns = [order[t] for t in pivots]
        system = System(table[np.ix_(chosen, columns)]) if columns else None
        proven: Dependencies = {}
        more: list[int] = []
        for j in sorted(set(range(m)) - set(columns), key=order.index):
            solution = system.solve(table[chosen, j]) if system is not None else []
            terms = {
                c: value * Fraction(2) ** (shifts[c] - shifts[j])
                for c, value in zip(columns, solution, strict=True)
                if value
            }
            equation = [Fraction(0)] * m
            equation[j] = Fraction(-1)
            for c, value in terms.items():
                equation[c] = value
            failing = np.flatnonzero(exact_signs(vectors, equation))
            if failing.size:
                more.append(int(failing[0]))
            else:
                proven[j] = terms
        joined = np.union1d(few, np.array(more, np.int64))
        if len(joined) == len(few):  # a rank was lost modulo p: what is proven stands
            return proven
        few = joined


def nearly_dependent(rows: Rows, bias: bool, exact: Dependencies) -> list[int]:
    """Return the columns that are combinations of columns before them within rounding, but not exactly."""
    if rows.sparse and rows.n * rows.d > 10_000_000:
        return []
    places = [rows.d, *range(rows.d)] if bias else list(range(rows.d))
    kept = [t for t, j in enumerate(places) if j not in exact]
    step = max(_ROWS_AT_ONCE, 2 * len(kept))

    def blocks() -> Iterator[Floats]:
        for first in range(0, rows.n, step):
            check_time()
            X = rows.source[first : first + step]
            X = X.toarray() if sp.issparse(X) else np.asarray(X)
            table: Floats = np.concatenate([np.ones((len(X), int(bias))), X.astype(np.float64)], axis=1)
            yield table[:, kept]

    with np.errstate(all="ignore"):
        tops, squares, triangle = np.zeros(len(kept)), np.zeros(len(kept)), np.empty((0, len(kept)))
        for block in blocks():
            tops = np.maximum(tops, np.abs(block).max(axis=0))
        for block in blocks():
            block /= tops
            squares += np.einsum("ij,ij->j", block, block)
        for block in blocks():  # R of all rows follows from the R of those so far and the next rows
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block / tops / np.sqrt(squares)]), mode="r"))
        diagonal = np.abs(np.diagonal(triangle))
    return [places[kept[t]] for t in np.flatnonzero(diagonal < _NEARLY).tolist()]


def without_dependent(vector: list[Fraction], exact: Dependencies) -> list[Fraction]:
    """Return the vector with the same scores on all rows, and 0 at the columns that depend on others."""
    out = list(vector)
    for j, terms in exact.items():
        check_time()
        for c, value in terms.items():
            out[c] += vector[j] * value
        out[j] = Fraction(0)
    return out


def spans_hyperplane(pairs: Pairs, inside: Ints, rank: int) -> bool | None:
    """Tell whether some pairs, on which a direction is 0, span all but one dimension of `rank`; None if that is too large.

    Then the direction is unique, up to its size and what collinear columns add. The rank modulo p is never above the true
    one, and the true one is below `rank`: True is proven.
    """
    if rank == 1:
        return True
    sample = inside[:: max(1, len(inside) // (4 * pairs.dim))]
    for which in (sample, inside):
        if len(which) * float(pairs.dim) ** 2 > MOST_CELLS:
            return None
        if len(which) >= rank - 1 and len(independent(reduced(pairs, which)[0])[0]) == rank - 1:
            return True
    return False
