"""The best separator of labelled examples in the space of x̃, where the theorems live (L1 9, L2 7)."""

from __future__ import annotations

import time
from math import inf
from typing import NamedTuple

import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.rows import Floats, Ints, Rows
from separatrix.engine.weights import Weights
from separatrix.solvers.hard_margin import Inseparable, solve_hard
from separatrix.solvers.soft_margin import ABSENT, AUGMENTED, MarginProblem, joint_leads

_TOL = 1e-6
_PASSES = 2000
_MANY_PAIRS, _MOST_MULTIPLIERS = 1 << 22, 1 << 21
"""Of more pairs of a row and one of K > 2 classes than the first, only so many have multipliers: those of hard rows."""
_ROUNDS, _FIRST_SHARE, _NEW_SHARE = 20, 0.5, 0.1
"""Of the rows that may have multipliers: these begin, and these join after each round."""
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

    if len(np.unique(codes)) < 2:
        return None
    if has_many_pairs(rows.n, n_classes):
        return _separator_of_hardest(rows, codes, n_classes, bias, deadline)
    problem = MarginProblem(rows, codes, n_classes, np.full(rows.n, np.inf), AUGMENTED if bias else ABSENT)
    if not bias and not problem.norms.all():
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


def has_many_pairs(n: int, n_classes: int) -> bool:
    """Tell whether a multiplier for each pair would take more memory than the data may cost."""
    return n_classes > 2 and n * n_classes > _MANY_PAIRS


def sample(rows: Rows, codes: Codes, n_classes: int, share: float = 1.0) -> Ints:
    """Return random rows, as many as may have multipliers, or a share of these, with one of each class at least."""
    count = max(1, int(share * _MOST_MULTIPLIERS / n_classes))
    drawn = np.random.default_rng(0).integers(0, rows.n, count)
    return np.union1d(np.unique(codes, return_index=True)[1], drawn)


def _separator_of_hardest(rows: Rows, codes: Codes, n_classes: int, bias: bool, deadline: float) -> Separator | None:
    """Return the best separator of some rows that separates all; those that it separates least join them."""
    most, best = _MOST_MULTIPLIERS // n_classes, None
    work = sample(rows, codes, n_classes, _FIRST_SHARE)
    for _ in range(_ROUNDS):
        some = rows.take(work)
        problem = MarginProblem(some, codes[work], n_classes, np.full(some.n, np.inf), AUGMENTED if bias else ABSENT)
        if not bias and not problem.norms.all():
            return None
        solution = problem.solve(_TOL, _PASSES, 0, lambda: time.monotonic() > deadline)
        if not np.isfinite(solution.primal):
            break
        found = normalised(solution.weights, rows, codes)
        best = found if best is None or (found is not None and found.gamma > best.gamma) else best
        leads = smallest_leads(rows, solution.weights, codes)
        leads[work] = inf
        new = np.argsort(leads, kind="stable")[: max(1, int(_NEW_SHARE * most))]
        new = new[leads[new] < 1.0 - _TOL]  # the smallest of the others is 1
        if not new.size or len(work) >= most or time.monotonic() > deadline:
            break
        work = np.union1d(work, new)
    return best


def smallest_leads(rows: Rows, weights: Weights, codes: Codes) -> Floats:
    """Return the smallest lead of each row: y(⟨w,x⟩ + b) for two classes."""
    outputs = len(weights.coef)
    if not has_many_pairs(rows.n, outputs):
        scores = rows.scores(*weights)
        return np.where(codes == 1, 1.0, -1.0) * scores[:, 0] if outputs == 1 else joint_leads(scores, codes)
    leads, step = np.empty(rows.n), max(1, _MOST_MULTIPLIERS // outputs)
    for begin in range(0, rows.n, step):
        which = np.arange(begin, min(rows.n, begin + step))
        leads[which] = joint_leads(rows.scores(*weights, which), codes[which])
    return leads


def normalised(weights: Weights, rows: Rows, codes: Codes) -> Separator | None:
    """Return weights scaled to length 1 with their margin on these examples, or None if they do not separate them."""
    length = float(np.linalg.norm(flattened(weights)))
    if length == 0.0:
        return None
    unit = Weights(weights.coef / length, weights.intercept / length)
    leads = smallest_leads(rows, unit, codes)
    radius = float(np.sqrt(max(rows.survey(), 0.0) + 1.0))
    rounding = 4.0 * (rows.d + 2) * np.finfo(float).eps * radius
    gamma = float(leads.min()) - rounding
    return Separator(unit, gamma) if gamma > 0.0 else None
