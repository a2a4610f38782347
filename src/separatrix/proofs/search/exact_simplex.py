"""Gordan's alternative decided exactly, for the few small sets on which floating point cannot decide.

Gordan (1873): exactly one of these exists: weights λ ≥ 0, Σλ = 1 with Σλa + (a combination of the `free` rows) = 0, or a
direction w with ⟨w,a⟩ > 0 on the rows and ⟨w,a⟩ = 0 on the free ones. Phase one of the simplex method, in fractions, finds
one of them; Bland's rule (smallest index enters, smallest index leaves) guarantees that it ends.
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
    table = []
    for i in range(height):
        check_time(deadline)
        table.append([Fraction(column[i]) for column in columns] + [Fraction(int(i == t)) for t in range(height)])
    right = [Fraction(0)] * dim + [Fraction(1)]
    # Invariant: `table`, `right` and `cost` are the tableau of `basis`, with reduced costs and right ≥ 0.
    cost = [-sum((table[i][j] for i in range(height)), Fraction(0)) for j in range(count)] + [Fraction(0)] * height
    basis = list(range(count, count + height))
    while True:
        check_time(deadline)
        enter = next((j for j in range(count) if cost[j] < 0), None)
        if enter is None:
            break
        ratios = [(right[i] / table[i][enter], basis[i], i) for i in range(height) if table[i][enter] > 0]
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        table[leave] = [value / pivot for value in table[leave]]
        right[leave] /= pivot
        for i in range(height):
            factor = table[i][enter]
            if i != leave and factor:
                check_time(deadline)  # one row of long fractions may take a second
                table[i] = [a - factor * b if b else a for a, b in zip(table[i], table[leave], strict=True)]
                right[i] -= factor * right[leave]
        factor = cost[enter]
        cost = [a - factor * b if b else a for a, b in zip(cost, table[leave], strict=True)]
        basis[leave] = enter
    if any(right[i] for i in range(height) if basis[i] >= count):
        # The minimum is positive, so the dual solution π is the certificate of Farkas' lemma: ⟨π,a⟩ + π_last ≤ 0 on the
        # rows, 0 on the free ones, with π_last > 0. The reduced cost of the t-th artificial column is 1 − π_t; w = −π.
        return None, [cost[count + t] - 1 for t in range(dim)]
    weights = [Fraction(0)] * k
    for i, j in enumerate(basis):
        if j < k:
            weights[j] = right[i]
    return weights, None
