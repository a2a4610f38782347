"""What work on shards returns: results that add up, in the order of the shard numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from separatrix.cluster.feature_rows import FeatureRows
from separatrix.cluster.shards import ShardReader
from separatrix.cluster.summaries import Summaries
from separatrix.engine.rows import Floats


class FirstReader(NamedTuple):
    """How shards are read, from the first shard that has any examples; None if it has none."""

    reader: ShardReader | None

    def __add__(self, other: FirstReader) -> FirstReader:  # type: ignore[override]
        return self if self.reader is not None else other


class Sum(NamedTuple):
    """Numbers that are added."""

    values: Floats

    def __add__(self, other: Sum) -> Sum:  # type: ignore[override]
        return Sum(self.values + other.values)


class Minimum(NamedTuple):
    """A number of which the smallest is kept."""

    value: float

    def __add__(self, other: Minimum) -> Minimum:  # type: ignore[override]
        return min(self, other)


class ItemList(NamedTuple):
    """Items that are put one after the other."""

    items: list[Any]

    def __add__(self, other: ItemList) -> ItemList:  # type: ignore[override]
        return ItemList(self.items + other.items)


class PassResult(NamedTuple):
    """The sums over some shards that mixing needs, and a row of counts for each shard in order."""

    changes: FeatureRows
    counts: Floats

    def __add__(self, other: PassResult) -> PassResult:  # type: ignore[override]
        return PassResult(self.changes + other.changes, np.concatenate([self.counts, other.counts]))


class FirstPass(NamedTuple):
    """The first pass over some shards, made while they were read; no result where the shards differ in their classes."""

    classes: list[Any]
    result: PassResult | None

    def __add__(self, other: FirstPass) -> FirstPass:  # type: ignore[override]
        if self.result is None or other.result is None or self.classes != other.classes:
            return FirstPass(self.classes, None)
        return FirstPass(self.classes, self.result + other.result)


class ShardsRead(NamedTuple):
    """The summaries of some shards, by number, and the first pass over those of them that are trained on."""

    summaries: Summaries
    first_pass: FirstPass | None = None

    def __add__(self, other: ShardsRead) -> ShardsRead:  # type: ignore[override]
        passes = [read.first_pass for read in (self, other) if read.first_pass is not None]
        first_pass = passes[0] + passes[1] if len(passes) == 2 else passes[0] if passes else None
        return ShardsRead(self.summaries | other.summaries, first_pass)
