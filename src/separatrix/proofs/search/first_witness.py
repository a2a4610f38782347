"""One witness of many, by a rule that depends on the data alone: the first one.

Σλa = 0, Σλ = 1, λ ≥ 0 has many solutions as a rule, and which of them a search meets depends on how it searches. The first
witness is the solution whose weights, read from the last pair to the first, are lexicographically smallest: it does without
the last pair if that is possible, else gives it the smallest weight that is possible, and so on. There is exactly one, it is
a vertex (no pair of it can be left out), and every program that follows the rule finds the same, as the lab in the browser
does (`web/static/lab/engine/first.js`).

It is the optimum of a linear program with the cost Mᵖ for pair p, where M is larger than every number. The simplex method
with Bland's rule ends for costs of any ordered field, so M needs no value: a column that may enter the basis lowers the cost
if its coefficient in the row of the largest basic number, of those where it is not 0, is positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import mul

import numpy as np

from separatrix.engine.rows import Ints
from separatrix.proofs.clock import TimeUp, check_time
from separatrix.proofs.search.nearest_point import nearest
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import dependency
from separatrix.proofs.search.separation import Face, reduced

MOST_EQUATIONS = 20
MOST_PAIRS = 40_000
"""Above these limits the witness that was found stays, because exact arithmetic would take longer than the search."""


def first_witness(pairs: Pairs, found: Face) -> Face:
    """Return the first witness, or the one that was found where the data are too large for the rule or time is up."""
    if not _is_small(pairs):
        return found
    try:
        which, support = _early(pairs, found)
        table = reduced(pairs, which)[0].tolist()
        solution = _first([[*row, 1] for row in table], [0] * len(table[0]) + [1], support)
    except TimeUp:
        return found
    if solution is None:
        return found
    return Face(which[list(solution)], list(solution.values()), None)


def _early(pairs: Pairs, found: Face) -> tuple[Ints, list[int]]:
    """Return the first pairs, as far as a witness needs them, and the places of its own pairs among them.

    Floating point searches, first among twice as many pairs each time, then between what is too few and what is enough; an
    exact dependency decides. What it misses costs time only.
    """
    order = np.flatnonzero(pairs.exist)
    support: Ints = np.sort(np.searchsorted(order, found.pairs))
    too_few, size = 1, pairs.m + 1
    while too_few < support[-1]:
        earlier = _support(pairs, order[: min(size, int(support[-1]))])
        if earlier is None:
            too_few = min(size, int(support[-1]))
            size = min(2 * too_few, (too_few + int(support[-1]) + 1) // 2)
        else:
            support = earlier
            size = (too_few + int(support[-1]) + 1) // 2
    return order[: support[-1] + 1], support.tolist()


def _support(pairs: Pairs, which: Ints) -> Ints | None:
    """Return the places of some pairs that are a witness, or None if none is found."""
    Z = pairs.vectors(which) / pairs.column_scales()
    Z = Z / np.maximum(np.sqrt(np.einsum("ij,ij->i", Z, Z)), 1e-300)[:, None]
    weights = nearest(Z)
    if weights is None or float(np.linalg.norm(Z.T @ weights)) > 1e-9:
        return None
    support = np.flatnonzero(weights > 0)
    exact = dependency(pairs.whole(which[support])[0])
    return support if exact is not None and min(exact) > 0 else None


def first_witness_with(pairs: Pairs, inside: Ints, chosen: int) -> Face | None:
    """Return the first witness that has a pair, of the pairs of a face in which there is one; None where it is not found."""
    if not _is_small(pairs):
        return None
    others = inside[inside != chosen]
    own, *table = reduced(pairs, np.append(chosen, others))[0].tolist()
    try:
        solution = _first(table, [-value for value in own], ())
    except TimeUp:
        return None
    if solution is None:
        return None
    return Face(np.append(others[list(solution)], chosen), [*solution.values(), Fraction(1)], None)


def together(one: Face, other: Face) -> Face:
    """Return half of each of two witnesses: one on the pairs of both."""
    weights: dict[int, Fraction] = {}
    for face in (one, other):
        total = sum(face.weights, Fraction(0))
        for pair, weight in zip(face.pairs.tolist(), face.weights, strict=True):
            weights[pair] = weights.get(pair, Fraction(0)) + weight / total
    return Face(np.array(list(weights)), list(weights.values()), None)


def _is_small(pairs: Pairs) -> bool:
    return pairs.m * (pairs.K - 1) <= MOST_EQUATIONS and pairs.count <= MOST_PAIRS


class _Tableau:
    """The inverse of the basis and the solution, as integers over one determinant: every division is exact (Edmonds 1967).

    Numbers from `count` on are artificial variables, one for each equation.
    """

    def __init__(self, columns: list[list[int]], right: Sequence[int]) -> None:
        self.signs = [-1 if value < 0 else 1 for value in right]
        self.columns = columns
        self.count, self.height = len(columns), len(right)
        self.basis = [self.count + i for i in range(self.height)]
        self.inverse = [[int(i == j) * sign for j, sign in enumerate(self.signs)] for i in range(self.height)]
        self.right = [abs(value) for value in right]
        self.determinant = 1

    def coefficient(self, i: int, column: list[int]) -> int:
        """Return the coefficient of a column in a row, times the determinant."""
        return sum(map(mul, self.inverse[i], column))

    def enter(self, j: int, leaving: int, image: list[int]) -> None:
        """Put column j, whose coefficients are given, in the place of the variable that leaves."""
        pivot, row, right = image[leaving], self.inverse[leaving], self.right[leaving]
        for i, factor in enumerate(image):
            if i != leaving:
                self.inverse[i] = [
                    (a * pivot - factor * b) // self.determinant for a, b in zip(self.inverse[i], row, strict=True)
                ]
                self.right[i] = (self.right[i] * pivot - factor * right) // self.determinant
        self.determinant, self.basis[leaving] = pivot, j
        if pivot < 0:
            self.inverse = [[-value for value in row] for row in self.inverse]
            self.right = [-value for value in self.right]
            self.determinant = -pivot

    def image(self, j: int) -> list[int]:
        """Return all coefficients of column j."""
        return [self.coefficient(i, self.columns[j]) for i in range(self.height)]

    def lowering(self) -> int | None:
        """Return the first column that lowers the cost, or None."""
        by_number = sorted(range(self.height), key=self.basis.__getitem__, reverse=True)
        top = max((self.basis[i] for i in range(self.height) if self.right[i]), default=-1)
        basic = set(self.basis)
        for j in range(min(top, self.count)):
            if j in basic:
                continue
            for i in by_number:
                if self.basis[i] < j:
                    break
                coefficient = self.coefficient(i, self.columns[j])
                if coefficient:
                    if coefficient > 0:
                        return j
                    break
        return None


def _first(columns: list[list[int]], right: Sequence[int], start: Sequence[int]) -> dict[int, Fraction] | None:
    """Return the first λ ≥ 0 with Σλ·column = right, by column; None if there is none.

    `start` has the columns of a solution that is a vertex, or none at all.
    """
    tableau = _Tableau(columns, right)
    for j in start:
        image = tableau.image(j)
        leaving = next((i for i, value in enumerate(image) if value and tableau.basis[i] >= tableau.count), None)
        if leaving is None:
            return None
        tableau.enter(j, leaving, image)
    if min(tableau.right) < 0:
        return None
    while True:
        check_time()
        entering = tableau.lowering()
        if entering is None:
            break
        image = tableau.image(entering)
        places = [i for i in range(tableau.height) if image[i] > 0]
        leaving = min(places, key=lambda i: (Fraction(tableau.right[i], image[i]), tableau.basis[i]))
        tableau.enter(entering, leaving, image)
    solution = {j: value for j, value in zip(tableau.basis, tableau.right, strict=True) if value}
    if any(j >= tableau.count for j in solution):
        return None
    return {j: Fraction(value, tableau.determinant) for j, value in sorted(solution.items())}
