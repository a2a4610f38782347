r"""The records of delimited text: where each begins, on which line, and how many fields it has.

    record = field (delimiter field)*  line end;   field = "…" with "" for a quote inside, or bytes up to the next delimiter

A line ends with \n, \r or \r\n. A field is quoted where its first byte is the quote; line ends and delimiters inside are
its own.
"""

import numpy as np

from separatrix.kernels import kernel

NEWLINE, RETURN, SPACE, TAB = (np.uint8(ord(sign)) for sign in "\n\r \t")
_0, _1 = np.uint64(0), np.uint64(1)


@kernel
def split(text, begin, end, delimiter, quote, starts, lines, fields):
    """Find the records of text[begin:end]; return (records, where the last whole one ends, lines up to there).

    Of each record: where it begins, the lines before it, and its fields, 0 for one of blanks alone. Where something other
    than a delimiter or a line end follows a quoted field the number of fields is made negative. quote 0 is no quote.
    """
    end, p = np.uint64(end), np.uint64(begin)
    n, line, most = _0, np.int64(0), np.uint64(starts.size)
    whole, whole_line = p, line
    while p < end and n < most:
        start, count, blank, loose, complete = p, 1, True, False, False
        while p < end and not complete:
            if text[p] == quote and quote != 0:
                p += _1
                blank = False
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
            while p < end and text[p] != delimiter and text[p] != NEWLINE and text[p] != RETURN:
                blank = blank and (text[p] == SPACE or text[p] == TAB)
                p += _1
            if p < end:
                if text[p] == delimiter:
                    count += 1
                else:
                    complete = True
                    line += 1
                    if text[p] == RETURN and p + _1 < end and text[p + _1] == NEWLINE:
                        p += _1
                p += _1
        if complete:
            starts[n], lines[n] = start, whole_line
            fields[n] = 0 if blank and count == 1 else -count if loose else count
            n += _1
            whole, whole_line = p, line
    return n, whole, whole_line


@kernel
def squeeze(text, end, quote, out):
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
