"""Separability by the simplex method in fractions, with nothing of the library in it: for more rows than enumeration allows.

A w with every ⟨w,a⟩ > 0 exists exactly if the largest t with ⟨w,a⟩ ≥ t on all pairs, |w| ≤ 1, is positive. A pair can have
a positive weight in some λ ≥ 0 with Σλa = 0 exactly if no weakly separating w (every ⟨w,a⟩ ≥ 0) is positive on it.
"""

from fractions import Fraction

from support.brute_force import pair_vectors


def maximum(objective, rows, bounds):
    """Return max ⟨objective, z⟩ over z ≥ 0 with rows·z ≤ bounds, all bounds ≥ 0 (Bland's rule, so it ends)."""
    m, n = len(rows), len(objective)
    table = [
        [*map(Fraction, row), *(Fraction(int(i == k)) for k in range(m)), Fraction(bounds[i])] for i, row in enumerate(rows)
    ]
    cost = [*(-Fraction(c) for c in objective), *[Fraction(0)] * (m + 1)]
    basis = list(range(n, n + m))
    while True:
        enter = next((j for j in range(n + m) if cost[j] < 0), None)
        if enter is None:
            return cost[-1]
        ratios = [(table[i][-1] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 0]
        leave = min(ratios)[2]
        pivot = table[leave][enter]
        table[leave] = [value / pivot for value in table[leave]]
        for row in [*(table[i] for i in range(m) if i != leave), cost]:
            factor = row[enter]
            if factor:
                row[:] = [a - factor * b for a, b in zip(row, table[leave], strict=True)]
        basis[leave] = enter


def answer(X, codes, K, bias):
    """Return (verdict, separation) of rows of numbers, exactly."""
    pairs = pair_vectors(X, codes, K, bias)
    dim = len(pairs[0][2])
    scaled = []
    for _, _, a in pairs:  # a positive multiple of each vector, so that the fractions stay short
        top = max((abs(v) for v in a), default=0) or Fraction(1)
        scaled.append([v / top for v in a])
    # w = p − q with 0 ≤ p, q ≤ 1, so that p = q = 0, t = 0 is a point to start from.
    box = [[int(j == k) for k in range(2 * dim)] for j in range(2 * dim)]
    weak = [[*(-v for v in a), *a] for a in scaled]  # −⟨p − q, a⟩ ≤ 0
    strict = [[*row, 1] for row in weak] + [[*row, 0] for row in box]
    if maximum([0] * (2 * dim) + [1], strict, [0] * len(weak) + [1] * len(box)) > 0:
        return "separable", "complete"
    limits = weak + box, [0] * len(weak) + [1] * len(box)
    balanced = [t for t, a in enumerate(scaled) if maximum([*a, *(-v for v in a)], *limits) == 0]
    separation = "overlap" if len(balanced) == len(pairs) else "quasi-complete"
    if K == 2:
        one_side = len({codes[pairs[t][0]] for t in balanced}) == 1
    else:
        one_side = all(pairs[t][1] > codes[pairs[t][0]] for t in balanced)
    return "touching" if one_side and not bias else "inseparable", separation
