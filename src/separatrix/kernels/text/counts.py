"""n-grams → rows of a CSR matrix: sort, count, weigh.

    column   |h| mod d, and the sign of h, for a hash h read as a signed number
    sort     each n-gram is a key (row, sign, column); digits of the column first, the row last: a radix sort
    count    equal columns of a row are next to each other: add them up
    weigh    v ← tf(v)·idf, then v ← v/‖v‖

The sort has no worst case, and the rows come out as SciPy wants them: sorted, each column once.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel, part

ZERO, ONE = np.uint64(0), np.uint64(1)
ROW_SHIFT, SIGN_SHIFT = np.uint64(32), np.uint64(31)
COLUMN = np.uint64(0x7FFFFFFF)


@part
def column_of(hashed, d):
    """Return |h| mod d, h being the hash read as a signed number."""
    size = np.uint32(abs(np.int64(np.int32(hashed))))
    if d & (d - np.uint32(1)) == 0:
        return np.uint64(size & np.uint32(d - np.uint32(1)))
    return np.uint64(np.uint32(size % d))


@kernel
def place(hashes: Array, ptr: Array, d: int, signed: bool, keys: Array) -> None:
    """Write the key of each n-gram; those of row i are ptr[i]…ptr[i+1]."""
    d = np.uint32(d)
    for i in range(np.uint64(ptr.size) - ONE):
        row = i << ROW_SHIFT
        for t in range(np.uint64(ptr[i]), np.uint64(ptr[i + ONE])):
            negative = signed and np.int32(hashes[t]) < 0
            keys[t] = row | np.uint64(negative) << SIGN_SHIFT | column_of(hashes[t], d)


@part
def scatter(keys, n, shift, low, count, out):
    """Move each key to the place of its digit."""
    for t in range(n):
        digit = (keys[t] >> shift) & low
        out[np.uint64(count[digit])] = keys[t]
        count[digit] += 1


@kernel
def sort(keys: Array, spare: Array, ptr: Array, bits: int, count: Array, next_of: Array) -> bool:
    """Sort the keys by row and column, of `bits` bits; return whether the sorted ones are in `spare`."""
    n, bits = np.uint64(ptr[np.uint64(ptr.size) - ONE]), np.uint64(bits)
    digits = (bits + np.uint64(10)) // np.uint64(11)
    step = (bits + digits - ONE) // digits
    for digit in range(digits):
        shift = digit * step
        low = ((ONE << step) - ONE) & (COLUMN >> shift)
        for j in range(low + ONE):
            count[j] = 0
        for t in range(n):
            count[(keys[t] >> shift) & low] += 1
        before = 0
        for j in range(low + ONE):
            before, count[j] = before + count[j], before
        if digit & ONE == ZERO:
            scatter(keys, n, shift, low, count, spare)
        else:
            scatter(spare, n, shift, low, count, keys)
    for i in range(np.uint64(next_of.size)):
        next_of[i] = ptr[i]
    if digits & ONE == ZERO:
        scatter(keys, n, ROW_SHIFT, COLUMN, next_of, spare)
        return True
    scatter(spare, n, ROW_SHIFT, COLUMN, next_of, keys)
    return False


@kernel
def count(keys: Array, ptr: Array, begin: int, indices: Array, values: Array, row_ptr: Array) -> float:
    """Write columns and counts from place `begin` on, and where each row ends; return the largest count."""
    q, largest = np.uint64(begin), 0.0
    for i in range(np.uint64(row_ptr.size)):
        nobody = COLUMN + ONE
        before, total = nobody, 0.0
        q -= ONE
        for t in range(np.uint64(ptr[i]), np.uint64(ptr[i + ONE])):
            column = keys[t] & COLUMN
            one = 1.0 - 2.0 * np.float64((keys[t] >> SIGN_SHIFT) & ONE)
            q += np.uint64(column != before)
            total = one if column != before else total + one
            before = column
            indices[q], values[q] = np.int32(column), total
            largest = max(largest, abs(total))
        q += ONE
        row_ptr[i] = q
    return largest


@kernel
def count_texts(indices: Array, df: Array) -> None:
    """Add 1 to df of each column that occurs."""
    for p in range(np.uint64(indices.size)):
        df[np.uint64(indices[p])] += 1


@kernel
def count_texts_so_far(indices: Array, row_begin: Array, row_end: Array, n: int, df: Array, rarity: Array) -> None:
    """Count row by row, after n texts; rarity is (1 + texts so far) / (1 + those with the column), this row included."""
    for i in range(np.uint64(row_end.size)):
        n += 1
        for p in range(np.uint64(row_begin[i]), np.uint64(row_end[i])):
            df[np.uint64(indices[p])] += 1
            rarity[p] = (1.0 + n) / (1.0 + df[np.uint64(indices[p])])


@kernel
def weigh(
    indices: Array, row_begin: Array, row_end: Array, tf: Array, by_column: Array, by_entry: Array, unit: bool, values: Array
) -> None:
    """Weigh the counts of each row in place: v ← ±tf[|v|], times the factor of the column or of the entry, each where there
    is one; then the row is divided by its length if `unit`.
    """
    for i in range(np.uint64(row_end.size)):
        norm = 0.0
        for p in range(np.uint64(row_begin[i]), np.uint64(row_end[i])):
            v = np.float64(values[p])
            if tf.size > 0:
                size = tf[np.uint64(abs(v))]
                v = -size if v < 0.0 else size
            if by_column.size > 0:
                v *= by_column[np.uint64(indices[p])]
            elif by_entry.size > 0:
                v *= by_entry[p]
            values[p] = v
            norm += v * v
        if unit and norm > 0.0:
            norm = np.sqrt(norm)
            for p in range(np.uint64(row_begin[i]), np.uint64(row_end[i])):
                values[p] = values[p] / norm
