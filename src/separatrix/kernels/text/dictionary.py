"""Strings and their numbers: an exact vocabulary, and the names of hashed columns.

A dictionary is a list of names laid end to end, arena[offsets[i] : offsets[i+1]], and their hashes. Two ways lead to a name:

    slots    open addressing: hash << 32 | i + 1 at the first free place from hash mod size on; names are compared in full
    heads    one place for each of d columns: hash << 32 | i + 1 of the first name met there, the others follow by
             `next_name`; names are told apart by their 32-bit hash

Nothing grows here: the caller makes room for all that a block of n-grams could add. A name's number is stored plus 1, so
that 0 is a free place. The number of slots is a power of two larger than the number of names: every search ends.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.bits import load64, prefetch, store64
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.text.counts import ROW_SHIFT, column_of
from separatrix.kernels.text.tokens import EIGHT, ONE, ZERO

TWO, THREE = np.uint64(2), np.uint64(3)
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
AHEAD = np.uint64(16)


@part
def same(a, i, b, j, length):
    """Tell whether a[i : i+length] and b[j : j+length] are equal; up to seven bytes after them are read."""
    p = ZERO
    while p + EIGHT <= length:
        if load64(a, i + p) != load64(b, j + p):
            return False
        p += EIGHT
    rest = (length - p) * EIGHT
    return ((load64(a, i + p) ^ load64(b, j + p)) & ((ONE << rest) - ONE)) == ZERO


@part
def look_up(text, begin, end, hashed, slots, offsets, arena):
    """Return the slot of text[begin : end], or the free one where it belongs."""
    last = np.uint64(slots.size) - ONE
    place, length = np.uint64(hashed) & last, end - begin
    while slots[place] != ZERO:
        if slots[place] >> HALF == np.uint64(hashed):
            i = (slots[place] & LOW_HALF) - ONE
            at = np.uint64(offsets[i])
            if np.uint64(offsets[i + ONE]) - at == length and same(text, begin, arena, at, length):
                break
        place = (place + ONE) & last
    return place


@part
def append(text, begin, end, i, offsets, arena):
    """Make text[begin : end] name i; up to seven bytes after it are overwritten."""
    at = np.uint64(offsets[i])
    for p in range(ZERO, end - begin, EIGHT):
        store64(arena, at + p, load64(text, begin + p))
    offsets[i + ONE] = np.int64(at + end - begin)


@kernel
def learn(
    text: Array,
    begin: Array,
    end: Array,
    hashes: Array,
    ptr: Array,
    n: int,
    document: int,
    slots: Array,
    offsets: Array,
    arena: Array,
    hash_of: Array,
    tally: Array,
    keys: Array,
) -> int:
    """Count n-grams, those of text i being ptr[i]…ptr[i+1]; new ones are names from n on. Return how many names there are.

    tally holds three numbers a name: how often it occurred, in how many texts, and the last of these. keys are those of
    `counts.place`, with the names' numbers as columns.
    """
    n, total, last = np.uint64(n), np.uint64(begin.size), np.uint64(slots.size) - ONE
    for i in range(np.uint64(ptr.size) - ONE):
        for t in range(np.uint64(ptr[i]), np.uint64(ptr[i + ONE])):
            b, e = np.uint64(begin[t]), np.uint64(end[t])
            if t + AHEAD < total:
                prefetch(slots, np.uint64(hashes[t + AHEAD]) & last)
            place = look_up(text, b, e, hashes[t], slots, offsets, arena)
            if slots[place] == ZERO:
                append(text, b, e, n, offsets, arena)
                hash_of[n] = hashes[t]
                tally[THREE * n], tally[THREE * n + ONE], tally[THREE * n + TWO] = 0, 0, -1
                n += ONE
                slots[place] = np.uint64(hashes[t]) << HALF | n
            name = (slots[place] & LOW_HALF) - ONE
            tally[THREE * name] += 1
            tally[THREE * name + ONE] += np.int64(tally[THREE * name + TWO] != document)
            tally[THREE * name + TWO] = document
            keys[t] = i << ROW_SHIFT | name
        document += 1
    return n


@kernel
def find(
    text: Array,
    begin: Array,
    end: Array,
    hashes: Array,
    ptr: Array,
    slots: Array,
    offsets: Array,
    arena: Array,
    columns: Array,
    keys: Array,
    key_ptr: Array,
) -> None:
    """Write the keys of the n-grams that have a column, and where those of each row begin."""
    q, total, last = ZERO, np.uint64(begin.size), np.uint64(slots.size) - ONE
    for i in range(np.uint64(ptr.size) - ONE):
        key_ptr[i] = q
        for t in range(np.uint64(ptr[i]), np.uint64(ptr[i + ONE])):
            if t + AHEAD < total:
                prefetch(slots, np.uint64(hashes[t + AHEAD]) & last)
            place = look_up(text, np.uint64(begin[t]), np.uint64(end[t]), hashes[t], slots, offsets, arena)
            if slots[place] != ZERO:
                column = columns[(slots[place] & LOW_HALF) - ONE]
                if column >= 0:
                    keys[q] = i << ROW_SHIFT | np.uint64(column)
                    q += ONE
    key_ptr[np.uint64(ptr.size) - ONE] = q


@kernel
def fill_slots(hash_of: Array, n: int, slots: Array) -> None:
    """Put n names, all different, into empty slots."""
    last = np.uint64(slots.size) - ONE
    for i in range(np.uint64(n)):
        place = np.uint64(hash_of[i]) & last
        while slots[place] != ZERO:
            place = (place + ONE) & last
        slots[place] = np.uint64(hash_of[i]) << HALF | (i + ONE)


@part
def knows(hashed, column, heads, hash_of, next_name):
    """Tell whether a name with this hash is kept, and the last name of the column (counted from 1; 0: none)."""
    head = heads[column]
    if head == ZERO:
        return False, ZERO
    i = head & LOW_HALF
    if head >> HALF == np.uint64(hashed):
        return True, i
    while next_name[i - ONE] != 0:
        i = np.uint64(next_name[i - ONE])
        if hash_of[i - ONE] == hashed:
            return True, i
    return False, i


@kernel
def remember(
    text: Array,
    begin: Array,
    end: Array,
    hashes: Array,
    d: int,
    n: int,
    limit: int,
    heads: Array,
    hash_of: Array,
    next_name: Array,
    offsets: Array,
    arena: Array,
    more: Array,
) -> int:
    """Keep the n-grams that are new as names from n on, up to `limit`; return how many names there are.

    more[j] is set where a name of column j could not be kept.
    """
    n, limit, total, d = np.uint64(n), np.uint64(limit), np.uint64(begin.size), np.uint32(d)
    for t in range(total):
        if t + AHEAD < total:
            prefetch(heads, column_of(hashes[t + AHEAD], d))
        column = column_of(hashes[t], d)
        is_kept, last = knows(hashes[t], column, heads, hash_of, next_name)
        if is_kept:
            continue
        if n >= limit:
            more[column] = 1
            continue
        append(text, np.uint64(begin[t]), np.uint64(end[t]), n, offsets, arena)
        hash_of[n], next_name[n] = hashes[t], 0
        n += ONE
        if last == ZERO:
            heads[column] = np.uint64(hashes[t]) << HALF | n
        else:
            next_name[last - ONE] = np.int32(n)
    return n


@kernel
def link(hash_of: Array, n: int, d: int, heads: Array, next_name: Array) -> None:
    """Make heads and links of n names."""
    d = np.uint32(d)
    for i in range(np.uint64(n)):
        column = column_of(hash_of[i], d)
        next_name[i] = 0
        _, last = knows(hash_of[i], column, heads, hash_of, next_name)
        if last == ZERO:
            heads[column] = np.uint64(hash_of[i]) << HALF | (i + ONE)
        else:
            next_name[last - ONE] = np.int32(i + ONE)
