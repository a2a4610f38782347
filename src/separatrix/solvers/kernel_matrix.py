"""Kernel values between rows, block by block: BLAS makes the inner products, `kernels/dual.py` the values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.parcel import State, StateError, flag, number, whole, word
from separatrix.engine.rows import NO_ORDER, NO_WEIGHT, Array, Floats, Ints, Rows, dense_product, frozen
from separatrix.kernels.learning import dual
from separatrix.solvers.threads import ForEach, in_threads, one_by_one

COLUMNS = 1024
"""A block of products is so many columns wide at most."""
WHOLE_IN_FLOAT32 = float(1 << 24)
KINDS = {"linear": dual.GIVEN, "poly": dual.POLYNOMIAL, "rbf": dual.RBF}


class Kernel:
    """A kernel with its numbers: k(x, z), or k(x, z) + 1 with a bias.

    `form` is what the compiled code reads: the kind, γ, the constant, the degree, the bias. float32 rows are multiplied in
    float32 unless `double`, which is set where sums of whole numbers could be too large for it to be exact.
    """

    def __init__(self, name: str | Callable[..., Any], gamma: float, constant: float, degree: int, bias: bool) -> None:
        self.precomputed = isinstance(name, str) and name == "precomputed"
        self.function = None if isinstance(name, str) else name
        kind = KINDS.get(name, dual.GIVEN) if isinstance(name, str) else dual.GIVEN
        self.form = (kind, float(gamma), float(constant), int(degree), float(bias))
        self.double = True

    def pack(self) -> State:
        """Return the kernel as JSON; a function of the caller's cannot be saved."""
        if self.function is not None:
            raise StateError("a kernel that is a function cannot be stored in a model file: use a named or precomputed one")
        kind, gamma, constant, degree, bias = self.form
        name = "precomputed" if self.precomputed else next(name for name, code in KINDS.items() if code == kind)
        return {
            "kernel": name,
            "gamma": gamma,
            "constant": constant,
            "degree": degree,
            "double": bool(self.double),
            "bias": bool(bias),
        }

    @classmethod
    def unpack(cls, state: State) -> Kernel:
        """Return the kernel of a state."""
        numbers = number(state, "gamma"), number(state, "constant"), whole(state, "degree", 0, 1 << 20), flag(state, "bias")
        kernel = cls(word(state, "kernel", (*KINDS, "precomputed")), *numbers)
        kernel.double = flag(state, "double")
        return kernel

    def choose_precision(self, rows: Rows, radius_squared: float) -> None:
        """Choose the precision of the products for the training rows."""
        self.double = rows.source.dtype != np.float32 or radius_squared >= WHOLE_IN_FLOAT32

    @property
    def dtype(self) -> Any:
        """The type of products between training rows."""
        return np.float64 if self.double or self.precomputed or self.function is not None else np.float32

    def in_threads(self, large: bool) -> AbstractContextManager[ForEach]:
        """Return a context for parallel work with this kernel; a function of the caller is called in one thread."""
        return in_threads(large) if self.function is None else nullcontext(one_by_one)

    def products(self, left: BlockSide, right: BlockSide) -> Array:
        """Return ⟨x, z⟩ for the rows x of one side and z of the other; of a precomputed kernel or a function, its values."""
        if self.precomputed:
            return left.entries(right.which)
        if self.function is not None:
            return self._called(left, right)
        return dense_product(left.points, right.points.T)

    def _called(self, left: BlockSide, right: BlockSide) -> Array:
        assert self.function is not None
        values = np.ascontiguousarray(self.function(left.points, right.points), dtype=np.float64)
        expected = (len(left.which), len(right.which))
        if values.shape != expected:
            raise ValueError(
                f"the kernel returned an array of shape {values.shape} for {expected[0]} and {expected[1]} rows: it takes "
                "two matrices and must return k(x, z) for each row x of the first and z of the second"
            )
        if not np.isfinite(values).all():
            raise ValueError("the kernel returned NaN or infinity: its values must be finite")
        return values

    def values(self, left: BlockSide, right: BlockSide) -> Floats:
        """Return the kernel values, bias included."""
        out = np.empty((len(left.which), len(right.which)))
        for begin in range(0, len(right.which), COLUMNS):
            columns = right.part(begin, begin + COLUMNS)
            self._fill(self.products(left, columns), left, columns, out, begin)
        return out

    def filled(self, products: Array, left: BlockSide, right: BlockSide) -> Floats:
        """Return the kernel values that follow from products."""
        out = np.empty(products.shape)
        self._fill(products, left, right, out, 0)
        return out

    def _fill(self, products: Array, left: BlockSide, right: BlockSide, out: Floats, begin: int) -> None:
        scratch = np.empty((2, products.shape[1]))
        dual.fill(products, NO_ORDER, self.form, left.norms, right.norms, scratch, out, begin)


class KernelRows:
    """Rows with the norms that the kernel needs; the columns of a precomputed kernel have no rows."""

    def __init__(self, kernel: Kernel, rows: Rows | None) -> None:
        self.kernel, self.rows, self.norms = kernel, rows, NO_WEIGHT
        if kernel.form[0] == dual.RBF and rows is not None:
            sides = (self.side(np.arange(begin, end)).points for begin, end in rows.blocks())
            self.norms = np.concatenate([_squared_norms(points) for points in sides] or [NO_WEIGHT])

    def side(self, which: Ints) -> BlockSide:
        """Return some of the rows as one side of a block of kernel values."""
        return BlockSide(self, which)


class BlockSide:
    """Some of the rows, as one side of a block of kernel values."""

    def __init__(self, rows: KernelRows, which: Ints) -> None:
        self._kernel_rows, self.which = rows, which
        self.norms = frozen(rows.norms[which]) if rows.norms.size else NO_WEIGHT

    @cached_property
    def points(self) -> Any:
        """The rows themselves, as BLAS multiplies them."""
        assert self._kernel_rows.rows is not None
        points = self._kernel_rows.rows.take(self.which).source
        return points.astype(np.float64) if self._kernel_rows.kernel.double and points.dtype != np.float64 else points

    def entries(self, columns: Ints) -> Array:
        """Return some columns of these rows: of a precomputed kernel, the values."""
        assert self._kernel_rows.rows is not None
        source = self._kernel_rows.rows.source
        if sp.issparse(source):
            return np.asarray(source[self.which][:, columns].toarray(), dtype=np.float64)
        return np.asarray(source[np.ix_(self.which, columns)], dtype=np.float64)

    def part(self, begin: int, end: int) -> BlockSide:
        """Return some of these rows."""
        return BlockSide(self._kernel_rows, self.which[begin:end])


def _squared_norms(points: Any) -> Floats:
    if sp.issparse(points):
        return np.asarray(points.multiply(points).sum(axis=1), dtype=np.float64).reshape(-1)
    norms: Floats = np.einsum("ij,ij->i", points, points, dtype=np.float64)
    return norms


def variance(rows: Rows) -> float:
    """Return the variance of all entries of a matrix, zeros included, block by block."""
    size = rows.n * rows.d
    if rows.sparse:
        mean = float(rows.source.data.sum(dtype=np.float64)) / size
        squares = float(np.sum((rows.source.data.astype(np.float64) - mean) ** 2))
        return float(squares + (size - rows.source.nnz) * mean**2) / size
    blocks = [slice(begin, begin + rows.block) for begin in range(0, rows.n, rows.block)]
    mean = sum(float(rows.source[b].sum(dtype=np.float64)) for b in blocks) / size
    squares = sum(float(np.sum(np.square(rows.source[b] - mean, dtype=np.float64))) for b in blocks)
    return squares / size
