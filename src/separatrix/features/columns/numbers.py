"""Columns of numbers: what is learned of them in a stream, and the features they become (L2 12).

Quantiles come from a sample of bounded size: the rows with the smallest keys, a key being a fixed scrambling of the row's
number. So the same rows give the same sample, whatever the batches, and up to the sample's size the quantiles are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.rows import Array, Floats, frozen
from separatrix.features.words.vocabulary import checked_array
from separatrix.kernels.text import tables as kernels

SAMPLE = 1 << 14
SAMPLES = 1 << 24
"""How many values are sampled of a column, and of all columns together."""


def row_keys(first: int, n: int) -> Array:
    """Return the keys of rows `first` … `first` + n − 1: their numbers scrambled, all different (SplitMix64)."""
    z = (np.arange(first + 1, first + n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


class Sample:
    """The values, of those offered, with the smallest keys."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.keys: Array = np.empty(0, np.uint64)
        self.values: Floats = np.empty(0)

    def offer(self, keys: Array, values: Floats) -> None:
        """Take some more values."""
        if len(self.keys) >= self.size:
            low = keys < self.keys.max()
            keys, values = keys[low], values[low]
        self.keys, self.values = np.concatenate([self.keys, keys]), np.concatenate([self.values, values])
        if len(self.keys) > self.size:
            smallest = np.argpartition(self.keys, self.size - 1)[: self.size]
            self.keys, self.values = self.keys[smallest], self.values[smallest]


def cut(values: Floats, n_bins: int) -> Floats:
    """Return thresholds t, some of the values, that x > t divides the values by into about n_bins bins of equal size.

    A value as frequent as a bin should be gets one for itself; where there are at most n_bins different values, each does.

    Examples
    --------
    >>> cut(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]), 4).tolist()
    [2.0, 4.0, 6.0]
    >>> cut(np.array([1.0, 2.0, 3.0, 40.0, 40.0, 40.0, 50.0, 60.0]), 3).tolist()
    [3.0, 40.0]
    """
    different, counts = np.unique(values, return_counts=True)
    if len(different) <= n_bins:
        return different[:-1]
    places = np.searchsorted(np.cumsum(counts), np.arange(1, n_bins) * len(values) / n_bins)
    frequent = np.flatnonzero(counts >= len(values) / n_bins)
    places = np.unique(np.concatenate([places, frequent, frequent[frequent > 0] - 1]))
    return different[places[places < len(different) - 1]]


class NumberColumn:
    """One column of numbers, as it is, scaled, or cut into bins; zero is always 0 or a bin of its own."""

    role = "number"

    def __init__(self, name: str, numbers: str, n_bins: int, thermometer: bool, sample: int = SAMPLE) -> None:
        self.name, self.numbers, self.n_bins, self.thermometer = name, numbers, n_bins, thermometer
        self.n = self.n_missing = self.n_zeros = 0
        self.mean = self.squares = self.largest = 0.0
        self.sample = Sample(sample)
        self.shift, self.scale = 0.0, 1.0
        self.thresholds: Floats = np.empty(0)
        self.n_above = 0

    def learn(self, values: Floats, keys: Array) -> None:
        """Learn from a block of values, NaN where missing, and the keys of its rows."""
        there = values == values
        missing = len(values) - int(there.sum())
        if missing:
            values, keys = values[there], keys[there]
        self.n_missing += missing
        if not len(values):
            return
        nonzero = np.flatnonzero(values)
        self.n_zeros += len(values) - len(nonzero)
        if self.numbers == "bins":
            self.n += len(values)
            self.sample.offer(keys[nonzero], values[nonzero])
        else:
            self._survey(values)

    def _survey(self, values: Floats) -> None:
        """Bring number, mean, squared deviations and largest size up to date, block by block."""
        with np.errstate(over="ignore", invalid="ignore"):  # `settle` looks at what has overflowed
            n, mean = len(values), float(values.mean())
            total, apart = self.n + n, mean - self.mean
            self.squares += float(((values - mean) ** 2).sum()) + apart * apart * (self.n * n / total)
        self.mean += apart * (n / total)
        self.n = total
        self.largest = max(self.largest, -float(values.min()), float(values.max()))

    def settle(self) -> None:
        """Fix the features: what was sampled is no longer needed."""
        if self.numbers == "bins":
            self._settle_bins()
        elif self.numbers == "max-abs" and self.largest > 0.0:
            self.scale = 1.0 / self.largest
        elif self.numbers == "standard" and self.n:
            if not np.isfinite(self.squares):
                what = f"column {self.name!r} has numbers up to {self.largest:.3g}, too large for a variance in float64"
                raise ValueError(f"{what}: use numbers='bins' or numbers='max-abs', or divide them")
            deviation = float(np.sqrt(self.squares / self.n))
            self.scale = 1.0 / deviation if deviation > 1e-12 * self.largest else 1.0
            self.shift = self.mean if 2 * self.n_zeros <= self.n else 0.0
        self.sample = Sample(0)

    def _settle_bins(self) -> None:
        values = self.sample.values
        above, below = values[values > 0.0], -values[values < 0.0]
        share = len(above) / max(1, len(values))
        sides = []
        for side, part, other in ((above, share, below), (below, 1.0 - share, above)):
            thresholds = cut(side, max(1, round(self.n_bins * part))) if len(side) else side
            if len(side) and (self.n_zeros or len(other)):
                thresholds = np.concatenate([[0.0], thresholds])
            sides.append(thresholds)
        self.n_above, self.thresholds = len(sides[0]), np.concatenate(sides)

    @property
    def n_values(self) -> int:
        """How many features the values have, the missing ones apart."""
        return len(self.thresholds) if self.numbers == "bins" else int(self.n > 0)

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.n_values + (self.n_missing > 0 and self.n > 0)

    @property
    def variance(self) -> float:
        """About the sum of the variances of its features: Σ q(1 − q) over the shares q of equal bins, or 1."""
        return len(self.thresholds) / 6 if self.numbers == "bins" and self.thermometer else 1.0

    def runs(self, values: Floats, base: int, start: Array, count: Array, value: Array) -> bool:
        """Write the run of features of each value, from feature `base` on; return whether their values are all 1."""
        missing = base + self.n_values if self.width > self.n_values else -1
        if self.numbers == "bins":
            kernels.bins(
                frozen(values), frozen(self.thresholds), self.n_above, self.thermometer, base, missing, start, count
            )
            return True
        if not self.n_values:
            count[:] = 0
            return True
        kernels.scaled(frozen(values), self.shift, self.scale, base, missing, start, count, value)
        return False

    def names_of(self, k: int) -> list[str]:
        """Return the name of feature k."""
        if k >= self.n_values:
            return [f"{self.name} is missing"]
        if self.numbers != "bins":
            return [self.name]
        t, positive = self.thresholds[k], k < self.n_above
        if self.thermometer:
            return [f"{self.name} > {self.spelled(t)}" if positive else f"{self.name} < {self.spelled(-t)}"]
        last = k + 1 == (self.n_above if positive else len(self.thresholds))
        upto = None if last else self.thresholds[k + 1]
        if positive:
            return [f"{self.name} > {self.spelled(t)}" + ("" if upto is None else f" up to {self.spelled(upto)}")]
        return [f"{self.name} < {self.spelled(-t)}" + ("" if upto is None else f" down to {self.spelled(-upto)}")]

    def spread(self, weights: Floats) -> float | None:
        """Return the largest less the smallest part of a score over the bins, and where a value is missing.

        For K classes it is that of the class where it is largest; None if there are no bins.
        """
        if self.numbers != "bins":
            return None
        above, below, missing = np.split(weights, [self.n_above, self.n_values], axis=1)
        sides = [np.cumsum(side, axis=1) if self.thermometer else side for side in (above, below)]
        return float(np.ptp(np.hstack([np.zeros((len(weights), 1)), *sides, missing]), axis=1).max())

    def spelled(self, x: float) -> str:
        """Return a number as the names of features have it."""
        return spell(x)

    def has_unnamed(self, k: int) -> bool:
        """Tell whether feature k stands for more than its names: never."""
        return False

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned."""
        settled = {"shift": self.shift, "scale": self.scale, "n_above": self.n_above}
        counts = {"n": self.n, "n_missing": self.n_missing, "n_zeros": self.n_zeros}
        return settled | counts, {"thresholds": self.thresholds.copy()}

    def restore(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        self.shift, self.scale, self.n_above = float(state["shift"]), float(state["scale"]), int(state["n_above"])
        self.n, self.n_missing, self.n_zeros = int(state["n"]), int(state["n_missing"]), int(state["n_zeros"])
        self.thresholds = checked_array(arrays, "thresholds", np.float64, (-1,))
        if not 0 <= self.n_above <= len(self.thresholds):
            raise ValueError(
                f"the state is broken: column {self.name!r} has {len(self.thresholds)} thresholds, {self.n_above} above 0"
            )


def spell(x: float) -> str:
    """Return a number as people write it: 40 rather than 40.0."""
    return str(int(x)) if float(x).is_integer() and abs(x) < 1e15 else repr(float(x))
