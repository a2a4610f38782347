"""UTF-8 in, lower-cased UTF-8 out, and the kind of each byte: what Python's `str.lower` and `re` say of words and spaces.

    decode   bytes → code point; a malformed sequence is U+FFFD, as in bytes.decode("utf-8", "replace")
    lower    c → c + delta; İ → i̇; Σ → ς at the end of a word, else σ
    kind     word → WORD, space → NEITHER, any other → `other`; every byte of a character carries its kind

The table of a character is two reads: cells[pages[c >> 8] · 256 + (c & 255)] = delta · 32 + flags. Texts of pure ASCII
need no table and run in vector lanes.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel, part

NEITHER, WORD, SINGLE, SINGLE_MORE = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(4)
IS_WORD, IS_SPACE, IS_CASED, IS_IGNORED, IS_SPECIAL = 1, 2, 4, 8, 16
FLAG_BITS = 5
FINAL_SIGMA, SIGMA, REPLACEMENT = 0x3C2, 0x3C3, 0xFFFD
PAD = 64
NEWLINE = np.uint8(10)
ONE = np.uint64(1)


@part
def decode(data, p, end):
    """Return the code point at data[p], and where the next one begins."""
    c = np.int64(data[p])
    p += ONE
    if c < 0x80:
        return c, p
    if c < 0xC2 or c > 0xF4:
        return np.int64(REPLACEMENT), p
    low, high = 0x80, 0xBF
    if c < 0xE0:
        more, value = 1, c & 0x1F
    elif c < 0xF0:
        more, value = 2, c & 0x0F
        low = 0xA0 if c == 0xE0 else 0x80
        high = 0x9F if c == 0xED else 0xBF
    else:
        more, value = 3, c & 0x07
        low = 0x90 if c == 0xF0 else 0x80
        high = 0x8F if c == 0xF4 else 0xBF
    for _ in range(more):
        if p >= end or data[p] < low or data[p] > high:
            return np.int64(REPLACEMENT), p
        value = value << 6 | np.int64(data[p] & 0x3F)
        p += ONE
        low, high = 0x80, 0xBF
    return value, p


@part
def cell(pages, cells, c):
    """Return delta · 32 + flags of code point c."""
    return np.int64(cells[(np.uint64(pages[np.uint64(c >> 8)]) << np.uint64(8)) | np.uint64(c & 255)])


@part
def write(c, flags, other, out, kinds, q):
    """Write code point c and its kind; return where the next one goes."""
    kind, more = NEITHER, NEITHER
    if flags & IS_WORD:
        kind, more = WORD, WORD
    elif not flags & IS_SPACE:
        kind = np.uint8(other)
        more = SINGLE_MORE if kind == SINGLE else kind
    shift = 0
    if c < 0x80:
        out[q] = np.uint8(c)
    elif c < 0x800:
        out[q] = np.uint8(0xC0 | c >> 6)
        shift = 6
    elif c < 0x10000:
        out[q] = np.uint8(0xE0 | c >> 12)
        shift = 12
    else:
        out[q] = np.uint8(0xF0 | c >> 18)
        shift = 18
    kinds[q] = kind
    q += ONE
    while shift > 0:
        shift -= 6
        out[q] = np.uint8(0x80 | (c >> shift & 0x3F))
        kinds[q] = more
        q += ONE
    return q


@part
def cased_follows(data, p, end, pages, cells):
    """Tell whether the next character that is not ignored has upper and lower case."""
    while p < end:
        c, p = decode(data, p, end)
        what = cell(pages, cells, c)
        if not what & IS_IGNORED:
            return what & IS_CASED != 0
    return False


@part
def fold_any(data, begin, end, pages, cells, specials, lower, other, out, kinds, q):
    """Fold one text of any characters; return where the next one goes."""
    p, after_cased = begin, False
    while p < end:
        c, p = decode(data, p, end)
        what = cell(pages, cells, c)
        if not lower:
            q = write(c, what, other, out, kinds, q)
            continue
        if what & IS_SPECIAL:
            row = np.uint64(what >> FLAG_BITS) * np.uint64(4)
            for k in range(np.uint64(specials[row])):
                c = np.int64(specials[row + ONE + k])
                if c == SIGMA and after_cased and not cased_follows(data, p, end, pages, cells):
                    c = np.int64(FINAL_SIGMA)
                q = write(c, cell(pages, cells, c), other, out, kinds, q)
        else:
            lowered = c + (what >> FLAG_BITS)
            q = write(lowered, what if lowered == c else cell(pages, cells, lowered), other, out, kinds, q)
        if not what & IS_IGNORED:
            after_cased = what & IS_CASED != 0
    return q


@part
def fold_ascii(data, begin, end, lower, other, out, kinds, q):
    """Fold one text of pure ASCII; return where the next one goes."""
    shift = np.uint8(32) if lower else np.uint8(0)
    for p in range(begin, end):
        c = data[p]
        letter = np.uint8((c | np.uint8(32)) - np.uint8(97)) < np.uint8(26)
        digit = np.uint8(c - np.uint8(48)) < np.uint8(10)
        space = (c == np.uint8(32)) | (np.uint8(c - np.uint8(9)) < np.uint8(5)) | (np.uint8(c - np.uint8(28)) < np.uint8(4))
        kinds[q + (p - begin)] = WORD if letter | digit | (c == np.uint8(95)) else (NEITHER if space else other)
        out[q + (p - begin)] = c | (shift if letter else np.uint8(0))
    return q + (end - begin)


@kernel
def fold(
    data: Array,
    begin: Array,
    end: Array,
    pages: Array,
    cells: Array,
    specials: Array,
    lower: bool,
    other: int,
    out: Array,
    kinds: Array,
    at: Array,
) -> bool:
    """Fold the texts data[begin[i] : end[i]] into out, a newline after each; return whether that could be done.

    Without a table (no pages) it ends at the first text that is not ASCII. at[i] is where text i begins; kinds has PAD more
    entries, which are NEITHER.
    """
    q, other = np.uint64(0), np.uint8(other)
    for i in range(np.uint64(begin.size)):
        first, last = np.uint64(begin[i]), np.uint64(end[i])
        at[i] = np.uint32(q)
        every = np.uint8(0)
        for p in range(first, last):
            every |= data[p]
        if every < np.uint8(128):
            q = fold_ascii(data, first, last, lower, other, out, kinds, q)
        elif pages.size == 0:
            return False
        else:
            q = fold_any(data, first, last, pages, cells, specials, lower, other, out, kinds, q)
        out[q], kinds[q] = NEWLINE, NEITHER
        q += ONE
    at[np.uint64(begin.size)] = np.uint32(q)
    for k in range(np.uint64(PAD)):
        kinds[q + k] = NEITHER
    return True
