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
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from separatrix.engine.labels import Codes, are_mixed
from separatrix.engine.rows import NO_ORDER, Ints, Rows, frozen
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


def run_length(n: int, row_bytes: int) -> int:
    """Return how many neighbouring rows make a run of the shuffle."""
    return max(1, min(RUN_BYTES // row_bytes, n // FEWEST_RUNS))


def order_for(order: str, rows: Rows, codes: Codes) -> str:
    """Return the order to visit these examples in: where labels come in runs, the shuffle is a permutation."""
    by_runs = order == "shuffle" and run_length(rows.n, rows.row_bytes) > 1
    return "permutation" if by_runs and not are_mixed(codes) else order


def visits(order: str, rows: Rows, seed: int, number: int) -> Iterator[Visits]:
    """Yield the visits of pass `number`, from 0, block by block; `order` is that of `order_for`."""
    n, block = rows.n, rows.block
    if order == "cyclic":
        whole = NO_ORDER
    else:
        rng = np.random.default_rng([seed, number])
        run = run_length(n, rows.row_bytes)
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
