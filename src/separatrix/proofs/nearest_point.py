"""The nearest point of a convex hull to the origin, by Lawson and Hanson's non-negative least squares.

    min ‖Zᵀu‖² + (1 − Σu)²  over u ≥ 0

Scaled to Σλ = 1, the solution's Zᵀλ is the point of the convex hull of Z's rows that is nearest to the origin, and its
length is their margin (L2 10, L4 9). If it is 0, no separator exists. The active set method keeps the rows with positive
weight affinely independent, so they are a minimal witness, of at most dim + 1 rows (Carathéodory).
"""

from __future__ import annotations

import numpy as np

from separatrix.engine.rows import Floats, Ints


def nearest(Z: Floats) -> Floats | None:
    """Return the weights λ ≥ 0, Σλ = 1 of the hull's nearest point, or None where the iteration gave up."""
    from scipy.optimize import nnls  # loading it takes longer than most proofs

    k, dim = Z.shape
    E = np.empty((dim + 1, k))
    E[:dim] = Z.T
    E[dim] = 1.0
    target = np.zeros(dim + 1)
    target[dim] = 1.0
    try:
        u, _ = nnls(E, target, maxiter=10 * (k + dim))
    except (RuntimeError, np.linalg.LinAlgError):
        return None
    total = float(u.sum())
    weights: Floats = u / total if total > 0 else u
    return weights if total > 0 else None


def worst(leads: Floats, below: float, most: int, excluded: Ints) -> Ints:
    """Return up to `most` pairs with the smallest leads, below a limit (or NaN) and not among those excluded."""
    candidates = np.setdiff1d(np.flatnonzero(~(leads > below)), excluded, assume_unique=True)
    if candidates.size > most:
        candidates = candidates[np.argpartition(leads[candidates], most - 1)[:most]]
    chosen: Ints = np.sort(candidates)
    return chosen
