"""Lines of labelled, named features to CSR rows: the JSON that programs write, and nothing else.

    {"features": {"name": number, …}, "label": "text" or whole number}

in either order, with blanks between the parts. A line with anything else in it (a value that is no number, a third
member, a name twice, half a character) makes the whole text *unusual*: slower code reads it, and reports what is wrong
with it if anything is. What is read here is read as JSON has it, numbers to the last bit.

Names are looked up in a dictionary (see `dictionary`), new ones are added to it. The text ends with a line end and 8
bytes of any value.
"""

import numpy as np

from separatrix.kernels.arrays import Array, Whole
from separatrix.kernels.bits import load64
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.parsing.decimals import NUMBER, is_digit, number
from separatrix.kernels.text.dictionary import append, look_up, same

DONE, UNUSUAL, FULL = range(3)
_0, _1, _2, _8 = (np.uint64(k) for k in (0, 1, 2, 8))
QUOTE, BACKSLASH, COLON, COMMA, OPEN, CLOSE = (np.uint8(ord(sign)) for sign in '"\\:,{}')
SLASH, LETTER_A, LETTER_B, LETTER_F, LETTER_N, LETTER_R, LETTER_T, LETTER_U = (np.uint8(ord(sign)) for sign in "/abfnrtu")
NOWHERE = np.uint64(1 << 62)
SPACE, TAB, RETURN, NEWLINE, MINUS, DOT, ZERO = (np.uint8(ord(sign)) for sign in " \t\r\n-.0")
FEATURES = np.uint64(int.from_bytes(b"features", "little"))
LABEL = np.uint64(int.from_bytes(b"label\0\0\0", "little"))
FIVE_BYTES = np.uint64((1 << 40) - 1)
STIR = np.uint64(0x9E3779B97F4A7C15)
_29, _32 = np.uint64(29), np.uint64(32)


@part
def _blanks(text, p):
    while text[p] == SPACE or text[p] == TAB or text[p] == RETURN:
        p += _1
    return p


@part
def _string(text, p):
    """Return where the string ends that begins at p, or 0 where it does not, and whether something in it is escaped."""
    escaped = False
    while text[p] != QUOTE:
        if text[p] == BACKSLASH:
            escaped = True
            p += _1
        if text[p] < SPACE:
            return _0, escaped
        p += _1
    return p, escaped


@part
def _hex(byte):
    if is_digit(byte):
        return np.uint64(byte - ZERO)
    low = byte | np.uint8(32)
    return np.uint64(low - np.uint8(87)) if LETTER_A <= low <= LETTER_F else np.uint64(99)


@part
def _unescaped(text, begin, end, out):
    """Write the string text[begin:end] into out as it is meant; return where it ends there, or NOWHERE."""
    p, q = begin, _0
    while p < end:
        byte = text[p]
        p += _1
        if byte != BACKSLASH:
            out[q] = byte
            q += _1
            continue
        byte = text[p]
        p += _1
        if byte == QUOTE or byte == BACKSLASH or byte == SLASH:
            out[q] = byte
        elif byte == LETTER_B:
            out[q] = np.uint8(8)
        elif byte == LETTER_F:
            out[q] = np.uint8(12)
        elif byte == LETTER_N:
            out[q] = NEWLINE
        elif byte == LETTER_R:
            out[q] = RETURN
        elif byte == LETTER_T:
            out[q] = TAB
        elif byte == LETTER_U and p + np.uint64(4) <= end:
            code = _0
            for _ in range(4):
                digit = _hex(text[p])
                if digit > np.uint64(15):
                    return NOWHERE
                code = code * np.uint64(16) + digit
                p += _1
            if np.uint64(0xD800) <= code < np.uint64(0xE000):
                return NOWHERE
            if code < np.uint64(0x80):
                out[q] = np.uint8(code)
            else:
                if code < np.uint64(0x800):
                    out[q] = np.uint8(np.uint64(0xC0) | code >> np.uint64(6))
                else:
                    out[q] = np.uint8(np.uint64(0xE0) | code >> np.uint64(12))
                    q += _1
                    out[q] = np.uint8(np.uint64(0x80) | code >> np.uint64(6) & np.uint64(63))
                q += _1
                out[q] = np.uint8(np.uint64(0x80) | code & np.uint64(63))
        else:
            return NOWHERE
        q += _1
    return q


@part
def hashed(text, begin, end, seed):
    """Return a 32-bit hash that nobody can foresee without the seed."""
    h, p = seed ^ (end - begin), begin
    while p + _8 <= end:
        h = (h ^ load64(text, p)) * STIR
        h ^= h >> _29
        p += _8
    rest = (end - p) * _8
    h = (h ^ (load64(text, p) & ((_1 << rest) - _1))) * STIR
    h ^= h >> _29
    return np.uint32(h * STIR >> _32)


@part
def _strict(text, p, end):
    """Tell whether the number text[p:end] is written as JSON wants it: no plus, no leading zeros, digits on both sides."""
    if text[p] == MINUS:
        p += _1
    if not is_digit(text[p]) or (text[p] == ZERO and is_digit(text[p + _1])):
        return False
    while p < end:
        if text[p] == DOT and not is_digit(text[p + _1]):
            return False
        p += _1
    return True


@part
def _column(text, begin, end, seed, n, room, slots, offsets, arena, hash_of, seen):
    """Return the number of the name text[begin:end], which is n where it is new; NOWHERE where there is no room for it."""
    h = hashed(text, begin, end, seed)
    place = look_up(text, begin, end, h, slots, offsets, arena)
    if slots[place] == _0:
        if n == room:
            return NOWHERE
        append(text, begin, end, n, offsets, arena)
        hash_of[n], seen[n] = h, 0
        slots[place] = np.uint64(h) << _32 | (n + _1)
    return (slots[place] & np.uint64(0xFFFFFFFF)) - _1


@kernel
def read(
    text: Array,
    size: int,
    most: int,
    longest: int,
    largest: float,
    seed: Whole,
    n: int,
    room: int,
    slots: Array,
    offsets: Array,
    arena: Array,
    hash_of: Array,
    seen: Array,
    stamp: int,
    out: tuple[Array, ...],
    labels: Array,
    scratch: Array,
) -> tuple[int, int, int, int, int]:
    """Read the lines of text[:size]; return (what came of it, rows, entries, names, distinct labels).

    At most `most` features a line, names of `longest` bytes, values up to `largest`; there are n names, and room for `room`.
    seen[j] is the stamp of the last line that had name j; lines are stamped from `stamp` on. out = (data, indices, indptr,
    label): label is the number of a distinct one, of which labels holds where each begins and ends. scratch is for a name.
    """
    data, indices, indptr, label = out
    size, most, longest, n, room = np.uint64(size), np.uint64(most), np.uint64(longest), np.uint64(n), np.uint64(room)
    row, entry, p, distinct = _0, _0, _0, _0
    indptr[_0] = 0
    while p < size:
        p = _blanks(text, p)
        if text[p] == NEWLINE:
            p += _1
            continue
        if text[p] != OPEN:
            return UNUSUAL, row, entry, n, distinct
        p = _blanks(text, p + _1)
        first = entry
        featured = labelled = False
        while not (featured and labelled):
            if featured or labelled:
                if text[p] != COMMA:
                    return UNUSUAL, row, entry, n, distinct
                p = _blanks(text, p + _1)
            if text[p] != QUOTE:
                return UNUSUAL, row, entry, n, distinct
            word = load64(text, p + _1)
            if word == FEATURES and text[p + _1 + _8] == QUOTE and not featured:
                featured = True
                p = _blanks(text, p + _2 + _8)
                if text[p] != COLON:
                    return UNUSUAL, row, entry, n, distinct
                p = _blanks(text, p + _1)
                if text[p] != OPEN:
                    return UNUSUAL, row, entry, n, distinct
                p = _blanks(text, p + _1)
                if text[p] == CLOSE:
                    p = _blanks(text, p + _1)
                    continue
                while True:
                    if text[p] != QUOTE:
                        return UNUSUAL, row, entry, n, distinct
                    begin = p + _1
                    end, escaped = _string(text, begin)
                    if end == _0 or end - begin > longest or entry - first == most:
                        return UNUSUAL, row, entry, n, distinct
                    p = _blanks(text, end + _1)
                    if text[p] != COLON:
                        return UNUSUAL, row, entry, n, distinct
                    p = _blanks(text, p + _1)
                    value, after, state = number(text, p)
                    if state != NUMBER or not abs(value) <= largest or not _strict(text, p, after):
                        return UNUSUAL, row, entry, n, distinct
                    if value == 0.0 and after - p == _2:  # -0, which is a whole number in JSON and has no sign
                        value = 0.0
                    if escaped:
                        length = _unescaped(text, begin, end, scratch)
                        if length == NOWHERE:
                            return UNUSUAL, row, entry, n, distinct
                        j = _column(scratch, _0, length, seed, n, room, slots, offsets, arena, hash_of, seen)
                    else:
                        j = _column(text, begin, end, seed, n, room, slots, offsets, arena, hash_of, seen)
                    if j == NOWHERE:
                        return FULL, row, entry, n, distinct
                    n = max(n, j + _1)
                    if seen[j] == stamp:
                        return UNUSUAL, row, entry, n, distinct
                    seen[j] = stamp
                    data[entry], indices[entry] = value, j
                    entry += _1
                    p = _blanks(text, after)
                    if text[p] == CLOSE:
                        break
                    if text[p] != COMMA:
                        return UNUSUAL, row, entry, n, distinct
                    p = _blanks(text, p + _1)
                p = _blanks(text, p + _1)
            elif word & FIVE_BYTES == LABEL and text[p + np.uint64(6)] == QUOTE and not labelled:
                labelled = True
                p = _blanks(text, p + np.uint64(7))
                if text[p] != COLON:
                    return UNUSUAL, row, entry, n, distinct
                p = _blanks(text, p + _1)
                begin = p
                if text[p] == QUOTE:
                    end, _ = _string(text, p + _1)
                    if end == _0:
                        return UNUSUAL, row, entry, n, distinct
                    end += _1
                else:
                    value, end, state = number(text, p)
                    if state != NUMBER or not _strict(text, p, end) or end - p > np.uint64(15):
                        return UNUSUAL, row, entry, n, distinct
                which = _0
                while which < distinct:
                    b, e = np.uint64(labels[which * _2]), np.uint64(labels[which * _2 + _1])
                    if e - b == end - begin and same(text, b, text, begin, end - begin):
                        break
                    which += _1
                if which == distinct:
                    if distinct * _2 == np.uint64(labels.size):
                        return UNUSUAL, row, entry, n, distinct
                    labels[distinct * _2], labels[distinct * _2 + _1] = begin, end
                    distinct += _1
                label[row] = which
                p = _blanks(text, end)
            else:
                return UNUSUAL, row, entry, n, distinct
        if text[p] != CLOSE:
            return UNUSUAL, row, entry, n, distinct
        p = _blanks(text, p + _1)
        if text[p] != NEWLINE:
            return UNUSUAL, row, entry, n, distinct
        p += _1
        row += _1
        stamp += 1
        indptr[row] = entry
    return DONE, row, entry, n, distinct


@kernel
def enter(
    text: Array, ends: Array, seed: Whole, n: int, slots: Array, offsets: Array, arena: Array, hash_of: Array, seen: Array
) -> None:
    """Add names, all new, that lie end to end in the text, from number n on."""
    n, begin = np.uint64(n), _0
    for k in range(np.uint64(ends.size)):
        end = np.uint64(ends[k])
        _column(text, begin, end, seed, n, NOWHERE, slots, offsets, arena, hash_of, seen)
        n += _1
        begin = end
