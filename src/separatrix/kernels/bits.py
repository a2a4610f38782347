"""Machine words: several bytes of an array at once, products of 128 bits, zeros at either end, prefetching."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


def _loader(bits, result):
    @intrinsic
    def load(typing_context, array, index):
        """Return the bytes from array[index] on as one word, the first byte lowest, aligned or not."""

        def emit(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
            address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(bits).as_pointer())
            return builder.load(address, align=1)

        return result(array, index), emit

    return load


load32, load64 = _loader(32, types.uint32), _loader(64, types.uint64)


@intrinsic
def store64(typing_context, array, index, value):
    """Write eight bytes at array[index], aligned or not."""

    def emit(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), _WORD.as_pointer())
        builder.store(arguments[2], address, align=1)
        return context.get_dummy_value()

    return types.void(array, index, types.uint64), emit


@intrinsic
def upper_product(typing_context, a, b):
    """Return the upper 64 bits of the 128-bit product a·b."""

    def emit(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), _WORD)

    return types.uint64(types.uint64, types.uint64), emit


@intrinsic
def leading_zeros(typing_context, word):
    """Return how many of the upper bits of a word that is not 0 are 0."""

    def emit(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), emit


@intrinsic
def trailing_zeros(typing_context, word):
    """Return how many of the lower bits of a word that is not 0 are 0."""

    def emit(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), emit


@intrinsic
def double_of(typing_context, bits):
    """Return the float64 that has these bits."""

    def emit(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), emit


def _prefetcher(level, explained):
    def prefetcher(typing_context, array, index):
        def emit(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
            byte, integer = ir.IntType(8).as_pointer(), ir.IntType(32)
            address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
            takes = ir.FunctionType(ir.VoidType(), [byte, integer, integer, integer])
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], takes)
            builder.call(fetch, [address, integer(0), integer(4 - level), integer(1)])
            return context.get_dummy_value()

        return types.void(array, index), emit

    prefetcher.__doc__ = explained
    return intrinsic(prefetcher)


prefetch = _prefetcher(2, "Prefetch the cache line of array[index] into the second-level cache.")
prefetch_near = _prefetcher(1, "Prefetch it into the first-level cache, for what is used in a moment.")
