"""Arrow arrays made from buffers equal those of pyarrow's own conversion, and import no pandas."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from separatrix.data.arrow_arrays import number_array, numpy_array, text_array, value_array

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
SIZES = [0, 1, 7, 8, 9, 1000]


def numbers(dtype, n, rng):
    values = rng.integers(0, 2 if dtype == "?" else 100, n).astype(dtype)
    return values / 3 if dtype[0] == "f" else values


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers(dtype, n):
    rng = np.random.default_rng(n)
    values, missing = numbers(dtype, n, rng), rng.random(n) < 0.3
    for mask in (None, missing, np.zeros(n, np.bool_), np.ones(n, np.bool_)):
        array = number_array(values, mask)
        array.validate(full=True)
        expected = pa.array(values, mask=mask)
        assert array.equals(expected) and array.type == expected.type and array.null_count == expected.null_count
    every_other = np.repeat(values, 2)[::2]
    assert number_array(every_other).equals(pa.array(values))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_texts(arrow_type, n):
    rng = np.random.default_rng(n)
    letters = np.array(list("aé√𝔸 \0"))
    texts = ["".join(rng.choice(letters, rng.integers(0, 5))) for _ in range(n)]
    for values in (texts, [text if rng.random() < 0.7 else None for text in texts], [None] * n, [t.encode() for t in texts]):
        array = text_array(values, arrow_type)
        array.validate(full=True)
        expected = pa.array(values, arrow_type)
        assert array.equals(expected) and array.type == arrow_type and array.null_count == expected.null_count
    with pytest.raises(UnicodeEncodeError):
        text_array(["\ud800"], arrow_type)


@pytest.mark.parametrize(
    "values",
    [
        *(
            [],
            [None],
            ["a", None, "é"],
            [True, None, False],
            [1, None, -(1 << 63) + 1],
            [1.5, None],
            [1, 2.5, None],
            [0.1, 2],
        ),
        *([1 << 53, 0.5], [(1 << 63) - 1], [[1], None], [{"a": 1}], [b"a", None], ["a", b"b"]),
    ],
    ids=repr,
)
def test_values(values):
    array, expected = value_array(values), pa.array(values)
    array.validate(full=True)
    assert array.equals(expected) and array.type == expected.type


@pytest.mark.parametrize("values", [[1, "a"], [True, 1], [(1 << 53) + 1, 0.5], [1 << 70], ["a", 1.5]], ids=repr)
def test_values_that_pyarrow_refuses(values):
    with pytest.raises((ValueError, TypeError, OverflowError)) as expected:
        pa.array(values)
    with pytest.raises(expected.type):
        value_array(values)


def same(column):
    values, expected = numpy_array(column), column.to_numpy(zero_copy_only=False)
    assert values.dtype == expected.dtype and values.flags.writeable == expected.flags.writeable
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_to_numpy(dtype, n):
    rng = np.random.default_rng(n)
    values = numbers(dtype, n, rng)
    for mask in (None, rng.random(n) < 0.3, np.ones(n, np.bool_)):
        column = pa.array(values, mask=mask)
        for part in (column, column.slice(n // 3), column.slice(n // 2, n // 4)):
            same(part)
        if n:
            chunked = pa.chunked_array([column.slice(0, n // 2), column.slice(n // 2)])
            np.testing.assert_array_equal(numpy_array(chunked), chunked.to_numpy())


@pytest.mark.parametrize("arrow_type", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_texts_to_numpy(arrow_type):
    same(pa.array(["a", None, "é"], arrow_type))
    same(pa.array([], arrow_type))
    same(pa.array(["a", "b", "c"], arrow_type).slice(1))


def test_dates_to_numpy():
    same(pa.array([0, 1], pa.date32()))


def test_no_pandas():
    program = """
import sys, numpy as np
from separatrix.data.arrow_arrays import *
for values in (np.arange(3), np.ones(3), np.ones(3, np.bool_)):
    numpy_array(number_array(values)), numpy_array(number_array(values, values > 0))
numpy_array(text_array(["a", None, b"b"]))
for values in (["a", None], [1, None], [1.5, 1], [True]):
    numpy_array(value_array(values))
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
