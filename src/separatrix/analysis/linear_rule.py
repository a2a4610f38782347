"""A linear classifier that was found by a search and not by a learner: it predicts by exact signs of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from separatrix.engine.rows import Array, Rows
from separatrix.proofs.search.exact_signs import exact_signs
from separatrix.proofs.search.pairs import Pairs


@dataclass(frozen=True)
class LinearRule:
    """A linear classifier: weights, biases, classes and the meaning of a score of 0.

    The weights are float64, or arrays of `Fraction` where float64 cannot hold a separator.
    """

    coef: Array
    intercept: Array
    classes: Array
    tie: str

    def predict(self, X: Any) -> Array:
        """Return the labels. The signs of scores and of their differences are exact."""
        rows, K = Rows(np.asarray(X) if not hasattr(X, "tocsr") else X.tocsr()), len(self.classes)
        w = [Fraction(value) for value in np.column_stack([self.coef, self.intercept]).reshape(-1).tolist()]
        if K == 2:
            signs = exact_signs(Pairs(rows, np.ones(rows.n), 2, True), w)
            is_positive = signs >= 0 if self.tie == "+1" else signs > 0
            return np.asarray(self.classes[is_positive.astype(np.int64)])
        codes = np.zeros(rows.n, np.int64)
        while True:  # climb from class to class with a higher score, or the same score and a lower number
            signs = exact_signs(Pairs(rows, codes, K, True), w).reshape(rows.n, K)
            better = (signs < 0) | ((signs == 0) & (np.arange(K) < codes[:, None]))
            if not better.any():
                return np.asarray(self.classes[codes])
            codes = np.where(better.any(axis=1), np.argmax(better, axis=1), codes)
