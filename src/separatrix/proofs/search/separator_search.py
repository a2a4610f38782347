"""Search for a w with every ⟨w,a⟩ > 0: a separator, or a witness that there is none.

The search works on a growing working set of pairs (constraint generation). A witness for the working set is a witness for
all pairs; a separator of the working set is one of all pairs unless some pair violates it, and then the worst violated pairs
join the set. On the set the hull's nearest point decides; where it stalls, a linear program; and where floating point is
exhausted, an exact simplex. By Gordan's theorem exactly one of the two exists, so the search ends with an answer or with its
own limits. No result is trusted here: each is passed to an `accept…` function, which decides in exact arithmetic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import TimeUp, check_time, seconds_left
from separatrix.proofs.search.exact_simplex import alternative
from separatrix.proofs.search.nearest_point import nearest, worst
from separatrix.proofs.search.rationals import Whole

Answer = TypeVar("Answer")

_EXACT_CELLS = 40_000
_EXACT_SECONDS = 10.0
"""How long the exact simplex may take where no time limit was given."""


@dataclass
class Field:
    """The pairs in the coordinates that the search works in."""

    dim: int
    leads: Callable[[Floats], Iterable[tuple[int, Floats]]]
    """Returns the leads of w in blocks, each with the number of its first pair."""
    vectors: Callable[[Ints], Floats]
    whole: Callable[[Ints], tuple[Whole, Whole]]
    """Returns some pairs as integers, and the rows on which w must be 0."""


@dataclass
class Failures:
    """The pairs on which a proposed separator fails."""

    pairs: Ints


def decide(
    field: Field,
    work: Ints,
    accept_separator: Callable[[Any], Answer | Failures],
    accept_witness: Callable[[Ints, list[Fraction] | None], Answer | None],
    last_resort: bool = True,
) -> Answer | None:
    """Return the accepted answer, or None; without `last_resort`, give up where floating point cannot decide.

    `accept_separator` gets a w of floats, or of fractions as a list, and returns the pairs on which it fails, if any.
    `accept_witness` gets the pairs, and their weights if they are exact; None means that it is no witness.
    """
    most = max(100, 2 * field.dim)
    for _ in range(200):
        check_time()
        Z = field.vectors(work)
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        if not norms.all():  # a = 0 alone is a witness
            answer = accept_witness(work[norms == 0][:1], None)
            if answer is not None:
                return answer
        Z = Z / np.where(norms > 0, norms, 1.0)[:, None]
        weights = nearest(Z)
        if weights is None:
            break
        w = Z.T @ weights
        length = float(np.linalg.norm(w))
        if length < 1e-7:  # perhaps 0: the support of the nearest point would be a witness
            answer = accept_witness(work[weights > 0], None)
            if answer is not None:
                return answer
            if length < 1e-13:
                break
        result = _try_separator(field, w, work, most, accept_separator)
        if not isinstance(result, Failures):
            return result
        if not result.pairs.size:
            break
        work = np.union1d(work, result.pairs)
    return _decide_by_programs(field, work, most, accept_separator, accept_witness, last_resort)


def _try_separator(
    field: Field, w: Floats, work: Ints, most: int, accept_separator: Callable[[Any], Answer | Failures]
) -> Answer | Failures:
    """Return the accepted answer, or the pairs outside the working set on which w fails."""
    bad, least = worst(field.leads(w), 0.0, most, work)
    if bad.size or not least > 0:
        return Failures(bad)
    result = accept_separator(w)
    return Failures(np.setdiff1d(result.pairs, work)[:most]) if isinstance(result, Failures) else result


def _decide_by_programs(
    field: Field,
    work: Ints,
    most: int,
    accept_separator: Callable[[Any], Answer | Failures],
    accept_witness: Callable[[Ints, list[Fraction] | None], Answer | None],
    last_resort: bool,
) -> Answer | None:
    """Continue the search with linear programs in floating point; once one of them fails, in exact arithmetic.

    After a working set that was separated, a larger one mostly is, too, and is not asked for a witness first.
    """
    w = None
    for _ in range(200):
        check_time()
        Z = field.vectors(work)
        Z = Z / np.maximum(np.abs(Z).max(axis=1), 1e-300)[:, None]
        if not np.isfinite(Z).all():
            break
        w = None if w is None else _separate(Z)
        support = balance(Z) if w is None else None
        if support is not None:
            answer = accept_witness(work[support], None)
            if answer is not None:
                return answer
            break
        w = _separate(Z) if w is None else w
        if w is None:
            break
        result = _try_separator(field, w, work, most, accept_separator)
        if not isinstance(result, Failures):
            return result
        if not result.pairs.size:
            break
        work = np.union1d(work, result.pairs)
    if not last_resort:
        return None
    return decide_exactly(field, work, accept_separator, accept_witness)


def decide_exactly(
    field: Field,
    work: Ints,
    accept_separator: Callable[[Any], Answer | Failures],
    accept_witness: Callable[[Ints, list[Fraction] | None], Answer | None],
) -> Answer | None:
    """Search with the exact simplex alone, which is too slow for large working sets without a time limit."""
    exact_deadline = time.monotonic() + _EXACT_SECONDS
    for _ in range(200):
        check_time()
        if len(work) * field.dim > _EXACT_CELLS and seconds_left() == np.inf:
            return None
        try:
            weights, direction = alternative(*field.whole(work), exact_deadline)
        except TimeUp:
            check_time()
            return None
        if weights is not None:
            support = [t for t, weight in enumerate(weights) if weight]
            return accept_witness(work[support], [weights[t] for t in support])
        result = accept_separator(direction)
        if not isinstance(result, Failures):
            return result
        new = np.setdiff1d(result.pairs, work)[: max(10, field.dim)]
        if not new.size:
            return None
        work = np.union1d(work, new)
    return None


def solver_options() -> dict[str, float]:
    """Return what makes HiGHS end in time."""
    left = seconds_left()
    return {} if left == np.inf else {"time_limit": max(0.01, left)}


def balance(Z: Floats, costs: Floats | None = None) -> Ints | None:
    """Return the support of a λ ≥ 0, Σλ = 1, Zᵀλ = 0, of the least cost where there are costs; or None."""
    from scipy.optimize import linprog  # loading it takes longer than most proofs

    k, dim = Z.shape
    equal = np.vstack([Z.T, np.ones(k)])
    costs = np.zeros(k) if costs is None else costs
    answer = linprog(costs, A_eq=equal, b_eq=np.r_[np.zeros(dim), 1.0], method="highs-ds", options=solver_options())
    return np.flatnonzero(answer.x > 0) if answer.status == 0 else None


def widest_balance(Z: Floats) -> Floats | None:
    """Return a λ with 0 ≤ λ ≤ 10⁴ + 1 and Zᵀλ = 0 up to rounding that is at least 1 on as many rows as possible.

        max Σs  with Zᵀ(s + t) = 0,  0 ≤ s ≤ 1,  0 ≤ t ≤ 10⁴

    Without the upper limit of t, s would be 1 on exactly the rows that any λ ≥ 0 with Zᵀλ = 0 is positive on.
    """
    from scipy.optimize import linprog

    k, dim = Z.shape
    answer = linprog(
        np.repeat([-1.0, 0.0], k),
        A_eq=np.hstack([Z.T, Z.T]),
        b_eq=np.zeros(dim),
        bounds=[(0, 1)] * k + [(0, 1e4)] * k,
        method="highs-ds",
        options=solver_options(),
    )
    return np.asarray(answer.x[:k] + answer.x[k:]) if answer.status == 0 else None


def _separate(Z: Floats) -> Floats | None:
    """Return a w with Zw ≥ 1, or None."""
    from scipy.optimize import linprog

    answer = linprog(
        np.zeros(Z.shape[1]), A_ub=-Z, b_ub=-np.ones(len(Z)), bounds=(None, None), method="highs", options=solver_options()
    )
    return np.asarray(answer.x) if answer.status == 0 else None
