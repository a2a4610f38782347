"""Witnesses Σλa = 0, λ > 0 among some of the examples, and the smallest sets that hit them.

Each witness contains a mistake of every classifier, so that the mistakes of a classifier hit every witness.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp, nnls
from scipy.sparse import csr_array

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import TimeUp, check_time, watched
from separatrix.proofs.proof import Witness
from separatrix.proofs.search.exact_signs import is_balanced
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import dependency

_CELLS = 2_000_000
"""The linear programs over all pairs are solved where these have at most so many numbers."""
_MOST_DIMENSIONS = 1000
_FEW = 20
"""Around one example a witness is sought among so many pairs for each dimension, then among ten times as many."""
_STEP_SECONDS = 1e-9
"""A step of non-negative least squares takes up to so long for each number."""


class Contradictions:
    """Finds exact witnesses among some of the examples, one after the other.

    Some pairs need a positive lead, the strict ones; on the others a lead of 0 is right, depending on `tie`. A witness must
    contain a strict pair: Σλa = 0 on the others alone contradicts nothing. A pair has a place among those that exist: two
    classes have one for each row, K classes K − 1. No array has an entry for each pair unless the data are small.
    """

    def __init__(self, pairs: Pairs, tie: str, deadline: float) -> None:
        self.pairs, self.tie, self.deadline = pairs, tie, deadline
        self.n = pairs.rows.n
        self.scales = pairs.column_scales()
        self.rng = np.random.default_rng(0)

    def rows_of(self, places: Ints) -> Ints:
        """Return the row of each pair."""
        return places if self.pairs.K == 2 else places // (self.pairs.K - 1)

    def numbers_of(self, places: Ints) -> Ints:
        """Return the numbers of pairs: the rivals of a row are the other classes in order."""
        if self.pairs.K == 2:
            return places
        rows, rivals = np.divmod(places, self.pairs.K - 1)
        return np.asarray(rows * self.pairs.K + rivals + (rivals >= self.pairs.codes[rows]))

    def allowed_places(self, allowed: NDArray[np.bool_]) -> Ints:
        """Return the places of all pairs of the allowed rows."""
        each = self.pairs.K - 1
        return np.asarray(np.flatnonzero(allowed)[:, None] * each + np.arange(each)).reshape(-1)

    @property
    def is_small(self) -> bool:
        """Whether the linear programs over all pairs can be solved."""
        return self.pairs.count * self.pairs.dim <= _CELLS

    @cached_property
    def Z(self) -> Floats:  # noqa: N802
        """The vectors of all pairs in the scaled coordinates, each of size 1."""
        Z = np.empty((self.pairs.count, self.pairs.dim))
        step = max(1, _CELLS // self.pairs.dim)
        for begin in range(0, len(Z), step):
            check_time()
            Z[begin : begin + step] = self.vectors(np.arange(begin, min(begin + step, len(Z))))
        return Z

    def vectors(self, which: Ints) -> Floats:
        """Return the vectors of some pairs in the scaled coordinates, each of size 1."""
        vectors = self.pairs.vectors(self.numbers_of(which)) / self.scales
        norms = np.abs(vectors).max(axis=1)
        return np.asarray(vectors / np.where(norms > 0, norms, 1.0)[:, None])

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.deadline - time.monotonic()

    def witness(self, allowed: NDArray[np.bool_]) -> Witness | None:
        """Return an exact witness among the allowed rows, or None if there is none or none was found.

        The linear program is λ ≥ 0, Zᵀλ = 0, Σλ = 1 over the strict pairs, with random costs, so that its solution is a
        vertex: by Carathéodory's theorem at most dim + 1 pairs have a positive weight, and small witnesses give the best
        bounds.
        """
        which = self.allowed_places(allowed)
        strict = is_strict(self.pairs, self.numbers_of(which), self.tie)
        if not strict.any() or self.left() <= 0:
            return None
        Z = self.Z[which]
        equal = np.vstack([Z.T, strict.astype(float)])
        answer = linprog(
            self.rng.random(len(which)),
            A_eq=equal,
            b_eq=np.r_[np.zeros(Z.shape[1]), 1.0],
            method="highs-ds",
            options={"time_limit": max(0.05, self.left())},
        )
        if answer.status != 0:
            return None
        for floor in (1e-9, 1e-12, 0.0, 1e-7):
            witness = self._exact_witness(which[answer.x > floor])
            if witness is not None:
                return witness
        return None

    def _exact_witness(self, support: Ints) -> Witness | None:
        """Return the witness on these pairs with exact weights, or None if they have none."""
        numbers = self.numbers_of(support)
        with watched(self.deadline), suppress(TimeUp):
            weights = dependency(self.pairs.whole(numbers)[0]) if numbers.size else None
            if weights is None or min(weights) <= 0 or not is_strict(self.pairs, numbers, self.tie).any():
                return None
            return self.pairs.witness(numbers, weights) if is_balanced(self.pairs, numbers, weights) else None
        return None

    def disjoint(self, allowed: NDArray[np.bool_] | None = None, until: float = np.inf) -> list[Witness]:
        """Return witnesses that share no row, until no more are found or time is up: each contains a mistake of its own."""
        allowed, witnesses = np.ones(self.n, bool) if allowed is None else allowed.copy(), []
        while time.monotonic() < until and (witness := self.witness(allowed)) is not None:
            witnesses.append(witness)
            allowed[list(witness.rows)] = False
        return witnesses

    def around(self, mistakes: Ints, rights: Ints, until: float) -> Iterator[Witness]:
        """Yield disjoint witnesses, each with one of some pairs and otherwise `rights`, sorted by their positive leads.

        Such a witness writes −a as a non-negative combination of other pairs. Non-negative least squares finds one with at
        most `dim` of them, if a few hundred pairs suffice; those close to the boundary, of which more are drawn, suffice
        soonest. The pairs are chosen and solved in floating point, and the weights are exact.
        """
        used = np.zeros(self.n, bool)
        for pair in mistakes.tolist():
            if time.monotonic() > until or self.pairs.dim > _MOST_DIMENSIONS:
                return
            if used[self.rows_of(pair)]:
                continue
            for few in (_FEW, 10 * _FEW):
                count = min(few * self.pairs.dim, _CELLS // self.pairs.dim)
                rights = rights[~used[self.rows_of(rights)]]
                chosen = rights[np.unique((len(rights) * self.rng.random(count) ** 2).astype(np.int64))]
                witness = self._combined(pair, chosen[self.rows_of(chosen) != self.rows_of(pair)], until)
                if witness is not None:
                    used[list(witness.rows)] = True
                    yield witness
                    break

    def _combined(self, pair: int, others: Ints, until: float) -> Witness | None:
        """Return a witness of one pair and some of the others, or None if none was found in time."""
        seconds = until - time.monotonic()
        if not others.size or seconds <= 0:
            return None
        steps = int(seconds / (_STEP_SECONDS * len(others) * self.pairs.dim))
        if steps < min(self.pairs.dim, len(others)):  # a witness has about as many examples, and each takes a step
            return None
        steps = min(3 * len(others), steps)
        try:
            weights, rest = nnls(self.vectors(others).T, -self.vectors(np.array([pair]))[0], maxiter=steps)
        except RuntimeError:
            return None
        return self._exact_witness(np.append(others[weights > 0], pair)) if rest < 1e-9 else None


def minimum_hitting_set(witnesses: list[Witness], n: int, limit: float) -> tuple[int, NDArray[np.bool_] | None]:
    """Return a lower bound on the size of a set of rows that hits every witness, and such a set if one was found."""
    if not witnesses:
        return 0, np.zeros(n, bool)
    sets = [sorted(set(witness.rows)) for witness in witnesses]
    indptr = np.concatenate([[0], np.cumsum([len(s) for s in sets])])
    table = csr_array((np.ones(indptr[-1]), np.concatenate(sets), indptr), shape=(len(sets), n))
    used = np.unique(table.indices)
    answer = milp(
        np.ones(len(used)),
        integrality=np.ones(len(used)),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(table[:, used], lb=1.0),
        options={"time_limit": limit},
    )
    bound = int(np.ceil(answer.mip_dual_bound - 1e-6)) if answer.mip_dual_bound is not None else 0
    if answer.x is None:
        return bound, None
    hitting = np.zeros(n, bool)
    hitting[used[answer.x > 0.5]] = True
    return bound, hitting


def is_strict(pairs: Pairs, numbers: Ints, tie: str) -> NDArray[np.bool_]:
    """Return which pairs need a positive lead; a lead of 0 is right for the others."""
    if tie == "mistake":
        return np.ones(len(numbers), bool)
    if pairs.K == 2:
        return np.asarray(pairs.codes[numbers] == (0 if tie == "+1" else 1))
    return np.asarray(pairs.rival_of(numbers) < pairs.codes[pairs.row_of(numbers)])
