"""Folded text → pieces (words or characters) → n-grams → MurmurHash3.

    pieces    words: where the kind of the bytes changes, 64 bytes at a time; characters: each one
    n-gram    the bytes from the beginning of piece i to the end of piece i+n−1: words are laid one space apart first
    hash      MurmurHash3, 32 bits, seed 0: h ← 5·rot₁₃(h ⊕ c₂·rot₁₅(c₁·k)) + c₃ over four bytes k at a time

A token begins where a word begins or at a single character, and ends where a word ends or after one: the i-th beginning and
the i-th end belong together. A bit mask of 64 bytes gives both, so that there is no branch to mispredict at each byte.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.bits import load32, load64, store64, trailing_zeros
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.text.characters import NEITHER

ZERO, ONE, FOUR, EIGHT = (np.uint64(i) for i in (0, 1, 4, 8))
LOW_BITS = np.uint64(0x0101010101010101)
GATHER = np.uint64(0x0102040810204080)
TOP = np.uint64(63)
BLANK = np.uint8(32)
C1, C2, C3 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593), np.uint32(0xE6546B64)
F1, F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


@part
def mask(kinds, p, bit):
    """Return, for 64 bytes from p on, whether `bit` of their kind is set: byte p is the lowest bit."""
    bits = ZERO
    for k in range(EIGHT):
        eight = (load64(kinds, p + k * EIGHT) >> bit) & LOW_BITS
        bits |= ((eight * GATHER) >> np.uint64(56)) << (k * EIGHT)
    return bits


@kernel
def find_tokens(kinds: Array, n: int, singles: bool, begin: Array, end: Array) -> int:
    """Write where each token of the n bytes begins and ends; return how many there are."""
    k, j, words_before, singles_before = ZERO, ZERO, ZERO, ZERO
    for p in range(ZERO, np.uint64(n), np.uint64(64)):
        words = mask(kinds, p, ZERO)
        shifted = words << ONE | words_before
        words_before = words >> TOP
        starts, stops = words & ~shifted, shifted & ~words
        if singles:
            leads, more = mask(kinds, p, ONE), mask(kinds, p, np.uint64(2))
            starts |= leads
            stops |= ((leads | more) << ONE | singles_before) & ~more
            singles_before = (leads | more) >> TOP
        while starts != ZERO:
            begin[k] = np.uint32(p + trailing_zeros(starts))
            starts &= starts - ONE
            k += ONE
        while stops != ZERO:
            end[j] = np.uint32(p + trailing_zeros(stops))
            stops &= stops - ONE
            j += ONE
    return k


@part
def width(lead):
    """Return how many bytes a character with this first byte has."""
    return np.uint32(1) + np.uint32(lead >= 0xC0) + np.uint32(lead >= 0xE0) + np.uint32(lead >= 0xF0)


@kernel
def drop_single(text: Array, n: int, begin: Array, end: Array) -> int:
    """Leave out tokens of one character; return how many are left."""
    k = ZERO
    for t in range(np.uint64(n)):
        b, e = begin[t], end[t]
        begin[k], end[k] = b, e
        k += np.uint64(e - b > width(text[np.uint64(b)]))
    return k


@kernel
def deal_tokens(at: Array, n: int, begin: Array, sizes: Array) -> None:
    """Count the tokens of each text."""
    t, n = ZERO, np.uint64(n)
    for i in range(np.uint64(sizes.size)):
        first, stop = t, at[i + ONE]
        while t < n and begin[t] < stop:
            t += ONE
        sizes[i] = t - first


@kernel
def lay_apart(text: Array, n: int, begin: Array, end: Array, out: Array) -> None:
    """Copy n tokens to out with one space after each, eight bytes at a time; begin and end follow them."""
    q = ZERO
    for t in range(np.uint64(n)):
        first, length = np.uint64(begin[t]), np.uint64(end[t]) - np.uint64(begin[t])
        for p in range(ZERO, length, EIGHT):
            store64(out, q + p, load64(text, first + p))
        begin[t], end[t] = np.uint32(q), np.uint32(q + length)
        out[q + length] = BLANK
        q += length + ONE


@kernel
def lay_characters(text: Array, kinds: Array, at: Array, out: Array, begin: Array, end: Array, sizes: Array) -> int:
    """Copy each text to out, two spaces or more in a row as one blank; its pieces are its characters. Return how many."""
    k, q = ZERO, ZERO
    for i in range(np.uint64(sizes.size)):
        p, last, first = np.uint64(at[i]), np.uint64(at[i + ONE]) - ONE, k
        while p < last:
            following = p + np.uint64(width(text[p]))
            begin[k] = np.uint32(q)
            if kinds[p] == NEITHER and following < last and kinds[following] == NEITHER:
                while following < last and kinds[following] == NEITHER:
                    following += ONE
                out[q] = BLANK
                q += ONE
                p = following
            while p < following:
                out[q] = text[p]
                q, p = q + ONE, p + ONE
            end[k] = np.uint32(q)
            k += ONE
        sizes[i] = k - first
    return k


@kernel
def lay_padded_words(
    text: Array, n: int, word_begin: Array, word_end: Array, out: Array, begin: Array, end: Array, sizes: Array
) -> int:
    """Copy n words to out, a blank before and after each; the pieces of each are its characters. Return how many."""
    k, q = ZERO, ZERO
    for t in range(np.uint64(n)):
        first = k
        begin[k], end[k], out[q] = np.uint32(q), np.uint32(q + ONE), BLANK
        k, q, p = k + ONE, q + ONE, np.uint64(word_begin[t])
        while p < np.uint64(word_end[t]):
            begin[k] = np.uint32(q)
            for _ in range(width(text[p])):
                out[q] = text[p]
                q, p = q + ONE, p + ONE
            end[k] = np.uint32(q)
            k += ONE
        begin[k], end[k], out[q] = np.uint32(q), np.uint32(q + ONE), BLANK
        k, q = k + ONE, q + ONE
        sizes[t] = k - first
    return k


@kernel
def count_grams(sizes: Array, groups: Array, low: int, high: int, whole: bool, ptr: Array) -> int:
    """Write where the n-grams of each text begin; text i has groups[i] runs of sizes[…] pieces. Return how many there are.

    With `whole`, a run shorter than n is one n-gram itself, once.
    """
    g, total = ZERO, np.int64(0)
    for i in range(np.uint64(groups.size)):
        ptr[i] = total
        for _ in range(groups[i]):
            m = sizes[g]
            g += ONE
            for n in range(low, high + 1):
                if m <= n:
                    total += whole or m == n
                    break
                total += m - n + 1
    ptr[np.uint64(groups.size)] = total
    return total


@kernel
def find_grams(
    begin: Array, end: Array, sizes: Array, low: int, high: int, whole: bool, gram_begin: Array, gram_end: Array
) -> None:
    """Write where each n-gram begins and ends, run after run, short ones first."""
    t, first = ZERO, ZERO
    for g in range(np.uint64(sizes.size)):
        m = np.uint64(sizes[g])
        for n in range(np.uint64(low), np.uint64(high + 1)):
            if m < n and not whole:
                break
            more = min(n, m) - ONE
            for i in range(first, first + m - more):
                gram_begin[t], gram_end[t] = begin[i], end[i + more]
                t += ONE
            if m <= n:
                break
        first += m


@part
def scramble(k):
    """Return c₂·rot₁₅(c₁·k)."""
    k = np.uint32(k * C1)
    return np.uint32(np.uint32(k << np.uint32(15) | k >> np.uint32(17)) * C2)


@part
def murmur(text, begin, end):
    """Return the hash of text[begin : end]; three bytes after it are read and left out of account."""
    h, p = np.uint32(0), begin
    while p + FOUR <= end:
        h = np.uint32(h ^ scramble(load32(text, p)))
        h = np.uint32(np.uint32(h << np.uint32(13) | h >> np.uint32(19)) * np.uint32(5) + C3)
        p += FOUR
    rest = np.uint32((end - p) * EIGHT)
    h = np.uint32(h ^ scramble(np.uint32(load32(text, p) & np.uint32((ONE << rest) - ONE))))
    h = np.uint32(h ^ np.uint32(end - begin))
    h = np.uint32(np.uint32(h ^ h >> np.uint32(16)) * F1)
    h = np.uint32(np.uint32(h ^ h >> np.uint32(13)) * F2)
    return np.uint32(h ^ h >> np.uint32(16))


@kernel
def hash_grams(text: Array, begin: Array, end: Array, hashes: Array) -> None:
    """Write the hash of each n-gram."""
    for t in range(np.uint64(begin.size)):
        hashes[t] = murmur(text, np.uint64(begin[t]), np.uint64(end[t]))
