"""Feature templates: what is looked at of a value, and the features of each token, numbered by a hash of 64 bits.

    view       a property of a value: the value itself, its lower case, its first or last characters, its shape
    part       a view of the token `offset` places away; outside the sequence, a mark that says how far outside
    template   one part or more together; a feature is a template with the values of its parts

The hash of a feature follows from the template's seed and from the hashes of its parts. A vocabulary keeps the hash of each
feature: keys[numbers[place]] for a place of open addressing, numbers counted from 1 so that 0 is a free place. Two of a
million features have the same hash with a probability below 10⁻⁷. Hashed features need no vocabulary: the number is the
hash, scaled to n.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.bits import prefetch
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.sequences.columns import ONE, ZERO, finished, hash_of, mix
from separatrix.kernels.text.characters import decode
from separatrix.kernels.text.dictionary import HALF

WHOLE, LOWER, PREFIX, SUFFIX, SHAPE, BRIEF = range(6)
BEFORE, AFTER = np.uint64(0xB5), np.uint64(0xA7)
CONTINUED = np.uint8(0x80)


@part
def after_characters(text, begin, end, n):
    """Return where the first n characters end."""
    while n > 0 and begin < end:
        begin += ONE
        while begin < end and text[begin] & np.uint8(0xC0) == CONTINUED:
            begin += ONE
        n -= 1
    return begin


@part
def before_characters(text, begin, end, n):
    """Return where the last n characters begin."""
    while n > 0 and begin < end:
        end -= ONE
        while begin < end and text[end] & np.uint8(0xC0) == CONTINUED:
            end -= ONE
        n -= 1
    return end


@part
def shape_of(text, begin, end, classes, brief):
    """Return a hash of a value's shape: each character's class, or itself without one; brief: repetitions count once."""
    h, before, p = ZERO, np.int64(-1), begin
    while p < end:
        c, p = decode(text, p, end)
        sign = np.int64(classes[np.uint64(c)])
        sign = c if sign == 0 else sign
        if not brief or sign != before:
            h = mix(h, np.uint64(sign))
        before = sign
    return h


@kernel
def view(
    text: Array, offsets: Array, lower: Array, lower_offsets: Array, classes: Array, kind: int, n: int, out: Array
) -> None:
    """Write a hash of one view of each value; value i is text[offsets[i] : offsets[i+1]]."""
    for i in range(np.uint64(out.size)):
        begin, end = np.uint64(offsets[i]), np.uint64(offsets[i + ONE])
        if kind == WHOLE:
            out[i] = hash_of(text, begin, end, ONE)
        elif kind == LOWER:
            out[i] = hash_of(lower, np.uint64(lower_offsets[i]), np.uint64(lower_offsets[i + ONE]), ONE)
        elif kind == PREFIX:
            out[i] = hash_of(text, begin, after_characters(text, begin, end, n), ONE)
        elif kind == SUFFIX:
            out[i] = hash_of(text, before_characters(text, begin, end, n), end, ONE)
        else:
            out[i] = shape_of(text, begin, end, classes, kind == BRIEF)


@part
def place_of(hashed, keys, numbers):
    """Return the place of a feature, or the free one where it belongs."""
    last = np.uint64(numbers.size) - ONE
    place = hashed & last
    while numbers[place] != 0 and keys[np.uint64(numbers[place]) - ONE] != hashed:
        place = (place + ONE) & last
    return place


@kernel
def fill(keys: Array, n: int, numbers: Array) -> None:
    """Put n features, all different, into empty places."""
    for i in range(np.uint64(n)):
        numbers[place_of(keys[i], keys, numbers)] = np.int32(i + ONE)


@kernel
def extract(
    starts: Array,
    begin: int,
    end: int,
    values: Array,
    n_tokens: int,
    hashes: Array,
    views: tuple[Array, Array],
    parts: tuple[Array, Array, Array, Array],
    vocabulary: tuple[Array, Array],
    n: int,
    hashed_to: int,
    learn: bool,
    keep_unknown: bool,
    scratch: Array,
    indices: Array,
    indptr: Array,
) -> int:
    """Write the features of the tokens of sequences begin…end as CSR rows without values; return how many there are.

    values       the number of each token's value, column after column of n_tokens
    hashes       of all views, one after the other; views = (where those of view v begin, its column)
    parts        (where the parts of a template begin, the view of each part, its offset, the seed of each template)
    vocabulary   (keys, numbers) with n features; not read where hashed_to, the number of hashed features, is not 0
    learn        new features get a number; else they are left out, or written as −1 (`keep_unknown`)
    scratch      room for the hashes of one sequence
    """
    view_at, view_column = views
    part_at, part_view, part_offset, seeds = parts
    keys, numbers = vocabulary
    F, q, origin = np.uint64(seeds.size), ZERO, np.uint64(starts[np.uint64(begin)])
    n, total, last_place = np.uint64(n), np.uint64(n_tokens), np.uint64(numbers.size) - ONE
    indptr[ZERO] = 0
    for s in range(np.uint64(begin), np.uint64(end)):
        first, last = np.int64(starts[s]), np.int64(starts[s + ONE])
        k = ZERO
        for t in range(first, last):
            for f in range(F):
                h = seeds[f]
                for p in range(np.uint64(part_at[f]), np.uint64(part_at[f + ONE])):
                    at = t + np.int64(part_offset[p])
                    if at < first:
                        h = mix(h, BEFORE + np.uint64(first - at))
                    elif at >= last:
                        h = mix(h, (AFTER + np.uint64(at - last)) << HALF)
                    else:
                        v = np.uint64(part_view[p])
                        value = np.uint64(values[np.uint64(view_column[v]) * total + np.uint64(at)])
                        h = mix(h, hashes[np.uint64(view_at[v]) + value])
                h = finished(h)
                scratch[k] = h
                if hashed_to == 0:
                    prefetch(numbers, h & last_place)
                k += ONE
        k = ZERO
        for t in range(np.uint64(first), np.uint64(last)):
            for _ in range(F):
                h = scratch[k]
                k += ONE
                if hashed_to != 0:
                    indices[q] = np.int32(((h >> HALF) * np.uint64(hashed_to)) >> HALF)
                    q += ONE
                    continue
                place = place_of(h, keys, numbers)
                if numbers[place] == 0:
                    if not learn:
                        if keep_unknown:
                            indices[q] = -1
                            q += ONE
                        continue
                    keys[n] = h
                    n += ONE
                    numbers[place] = np.int32(n)
                indices[q] = numbers[place] - np.int32(1)
                q += ONE
            indptr[t - origin + ONE] = np.int64(q)
    return n
