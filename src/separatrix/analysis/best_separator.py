"""The best separator of labelled examples in the space of x̃, where the theorems live (L1 9, L2 7)."""

from __future__ import annotations

import time
from math import inf
from typing import NamedTuple

import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.rows import Floats, Rows
from separatrix.engine.weights import Weights
from separatrix.solvers.hard_margin import Inseparable, solve_hard
from separatrix.solvers.soft_margin import ABSENT, AUGMENTED, MarginProblem, joint_leads

_TOL = 1e-6
_PASSES = 2000
_QUICK, _QUICK_PAIRS = 300, 2_000_000
"""So many weights the least squares solve in less than a second, and so many pairs they look through in one."""


class Separator(NamedTuple):
    """w̃* of length 1, and γ: the smallest y⟨w̃*,x̃⟩ or lead of the true class, minus a bound on the rounding error."""

    weights: Weights
    gamma: float

    @property
    def flat(self) -> Floats:
        """The weights and the biases as one vector."""
        return flattened(self.weights)


def flattened(weights: Weights) -> Floats:
    """Return weights and biases as one vector."""
    return np.concatenate([weights.coef.reshape(-1), weights.intercept])


def best_separator(rows: Rows, codes: Codes, n_classes: int, *, bias: bool, deadline: float = inf) -> Separator | None:
    """Return the separator with the largest margin, or None if none was found, usually because there is none.

    After the deadline, of `time.monotonic`, the best one found so far is returned.
    """

    def is_late() -> bool:
        return time.monotonic() > deadline

    problem = MarginProblem(rows, codes, n_classes, np.full(rows.n, np.inf), AUGMENTED if bias else ABSENT)
    if len(np.unique(codes)) < 2 or (not bias and not problem.norms.all()):
        return None
    try:
        is_small = rows.d * problem.K <= _QUICK and rows.n * problem.K <= _QUICK_PAIRS
        is_quick = deadline == inf or is_small  # least squares cannot be interrupted
        solution = solve_hard(problem, _TOL, 0, is_late) if is_quick else None
    except Inseparable:
        return None
    if solution is None:
        solution = problem.solve(_TOL, _PASSES, 0, is_late)
    if not np.isfinite(solution.primal):
        return None
    return normalised(solution.weights, rows, codes)


def normalised(weights: Weights, rows: Rows, codes: Codes) -> Separator | None:
    """Return weights scaled to length 1 with their margin on these examples, or None if they do not separate them."""
    length = float(np.linalg.norm(flattened(weights)))
    if length == 0.0:
        return None
    unit = Weights(weights.coef / length, weights.intercept / length)
    scores = rows.scores(*unit)
    leads = np.where(codes == 1, 1.0, -1.0) * scores[:, 0] if scores.shape[1] == 1 else joint_leads(scores, codes)
    radius = float(np.sqrt(max(rows.survey(), 0.0) + 1.0))
    rounding = 4.0 * (rows.d + 2) * np.finfo(float).eps * radius
    gamma = float(leads.min()) - rounding
    return Separator(unit, gamma) if gamma > 0.0 else None
