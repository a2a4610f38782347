"""Dual coordinate descent for the separator of largest margin (L2 10, L4 9).

    two classes   max Σα_i − ½‖w‖² − (ρ/2)t² − c·t      w = Σ α_i y_i x_i,  t = Σ α_i y_i,  0 ≤ α_i ≤ C_i
                  one step: α_i ← clip(α_i − (y_i(⟨w,x_i⟩ + b) − 1) / (‖x_i‖² + ρ)),  w += Δ·y_i·x_i,  b += ρ·Δ·y_i
    K jointly     max −½‖W‖² − Σ α_ik [k ≠ y_i] − …     w_k = Σ α_ik x_i,  α_ik ≤ C_i [k = y_i],  Σ_k α_ik = 0
                  one step solves for all α_ik of an example: α_k = min(C_k, (β − B_k)/A) with β such that they sum to 0

Hsieh and others (2008), Keerthi and others (2008). ρ = 0 is a separator through the origin, ρ = 1 with c = 0 the bias as one
more feature. A bias that costs nothing is the proximal point method on it: b = c + ρt, and c moves to b now and then, until
t = 0. There the rows are centred, x_i − μ, without being touched: with v = Σ α_i y_i x_i the score is
⟨v,x_i⟩ − t(⟨μ,x_i⟩ − ‖μ‖²) + b − ⟨v,μ⟩, of which the kernels hold v, t and b − ⟨v,μ⟩. Examples that stay at a bound by more
than the worst violation of the pass before are left out for a while.
"""

import numpy as np

from separatrix.kernels.arrays import Array, RowParts
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.learning.rows import ONE, ZERO, correct, dot, fetch, score

AHEAD = np.uint64(8)
STILL = 1e-12


@part
def drawn(state, below):
    """Return a number below `below` (itself below 2³²) from the xorshift generator in state[0], advancing it."""
    x = state[ZERO]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[ZERO] = x
    return ((x >> np.uint64(32)) * below) >> np.uint64(32)


@part
def shuffled(order, active, state):
    """Put the first `active` entries of order into a random order."""
    for s in range(active):
        other = s + drawn(state, active - s)
        order[s], order[other] = order[other], order[s]


@kernel
def squared_norms(rows: RowParts, d: int, out: Array) -> None:
    """Write ‖x_i‖² into out."""
    data, _, indptr = rows
    d = np.uint64(d)
    for i in range(np.uint64(out.size)):
        first, last = i * d, (i + ONE) * d
        if indptr.size > 0:
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + ONE])
        norm = 0.0
        for p in range(first, last):
            norm += np.float64(data[p]) * np.float64(data[p])
        out[i] = norm


@kernel
def combine(rows: RowParts, d: int, coefficients: Array, W: Array, b: Array, K: int) -> None:
    """Add Σ_i c_ik x_i to the weights of each output k, and Σ_i c_ik to its bias."""
    data, indices, indptr = rows
    d, K = np.uint64(d), np.uint64(K)
    for i in range(np.uint64(coefficients.size) // K):
        for k in range(K):
            c = coefficients[i * K + k]
            if c != 0.0:
                correct(data, indices, indptr, i, d, W, b, K, k, c, True)


@kernel
def descend(
    rows: RowParts,
    d: int,
    sign: Array,
    upper: Array,
    norms: Array,
    pull: Array,
    middle: float,
    alpha: Array,
    W: Array,
    b: Array,
    t: Array,
    rho: float,
    order: Array,
    active: int,
    bounds: Array,
    state: Array,
) -> tuple[int, float, float]:
    """Make one pass of steps over the examples order[0…active], two classes; return (how many stay active, gap, gain).

    Invariant: W = Σ α_i y_i x_i, t = Σ α_i y_i, and order[active…] are the examples left out: each was at a bound, with a
    gradient that pushed it beyond the bound by more than the worst violation of the pass before.

    bounds holds the largest and the smallest projected gradient: those of the pass before, then those of this one. The gap
    P − D is the sum of α_i·G_i + C_i·max(0, −G_i), each of them as it was when its example was visited; the gain is how much
    the dual objective has grown. norms are ‖x_i − μ‖², pull is ⟨μ,x_i⟩ − ‖μ‖², with no entries where μ = 0,
    middle ‖μ‖².
    """
    data, indices, indptr = rows
    d, active = np.uint64(d), np.uint64(active)
    highest, lowest = bounds[ZERO], bounds[ONE]
    most, least, gap, gain = -np.inf, np.inf, 0.0, 0.0
    shuffled(order, active, state)
    s = ZERO
    while s < active:
        i = np.uint64(order[s])
        if s + AHEAD < active:
            fetch(data, indices, indptr, np.uint64(order[s + AHEAD]), d)
        y, a, C = sign[i], alpha[i], upper[i]
        s_i = dot(data, indices, indptr, i, d, W, ZERO) + b[ZERO]
        step = rho
        if pull.size > 0:
            s_i -= t[ZERO] * pull[i]
            step -= pull[i] + middle
        G = y * s_i - 1.0  # ∂/∂α_i of the objective to minimise, ½‖w‖² + … − Σα_i
        violation = G  # the projected gradient: 0 where a step would leave the box 0 ≤ α_i ≤ C_i
        if a <= 0.0:
            if G > highest:
                active -= ONE
                order[s], order[active] = order[active], order[s]
                continue
            violation = min(G, 0.0)
        elif a >= C:
            if G < lowest:
                active -= ONE
                order[s], order[active] = order[active], order[s]
                continue
            violation = max(G, 0.0)
        most, least = max(most, violation), min(least, violation)
        gap += a * G
        if G < 0.0:
            gap -= C * G
        if abs(violation) > STILL:
            Q = norms[i] + rho
            moved = min(max(a - G / Q, 0.0), C) if Q > 0.0 else C
            alpha[i] = moved
            gain -= (G + 0.5 * Q * (moved - a)) * (moved - a)
            change = (moved - a) * y
            correct(data, indices, indptr, i, d, W, b, ONE, ZERO, change, False)
            b[ZERO] += step * change
            t[ZERO] += change
        s += ONE
    bounds[ZERO], bounds[ONE] = most, least
    return active, gap, gain


@part
def level(label, A, C, gradients, alpha, base, K):
    """Return β with Σ_k min(C_k, (β − B_k)/A) = 0, where B_k = g_k − A·α_k, dropping classes above their bound.

    The sum rises with β. A wrong class has C_k = 0, so it counts only while B_k > β: start from all of them, and drop those
    below β until none is dropped; β only rises on the way. The label counts as free first, and as held at C if that fails.
    """
    free = True
    while True:
        total, count = 0.0, 0.0
        if free:
            total, count = gradients[label] - A * alpha[base + label], 1.0
        else:
            total = -A * C
        for k in range(K):
            if k != label:
                total += gradients[k] - A * alpha[base + k]
                count += 1.0
        beta = total / count
        while True:
            total, remaining = 0.0, 0.0
            if free:
                total, remaining = gradients[label] - A * alpha[base + label], 1.0
            else:
                total = -A * C
            for k in range(K):
                B = gradients[k] - A * alpha[base + k]
                if k != label and B > beta:
                    total += B
                    remaining += 1.0
            if remaining >= count or remaining == 0.0:  # rounding may bring one back
                break
            count = remaining
            beta = total / count
        if not free or beta - gradients[label] + A * alpha[base + label] <= A * C:
            return beta
        free = False


@kernel
def descend_jointly(
    rows: RowParts,
    d: int,
    codes: Array,
    upper: Array,
    norms: Array,
    pull: Array,
    middle: float,
    alpha: Array,
    W: Array,
    b: Array,
    t: Array,
    rho: float,
    order: Array,
    active: int,
    bounds: Array,
    state: Array,
    gradients: Array,
) -> tuple[int, float, float]:
    """Make one pass over the examples order[0…active], K classes jointly; return (how many stay active, gap, gain).

    The invariant is that of `descend`, for each class: w_k = Σ α_ik x_i and t_k = Σ α_ik, with Σ_k α_ik = 0.

    bounds[0] is the largest violation: that of the pass before, then that of this one. α_ik is alpha[i·K + k]. With
    g_k = s_k + [k ≠ y], the gap is the sum of C_i·(max g − g_y) + Σ_k α_ik g_k.
    """
    data, indices, indptr = rows
    d, active, K = np.uint64(d), np.uint64(active), np.uint64(gradients.size)
    threshold, worst, gap, gain = bounds[ZERO], 0.0, 0.0, 0.0
    shuffled(order, active, state)
    s = ZERO
    while s < active:
        i = np.uint64(order[s])
        if s + AHEAD < active:
            fetch(data, indices, indptr, np.uint64(order[s + AHEAD]), d)
        label, C, base = np.uint64(codes[i]), upper[i], i * K
        score(data, indices, indptr, i, d, W, b, K, gradients)
        step = rho
        if pull.size > 0:
            step -= pull[i] + middle
            for k in range(K):
                gradients[k] -= t[k] * pull[i]
        for k in range(K):
            if k != label:
                gradients[k] += 1.0
        highest, lowest = gradients[label], np.inf
        untouched = alpha[base + label] <= 0.0
        for k in range(K):
            highest = max(highest, gradients[k])
            if alpha[base + k] < (C if k == label else 0.0):
                lowest = min(lowest, gradients[k])
        if untouched and C > 0.0:
            rival = -np.inf
            for k in range(K):
                if k != label:
                    rival = max(rival, gradients[k])
            if gradients[label] - rival > threshold:
                active -= ONE
                order[s], order[active] = order[active], order[s]
                continue
        violation = highest - lowest if lowest < np.inf else 0.0
        worst = max(worst, violation)
        if C < np.inf:
            gap += C * (highest - gradients[label])
        for k in range(K):
            gap += alpha[base + k] * gradients[k]
        if violation > STILL:
            A = norms[i] + rho
            if A > 0.0:
                beta = level(label, A, C, gradients, alpha, base, K)
                for k in range(K):
                    ceiling = C if k == label else 0.0
                    B = gradients[k] - A * alpha[base + k]
                    moved = min(ceiling, (beta - B) / A)
                    change = moved - alpha[base + k]
                    gain -= (gradients[k] + 0.5 * A * change) * change
                    gradients[k] = change
                    alpha[base + k] = moved
                shift(data, indices, indptr, i, d, W, b, t, K, gradients, step)
            else:
                alpha[base + label], alpha[base + (ZERO if label != ZERO else ONE)] = C, -C
        s += ONE
    bounds[ZERO] = worst
    return active, gap, gain


@part
def shift(data, indices, indptr, i, d, W, b, t, K, change, step):
    """Add change_k·x_i to the weights of each output k, and step·change_k to its bias."""
    if indptr.size == 0:
        for k in range(K):
            if change[k] != 0.0:
                correct(data, indices, indptr, i, d, W, b, K, k, change[k], False)
    else:
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + ONE])):
            x = np.float64(data[p])
            w = np.uint64(indices[p]) * K
            for k in range(K):
                W[w + k] += change[k] * x
    for k in range(K):
        b[k] += step * change[k]
        t[k] += change[k]
