"""How sure the weights are: AROW's Σ, a variance for each weight, or the whole matrix (Crammer, Kulesza, Dredze 2009).

    v = x̃ᵀΣx̃        w ← w + c·Σx̃        Σ ← Σ − s·(Σx̃)(Σx̃)ᵀ, of which the diagonal form keeps the diagonal

The variances V lie as the weights do, those of the biases in vb. The whole matrix of output k has D = d + 1 rows and
columns, the bias last, and lies output after output whatever the rows are. Nothing here sums in an order that the
compiler may choose, but v: corrections replayed with a recorded s come out the same, bit for bit.
"""

import numpy as np

from separatrix.kernels.compiling import part, summing_part
from separatrix.kernels.learning.rows import ONE


@summing_part
def variance(data, indices, indptr, i, d, spread, K, k, bias, full):
    """Return x̃ᵀΣx̃ under the Σ of output k."""
    V, vb, _ = spread
    sparse = indptr.size > 0
    first, last = i * d, (i + ONE) * d
    if sparse:
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
    v = 0.0
    if not full:
        if sparse:
            for p in range(first, last):
                x = np.float64(data[p])
                v += x * x * V[np.uint64(indices[p]) * K + k]
        else:
            for j in range(d):
                x = np.float64(data[first + j])
                v += x * x * V[k * d + j]
        return v + vb[k] if bias else v
    D = d + ONE
    whole = k * D * D
    for p in range(first, last):
        row = whole + (np.uint64(indices[p]) if sparse else p - first) * D
        along = 2.0 * V[row + d] if bias else 0.0  # once for this row, once for the bias's own
        for q in range(first, last):
            along += data[q] * V[row + (np.uint64(indices[q]) if sparse else q - first)]
        v += data[p] * along
    return v + V[whole + d * D + d] if bias else v


@part
def direction(data, indices, indptr, i, d, spread, K, k, bias, full, out):
    """Write Σx̃ under the Σ of output k into out, of d + 1 entries, the bias last."""
    V, vb, _ = spread
    sparse = indptr.size > 0
    first, last = i * d, (i + ONE) * d
    if sparse:
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
    for q in range(d + ONE):
        out[q] = 0.0
    D = d + ONE
    whole = k * D * D
    if bias:
        out[d] = vb[k]
        if full:
            for q in range(D):
                out[q] = V[whole + d * D + q]
    for p in range(first, last):
        j = np.uint64(indices[p]) if sparse else p - first
        if full:
            for q in range(D):
                out[q] += data[p] * V[whole + j * D + q]
        else:
            out[j] = V[j * K + k if sparse else k * d + j] * data[p]


@part
def sharpen(data, indices, indptr, i, d, flat, late, spread, K, k, c, averaged, shrink, bias, full):
    """Add c·Σx̃ to the weights of output k, c·averaged·Σx̃ to what the average is made from; then shrink Σ."""
    W, b = flat
    U, ub = late
    V, vb, g = spread
    sparse = indptr.size > 0
    first, last = i * d, (i + ONE) * d
    if sparse:
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
    if not full:
        for p in range(first, last):
            j = np.uint64(indices[p]) * K + k if sparse else k * d + p - first
            z = V[j] * data[p]
            W[j] += c * z
            if averaged > 0.0:
                U[j] += c * averaged * z
            V[j] -= shrink * z * z
        if bias:
            z = vb[k]
            b[k] += c * z
            if averaged > 0.0:
                ub[k] += c * averaged * z
            vb[k] -= shrink * z * z
        return
    direction(data, indices, indptr, i, d, spread, K, k, bias, full, g)
    for q in range(d):
        j = q * K + k if sparse else k * d + q
        W[j] += c * g[q]
        if averaged > 0.0:
            U[j] += c * averaged * g[q]
    if bias:
        b[k] += c * g[d]
        if averaged > 0.0:
            ub[k] += c * averaged * g[d]
    D = d + ONE
    whole = k * D * D
    for q in range(D):
        for r in range(D):
            V[whole + q * D + r] -= shrink * g[q] * g[r]
