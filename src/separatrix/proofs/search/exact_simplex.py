"""Gordan's alternative decided exactly, for the few small sets on which floating point cannot decide.

Gordan (1873): exactly one of these exists: weights λ ≥ 0, Σλ = 1 with Σλa + (a combination of the `free` rows) = 0, or a
direction w with ⟨w,a⟩ > 0 on the rows and ⟨w,a⟩ = 0 on the free ones. Phase one of the simplex method finds one of them;
Bland's rule (smallest index enters, smallest index leaves) guarantees that it ends. The tableau is kept in integers: times
the determinant of the basis every number in it is a determinant, so each division is exact (Edmonds 1967).
"""

from __future__ import annotations

from fractions import Fraction

from separatrix.proofs.clock import check_time
from separatrix.proofs.search.rationals import Whole


def alternative(rows: Whole, free: Whole, deadline: float) -> tuple[list[Fraction] | None, list[Fraction] | None]:
    """Return (λ, None) or (None, w)."""
    dim, k = rows.shape[1], len(rows)
    # The program is: minimise the sum of the artificial variables subject to [rows; 1]ᵀλ + freeᵀ(μ⁺ − μ⁻) = (0, …, 0, 1).
    columns = [[*map(int, row), 1] for row in rows]
    columns += [[*map(int, row), 0] for row in free] + [[*(-int(v) for v in row), 0] for row in free]
    count, height = len(columns), dim + 1
    # Invariant: divided by `divisor` > 0, the table is the tableau of `basis`: a row for each equation, its right side last,
    # and the reduced costs, with right sides ≥ 0.
    table = []
    for i in range(height):
        check_time(deadline)
        table.append([column[i] for column in columns] + [int(i == t) for t in range(height)] + [int(i == dim)])
    costs = [-sum(row[j] for row in table) for j in range(count)] + [0] * height + [-1]
    basis, divisor = list(range(count, count + height)), 1
    while True:
        check_time(deadline)
        enter = next((j for j in range(count) if costs[j] < 0), None)
        if enter is None:
            break
        ratios = [(Fraction(row[-1], row[enter]), basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
        leave = min(ratios)[2]
        chosen = table[leave]
        pivot = chosen[enter]
        for i, row in enumerate([*table, costs]):
            check_time(deadline)  # one row of long numbers may take a second
            factor = row[enter]
            if i == leave:
                continue
            row[:] = [(a * pivot - factor * b) // divisor if a or b else 0 for a, b in zip(row, chosen, strict=True)]
        basis[leave], divisor = enter, pivot
    if any(row[-1] for row, j in zip(table, basis, strict=True) if j >= count):
        # The minimum is positive, so the dual solution π is the certificate of Farkas' lemma: ⟨π,a⟩ + π_last ≤ 0 on the
        # rows, 0 on the free ones, with π_last > 0. The reduced cost of the t-th artificial column is 1 − π_t; w = −π.
        return None, [Fraction(costs[count + t], divisor) - 1 for t in range(dim)]
    weights = [Fraction(0)] * k
    for row, j in zip(table, basis, strict=True):
        if j < k:
            weights[j] = Fraction(row[-1], divisor)
    return weights, None
