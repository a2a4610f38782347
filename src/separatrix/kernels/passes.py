"""One pass: present, score, mistake?, correct, record (L1 5, L2 4–5, L3 5, L4 2 and 8).

    two classes     y = ±1, s = ⟨w,x⟩ + b          a mistake when y·s ≤ 0 (or as the tie says)     w ← w + c·y·x
    one-vs-rest     the same for each of K outputs
    K jointly       r = the highest wrong class     a mistake when s_y ≤ s_r (or as the tie says)    w_y += c·x, w_r −= c·x

c is the example's weight. The average is kept the lazy way: u gathers (steps averaged before the mistake) × correction, and
the sum of w over T steps is T·w − u, so a step without a mistake costs nothing.
"""

import numpy as np

from separatrix.kernels import kernel, part
from separatrix.kernels.rows import ONE, ZERO, correct, dot, fetch, score
from separatrix.rules import TIE_IS_FIRST, TIE_IS_MISTAKE, TIE_IS_PLUS

NOBODY = -1


@part
def is_right(positive, s, tie):
    """Tell whether score s is right for a positive (or negative) label."""
    if s == 0.0:
        if tie == TIE_IS_MISTAKE:
            return False
        return positive == (tie == TIE_IS_PLUS)
    return positive == (s > 0.0)


@part
def rival_of(label, scores, K, tie):
    """Return the class that beats `label`, or `label` itself when it wins."""
    best = ZERO if label != ZERO else ONE
    for k in range(K):
        if k != label and scores[k] > scores[best]:
            best = k
    if scores[best] > scores[label]:
        return best
    if scores[best] == scores[label] and (tie == TIE_IS_MISTAKE or (tie == TIE_IS_FIRST and best < label)):
        return best
    return label


@part
def apply(data, indices, indptr, i, d, W, b, K, up, down, c, bias):
    """Raise class `up` and lower class `down` by c·x_i; one weight vector for two classes, either may be NOBODY for K."""
    if K == ONE:
        correct(data, indices, indptr, i, d, W, b, K, ZERO, c if up == 1 else -c, bias)
    else:
        if up != NOBODY:
            correct(data, indices, indptr, i, d, W, b, K, np.uint64(up), c, bias)
        if down != NOBODY:
            correct(data, indices, indptr, i, d, W, b, K, np.uint64(down), -c, bias)


@part
def wrong_pair(label, k, scores, K, joint, tie):
    """Return (is it a mistake, class to raise, class to lower, wrong score) for output k, or for all K jointly."""
    if joint:
        rival = rival_of(label, scores, K, tie)
        return rival != label, np.int64(label), np.int64(rival), scores[label] - scores[rival]
    positive = label == (ONE if K == ONE else k)
    wrong = not is_right(positive, scores[k], tie)
    if K == ONE:
        return wrong, np.int64(label), np.int64(ONE - label), scores[k]
    if positive:
        return wrong, np.int64(k), NOBODY, scores[k]
    return wrong, NOBODY, np.int64(k), scores[k]


@kernel
def present(
    rows, d, codes, weight, order, soon, begin, end, W, b, U, ub, scores, bias, joint, tie, steps, average_after, out
):
    """Present examples order[begin…end] (or begin…end themselves); return how many mistakes and how many steps.

    soon[t], where there is one, is a row to prefetch at visit t: one that comes soon, far away in memory.
    W, b are corrected in place, U, ub too where U has a size. Mistake m is written to the columns of out: step, example,
    the class raised, the class lowered (NOBODY where there is none), correction, score.
    """
    data, indices, indptr = rows
    out_step, out_example, out_up, out_down, out_correction, out_score = out
    d, K = np.uint64(d), np.uint64(scores.size)
    problems = ONE if joint else K
    m = ZERO
    for t in range(np.uint64(begin), np.uint64(end)):
        i = np.uint64(order[t]) if order.size > 0 else t
        if t < np.uint64(soon.size):
            fetch(data, indices, indptr, np.uint64(soon[t]), d)
        c = 1.0
        if weight.size > 0:
            c = weight[i]
            if c == 0.0:
                continue
        steps += 1
        label = np.uint64(codes[i])
        if K == ONE:
            s = dot(data, indices, indptr, i, d, W, ZERO) + b[ZERO]
            if s * np.float64(2 * codes[i] - 1) > 0.0:  # no branch on the label, which nobody could predict
                continue
            scores[ZERO] = s
        else:
            score(data, indices, indptr, i, d, W, b, K, scores)
        for k in range(problems):
            wrong, up, down, s = wrong_pair(label, k, scores, K, joint, tie)
            if wrong:
                apply(data, indices, indptr, i, d, W, b, K, up, down, c, bias)
                averaged = np.float64(steps - 1 - average_after)
                if U.size > 0 and averaged > 0.0:
                    apply(data, indices, indptr, i, d, U, ub, K, up, down, c * averaged, bias)
                out_step[m], out_example[m], out_up[m], out_down[m] = steps, i, up, down
                out_correction[m], out_score[m] = c, s
                m += ONE
    return m, steps


@kernel
def replay(rows, d, example, up, down, correction, scale, W, b, K, bias):
    """Apply recorded corrections to W, b: never decided again. `scale`, where it has a size, multiplies each one."""
    data, indices, indptr = rows
    d, K = np.uint64(d), np.uint64(K)
    for m in range(np.uint64(example.size)):
        c = correction[m] if correction.size > 0 else 1.0
        if scale.size > 0:
            if scale[m] <= 0.0:
                continue
            c *= scale[m]
        apply(data, indices, indptr, np.uint64(example[m]), d, W, b, K, up[m], down[m], c, bias)


@kernel
def count_mistakes(rows, d, codes, weight, begin, end, W, b, scores, joint, tie):
    """Return the weight of the examples begin…end that W, b gets wrong, correcting nothing.

    With `joint`, an example is wrong when another class beats its own; without, when any of the K outputs errs on it.
    """
    data, indices, indptr = rows
    d, K = np.uint64(d), np.uint64(scores.size)
    total = 0.0
    for i in range(np.uint64(begin), np.uint64(end)):
        c = weight[i] if weight.size > 0 else 1.0
        if c == 0.0:
            continue
        score(data, indices, indptr, i, d, W, b, K, scores)
        for k in range(ONE if joint else K):
            if wrong_pair(np.uint64(codes[i]), k, scores, K, joint, tie)[0]:
                total += c
                break
    return total


@part
def tie_wins(up, down, tie):
    """Tell whether an exact tie is right for the class raised."""
    if tie == TIE_IS_MISTAKE:
        return False
    if up == NOBODY or down == NOBODY:
        return (up != NOBODY) == (tie == TIE_IS_PLUS)
    return up > down if tie == TIE_IS_PLUS else up < down


@kernel
def audit(rows, d, codes, example, up, down, correction, recorded, W, b, scores, bias, tie, whole, memo):
    """Replay mistakes, checking each before it is corrected; return how many in a row really were mistakes.

    The class raised must be the label (one-vs-rest: or the class lowered must not be it), and its lead over the class
    lowered must not be a win: exactly, while everything is an integer below 2⁵³; else up to the rounding of d
    products, 4ε·d·‖w‖·‖x‖ with ‖w‖ ≤ Σ c‖x‖. memo holds that ‖w‖, and whether all was whole so far. With `whole`, all
    classes were known throughout, and the class lowered must be the one that the rule names.
    """
    data, indices, indptr = rows
    d, K = np.uint64(d), np.uint64(scores.size)
    length, exact = memo[ZERO], memo[ONE] == 1.0
    for m in range(np.uint64(example.size)):
        i = np.uint64(example[m])
        c = correction[m] if correction.size > 0 else 1.0
        if (up[m] != NOBODY and codes[i] != up[m]) or codes[i] == down[m]:
            return m
        first, last = i * d, (i + ONE) * d
        if indptr.size > 0:
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        norm = 1.0 if bias else 0.0
        for p in range(first, last):
            x = np.float64(data[p])
            norm += x * x
            exact = exact and x == np.floor(x)
        norm = np.sqrt(norm)
        exact = exact and c == np.floor(c) and length * norm < 9e15
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
        if not lead <= slack or (exact and lead == 0.0 and tie_wins(up[m], down[m], tie)):
            return m
        if exact and whole and up[m] != NOBODY and down[m] != NOBODY and K > ONE:
            if rival_of(np.uint64(up[m]), scores, K, tie) != np.uint64(down[m]):
                return m
        if recorded.size > 0 and abs(s - recorded[m]) > slack:
            return m
        apply(data, indices, indptr, i, d, W, b, K, up[m], down[m], c, bias)
        length += 2.0 * c * norm
    memo[ZERO], memo[ONE] = length, 1.0 if exact else 0.0
    return np.uint64(example.size)


@kernel
def scatter(starts, stream, place, run, streams, n, begin, end, order, soon):
    """Write the visits of windows begin…end into order, and into soon the rows of the next window; return how many.

    A window is `streams` runs of `run` rows each, which begin at the rows in starts. Visit p of it goes to row place[p] of
    its run stream[p]; meanwhile the next window is read from end to end. Rows outside 0…n are no rows.
    """
    m, p = ZERO, ZERO
    n, run = np.int64(n), np.int64(run)
    for window in range(np.int64(begin), np.int64(end)):
        first, p = window * np.int64(streams), ZERO
        following = first + np.int64(streams)
        for s in range(np.int64(streams)):
            coming = starts[np.uint64(following + s)] if following + s < starts.size else np.int64(0)
            for r in range(run):
                k = first + stream[p]
                if k < starts.size:
                    row = starts[np.uint64(k)] + place[p]
                    if 0 <= row < n:
                        order[m], soon[m] = row, min(max(coming + r, 0), n - 1)
                        m += ONE
                p += ONE
    return m


@kernel
def vote(products, row, up, down, correction, survived, scores, votes, joint):
    """Let the weights between the mistakes vote on each of the examples, without building any of them (L4 8).

    products[e, r] = ⟨x̃_e, x̃_r⟩ for the mistaken row r. The weights before mistake m cast survived[m] votes, those after the
    last one survived[-1]. scores[e, k], the running scores, and votes[e, k] go on from what they hold. Two classes or
    one-vs-rest: votes[e, k] += c·sign(s_k), a score of 0 abstains. Jointly: the winner gets c votes, a tie abstains.
    """
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
            change = products[e, np.uint64(row[m])]
            if correction.size > 0:
                change *= correction[m]
            if K == ONE:
                scores[e, ZERO] += change if up[m] == 1 else -change
            else:
                if up[m] != NOBODY:
                    scores[e, np.uint64(up[m])] += change
                if down[m] != NOBODY:
                    scores[e, np.uint64(down[m])] -= change
