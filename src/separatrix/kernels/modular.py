"""Gauss–Jordan elimination modulo the prime p = 2³¹ − 61.

    for each column j with a pivot:  row_r ← row_r / row_r[j];  row_i ← row_i − row_i[j]·row_r  for i ≠ r

Residues stay below p < 2³¹, so that a product plus a residue fits into 64 bits: (p − 1)² + (p − 1) < 2⁶². A rank modulo p
never exceeds the rank over the rationals, so full rank modulo p proves full rank.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel, part

PRIME = (1 << 31) - 61
"""Not 2³¹ − 1, modulo which 2³¹ ≡ 1: floats that differ by little are often congruent then, and rows look dependent."""
_P = np.uint64(PRIME)


@part
def _inverse(value):
    """Return value^(p−2) mod p, the inverse of value."""
    result, power, e = np.uint64(1), value, np.uint64(PRIME - 2)
    while e > np.uint64(0):
        if e & np.uint64(1):
            result = result * power % _P
        power = power * power % _P
        e >>= np.uint64(1)
    return result


@kernel
def eliminate(M: Array, first: int, last: int, upward: bool, rank: int, order: Array, pivots: Array) -> int:
    """Bring columns first…last of M into echelon form (reduced, if `upward`), after those before; return the rank so far.

    order[r] becomes the original row at place r, pivots[r] the column of its leading 1. `rank` is what the call for the
    columns before returned, 0 at first; order is then 0, 1, 2, …
    """
    n, total = np.uint64(M.shape[0]), np.uint64(M.shape[1])
    rank = np.uint64(rank)
    for j in range(np.uint64(first), np.uint64(last)):
        if rank == n:
            break
        # Invariant: the rows above `rank` have their leading 1 in the columns pivots[0] < pivots[1] < … < j, and the rows
        # from `rank` on are 0 in all columns before j.
        pivot_row = n
        for i in range(rank, n):
            if M[i, j] != 0:
                pivot_row = np.uint64(i)
                break
        if pivot_row == n:
            continue
        if pivot_row != rank:
            order[pivot_row], order[rank] = order[rank], order[pivot_row]
            for c in range(total):
                M[pivot_row, c], M[rank, c] = M[rank, c], M[pivot_row, c]
        factor = _inverse(M[rank, j])
        for c in range(j, total):
            M[rank, c] = M[rank, c] * factor % _P
        top = np.uint64(0) if upward else rank + np.uint64(1)
        for i in range(top, n):
            if i != rank and M[i, j] != 0:
                negative = _P - M[i, j]
                for c in range(j, total):
                    M[i, c] = (M[i, c] + negative * M[rank, c]) % _P
        pivots[rank] = j
        rank += np.uint64(1)
    return rank
