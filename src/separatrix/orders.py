"""In which order a pass presents the examples (L1 5 "pick a pair", L2 4, L5 3 "a random one").

Each order is a function of (n, seed, pass) alone, so that a pass can be run again, anywhere, and comes out the same.

`shuffle` is made for the memory: visiting rows uniformly at random runs at 0.13–0.3 of the speed of reading them in order.
It cuts the rows into runs at a random offset, takes the runs in random order, and deals one row in turn from each of
a few of them, so that the hardware reads a few streams while neighbouring presentations come from far-apart places.
"""

from collections.abc import Iterator

import numpy as np

from separatrix.kernels import passes
from separatrix.rows import NO_ORDER, Ints, Rows, frozen

ORDERS = ("shuffle", "permutation", "cyclic", "random")
RUN_BYTES = 1 << 15
FEWEST_RUNS = 512
STREAMS = 4


def run_length(n: int, row_bytes: int) -> int:
    """Return how many neighbouring rows make a run of the shuffle."""
    return max(1, min(RUN_BYTES // row_bytes, n // FEWEST_RUNS))


def visits(order: str, rows: Rows, seed: int, number: int) -> Iterator[tuple[Ints, int, int]]:
    """Yield blocks (order, begin, end) of pass `number`, from 0; an empty order means the rows begin…end themselves."""
    n, block = rows.n, rows.block
    if order == "shuffle":
        yield from _shuffled(n, block, seed, number, run_length(n, rows.row_bytes))
        return
    whole = NO_ORDER
    if order != "cyclic":
        rng = np.random.default_rng([seed, number])
        whole = frozen(rng.permutation(n) if order == "permutation" else rng.integers(n, size=n))
    for begin in range(0, n, block):
        yield whole, begin, min(begin + block, n)


def _shuffled(n: int, block: int, seed: int, number: int, run: int) -> Iterator[tuple[Ints, int, int]]:
    rng = np.random.default_rng([seed, number])
    starts = rng.permutation(np.arange(-int(rng.integers(run)), n, run))
    windows = -(-len(starts) // STREAMS)
    at_once = max(1, block // (run * STREAMS))
    buffer = np.empty(at_once * run * STREAMS, np.int64)
    for begin in range(0, windows, at_once):
        m = passes.interleave(starts, run, STREAMS, n, begin, min(begin + at_once, windows), buffer)
        yield frozen(buffer[:m]), 0, int(m)
