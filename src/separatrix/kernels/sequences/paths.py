"""The structured perceptron (Collins 2002): the best path by Viterbi, and the correction where it is not the true one.

    score of a path    s(y) = Σ_t ⟨w_{y_t}, x_t⟩ + T[start, y_1] + Σ_t T[y_t, y_{t+1}] + T[y_n, end]
    a mistake          the best path ẑ is not y
    its correction     w ← w + c·(φ(y) − φ(ẑ)), where φ counts what the score of a path adds up
    pa1                ẑ maximizes s(z) + H(y, z), H the number of wrong tags; c = min(C, (s(ẑ) + H − s(y)) / ‖φ(y) − φ(ẑ)‖²)

Tokens are CSR rows `(data, indices, indptr)`; where data has no size, all values are 1. Sequence i has the tokens
starts[i]…starts[i+1]. Weights of a feature's K tags lie side by side, in the row that places[j] names (`lanes.py`);
transitions are a matrix of K+1 rows and columns, whose last row is the start and whose last column is the end. Of paths with
the same score the one whose last tag has the lowest number wins, then the one with the lowest tag before it, and so on. The
average is kept the lazy way of `learning/passes.py`.
"""

import numpy as np

from separatrix.kernels.arrays import Array, RowParts, WeightParts
from separatrix.kernels.codes import rule_code
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.sequences.lanes import ONE, ZERO, emit, lead

PA1 = rule_code("pa1")
NEVER = -np.inf


@part
def best_path(emissions, n, K, links, leads, path):
    """Write the best path of n > 0 tokens, and return its score; leads[t·K + k] is that of the best one to tag k of token t.

    The tag before is looked for again on the way back: n·K steps, while noting it on the way forth would cost n·K².
    """
    K1 = K + ONE
    lead(emissions, n, K, links, leads)
    t, to = n, K
    score = 0.0
    while t > ZERO:
        t -= ONE
        best, tag = leads[t * K] + links[to], ZERO
        for k in range(ONE, K):
            s = leads[t * K + k] + links[k * K1 + to]
            if s > best:
                best, tag = s, k
        if to == K:
            score = best
        path[t], to = np.int32(tag), tag
    return score


@part
def path_score(emissions, n, K, links, path, begin):
    """Return the score of the path path[begin : begin + n], its terms added in the order of `best_path`."""
    K1 = K + ONE
    tag = np.uint64(path[begin])
    s = links[K * K1 + tag] + emissions[tag]
    for t in range(ONE, n):
        after = np.uint64(path[begin + t])
        s = (s + links[tag * K1 + after]) + emissions[t * K + after]
        tag = after
    return s + links[tag * K1 + K]


@part
def allot(indices, indptr, first, last, gold, g, path, q, places, used):
    """Give each feature of a wrong token a row of weights, if it has none; return how many have one."""
    for t in range(first, last):
        if gold[g + t - first] != path[q + t - first]:
            for p in range(np.uint64(indptr[t]), np.uint64(indptr[t + ONE])):
                j = np.uint64(indices[p])
                if places[j] == 0:
                    used += 1
                    places[j] = used
    return used


@part
def shift(data, indices, indptr, first, last, gold, g, path, q, places, K, W, T, c):
    """Add c·(φ(y) − φ(ẑ)) to the weights; y is gold[g…] and ẑ is path[q…]. What both paths share is left alone."""
    K1 = K + ONE
    true_before, before = K, K
    for t in range(first, last):
        true, tag = np.uint64(gold[g + t - first]), np.uint64(path[q + t - first])
        if true != tag:
            for p in range(np.uint64(indptr[t]), np.uint64(indptr[t + ONE])):
                w = np.uint64(places[np.uint64(indices[p])]) * K
                x = c * data[p] if data.size > 0 else c
                W[w + true] += x
                W[w + tag] -= x
        if true != tag or true_before != before:
            T[true_before * K1 + true] += c
            T[before * K1 + tag] -= c
        true_before, before = true, tag
    if true_before != before:
        T[true_before * K1 + K] += c
        T[before * K1 + K] -= c


@part
def collect(D, e):
    """Return the square of an entry, and clear it."""
    square = D[e] * D[e]
    D[e] = 0.0
    return square


@part
def square_of(data, indices, indptr, first, last, gold, g, path, q, places, K, D, DT):
    """Return ‖φ(y) − φ(ẑ)‖²; D and DT are room of the size of the weights, all zero before and after."""
    shift(data, indices, indptr, first, last, gold, g, path, q, places, K, D, DT, 1.0)
    K1, total = K + ONE, 0.0
    for t in range(first, last):
        true, tag = np.uint64(gold[g + t - first]), np.uint64(path[q + t - first])
        if true != tag:
            for p in range(np.uint64(indptr[t]), np.uint64(indptr[t + ONE])):
                w = np.uint64(places[np.uint64(indices[p])]) * K
                total += collect(D, w + true)
                total += collect(D, w + tag)
    for e in range(K1 * K1):
        total += collect(DT, e)
    return total


@part
def allow(T, forbidden, links):
    """Make links: the transition weights, −∞ where a transition is forbidden."""
    for e in range(np.uint64(T.size)):
        links[e] = NEVER if forbidden.size > 0 and forbidden[e] else T[e]


@kernel
def present(
    rows: RowParts,
    starts: Array,
    gold: Array,
    weight: Array,
    order: Array,
    begin: int,
    end: int,
    places: Array,
    used: int,
    weights: WeightParts,
    late: WeightParts,
    difference: WeightParts,
    forbidden: Array,
    K: int,
    rule: int,
    C: float,
    steps: int,
    room: tuple[Array, ...],
    out: tuple[Array, ...],
) -> tuple[int, int, int]:
    """Present sequences order[begin…end]; return how many mistakes, how many steps so far, and how many features have a row.

    the data       CSR tokens, where each sequence starts, the tag of each token, the weight of each sequence (none: all 1)
    the state      weights = (W, T) are corrected in place, late = (U, UT) too where U has a size; places are the rows of the
                   features, `used` of which have one
    difference     where the rule needs ‖φ(y) − φ(ẑ)‖², room of the size of the weights, all zero
    room           emissions, leads, path and links, for the longest sequence
    the record     mistake m is written to the columns of out: step, sequence, correction, lead s(y) − s(ẑ), wrong tags,
                   where its path ends in the last column, and that column, the paths one after the other
    """
    data, indices, indptr = rows
    W, T = weights
    U, UT = late
    D, DT = difference
    emissions, leads, path, links, rows_of, values = room
    out_step, out_sequence, out_correction, out_lead, out_wrong, out_end, out_paths = out
    K, m, q = np.uint64(K), ZERO, ZERO
    allow(T, forbidden, links)
    for v in range(np.uint64(begin), np.uint64(end)):
        i = np.uint64(order[v])
        c = weight[i] if weight.size > 0 else 1.0
        if c == 0.0:
            continue
        steps += 1
        first, last = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        n = last - first
        if n == ZERO:
            continue
        emit(data, indices, indptr, first, last, places, W, K, emissions, rows_of, values)
        true_score = path_score(emissions, n, K, links, gold, first)
        if rule == PA1:
            for t in range(n):
                for k in range(K):
                    if k != np.uint64(gold[first + t]):
                        emissions[t * K + k] += 1.0
        score = best_path(emissions, n, K, links, leads, path)
        wrong = ZERO
        for t in range(n):
            if path[t] != gold[first + t]:
                wrong += ONE
        if wrong == ZERO:
            continue
        used = allot(indices, indptr, first, last, gold, first, path, ZERO, places, used)
        if rule == PA1:
            loss = score - true_score
            if not loss > 0.0:
                continue
            square = square_of(data, indices, indptr, first, last, gold, first, path, ZERO, places, K, D, DT)
            if square == 0.0:
                continue
            c *= min(C, loss / square)
            score -= np.float64(wrong)
        shift(data, indices, indptr, first, last, gold, first, path, ZERO, places, K, W, T, c)
        if U.size > 0 and steps > 1:
            shift(data, indices, indptr, first, last, gold, first, path, ZERO, places, K, U, UT, c * np.float64(steps - 1))
        allow(T, forbidden, links)
        for t in range(n):
            out_paths[q + t] = path[t]
        q += n
        out_step[m], out_sequence[m], out_correction[m] = steps, np.int64(i), c
        out_lead[m], out_wrong[m], out_end[m] = true_score - score, np.int64(wrong), np.int64(q)
        m += ONE
    return m, steps, used


@kernel
def tag(
    rows: RowParts,
    starts: Array,
    begin: int,
    end: int,
    places: Array,
    weights: WeightParts,
    forbidden: Array,
    K: int,
    room: tuple[Array, ...],
    out: Array,
) -> None:
    """Write the best path of sequences begin…end into out, one after the other; where none is allowed, the best of all."""
    data, indices, indptr = rows
    W, T = weights
    emissions, leads, path, links, rows_of, values = room
    K, q = np.uint64(K), ZERO
    allow(T, forbidden, links)
    for i in range(np.uint64(begin), np.uint64(end)):
        first, last = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        if first == last:
            continue
        emit(data, indices, indptr, first, last, places, W, K, emissions, rows_of, values)
        if best_path(emissions, last - first, K, links, leads, path) == NEVER:
            for e in range(np.uint64(T.size)):
                links[e] = T[e]
            best_path(emissions, last - first, K, links, leads, path)
            allow(T, forbidden, links)
        for t in range(last - first):
            out[q + t] = path[t]
        q += last - first


@kernel
def replay(
    rows: RowParts,
    starts: Array,
    sequence: Array,
    correction: Array,
    ends: Array,
    gold: Array,
    path: Array,
    begin: int,
    end: int,
    places: Array,
    K: int,
    weights: WeightParts,
) -> None:
    """Make the corrections begin…end again, none of them decided anew; correction[m] may be any multiple of its own."""
    data, indices, indptr = rows
    W, T = weights
    K, used = np.uint64(K), 0
    for m in range(np.uint64(begin), np.uint64(end)):
        i = np.uint64(sequence[m])
        q = np.uint64(ends[m - ONE]) if m > ZERO else ZERO
        first, last = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        used = allot(indices, indptr, first, last, gold, q, path, q, places, used)
        shift(data, indices, indptr, first, last, gold, q, path, q, places, K, W, T, correction[m])


@kernel
def squares(
    rows: RowParts,
    starts: Array,
    sequence: Array,
    ends: Array,
    gold: Array,
    path: Array,
    places: Array,
    K: int,
    difference: WeightParts,
    out: Array,
) -> None:
    """Write ‖φ(y) − φ(ẑ)‖² of each mistake."""
    data, indices, indptr = rows
    D, DT = difference
    K, used = np.uint64(K), 0
    for m in range(np.uint64(sequence.size)):
        i = np.uint64(sequence[m])
        q = np.uint64(ends[m - ONE]) if m > ZERO else ZERO
        first, last = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        used = allot(indices, indptr, first, last, gold, q, path, q, places, used)
        out[m] = square_of(data, indices, indptr, first, last, gold, q, path, q, places, K, D, DT)


@kernel
def margins(
    rows: RowParts,
    starts: Array,
    gold: Array,
    places: Array,
    weights: WeightParts,
    forbidden: Array,
    K: int,
    room: tuple[Array, ...],
    out: Array,
) -> None:
    """Write s(y) − max over z ≠ y of s(z) for each sequence; +∞ where no other path is allowed.

    leads[k] is the best score of a path to tag k that has left the true path; the true path itself is one number.
    """
    data, indices, indptr = rows
    W, T = weights
    emissions, leads, _, links, rows_of, values = room
    K = np.uint64(K)
    K1 = K + ONE
    allow(T, forbidden, links)
    for i in range(np.uint64(starts.size) - ONE):
        first, last = np.uint64(starts[i]), np.uint64(starts[i + ONE])
        if first == last:
            out[i] = np.inf
            continue
        emit(data, indices, indptr, first, last, places, W, K, emissions, rows_of, values)
        here, there = ZERO, K
        true = np.uint64(gold[first])
        on = links[K * K1 + true] + emissions[true]
        for k in range(K):
            leads[k] = NEVER if k == true else links[K * K1 + k] + emissions[k]
        for t in range(ONE, last - first):
            after = np.uint64(gold[first + t])
            for k in range(K):
                best = NEVER if k == after else on + links[true * K1 + k]
                for j in range(K):
                    best = max(best, leads[here + j] + links[j * K1 + k])
                leads[there + k] = best + emissions[t * K + k]
            on = (on + links[true * K1 + after]) + emissions[t * K + after]
            true = after
            here, there = there, here
        best = NEVER
        for k in range(K):
            best = max(best, leads[here + k] + links[k * K1 + K])
        out[i] = (on + links[true * K1 + K]) - best
