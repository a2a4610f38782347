"""Lines of columns, and the distinct values of a column.

A token is a line whose columns are separated by tabs or, where there are none, by spaces; an empty line ends a sequence.
Where a sequence begins, a line that begins with a hash and a space is a comment if it has another number of columns, or if
its third word is "=" (`# text = …`); else it is a token.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.bits import load64
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.text.dictionary import HALF, LOW_HALF, same

ZERO, ONE, THREE, EIGHT = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(8)
TAB, NEWLINE, RETURN, SPACE = np.uint8(9), np.uint8(10), np.uint8(13), np.uint8(32)
HASH, EQUALS = np.uint8(ord("#")), np.uint8(ord("="))
FACTOR, LAST_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@part
def mix(h, word):
    """Return a hash that depends on another one and on a word of 64 bits."""
    h = (h ^ word) * FACTOR
    return h ^ (h >> HALF)


@part
def finished(h):
    """Return a hash whose every bit depends on all bits of another one."""
    h = (h ^ (h >> HALF)) * LAST_FACTOR
    h = (h ^ (h >> HALF)) * LAST_FACTOR
    return h ^ (h >> HALF)


@part
def hash_of(text, begin, end, seed):
    """Return a hash of text[begin : end]; up to seven bytes after it are read."""
    h, p = mix(np.uint64(seed), end - begin), begin
    while p + EIGHT <= end:
        h = mix(h, load64(text, p))
        p += EIGHT
    if p < end:
        h = mix(h, load64(text, p) & ((ONE << ((end - p) * EIGHT)) - ONE))
    return h


@part
def begins_with(text, begin, end, mark):
    """Tell whether text[begin : end] begins with a mark."""
    n = np.uint64(mark.size)
    if begin + n > end:
        return False
    for p in range(n):
        if text[begin + p] != mark[p]:
            return False
    return True


@part
def is_assignment(text, first, last):
    """Tell whether the third word of text[first : last] is "="."""
    words, p = ZERO, first
    while p < last:
        while p < last and text[p] == SPACE:
            p += ONE
        begin = p
        while p < last and text[p] != SPACE:
            p += ONE
        words += ONE
        if words == THREE:
            return p == begin + ONE and text[begin] == EQUALS
    return False


@kernel
def split_lines(
    text: Array,
    size: int,
    by_tab: bool,
    n_columns: int,
    mark: Array,
    begins: Array,
    ends: Array,
    starts: Array,
    lines: Array,
) -> tuple[int, int, int, int, int]:
    """Write where the columns of each token begin and end, where each sequence starts, and the line of each token.

    Return how many tokens and sequences there are, the line (from 1) that does not have n_columns columns, 0 if all have,
    how many columns it has, and how many comments there are; a line that begins with the mark and has another number is
    taken for an empty one. Token t has the places t·n_columns … of begins and ends, without blanks around them. The text
    ends with a line end.
    """
    n_columns, size = np.uint64(n_columns), np.uint64(size)
    t, s, p, line, comments = ZERO, ZERO, ZERO, 0, 0
    starts[ZERO] = 0
    while p < size:
        line += 1
        end = p
        while text[end] != NEWLINE:
            end += ONE
        last, column = end, ZERO
        while last > p and (text[last - ONE] == RETURN or text[last - ONE] == SPACE):
            last -= ONE
        first = p
        while first < last and (text[first] == SPACE or text[first] == TAB):
            first += ONE
        hashed = last > first + ONE and text[first] == HASH and text[first + ONE] == SPACE and np.int64(t) == starts[s]
        if hashed and is_assignment(text, first, last):
            comments += 1
        elif first < last:
            at = p if by_tab else first
            while True:
                begin = at
                while at < last and text[at] != TAB and (by_tab or text[at] != SPACE):
                    at += ONE
                behind = at
                while begin < behind and text[behind - ONE] == SPACE:
                    behind -= ONE
                while begin < behind and text[begin] == SPACE:
                    begin += ONE
                if behind == begin:  # a token may be a blank
                    behind = at
                if column < n_columns:
                    begins[t * n_columns + column], ends[t * n_columns + column] = np.int64(begin), np.int64(behind)
                if behind > begin:
                    column += ONE
                elif by_tab:
                    return t, s, line, -np.int64(column) - 1, comments
                if at >= last:
                    break
                at += ONE
                if not by_tab:
                    while at < last and (text[at] == SPACE or text[at] == TAB):
                        at += ONE
            if column == n_columns:
                lines[t] = line
                t += ONE
            elif hashed:
                comments += 1
            elif not begins_with(text, first, last, mark):
                return t, s, line, np.int64(column), comments
            elif np.int64(t) > starts[s]:
                s += ONE
                starts[s] = np.int64(t)
        elif np.int64(t) > starts[s]:
            s += ONE
            starts[s] = np.int64(t)
        p = end + ONE
    if np.int64(t) > starts[s]:
        s += ONE
        starts[s] = np.int64(t)
    return t, s, 0, 0, comments


@kernel
def number_values(text: Array, begin: Array, end: Array, slots: Array, value_of: Array, first: Array) -> int:
    """Write the number of each value, in the order of their first places, and these places; return how many there are.

    slots is all 0, and its size a power of two larger than the number of values.
    """
    n, last = ZERO, np.uint64(slots.size) - ONE
    for t in range(np.uint64(begin.size)):
        b, e = np.uint64(begin[t]), np.uint64(end[t])
        h = hash_of(text, b, e, ZERO)
        h = finished(h)
        place, mark = h & last, h >> HALF
        while slots[place] != ZERO:
            if slots[place] >> HALF == mark:
                i = np.uint64(first[(slots[place] & LOW_HALF) - ONE])
                if np.uint64(end[i] - begin[i]) == e - b and same(text, b, text, np.uint64(begin[i]), e - b):
                    break
            place = (place + ONE) & last
        if slots[place] == ZERO:
            first[n] = np.int64(t)
            n += ONE
            slots[place] = mark << HALF | n
        value_of[t] = np.int32((slots[place] & LOW_HALF) - ONE)
    return n
