"""Overlap or quasi-complete separation of inseparable data (Albert and Anderson 1984), by facial reduction.

Call w weakly separating if no lead ⟨w,a⟩ is negative. A witness λ > 0, Σλa = 0 forces ⟨w,a⟩ = 0 on its pairs for every
weakly separating w, hence on L, their span. The search is repeated among the w that vanish on L. By Gordan's theorem,
applied modulo L, either one of them is positive on every pair outside L, or a witness modulo L exists, and adding its pairs
makes L larger. The dimension of L grows with each step, so there are at most dim steps.

At the end nothing outside L means *overlap*, and something outside it *quasi-complete* separation. Without a bias, data
whose L holds pairs of one side only are *touching*: a meaning for ties makes them separable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from separatrix.engine.rows import Floats, Ints, frozen
from separatrix.kernels import modular
from separatrix.proofs.clock import check_time
from separatrix.proofs.proof import Direction
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import System, Whole, dependency, eliminated, independent
from separatrix.proofs.search.separator_search import Failures, Field, decide

Signs = Callable[[list[Fraction]], Iterator[tuple[int, int, Any]]]
"""The exact sign of ⟨w,a⟩ for every pair, in blocks of rows."""

_P = modular.PRIME
_MOST_CELLS = 5_000_000
"""So many numbers of pairs outside a face are kept at most."""
_MOST_OUTSIDE, _MOST_INSIDE = 1 << 23, 1 << 27
"""With more than two classes: so many pairs outside a face are told apart, of so many pairs in all."""
_DIRECTION_CELLS, _NUMBERS_AT_ONCE = 2_000_000, 1 << 22
_LONG_WEIGHTS = 6000
"""Weights with denominators of more bits are shortened."""


@dataclass
class Face:
    """L, given by pairs that span it and weights λ > 0 with Σλa = 0; `inside` tells which pairs lie in it.

    `direction` is a w that is 0 on L and positive on all other pairs, once there is one. `complete` is False where the
    search for a larger L or for such a w gave up.
    """

    pairs: Ints
    weights: list[Fraction]
    inside: Any
    direction: list[Fraction] | None = None
    complete: bool = True


def _dot(table: Any, v: Any) -> Any:
    """Return table·v modulo p."""
    low, high = table & 0xFFFF, table >> 16
    return ((high @ v % _P) * (1 << 16) + low @ v) % _P


def _kernel_vector(table: Any, rng: np.random.Generator) -> tuple[Any, int]:
    """Return a random v with table·v ≡ 0 modulo p, and the rank of the table."""
    table = np.ascontiguousarray(table, np.uint64)
    pivots = eliminated(table, table.shape[1], True)[1]
    rank = len(pivots)
    v = rng.integers(1, _P, table.shape[1])
    v[pivots] = 0
    v[pivots] = (_P - _dot(table[:rank].astype(np.int64), v)) % _P
    return v, rank


def membership(pairs: Pairs, spanning: Ints, rng: np.random.Generator) -> tuple[Any, int]:
    """Return which pairs lie in the span of some pairs, and the dimension of that span.

    Everything is computed modulo a prime p near 2³¹. A random v orthogonal to the span is also orthogonal to a pair outside
    the span with probability 1/p, about 10⁻⁹; a pair inside is recognised unless p divides a denominator. An error would be
    caught by the checker.
    """
    rows, rivals = pairs.row_of(spanning), pairs.rival_of(spanning)
    x = np.concatenate([pairs.residues(int(i), int(i) + 1) for i in rows])
    if pairs.K == 2:
        table = x
    else:
        table = np.zeros((len(x), pairs.K, pairs.m), np.int64)
        table[np.arange(len(x)), pairs.codes[rows]] = x
        table[np.arange(len(x)), rivals] = (_P - x) % _P
        table = table[:, 1:].reshape(len(x), -1)
    v, rank = _kernel_vector(table, rng)
    inside = np.zeros(pairs.rows.n * (1 if pairs.K == 2 else pairs.K), bool)
    step = max(1, (1 << 20) // max(1, pairs.m, pairs.blocks))
    for begin in range(0, pairs.rows.n, step):
        check_time()
        end = min(pairs.rows.n, begin + step)
        x = pairs.residues(begin, end)
        if pairs.K == 2:
            inside[begin:end] = _dot(x, v) == 0
        else:
            scores = np.stack([np.zeros(end - begin, np.int64), *(_dot(x, part) for part in v.reshape(-1, pairs.m))], axis=1)
            own = scores[np.arange(end - begin), pairs.codes[begin:end]]
            inside[begin * pairs.K : end * pairs.K] = (scores == own[:, None]).reshape(-1)
    return inside, rank


def reduced(pairs: Pairs, which: Ints) -> tuple[Whole, list[int]]:
    """Return the vectors as integers; for K classes without the first block, which is minus the sum of the others."""
    table, shifts = pairs.whole(which)
    return (table, shifts) if pairs.K == 2 else (table[:, pairs.m :], shifts[pairs.m :])


def lifted(pairs: Pairs, face: Face, added: Ints, weights: list[Fraction] | None = None) -> Face | None:
    """Return the face enlarged by pairs that are a witness modulo L, or None if they are not.

    With a basis of L, the added pairs have a dependency Σμb + Σλa = 0: where no λ is given, the only one up to its scale. If
    λ ≥ 0, adding a large enough multiple of the face's own weights, which balance, makes all weights positive and leaves the
    sum at 0; added pairs of weight 0 are left out.
    """
    table, _ = reduced(pairs, face.pairs)
    basis, columns = independent(table)
    joined, _ = reduced(pairs, np.concatenate([face.pairs[basis], added]))
    if weights is None:
        solution = dependency(joined)
        if solution is None:
            return None
        basis_part, weights = solution[: len(basis)], solution[len(basis) :]
        if all(weight <= 0 for weight in weights):
            basis_part, weights = [-weight for weight in basis_part], [-weight for weight in weights]
    else:
        scale = lcm(*(weight.denominator for weight in weights))
        right = np.array([int(weight * scale) for weight in weights], object) @ joined[len(basis) :]
        solved = System(joined[np.ix_(range(len(basis)), columns)].T.copy()).solve(-right[columns]) if basis else []
        basis_part = [weight / scale for weight in solved]
    if min(weights) < 0 or not any(weights):
        return None
    basis_weights = dict(zip(basis, basis_part, strict=True))
    multiple = max([Fraction(1), *(1 - weight / face.weights[t] for t, weight in basis_weights.items())])
    face_weights = [multiple * weight + basis_weights.get(t, Fraction(0)) for t, weight in enumerate(face.weights)]
    positive = [t for t, weight in enumerate(weights) if weight]
    which = np.concatenate([face.pairs, added[positive]])
    return Face(which, shortened(pairs, which, face_weights + [weights[t] for t in positive]), None)


def shortened(pairs: Pairs, which: Ints, weights: list[Fraction]) -> list[Fraction]:
    """Return weights that balance the same pairs, in fewer digits: each step upward would add those of a determinant."""
    if max(weight.denominator.bit_length() for weight in weights) < _LONG_WEIGHTS:
        return weights
    top = max(weights)
    return balanced(pairs, which, [float(weight / top) for weight in weights]) or weights


def balanced(pairs: Pairs, which: Ints, weights: Sequence[float | Fraction]) -> list[Fraction] | None:
    """Return exact weights near these that balance the pairs, or None where one of them would not be positive.

    All weights but those of a basis stay as they are, and these are solved for. The basis is taken from the first pairs.
    The weights are floats, or fractions whose denominators are powers of two.
    """
    table, _ = reduced(pairs, which)
    basis, columns = independent(table)
    others = sorted(set(range(len(which))) - set(basis))
    rounded = [Fraction(weights[t]) for t in others]
    if not all(rounded):
        return None
    scale = max((weight.denominator for weight in rounded), default=1)
    right = np.array([int(weight * scale) for weight in rounded], object) @ table[np.ix_(others, columns)]
    solved = [weight / scale for weight in System(table[np.ix_(basis, columns)].T.copy()).solve(-right)]
    exact = dict(zip([*others, *basis], [*rounded, *solved], strict=True))
    return [exact[t] for t in range(len(which))] if all(weight > 0 for weight in solved) else None


def climb(pairs: Pairs, first: Face, scales: Floats, signs_of: Signs, last_resort: bool) -> Face:
    """Return the final face: no pair outside it, or a direction that is positive on each pair outside it and zero inside.

    It is not complete where floating point cannot tell, or where there are more pairs than memory should be spent on.
    """
    face, rng = first, np.random.default_rng(0)
    if pairs.K > 2 and pairs.rows.n * pairs.K > _MOST_INSIDE:
        return replace(first, complete=False)
    while True:
        check_time()
        face.inside, rank = membership(pairs, face.pairs, rng)
        outside = _outside(pairs, face.inside)
        if outside is not None and not outside.size:
            return face
        grown = None if outside is None else _step(pairs, face, rank, outside, scales, signs_of, last_resort)
        if grown is None:
            face.complete = False
            return face
        if grown.direction is not None:
            grown.inside = face.inside
            return grown
        face = grown


def _outside(pairs: Pairs, inside: Any) -> Ints | None:
    """Return the pairs that are not inside, or None where they are too many."""
    parts, count = [], 0
    for begin, end in pairs.row_blocks():
        first = begin * pairs.blocks
        part = first + np.flatnonzero(~inside[first : end * pairs.blocks] & pairs.existing(begin, end))
        parts.append(part)
        count += len(part)
        if pairs.K > 2 and count > _MOST_OUTSIDE:
            return None
    return np.concatenate(parts)


def _step(
    pairs: Pairs, face: Face, rank: int, outside: Ints, scales: Floats, signs_of: Signs, last_resort: bool
) -> Face | None:
    """Return the face made larger, or with a direction that is positive on all pairs outside it, or None.

    The w with ⟨w,L⟩ = 0 have free coordinates, and `columns` that these determine: V is a basis of L, and the rows of
    `basis` below span its orthogonal complement. The search runs in the free coordinates.
    """
    from scipy.linalg import qr  # loading it takes longer than most proofs

    skip = 0 if pairs.K == 2 else pairs.m
    table, shifts = reduced(pairs, face.pairs)
    spanning, columns = independent(table)
    V = pairs.vectors(face.pairs[spanning])[:, skip:] / scales[skip:]
    V = V / np.maximum(np.abs(V).max(axis=1), 1e-300)[:, None]
    # Any nonsingular columns do; those of a pivoted QR factorisation make the float basis accurate.
    pivots: Ints = np.sort(qr(V, mode="r", pivoting=True)[1][:rank])
    if len(independent(table[np.ix_(spanning, pivots.tolist())])[0]) == rank:
        columns = pivots.tolist()
    free = np.setdiff1d(np.arange(V.shape[1]), columns)
    R = np.linalg.lstsq(V[:, columns], V[:, free], rcond=None)[0]
    basis = np.zeros((len(free), V.shape[1]))
    basis[np.arange(len(free)), free] = 1.0
    basis[:, columns] = -R.T
    full = np.concatenate([np.zeros((len(free), skip)), basis], axis=1) / scales
    system: list[System] = []

    def exact_direction(u: Any) -> list[Fraction]:
        """Return the exact w with these free coordinates and ⟨w,L⟩ = 0; u is rounded first, so that w stays short."""
        if isinstance(u, np.ndarray):
            u = np.round(u / np.abs(u).max() * 2.0**26)
            w = [Fraction(0)] * V.shape[1]
            for t, j in enumerate(free.tolist()):
                w[j] = Fraction(u[t]) / Fraction(scales[skip + j])
            shifted = [value / (1 << shift) for value, shift in zip(w, shifts, strict=True)]
            scale = max(1, *(value.denominator for value in shifted)) if shifted else 1
            right = np.array([int(value * scale) for value in shifted], object)
            if not system:
                system.append(System(table[np.ix_(spanning, columns)]))
            solved = system[0].solve(-(table[spanning] @ right)) if spanning else []
            for j, value in zip(columns, solved, strict=True):
                w[j] = value * (1 << shifts[j]) / scale
        else:
            w = [value * (1 << shift) for value, shift in zip(u, shifts_of_exact[0], strict=True)]
        return [Fraction(0)] * skip + w

    def accept_separator(u: Any) -> Face | Failures:
        w = exact_direction(u)
        failing, is_negative = [], False
        for begin, end, signs in signs_of(w):
            low, high = np.searchsorted(outside, (begin * pairs.blocks, end * pairs.blocks))
            failing.append(low + np.flatnonzero(signs[outside[low:high] - begin * pairs.blocks] <= 0))
            is_negative |= bool((signs < 0).any())
        bad = np.concatenate(failing)
        return Failures(bad) if bad.size or is_negative else Face(face.pairs, face.weights, None, w)

    def accept_witness(which: Ints, weights: list[Fraction] | None) -> Face | None:
        return lifted(pairs, face, outside[which], weights)

    shifts_of_exact: list[list[int]] = [[]]

    def whole(which: Ints) -> tuple[Whole, Whole]:
        both, shifts_of_exact[0] = reduced(pairs, np.concatenate([face.pairs[spanning], outside[which]]))
        return both[len(spanning) :], both[: len(spanning)]

    if len(outside) * len(free) <= _MOST_CELLS:
        Z = _quotient(pairs, full, outside)
        field = Field(len(free), lambda u: [(0, Z @ u)], Z.__getitem__, whole)
        order = np.argsort(np.einsum("ij,ij->i", Z, Z))
    else:  # too many numbers to keep: those of a working set are computed when it needs them
        field = Field(
            len(free),
            lambda u: _leads_of(pairs, u @ full, outside),
            lambda which: _quotient(pairs, full, outside[which]),
            whole,
        )
        order = np.arange(len(outside))
    start = np.sort(order[:: max(1, len(order) // (200 + len(free)))])
    return decide(field, start, accept_separator, accept_witness, last_resort)


def _leads_of(pairs: Pairs, w: Floats, which: Ints) -> Iterator[tuple[int, Floats]]:
    """Yield the leads of some pairs, in order, in blocks, with the place of the first of each."""
    for begin, end, leads in pairs.blocks_of_leads(w):
        low, high = np.searchsorted(which, (begin * pairs.blocks, end * pairs.blocks))
        if high > low:
            yield int(low), leads[which[low:high] - begin * pairs.blocks]


def _quotient(pairs: Pairs, basis: Floats, outside: Ints) -> Floats:
    """Return ⟨basis_t, a⟩ for the pairs outside, each row scaled to size 1."""
    if pairs.K == 2:
        d = pairs.rows.d
        scores = pairs.rows.scores(basis[:, :d], basis[:, d] if pairs.bias else np.zeros(len(basis)), frozen(outside.copy()))
        Z: Floats = scores * pairs.signs[outside][:, None]
    else:
        Z = np.empty((len(outside), len(basis)))
        step = max(1, _MOST_CELLS // pairs.dim)
        for first in range(0, len(outside), step):
            check_time()
            Z[first : first + step] = pairs.vectors(outside[first : first + step]) @ basis.T
    Z /= np.maximum(np.abs(Z).max(axis=1), 1e-300)[:, None]
    return Z


def equations(pairs: Pairs, face: Face) -> tuple[tuple[Fraction, ...], ...]:
    """Return independent v with ⟨v,x̃⟩ = 0 on the face's rows; as these span all rows, the equations hold for all rows.

    They let the checker verify that the rows of the witness span all rows: rank + number of equations = number of columns.
    """
    rows = np.unique(pairs.row_of(face.pairs))
    single = Pairs(pairs.rows, np.ones(pairs.rows.n, np.int64), 2, pairs.bias)
    table, shifts = single.whole(rows)
    spanning, columns = independent(table)
    free = sorted(set(range(pairs.m)) - set(columns))
    if not free:
        return ()
    system = System(table[np.ix_(spanning, columns)])
    vectors = []
    for j in free:
        v = [Fraction(0)] * pairs.m
        v[j] = Fraction(1 << shifts[j])
        for c, value in zip(columns, system.solve(-table[spanning, j]), strict=True):
            v[c] = value * (1 << shifts[c])
        vectors.append(tuple(v))
    return tuple(vectors)


def one_sided(pairs: Pairs) -> Direction | None:
    """Return a w without a negative lead, not all of them 0, made of features that speak for a class or against it; or None.

    A feature speaks for a class if it is never negative in its rows and never positive in others: then its unit vector in
    the block of that class has no negative lead. It speaks against a class if its negative speaks for it, as a word does
    that the class lacks. A sum of such vectors has no negative lead, either.
    """
    source, d = pairs.rows.source, pairs.rows.d
    if pairs.K * pairs.m > _DIRECTION_CELLS:
        return None
    is_positive, is_negative = np.zeros((2, pairs.K, d), bool)
    if pairs.rows.sparse:
        codes = np.repeat(pairs.codes, np.diff(source.indptr))
        for sign, is_there in ((1, is_positive), (-1, is_negative)):
            which = np.flatnonzero(sign * source.data.astype(np.float64) > 0)
            is_there[codes[which], source.indices[which]] = True
    else:
        step = max(1, _NUMBERS_AT_ONCE // d)
        for first in range(0, pairs.rows.n, step):
            check_time()
            block, codes = source[first : first + step], pairs.codes[first : first + step]
            for k in np.unique(codes).tolist():
                is_positive[k] |= (block[codes == k] > 0).any(axis=0)
                is_negative[k] |= (block[codes == k] < 0).any(axis=0)
    above, below = is_positive.sum(axis=0), is_negative.sum(axis=0)
    up = ~is_negative & (above == is_positive) & (is_positive | (below > 0))
    down = ~is_positive & (below == is_negative) & (is_negative | (above > 0))
    W = (up.astype(np.int8) - down)[1 if pairs.K == 2 else 0 :]
    number = {value: Fraction(value) for value in (-1, 0, 1)}
    return tuple((*map(number.__getitem__, w), *[number[0]] * pairs.bias) for w in W.tolist()) if W.any() else None
