"""One pass: present, score, mistake?, correct, record (L1 5, L2 4–5, L3 5, L4 2 and 8).

    two classes     y = ±1, s = ⟨w,x⟩ + b, the lead is y·s                     w ← w + c·y·x
    one-vs-rest     the same for each of K outputs
    K jointly       r = the highest wrong class, the lead is s_y − s_r        w_y += c·x, w_r −= c·x

`rules.py` says when a lead is a mistake, what c is, and what an example's weight does to it. The average is kept the lazy
way: u gathers (steps averaged before the mistake) × correction, and the sum of w over T steps is T·w − u, so a step without
a mistake costs nothing.

Several machines can learn side by side from one read of the data, each with its own C: machine g has the K outputs from
g·K on.
"""

import numpy as np

from separatrix.kernels.arrays import Array, RowParts, Settings, SpreadParts, WeightParts
from separatrix.kernels.bits import prefetch
from separatrix.kernels.codes import NOBODY, TIE_IS_FIRST, TIE_IS_MISTAKE, TIE_IS_PLUS, rule_code
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.learning.confidence import sharpen, variance
from separatrix.kernels.learning.rows import ONE, ZERO, correct, dot, fetch, norm2, score, score_sparse, score_together

PERCEPTRON, MARGIN, PA, PA1, PA2 = (rule_code(name) for name in ("perceptron", "margin", "pa", "pa1", "pa2"))
AROW_FULL = rule_code("arow-full")
LATER = np.uint64(32)
"""So many visits before a row is prefetched, so are its label and the place where a sparse row begins."""
TOGETHER = np.uint64(4)
"""So many dense rows are scored together for several outputs, as long as no mistake corrects the weights meanwhile."""


# What a rule is: a new one adds its branch to the functions from here to `step_size`.


@part
def follows_loss(rule):
    """Tell whether the correction follows the hinge loss 1 − lead, and is none for an example of zero length."""
    return rule != PERCEPTRON and rule != MARGIN


@part
def keeps_matrix(rule):
    """Tell whether the rule keeps the whole matrix Σ; of Σ the others keep the diagonal, or nothing."""
    return rule == AROW_FULL


@part
def enough_lead(rule, margin):
    """Return the lead above which nothing is a mistake to the rule."""
    if rule == PERCEPTRON:
        return 0.0
    if rule == MARGIN:
        return margin
    return 1.0


@part
def falls_short(misjudged, lead, rule, margin):
    """Tell whether a lead is a mistake to the rule; `misjudged` is the decision by the sign, or by argmax."""
    if rule == PERCEPTRON:
        return misjudged
    if rule == MARGIN:
        return lead <= margin
    return lead < 1.0


@part
def step_size(rule, loss, square, C):
    """Return the correction of the rules that follow the loss; `square` is the squared length of what is added, per unit."""
    if rule == PA:
        return loss / square
    if rule == PA1:
        return min(C, loss / square)
    if rule == PA2:
        return loss / (square + 0.5 / C)
    return np.nan


# Right and wrong.


@part
def is_right(positive, s, tie):
    """Tell whether score s is right for a positive (or negative) label."""
    if s == 0.0:
        if tie == TIE_IS_MISTAKE:
            return False
        return positive == (tie == TIE_IS_PLUS)
    return positive == (s > 0.0)


@part
def highest_wrong(label, scores, base, K):
    """Return the wrong class with the highest score, the first of several."""
    best = ZERO if label != ZERO else ONE
    for k in range(K):
        if k != label and scores[base + k] > scores[base + best]:
            best = k
    return best


@part
def beats(best, label, scores, base, tie):
    """Tell whether class `best` beats `label`."""
    if scores[base + best] == scores[base + label]:
        return tie == TIE_IS_MISTAKE or (tie == TIE_IS_FIRST and best < label)
    return scores[base + best] > scores[base + label]


@part
def misjudged(label, scores, base, K, joint, tie):
    """Tell whether the example would be given another class than its own: by the sign for two classes, else by argmax."""
    if K == ONE:
        return not is_right(label == ONE, scores[base], tie)
    decided_tie = TIE_IS_FIRST if tie == TIE_IS_PLUS and not joint else tie
    return beats(highest_wrong(label, scores, base, K), label, scores, base, decided_tie)


@part
def wrong_sign(positive, s, tie, rule, margin):
    """Return (is it a mistake, lead) for the score of one output."""
    lead = s if positive else -s
    return falls_short(not is_right(positive, s, tie), lead, rule, margin), lead


@part
def wrong_pair(label, k, scores, base, K, joint, tie, rule, margin):
    """Return (is it a mistake, class to raise, class to lower, score, lead) for output k, or for all K jointly."""
    if joint:
        rival = highest_wrong(label, scores, base, K)
        up, down = np.int64(label), np.int64(rival)
        s = lead = scores[base + label] - scores[base + rival]
        wrong = falls_short(beats(rival, label, scores, base, tie), lead, rule, margin)
    else:
        positive = label == (ONE if K == ONE else k)
        s = scores[base + k]
        wrong, lead = wrong_sign(positive, s, tie, rule, margin)
        up, down = np.int64(k), np.int64(NOBODY)
        if K == ONE:
            up, down = np.int64(label), np.int64(ONE - label)
        elif not positive:
            up, down = down, up
    return wrong, up, down, s, lead


@part
def apply(data, indices, indptr, i, d, W, b, outputs, base, K, up, down, c, bias):
    """Raise class `up` and lower class `down` by c·x_i; one weight vector for two classes, either may be NOBODY for K."""
    if K == ONE:
        correct(data, indices, indptr, i, d, W, b, outputs, base, c if up == 1 else -c, bias)
    else:
        if up != NOBODY:
            correct(data, indices, indptr, i, d, W, b, outputs, base + np.uint64(up), c, bias)
        if down != NOBODY:
            correct(data, indices, indptr, i, d, W, b, outputs, base + np.uint64(down), -c, bias)


@part
def apply_sharpened(
    data, indices, indptr, i, d, flat, late, spread, outputs, base, K, up, down, c, averaged, shrink, bias, full
):
    """The same along Σx_i, for the average too; then Σ of each class shrinks."""
    if K == ONE:
        signed = c if up == 1 else -c
        sharpen(data, indices, indptr, i, d, flat, late, spread, outputs, base, signed, averaged, shrink, bias, full)
    else:
        if up != NOBODY:
            k = base + np.uint64(up)
            sharpen(data, indices, indptr, i, d, flat, late, spread, outputs, k, c, averaged, shrink, bias, full)
        if down != NOBODY:
            k = base + np.uint64(down)
            sharpen(data, indices, indptr, i, d, flat, late, spread, outputs, k, -c, averaged, shrink, bias, full)


@part
def spread_along(data, indices, indptr, i, d, spread, outputs, base, K, up, down, bias, full):
    """Return x̃ᵀΣx̃ of the score that is too low: of both classes together where there are two."""
    if K == ONE:
        return variance(data, indices, indptr, i, d, spread, outputs, base, bias, full)
    v = 0.0
    if up != NOBODY:
        v += variance(data, indices, indptr, i, d, spread, outputs, base + np.uint64(up), bias, full)
    if down != NOBODY:
        v += variance(data, indices, indptr, i, d, spread, outputs, base + np.uint64(down), bias, full)
    return v


@kernel
def present(
    rows: RowParts,
    d: int,
    codes: Array,
    weight: Array,
    order: Array,
    soon: Array,
    begin: int,
    end: int,
    flat: WeightParts,
    late: WeightParts,
    spread: SpreadParts | None,
    scores: Array | None,
    slots: Array,
    how: Settings,
    Cs: Array,
    steps: int,
    average_after: int,
    heaviest: Array,
    out: tuple[Array, ...],
    tally: Array,
    erred: Array,
) -> tuple[int, int]:
    """Present examples order[begin…end] (or begin…end themselves); return how many mistakes and how many steps.

    the data     rows of d features, the class code of each, and its weight where examples have weights
    the visits   order, or none for the rows as they lie; soon[t], where there is one, is a row to prefetch at visit t
    the state    flat = (W, b) is corrected in place, late = (U, ub) too where U has a size; spread = (V, vb, g) is Σ of the
                 rules that keep one, else None; scores is room for those of several outputs and of TOGETHER rows, None
                 where there is one output. The code for what is None is not even compiled. Where slots has a size, class k
                 of its many classes has the weights of output slots[k], other outputs belong to no class, scores has room
                 for the classes of one row too, and there is one machine
    settings     how, and the C of each machine in Cs
    the clock    steps so far, and after how many of them the average begins
    heaviest     where it has a size, the largest weight so far: weights are divided by it
    the record   mistake m is written to the columns of out: step, example, machine, the class raised, the class lowered
                 (NOBODY where there is none), correction, score, shrink. tally[2g] counts the examples that machine g would
                 have given another class, tally[2g+1] sums its losses; where erred has a size, erred[t − begin] is set for
                 the visits that were counted so
    """
    data, indices, indptr = rows
    W, b = flat
    U, ub = late
    bias, joint, tie, rule, margin = how
    out_step, out_example, out_machine, out_up, out_down, out_correction, out_score, out_shrink = out
    d, outputs, machines = np.uint64(d), ONE, np.uint64(Cs.size)
    if scores is not None:
        outputs = np.uint64(b.size)
    K = np.uint64(slots.size) if slots.size > 0 else outputs // machines
    first = ZERO  # where the scores of the classes begin
    scored_from, scored_to, before = ZERO, ZERO, ONE  # the visits that are scored, and the mistakes up to the last one
    problems = ONE if joint else K
    enough, full = enough_lead(rule, margin), keeps_matrix(rule)
    m = ZERO
    for t in range(np.uint64(begin), np.uint64(end)):
        i = np.uint64(order[t]) if order.size > 0 else t
        if t < np.uint64(soon.size):
            fetch(data, indices, indptr, np.uint64(soon[t]), d)
            if t + LATER < np.uint64(soon.size):
                later = np.uint64(soon[t + LATER])
                prefetch(codes, later)
                if indptr.size > 0:
                    prefetch(indptr, later)
        worth = 1.0
        if weight.size > 0:
            worth = weight[i]
            if worth == 0.0:
                continue
            if heaviest.size > 0:
                heaviest[ZERO] = max(heaviest[ZERO], worth)
        steps += 1
        label = np.uint64(codes[i])
        if scores is None:
            s = dot(data, indices, indptr, i, d, W, ZERO) + b[ZERO]
            if s * np.float64(2 * codes[i] - 1) > enough:  # no branch on the label, which nobody could predict
                continue
        else:
            if indptr.size > 0:
                score_sparse(data, indices, indptr, i, W, b, outputs, scores)
            elif t >= scored_to or m > before:
                count = min(TOGETHER, np.uint64(end) - t) if m == before else ONE
                score_together(data, order, t, count, d, W, b, outputs, scores)
                scored_from, scored_to = t, t + count
            first = (t - scored_from) * outputs if indptr.size == 0 else ZERO
            before = m
            if slots.size > 0:
                for k in range(K):
                    scores[TOGETHER * outputs + k] = scores[first + np.uint64(slots[k])]
                first = TOGETHER * outputs
        averaged = np.float64(steps - 1 - average_after) if U.size > 0 else 0.0  # steps averaged before this one
        square = -1.0  # ‖x̃‖² of what is added, computed at the first machine that needs it
        for g in range(machines):
            base, C = g * K, Cs[g]
            noted = False
            for k in range(problems):
                if scores is None:
                    wrong, lead = wrong_sign(label == ONE, s, tie, rule, margin)
                    up, down = np.int64(label), np.int64(ONE - label)
                else:
                    wrong, up, down, s, lead = wrong_pair(label, k, scores, first + base, K, joint, tie, rule, margin)
                if not wrong:
                    continue
                if not noted:
                    noted = True
                    missed = True
                    if rule != PERCEPTRON or problems != ONE:
                        if scores is None:
                            missed = not is_right(label == ONE, s, tie)
                        else:
                            missed = misjudged(label, scores, first + base, K, joint, tie)
                    if missed:
                        tally[g + g] += 1.0
                        if erred.size > 0:
                            erred[t - np.uint64(begin)] = 1
                tally[g + g + ONE] += enough - lead
                c, shrink = worth / heaviest[ZERO] if heaviest.size > 0 else worth, 0.0
                raised, lowered = up, down
                if slots.size > 0:
                    raised = np.int64(slots[np.uint64(up)]) if up != NOBODY else up
                    lowered = np.int64(slots[np.uint64(down)]) if down != NOBODY else down
                if spread is not None:
                    v = spread_along(data, indices, indptr, i, d, spread, outputs, base, K, raised, lowered, bias, full)
                    if v <= 0.0:
                        continue
                    shrink = c / (v + 1.0 / C)
                    c = (1.0 - lead) * shrink
                    apply_sharpened(
                        *(
                            data,
                            indices,
                            indptr,
                            i,
                            d,
                            flat,
                            late,
                            spread,
                            outputs,
                            base,
                            K,
                            raised,
                            lowered,
                            c,
                            averaged,
                            shrink,
                        ),
                        *(bias, full),
                    )
                else:
                    if follows_loss(rule):
                        if square < 0.0:
                            square = norm2(data, indices, indptr, i, d, bias) * (2.0 if joint else 1.0)
                        if square == 0.0:
                            continue
                        c *= step_size(rule, 1.0 - lead, square, C)
                    if scores is None:
                        signed = c if up == 1 else -c
                        correct(data, indices, indptr, i, d, W, b, ONE, ZERO, signed, bias)
                        if averaged > 0.0:
                            correct(data, indices, indptr, i, d, U, ub, ONE, ZERO, signed * averaged, bias)
                    else:
                        apply(data, indices, indptr, i, d, W, b, outputs, base, K, raised, lowered, c, bias)
                        if averaged > 0.0:
                            apply(data, indices, indptr, i, d, U, ub, outputs, base, K, raised, lowered, c * averaged, bias)
                out_step[m], out_example[m], out_machine[m], out_up[m], out_down[m] = steps, i, g, up, down
                out_correction[m], out_shrink[m], out_score[m] = c, shrink, s
                m += ONE
    return m, steps


@kernel
def count_mistakes(
    rows: RowParts,
    d: int,
    codes: Array,
    weight: Array,
    begin: int,
    end: int,
    W: Array,
    b: Array,
    scores: Array,
    bias: bool,
    joint: bool,
    tie: int,
    rule: int,
    margin: float,
) -> float:
    """Return the weight of the examples begin…end that are mistakes to the rule under W, b, correcting nothing.

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
            if wrong_pair(np.uint64(codes[i]), k, scores, ZERO, K, joint, tie, rule, margin)[0]:
                if not follows_loss(rule) or norm2(data, indices, indptr, i, d, bias) > 0.0:
                    total += c
                break
    return total
