"""Machine words: eight bytes of a text at once, the upper half of a product, zeros at either end, a double from its bits."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


@intrinsic
def eight_bytes(typing_context, text, index):
    """Return text[index : index + 8] as one word, the first byte lowest."""

    def emit(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), _WORD.as_pointer())
        return builder.load(address, align=1)

    return types.uint64(text, index), emit


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
