"""In which order a pass presents the examples (L1 5 "pick a pair", L2 4, L5 3 "a random one").

Each order is a function of the examples, the seed and the pass only, so a pass can be repeated anywhere with the same
result.

`shuffle` respects the memory: visiting short rows uniformly at random runs at 0.2–0.4 of the speed of reading in order. It
cuts the rows into short runs at a random offset, permutes the runs, and visits windows of sixteen runs each, the rows of a
window in a random pattern that all windows of a pass share. While one window is visited, the next one is prefetched. That
mixes as well as a permutation where neighbours are no more alike than others. In rows sorted by label they are: most windows
would lack the rare class, and the few others would have too much of it. There the shuffle is a permutation.

    shuffle       as above; where rows are few or long, or labels come in runs, it is a permutation
    permutation   every row once, uniformly at random
    cyclic        every row once, in the order of the data
    random        n rows drawn with replacement

Where examples were forgotten, the order is that of all of them, in which those are skipped (`Gaps`): so the order of the
others does not depend on which examples these were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from separatrix.engine.labels import Codes, are_mixed
from separatrix.engine.rows import BLOCK_ROWS, NO_ORDER, Ints, Rows, frozen
from separatrix.kernels.learning.windows import scatter

RUN_BYTES = 1 << 13
"""A run of the shuffle has so many bytes at most …"""
FEWEST_RUNS = 1 << 14
"""… and there are so many runs at least, or each is a single row."""
STREAMS = 16
"""A window has so many runs, which are read side by side."""
FETCH_AHEAD = 32
"""A row is prefetched so many visits before its own."""


class Visits(NamedTuple):
    """Visits begin…end of an order (an empty one: the rows begin…end themselves), with a row to prefetch at each."""

    order: Ints
    begin: int
    end: int
    soon: Ints = NO_ORDER


class Gaps(NamedTuple):
    """The order of examples of which some were forgotten: that of all of them, in which those are skipped.

    `numbers` are the forgotten examples as they were once counted, sorted, and `run` is how many neighbouring rows made a
    run of the shuffle of all of them. What is visited counts on without the forgotten ones.
    """

    numbers: Ints
    run: int

    def joined(self, forgotten: Ints) -> Gaps:
        """Return the gaps after some more examples, sorted, are forgotten, which count without the gaps there are."""
        return Gaps(frozen(np.union1d(self.numbers, self.once(forgotten))), self.run)

    def once(self, numbers: Ints) -> Ints:
        """Return how examples were once counted that now have these numbers."""
        # The number of gaps before the k-th gap is k: as many of them lie before an example as have numbers[k] − k ≤ it.
        before = np.searchsorted(self.numbers - np.arange(len(self.numbers)), numbers, side="right")
        counted: Ints = numbers + before
        return counted

    def now(self, numbers: Ints) -> Ints:
        """Return the numbers of examples, none of them forgotten, that were once counted so."""
        counted: Ints = numbers - np.searchsorted(self.numbers, numbers)
        return counted


NO_GAPS = Gaps(NO_ORDER, 0)


def gaps_for(order: str, rows: Rows, codes: Codes) -> Gaps:
    """Return the order of these examples, of which none is forgotten yet."""
    by_runs = order == "shuffle" and order_for(order, rows, codes) == "shuffle"
    return Gaps(NO_ORDER, run_length(rows.n, rows.row_bytes) if by_runs else 1)


def run_length(n: int, row_bytes: int) -> int:
    """Return how many neighbouring rows make a run of the shuffle."""
    return max(1, min(RUN_BYTES // row_bytes, n // FEWEST_RUNS))


def order_for(order: str, rows: Rows, codes: Codes) -> str:
    """Return the order to visit these examples in: where labels come in runs, the shuffle is a permutation."""
    by_runs = order == "shuffle" and run_length(rows.n, rows.row_bytes) > 1
    return "permutation" if by_runs and not are_mixed(codes) else order


def visits(order: str, rows: Rows, seed: int, number: int, gaps: Gaps = NO_GAPS) -> Iterator[Visits]:
    """Yield the visits of pass `number`, from 0, block by block; `order` is that of `order_for`."""
    if not gaps.numbers.size:
        yield from _visits(order, rows.n, rows.block, run_length(rows.n, rows.row_bytes), seed, number)
        return
    n = rows.n + len(gaps.numbers)
    is_forgotten = np.zeros(n, np.bool_)
    is_forgotten[gaps.numbers] = True
    order = "shuffle" if gaps.run > 1 else order  # however the labels of what is left lie
    for order_of_all, begin, end, soon in _visits(order, n, rows.block, gaps.run, seed, number):
        visited = order_of_all[begin:end] if order_of_all.size else np.arange(begin, end)
        kept = ~is_forgotten[visited]
        # A row to prefetch may be a forgotten one, in whose place another is prefetched.
        ahead = soon[begin:end][kept[: len(soon[begin:end])]]
        left = frozen(gaps.now(visited[kept]))
        yield Visits(left, 0, len(left), frozen(np.minimum(gaps.now(ahead), rows.n - 1)))


def sequence(order: str, n: int, seed: int, number: int, gaps: Gaps) -> Ints:
    """Return all visits of pass `number` to n examples at once; `gaps.run` is known even where there are no gaps."""
    total = n + len(gaps.numbers)
    blocks = _visits(order, total, BLOCK_ROWS, gaps.run, seed, number)
    # Each is copied, since the shuffle writes a block over the one before.
    whole: Ints = np.concatenate(
        [at[begin:end].copy() if at.size else np.arange(begin, end) for at, begin, end, _ in blocks]
    )
    if gaps.numbers.size:
        is_forgotten = np.zeros(total, np.bool_)
        is_forgotten[gaps.numbers] = True
        whole = gaps.now(whole[~is_forgotten[whole]])
    return whole


def _visits(order: str, n: int, block: int, run: int, seed: int, number: int) -> Iterator[Visits]:
    """Yield the visits of n rows, so many at a time, with runs of so many rows in the shuffle."""
    if order == "cyclic":
        whole = NO_ORDER
    else:
        rng = np.random.default_rng([seed, number])
        if order == "shuffle" and run > 1:
            yield from _shuffled(n, block, rng, run)
            return
        whole = frozen(rng.integers(n, size=n) if order == "random" else rng.permutation(n))
    for begin in range(0, n, block):
        yield Visits(whole, begin, min(begin + block, n), whole[FETCH_AHEAD:])


def _shuffled(n: int, block: int, rng: np.random.Generator, run: int) -> Iterator[Visits]:
    """Yield the visits of a shuffle with runs of so many rows.

    Visit t of a window is row `place[t]` of its run `stream[t]`. The random offset may cut off the first and the last run of
    the data: the compiled code leaves out rows below 0 and above n − 1.
    """
    starts = rng.permutation(np.arange(-int(rng.integers(run)), n, run))
    stream, place = np.divmod(rng.permutation(run * STREAMS), run)
    windows = -(-len(starts) // STREAMS)
    at_once = max(1, block // len(stream))
    order, soon = np.empty((2, at_once * len(stream)), np.int64)
    for begin in range(0, windows, at_once):
        end = min(begin + at_once, windows)
        m = int(scatter(starts, stream, place, run, STREAMS, n, begin, end, order, soon))
        yield Visits(frozen(order[:m]), 0, m, frozen(soon[:m]))
