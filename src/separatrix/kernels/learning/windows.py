"""The visits of a shuffle that reads memory in runs (`orders.py` of the engine says why)."""

import numpy as np

from separatrix.kernels.arrays import Array
from separatrix.kernels.compiling import kernel
from separatrix.kernels.learning.rows import ONE, ZERO


@kernel
def scatter(
    starts: Array,
    stream: Array,
    place: Array,
    run: int,
    streams: int,
    n: int,
    begin: int,
    end: int,
    order: Array,
    soon: Array,
) -> int:
    """Write the visits of windows begin…end into order, and into soon the rows of the next window; return how many.

    A window is `streams` runs of `run` rows each, which begin at the rows in starts. Visit p of it goes to row place[p] of
    its run stream[p]; meanwhile the next window is prefetched from end to end. Rows outside 0…n do not exist: the first run
    may begin before row 0, and the last one may end after row n.
    """
    # (stream, place) is a permutation of all pairs (s, r), so each row of a window is visited once. The loop over s and r
    # counts p through the window a second time, in memory order: visit p prefetches row r of run s of the next window.
    m, p = ZERO, ZERO
    n, run = np.int64(n), np.int64(run)
    for window in range(np.int64(begin), np.int64(end)):
        first, p = window * np.int64(streams), ZERO
        following = first + np.int64(streams)
        for s in range(np.int64(streams)):
            coming = starts[np.uint64(following + s)] if following + s < starts.size else np.int64(0)
            for r in range(run):
                k = first + stream[p]
                if k < starts.size:
                    row = starts[np.uint64(k)] + place[p]
                    if 0 <= row < n:
                        order[m], soon[m] = row, min(max(coming + r, 0), n - 1)
                        m += ONE
                p += ONE
    return m
