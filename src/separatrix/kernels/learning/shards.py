"""Shards of a cluster: which features occur, CSR indices among them, and what a pass over a shard has changed.

weights     worth·(w' − w)
average     Σ(w_t − w) over the n steps, which is n·(w' − w) − u
with AROW   along the precisions: worth·(w'/v' − w/v) and worth·(1/v' − 1/v)
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel

ZERO, ONE = np.uint64(0), np.uint64(1)


@kernel
def mark_occurring(data: Array, indices: Array, out: Array) -> None:
    """Write 1 for each feature that has a value other than 0."""
    for p in range(np.uint64(indices.size)):
        if data[p] != 0.0:
            out[np.uint64(indices[p])] = 1


@kernel
def renumber(indices: Array, place: Array, features: Array, out: Array) -> int:
    """Write the features that occur, sorted, and the place of each index among them; return how many occur.

    `place` has −1 for every feature.
    """
    for p in range(np.uint64(indices.size)):
        place[np.uint64(indices[p])] = 0
    m = ZERO
    for j in range(np.uint64(place.size)):
        if place[j] == 0:
            place[j] = m
            features[m] = j
            m += ONE
    for p in range(np.uint64(indices.size)):
        out[p] = place[np.uint64(indices[p])]
    return m


@kernel
def changes(
    before: Array,
    spread_before: Array,
    W: Array,
    b: Array,
    by_feature: bool,
    late: Array,
    late_b: Array,
    late_by_feature: bool,
    V: Array,
    vb: Array,
    n: int,
    worth: float,
    out: Array,
) -> None:
    """Write the changes of each feature's weights, the bias last: out is (1 + averaging + spread, features + 1, outputs).

    Weights lie feature after feature or output after output; there is no average where `late_b` is empty, no spread where
    `vb` is.
    """
    f, K = np.uint64(before.shape[0]) - ONE, np.uint64(before.shape[1])
    averaging = np.uint64(late_b.size > 0)
    for j in range(f + ONE):
        for k in range(K):
            at = j * K + k if by_feature else k * f + j
            w = b[k] if j == f else W[at]
            moved = w - before[j, k]
            if averaging:
                there = j * K + k if late_by_feature else k * f + j
                out[ONE, j, k] = n * moved - (late_b[k] if j == f else late[there])
            if vb.size > 0:
                v = vb[k] if j == f else V[at]
                old = spread_before[j, k]
                out[ZERO, j, k] = worth * (w / v - before[j, k] / old)
                out[ONE + averaging, j, k] = worth * (1.0 / v - 1.0 / old)
            else:
                out[ZERO, j, k] = worth * moved
