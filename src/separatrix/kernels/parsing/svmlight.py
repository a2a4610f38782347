"""Lines of svmlight text to the rows of a CSR matrix.

    label [qid:number] index:value index:value …  [# comment]

Blank lines and comments are passed over. Indices rise within a line, from `least` (0 or 1) to `most`; they are stored less
`least`. The text ends with a line end and 8 bytes of any value: no byte beyond them is read.
"""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.parsing.decimals import HARD, NUMBER, is_digit, number

NO_LABEL, NO_INDEX, NO_COLON, NO_VALUE, TOO_LOW, NOT_RISING, TOO_HIGH, NO_QUERY = range(1, 9)
"""What can be wrong with a line."""

NEWLINE, HASH, COLON, SPACE, LETTER_Q = (np.uint8(ord(sign)) for sign in "\n#: q")
TAB, RETURN = np.uint8(9), np.uint8(13)
MARK, MINUS, LETTER_N, LETTER_A = (np.uint8(ord(sign)) for sign in "?-na")
LOWER = np.uint8(32)
"""The bit that letters have in lower case."""
_0, _1, _3 = np.uint64(0), np.uint64(1), np.uint64(3)


@part
def _is_blank(byte):
    return byte == SPACE or (TAB <= byte <= RETURN and byte != NEWLINE)


@part
def _ends(byte):
    """Tell whether a byte ends what stands before it."""
    return (byte <= SPACE and (byte == SPACE or TAB <= byte <= RETURN)) or byte == HASH


@part
def _line_end(text, p):
    while text[p] != NEWLINE:
        p += _1
    return p


@part
def _whole(text, p):
    """Read a whole number at p: return (value, where it ends); one of more than 18 digits is −1."""
    begin, value = p, np.int64(0)
    while is_digit(text[p]):
        value = value * 10 + np.int64(text[p]) - 48
        p += _1
    return value if p - begin <= np.uint64(18) else np.int64(-1), p


@part
def _missing_label_end(text, p):
    """Return where a word for a missing label ends that begins at p (?, NA, nan, NaN, NAN, -nan), or p if there is none."""
    q = p
    if text[q] == MARK:
        q += _1
    else:
        if text[q] == MINUS:
            q += _1
        if text[q] | LOWER != LETTER_N or text[q + _1] | LOWER != LETTER_A:
            return p
        q += np.uint64(2)
        if text[q] | LOWER == LETTER_N:
            q += _1
    return q if _ends(text[q]) else p


@kernel
def parse(
    text: Array,
    end: int,
    least: int,
    most: int,
    skip: bool,
    unlabelled: bool,
    values: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    queries: Array,
    lines: Array,
    hard: Array,
    faults: Array,
) -> tuple[int, int, int, int, int, int, int]:
    """Read the lines of text[:end]; return (rows, entries, hard numbers, faults, lines, lowest index, highest index).

    hard[k] is where a number that `float` must read begins (or its index) and its place among the values, −1 − row for a
    label; faults[k] is what is wrong, where, and in which line. At a fault the reading ends, or, to `skip`, goes on with
    the next line. Where rows may be `unlabelled`, a missing label is NaN.
    """
    end, p = np.uint64(end), _0
    row, entry, n_hard, n_faults, line = _0, _0, _0, _0, np.int64(0)
    lowest, highest = np.int64(1 << 40), np.int64(-1)
    indptr[_0] = 0
    while p < end:
        line += 1
        while _is_blank(text[p]):
            p += _1
        if text[p] == NEWLINE or text[p] == HASH:
            p = _line_end(text, p) + _1
            continue
        first, first_hard, wrong, at = entry, n_hard, 0, p
        value, p, state = number(text, p)
        if state > HARD or not _ends(text[p]):
            p = _missing_label_end(text, at) if unlabelled else at
            wrong = NO_LABEL if p == at else 0
            value = np.nan
        elif state == HARD:
            hard[n_hard, 0], hard[n_hard, 1] = at, -1 - np.int64(row)
            n_hard += _1
        labels[row], queries[row], lines[row] = value, -1, line
        previous = np.int64(-1)
        while wrong == 0:
            while _is_blank(text[p]):
                p += _1
            at = p
            if text[p] == NEWLINE or text[p] == HASH:
                break
            if not is_digit(text[p]):
                wrong = NO_INDEX
                if text[p] == LETTER_Q and text[p + _1] == np.uint8(105) and text[p + np.uint64(2)] == np.uint8(100):
                    wrong = NO_QUERY
                    if previous < 0 and queries[row] < 0 and text[p + _3] == COLON and is_digit(text[p + np.uint64(4)]):
                        query, p = _whole(text, p + np.uint64(4))
                        if _ends(text[p]) and query >= 0:
                            queries[row], wrong = query, 0
                continue
            index, p = _whole(text, p)
            if text[p] != COLON:
                wrong = NO_COLON
                continue
            if index <= previous or index < least or index > most:
                wrong = TOO_HIGH if index < 0 or index > most else TOO_LOW if index < least else NOT_RISING
                continue
            value, p, state = number(text, p + _1)
            if state != NUMBER:
                if state == HARD:
                    hard[n_hard, 0], hard[n_hard, 1] = at, entry
                    n_hard += _1
                else:
                    wrong = NO_VALUE
                    continue
            if not _ends(text[p]):
                wrong = NO_VALUE
                continue
            values[entry], indices[entry] = value, index - least
            entry += _1
            previous = index
        if wrong == 0:
            if entry > first:
                lowest, highest = min(lowest, np.int64(indices[first])), max(highest, previous - least)
            row += _1
            indptr[row] = entry
        else:
            if n_faults < np.uint64(faults.shape[0]):
                faults[n_faults, 0], faults[n_faults, 1], faults[n_faults, 2] = wrong, at, line
            n_faults += _1
            entry, n_hard = first, first_hard
            if not skip:
                break
        p = _line_end(text, p) + _1
    return row, entry, n_hard, n_faults, line, lowest, highest
