"""Conversion between Arrow arrays and NumPy arrays or Python values, without pandas.

`pa.array`, `pa.scalar` and `to_numpy` import pandas wherever it is installed, which takes longer than to train on a small
file. These functions read and write Arrow's buffers instead: the bits of the truth values and of what is not null, the
numbers, and for texts the bytes and the offset at which each begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

_EXACT = 1 << 53
"""Up to this size, every whole number is a float."""
_SMALL_OFFSETS = (pa.string(), pa.binary())


def number_array(values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers or truth values as an Arrow array of the same type, with null where they are `missing`."""
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    buffers = [_validity(missing), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def text_array(values: Iterable[str | bytes | None], arrow_type: Any = _SMALL_OFFSETS[0]) -> pa.Array:
    """Return texts as an Arrow array of strings or bytes, large ones or not, with null for None.

    Examples
    --------
    >>> text_array(["a", None, "é"]).to_pylist()
    ['a', None, 'é']
    """
    listed = list(values)
    encoded = [value.encode() if isinstance(value, str) else value or b"" for value in listed]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    if arrow_type in _SMALL_OFFSETS:
        if offsets[-1] > np.iinfo(np.int32).max:
            raise OverflowError(f"{offsets[-1]:,} bytes are too many for an Arrow array of type {arrow_type}")
        offsets = offsets.astype(np.int32)
    missing = np.array([value is None for value in listed], np.bool_) if None in listed else None
    buffers = [_validity(missing), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(arrow_type, len(encoded), buffers)


def value_array(values: Sequence[Any]) -> pa.Array:
    """Return strings, numbers or truth values as an Arrow array of the type that `pa.array` infers; None is null."""
    types = set(map(type, values)) - {type(None)}
    if not types:
        return pa.nulls(len(values))
    if types == {str}:
        return text_array(values)
    whole = [value for value in values if type(value) is int] if int in types else []
    bound = _EXACT if float in types else np.iinfo(np.int64).max
    if types not in ({bool}, {int}, {float}, {int, float}) or any(abs(value) > bound for value in whole):
        return pa.array(values)  # of other types, or of several: pyarrow knows, or raises
    dtype = {"bool": np.bool_, "int": np.int64}.get(next(iter(types)).__name__ if len(types) == 1 else "", np.float64)
    missing = np.array([value is None for value in values], np.bool_)
    return number_array(np.array([0 if value is None else value for value in values], dtype), missing)


def numpy_array(column: Any) -> NDArray[Any]:
    """Return what `column.to_numpy(zero_copy_only=False)` returns for an Arrow array or chunked array.

    The numbers of an array without nulls are not copied. Null among numbers is NaN. Texts are Python objects.
    """
    if isinstance(column, pa.ChunkedArray):
        parts = [numpy_array(chunk) for chunk in column.chunks]
        return np.concatenate(parts) if parts else column.to_numpy()
    arrow_type = column.type
    is_bits = kinds.is_boolean(arrow_type)
    if kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type) or (is_bits and column.null_count):
        return np.array(column.to_pylist(), object)
    if not (is_bits or kinds.is_integer(arrow_type) or kinds.is_floating(arrow_type)):
        result: NDArray[Any] = column.to_numpy(zero_copy_only=False)  # dates, bytes and others, where speed does not matter
        return result
    valid, data = column.buffers()
    if is_bits:
        return _bits(data, column.offset, len(column))
    dtype = np.dtype(arrow_type.to_pandas_dtype())
    numbers = np.empty(0, dtype)
    if len(column):
        numbers = np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)
    if column.null_count:
        numbers = numbers.astype(dtype if dtype.kind == "f" else np.float64)
        numbers[~_bits(valid, column.offset, len(column))] = np.nan
    else:
        numbers.flags.writeable = False  # the buffer belongs to the column
    return numbers


def _validity(missing: NDArray[np.bool_] | None) -> Any:
    """Return the buffer of bits that are 1 where a value is not missing, or None if none is."""
    return None if missing is None or not missing.any() else pa.py_buffer(np.packbits(~missing, bitorder="little"))


def _bits(buffer: Any, offset: int, n: int) -> NDArray[np.bool_]:
    """Return n bits of a buffer from `offset` on."""
    if not n:
        return np.empty(0, np.bool_)
    first, skipped = divmod(offset, 8)
    packed = np.frombuffer(buffer, np.uint8, (skipped + n + 7) // 8, first)
    return np.unpackbits(packed, bitorder="little")[skipped : skipped + n].view(np.bool_)
