"""The kernel perceptron's pass, on scores kept up to date (Aizerman, Braverman and Rozonoer 1964; Freund and Schapire 1999).

    score      s(x) = Σ c·k(x_m, x) over the mistakes m, with the sign of the correction: w = Σ c·φ(x_m) is never built
    kernel     linear ⟨x,z⟩;  polynomial (γ⟨x,z⟩ + r)^d;  RBF exp(−γ‖x − z‖²);  or the value as given;  + 1 with a bias
    absorb     s(x) += c·k(x_m, x) for the mistakes m made since the score of x was last brought up to date
    present    a mistake as in `passes.py`; its correction reaches all examples of the block at once, the others later

BLAS makes the inner products, a block of examples by a block of mistakes; here they become kernel values and scores.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.codes import NOBODY
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.learning.passes import PERCEPTRON, wrong_pair
from separatrix.kernels.learning.rows import ONE, ZERO

GIVEN, POLYNOMIAL, RBF = 0, 1, 2


@part
def evaluate(products, row, places, form, left, right, values):
    """Write the kernel values of products[row, places] (no places: all of them) into values[0]; values[1] is scratch.

    left and right are the squared norms of the two sides, needed by the RBF kernel alone.
    """
    kind, gamma, constant, degree, bias = form
    size = np.uint64(products.shape[1] if places.size == 0 else places.size)
    if places.size == 0:
        for j in range(size):
            values[ZERO, j] = products[row, j]
    else:
        for j in range(size):
            values[ZERO, j] = products[row, np.uint64(places[j])]
    if kind == POLYNOMIAL:
        for j in range(size):
            values[ONE, j] = gamma * values[ZERO, j] + constant
            values[ZERO, j] = 1.0
        for _ in range(degree):
            for j in range(size):
                values[ZERO, j] *= values[ONE, j]
    elif kind == RBF:
        for j in range(size):
            values[ZERO, j] = np.exp(-gamma * max(0.0, left + right[j] - 2.0 * values[ZERO, j]))
    if bias != 0.0:
        for j in range(size):
            values[ZERO, j] += bias


@part
def change(scores, i, K, up, down, v):
    """Raise the score of class `up` by v and lower that of class `down`; one score for two classes."""
    if K == ONE:
        scores[i, ZERO] += v if up == 1 else -v
    else:
        if up != NOBODY:
            scores[i, np.uint64(up)] += v
        if down != NOBODY:
            scores[i, np.uint64(down)] -= v


@kernel
def fill(
    products: Array,
    places: Array,
    form: tuple[int, float, float, int, float],
    left: Array,
    right: Array,
    values: Array,
    out: Array,
    begin: int,
) -> None:
    """Write all kernel values of a block of products into the columns of out from `begin` on."""
    for e in range(np.uint64(products.shape[0])):
        evaluate(products, e, places, form, left[e] if left.size > 0 else 0.0, right, values)
        for j in range(np.uint64(products.shape[1])):
            out[e, np.uint64(begin) + j] = values[ZERO, j]


@kernel
def absorb(
    products: Array,
    at: Array,
    places: Array,
    form: tuple[int, float, float, int, float],
    left: Array,
    right: Array,
    events: tuple[Array, ...],
    first: Array,
    last: Array,
    example: Array,
    scores: Array,
    values: Array,
) -> None:
    """Let corrections first[e]…last[e] change the scores of example[e], for each e; its products are row at[e].

    A correction is a column (among `places`), the class raised, the class lowered, and by how much.
    """
    column, up, down, by = events
    K = np.uint64(scores.shape[1])
    for e in range(np.uint64(at.size)):
        if first[e] >= last[e]:
            continue
        evaluate(products, np.uint64(at[e]), places, form, left[e] if left.size > 0 else 0.0, right, values)
        i = np.uint64(example[e])
        for m in range(np.uint64(first[e]), np.uint64(last[e])):
            change(scores, i, K, up[m], down[m], by[m] * values[ZERO, np.uint64(column[m])])


@kernel
def present(
    gram: Array,
    visit: Array,
    member: Array,
    codes: Array,
    weight: Array,
    scores: Array,
    scratch: Array,
    begin: int,
    one: bool,
    joint: bool,
    tie: int,
    steps: int,
    out: tuple[Array, ...],
) -> tuple[int, int, int]:
    """Present visits begin…end of a block, up to date on all before; return (mistakes, visits done, steps).

    Visit t goes to example member[visit[t]]; gram holds the members' kernel values among themselves. Without it, stop before
    the first mistake; with `one`, stop after the first visit that has one. The columns of out are a ledger's.
    """
    out_step, out_example, out_up, out_down, out_correction, out_score = out
    K, m = np.uint64(scores.shape[1]), ZERO
    for t in range(np.uint64(begin), np.uint64(visit.size)):
        e = np.uint64(visit[t])
        i = np.uint64(member[e])
        label = np.uint64(codes[i])
        c = weight[i] if weight.size > 0 else 1.0
        for k in range(K):
            scratch[k] = scores[i, k]
        before = m
        for k in range(ONE if joint else K):
            wrong, up, down, s, _ = wrong_pair(label, k, scratch, ZERO, K, joint, tie, PERCEPTRON, 0.0)
            if wrong:
                if gram.size == 0:
                    return m, t, steps
                for f in range(np.uint64(member.size)):
                    change(scores, np.uint64(member[f]), K, up, down, c * gram[e, f])
                out_step[m], out_example[m], out_up[m], out_down[m] = steps + 1, i, up, down
                out_correction[m], out_score[m] = c, s
                m += ONE
        steps += 1
        if one and m > before:
            return m, t + ONE, steps
    return m, np.uint64(visit.size), steps


@kernel
def count_mistakes(codes: Array, weight: Array, scores: Array, scratch: Array, joint: bool, tie: int) -> int:
    """Return how many examples of nonzero weight have a wrong score."""
    K, total = np.uint64(scores.shape[1]), 0
    for i in range(np.uint64(codes.size)):
        if weight.size > 0 and weight[i] == 0.0:
            continue
        for k in range(K):
            scratch[k] = scores[i, k]
        for k in range(ONE if joint else K):
            if wrong_pair(np.uint64(codes[i]), k, scratch, ZERO, K, joint, tie, PERCEPTRON, 0.0)[0]:
                total += 1
                break
    return total
