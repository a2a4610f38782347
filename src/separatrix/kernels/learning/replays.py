"""What recorded mistakes give without training again: weights, an audit, votes (L4 8).

weights   w after k mistakes is the sum of the first k corrections, in their order: the same bits as in training
audit     the same sum, checking of each mistake that it was one when it was made
votes     each weight vector between two mistakes votes on every example: s_m(x) = s_{m−1}(x) ± c_m⟨x̃, x̃_m⟩
"""

import numpy as np

from separatrix.kernels.arrays import Array, RowParts, Settings, SpreadParts, WeightParts
from separatrix.kernels.codes import NOBODY, TIE_IS_MISTAKE, TIE_IS_PLUS
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.learning.confidence import direction
from separatrix.kernels.learning.passes import (
    PERCEPTRON,
    apply,
    apply_sharpened,
    enough_lead,
    follows_loss,
    highest_wrong,
    keeps_matrix,
    spread_along,
    step_size,
)
from separatrix.kernels.learning.rows import ONE, ZERO, norm2, score


@kernel
def replay(
    rows: RowParts,
    d: int,
    example: Array,
    up: Array,
    down: Array,
    correction: Array,
    shrink: Array,
    scale: Array,
    flat: WeightParts,
    spread: SpreadParts | None,
    K: int,
    bias: bool,
    full: bool,
) -> None:
    """Apply recorded corrections to flat = (W, b), unchecked. `scale`, where it has a size, multiplies them."""
    data, indices, indptr = rows
    W, b = flat
    d, K = np.uint64(d), np.uint64(K)
    for m in range(np.uint64(example.size)):
        i, c = np.uint64(example[m]), correction[m] if correction.size > 0 else 1.0
        if scale.size > 0:
            c *= max(0.0, scale[m])
        if spread is not None:
            apply_sharpened(
                *(data, indices, indptr, i, d, flat, flat, spread, K, ZERO, K, up[m], down[m], c, 0.0, shrink[m]),
                *(bias, full),
            )
        elif c != 0.0:
            apply(data, indices, indptr, i, d, W, b, K, ZERO, K, up[m], down[m], c, bias)


@kernel
def resume(
    rows: RowParts,
    d: int,
    example: Array,
    up: Array,
    down: Array,
    correction: Array,
    shrink: Array,
    averaged: Array,
    flat: WeightParts,
    late: WeightParts,
    spread: SpreadParts | None,
    K: int,
    bias: bool,
    full: bool,
) -> None:
    """Apply recorded corrections to flat = (W, b) and to late = (U, ub), as the pass that recorded them did.

    averaged[m] is how many steps had been averaged before mistake m. late of no size is left alone.
    """
    data, indices, indptr = rows
    W, b = flat
    U, ub = late
    d, K = np.uint64(d), np.uint64(K)
    for m in range(np.uint64(example.size)):
        i, c, before = np.uint64(example[m]), correction[m], averaged[m] if U.size > 0 else 0.0
        if spread is not None:
            apply_sharpened(
                *(data, indices, indptr, i, d, flat, late, spread, K, ZERO, K, up[m], down[m], c, before, shrink[m]),
                *(bias, full),
            )
        else:
            apply(data, indices, indptr, i, d, W, b, K, ZERO, K, up[m], down[m], c, bias)
            if before > 0.0:
                apply(data, indices, indptr, i, d, U, ub, K, ZERO, K, up[m], down[m], c * before, bias)


@part
def tie_wins(up, down, tie):
    """Tell whether an exact tie is right for the class raised."""
    if tie == TIE_IS_MISTAKE:
        return False
    if up == NOBODY or down == NOBODY:
        return (up != NOBODY) == (tie == TIE_IS_PLUS)
    return up > down if tie == TIE_IS_PLUS else up < down


@kernel
def audit(
    rows: RowParts,
    d: int,
    codes: Array,
    example: Array,
    up: Array,
    down: Array,
    correction: Array,
    shrink: Array,
    recorded: Array,
    flat: WeightParts,
    spread: SpreadParts | None,
    scores: Array,
    how: Settings,
    C: float,
    plain: bool,
    whole: bool,
    memo: Array,
) -> int:
    """Replay mistakes, checking each before it is corrected; return how many in a row really were mistakes.

    The class raised must be the label (one-vs-rest: or the class lowered must not be it), and its lead over the class
    lowered must be a mistake to the rule: exactly, while everything is an integer below 2⁵³; else up to the rounding of d
    products, 4ε·d·‖w‖·‖x‖ with ‖w‖ ≤ Σ c‖x‖. memo holds that ‖w‖, and whether all was whole so far. With `whole`, all
    classes were known throughout, and the class lowered must be the highest wrong one; with `plain` no example had a
    weight, and the correction must be the rule's.
    """
    data, indices, indptr = rows
    W, b = flat
    bias, joint, tie, rule, margin = how
    d, K = np.uint64(d), np.uint64(scores.size)
    length, exact = memo[ZERO], memo[ONE] == 1.0
    enough, full = enough_lead(rule, margin), keeps_matrix(rule)
    if not whole:
        enough *= 2.0  # the lead of w over −w, where there were two classes
    for m in range(np.uint64(example.size)):
        i = np.uint64(example[m])
        c = correction[m] if correction.size > 0 else 1.0
        if (up[m] != NOBODY and codes[i] != up[m]) or codes[i] == down[m]:
            return m
        first, last = i * d, (i + ONE) * d
        if indptr.size > 0:
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        for p in range(first, last):
            exact = exact and data[p] == np.floor(data[p])
        square = norm2(data, indices, indptr, i, d, bias)
        norm = np.sqrt(square)
        # All so far whole and below 2⁵³: the replayed score is the true one. Else it is off by the rounding of the products.
        exact = exact and c == np.floor(c) and not follows_loss(rule) and length * norm < 9e15
        slack = 0.0 if exact else 8.9e-16 * np.float64(last - first + ONE) * length * norm
        score(data, indices, indptr, i, d, W, b, K, scores)
        if K == ONE:
            s = scores[ZERO]
            lead = s if up[m] == 1 else -s
        else:
            s = (scores[np.uint64(up[m])] if up[m] != NOBODY else 0.0) - (
                scores[np.uint64(down[m])] if down[m] != NOBODY else 0.0
            )
            lead = s
            if up[m] == NOBODY:
                s = -s
        if not lead <= enough + slack:
            return m
        if rule == PERCEPTRON and exact and lead == 0.0 and tie_wins(up[m], down[m], tie):
            return m
        if whole and up[m] != NOBODY and down[m] != NOBODY and K > ONE:
            best = highest_wrong(np.uint64(up[m]), scores, ZERO, K)
            if (exact and best != np.uint64(down[m])) or scores[best] - scores[np.uint64(down[m])] > slack:
                return m
        if recorded.size > 0 and abs(s - recorded[m]) > slack:
            return m
        if follows_loss(rule) and plain and whole:
            if spread is not None:
                v = spread_along(data, indices, indptr, i, d, spread, K, ZERO, K, up[m], down[m], bias, full)
                rate = 1.0 / (v + 1.0 / C)
                wanted = (1.0 - lead) * rate
                if abs(shrink[m] - rate) > 8.9e-16 * np.float64(last - first + ONE) * rate * (v * rate + 2.0):
                    return m
            else:
                wanted = step_size(rule, 1.0 - lead, square * (2.0 if joint else 1.0), C)
                rate = 1.0 / square
            if abs(c - wanted) > slack * rate + 8.9e-16 * np.float64(last - first + ONE) * (abs(wanted) + rate):
                return m
        if spread is not None:
            apply_sharpened(
                *(data, indices, indptr, i, d, flat, flat, spread, K, ZERO, K, up[m], down[m], c, 0.0, shrink[m]),
                *(bias, full),
            )
        else:
            apply(data, indices, indptr, i, d, W, b, K, ZERO, K, up[m], down[m], c, bias)
        length += 2.0 * c * norm  # ‖w‖ grows by c‖x̃‖ at most, for each of two classes
    memo[ZERO], memo[ONE] = length, 1.0 if exact else 0.0
    return np.uint64(example.size)


@kernel
def directions(
    rows: RowParts,
    d: int,
    example: Array,
    up: Array,
    down: Array,
    shrink: Array,
    flat: WeightParts,
    spread: SpreadParts | None,
    K: int,
    bias: bool,
    full: bool,
    raised: Array,
    lowered: Array,
) -> None:
    """Write Σx̃ of each mistake under the Σ of the class raised and of the class lowered; Σ shrinks on the way."""
    data, indices, indptr = rows
    d, K = np.uint64(d), np.uint64(K)
    for m in range(np.uint64(example.size)):
        i = np.uint64(example[m])
        if K == ONE or up[m] != NOBODY:
            k = ZERO if K == ONE else np.uint64(up[m])
            direction(data, indices, indptr, i, d, spread, K, k, bias, full, raised[m])
        if K > ONE and down[m] != NOBODY:
            direction(data, indices, indptr, i, d, spread, K, np.uint64(down[m]), bias, full, lowered[m])
        apply_sharpened(
            *(data, indices, indptr, i, d, flat, flat, spread, K, ZERO, K, up[m], down[m], 0.0, 0.0, shrink[m], bias, full)
        )


@kernel
def vote(
    products: Array,
    lowered: Array,
    row: Array,
    up: Array,
    down: Array,
    correction: Array,
    survived: Array,
    scores: Array,
    votes: Array,
    joint: bool,
) -> None:
    """Let the weights between the mistakes vote on each of the examples, without building any of them (L4 8).

    products[e, r] = ⟨x̃_e, z_r⟩, z_r being what mistake r raised its class by (for most rules the row x̃_r), lowered[e, r] the
    same for the class lowered. The weights before mistake m cast survived[m] votes, those after the last one survived[-1].
    scores[e, k], the running scores, and votes[e, k] are updated in place. Two classes or one-vs-rest: votes[e, k] +=
    c·sign(s_k), a score of 0 abstains. Jointly: the winner gets c votes, a tie abstains.
    """
    # Invariant: before turn m of the inner loop, scores[e] are those of the weights before mistake m. Turn m casts their
    # survived[m] votes, then adds mistake m to the scores; turn `last` only casts the votes of the final weights.
    K, last = np.uint64(scores.shape[1]), np.uint64(row.size)
    for e in range(np.uint64(products.shape[0])):
        for m in range(last + ONE):
            c = survived[m]
            if c != 0.0:
                if joint:
                    best, tied = ZERO, False
                    for k in range(ONE, K):
                        if scores[e, k] > scores[e, best]:
                            best, tied = k, False
                        elif scores[e, k] == scores[e, best]:
                            tied = True
                    if not tied:
                        votes[e, best] += c
                else:
                    for k in range(K):
                        votes[e, k] += c * np.sign(scores[e, k])
            if m == last:
                break
            c, r = correction[m] if correction.size > 0 else 1.0, np.uint64(row[m])
            if K == ONE:
                scores[e, ZERO] += c * products[e, r] if up[m] == 1 else -c * products[e, r]
            else:
                if up[m] != NOBODY:
                    scores[e, np.uint64(up[m])] += c * products[e, r]
                if down[m] != NOBODY:
                    scores[e, np.uint64(down[m])] -= c * lowered[e, r]
