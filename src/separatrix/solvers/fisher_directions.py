"""The directions that maximise Fisher's quotient (L3 3), for two classes and for K.

    J(w) = Σ_{j<k} (wᵀ(μ_j − μ_k))² / wᵀSw,        S = Σ_1 + … + Σ_K

For two classes the maximiser is w = S⁻¹(μ_1 − μ_2). For K it is the first solution of the generalised eigenproblem Bw = λSw,
B = Σ_{j<k} (μ_j − μ_k)(μ_j − μ_k)ᵀ = K Σ_k (μ_k − μ̄)(μ_k − μ̄)ᵀ, and the others follow, K − 1 in all. With a factor S = LLᵀ
the columns of A = L⁻ᵀU solve it, U the left singular vectors of L⁻¹(μ_1 − μ̄, …, μ_K − μ̄), and AᵀSA = I. Everything is
computed in units of each feature's own deviation, so that badly scaled features cost no digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from separatrix.engine.rows import Floats
from separatrix.engine.user_warnings import warn_user

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 100 * _EPS

UNBOUNDED = (
    "the classes differ in a direction in which none of them varies (the covariances have rank {rank}, for {d} features): "
    "Fisher's quotient has no largest value, and that direction is taken; give more examples, or set shrinkage"
)
EQUAL_MEANS = "the classes have the same mean: no direction tells them apart by it, and all weights are 0"


class Directions(NamedTuple):
    """The columns of A with AᵀSA = I, best first; the quotient of each; the shrinkage used."""

    A: Floats
    quotients: Floats
    shrinkage: float


def maximise(S: Floats, means: Floats, shrinkage: float | str | None, n: float) -> Directions:
    """Return the maximisers of the quotient; S is overwritten, and n examples are behind it (for shrinkage "auto").

    Where S is singular there are two cases. If the means differ only where S varies, Sw = μ_1 − μ_2 has solutions, all with
    the same quotient, and the shortest is taken (in units of the features' deviations): the pseudo-inverse. If they differ
    along a direction without variance, the quotient is unbounded: that direction is taken, its variance counted as the
    smallest that rounding can tell from 0, with a warning.
    """
    K, d = means.shape
    # Differences of means and deviations that rounding alone explains count as 0.
    centred = means - means.mean(axis=0)
    size = np.abs(means).max(axis=0)
    centred[:, np.abs(centred).max(axis=0) <= _ROUNDING * size] = 0.0
    deviation = np.sqrt(np.maximum(S.diagonal(), 0.0))
    constant = deviation <= _ROUNDING * size
    # In units of the deviations S has a diagonal of 1, but for constant features, which get the largest difference of means.
    unit = np.where(constant, float(np.abs(centred[:, constant]).max(initial=0.0)) or 1.0, deviation)
    S[constant] = S[:, constant] = 0.0
    S /= unit
    S /= unit[:, None]
    if not np.isfinite(S).all():
        raise ValueError("the moments of X outgrew float64: scale the features first")
    alpha = _oas(S, n) if shrinkage == "auto" else float(shrinkage or 0.0)
    # Shrinkage towards the diagonal: S ← (1 − α)S + α·diag(S).
    diagonal = S.diagonal().copy()
    S *= 1.0 - alpha
    np.fill_diagonal(S, diagonal)
    if not centred.any():
        warn_user(EQUAL_MEANS, linalg.LinAlgWarning)
        return Directions(np.zeros((d, 1)), np.zeros(1), alpha)
    whitened, back = _whiten(S, (centred / unit).T)
    # The maximisers are A = L⁻ᵀU, back in the units of the features; the last class scores higher than the first.
    U, s, _ = linalg.svd(whitened, full_matrices=False)
    A = back(U[:, : K - 1]) / unit[:, None]
    A *= np.where((centred[-1] - centred[0]) @ A < 0.0, -1.0, 1.0)
    return Directions(A, K * s[: A.shape[1]] ** 2, alpha)


def _whiten(S: Floats, M: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return L⁻¹M and the map u ↦ L⁻ᵀu, for a factor LLᵀ of S, or of what stands for it where it is singular."""
    d = len(S)
    tolerance = 10 * d * _EPS
    norm = float(np.abs(S).sum(axis=0).max())
    try:
        L = linalg.cholesky(S, lower=True, check_finite=False)
        reciprocal, _ = linalg.lapack.dpocon(L, norm, uplo="L")
    except linalg.LinAlgError:
        reciprocal = 0.0
    if reciprocal > tolerance:
        return (
            linalg.solve_triangular(L, M, lower=True, check_finite=False),
            lambda U: linalg.solve_triangular(L, U, lower=True, trans="T", check_finite=False),
        )
    # S = VΛVᵀ is singular to working precision: L = VΛ^½, without the directions in which nothing varies.
    values, V = linalg.eigh(S, overwrite_a=True, check_finite=False)
    least = tolerance * max(float(values[-1]), 1.0)
    varies = values > least
    parts = V.T @ M
    if np.linalg.norm(parts[~varies]) ** 2 > least:
        warn_user(UNBOUNDED.format(rank=varies.sum(), d=d), linalg.LinAlgWarning)
        values = np.maximum(values, least)
    else:
        values, V, parts = values[varies], V[:, varies], parts[varies]
    root = np.sqrt(values)[:, None]
    return parts / root, lambda U: V @ (U / root)


def _oas(R: Floats, n: float) -> float:
    """Return the shrinkage of Chen, Wiesel, Eldar and Hero (2010) for a matrix R of moments of n examples."""
    p = max(1, int(np.count_nonzero(R.diagonal())))
    mean_square, mean = float(np.vdot(R, R)) / p**2, float(np.trace(R)) / p
    bottom = (n + 1.0) * (mean_square - mean**2 / p)
    return min(1.0, (mean_square + mean**2) / bottom) if bottom > 0.0 else 1.0
