"""Is there a w with every ⟨w,a⟩ > 0? A separator, or a witness that there is none, on a growing set of violated pairs.

On the set the hull's nearest point decides; where it stalls, a linear program; where floating point has no more to say,
an exact simplex. Nothing found here is believed: a separator or a witness is handed to `accept…`, which answers for it
exactly.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import linprog

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.exact_simplex import TimeUp, alternative
from separatrix.proofs.nearest_point import nearest, worst
from separatrix.proofs.rationals import Whole

Found = TypeVar("Found")

_EXACT_CELLS = 40_000
_PATIENCE = 10.0
"""Seconds for the exact simplex where no time limit was given."""


@dataclass
class Field:
    """Some pairs in some coordinates, as the search sees them."""

    dim: int
    leads: Callable[[Floats], Floats]
    vectors: Callable[[Ints], Floats]
    whole: Callable[[Ints], tuple[Whole, Whole]]
    """The pairs as integers, and the rows on which w must be 0."""


@dataclass
class Failures:
    """The pairs on which a proposed separator fails."""

    pairs: Ints


def check_time(deadline: float) -> None:
    """Raise when the time limit has fallen."""
    if time.monotonic() > deadline:
        raise TimeUp


def decide(
    field: Field,
    work: Ints,
    deadline: float,
    accept_separator: Callable[[Any], Found | Failures],
    accept_witness: Callable[[Ints, list[Fraction] | None], Found | None],
    last_resort: bool = True,
) -> Found | None:
    """Return what was accepted, or None; without `last_resort`, as soon as floating point has no more to say.

    `accept_separator` gets a float w, or an exact one as a list, and returns its failures where it does not do.
    `accept_witness` gets the pairs, and the weights where they are known exactly.
    """
    most = max(100, 2 * field.dim)
    for _ in range(200):
        check_time(deadline)
        Z = field.vectors(work)
        norms = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        if not norms.all():
            zero = work[norms == 0][:1]
            found = accept_witness(zero, None)
            if found is not None:
                return found
        Z = Z / np.where(norms > 0, norms, 1.0)[:, None]
        weights = nearest(Z)
        if weights is None:
            break
        w = Z.T @ weights
        length = float(np.linalg.norm(w))
        if length < 1e-7:
            found = accept_witness(work[weights > 0], None)
            if found is not None:
                return found
            if length < 1e-13:
                break
        grown = _tried(field, w, work, most, accept_separator)
        if not isinstance(grown, Failures):
            return grown
        if not grown.pairs.size:
            break
        work = np.union1d(work, grown.pairs)
    return _decide_by_programs(field, work, most, deadline, accept_separator, accept_witness, last_resort)


def _tried(
    field: Field, w: Floats, work: Ints, most: int, accept_separator: Callable[[Any], Found | Failures]
) -> Found | Failures:
    """Return what was accepted, or the new pairs on which w fails."""
    leads = field.leads(w)
    bad = worst(leads, 0.0, most, work)
    if bad.size or not (leads > 0).all():
        return Failures(bad)
    answer = accept_separator(w)
    if isinstance(answer, Failures):
        return Failures(np.setdiff1d(answer.pairs, work)[:most])
    return answer


def _decide_by_programs(
    field: Field,
    work: Ints,
    most: int,
    deadline: float,
    accept_separator: Callable[[Any], Found | Failures],
    accept_witness: Callable[[Ints, list[Fraction] | None], Found | None],
    last_resort: bool,
) -> Found | None:
    exact = False
    patience = time.monotonic() + _PATIENCE
    for _ in range(200):
        check_time(deadline)
        if not exact:
            Z = field.vectors(work)
            Z = Z / np.maximum(np.abs(Z).max(axis=1), 1e-300)[:, None]
            support = _balance(Z, deadline)
            if support is not None:
                found = accept_witness(work[support], None)
                if found is not None:
                    return found
                exact = True
                continue
            w = _separate(Z, deadline)
            if w is None:
                exact = True
                continue
            grown = _tried(field, w, work, most, accept_separator)
            if not isinstance(grown, Failures):
                return grown
            if grown.pairs.size:
                work = np.union1d(work, grown.pairs)
            else:
                exact = True
            continue
        if not last_resort or (len(work) * field.dim > _EXACT_CELLS and deadline == np.inf):
            return None
        try:
            weights, direction = alternative(*field.whole(work), min(deadline, patience))
        except TimeUp:
            check_time(deadline)
            return None
        if weights is not None:
            chosen = [t for t, weight in enumerate(weights) if weight]
            return accept_witness(work[chosen], [weights[t] for t in chosen])
        answer = accept_separator(direction)
        if not isinstance(answer, Failures):
            return answer
        new = np.setdiff1d(answer.pairs, work)[: max(10, field.dim)]
        if not new.size:
            return None
        work = np.union1d(work, new)
    return None


def _options(deadline: float) -> dict[str, float]:
    left = deadline - time.monotonic()
    return {} if left == np.inf else {"time_limit": max(0.01, left)}


def _balance(Z: Floats, deadline: float) -> Ints | None:
    """Return the support of λ ≥ 0, Σλ = 1, Zᵀλ = 0, or None."""
    k, dim = Z.shape
    equal = np.vstack([Z.T, np.ones(k)])
    answer = linprog(np.zeros(k), A_eq=equal, b_eq=np.r_[np.zeros(dim), 1.0], method="highs-ds", options=_options(deadline))
    return np.flatnonzero(answer.x > 0) if answer.status == 0 else None


def _separate(Z: Floats, deadline: float) -> Floats | None:
    """Return a w with Zw ≥ 1, or None."""
    answer = linprog(
        np.zeros(Z.shape[1]), A_ub=-Z, b_ub=-np.ones(len(Z)), bounds=(None, None), method="highs", options=_options(deadline)
    )
    return np.asarray(answer.x) if answer.status == 0 else None
