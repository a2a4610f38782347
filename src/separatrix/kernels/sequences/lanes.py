"""Eight tags at a time: what a token emits, and the best path to each of its tags.

    emission     the sum of the weights of the token's features
    step         leads[k] = max over i of (leads before[i] + links[i, k]) + emission[k]

Most features were never part of a correction, and their weights are all 0. Hence the weights of K tags are rows, end to end,
of those features alone that were: places[j] is the row of feature j, and row 0, which is all 0, belongs to the others. What
is left out are additions of 0, so that a sum has the same bits. Eight numbers are read and written at once: behind the last
one of each array there is room for them, and what is written behind a token is written over by the next one.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from separatrix.kernels.bits import prefetch_near
from separatrix.kernels.compiling import ordered_part, part

ZERO, ONE, EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
_WHOLE, _DOUBLE = ir.IntType(64), ir.DoubleType()
_LANES = ir.VectorType(_DOUBLE, 8)


def _pointers(context, builder, signature, arguments):
    """Return functions that give the address of array[index], as one number and as eight."""

    def at(array, index):
        data = context.make_array(signature.args[array])(context, builder, value=arguments[array]).data
        return builder.gep(data, [index])

    return at, lambda array, index: builder.bitcast(at(array, index), _LANES.as_pointer())


def _spread(builder, number):
    """Return eight times the same number."""
    nothing = ir.Constant(_LANES, ir.Undefined)
    one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8))


def _folded(builder, begin, end, start, step):
    """Return the result of step(p, result so far) for p in begin … end."""
    before, loop = builder.block, builder.append_basic_block("step")
    behind = builder.append_basic_block("behind")
    builder.cbranch(builder.icmp_unsigned("<", begin, end), loop, behind)
    builder.position_at_end(loop)
    p, folded = builder.phi(_WHOLE), builder.phi(_LANES)
    following, result = builder.add(p, ir.Constant(_WHOLE, 1)), step(p, folded)
    builder.cbranch(builder.icmp_unsigned("<", following, end), loop, behind)
    p.add_incoming(begin, before)
    p.add_incoming(following, loop)
    folded.add_incoming(start, before)
    folded.add_incoming(result, loop)
    builder.position_at_end(behind)
    final = builder.phi(_LANES)
    final.add_incoming(start, before)
    final.add_incoming(result, loop)
    return final


def _adder(valued, explained):
    def add(typing_context, W, rows, values, begin, end, k, out, place):
        def emit(context, builder, signature, arguments):
            at, lanes = _pointers(context, builder, signature, arguments)
            begin, end, k, place = arguments[3], arguments[4], arguments[5], arguments[7]

            def step(p, total):
                term = builder.load(lanes(0, builder.add(builder.load(at(1, p)), k)), align=8)
                if valued:
                    term = builder.fmul(_spread(builder, builder.load(at(2, p))), term)
                return builder.fadd(total, term)

            total = _folded(builder, begin, end, ir.Constant(_LANES, [0.0] * 8), step)
            builder.store(total, lanes(6, place), align=8)
            return context.get_dummy_value()

        return types.void(W, rows, values, types.uint64, types.uint64, types.uint64, out, types.uint64), emit

    add.__doc__ = explained
    return intrinsic(add)


_add = _adder(False, "Write W[row + k … row + k + 8], summed over rows[begin … end] one after the other, to out[place …].")
_add_products = _adder(True, "The same, each row times its value.")


@intrinsic
def _step(typing_context, leads, here, there, links, emissions, k, K):
    """Write the leads of tags k … k + 8 of a token to leads[there + k …]; those of the token before are at leads[here …]."""

    def emit(context, builder, signature, arguments):
        at, lanes = _pointers(context, builder, signature, arguments)
        here, there, k, K = arguments[1], arguments[2], arguments[5], arguments[6]
        one = ir.Constant(_WHOLE, 1)
        width = builder.add(K, one)

        def lead_of(i):
            before = _spread(builder, builder.load(at(0, builder.add(here, i))))
            return builder.fadd(before, builder.load(lanes(3, builder.add(builder.mul(i, width), k)), align=8))

        def step(i, best):
            lead = lead_of(i)
            return builder.select(builder.fcmp_ordered(">", lead, best), lead, best)

        best = _folded(builder, one, K, lead_of(ir.Constant(_WHOLE, 0)), step)
        place = builder.add(there, k)
        builder.store(builder.fadd(best, builder.load(lanes(4, place), align=8)), lanes(0, place), align=8)
        return context.get_dummy_value()

    return types.void(leads, types.uint64, types.uint64, links, emissions, types.uint64, types.uint64), emit


@part
def gather(data, indices, indptr, t, places, K, W, rows, values, n):
    """Write where the weights of token t's features begin, and their values, from place n on; return where they end."""
    for p in range(np.uint64(indptr[t]), np.uint64(indptr[t + ONE])):
        place = np.uint64(places[np.uint64(indices[p])])
        rows[n] = place * K
        if data.size > 0:
            values[n] = data[p]
        for w in range(place * K, (place + ONE) * K, EIGHT):
            prefetch_near(W, w)
        if place != ZERO:
            n += ONE
    return n


@ordered_part
def emit(data, indices, indptr, first, last, places, W, K, emissions, rows, values):
    """Write ⟨w_k, x_t⟩ of each token and tag of a sequence; the rows of a token are prefetched while another is summed."""
    here, there = ZERO, np.uint64(rows.size) >> ONE
    end = gather(data, indices, indptr, first, places, K, W, rows, values, here)
    for t in range(first, last):
        end_there = there
        if t + ONE < last:
            end_there = gather(data, indices, indptr, t + ONE, places, K, W, rows, values, there)
        for k in range(ZERO, K, EIGHT):
            place = (t - first) * K + k
            if data.size > 0:
                _add_products(W, rows, values, here, end, k, emissions, place)
            else:
                _add(W, rows, values, here, end, k, emissions, place)
        here, there, end = there, here, end_there


@ordered_part
def lead(emissions, n, K, links, leads):
    """Write the score of the best path to each tag of n > 0 tokens."""
    for k in range(K):
        leads[k] = links[K * (K + ONE) + k] + emissions[k]
    for t in range(ONE, n):
        for k in range(ZERO, K, EIGHT):
            _step(leads, (t - ONE) * K, t * K, links, emissions, k, K)
