"""The hard margin, solved on the support vectors: the nearest point of a convex hull (L2 10, L4 9).

    min ½‖w‖²  subject to  ⟨w,a_i⟩ + ⟨β,c_i⟩ ≥ 1            a_i = y_i x_i, c_i = y_i   (K: one for each example and rival)
    max Σλ_i − ½‖Σ λ_i a_i‖²  subject to  λ ≥ 0, Σ λ_i c_i = 0

Lawson and Hanson: λ is the nonnegative least-squares solution of ‖Σ λ_i a_i‖² + M²‖Σ λ_i c_i‖² + τ²(1 − Σ λ_i)². It names
the examples that touch the margin. On these the constraints are equations, which are solved with residuals in extended
precision: raw features with margins of 10⁻⁸ of the radius need it. Examples that violate the solution join the working set.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.optimize import nnls

from separatrix.engine.rows import Array, Floats, Ints
from separatrix.engine.weights import Weights
from separatrix.solvers.soft_margin import ABSENT, AUGMENTED, FREE, MarginProblem, Solution

WIDEST = 4000
"""More weights than this are left to the descent: the working set is dense."""

SMALLEST = 1e-11
"""The smallest margin, as a part of the radius, that float64 can tell from none."""

_BATCH = 256
"""So many violated constraints join the working set in a round."""
_FIRST_SCALE = 1e-2
_ROUNDS = 60
_BIAS_WEIGHT = 1e3
"""M of the penalty M²‖Σ λ_i c_i‖²."""
_EXCHANGES = 20
_LARGEST_SYSTEM = 1500


class Inseparable(ValueError):  # noqa: N818
    """No plane separates the examples, or none that float64 can tell."""

    def __init__(self) -> None:
        super().__init__(
            "no plane separates these examples with a margin that can be told from 0, and a hard margin needs one; "
            "give a finite C for a soft margin"
        )


class Constraints(NamedTuple):
    """Constraints as dense rows: ⟨w,a_i⟩ + ⟨β,c_i⟩ ≥ 1."""

    a: Floats
    c: Floats


class Geometry:
    """The constraints of a problem, in centred and scaled coordinates (without a free bias only scaled)."""

    def __init__(self, problem: MarginProblem) -> None:
        self.problem, self.K = problem, problem.K
        self.centre = problem.centre
        self.radius = float(np.sqrt(problem.norms.max() + (problem.bias == AUGMENTED))) or 1.0

    def leads(self, weights: Weights) -> Floats:
        """Return ⟨w,a⟩ + ⟨β,c⟩ of every constraint, an example a row; the true class leads itself by infinity."""
        problem = self.problem
        scores = problem.rows.scores(*weights)
        if self.K == 1:
            return problem.sign[:, None] * scores
        each = np.arange(len(scores))
        leads = scores[each, problem.codes][:, None] - scores
        leads[each, problem.codes] = np.inf
        return leads

    def working(self, which: Ints) -> Constraints:
        """Return some constraints (numbers in the flattened `leads`) as dense rows."""
        problem = self.problem
        example, rival = np.divmod(which, self.K)
        taken = problem.rows.source[example]
        x = (taken.toarray() if problem.rows.sparse else np.asarray(taken)).astype(np.float64) - self.centre
        x /= self.radius
        if problem.bias == AUGMENTED:
            x = np.hstack([x, np.full((len(x), 1), 1.0 / self.radius)])
        if self.K == 1:
            side = problem.sign[example][:, None]
            return Constraints(x * side, side if problem.bias == FREE else np.zeros((len(x), 0)))
        e = np.zeros((len(x), self.K))
        e[np.arange(len(x)), problem.codes[example]] = 1.0
        e[np.arange(len(x)), rival] = -1.0
        a = (e[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return Constraints(a, e[:, 1:] if problem.bias == FREE else np.zeros((len(x), 0)))

    def weights(self, w: Floats, beta: Floats) -> Weights:
        """Return weights of the raw features."""
        W = w.reshape(self.K, -1) / self.radius
        if self.problem.bias == AUGMENTED:
            return Weights(np.ascontiguousarray(W[:, :-1]), W[:, -1].copy())
        intercept = np.zeros(self.K)
        if self.problem.bias == FREE:
            intercept[self.K - len(beta) :] = beta
            intercept = intercept - W @ self.centre
        return Weights(W, intercept)

    def alpha(self, which: Ints, multipliers: Floats) -> Floats:
        """Return multipliers of the constraints as those of the problem."""
        n, K = self.problem.rows.n, self.K
        alpha = np.zeros((n, K))
        example, rival = np.divmod(which, K)
        if K == 1:
            alpha[example, 0] = multipliers
        else:
            alpha[example, rival] = -multipliers
            alpha[np.arange(n), self.problem.codes] = -alpha.sum(axis=1)
        return alpha.reshape(-1) / self.radius**2


def solve_hard(
    problem: MarginProblem, tol: float, seed: int, is_late: Callable[[], bool] = lambda: False
) -> Solution | None:
    """Return the hard-margin solution, or None where the descent should rather try; raise `Inseparable`.

    It ends early, with the best solution so far, when `is_late` says so.
    """
    if problem.rows.d * problem.K > WIDEST:
        return None
    geometry = Geometry(problem)
    everything = problem.rows.n * problem.K
    true = problem.codes + problem.K * np.arange(problem.rows.n) if problem.K > 1 else np.empty(0, np.int64)
    rng = np.random.default_rng(seed)
    chosen = np.setdiff1d(np.sort(rng.permutation(everything)[: 2 * _BATCH]), true)
    if not all(np.isin(range(max(2, problem.K)), problem.codes[chosen // problem.K])):
        first = np.unique(problem.codes, return_index=True)[1] * problem.K
        chosen = np.setdiff1d(np.union1d(chosen, np.concatenate([first + k for k in range(problem.K)])), true)
    # Each round solves the problem with the chosen constraints only. When its solution violates no other constraint, it
    # solves the whole problem. A constraint with λ = 0 is inactive and leaves the working set.
    best: Solution | None = None
    scale = _FIRST_SCALE
    for _ in range(_ROUNDS):
        try:
            w, beta, multipliers, scale = nearest(geometry.working(chosen), scale)
        except RuntimeError:  # the least squares took too many steps
            break
        weights = geometry.weights(w, beta)
        solution = problem.certified(geometry.alpha(chosen, multipliers), weights=weights)
        if best is None or not solution.gap >= best.gap:
            best = solution
        if best.relative_gap <= tol or is_late():
            return best if np.isfinite(best.primal) else None
        leads = geometry.leads(weights).reshape(-1)
        leads[chosen] = np.inf
        worst = np.argsort(leads)[:_BATCH]
        worst = worst[leads[worst] < 1.0]
        if not worst.size:
            break
        chosen = np.union1d(chosen[multipliers > 0.0], worst)
    return best if best is not None and np.isfinite(best.primal) else None


def solve_margin(problem: MarginProblem, tol: float, max_iter: int, seed: int) -> Solution:
    """Return the solution of a hard or soft margin, by least squares where they suffice; raise `Inseparable`."""
    solution = None
    if problem.hard:
        alone = len(np.unique(problem.codes)) < 2
        if alone or (problem.bias == ABSENT and not problem.norms.all()):
            raise Inseparable
        solution = solve_hard(problem, tol, seed)
    if solution is None or solution.relative_gap > tol:
        descended = problem.solve(tol, max_iter, seed)
        if solution is None or descended.gap < solution.gap:
            solution = descended
    if solution.primal == np.inf:
        raise Inseparable
    return solution


def nearest(working: Constraints, scale: float) -> tuple[Floats, Floats, Floats, float]:
    """Return (w, β, λ, the margin) for some constraints; `scale` is about what the margin may be."""
    a, c = working
    f = np.zeros(a.shape[1] + c.shape[1] + 1)
    f[-1] = 1.0
    while True:
        E = np.vstack([a.T / scale, c.T * (_BIAS_WEIGHT / scale), np.ones(len(a))])
        u, _ = nnls(E, f, maxiter=30 * max(E.shape))
        # With τ = 1 and lengths in units of `scale`, Σu < 1, and u/Σu are the weights of the nearest point of the hull.
        total = float(u.sum())
        distance = float(np.linalg.norm(E[:-1] @ u)) * scale / total if total > 0.0 else 0.0
        if distance <= SMALLEST:
            raise Inseparable
        if distance > 0.01 * scale:
            break
        scale = distance
    multipliers = u / (scale**2 * (1.0 - total))
    solved = exact(working, u > 0.0) or (a.T @ multipliers, _BIAS_WEIGHT**2 * (c.T @ multipliers), multipliers)
    return *solved, distance


def exact(working: Constraints, touching: Array) -> tuple[Floats, Floats, Floats] | None:
    """Solve the equations of the constraints that touch, exchanging those that should not; None where that fails.

    w = Σ λ_i a_i, Σ λ_i c_i = 0, and ⟨w,a_i⟩ + ⟨β,c_i⟩ = 1 on the support. Iterative refinement: residuals in extended
    precision, corrections in double.
    """
    a, c = working
    support = np.flatnonzero(touching)
    q = c.shape[1]
    if min(a.shape[1], len(support)) + q + len(support) > _LARGEST_SYSTEM:
        return None
    for _ in range(_EXCHANGES):
        A, Y, p = a[support], c[support], len(support)
        Q = None
        if a.shape[1] > 2 * p:  # w lies in the span of the support
            Q, triangle = np.linalg.qr(A.T)
            A = triangle.T
        d = A.shape[1]
        system = np.zeros((d + q + p, d + q + p))
        system[:d, :d] = np.eye(d)
        system[:d, d + q :] = -A.T
        system[d : d + q, d + q :] = Y.T
        system[d + q :, :d] = A
        system[d + q :, d : d + q] = Y
        wanted = np.zeros(d + q + p, np.longdouble)
        wanted[d + q :] = 1.0
        precise, solution = system.astype(np.longdouble), np.zeros(d + q + p, np.longdouble)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a singular system shows in the solution
            factors = lu_factor(system, check_finite=False)
            for _ in range(6):
                correction = lu_solve(factors, (wanted - precise @ solution).astype(float), check_finite=False)
                solution = solution + correction
        if not np.all(np.isfinite(solution)):
            return None
        w, beta, multipliers = (part.astype(float) for part in np.split(solution, [d, d + q]))
        if multipliers.min() < 0.0:  # not optimal: this constraint does not touch
            support = np.delete(support, np.argmin(multipliers))
            continue
        w = w if Q is None else Q @ w
        leads = a @ w + c @ beta
        # Not feasible: the constraint that is violated most has to touch.
        if leads.min() < 1.0 - 1e-7 and np.argmin(leads) not in support:
            support = np.append(support, np.argmin(leads))
            continue
        full = np.zeros(len(a))
        full[support] = multipliers
        return w, beta, full
    return None
