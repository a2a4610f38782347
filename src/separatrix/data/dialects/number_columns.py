"""The columns of numbers of delimited text, read by a kernel; what is left of the text is for pyarrow.

The kernel gives what pyarrow would: the float64 nearest to what is written. A field that is no plain number is missing where
it is one of the markers. Any other, and a quote around a number, leaves the whole text to pyarrow.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_arrays import number_array
from separatrix.kernels.parsing import records as kernels

_SIGNS = frozenset("0123456789.+-eE")
_NUMERIC = re.compile(r"\s*[+-]?(\d|\.\d)")
"""How a marker of missing values begins that may be a number, too."""


def split_off(
    text: NDArray[np.uint8],
    n: int,
    delimiter: str,
    quote: str | None,
    is_number: Sequence[bool],
    markers: Collection[str],
) -> tuple[list[Any], NDArray[np.uint8]] | None:
    r"""Return the columns of numbers of n records as Arrow arrays, and the text of the others; None: pyarrow must read all.

    Behind the text there is room to read eight bytes more.

    Examples
    --------
    >>> text = np.frombuffer(b"1.5,a,2\n?,b,-3e2\n" + bytes(8), np.uint8)[:-8]
    >>> columns, rest = split_off(text, 2, ",", None, [True, False, True], ["?"])
    >>> [column.to_pylist() for column in columns], rest.tobytes()
    ([[1.5, None], [2.0, -300.0]], b'a\nb\n')
    """
    if delimiter in _SIGNS or not any(is_number) or any(map(_NUMERIC.match, markers)):
        return None
    numbers = np.empty((sum(is_number), n))
    others, rest = np.empty((n, 4), np.int64), np.empty(len(text) + n + 8, np.uint8)
    view = text.view()
    view.flags.writeable = False
    marks = np.uint8(ord(delimiter)), np.uint8(ord(quote) if quote else 0)
    size, n_others = kernels.take_numbers(view, len(text), *marks, np.array(is_number), numbers, others, rest)
    if n_others < 0:
        return None
    missing: dict[int, NDArray[np.bool_]] = {}
    encoded = {marker.encode() for marker in markers}
    for column, row, begin, end in others[:n_others].tolist():
        if text[begin:end].tobytes() not in encoded:
            return None
        missing.setdefault(column, np.zeros(n, np.bool_))[row] = True
    return [number_array(values, missing.get(column)) for column, values in enumerate(numbers)], rest[:size]
