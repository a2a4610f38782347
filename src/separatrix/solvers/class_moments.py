"""The weight, mean and covariance of each class, in one pass over data that need not fit in memory (L3 2–3).

    n = Σ c_i        μ = Σ c_i x_i / n        Q = Σ c_i (x_i − μ)(x_i − μ)ᵀ        Σ = Q / n

A block of rows is centred on its own mean and merged into the moments so far (Chan, Golub, LeVeque 1983):

    Q ← Q + Q_b + n·n_b/(n + n_b) · δδᵀ,    μ ← μ + n_b/(n + n_b) · δ,    δ = μ_b − μ

so no large sums are subtracted from each other, and blocks of any size give the same moments but for rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.rows import Floats, Ints, Rows

_BLOCK_BYTES = 1 << 25
_SPARSE_GAIN = 400
"""How many multiplications BLAS makes in the time of one of SciPy's sparse product."""


class Moments:
    """The weight n, the mean μ and the scatter Q of the examples of one class."""

    def __init__(self, d: int) -> None:
        self.n = 0.0
        self.mean: Floats = np.zeros(d)
        self.scatter: Floats = np.zeros((d, d))

    @property
    def covariance(self) -> Floats:
        """The expectation of (x − μ)(x − μ)ᵀ: divided by n, not by n − 1."""
        return self.scatter / self.n

    def add_dense(self, X: Floats, weight: Floats) -> None:
        """Merge rows of positive weight; X is overwritten."""
        n = float(weight.sum())
        mean = np.zeros(X.shape[1])
        for _ in range(2):  # the second time takes away what rounding left of the mean
            step = weight @ X / n
            X -= step
            mean += step
        X *= np.sqrt(weight)[:, None]
        self.scatter += X.T @ X
        self._move(n, mean)

    def add_sparse(self, X: Any, weight: Floats) -> None:
        """Merge the rows of a CSR matrix, of positive weight, never making them dense.

        A column without zeros is centred first. In any other, the mean squared is less than the number of rows times the
        variance, and taking it away costs a few digits at most.
        """
        n, d = float(weight.sum()), X.shape[1]
        full = np.bincount(X.indices, minlength=d) == X.shape[0]
        shift = np.where(full, weight @ X / n, 0.0)
        Z = X.copy()
        Z.data = Z.data - shift[Z.indices]
        rest = weight @ Z / n
        Z.data *= np.repeat(np.sqrt(weight), np.diff(Z.indptr))
        self.scatter += (Z.T @ Z).toarray()
        self.scatter -= np.outer(n * rest, rest)
        self._move(n, shift + rest)

    def _move(self, n: float, mean: Floats) -> None:
        delta = mean - self.mean
        if self.n:
            self.scatter += np.outer(self.n * n / (self.n + n) * delta, delta)
        self.n += n
        self.mean += n / self.n * delta


def merge(moments: list[Moments], rows: Rows, codes: Codes, weight: Floats) -> None:
    """Merge surveyed rows into the moments of their classes, a block at a time; an empty `weight` means 1 for each."""
    lengths = np.diff(rows.source.indptr) if rows.sparse else np.full(rows.n, rows.d)
    sparse = rows.sparse and _SPARSE_GAIN * float(lengths @ lengths.astype(np.float64)) < float(rows.n) * rows.d**2
    row_bytes = 16 * max(1, int(lengths.sum()) // rows.n) if sparse else 8 * rows.d
    block = max(1, _BLOCK_BYTES // row_bytes)
    for begin in range(0, rows.n, block):
        part = slice(begin, begin + block)
        present = weight[part] > 0.0 if weight.size else np.ones(len(codes[part]), bool)
        for k in np.unique(codes[part][present]):
            which: Ints = begin + np.flatnonzero(present & (codes[part] == k))
            shares = weight[which] if weight.size else np.ones(len(which))
            X = rows.source[which]
            if sparse:
                moments[k].add_sparse(X.astype(np.float64), shares)
            else:
                moments[k].add_dense(np.asarray(X.toarray() if rows.sparse else X, dtype=np.float64, order="C"), shares)
