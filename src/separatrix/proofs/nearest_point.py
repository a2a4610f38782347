"""The nearest point of a convex hull to the origin, by Lawson and Hanson's non-negative least squares.

    min ‖Zᵀu‖² + (1 − Σu)²  over u ≥ 0

Scaled to Σλ = 1, the solution's Zᵀλ is the point of the hull of Z's rows nearest to the origin, and its length is their
margin (L2 10, L4 9). Where it is 0 no separator exists, and the rows with positive weight, being affinely independent, are
a witness.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from separatrix.engine.rows import Floats, Ints


def nearest(Z: Floats) -> Floats | None:
    """Return the weights λ ≥ 0, Σλ = 1 of the hull's nearest point, or None where the iteration gave up."""
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


def worst(leads: Floats, below: float, most: int, known: Ints) -> Ints:
    """Return up to `most` pairs with the smallest leads below a limit, that are not known yet."""
    found = np.flatnonzero(~(leads > below))
    found = np.setdiff1d(found, known, assume_unique=True)
    if found.size > most:
        found = found[np.argpartition(leads[found], most - 1)[:most]]
    chosen: Ints = np.sort(found)
    return chosen
