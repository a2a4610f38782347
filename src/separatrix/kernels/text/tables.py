"""Columns of a table → rows of a CSR matrix. Each column gives each row one run of neighbouring features with one value:

number     v ≠ 0 at the column's feature
bins       x > 0: those of the thresholds t₁ < t₂ < … that x exceeds, all of them (thermometer) or the last (one-hot);
           x < 0: likewise −x and thresholds of their own; x = 0: none
category   1 at the category's feature
missing    1 at the last feature of the column, where it has one for that
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel, part

ZERO, ONE = np.uint64(0), np.uint64(1)


@part
def exceeded(x, thresholds, begin, end):
    """Return how many of the sorted thresholds begin…end are less than x."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> ONE
        if thresholds[middle] < x:
            low = middle + ONE
        else:
            high = middle
    return low - begin


@kernel
def bins(
    x: Array, thresholds: Array, n_above: int, thermometer: bool, base: int, missing: int, start: Array, count: Array
) -> None:
    """Write the run of each number; the first n_above thresholds are those of x > 0, the others those of −x.

    `missing` is the feature of NaN, −1: none.
    """
    n_above, total = np.uint64(n_above), np.uint64(thresholds.size)
    for i in range(np.uint64(x.size)):
        first, passed = np.int64(base), ZERO
        if x[i] > 0.0:
            passed = exceeded(x[i], thresholds, ZERO, n_above)
        elif x[i] < 0.0:
            first += np.int64(n_above)
            passed = exceeded(-x[i], thresholds, n_above, total)
        elif x[i] != 0.0 and missing >= 0:
            first, passed = np.int64(missing), ONE
        if not thermometer and passed > ONE:
            first, passed = first + np.int64(passed) - 1, ONE
        start[i], count[i] = np.int32(first), np.int32(passed)


@kernel
def scaled(x: Array, shift: float, scale: float, base: int, missing: int, start: Array, count: Array, value: Array) -> None:
    """Write the run of each number (x − shift)·scale: none for 0; NaN is 0, and 1 at the feature `missing`, −1: none."""
    for i in range(np.uint64(x.size)):
        v, first = (x[i] - shift) * scale, np.int64(base)
        if v != v:
            v = 0.0
            if missing >= 0:
                v, first = 1.0, np.int64(missing)
        start[i], count[i], value[i] = np.int32(first), np.int32(v != 0.0), v


@kernel
def lay_out(start: Array, count: Array, value: Array, one: Array, p: int, indices: Array, data: Array, ptr: Array) -> None:
    """Write the rows of a block, the runs of p columns one after the other; ptr[0] is where they begin.

    Column j's run in row i is that at j·n + i; its value is 1 where one[j].
    """
    n, p, q = np.uint64(ptr.size) - ONE, np.uint64(p), np.uint64(ptr[ZERO])
    for i in range(n):
        at = i
        for j in range(p):
            v = 1.0 if one[j] else value[at]
            first = start[at]
            for k in range(count[at]):
                indices[q] = first + np.int32(k)
                data[q] = v
                q += ONE
            at += n
        ptr[i + ONE] = np.int64(q)
