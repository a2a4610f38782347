"""Other coordinates for data that floating point cannot resolve: very large or small, nearly equal columns, long integers.

Multiplying every x̃ by the same power of two is exact and leaves separators and witnesses as they are; margins and norms are
multiplied by it. So a set whose numbers would overflow or underflow when squared is proven about at an ordinary size.

Separability does not depend on the basis: if x = Bᵀc for an invertible B, then ⟨w,x⟩ = ⟨Bw,c⟩. In a basis of the data's own
rows the coordinates c are of moderate size. They are computed exactly and rounded only afterwards, so that no digit that
matters is lost to cancellation between the original columns.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.engine.rows import Floats, Ints, Rows, frozen
from separatrix.kernels.modular import PRIME
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.rationals import System, Whole, independent

MOST_CELLS = 40_000
ORDINARY = 300
"""Data whose longest row is within 2^±300 are taken as they are."""


class MovedPairs(Pairs):
    """Pairs in a basis of rows: row i of `table` holds whole numbers, `sizes[i]` times its coordinates."""

    def __init__(self, pairs: Pairs) -> None:
        single = Pairs(pairs.rows, np.ones(pairs.rows.n, np.int64), 2, pairs.bias)
        original, self.shifts = single.whole(np.arange(pairs.rows.n))
        basis, self.columns = independent(original)
        B = original[np.ix_(basis, self.columns)]
        across, self.down, self.original_m = System(B.T.copy()), System(B), pairs.m
        solved = [across.solve(row[self.columns]) for row in original]
        self.sizes = [lcm(1, *(value.denominator for value in row)) for row in solved]
        self.table: Whole = np.array([_whole(row, size) for row, size in zip(solved, self.sizes, strict=True)], object)
        self.table = self.table.reshape(pairs.rows.n, len(basis))
        tops = [max((abs(value) for value in row), default=0) or 1 for row in self.table]
        C = np.array([[value / top for value in row] for row, top in zip(self.table, tops, strict=True)]).reshape(
            self.table.shape
        )
        super().__init__(Rows(frozen(C)), pairs.codes, pairs.K, False)

    def whole(self, pairs: Ints) -> tuple[Whole, list[int]]:
        """Return the vectors of some pairs as integers."""
        return self._placed(self.table[self.row_of(pairs)], pairs), [0] * self.dim

    def residues(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return rows modulo p."""
        return np.asarray((self.table[begin:end] % PRIME).astype(np.int64))

    def back(self, w: Any) -> list[Fraction]:
        """Return a w found here in the original coordinates, exactly."""
        numbers = [Fraction(value) for value in (w.tolist() if isinstance(w, np.ndarray) else w)]
        full: list[Fraction] = []
        for k in range(self.blocks):
            part = numbers[k * self.m : (k + 1) * self.m]
            scale = lcm(1, *(number.denominator for number in part))
            vector = [Fraction(0)] * self.original_m
            for j, value in zip(self.columns, self.down.solve(np.array(_whole(part, scale), object)), strict=True):
                vector[j] = value * (1 << self.shifts[j]) / scale
            full += vector
        return full


def at_ordinary_size(pairs: Pairs) -> tuple[Pairs, int] | None:
    """Return the pairs of 2^−e·x̃ and e, where the largest number is about 2^e; None where that is not needed or not exact.

    The bias becomes a last column of 2^−e.
    """
    rows, bias = pairs.rows, pairs.bias
    e = max(pairs.exponent, 1) if bias else pairs.exponent
    if -ORDINARY <= e <= ORDINARY:
        return None
    source = rows.source
    if rows.sparse:
        scaled = source.astype(np.float64)
        scaled.data = np.ldexp(scaled.data, -e)
        is_exact = np.array_equal(np.ldexp(scaled.data, e), source.data)
        table = sp.hstack([scaled, np.full((rows.n, 1), 2.0**-e)], format="csr") if bias else scaled
    else:
        scaled = np.ldexp(source.astype(np.float64), -e)
        is_exact = np.array_equal(np.ldexp(scaled, e), source)
        table = np.hstack([scaled, np.full((rows.n, 1), 2.0**-e)]) if bias else scaled
    return (Pairs(Rows(table), pairs.codes, pairs.K, False), e) if is_exact else None


def with_rows_at_one_size(pairs: Pairs, spread: float) -> tuple[Pairs, Ints] | None:
    """Return the pairs of 2^−e·x̃ with an e for each row that makes its length about 1, and these e.

    None is returned where the lengths differ by a smaller factor than `spread`, or where float64 would lose digits of a row.
    The bias becomes a last column. A w has leads of the same signs; a weight λ here is the weight 2^−e·λ there.
    """
    norms, rows = pairs.norms, pairs.rows
    if not norms.min() > 0 or not norms.max() / norms.min() > spread:
        return None
    exponents, source = np.frexp(norms)[1].astype(np.int64), rows.source
    if rows.sparse:
        data = _divided_exactly(source.data, np.repeat(exponents, np.diff(source.indptr)))
        if data is None:
            return None
        table = sp.csr_matrix((data, source.indices, source.indptr), source.shape)
        if pairs.bias:
            table = sp.hstack([table, np.ldexp(1.0, -exponents)[:, None]], format="csr")
    else:
        table = np.empty((rows.n, pairs.m))
        table[:, rows.d :] = np.ldexp(1.0, -exponents)[:, None]
        for begin, end in rows.blocks():
            block = _divided_exactly(source[begin:end], exponents[begin:end, None])
            if block is None:
                return None
            table[begin:end, : rows.d] = block
    return Pairs(Rows(table), pairs.codes, pairs.K, False), exponents


def _divided_exactly(numbers: NDArray[Any], exponents: Ints) -> Floats | None:
    """Return numbers·2^−exponents in float64, or None where one of them is not exact."""
    if numbers.dtype.kind in "iu" and numbers.size and max(-int(numbers.min()), int(numbers.max())) > 1 << 53:
        return None
    floats = numbers.astype(np.float64)
    divided: Floats = np.ldexp(floats, -exponents)
    return divided if np.array_equal(np.ldexp(divided, exponents), floats) else None


def with_columns_divided(pairs: Pairs, scales: Floats) -> Pairs | None:
    """Return the pairs of x/scales where some columns are very large or small; None where floating point copes with them.

    Small numbers may be lost beside the largest of their column: what is found has to be checked with the pairs themselves.
    """
    exponents = np.frexp(scales)[1]
    if (np.abs(exponents) <= ORDINARY).all():
        return None
    divisors, source = scales[: pairs.rows.d], pairs.rows.source
    if pairs.rows.sparse:
        divided = source.astype(np.float64)
        divided.data = divided.data / divisors[divided.indices]
    else:
        divided = source / divisors
    if pairs.bias:
        scales.reshape(pairs.blocks, pairs.m)[:, pairs.rows.d] = 1.0
    return Pairs(Rows(divided), pairs.codes, pairs.K, pairs.bias)


def recoordinated(pairs: Pairs) -> MovedPairs | None:
    """Return the pairs in a basis of rows; None where the data are too large for that, or all zero."""
    if pairs.rows.n * pairs.m > MOST_CELLS or not pairs.radius_squared:
        return None
    return MovedPairs(pairs)


def _whole(numbers: list[Fraction], scale: int) -> list[int]:
    return [number.numerator * (scale // number.denominator) for number in numbers]
