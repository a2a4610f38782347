"""The types of what kernels take. They are plain tuples: Numba takes 1.6 µs longer to recognise the named ones of a call."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""An array of any one number type; one of size 0 where there is nothing of its kind."""

Whole = int | np.integer[Any]
"""A whole number, of Python or of NumPy where its size matters."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RowParts = tuple[Array, Array, Array]
"""Rows as (data, indices, indptr): those of SciPy's CSR, or a dense matrix flattened, without indices and indptr."""

WeightParts = tuple[Floats, Floats]
"""Weights of K outputs in one flat array, and their K biases."""

SpreadParts = tuple[Floats, Floats, Floats]
"""Σ of the rules that keep one: of the weights, of the biases, and room for one column."""

Settings = tuple[bool, bool, int, int, float]
"""How to learn: (bias, joint, tie, rule, margin), the tie and the rule as their codes."""
