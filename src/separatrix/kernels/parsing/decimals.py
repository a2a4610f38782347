"""The float64 nearest to a decimal number, as `float(text)` has it, to the last bit.

    text = ± w·10^q,  w < 10^19:
    w < 2^53 and |q| ≤ 22     w·10^q or w/10^−q: both factors are exact, so one rounding is the right one
    otherwise                 w·5^q from 128 bits of 5^q, rounded to 53 bits (Lemire, "Number parsing at a gigabyte per
                              second", 2021; Mushtak and Lemire, "Fast number parsing without fallback", 2023)

What is left, more than 19 digits or a result that is subnormal or too large, is called *hard* and goes to `float`.
Eight digits are read in one step: w = Σ dᵢ·10^(7−i) by three multiplications of neighbours, pairs and fours.
"""

import numpy as np

from separatrix.kernels.bits import double_of, leading_zeros, load64, upper_product
from separatrix.kernels.compiling import part

NUMBER, HARD, NOT_A_NUMBER = range(3)
LOWEST, HIGHEST = -342, 308


def _powers_of_five():
    """Return the upper and the lower word of the first 128 bits of each 5^q: rounded up for −27 ≤ q < 0, else down."""
    powers = []
    for q in range(LOWEST, HIGHEST + 1):
        power = 5 ** abs(q)
        size = power.bit_length()
        if q >= 0:
            bits = power << 128 >> size
        elif q >= -27:
            bits = (1 << size + 127) // power + 1
        else:
            bits = (1 << size + 127) // power
        powers.append(bits)
    words = [[bits >> 64 for bits in powers], [bits & (1 << 64) - 1 for bits in powers]]
    return np.array(words, np.uint64)


UPPER, LOWER = _powers_of_five()
TENS = np.array([10.0**k for k in range(23)])

_1, _8, _19, _63 = (np.uint64(k) for k in (1, 8, 19, 63))
PLUS, MINUS, DOT, ZERO, SMALL_E, LARGE_E = (np.uint8(ord(sign)) for sign in "+-.0eE")
_10, _10_8 = np.uint64(10), np.uint64(10**8)
_ZERO_BYTE, _NINE = np.uint64(48), np.uint64(9)
_HIGH_HALVES, _SIXES, _THREES = (np.uint64(int(byte * 8, 16)) for byte in ("F0", "06", "33"))
_ZEROS = np.uint64(int("30" * 8, 16))
_EVERY_FOURTH = np.uint64(0x000000FF000000FF)
_EXACT = np.uint64(1 << 53)
_LAST_NINE = np.uint64(0x1FF)
_HIDDEN = np.uint64(1 << 52)


@part
def is_digit(byte):
    """Tell whether a byte is one of 0 … 9."""
    return np.uint64(byte) - _ZERO_BYTE <= _NINE


@part
def are_digits(word):
    """Tell whether all eight bytes of a word are digits."""
    high = word & _HIGH_HALVES
    carried = (word + _SIXES) & _HIGH_HALVES
    return (high | carried >> np.uint64(4)) == _THREES


@part
def eight_digits(word):
    """Return the number that eight digits write."""
    word -= _ZEROS
    word = word * _10 + (word >> _8)
    low = (word & _EVERY_FOURTH) * np.uint64(100 + (1000000 << 32))
    high = (word >> np.uint64(16) & _EVERY_FOURTH) * np.uint64(1 + (10000 << 32))
    return (low + high) >> np.uint64(32)


@part
def digits(text, p, w):
    """Append the digits from p on to w; return w, modulo 2^64, and where they end."""
    word = load64(text, p)
    while are_digits(word):
        w = w * _10_8 + eight_digits(word)
        p += _8
        word = load64(text, p)
    while is_digit(text[p]):
        w = w * _10 + (np.uint64(text[p]) - _ZERO_BYTE)
        p += _1
    return w, p


@part
def nearest(w, q):
    """Return (the float64 nearest to w·10^q, whether that is certain)."""
    if w < _EXACT and -22 <= q <= 22:
        if q < 0:
            return np.float64(w) / TENS[np.uint64(-q)], True
        return np.float64(w) * TENS[np.uint64(q)], True
    if w == np.uint64(0):
        return 0.0, True
    if q < LOWEST or q > HIGHEST:
        return 0.0, False
    place = np.uint64(q - LOWEST)
    zeros = leading_zeros(w)
    w <<= zeros
    low, high = w * UPPER[place], upper_product(w, UPPER[place])
    if high & _LAST_NINE == _LAST_NINE:
        more = upper_product(w, LOWER[place])
        low += more
        if low < more:
            high += _1
    top = high >> _63
    mantissa = high >> (top + np.uint64(9))
    exponent = ((217706 * q) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    if exponent <= 0 or exponent >= 2046:
        return 0.0, False
    if low <= _1 and -4 <= q <= 23 and mantissa & np.uint64(3) == _1 and mantissa << (top + np.uint64(9)) == high:
        mantissa &= ~_1  # exactly half way between two doubles: to the even one
    mantissa = (mantissa + (mantissa & _1)) >> _1
    if mantissa >= _HIDDEN << _1:
        mantissa = _HIDDEN
        exponent += 1
    return double_of((mantissa & ~_HIDDEN) | np.uint64(exponent) << np.uint64(52)), True


@part
def number(text, p):
    """Read a number at p: return (value, where it ends, NUMBER, HARD or NOT_A_NUMBER). Some byte after p is no digit."""
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += _1
    begin = p
    w, p = digits(text, p, np.uint64(0))
    count, q = p - begin, np.int64(0)
    if text[p] == DOT:
        p += _1
        point = p
        w, p = digits(text, p, w)
        count += p - point
        q = -np.int64(p - point)
    if count == np.uint64(0):
        return 0.0, p, NOT_A_NUMBER
    state = NUMBER
    if count > _19:
        while text[begin] == ZERO or text[begin] == DOT:
            count -= np.uint64(text[begin] == ZERO)
            begin += _1
        if count > _19:
            state = HARD
    if text[p] == SMALL_E or text[p] == LARGE_E:
        p += _1
        sinks = text[p] == MINUS
        if sinks or text[p] == PLUS:
            p += _1
        first, e = p, np.int64(0)
        while is_digit(text[p]):
            e = min(e * 10 + np.int64(text[p]) - 48, 1 << 40)
            p += _1
        if p == first:
            return 0.0, p, NOT_A_NUMBER
        q += -e if sinks else e
    value, certain = nearest(w, q)
    if not certain:
        state = HARD
    return -value if negative else value, p, state
