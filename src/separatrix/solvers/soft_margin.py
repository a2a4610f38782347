"""The soft margin: dual coordinate descent until the duality gap, computed from scratch, is small enough (L2 10, L4 9).

    two classes   min ½‖w‖² + Σ C_i max(0, 1 − y_i(⟨w,x_i⟩ + b))
    K jointly     min ½‖W‖² + Σ C_i max_r ([r ≠ y_i] + ⟨w_r,x_i⟩ + b_r − ⟨w_y,x_i⟩ − b_y)

A bias that costs nothing is one equation more in the dual, Σ_i α_i y_i = 0 (K classes: Σ_i α_ik = 0 for each k), which steps
on one coordinate cannot keep. So it is found by the proximal point method: the descent solves the problem with the term
(b − c)²/2ρ added, and c moves on to the b found. That converges for every ρ > 0, from anywhere, also when each problem is
solved only roughly (Rockafellar 1976): at the solution b = c, and the term is gone. Before the gap is computed, the
multipliers are made to keep the equation, so the dual objective really is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.rows import NO_WEIGHT, Floats, Ints, Rows, frozen
from separatrix.engine.weights import Flat, Weights, n_outputs
from separatrix.kernels.learning import dual_descent as kernels

FREE, AUGMENTED, ABSENT = "free", "augmented", "absent"
"""What the bias is: it costs nothing; it is the weight of one more feature, a 1; there is none."""

_CAUTION = 0.7
_MOST_CAUTIOUS = 0.05
"""Each time the running estimate of the gap proves too low, it has to be smaller by this factor, down to a least one."""
_RECALL = 0.5
"""Examples that were left out come back each time the largest violation has fallen by this factor."""


class Solution(NamedTuple):
    """Weights with the proof of how good they are: multipliers that are feasible in the dual, and both objectives."""

    weights: Weights
    alpha: Floats
    primal: float
    dual: float
    passes: int

    @property
    def gap(self) -> float:
        """How far the weights are from the best, at most: primal − dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap as a part of the primal objective."""
        if self.primal == np.inf:
            return np.inf
        return self.gap / self.primal if self.primal > 0.0 else 0.0


class MarginProblem:
    """Rows, the code of each class, what each example's violation costs (infinity: a hard margin), and what the bias is."""

    def __init__(self, rows: Rows, codes: Codes, n_classes: int, cost: Floats, bias: str = FREE) -> None:
        self.rows = rows if rows.parts is not None else rows.take(slice(None))
        self.codes, self.cost, self.bias = frozen(codes), frozen(cost), bias
        self.K = n_outputs(n_classes)
        self.hard = bool(np.isinf(cost).any())
        self.sign: Floats = frozen(np.where(codes == 1, 1.0, -1.0))
        norms = np.empty(rows.n)
        kernels.squared_norms(self.rows.parts, rows.d, norms)
        self.centre = np.zeros(rows.d)
        self.pull: Floats = NO_WEIGHT
        self.middle = 0.0
        if bias == FREE:
            self.centre = np.asarray(self.rows.source.mean(axis=0, dtype=np.float64)).reshape(-1)
            towards = self.rows.scores(self.centre[None], np.zeros(1))[:, 0]
            self.middle = float(self.centre @ self.centre)
            self.pull = frozen(towards - self.middle)
            norms = np.maximum(0.0, norms - towards - self.pull)
        self.norms: Floats = frozen(norms)
        """‖x‖², of the centred x where the bias is free."""
        self.rho: float = {FREE: float(np.mean(norms)) or 1.0, AUGMENTED: 1.0, ABSENT: 0.0}[bias]

    def relabelled(self, codes: Codes) -> MarginProblem:
        """Return the problem with other labels of two classes; what is known of the rows is kept."""
        other = copy(self)
        other.K, other.codes, other.sign = 1, frozen(codes), frozen(np.where(codes == 1, 1.0, -1.0))
        return other

    def solve(self, tol: float, max_passes: int, seed: int, is_late: Callable[[], bool] = lambda: False) -> Solution:
        """Descend until the relative duality gap is at most `tol`, or for `max_passes` passes; return the best found.

        `is_late` is asked after each pass whether to stop.
        """
        rows, K = self.rows, self.K
        alpha, state = np.zeros(rows.n * K), np.array([2 * seed + 88172645463325252], np.uint64)
        flat, sums, bias = Flat(K, rows.d, rows.sparse), np.zeros(K), np.zeros(K)
        order, passes, dual, caution, late = np.arange(rows.n), 0, 0.0, 1.0, False
        best: Solution | None = None
        while True:
            active, bounds, recalled = rows.n, np.array([np.inf, -np.inf]), np.inf
            while passes < max_passes:
                active, gap, gain = self._pass(flat, sums, alpha, order, active, bounds, state)
                passes, late = passes + 1, is_late()
                dual += gain
                if self.hard:
                    gap = self._hard_gap(flat, dual, bounds)
                if self.bias == FREE:
                    bias += self.rho * sums
                    flat.b += self.rho * sums
                    gap += abs(float(sums @ bias))
                if gap <= caution * tol * dual or late:
                    break
                violation = bounds[0] if K > 1 else bounds[0] - bounds[1]
                if violation < _RECALL * recalled:  # an example left out early may be needed now
                    active, recalled = rows.n, violation
                bounds[0] = bounds[0] if bounds[0] > 0.0 else np.inf
                bounds[1] = bounds[1] if bounds[1] < 0.0 else -np.inf
            solution = self.certified(alpha, bias=bias, passes=passes)
            if best is None or not solution.gap >= best.gap:
                best = solution
            if best.relative_gap <= tol or passes >= max_passes or late:
                return best._replace(passes=passes)
            alpha, dual = solution.alpha.copy(), solution.dual
            weights = self.combined(alpha)
            flat = Flat(K, rows.d, rows.sparse, weights)
            if self.bias != AUGMENTED:
                flat.b, sums = self._uncentred(bias, weights.coef), np.zeros(K)
            caution = max(_MOST_CAUTIOUS, _CAUTION * caution)

    def passes(self, seed: int) -> Iterator[Floats]:
        """Make one pass after the other; yield the multipliers, the same array after each."""
        rows, K = self.rows, self.K
        alpha, state = np.zeros(rows.n * K), np.array([2 * seed + 88172645463325252], np.uint64)
        flat, sums, order = Flat(K, rows.d, rows.sparse), np.zeros(K), np.arange(rows.n)
        active, bounds, recalled = rows.n, np.array([np.inf, -np.inf]), np.inf
        while True:
            active, _, _ = self._pass(flat, sums, alpha, order, active, bounds, state)
            yield alpha
            violation = bounds[0] if K > 1 else bounds[0] - bounds[1]
            if violation < _RECALL * recalled:
                active, recalled = rows.n, violation
            bounds[0] = bounds[0] if bounds[0] > 0.0 else np.inf
            bounds[1] = bounds[1] if bounds[1] < 0.0 else -np.inf

    def _pass(
        self, flat: Flat, sums: Floats, alpha: Floats, order: Ints, active: int, bounds: Floats, state: Any
    ) -> tuple[int, float, float]:
        rows = self.rows
        problem = (self.cost, self.norms, self.pull, self.middle)
        common = (*problem, alpha, flat.W, flat.b, sums, self.rho, order, active, bounds, state)
        if self.K == 1:
            left, gap, gain = kernels.descend(rows.parts, rows.d, self.sign, *common)
        else:
            left, gap, gain = kernels.descend_jointly(rows.parts, rows.d, self.codes, *common, np.empty(self.K))
        return int(left), gap, gain

    def _hard_gap(self, flat: Flat, dual: float, bounds: Floats) -> float:
        """Estimate the gap after scaling the weights so that the smallest lead is 1."""
        lead = 1.0 + bounds[1] if self.K == 1 else 1.0 - bounds[0]
        if lead <= 0.0:
            return np.inf
        return max(0.0, 0.5 * float(flat.W @ flat.W) / float(lead) ** 2 - dual)

    # The certificate: nothing below trusts what the descent kept up to date.

    def combined(self, alpha: Floats) -> Weights:
        """Return Σ_i α_ik x̃_i from scratch: its bias is the sum of the multipliers."""
        flat = Flat(self.K, self.rows.d, self.rows.sparse)
        signed = alpha * self.sign if self.K == 1 else alpha
        kernels.combine(self.rows.parts, self.rows.d, frozen(signed), flat.W, flat.b, self.K)
        return flat.weights()

    def certified(
        self, alpha: Floats, *, bias: Floats | None = None, passes: int = 0, weights: Weights | None = None
    ) -> Solution:
        """Return weights and both objectives: those of the multipliers, with this bias of centred rows, or given ones."""
        if self.bias == FREE:
            alpha = self._balanced(alpha)
        coef, sums = self.combined(alpha)
        squared = self._penalty(Weights(coef, sums))
        gain = float(np.sum(alpha if self.K == 1 else alpha.reshape(-1, self.K)[np.arange(self.rows.n), self.codes]))
        if self.hard and squared > 0.0:  # the best multiple of the multipliers
            scale = gain / squared
            alpha, coef, sums = alpha * scale, coef * scale, sums * scale
            gain, squared = gain * scale, squared * scale**2
        if weights is None:
            free = self._uncentred(np.zeros(self.K) if bias is None else bias, coef)
            weights = Weights(coef, {FREE: free, AUGMENTED: sums, ABSENT: np.zeros(self.K)}[self.bias])
        weights, primal = self._with_primal(weights)
        return Solution(weights, alpha, primal, gain - 0.5 * squared, passes)

    def _uncentred(self, bias: Floats, coef: Floats) -> Floats:
        """Return the bias of the rows as they are, given that of the centred ones."""
        uncentred: Floats = bias - coef @ self.centre if self.bias == FREE else bias.copy()
        return uncentred

    def _penalty(self, weights: Weights) -> float:
        """Return ‖w‖², or ‖w̃‖² where the bias is a weight like any other."""
        squared = float(np.sum(weights.coef**2))
        return squared + float(np.sum(weights.intercept**2)) if self.bias == AUGMENTED else squared

    def _with_primal(self, weights: Weights) -> tuple[Weights, float]:
        """Return the weights, with the best bias (two classes) and scale (hard margin), and their primal objective."""
        scores = self.rows.scores(weights.coef, np.zeros(self.K))
        intercept = weights.intercept
        if self.K == 1:
            if self.bias == FREE:
                intercept = np.array([self._best_bias(scores[:, 0])])
            leads = self.sign * (scores[:, 0] + intercept[0])
        else:
            leads = joint_leads(scores + intercept, self.codes)
        weights = Weights(weights.coef, intercept)
        if not self.hard:
            return weights, 0.5 * self._penalty(weights) + float(self.cost @ np.maximum(0.0, 1.0 - leads))
        smallest = float(leads.min())
        if not smallest > 0.0:
            return weights, np.inf
        weights = Weights(weights.coef / smallest, intercept / smallest)
        return weights, 0.5 * self._penalty(weights)

    def _best_bias(self, scores: Floats) -> float:
        """Return the b that costs least with these scores: halfway, or a weighted quantile of where examples turn right."""
        positive = self.sign > 0
        if self.hard:
            return float(-0.5 * (scores[positive].min() + scores[~positive].max()))
        turns = self.sign - scores
        order = np.argsort(turns)
        turned = np.cumsum(self.cost[order])
        wanted = float(self.cost[positive].sum())
        at = min(int(np.searchsorted(turned, wanted * (1.0 - 1e-12))), len(order) - 1)
        if turned[at] <= wanted * (1.0 + 1e-12) and at + 1 < len(order):
            return float(0.5 * (turns[order[at]] + turns[order[at + 1]]))
        return float(turns[order[at]])

    def _balanced(self, alpha: Floats) -> Floats:
        """Return multipliers made smaller so that the sum over the examples is zero for each output."""
        if self.K == 1:
            up, down = (float(alpha[self.sign == side].sum()) for side in (1.0, -1.0))
            lower = min(up, down)
            return alpha * np.where(self.sign > 0, lower / up if up else 0.0, lower / down if down else 0.0)
        # −α_ir is what example i takes from the rival r for its own class. Summed over the examples, these are flows between
        # classes, and Σ_i α_ik = 0 means that class k takes as much as is taken from it: a circulation.
        taken = -np.minimum(alpha.reshape(-1, self.K), 0.0)
        flow = np.zeros((self.K, self.K))
        np.add.at(flow, self.codes, taken)
        share = np.divide(circulation(flow), flow, out=np.zeros_like(flow), where=flow > 0.0)
        balanced = -taken * share[self.codes]
        balanced[np.arange(len(taken)), self.codes] = -balanced.sum(axis=1)
        return balanced.reshape(-1)


def joint_leads(scores: Floats, codes: Codes) -> Floats:
    """Return by how much the true class leads the best of the others."""
    each = np.arange(len(codes))
    true = scores[each, codes]
    scores = scores.copy()
    scores[each, codes] = -np.inf
    leads: Floats = true - scores.max(axis=1)
    return leads


def circulation(flow: Floats) -> Floats:
    """Return a flow between classes, nowhere above the given one, that takes from each class what it brings to it.

    While a class sends more than it gets, less is sent along a path from it to one that gets more than it sends; there
    always is one, for what a set of classes sends only to each other cannot exceed what they get.
    """
    flow = flow.copy()
    np.fill_diagonal(flow, 0.0)
    K = len(flow)
    excess = flow.sum(axis=1) - flow.sum(axis=0)
    slack = 4.0 * K * np.finfo(float).eps * float(flow.sum())
    while (start := int(np.argmax(excess))) >= 0 and excess[start] > slack:
        came_from = np.full(K, -1)
        queue, goal = [start], -1
        while queue and goal < 0:
            k = queue.pop(0)
            for r in np.flatnonzero(flow[k] > 0.0):
                if came_from[r] < 0 and r != start:
                    came_from[r] = k
                    queue.append(int(r))
                    if excess[r] < 0.0:
                        goal = int(r)
                        break
        if goal < 0:
            break
        path = [goal]
        while path[-1] != start:
            path.append(int(came_from[path[-1]]))
        steps = list(zip(path[1:], path[:-1], strict=True))
        less = min(float(excess[start]), -float(excess[goal]), *(float(flow[step]) for step in steps))
        for step in steps:
            flow[step] = max(0.0, flow[step] - less)
        excess[start] -= less
        excess[goal] += less
    return flow
