"""Separability by enumeration, in fractions: slow, short, and nothing of the library in it.

A row can have positive weight in some λ ≥ 0 with Σλa = 0 exactly if it is in a *circuit*: a minimal set of rows with one
dependency, all of it positive.
"""

from fractions import Fraction
from itertools import combinations


def pair_vectors(X, codes, K, bias):
    """Return (row, rival, a) for each pair; two classes have one vector, more have a block a class."""
    pairs = []
    for i, x in enumerate(X):
        lifted = [Fraction(v) for v in x] + [Fraction(1)] * bias
        if K == 2:
            pairs.append((i, 1 - codes[i], [v if codes[i] == 1 else -v for v in lifted]))
            continue
        for rival in range(K):
            if rival != codes[i]:
                blocks = {codes[i]: lifted, rival: [-v for v in lifted]}
                pairs.append((i, rival, [v for k in range(K) for v in blocks.get(k, [Fraction(0)] * len(lifted))]))
    return pairs


def null_space(columns):
    """Return a basis of the λ with Σ λ·column = 0."""
    height, width = len(columns[0]), len(columns)
    M = [[columns[j][i] for j in range(width)] for i in range(height)]
    pivots, r = [], 0
    for j in range(width):
        p = next((i for i in range(r, height) if M[i][j]), None)
        if p is None:
            continue
        M[r], M[p] = M[p], M[r]
        M[r] = [v / M[r][j] for v in M[r]]
        for i in range(height):
            if i != r and M[i][j]:
                M[i] = [a - M[i][j] * b for a, b in zip(M[i], M[r], strict=True)]
        pivots.append(j)
        r += 1
    basis = []
    for free in set(range(width)) - set(pivots):
        v = [Fraction(0)] * width
        v[free] = Fraction(1)
        for t, j in enumerate(pivots):
            v[j] = -M[t][free]
        basis.append(v)
    return basis


def answer(X, codes, K, bias):
    """Return (verdict, separation, γ² or None)."""
    pairs = pair_vectors(X, codes, K, bias)
    dim = len(pairs[0][2])
    balanced = set()
    for size in range(1, min(len(pairs), dim + 1) + 1):
        for chosen in combinations(range(len(pairs)), size):
            basis = null_space([pairs[t][2] for t in chosen])
            if len(basis) == 1 and (all(v > 0 for v in basis[0]) or all(v < 0 for v in basis[0])):
                balanced |= set(chosen)
    if not balanced:
        return "separable", "complete", _margin_squared([a for _, _, a in pairs])
    separation = "overlap" if len(balanced) == len(pairs) else "quasi-complete"
    if K == 2:
        touching = len({codes[pairs[t][0]] for t in balanced}) == 1
    else:
        touching = all(pairs[t][1] > codes[pairs[t][0]] for t in balanced)
    return "touching" if touching and not bias else "inseparable", separation, None


def _margin_squared(rows):
    """Return the squared distance of the hull from 0: the least over faces whose own nearest point is inside them."""
    best = None
    for size in range(1, min(len(rows), len(rows[0]) + 1) + 1):
        for chosen in combinations(rows, size):
            gram = [[sum(a * b for a, b in zip(u, v, strict=True)) for v in chosen] for u in chosen]
            columns = [[*[gram[i][j] for i in range(size)], Fraction(1)] for j in range(size)]
            columns += [[Fraction(-1)] * size + [Fraction(0)], [Fraction(0)] * size + [Fraction(-1)]]
            basis = null_space(columns)
            if len(basis) == 1 and basis[0][-1] != 0:
                weights = [v / basis[0][-1] for v in basis[0]]
                if all(v > 0 for v in weights[:size]) and (best is None or weights[size] < best):
                    best = weights[size]
    return best
