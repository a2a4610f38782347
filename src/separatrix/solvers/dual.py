"""Training in the dual: stored scores are updated, so that the cost of a pass depends on its mistakes (L4 2; F&S 1999).

The scores of each example are stored as of its last visit. When it is visited again, only its kernel values with the
mistakes made since then are needed: examples × mistakes over a whole training, whatever the number of passes. Blocks of
examples are multiplied with blocks of mistakes by BLAS; products with examples mistaken earlier come from a cache.

The invariant: the scores of example i are the sum of the effects of the first `_absorbed[i]` corrections, and all of
them are included when it is presented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from separatrix.engine.mistake_columns import Column
from separatrix.engine.orders import order_for, visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, frozen
from separatrix.engine.stopping import StateDigests
from separatrix.kernels.learning import dual
from separatrix.solvers.dual_ledger import DualLedger
from separatrix.solvers.dual_votes import Voters
from separatrix.solvers.kernel_matrix import COLUMNS, BlockSide, Kernel, KernelRows
from separatrix.solvers.projectron import ProjectedRun
from separatrix.solvers.threads import ForEach, one_by_one

BLOCK = 1000
"""The scores of so many examples are updated at once …"""
SHORT_BLOCK = 128
"""… and so many of them are then presented together, with the matrix of their kernel values."""
ROWS_PER_TASK = 250
PARALLEL_ENTRIES = 1 << 15
"""A block of products with at least so many entries is computed in threads, in tasks of so many rows."""
NONE = -1
"""In place of a number that is not there."""
NO_GRAM: Floats = np.empty((0, 0))


class Corrections:
    """The corrections in order, as the kernels read them."""

    def __init__(self) -> None:
        self._columns = Column("i8"), Column("i4"), Column("i4"), Column("f8")

    def __len__(self) -> int:
        return len(self._columns[0].values)

    def append(self, example: Array, up: Array, down: Array, by: Array) -> None:
        """Add corrections: the examples, the classes raised and lowered, and the sizes."""
        for column, values in zip(self._columns, (example, up, down, by), strict=True):
            column.append(values)

    def since(self, begin: int) -> tuple[Array, ...]:
        """Return the columns from number `begin` on."""
        return tuple(column.values[begin:] for column in self._columns)


class ProductCache:
    """Products of all examples with the examples that were mistaken first, as many of these as fit into the memory.

    Example j has a column, slot[j], and first_correction[j] is the number of the first correction on it. The entry of
    example i in that column is valid once `_absorbed[i]` exceeds first_correction[j]: i absorbed the correction, and its
    product with j was stored then.
    """

    def __init__(self, n: int, kernel: Kernel, megabytes: float) -> None:
        size = 0 if kernel.precomputed else int(megabytes * (1 << 20)) // (n * np.dtype(kernel.dtype).itemsize)
        self.products = np.empty((n, min(n, size)), kernel.dtype)
        self.slot = np.full(n, NONE, np.int64)
        self.first_correction = np.full(n, NONE, np.int64)
        self._used = 0

    def assign_slots(self, examples: Ints, number: int) -> Ints:
        """Give slots to the examples of the corrections from `number` on; return the examples with a new slot."""
        slotted = []
        for k, i in enumerate(examples.tolist()):
            if self.first_correction[i] == NONE:
                self.first_correction[i] = number + k
                if self._used < self.products.shape[1]:
                    self.slot[i] = self._used
                    self._used += 1
                    slotted.append(i)
        return np.array(slotted, np.int64)

    def store(self, members: Ints, examples: Ints, products: Array) -> None:
        """Store the products of the members with those examples that have a slot.

        Slots are given in the order of first corrections, in which `examples` are too. So the examples with a slot come
        first, and their slots are consecutive.
        """
        slots = self.slot[examples]
        count = int(np.count_nonzero(slots != NONE))
        if count:
            self.products[members, slots[0] : slots[0] + count] = products[:, :count]


class DualRun:
    """The state of one training: the scores of all examples, how many corrections they include, and the ledger."""

    def __init__(
        self,
        kernel: Kernel,
        problem: Problem,
        ledger: DualLedger,
        joint: bool,
        cache_mb: float,
        seed: int,
    ) -> None:
        n, K = problem.rows.n, ledger.n_outputs
        self.kernel, self.problem, self.ledger, self.joint = kernel, problem, ledger, joint
        self.seed, self.presented = seed, 0
        self._for_each: ForEach = one_by_one
        self.examples = KernelRows(kernel, problem.rows)
        self.scores = np.zeros((n, K))
        self.corrections = Corrections()
        self._active = np.flatnonzero(problem.weight) if problem.weight.size else np.arange(n)
        self._absorbed = np.zeros(n, np.int64)
        self._cache = ProductCache(n, kernel, cache_mb)
        self._scratch = np.empty(K)
        self._out = tuple(np.empty(SHORT_BLOCK * K, dtype) for dtype in ("i8", "i8", "i4", "i4", "f8", "f8"))

    def present(self, order: Ints) -> int:
        """Present examples in order, writing the ledger; return the number of mistakes."""
        before = len(self.ledger)
        self.presented += len(order)
        with self.kernel.in_threads(len(self._active) > BLOCK) as self._for_each:
            for begin in range(0, len(order), BLOCK):
                block = order[begin : begin + BLOCK]
                self._update(self.examples.side(np.unique(block)))
                for at in range(0, len(block), SHORT_BLOCK):
                    self._present(block[at : at + SHORT_BLOCK])
        return len(self.ledger) - before

    def update_scores(self) -> None:
        """Let all corrections change the scores of every example that is presented.

        Examples that have absorbed equally many corrections are taken together, since a block needs the products with all
        corrections that one of its examples lacks.
        """
        members = self._active[np.argsort(self._absorbed[self._active], kind="stable")]
        with self.kernel.in_threads(len(self._active) > BLOCK) as self._for_each:
            for begin in range(0, len(members), BLOCK):
                self._update(self.examples.side(np.sort(members[begin : begin + BLOCK])))

    def mistakes(self) -> int:
        """Return how many examples the scores get wrong; all scores must have been updated."""
        problem = self.problem
        wrong = dual.count_mistakes(problem.codes, problem.weight, self.scores, self._scratch, self.joint, self.ledger.tie)
        return int(wrong)

    def _update(self, left: BlockSide) -> None:
        """Let the corrections that some examples have not absorbed change their scores."""
        members = left.which
        since, now = int(self._absorbed[members].min()), len(self.corrections)
        if since == now:
            return
        first = self._absorbed[members] - since
        self._absorbed[members] = now
        example, *corrections = self.corrections.since(since)
        mistaken, place, column = np.unique(example, return_index=True, return_inverse=True)
        # `since` is the least number of corrections absorbed by any member: older products are valid for all of them.
        cached = (self._cache.slot[mistaken] != NONE) & (self._cache.first_correction[mistaken] < since)
        fresh = np.flatnonzero(~cached)
        fresh = fresh[np.argsort(place[fresh])]  # by their first correction, which is the order of their slots
        size = ROWS_PER_TASK
        parts = [(left.part(k, k + size), first[k : k + size]) for k in range(0, len(members), size)]
        for chosen in (np.flatnonzero(cached), *(fresh[k : k + COLUMNS] for k in range(0, len(fresh), COLUMNS))):
            if not chosen.size:
                continue
            position = np.full(len(mistaken), NONE)
            position[chosen] = np.arange(len(chosen))
            which = np.flatnonzero(position[column] != NONE)
            events = tuple(frozen(values[which]) for values in (position[column], *corrections))
            right = self.examples.side(mistaken[chosen])
            task = partial(self._absorb, right, bool(cached[chosen[0]]), which, events)
            (self._for_each if len(members) * len(chosen) >= PARALLEL_ENTRIES else one_by_one)(task, parts)

    def _absorb(
        self, right: BlockSide, cached: bool, which: Ints, events: tuple[Array, ...], part: tuple[BlockSide, Ints]
    ) -> None:
        """Let corrections change the scores of a part of the examples, each from the first one on that it lacks."""
        left, first = part
        begin, end = np.searchsorted(which, first), np.full(len(first), len(which))
        if cached:
            products, at, places = self._cache.products, left.which, self._cache.slot[right.which]
        else:
            products, at, places = self.kernel.products(left, right), np.arange(len(first)), NO_ORDER
            self._cache.store(left.which, right.which, products)
        dual.absorb(
            *(products, frozen(at), frozen(places), self.kernel.form, left.norms, right.norms, events, begin, end),
            *(left.which, self.scores, np.empty((2, len(right.which)))),
        )

    def _present(self, order: Ints) -> None:
        """Present a few examples; after the first mistake, with the matrix of their kernel values.

        The compiled code stops at a mistake that it cannot correct without that matrix, and is called again with it. From
        then on it also updates the scores of the members itself.
        """
        members, visit = np.unique(order, return_inverse=True)
        side = self.examples.side(members)
        self._update(side)
        problem, done, products, gram = self.problem, 0, NO_GRAM, NO_GRAM
        while done < len(visit):
            count, done, self.ledger.steps = (
                int(value)
                for value in dual.present(
                    *(gram, frozen(visit), members, problem.codes, problem.weight, self.scores, self._scratch, done),
                    *(False, self.joint, self.ledger.tie, self.ledger.steps, self._out),
                )
            )
            if count:
                self._record(side, products, [column[:count] for column in self._out])
            elif done < len(visit):
                products = self.kernel.products(side, side)
                gram = self.kernel.filled(products, side, side).T.copy()
        self._absorbed[members] = len(self.corrections)

    def _record(self, side: BlockSide, products: Array, mistakes: list[Array]) -> None:
        """Write mistakes into the ledger, and their products with the members into the cache."""
        _, example, up, down, by, _ = mistakes
        fresh = self._cache.assign_slots(example, len(self.corrections))
        if fresh.size:
            self._cache.store(side.which, fresh, products[:, np.searchsorted(side.which, fresh)])
        self.ledger.append(*mistakes)
        self.corrections.append(example, up, down, by)

    def snapshot(self, passes: int) -> tuple[int, int, int]:
        """Return where the ledger is after so many passes."""
        return passes, self.ledger.steps, len(self.ledger)

    def restore(self, snapshot: tuple[int, int, int]) -> None:
        """Go back to an earlier pass."""
        self.ledger.cut_to(*snapshot)

    def voters(self) -> Voters:
        """Return the weights that the run went through."""
        return Voters(self.ledger, self.joint, self.problem.rows)


def visited(order: str, problem: Problem, seed: int, number: int) -> Ints:
    """Return the examples that pass `number`, from 0, presents, in order: those of nonzero weight."""
    parts = [
        block.order[block.begin : block.end].copy() if block.order.size else np.arange(block.begin, block.end)
        for block in visits(order_for(order, *problem[:2]), problem.rows, seed, number)
    ]
    whole = np.concatenate(parts)
    return whole[problem.weight[whole] != 0.0] if problem.weight.size else whole


class DualPasses:
    """The passes of a training in the dual."""

    def __init__(self, run: DualRun | ProjectedRun, order: str, accuracy: Callable[[], float] | None) -> None:
        self.run, self.order, self._accuracy = run, order, accuracy
        self._digests = StateDigests()

    def make_pass(self, number: int) -> tuple[int, float]:
        """Present all examples once; a loss is not kept."""
        self.run.update_scores()
        self.run.ledger.begin_pass()
        return self.run.present(visited(self.order, self.run.problem, self.run.seed, number)), 0.0

    def sweep_is_clean(self) -> bool:
        """Tell whether no example is a mistake now; an order that visits all has shown it."""
        return self.order != "random" or not self.run.mistakes()

    def held_out_accuracy(self) -> float | None:
        """Return the accuracy on the held-out examples, if there are any."""
        return None if self._accuracy is None else self._accuracy()

    def snapshot(self, passes: int) -> Any:
        """Return how things are after so many passes."""
        return self.run.snapshot(passes)

    def restore(self, snapshot: Any) -> None:
        """Go back to an earlier pass."""
        self.run.restore(snapshot)

    def finish(self) -> None:
        """Do nothing more."""

    def state(self) -> tuple[Array, ...]:
        """Return a digest of the scores of all examples, which determine all that follows."""
        self.run.update_scores()
        return self._digests.add(self.run.scores)

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return nothing: a training in the dual is not resumed."""
        return ()

    def cycle_start(self, period: int) -> int:
        """Return the first pass whose starting scores come back."""
        return self._digests.first_repeated(period)

    def verdict(self, seconds: float) -> str:
        """Return "undecided": nothing is proven in the space of a kernel."""
        return "undecided"

    def is_finite(self) -> bool:
        """Tell whether all scores are finite."""
        return bool(np.isfinite(self.run.scores).all())
