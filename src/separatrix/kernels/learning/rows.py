"""Rows of X, dense or CSR, in one form: dot, axpy, norm.

    score    s_k = ⟨w_k, x⟩ + b_k
    correct  w_k ← w_k + c·x,  b_k ← b_k + c
    survey   R² = max ‖x_i‖², and the first thing wrong with X

A matrix is `(data, indices, indptr)`. Dense rows are `data` flattened, with no indices and no indptr: row i is
data[i·d : (i+1)·d]. CSR is SciPy's own triple. One branch a row tells them apart, and every kernel serves both.

Weights of K outputs are one flat array of K·d: output after output for dense rows (`w_k` is contiguous, four at a time
share one read of x), feature after feature for CSR (all K weights of a feature share a cache line). With K = 1 the two are
the same.
"""

import numpy as np

from separatrix.kernels.arrays import Array, RowParts
from separatrix.kernels.bits import prefetch, prefetch_near
from separatrix.kernels.compiling import kernel, part, summing_part

LARGEST = np.finfo(np.float64).max
FINE, NOT_FINITE, TOO_LARGE, BAD_INDEX, UNSORTED, REPEATED = range(6)
NEAR = 1 << 16
"""Up to so many weights stay in the cache and are not prefetched."""
AHEAD = np.uint64(12)
"""So many entries of a sparse row before they are used, their weights are prefetched."""
MANY = np.uint64(16)
"""So many dense rows are scored together where nothing is corrected."""
ZERO, ONE, TWO, THREE, FOUR = (np.uint64(i) for i in range(5))


@part
def fetch(data, indices, indptr, i, d):
    """Prefetch row i."""
    line = np.uint64(64 // data.itemsize)
    if indptr.size == 0:
        for p in range(i * d, (i + ONE) * d, line):
            prefetch(data, p)
    else:
        begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        for p in range(begin, end, line):
            prefetch(data, p)
        for p in range(begin, end, np.uint64(64 // indices.itemsize)):
            prefetch(indices, p)


@summing_part
def dot(data, indices, indptr, i, d, W, w):
    """Return ⟨x_i, W[w : w+d]⟩ for a dense row, ⟨x_i, W⟩ for a CSR row."""
    s = 0.0
    if indptr.size == 0:
        base = i * d
        for j in range(d):
            s += data[base + j] * W[w + j]
    else:
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
            s += data[p] * W[np.uint64(indices[p])]
    return s


@summing_part
def norm2(data, indices, indptr, i, d, bias):
    """Return ‖x̃_i‖²."""
    first, last = i * d, (i + ONE) * d
    if indptr.size > 0:
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
    s = 0.0
    for p in range(first, last):
        x = np.float64(data[p])
        s += x * x
    return s + 1.0 if bias else s


@summing_part
def score_sparse(data, indices, indptr, i, W, b, K, scores):
    """Write the K scores of CSR row i into scores."""
    for k in range(K):
        scores[k] = 0.0
    begin, end = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
    far = end - AHEAD - THREE if W.size > NEAR and end - begin > AHEAD + THREE else begin
    p = begin
    while p + FOUR <= end:  # four entries at a time, so that a score is loaded and stored once for all four
        if p < far:
            for q in range(p, p + FOUR):
                first = np.uint64(indices[q + AHEAD]) * K
                for w in range(first, first + K, np.uint64(8)):
                    prefetch_near(W, w)
                prefetch_near(W, first + K - ONE)
        x0, x1 = np.float64(data[p]), np.float64(data[p + ONE])
        x2, x3 = np.float64(data[p + TWO]), np.float64(data[p + THREE])
        w0, w1 = np.uint64(indices[p]) * K, np.uint64(indices[p + ONE]) * K
        w2, w3 = np.uint64(indices[p + TWO]) * K, np.uint64(indices[p + THREE]) * K
        for k in range(K):
            s = scores[k]
            s += x0 * W[w0 + k]
            s += x1 * W[w1 + k]
            s += x2 * W[w2 + k]
            s += x3 * W[w3 + k]
            scores[k] = s
        p += FOUR
    while p < end:
        x = np.float64(data[p])
        w = np.uint64(indices[p]) * K
        for k in range(K):
            scores[k] += x * W[w + k]
        p += ONE
    for k in range(K):
        scores[k] += b[k]


@summing_part
def score_together(data, order, t, count, d, W, b, K, scores):
    """Write the K scores of the dense rows order[t…t+count] (no order: of t…t+count) into scores, row after row.

    The weights of four outputs stay in the nearest cache while the rows pass by. Each score is the same sum, in the same
    order, however many rows are scored together.
    """
    k = ZERO
    while k + FOUR <= K:
        w0, w1, w2, w3 = k * d, (k + ONE) * d, (k + TWO) * d, (k + THREE) * d
        for r in range(count):
            base = (np.uint64(order[t + r]) if order.size > 0 else t + r) * d
            s0 = s1 = s2 = s3 = 0.0
            for j in range(d):
                x = np.float64(data[base + j])
                s0 += x * W[w0 + j]
                s1 += x * W[w1 + j]
                s2 += x * W[w2 + j]
                s3 += x * W[w3 + j]
            m = r * K + k
            scores[m], scores[m + ONE], scores[m + TWO], scores[m + THREE] = s0, s1, s2, s3
        k += FOUR
    if k + TWO <= K:
        w0, w1 = k * d, (k + ONE) * d
        for r in range(count):
            base = (np.uint64(order[t + r]) if order.size > 0 else t + r) * d
            s0 = s1 = 0.0
            for j in range(d):
                x = np.float64(data[base + j])
                s0 += x * W[w0 + j]
                s1 += x * W[w1 + j]
            scores[r * K + k], scores[r * K + k + ONE] = s0, s1
        k += TWO
    if k < K:
        for r in range(count):
            base = (np.uint64(order[t + r]) if order.size > 0 else t + r) * d
            s0 = 0.0
            for j in range(d):
                s0 += data[base + j] * W[k * d + j]
            scores[r * K + k] = s0
    for r in range(count):
        for k in range(K):
            scores[r * K + k] += b[k]


@summing_part
def score(data, indices, indptr, i, d, W, b, K, scores):
    """Write ⟨w_k, x_i⟩ + b_k into scores[k] for each of the K outputs."""
    if K == ONE:
        scores[ZERO] = dot(data, indices, indptr, i, d, W, ZERO) + b[ZERO]
    elif indptr.size == 0:
        score_together(data, indptr, i, ONE, d, W, b, K, scores)
    else:
        score_sparse(data, indices, indptr, i, W, b, K, scores)


@part
def correct(data, indices, indptr, i, d, W, b, K, k, c, bias):
    """Add c·x_i to the weights of output k, and c to its bias if there is one."""
    if indptr.size == 0:
        base, w = i * d, k * d
        for j in range(d):
            W[w + j] += c * data[base + j]
    else:
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
            W[np.uint64(indices[p]) * K + k] += c * data[p]
    if bias:
        b[k] += c


@kernel
def survey(rows: RowParts, d: int, begin: int, end: int, weight: Array, seen: Array) -> tuple[int, int, int, float]:
    """Return (what is wrong, row, entry, R²) for rows begin…end; R² over the rows of nonzero weight.

    Indices out of order do no harm, but repeated ones do: seen[j], where there is room for it, is the last row, counted
    from 1, in which column j occurred.
    """
    data, indices, indptr = rows
    d, largest = np.uint64(d), 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        if indptr.size == 0:
            first, last = i * d, (i + ONE) * d
        else:
            if indptr[i] < 0 or indptr[i + ONE] < indptr[i] or indptr[i + ONE] > indices.size:
                return BAD_INDEX, i, ZERO, 0.0
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
            for p in range(first, last):
                if indices[p] < 0 or np.uint64(indices[p]) >= d:
                    return BAD_INDEX, i, p, 0.0
                if seen.size > 0:
                    if seen[np.uint64(indices[p])] == np.int64(i + ONE):
                        return REPEATED, i, p, 0.0
                    seen[np.uint64(indices[p])] = np.int64(i + ONE)
                elif p > first and indices[p] <= indices[p - ONE]:
                    return UNSORTED, i, p, 0.0
        norm = 0.0
        for p in range(first, last):
            x = np.float64(data[p])
            norm += x * x
        if not norm <= LARGEST:
            for p in range(first, last):
                if not abs(data[p]) <= LARGEST:
                    return NOT_FINITE, i, p - first if indptr.size == 0 else np.uint64(indices[p]), 0.0
            return TOO_LARGE, i, ZERO, 0.0
        if norm > largest and (weight.size == 0 or weight[i] != 0.0):
            largest = norm
    return FINE, ZERO, ZERO, largest


@kernel
def score_rows(
    rows: RowParts, d: int, order: Array, begin: int, end: int, W: Array, b: Array, K: int, scores: Array, out: Array
) -> None:
    """Write the K scores of the rows order[begin…end] (or begin…end themselves) into out, row after row."""
    data, indices, indptr = rows
    d, K, begin, end = np.uint64(d), np.uint64(K), np.uint64(begin), np.uint64(end)
    if K > ONE and indptr.size == 0:
        for t in range(begin, end, MANY):
            count = min(MANY, end - t)
            score_together(data, order, t, count, d, W, b, K, out[(t - begin) * K : (t - begin + count) * K])
        return
    for t in range(begin, end):
        i = np.uint64(order[t]) if order.size > 0 else t
        if K == ONE:
            out[t - begin] = dot(data, indices, indptr, i, d, W, ZERO) + b[ZERO]
        else:
            score_sparse(data, indices, indptr, i, W, b, K, scores)
            for k in range(K):
                out[(t - begin) * K + k] = scores[k]
