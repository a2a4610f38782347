"""A linear program solved to any number of digits: it decides margins and overlaps that float64 cannot see.

On a working set of vectors z, scaled to size 1, the program and its dual are

    max t  with ⟨g,z⟩ ≥ t, ⟨g,c⟩ = 1        min s  with Σλz = s·c, λ ≥ 0, Σλ = 1        (c: the mean of the first z)

If the common value is positive, g separates; if it is 0, λ is a witness; if it is negative, the z with a positive λ and one
vector far on the other side are one. Iterative refinement (Gleixner, Steffy and Wolter 2016) solves the program in floating
point, computes in integers by how much the solution fails, magnifies these errors by a power of two, and lets the same
solver correct them: each round adds several digits. Columns that depend on others up to rounding are first replaced by what
is left of them, exactly (`Coordinates`). The working set grows by the pairs on which g fails, as in `separator_search`, and
every answer is accepted in exact arithmetic only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import ldexp
from typing import TypeVar

import numpy as np

from separatrix.engine.rows import Floats, Ints
from separatrix.proofs.clock import check_time
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import Whole, product
from separatrix.proofs.search.separator_search import Failures, balance, solver_options

Answer = TypeVar("Answer")
AcceptSeparator = Callable[[list[Fraction]], Answer | Failures]
AcceptWitness = Callable[[Ints, list[Fraction] | None], Answer | None]

_ROUNDS = 40
"""Of refinement for one working set."""
_STEP = 24
"""The errors are magnified by at most 2^24 more than in the round before, so that the solver sees both scales."""
_BITS = 60
"""The solver's corrections are rounded to so many binary digits behind the point."""
_FAR = 1e6
"""A reduced cost so much larger than the errors needs no exact value."""
_BOX = 1e4
"""|g| is at most so large: without a limit the program may be unbounded."""
_POSITIVE = 1e-11
_VERTICES = 10
_NOTHING = -(1 << 40)
_SAMPLE = 1000
"""Rows that tell which columns nearly depend on others."""
_DEPENDENT = 1e-5
"""A column whose distance from the span of the others is a smaller share of its length is replaced."""
_SHARE_BITS, _REPLACEMENTS = 40, 8
_MOST_DIMENSIONS = 2000
_TOLERANCES = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


class Program:
    """The program of one working set. `Z` holds the z times 2^`z_bits`, `y` = (−g, t) times 2^`y_bits`, in integers."""

    def __init__(self, table: Whole, column_bits: Ints, smaller: Program | None) -> None:
        self.k, self.dim = table.shape
        # z = table · 2^−(row + column): powers of two by which the largest number of each z is near 1.
        sizes = bit_lengths(table)
        behind = np.where(sizes > 0, sizes - column_bits, _NOTHING).max(axis=1, initial=_NOTHING)
        behind = np.where(behind == _NOTHING, 0, behind)[:, None] + column_bits
        self.z_bits = int(behind.max(initial=0))
        self.Z: Whole = table << (self.z_bits - behind).astype(object)
        Z = as_floats(self.Z, self.z_bits)
        self.c: Floats = Z.mean(axis=0) if smaller is None else smaller.c
        one = np.eye(self.dim)
        self.A = np.block([[Z.T, one, -one, -self.c[:, None]], [np.ones((1, self.k)), np.zeros((1, 2 * self.dim + 1))]])
        self.bounds = [(0, None)] * (self.k + 2 * self.dim) + [(None, None)]
        self.y: Whole = np.zeros(self.dim + 1, object) if smaller is None else smaller.y
        self.y_bits: int = 0 if smaller is None else smaller.y_bits
        self.zoom = -_STEP if smaller is None else 0
        self.weights = np.zeros(self.k)

    def leads(self) -> Whole:
        """Return ⟨g,z⟩, times 2^(z_bits + y_bits)."""
        return -(self.Z @ self.y[: self.dim])

    def refine(self) -> bool:
        """Correct y by the solution of the program with magnified reduced costs. Return whether the solver succeeded."""
        from scipy.optimize import linprog  # loading it takes longer than most proofs

        bits, box = self.z_bits + self.y_bits, int(_BOX) << self.y_bits
        u, t = self.y[: self.dim], int(self.y[self.dim])
        costs = np.concatenate([self.leads() - (t << self.z_bits), (box - u) << self.z_bits, (box + u) << self.z_bits])
        excess = -int(min(costs))
        is_first = self.zoom < 0
        self.zoom = max(0, min(self.zoom + _STEP, bits - excess.bit_length() if excess > 0 else self.zoom + _STEP))
        price = np.minimum(as_floats(costs, bits - self.zoom), _FAR)
        answer = linprog(
            np.append(price, 1.0 if is_first else 0.0),
            A_eq=self.A,
            b_eq=np.append(np.zeros(self.dim), 1.0),
            bounds=self.bounds,
            method="highs-ds",
            options={**_TOLERANCES, **solver_options()},
        )
        if answer.status != 0:
            return False
        self.weights = answer.x[: self.k]
        correction = np.array([int(value) for value in np.round(np.ldexp(answer.eqlin.marginals, _BITS))], object)
        behind = max(self.y_bits, self.zoom + _BITS)
        self.y = (self.y << (behind - self.y_bits)) + (correction << (behind - self.zoom - _BITS))
        self.y_bits = behind
        return True

    def separator(self) -> Whole | None:
        """Return g times a power of two, in as few digits as its leads need; None if it does not separate the set."""
        least = int(min(self.leads()))
        if least <= 0:
            return None
        spare = least.bit_length() - self.z_bits - self.dim.bit_length() - 4
        return np.asarray(-(self.y[: self.dim] >> max(0, spare)))

    def witnesses(self) -> Iterator[Ints]:
        """Yield sets of vectors that may be a witness."""
        support = np.flatnonzero(self.weights > _POSITIVE)
        yield support
        yield np.union1d(support, [int(np.argmax(self.leads()))])
        if self.y[self.dim] < 0:  # there is one: vertices of Σλz = 0, each at the least of random costs
            for seed in range(_VERTICES):
                costs = np.asarray(np.random.default_rng(seed).random(self.k))
                vertex = balance(self.A[: self.dim, : self.k].T, costs)
                if vertex is None:
                    return
                yield vertex


class Coordinates:
    """Coordinates of x̃ in which no column nearly depends on others: z = x̃·2^−`exponents` · `T` · 2^−`sizes`.

    A column that the others give up to rounding is replaced by what is left of it, computed exactly, and magnified. T is
    None where no column has to be replaced.
    """

    def __init__(self, pairs: Pairs, work: Ints) -> None:
        self.pairs = pairs
        self.exponents = np.frexp(pairs.column_scales()[: pairs.m])[1].astype(np.int64) - 1
        self.sizes = np.zeros(pairs.m, np.int64)
        self.T: Whole | None = None
        self._replace_dependent(work)

    def _replace_dependent(self, work: Ints) -> None:
        from scipy.linalg import qr, solve_triangular  # loading it takes longer than most proofs

        n = self.pairs.rows.n
        sample = np.random.default_rng(0).choice(n, min(n, _SAMPLE), replace=False)
        single = Pairs(self.pairs.rows, np.ones(n, np.int64), 2, self.pairs.bias)
        V, common = self._at_common_scale(*single.whole(np.union1d(sample, self.pairs.row_of(work))))
        T: Whole = np.eye(self.pairs.m, dtype=np.int64).astype(object)
        for _ in range(_REPLACEMENTS):
            sizes = bit_lengths(V).max(axis=0, initial=0)
            F = np.column_stack([as_floats(V[:, j], int(size)) for j, size in enumerate(sizes)])
            norms = np.linalg.norm(F, axis=0)
            R, pivots = qr(F / np.where(norms > 0, norms, 1.0), mode="r", pivoting=True)
            diagonal = np.abs(np.diag(R))
            rank = int(np.sum(diagonal > _DEPENDENT * diagonal[0]))
            others = [t for t in range(rank, len(pivots)) if norms[pivots[t]] > 0]
            if not others:
                break
            shares = solve_triangular(R[:rank, :rank], R[:rank, others])
            basis, others = pivots[:rank], pivots[others]
            shares *= norms[others] / norms[basis][:, None]
            whole = np.array([[int(v) for v in row] for row in np.round(np.ldexp(shares, _SHARE_BITS))], object)
            top = int(sizes.max())
            raised = np.array([1 << (top - int(sizes[i])) for i in basis], object)[:, None] * whole
            for t, j in enumerate(others):
                check_time()
                up = _SHARE_BITS + top - int(sizes[j])
                V[:, j] = (V[:, j] << up) - V[:, basis] @ raised[:, t]
                T[:, j] = (T[:, j] << up) - T[:, basis] @ raised[:, t]
            self.T = T
        self.sizes = np.where(sizes > 0, sizes - common, 0)

    def _at_common_scale(self, table: Whole, shifts: list[int]) -> tuple[Whole, int]:
        """Return x̃·2^−exponents as integers, and the power of two by which all of them were multiplied."""
        behind = np.array(shifts[: self.pairs.m]) + self.exponents
        common = int(behind.max(initial=0))
        return table << np.tile(common - behind, table.shape[1] // self.pairs.m).astype(object), common

    def table(self, which: Ints) -> tuple[Whole, Ints]:
        """Return the vectors of some pairs as integers, and the power of two by which each column was multiplied."""
        table, common = self._at_common_scale(*self.pairs.whole(which))
        if self.T is not None:
            table = product(table.reshape(-1, self.pairs.m), self.T).reshape(table.shape)
        return table, np.tile(self.sizes + common, self.pairs.blocks)

    def back(self, g: Whole) -> list[Fraction]:
        """Return the w of the data with ⟨w,a⟩ = ⟨g,z⟩."""
        low = int(min(-self.sizes))
        W = g.reshape(self.pairs.blocks, self.pairs.m) << (-self.sizes - low).astype(object)
        W = W if self.T is None else W @ self.T.T
        down = [Fraction(2) ** (low - int(e)) for e in self.exponents]
        return [Fraction(int(value)) * scale for vector in W for value, scale in zip(vector, down, strict=True)]


def search(
    pairs: Pairs, work: Ints, accept_separator: AcceptSeparator[Answer], accept_witness: AcceptWitness[Answer] | None
) -> Answer | None:
    """Return the accepted answer, or None where the solver fails or the data have too many dimensions.

    Where the data are known to be separable, `accept_witness` is None, and none is sought.
    """
    if pairs.dim > _MOST_DIMENSIONS:
        return None
    most = max(100, 2 * pairs.dim)
    coordinates = Coordinates(pairs, work)
    work, program = np.union1d(work, pairs.some(most, np.random.default_rng(1))), None
    while True:
        program = Program(*coordinates.table(work), program)
        result = _solved(program, work, coordinates, accept_separator, accept_witness)
        if not isinstance(result, Failures):
            return result
        new = np.setdiff1d(result.pairs, work)
        if not new.size:
            return None
        if new.size > most:
            leads = pairs.leads_of(_unit(coordinates.back(-program.y[:-1])), new) / pairs.norms[pairs.row_of(new)]
            new = new[np.argpartition(leads, most - 1)[:most]]
        work = np.union1d(work, new)


def _solved(
    program: Program,
    work: Ints,
    coordinates: Coordinates,
    accept_separator: AcceptSeparator[Answer],
    accept_witness: AcceptWitness[Answer] | None,
) -> Answer | Failures | None:
    """Return the answer that the program's solution gives, the pairs on which its separator fails, or None."""
    tried: set[bytes] = set()
    for _ in range(_ROUNDS):
        check_time()
        if not program.refine():
            check_time()
            return None
        g = program.separator()
        if g is not None:
            return accept_separator(coordinates.back(g))
        if accept_witness is None:
            continue
        for support in program.witnesses():
            if support.tobytes() not in tried:
                tried.add(support.tobytes())
                answer = accept_witness(work[support], None)
                if answer is not None:
                    return answer
    return None


def _unit(w: list[Fraction]) -> Floats:
    top = max(map(abs, w)) or Fraction(1)
    return np.array([float(value / top) for value in w])


def bit_lengths(table: Whole) -> Ints:
    """Return the number of binary digits of each integer."""
    return np.asarray(np.frompyfunc(lambda value: abs(value).bit_length(), 1, 1)(table), np.int64)


def as_floats(table: Whole, bits: int) -> Floats:
    """Return integers times 2^−bits, rounded."""
    return np.asarray(np.frompyfunc(lambda value: _float(value, bits), 1, 1)(table), np.float64)


def _float(value: int, bits: int) -> float:
    extra = max(0, abs(value).bit_length() - 64)
    try:
        return ldexp(value >> extra, extra - bits)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
