"""What each tag of a token emits: the sum of the weights of the token's features, eight tags at a time.

Most features were never part of a correction, and their weights are all 0. Hence the weights of K tags are rows, end to end,
of those features alone that were: places[j] is the row of feature j, and row 0, which is all 0, belongs to the others. What
is left out are additions of 0, so that a sum has the same bits. Behind the last row there is room for eight numbers, which
may be read, and behind the last emission too, where they may be written.
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


def _adder(valued, explained):
    def add(typing_context, W, rows, values, begin, end, k, out, place):
        def emit(context, builder, signature, arguments):
            def at(array, index):
                data = context.make_array(signature.args[array])(context, builder, value=arguments[array]).data
                return builder.gep(data, [index])

            def lanes(array, index):
                return builder.bitcast(at(array, index), _LANES.as_pointer())

            begin, end, k, place = arguments[3], arguments[4], arguments[5], arguments[7]
            before, loop = builder.block, builder.append_basic_block("rows")
            behind = builder.append_basic_block("behind")
            builder.cbranch(builder.icmp_unsigned("<", begin, end), loop, behind)
            builder.position_at_end(loop)
            p, sums = builder.phi(_WHOLE), builder.phi(_LANES)
            term = builder.load(lanes(0, builder.add(builder.load(at(1, p)), k)), align=8)
            if valued:
                zeros = ir.Constant(_LANES, ir.Undefined)
                value = builder.insert_element(zeros, builder.load(at(2, p)), ir.Constant(ir.IntType(32), 0))
                spread = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
                term = builder.fmul(builder.shuffle_vector(value, zeros, spread), term)
            sums_with_it = builder.fadd(sums, term)
            following = builder.add(p, ir.Constant(_WHOLE, 1))
            builder.cbranch(builder.icmp_unsigned("<", following, end), loop, behind)
            nothing = ir.Constant(_LANES, [0.0] * 8)
            p.add_incoming(begin, before)
            p.add_incoming(following, loop)
            sums.add_incoming(nothing, before)
            sums.add_incoming(sums_with_it, loop)
            builder.position_at_end(behind)
            result = builder.phi(_LANES)
            result.add_incoming(nothing, before)
            result.add_incoming(sums_with_it, loop)
            builder.store(result, lanes(6, place), align=8)
            return context.get_dummy_value()

        return types.void(W, rows, values, types.uint64, types.uint64, types.uint64, out, types.uint64), emit

    add.__doc__ = explained
    return intrinsic(add)


_add = _adder(
    False, "Write W[row + k … row + k + 8], summed over rows[begin … end], to out[place …], in the order of the rows."
)
_add_products = _adder(True, "The same, each row times its value.")


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
