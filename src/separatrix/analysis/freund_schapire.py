"""The smallest bound that the theorem of Freund and Schapire (1999) gives: a convex problem in v = u/γ.

    minimise R‖v‖ + √T·‖h(v)‖₂        h_i = max(0, 1 − y_i⟨v,x̃_i⟩)   (K classes: 1 − the lead of the true class)

The theorem: for any u of length 1 and γ > 0 the perceptron makes at most ((R + D)/γ)² mistakes in one pass, where
D² = Σ max(0, γ − y⟨u,x̃⟩)². In T passes every example is presented T times, so D² counts T times. With v = u/γ the bound is
the square of the objective. It holds for *every* v, so the result of an imperfect search is still a bound; v = 0 gives T·n.
The two norms have corners at 0 only, which are smoothed for the search; the value that is returned is not smoothed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from separatrix.analysis.best_separator import Separator, has_many_pairs, sample
from separatrix.engine.labels import Codes
from separatrix.engine.rows import Floats, Rows
from separatrix.engine.weights import Weights
from separatrix.solvers.soft_margin import ABSENT, AUGMENTED, MarginProblem

_SCORES = 1 << 21
"""So many scores are computed at a time, where all would be very many."""
_MOST_NUMBERS = 30_000_000
"""So many floats the search may keep: 240 MB."""
_REMEMBERED, _VECTORS = 10, 12
"""L-BFGS remembers so many steps at most, two vectors each, and works with about so many others."""


class Shortfall(NamedTuple):
    """v, and (R‖v‖ + √T‖h(v)‖)²."""

    v: Floats
    bound: float


class _Late(Exception):  # noqa: N818
    """The deadline has passed."""


class _Objective:
    def __init__(self, rows: Rows, codes: Codes, n_classes: int, radius: float, passes: int, bias: bool) -> None:
        self.X, self.sparse, self.bias, self.deadline = rows.source, rows.sparse, bias, inf
        self.codes, self.K, self.d = codes, n_classes if n_classes > 2 else 1, rows.d
        self.sign = np.where(codes == 1, 1.0, -1.0)
        self.radius, self.weight = radius, sqrt(passes)
        if self.sparse:
            self.X = self.X.astype(np.float64, copy=False)
        squares = self.X.multiply(self.X).mean(axis=0) if self.sparse else np.mean(np.square(self.X, dtype=float), axis=0)
        spread = np.sqrt(np.asarray(squares, dtype=float).reshape(-1))
        spread[spread == 0.0] = 1.0
        self.scale = 1.0 / (np.append(spread, 1.0) if bias else spread)

    def unscaled(self, z: Floats) -> Floats:
        v: Floats = z.reshape(self.K, -1) * self.scale
        return v

    def leads(self, v: Floats) -> tuple[Floats, Any]:
        """Return y⟨v,x̃⟩; for K classes the lead of the true class over its rival, and the rivals: the best other classes."""
        leads, rivals = np.empty(len(self.sign)), np.empty(len(self.sign), np.int64)
        for part, X in self.blocks():
            scores = X @ v[:, : self.d].T + (v[:, self.d] if self.bias else 0.0)
            if self.K == 1:
                return self.sign * scores[:, 0], None
            each, codes = np.arange(len(scores)), self.codes[part]
            true = scores[each, codes]
            scores[each, codes] = -np.inf
            rivals[part] = np.argmax(scores, axis=1)
            leads[part] = true - scores[each, rivals[part]]
        return leads, rivals

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows: all at once, or a few where the scores of all would take much memory."""
        n = len(self.sign)
        step = max(1, _SCORES // self.K) if has_many_pairs(n, self.K) else n
        for begin in range(0, n, step):
            if time.monotonic() > self.deadline:
                raise _Late
            part = slice(begin, min(n, begin + step))
            yield part, self.X if step >= n else self.X[part]

    def value(self, length: float, leads: Floats) -> float:
        """Return the objective at a v of this length with these leads."""
        return self.radius * length + self.weight * float(np.linalg.norm(np.maximum(0.0, 1.0 - leads)))

    def smoothed(self, z: Floats, corner: float) -> tuple[float, Floats]:
        """Return the objective with √(‖·‖² + corner²) in place of the norms, and its gradient in the scaled coordinates z.

        h is piecewise linear in v and enters as ‖h‖², so ∂‖h‖²/∂v = 2Σ h_i ∂h_i/∂v, with −y_i x̃_i for ∂h_i where h_i > 0
        (K classes: x̃_i in the block of the rival, −x̃_i in that of the true class).
        """
        v = self.unscaled(z)
        leads, rivals = self.leads(v)
        h = np.maximum(0.0, 1.0 - leads)
        length, shortfall = sqrt(float(np.sum(v * v)) + corner**2), sqrt(float(h @ h) + corner**2)
        gradient = np.zeros((self.K, len(self.scale)))
        for part, X in self.blocks():
            if self.K == 1:
                slope = (-self.sign * h)[:, None]
            else:
                each, lost = np.arange(X.shape[0]), h[part]
                slope = np.zeros((len(lost), self.K))
                slope[each, rivals[part]] = lost
                slope[each, self.codes[part]] -= lost
            gradient[:, : self.d] += np.asarray((X.T @ slope).T)
            if self.bias:
                gradient[:, self.d] += slope.sum(axis=0)
        gradient = self.radius * v / length + self.weight * gradient / shortfall
        return self.radius * length + self.weight * shortfall, (gradient * self.scale).reshape(-1)


def smallest_shortfall(
    rows: Rows,
    codes: Codes,
    n_classes: int,
    radius: float,
    passes: int,
    *,
    bias: bool,
    separator: Separator | None = None,
    deadline: float = inf,
) -> Shortfall:
    """Return the best v that was found, with the bound that it proves; the separator, if given, is one starting point.

    Of more than about two million weights the best multiple of a starting point is all that is sought. After the deadline,
    of `time.monotonic`, the best one so far is returned.
    """
    objective = _Objective(rows, codes, n_classes, radius, passes, bias)
    best = np.broadcast_to(0.0, (objective.K, len(objective.scale)))
    least = objective.value(0.0, np.zeros(rows.n))
    objective.deadline = deadline
    with suppress(_Late):
        for v, value in _candidates(objective, _starts(rows, codes, n_classes, radius, bias, separator, deadline), least):
            if value < least:
                best, least = v, value
    return Shortfall(best, least**2 * (1.0 + 1e-12))


def _candidates(objective: _Objective, starts: Iterable[Floats], least: float) -> Iterator[tuple[Floats, float]]:
    """Yield the best multiples of starting points, and what the search finds from the best of them, with their values."""
    from scipy.optimize import minimize, minimize_scalar

    best: Floats | None = None
    for v in starts:
        length, (leads, _) = float(np.linalg.norm(v)), objective.leads(v)
        line = partial(_value_of_multiple, objective, length, leads)  # leads and length of s·v are s times those of v
        value, s = min((line(s), s) for s in (1.0, minimize_scalar(line, bounds=(0.0, 2.0), method="bounded").x))
        v = v if s == 1.0 else s * v
        if value < least:
            best, least = v, value
        yield v, value
    size = objective.K * len(objective.scale)
    remembered = min(_REMEMBERED, (_MOST_NUMBERS // size - _VECTORS) // 2)
    if remembered < 1:  # it would take gigabytes
        return
    z = np.zeros(size) if best is None else (best / objective.scale).reshape(-1)
    for corner in (1e-2, 1e-5):
        options = {"maxiter": 100, "maxcor": remembered}
        z = minimize(objective.smoothed, z, args=(corner,), jac=True, method="L-BFGS-B", options=options).x
        v = objective.unscaled(z)
        yield v, objective.value(float(np.linalg.norm(v)), objective.leads(v)[0])


def _value_of_multiple(objective: _Objective, length: float, leads: Floats, s: float) -> float:
    return objective.value(s * length, s * leads)


def _starts(
    rows: Rows, codes: Codes, n_classes: int, radius: float, bias: bool, separator: Separator | None, deadline: float
) -> Iterator[Floats]:
    """Yield starting points: the separator scaled to margin 1, and soft-margin solutions."""
    if separator is not None:
        yield _stacked(separator.weights, bias) / separator.gamma
    if radius == 0.0:
        return
    share = 1.0
    if has_many_pairs(rows.n, n_classes):  # a sample's solution is a starting point as good as any
        some = sample(rows, codes, n_classes)
        share, rows, codes = rows.n / len(some), rows.take(some), codes[some]
    for C in (1.0, 100.0):
        if time.monotonic() > deadline:
            return
        cost = np.full(rows.n, C * share / radius**2)
        problem = MarginProblem(rows, codes, n_classes, cost, AUGMENTED if bias else ABSENT)
        yield _stacked(problem.solve(1e-2, 100, 0, lambda: time.monotonic() > deadline).weights, bias)


def _stacked(weights: Weights, bias: bool) -> Floats:
    return np.hstack([weights.coef, weights.intercept[:, None]]) if bias else weights.coef
