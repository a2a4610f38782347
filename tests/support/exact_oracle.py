"""Separability by the simplex method in exact numbers, with nothing of the library in it, where enumeration is too slow.

Call w weakly separating if every ⟨w,a⟩ ≥ 0. The sum of two such w is one, too, and positive wherever one of them is. So the
largest Σs with s ≤ ⟨w,a⟩ and s ≤ 1 on each pair has s = 1 on every pair on which some weakly separating w is positive, and
s = 0 on the others, which are those that can have a positive weight in some λ ≥ 0 with Σλa = 0.
"""

from fractions import Fraction
from math import gcd, lcm

from support.brute_force import pair_vectors


def whole(numbers):
    """Return the smallest positive multiple of some numbers that consists of integers."""
    numbers = [Fraction(number) for number in numbers]
    scale = lcm(1, *(number.denominator for number in numbers))
    integers = [number.numerator * (scale // number.denominator) for number in numbers]
    common = gcd(*integers) or 1
    return [number // common for number in integers]


def maximum(objective, rows, bounds):
    """Return the z ≥ 0 with rows·z ≤ bounds, all bounds ≥ 0, that has the largest ⟨objective, z⟩.

    Bland's rule, so it ends. The table holds integers, `divisor` times the true numbers, and every division is exact
    (Edmonds 1967), so that no fraction has to be reduced.
    """
    m, n = len(rows), len(objective)
    table = []
    for i, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        *coefficients, right = whole([*row, bound])
        table.append([*coefficients, *(int(i == k) for k in range(m)), right])
    cost = [*(-c for c in whole(objective)), *[0] * (m + 1)]
    basis, divisor = list(range(n, n + m)), 1
    while True:
        enter = next((j for j in range(n + m) if cost[j] < 0), None)
        if enter is None:
            value_of = {j: Fraction(table[i][-1], divisor) for i, j in enumerate(basis)}
            return [value_of.get(j, Fraction(0)) for j in range(n)]
        leave = None
        for i in range(m):
            if table[i][enter] > 0:
                if leave is not None:
                    difference = table[i][-1] * table[leave][enter] - table[leave][-1] * table[i][enter]
                if leave is None or difference < 0 or (difference == 0 and basis[i] < basis[leave]):
                    leave = i
        pivot_row, pivot = table[leave], table[leave][enter]
        for row in [*(table[i] for i in range(m) if i != leave), cost]:
            factor = row[enter]
            row[:] = [(a * pivot - factor * b) // divisor for a, b in zip(row, pivot_row, strict=True)]
        basis[leave], divisor = enter, pivot


def largest(objective, rows, bounds):
    """Return the largest ⟨objective, z⟩ over z ≥ 0 with rows·z ≤ bounds, all bounds ≥ 0."""
    return sum(c * value for c, value in zip(objective, maximum(objective, rows, bounds), strict=True))


def answer(X, codes, K, bias):
    """Return (verdict, separation) of rows of numbers, exactly."""
    pairs = pair_vectors(X, codes, K, bias)
    # A positive multiple of each vector, and of each coordinate: the signs of all ⟨w,a⟩ that some w can have are the same.
    vectors = [whole(a) for _, _, a in pairs]
    columns = [whole(column) for column in zip(*vectors, strict=True)]
    vectors = [whole(a) for a in zip(*columns, strict=True)]
    k, dim = len(vectors), len(vectors[0])
    # w = p − q with p, q ≥ 0, so that p = q = 0, s = 0 is a point to start from.
    unit = [[int(i == t) for i in range(k)] for t in range(k)]
    weak = [[*(-v for v in a), *a, *unit[t]] for t, a in enumerate(vectors)]  # s − ⟨p − q, a⟩ ≤ 0
    limits = [[0] * (2 * dim) + unit[t] for t in range(k)]  # s ≤ 1
    best = maximum([0] * (2 * dim) + [1] * k, weak + limits, [0] * k + [1] * k)
    balanced = [t for t, s in enumerate(best[2 * dim :]) if not s]
    if not balanced:
        return "separable", "complete"
    separation = "overlap" if len(balanced) == k else "quasi-complete"
    if K == 2:
        one_side = len({codes[pairs[t][0]] for t in balanced}) == 1
    else:
        one_side = all(pairs[t][1] > codes[pairs[t][0]] for t in balanced)
    return "touching" if one_side and not bias else "inseparable", separation
