"""Vectors in requests: {"vector": [0.1, …]}, or the same as base64 of little-endian float32 numbers.

Values are rounded to float32. With cosine scaling each vector is divided by its length, and rounded again, so that only its
direction counts. The first vector learned from fixes the dimension.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

import numpy as np

from separatrix.engine.rows import Array, Floats, Ints
from separatrix.web.server.reading.request_errors import RequestError

FLOAT = np.dtype("<f4")
_NUMBERS = {int, float}


class VectorReader:
    """Reads vectors of one dimension, which is 0 while it is not known."""

    def __init__(self, cosine: bool, most: int) -> None:
        self.cosine, self.most = cosine, most
        self.dimension = 0

    def rows(self, inputs: list[Any], place: Callable[[int], str]) -> tuple[Floats, Ints, Ints]:
        """Return the values, columns and row ends of the vectors of a request; raises RequestError."""
        values = [self._values(value, place(i)) for i, value in enumerate(inputs)]
        dimension = self.dimension or len(values[0])
        for i, each in enumerate(values):
            self._check_dimension(len(each), dimension, place(i))
        table = np.stack(values).astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", table, table))
        wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0.0)))
        if wrong.size:
            at = int(wrong[0])
            strange = np.flatnonzero(~np.isfinite(table[at]))
            where = f'{place(at)}"vector"'
            if strange.size:
                raise RequestError(422, f"{where}: value {int(strange[0]) + 1} is not a finite float32 number")
            raise RequestError(422, f"{where} is zero: it has no direction, and says nothing of its class")
        if self.cosine:
            table = (table / lengths[:, None]).astype(np.float32).astype(np.float64)
        return table.reshape(-1), np.tile(np.arange(dimension), len(values)), np.arange(len(values) + 1) * dimension

    def check_known(self, indptr: Ints) -> None:
        """Raise RequestError if vectors that were read before the dimension was known have another one."""
        if self.dimension:
            self._check_dimension(int(indptr[1]), self.dimension, "")

    def _values(self, value: Any, place: str) -> Array:
        where = f'{place}"vector"'
        if isinstance(value, str):
            return unpacked(value, where)
        if type(value) is not list or not value:
            raise RequestError(422, f"{where} must be a list of numbers, or base64 of float32 numbers, and not empty")
        if not set(map(type, value)) <= _NUMBERS:
            at = next(k for k, number in enumerate(value) if type(number) not in _NUMBERS)
            raise RequestError(422, f"{where}: value {at + 1} is not a number")
        with np.errstate(over="ignore"):  # infinity is refused with the others
            return np.array(value, np.float64).astype(np.float32)

    def _check_dimension(self, n: int, dimension: int, place: str) -> None:
        if n > self.most:
            raise RequestError(413, f"{place}{n:,} values exceed the limit of {self.most:,} per example")
        if n != dimension:
            raise RequestError(422, f'{place}"vector" has {n:,} values, and those of this model have {dimension:,}')


def unpacked(text: str, where: str = "the vector") -> Array:
    """Return the values of a packed vector; raises RequestError if it is none."""
    try:
        packed = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        raise RequestError(422, f"{where} is not base64") from None
    if not packed or len(packed) % FLOAT.itemsize:
        raise RequestError(422, f"{where} has {len(packed)} bytes in base64, which are no float32 numbers")
    return np.frombuffer(packed, FLOAT).astype(np.float32)


def packed_vector(values: Floats) -> str:
    """Return float32 values as base64.

    Examples
    --------
    >>> packed_vector(np.array([0.5, -2.0])), unpacked("AAAAPwAAAMA=").tolist()
    ('AAAAPwAAAMA=', [0.5, -2.0])
    """
    return binascii.b2a_base64(values.astype(FLOAT).tobytes(), newline=False).decode()
