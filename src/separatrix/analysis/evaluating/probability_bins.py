"""Sums over rows with probabilities: log loss, Brier score, and predicted beside observed shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.engine.rows import Floats, Ints

BINS = 10
"""The bins of the calibration error, of equal width."""


@dataclass
class Calibration:
    """Sums over the rows with probabilities: log loss, Brier score, and bins of predicted against true shares.

    Two classes: bins of the probability of the positive class, and the share of rows that are of it. K classes: bins of
    the probability of the predicted class, and the share of rows that are of it.
    """

    positive: int
    n: int
    loss: float
    brier: float
    counts: Floats
    predicted: Floats
    observed: Floats

    @staticmethod
    def empty(positive: int) -> Calibration:
        """Return sums of no row."""
        return Calibration(positive, 0, 0.0, 0.0, *np.zeros((3, BINS)))

    def add(self, true: Ints, decided: Ints, shares: Floats) -> None:
        """Add rows with their probabilities."""
        rows, eps = np.arange(len(true)), np.finfo(np.float64).eps
        self.n += len(true)
        self.loss -= float(np.log(np.clip(shares[rows, true], eps, 1.0 - eps)).sum())
        if shares.shape[1] == 2:
            p, hit = shares[:, self.positive], true == self.positive
            self.brier += float(((p - hit) ** 2).sum())
        else:
            p, hit = shares[rows, decided], true == decided
            self.brier += float((shares**2).sum() - 2.0 * shares[rows, true].sum() + len(true))
        bins = np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], p)
        for sums, values in ((self.counts, None), (self.predicted, p), (self.observed, hit)):
            sums += np.bincount(bins, values, BINS)

    @property
    def error(self) -> float:
        """The expected calibration error: |predicted − observed share| of each bin, weighted by its rows."""
        return float(np.abs(self.predicted - self.observed).sum() / max(1, self.n))

    def bins(self) -> list[dict[str, float]]:
        """Return the bins that have rows: their number, mean probability and observed share."""
        columns = zip(self.counts, self.predicted, self.observed, strict=True)
        return [{"rows": int(n), "predicted": float(p / n), "observed": float(o / n)} for n, p, o in columns if n]
