"""The best margin of separable data, between two numbers that are both proven (L1 9, L2 10, L4 6 and 9).

    min ⟨w,a⟩ / ‖w‖  ≤  γ  ≤  ‖Σλa‖ / Σλ        for any w, and any λ ≥ 0

The left side holds by the definition of γ. The right side is weak duality: the best w* of length 1 has ⟨w*,a⟩ ≥ γ on every
pair, so γ·Σλ ≤ ⟨w*,Σλa⟩ ≤ ‖Σλa‖. Both sides meet at the point Σλa/Σλ of the convex hull that is nearest to the origin, which
is also the direction of w*.

The nearest point of the hull of a working set gives both w and λ; the pairs on which w has too small a lead join the set.
Where floating point stalls, the nearest point is computed exactly: on its support it solves linear equations. For the
geometric margin the bias does not count in ‖w‖ and λ puts the same weight on both classes; the nearest point is then half
the difference of two points, one in the hull of each class.
"""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import TimeUp, check_time
from separatrix.proofs.proof import Direction, MarginProof, Witness
from separatrix.proofs.search.nearest_point import nearest, worst
from separatrix.proofs.search.pairs import Leads, Pairs
from separatrix.proofs.search.rationals import System, Whole, independent, product, root, root_above, root_below

_GOAL = 1e-9
"""The relative width of the interval at which the search stops."""
_ENOUGH = 1e-7
"""The relative width from which exact arithmetic is used to narrow the interval."""
_SMALL = 300
"""Exact arithmetic is also used where the support has so few numbers that it costs nothing."""
_LONG = 500
"""The interval is not narrowed in exact arithmetic where numbers have more binary digits, unless it is asked for."""
_EXACT_SECONDS = 10.0
"""How long exact arithmetic may take to narrow the interval, unless it is asked for."""
_BITS = 50
_CELLS = 20_000


class Hull:
    """One margin problem: with the bias penalised (γ of the theorem) or free (the geometric margin)."""

    def __init__(self, pairs: Pairs, penalised: bool) -> None:
        self.pairs, self.free_bias = pairs, pairs.bias and not penalised
        self.width = pairs.dim - self.free_bias

    def leads(self, w: Floats) -> tuple[Leads, Floats]:
        """Return all leads of w, and w itself with its best bias where that is free."""
        if not self.free_bias:
            return Leads(self.pairs, w), w
        leads = self.pairs.leads(np.append(w[: self.width], 0.0))
        positive = self.pairs.codes == 1
        bias = (float(leads[~positive].min()) - float(leads[positive].min())) / 2.0
        w = np.append(w[: self.width], bias)
        return Leads(self.pairs, w, leads + bias * self.pairs.signs), w

    def balanced(self, weights: Floats, which: Ints) -> Floats:
        """Return the weights with half on each class, where the bias is free."""
        if self.free_bias:
            positive = self.pairs.codes[which] == 1
            for side in (positive, ~positive):
                total = float(weights[side].sum())
                if total > 0:
                    weights = np.where(side, weights / (2 * total), weights)
        return weights

    def vectors(self, which: Ints) -> Floats:
        """Return the vectors of some pairs, without the bias where that is free."""
        return self.pairs.vectors(which)[:, : self.width]

    def nearest(self, Z: Floats, which: Ints) -> Floats | None:
        """Return the weights of the nearest point.

        With a free bias the weights must balance: a bias coordinate of 1000 nearly enforces it, and solving the linear
        equations of the nearest point on that support makes it exact to rounding.
        """
        if not self.free_bias:
            return nearest(Z)
        heavy = np.append(Z, 1e3 * self.pairs.signs[which][:, None], axis=1)
        weights = nearest(heavy)
        if weights is None:
            return None
        weights = self.balanced(weights, which)
        support = np.flatnonzero(weights > 0)
        polished = self._polished(Z[support], which[support])
        if polished is not None:
            weights = np.zeros(len(which))
            weights[support] = polished
        return weights

    def _polished(self, Z: Floats, which: Ints) -> Floats | None:
        """Return the stationary weights of min ‖Zᵀλ‖² with Σλ = 1 and Σλy = 0 (Lagrange), or None if one is not positive."""
        k = len(which)
        system = np.zeros((k + 2, k + 2))
        system[:k, :k] = Z @ Z.T
        system[:k, k] = system[k, :k] = 1.0
        system[:k, k + 1] = system[k + 1, :k] = self.pairs.signs[which]
        right = np.zeros(k + 2)
        right[k] = 1.0
        try:
            solved: Floats = np.linalg.solve(system, right)[:k].astype(np.float64)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(system, right, rcond=1e-15)[0][:k].astype(np.float64)
        return self.balanced(solved, which) if (solved > 0).all() else None


def interval(pairs: Pairs, w: Floats, exact: bool | str, penalised: bool = True, near: Ints | None = None) -> MarginProof:
    """Return the proven interval of the margin, as narrow as it gets.

    `w` is some separator and `near` are pairs to begin with. Invariant of the loop: `lower` is the margin of `best_w` and
    `upper` the length of the point with the weights `best`, both up to rounding; `_rounded` or `_exact` proves them.
    """
    hull = Hull(pairs, penalised)
    leads, w = hull.leads(w)
    size = float(np.linalg.norm(w[: hull.width]))
    is_ordinary = size > 0 and leads.are_finite() and bool(np.isfinite(w).all())
    if exact is False or not is_ordinary:  # the margin of w, and the shortest of a few vectors, a point of the hull
        few = _opening(hull, leads, 10)
        few = few[np.argsort(np.linalg.norm(hull.vectors(few), axis=1), kind="stable")]
        sides = [pairs.codes[few] == k for k in range(2)] if hull.free_bias else [np.ones(len(few), bool)]
        shortest = np.array([few[side][0] for side in sides])
        return _rounded(hull, np.nan_to_num(w), shortest, np.full(len(shortest), 1.0 / len(shortest)))
    best_w, lower = w, leads.least() / size
    work = _opening(hull, leads, 200) if near is None else np.union1d(near, _opening(hull, leads, 10))
    best, upper = (work, np.full(len(work), 1.0 / len(work))), np.inf
    most = max(200, pairs.m)
    for _ in range(100):
        Z = hull.vectors(work)
        size = float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max())) or 1.0
        weights = hull.nearest(Z / size, work)
        if weights is None:
            break
        v = weights @ Z
        length = float(np.linalg.norm(v))
        if length < upper:
            best, upper = (work, weights), length
        if not length > 0:
            break
        leads, full = hull.leads(np.append(v, 0.0) if hull.free_bias else v)
        new, least = worst(leads, length * length * (1 - 1e-10), most, work)
        if least / length > lower:
            best_w, lower = full, least / length
        if upper - lower <= _GOAL * upper:
            break
        if not new.size:
            break
        keep = (weights > 0) | (leads.of(work) < 2 * length * length)
        work = np.union1d(work[keep], new)
        check_time()
    support = best[0][best[1] > 0]
    small = len(support) * pairs.dim <= _SMALL
    wanted = exact == "auto" and (small or not upper - lower <= _ENOUGH * upper)
    if exact is True or (wanted and _digits(pairs, support) <= _LONG):
        seconds = np.inf if exact is True else _EXACT_SECONDS
        try:
            polished = _exact(hull, support, upper - lower > _ENOUGH * upper, time.monotonic() + seconds)
        except TimeUp:
            polished = None
        if polished is not None and polished.upper - polished.lower <= upper - lower + 1e-12 * upper:
            return polished
    return _rounded(hull, best_w, best[0], best[1])


def _digits(pairs: Pairs, which: Ints) -> int:
    """Return how many binary digits the longest number of some pairs has, before and behind the point."""
    table, shifts = pairs.whole(which[:100])
    return max((abs(value).bit_length() for value in table.ravel().tolist()), default=0) + max(shifts)


def _opening(hull: Hull, leads: Leads, most: int) -> Ints:
    """Return the pairs closest to a separator, of every class."""
    chosen = []
    rows_leads, numbers = leads.smallest()
    for k in range(hull.pairs.K):
        members = np.flatnonzero(hull.pairs.codes == k)
        chosen.append(members[np.argsort(rows_leads[members])[: max(5, most // hull.pairs.K)]])
    return np.sort(numbers[np.concatenate(chosen)])


def _rounded(hull: Hull, w: Floats, which: Ints, weights: Floats) -> MarginProof:
    """Return the proof that a floating-point w and λ give; λ is rounded to short numbers."""
    whole = [int(value) for value in np.round(weights * 2.0**_BITS)]
    chosen = [t for t, value in enumerate(whole) if value > 0]
    exact = [Fraction(whole[t]) for t in chosen]
    return _proof(hull, [Fraction(value) for value in w.tolist()], which[chosen], exact)


def _proof(hull: Hull, w: list[Fraction], which: Ints, weights: list[Fraction]) -> MarginProof:
    """Return the proof that exact w and λ give; with a free bias λ is scaled to balance the classes exactly."""
    pairs = hull.pairs
    if hull.free_bias:
        positive = [bool(pairs.codes[p] == 1) for p in which]
        sums = {
            s: sum((v for v, side in zip(weights, positive, strict=True) if side is s), Fraction(0)) for s in (True, False)
        }
        weights = [weight * sums[not side] for weight, side in zip(weights, positive, strict=True)]
    table, shifts = pairs.whole(which)
    total = sum(weights, Fraction(0))
    scale = lcm(1, *(weight.denominator for weight in weights))
    combined = np.array([int(weight * scale) for weight in weights], object) @ table
    square = squared([Fraction(int(v), 1 << s) for v, s in zip(combined[: hull.width], shifts, strict=False)])
    least = least_lead(pairs, w)
    norm = squared(w[: hull.width])
    return MarginProof(
        pairs.direction(w),
        least,
        pairs.witness(which, weights),
        root_below(least * least / norm) if least > 0 else 0.0,
        root_above(square / (total * scale) ** 2),
    )


def flattened(direction: Direction | Witness) -> list[Fraction]:
    """Return the numbers of a direction that is given in full."""
    assert not isinstance(direction, Witness)
    return [number for vector in direction for number in vector]


def squared(numbers: list[Fraction]) -> Fraction:
    """Return the sum of the squares."""
    scale = lcm(1, *(number.denominator for number in numbers))
    return Fraction(sum((number.numerator * (scale // number.denominator)) ** 2 for number in numbers), scale * scale)


def least_lead(pairs: Pairs, w: list[Fraction]) -> Fraction:
    """Return min ⟨w,a⟩ exactly, or, where many pairs are within rounding of it, a slightly smaller positive number."""
    top = max(abs(value) for value in w) or Fraction(1)
    floats = np.array([float(value / top) for value in w])
    with np.errstate(all="ignore"):
        leads = Leads(pairs, floats)
        error = 4 * (pairs.m + 8) * 2.0**-53 * root(pairs.radius_squared) * float(np.linalg.norm(floats))
        smallest = leads.least()
    below, count, exact = smallest - 2 * error, 0, []
    for first, block in leads:
        near = first + np.flatnonzero(~(block > smallest + 2 * error))
        near = near if pairs.K == 2 else near[pairs.codes[near // pairs.K] != near % pairs.K]
        count += near.size
        if count * pairs.dim > _CELLS and 0 < below < np.inf:
            return Fraction(below) * top
        parts = np.array_split(near, 1 + near.size * pairs.dim // _CELLS) if near.size else []
        exact += [min(_least_of(pairs, part, w) for part in parts)] if parts else []
    return min(exact)


def _least_of(pairs: Pairs, which: Ints, w: list[Fraction]) -> Fraction:
    table, shifts = pairs.whole(which)
    scale = lcm(1, *(value.denominator for value in w)) << max(shifts)
    whole = np.array([int(value * scale) >> shift for value, shift in zip(w, shifts, strict=True)], object)
    return Fraction(min(int(value) for value in table @ whole), scale)


def primitive(numbers: list[Fraction]) -> list[Fraction]:
    """Return the multiple of the numbers that consists of integers without a common factor."""
    scale = lcm(1, *(number.denominator for number in numbers))
    whole = [int(number * scale) for number in numbers]
    common = gcd(*whole) or 1
    return [Fraction(number // common) for number in whole]


def _exact(hull: Hull, support: Ints, persistent: bool, deadline: float) -> MarginProof | None:
    """Return the exact nearest point by an active set method, or None where it does not end soon.

    Each round solves for the nearest point of the affine hull of the support. The most negative weight leaves the support;
    without a negative weight, the pair with the smallest lead below that of the support enters it. If none is below, the
    conditions of Karush, Kuhn and Tucker hold, and the point is the nearest of the whole hull.
    """
    for _ in range(60 if persistent else 10):
        check_time(deadline)
        solved = _on_support(hull, support)
        if solved is None:
            return None
        support, weights, w = solved
        if min(weights) < 0:
            support = np.delete(support, min(range(len(weights)), key=weights.__getitem__))
            continue
        positive = [t for t, weight in enumerate(weights) if weight > 0]
        top = max(abs(value) for value in w)
        leads, _ = hull.leads(np.array([float(value / top) for value in w]))
        limit = float(leads.of(support[positive]).min())
        new, _ = worst(leads, limit - 1e-9 * abs(limit), 1, support)
        if not new.size:
            proof = _proof(hull, primitive(w), support[positive], [weights[t] for t in positive])
            return _shortened(hull, proof, w) if proof.least > 0 else None
        support = np.sort(np.append(support[positive], new))
    return None


def at_least(pairs: Pairs, proof: MarginProof, w: list[Fraction], penalised: bool = True) -> MarginProof:
    """Return the proof with w as its direction if w has a larger margin: it may, where floating point fails."""
    if proof.upper - proof.lower <= _ENOUGH * proof.upper or flattened(proof.direction) == w:
        return proof
    least = least_lead(pairs, w)
    if least <= 0:
        return proof
    lower = root_below(least * least / squared(w[: pairs.dim - (pairs.bias and not penalised)]))
    is_better = lower > proof.lower or proof.least <= 0
    return replace(proof, direction=pairs.direction(w), least=least, lower=lower) if is_better else proof


def _shortened(hull: Hull, proof: MarginProof, w: list[Fraction]) -> MarginProof:
    """Return the proof with w rounded to float64, which users can work with, if its margin is as good to twelve digits."""
    if all(abs(number) < 1 << 53 for number in flattened(proof.direction)):
        return proof
    top = max(abs(value) for value in w)
    short = [Fraction(float(value / top)) for value in w]
    least = least_lead(hull.pairs, short)
    if least <= 0:
        return proof
    lower = root_below(least * least / squared(short[: hull.width]))
    if lower < proof.lower * (1 - 1e-12):
        return proof
    return replace(proof, direction=hull.pairs.direction(short), least=least, lower=lower)


def _on_support(hull: Hull, support: Ints) -> tuple[Ints, list[Fraction], list[Fraction]] | None:
    """Return an affinely independent part of the support, the exact weights of the nearest point of its affine hull, and w.

    The equations are those of Lagrange for min ‖Vᵀλ‖² with Σλ = 1, and Σλy = 0 where the bias is free:
    VVᵀλ + c·1 (+ β·y) = 0. They are nonsingular because the rows are affinely independent.
    """
    table, shifts = hull.pairs.whole(support)
    common = max(shifts)
    V = table[:, : hull.width] * np.array([1 << (common - shift) for shift in shifts[: hull.width]], object)
    ones = [np.ones((len(support), 1), object)]
    if hull.free_bias:
        ones.append(hull.pairs.signs[support].astype(np.int64).astype(object)[:, None])
    rows, _ = independent(np.concatenate([*ones, V], axis=1))
    rows = sorted(rows)
    V, support, sides = V[rows], support[rows], [column[rows] for column in ones]
    k, extra = len(rows), len(sides)
    system: Whole = np.zeros((k + extra, k + extra), object)
    system[:k, :k] = product(V, V.T)
    for t, side in enumerate(sides):
        system[:k, k + t], system[k + t, :k] = side[:, 0], side[:, 0]
    right: Whole = np.zeros(k + extra, object)
    right[k] = 1
    try:
        solved = System(system).solve(right)
    except ValueError:
        return None
    weights = solved[:k]
    w = [Fraction(0)] * hull.width
    for weight, row in zip(weights, V, strict=True):
        check_time()
        w = [value + weight * int(entry) for value, entry in zip(w, row, strict=True)]
    w = [value / (1 << common) for value in w]
    if hull.free_bias:
        # Stationarity says VVᵀλ + c·1 + β·y = 0 in units of 4^common, so y(⟨w,x⟩ + β) = −c on the support: β is the bias.
        w.append(solved[k + 1] / (1 << (2 * common)))
    return support, weights, w
