"""The nearest point of a convex hull to the origin, by Lawson and Hanson's non-negative least squares.

    min ‖Zᵀu‖² + (1 − Σu)²  over u ≥ 0

Scaled to Σλ = 1, the solution's Zᵀλ is the point of the convex hull of Z's rows that is nearest to the origin, and its
length is their margin (L2 10, L4 9). If it is 0, no separator exists. The active set method keeps the rows with positive
weight affinely independent, so they are a minimal witness, of at most dim + 1 rows (Carathéodory).

SciPy's implementation cannot be interrupted. Where it would take long, `nearest_by_products` solves the same problem from
the products ZZᵀ. It loses half of the digits, which costs nothing but a later answer: what is found is checked exactly.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import check_time, seconds_left

_SECONDS_PER_CELL = 3e-9
_LONGEST = 2.0
"""The most seconds that SciPy is expected to take, without a limit or with plenty of time left."""


def nearest(Z: Floats) -> Floats | None:
    """Return the weights λ ≥ 0, Σλ = 1 of the hull's nearest point, or None where the iteration gave up."""
    if not np.isfinite(Z).all():  # numbers of very different sizes overflow
        return None
    k, dim = Z.shape
    expected = _SECONDS_PER_CELL * k * dim * min(k, dim + 1)
    if expected > min(_LONGEST, max(0.1, seconds_left() / 4)):
        return nearest_by_products(Z @ Z.T)
    from scipy.optimize import nnls  # loading it takes longer than most proofs

    E = np.empty((dim + 1, k))
    E[:dim] = Z.T
    E[dim] = 1.0
    target = np.zeros(dim + 1)
    target[dim] = 1.0
    try:
        u, _ = nnls(E, target, maxiter=10 * (k + dim))
    except (RuntimeError, np.linalg.LinAlgError):
        return None
    return _scaled(u)


def nearest_by_products(products: Floats) -> Floats | None:
    """Return the same from the products ⟨z,z'⟩ of the rows. On the support P the normal equations are (ZZᵀ + 11ᵀ)u = 1.

    Invariant: u ≥ 0 is 0 outside P and solves the equations of P. The row that most violates them joins P; where the new
    solution is negative somewhere, u moves towards it until a weight is 0, and that row leaves P.
    """
    from scipy.linalg import cho_factor, cho_solve

    k = len(products)
    M = products + 1.0
    u, support = np.zeros(k), np.zeros(k, bool)
    for _ in range(3 * k):
        violation = 1.0 - M @ u
        violation[support] = -np.inf
        worst_row = int(np.argmax(violation))
        if not violation[worst_row] > 1e-12:
            break
        support[worst_row] = True
        while True:
            check_time()
            P = np.flatnonzero(support)
            try:
                solved = cho_solve(cho_factor(M[np.ix_(P, P)]), np.ones(len(P)))
            except np.linalg.LinAlgError:  # dependent to rounding: u is as near as these products can tell
                return _scaled(u)
            if (solved > 0).all():
                break
            falling = P[solved <= 0]
            steps = u[falling] / np.maximum(u[falling] - solved[solved <= 0], 1e-300)
            u[P] += float(steps.min()) * (solved - u[P])
            leaving = falling[steps <= steps.min()]
            u[leaving], support[leaving] = 0.0, False
            if worst_row in leaving:  # only rounding let it in
                return _scaled(u)
        u[:] = 0.0
        u[P] = solved
    return _scaled(u)


def _scaled(u: Floats) -> Floats | None:
    total = float(u.sum())
    return u / total if total > 0 else None


def worst(blocks: Iterable[tuple[int, Floats]], below: float, most: int, excluded: Ints) -> tuple[Ints, float]:
    """Return up to `most` pairs with the smallest leads, below a limit (or NaN) and not excluded, and the least lead of all.

    The leads come in blocks, each with the number of its first pair.
    """
    chosen, values, least = np.empty(0, np.int64), np.empty(0), np.inf
    for first, leads in blocks:
        least = np.minimum(least, leads.min())  # NaN where a lead is NaN
        new = np.setdiff1d(first + np.flatnonzero(~(leads > below)), excluded, assume_unique=True)
        chosen, values = np.concatenate([chosen, new]), np.concatenate([values, leads[new - first]])
        if chosen.size > most:
            smallest = np.argpartition(values, most - 1)[:most]
            chosen, values = chosen[smallest], values[smallest]
    return np.sort(chosen), float(least)
