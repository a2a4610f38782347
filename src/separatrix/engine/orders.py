"""In which order a pass presents the examples (L1 5 "pick a pair", L2 4, L5 3 "a random one").

Each order is a function of the examples, the seed and the pass only, so a pass can be repeated anywhere with the same
result.

`shuffle` respects the memory: visiting rows uniformly at random runs at 0.13–0.3 of the speed of reading them in order. It
cuts the rows into short runs at a random offset, permutes the runs, and visits windows of sixteen runs each, the rows of a
window in a random pattern that all windows of a pass share. While one window is visited, the next one is prefetched. That
mixes as well as a permutation where neighbours are no more alike than others. In rows sorted by label they are: most windows
would lack the rare class, and the few others would have too much of it. There the labels are permuted uniformly, and each
class with many rows brings them in windows of its own.

    shuffle       as above; where rows are few or long, a run has one row, and it is a permutation
    permutation   every row once, uniformly at random
    cyclic        every row once, in the order of the data
    random        n rows drawn with replacement
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from separatrix.engine.labels import Codes, are_mixed
from separatrix.engine.rows import NO_ORDER, Ints, Rows, frozen
from separatrix.kernels.learning import passes

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


class ByClass(NamedTuple):
    """The shuffle of rows whose labels come in runs: the rows of each class with many of them, and all others together."""

    groups: tuple[Ints, ...]


def run_length(n: int, row_bytes: int) -> int:
    """Return how many neighbouring rows make a run of the shuffle."""
    return max(1, min(RUN_BYTES // row_bytes, n // FEWEST_RUNS))


def order_for(order: str, rows: Rows, codes: Codes) -> str | ByClass:
    """Return the order to visit these examples in: where labels come in runs, the shuffle goes by class."""
    if order != "shuffle" or run_length(rows.n, rows.row_bytes) == 1 or are_mixed(codes):
        return order
    many = [c for c, m in enumerate(np.bincount(codes).tolist()) if run_length(m, rows.row_bytes) > 1]
    others = np.flatnonzero(~np.isin(codes, many))
    return ByClass((*(np.flatnonzero(codes == c) for c in many), others))


def visits(order: str | ByClass, rows: Rows, seed: int, number: int) -> Iterator[Visits]:
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
        if isinstance(order, ByClass):
            whole = frozen(_interleaved(order.groups, rng, rows.row_bytes))
        else:
            whole = frozen(rng.integers(n, size=n) if order == "random" else rng.permutation(n))
    for begin in range(0, n, block):
        yield Visits(whole, begin, min(begin + block, n), whole[FETCH_AHEAD:])


def _interleaved(groups: tuple[Ints, ...], rng: np.random.Generator, row_bytes: int) -> Ints:
    """Return all rows, those of each group shuffled and at random places among the others.

    Which group a visit goes to is a uniform permutation. The windows of a few groups are read side by side, so a page of
    memory is looked up once for several rows: a permutation of all rows looks up a page or two for each.
    """
    group_of = np.repeat(np.arange(len(groups), dtype=np.min_scalar_type(len(groups))), [len(group) for group in groups])
    places = np.argsort(rng.permutation(group_of), kind="stable")
    order = np.empty(len(places), np.int64)
    order[places] = np.concatenate([group[_windows(len(group), rng, row_bytes)] for group in groups])
    return order


def _windows(n: int, rng: np.random.Generator, row_bytes: int) -> Ints:
    """Return 0 … n − 1 in the order of a shuffle."""
    if (run := run_length(n, row_bytes)) == 1:
        return rng.permutation(n)
    return np.concatenate([visited.order[: visited.end].copy() for visited in _shuffled(n, n, rng, run)])


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
        m = int(passes.scatter(starts, stream, place, run, STREAMS, n, begin, end, order, soon))
        yield Visits(frozen(order[:m]), 0, m, frozen(soon[:m]))
