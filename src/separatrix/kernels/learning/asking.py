"""Passing over the examples of a stream whose label is not asked for (engine/asking.py)."""

import numpy as np

from separatrix.kernels.arrays import Array, RowParts, WeightParts
from separatrix.kernels.compiling import kernel
from separatrix.kernels.learning.rows import ONE, ZERO, score


@kernel
def next_asked(
    rows: RowParts,
    d: int,
    codes: Array,
    begin: int,
    end: int,
    flat: WeightParts,
    scores: Array,
    b: float,
    chances: Array,
    counts: Array,
) -> int:
    """Return the first row from `begin` on whose label is asked for, `end` if there is none.

    It is asked for where chances[i] < b/(b + margin), if b is above 0. counts[0] adds up the rows passed over whose class,
    by code, is not predicted, counts[1] the probabilities of all rows looked at, that of the row returned included.
    """
    data, indices, indptr = rows
    W, bias = flat
    d, K = np.uint64(d), np.uint64(scores.size)
    for i in range(np.uint64(begin), np.uint64(end)):
        score(data, indices, indptr, i, d, W, bias, K, scores)
        if K == ONE:
            margin = abs(scores[ZERO])
            best = ONE if scores[ZERO] > 0.0 else ZERO
        else:
            best = ZERO
            for k in range(ONE, K):
                if scores[k] > scores[best]:
                    best = k
            margin = np.inf
            for k in range(K):
                if k != best:
                    margin = min(margin, scores[best] - scores[k])
        if b > 0.0:
            probability = b / (b + margin)
            counts[ONE] += probability
            if chances[i] < probability:
                return np.int64(i)
        if np.uint64(codes[i]) != best or margin == 0.0:
            counts[ZERO] += 1.0
    return np.int64(end)
