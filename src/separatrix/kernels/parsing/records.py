"""The records of delimited text: where each begins, on which line, and how many fields it has.

    record = field (delimiter field)*  line end;   field = "…" with "" for a quote inside, or bytes up to the next delimiter

A line ends with LF, CR or CRLF. A field is quoted where its first byte is the quote; line ends and delimiters inside are
its own.
"""

import numpy as np

from separatrix.kernels.arrays import Array, Whole
from separatrix.kernels.bits import load64, store64, trailing_zeros
from separatrix.kernels.compiling import kernel, part
from separatrix.kernels.parsing.decimals import NUMBER, PLUS, number

NEWLINE, RETURN, SPACE, TAB = (np.uint8(ord(sign)) for sign in "\n\r \t")
_0, _1, _3, _8 = (np.uint64(k) for k in (0, 1, 3, 8))
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


@part
def _zeros(word):
    """Return a word whose lowest set bit is the top bit of the lowest byte that is 0; 0 where none is."""
    return (word - _ONES) & ~word & _TOPS


@part
def _field_end(text, p, end, delimiter):
    """Return where the next delimiter or line end is, eight bytes at a time, or the end."""
    marks, newlines, returns = _ONES * np.uint64(delimiter), _ONES * np.uint64(NEWLINE), _ONES * np.uint64(RETURN)
    while p + _8 <= end:
        word = load64(text, p)
        ends = _zeros(word ^ marks) | _zeros(word ^ newlines) | _zeros(word ^ returns)
        if ends != _0:
            return p + (trailing_zeros(ends) >> _3)
        p += _8
    while p < end and text[p] != delimiter and text[p] != NEWLINE and text[p] != RETURN:
        p += _1
    return p


@part
def _is_blank(text, begin, end):
    for p in range(begin, end):
        if text[p] != SPACE and text[p] != TAB:
            return False
    return True


@kernel
def split(
    text: Array, begin: int, end: int, delimiter: Whole, quote: Whole, starts: Array, lines: Array, fields: Array
) -> tuple[int, int, int]:
    """Find the records of text[begin:end]; return (records, where the last whole one ends, lines up to there).

    Of each record: where it begins, the lines before it, and its fields, 0 for one of blanks alone. Where something other
    than a delimiter or a line end follows a quoted field the number of fields is made negative. quote 0 is no quote.
    """
    end, p = np.uint64(end), np.uint64(begin)
    n, line, most = _0, np.int64(0), np.uint64(starts.size)
    whole, whole_line = p, line
    while p < end and n < most:
        start, count, quoted, loose, complete = p, 1, False, False, False
        while p < end and not complete:
            if text[p] == quote and quote != 0:
                p += _1
                quoted = True
                closed = False
                while p < end and not closed:
                    byte = text[p]
                    p += _1
                    if byte == quote:
                        if p < end and text[p] == quote:
                            p += _1
                        else:
                            closed = True
                    elif byte == NEWLINE or (byte == RETURN and not (p < end and text[p] == NEWLINE)):
                        line += 1
                if p < end and text[p] != delimiter and text[p] != NEWLINE and text[p] != RETURN:
                    loose = True
            p = _field_end(text, p, end, delimiter)
            if p < end:
                if text[p] == delimiter:
                    count += 1
                else:
                    complete = True
                    line += 1
                    if count == 1 and not quoted and _is_blank(text, start, p):
                        count = 0
                    if text[p] == RETURN and p + _1 < end and text[p + _1] == NEWLINE:
                        p += _1
                p += _1
        if complete:
            starts[n], lines[n] = start, whole_line
            fields[n] = -count if loose else count
            n += _1
            whole, whole_line = p, line
    return n, whole, whole_line


@part
def _quoted_end(text, p, end, quote):
    """Return where a quoted field that begins at p ends: behind its closing quote."""
    p += _1
    while p < end:
        byte = text[p]
        p += _1
        if byte == quote:
            if text[p] != quote or p >= end:
                return p
            p += _1
    return p


@part
def _copied(text, p, end, out, n):
    """Write text[p:end] at out[n]; return where it ends there. Up to eight bytes more are read, and written."""
    size = end - p
    for k in range(_0, size, _8):
        store64(out, n + k, load64(text, p + k))
    return n + size


@kernel
def take_numbers(
    text: Array, end: int, delimiter: Whole, quote: Whole, is_number: Array, numbers: Array, others: Array, rest: Array
) -> tuple[int, int]:
    """Read the numbers of records into numbers[column, row] and write the other fields, as they are, to `rest`.

    Return (size of the rest, fields of numbers that are something else). Of each of those, `others` has the column, the row
    and where it begins and ends; −1 where there is no room for all, or the text is not as many records of as many fields.
    """
    end, p, n_rest, n_others = np.uint64(end), _0, _0, _0
    for row in range(np.uint64(numbers.shape[1])):
        column, first = _0, True
        for j in range(np.uint64(is_number.size)):
            if p >= end or (j > _0 and text[p - _1] != delimiter):
                return np.int64(0), np.int64(-1)
            if is_number[j]:
                value, after, state = number(text, p)
                byte = text[after]
                is_plain = state == NUMBER and text[p] != PLUS
                if not (is_plain and (byte == delimiter or byte == NEWLINE or byte == RETURN)):
                    if n_others == np.uint64(others.shape[0]) or (text[p] == quote and quote != 0):
                        return np.int64(0), np.int64(-1)
                    after, value = _field_end(text, p, end, delimiter), 0.0
                    others[n_others, 0], others[n_others, 1] = column, row
                    others[n_others, 2], others[n_others, 3] = p, after
                    n_others += _1
                numbers[column, row] = value
                column += _1
            else:
                after = _quoted_end(text, p, end, quote) if text[p] == quote and quote != 0 else p
                after = _field_end(text, after, end, delimiter)
                if not first:
                    rest[n_rest] = delimiter
                    n_rest += _1
                n_rest = _copied(text, p, after, rest, n_rest)
                first = False
            p = after + _1
        if p > end or text[p - _1] == delimiter:
            return np.int64(0), np.int64(-1)
        if text[p - _1] == RETURN and p < end and text[p] == NEWLINE:
            p += _1
        rest[n_rest] = NEWLINE
        n_rest += _1
    return np.int64(n_rest), np.int64(n_others) if p == end else np.int64(-1)


@kernel
def squeeze(text: Array, end: int, quote: Whole, out: Array) -> int:
    """Write text[:end] with one tab for each run of blanks outside quotes, none at the ends of lines; return its size."""
    n, pending, begun, quoted = _0, False, False, False
    for p in range(np.uint64(end)):
        byte = text[p]
        if byte == NEWLINE or byte == RETURN:
            pending = begun = quoted = False
        elif not quoted and (byte == SPACE or byte == TAB):
            pending = begun
            continue
        elif byte == quote and (quoted or pending or not begun):
            quoted = not quoted
        if pending:
            out[n] = TAB
            n += _1
            pending = False
        begun = byte != NEWLINE and byte != RETURN
        out[n] = byte
        n += _1
    return n
