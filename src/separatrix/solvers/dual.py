"""Training in the dual: scores kept up to date, so that a pass costs what its mistakes cost (L4 2; F&S 1999).

Each example has its scores as of its last visit. When it is visited again, only the kernel values against the mistakes made
since are needed: examples × mistakes over a whole training, however many passes there are. Blocks of examples meet blocks of
mistakes, so that BLAS makes the products; those with examples that were mistaken before come from a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from separatrix.engine.growable import Column
from separatrix.engine.orders import visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, frozen
from separatrix.engine.stopping import StateDigests
from separatrix.kernels.learning import dual
from separatrix.solvers.dual_ledger import DualLedger
from separatrix.solvers.dual_votes import Voters
from separatrix.solvers.kernel_matrix import COLUMNS, Examples, Kernel, Side
from separatrix.solvers.projectron import ProjectedRun
from separatrix.solvers.threads import Crew, alone

BLOCK = 1000
"""So many examples are brought up to date at once …"""
SHORT_BLOCK = 128
"""… and so many are then presented with their kernel values among themselves at hand."""
PART = 250
WORTHWHILE = 1 << 15
"""A block of products is shared among the hands in parts of so many rows, if it has so many entries."""
NEVER = -1
NO_GRAM: Floats = np.empty((0, 0))


class Corrections:
    """The corrections in order, as the kernels read them."""

    def __init__(self) -> None:
        self._columns = Column("i8"), Column("i4"), Column("i4"), Column("f8")

    def __len__(self) -> int:
        return len(self._columns[0].values)

    def append(self, example: Array, up: Array, down: Array, by: Array) -> None:
        """Add some: on which examples, the classes raised and lowered, and by how much."""
        for column, more in zip(self._columns, (example, up, down, by), strict=True):
            column.append(more)

    def since(self, begin: int) -> tuple[Array, ...]:
        """Return the columns from number `begin` on."""
        return tuple(column.values[begin:] for column in self._columns)


class Cache:
    """Products of all examples with those mistaken first, as many as its memory holds.

    The product of example i with the one that has slot s is there once i has been brought up to date beyond the
    correction at which that one was `born`.
    """

    def __init__(self, n: int, kernel: Kernel, megabytes: float) -> None:
        size = 0 if kernel.precomputed else int(megabytes * (1 << 20)) // (n * np.dtype(kernel.dtype).itemsize)
        self.products = np.empty((n, min(n, size)), kernel.dtype)
        self.slot = np.full(n, NEVER, np.int64)
        self.born = np.full(n, NEVER, np.int64)
        self._used = 0

    def meet(self, examples: Ints, number: int) -> Ints:
        """See the examples of corrections from `number` on; return those that now have a slot for the first time."""
        slotted = []
        for k, i in enumerate(examples.tolist()):
            if self.born[i] == NEVER:
                self.born[i] = number + k
                if self._used < self.products.shape[1]:
                    self.slot[i] = self._used
                    self._used += 1
                    slotted.append(i)
        return np.array(slotted, np.int64)

    def store(self, members: Ints, examples: Ints, products: Array) -> None:
        """Keep the products of the members with those examples that have a slot: they come first, slot after slot."""
        slots = self.slot[examples]
        count = int(np.count_nonzero(slots != NEVER))
        if count:
            self.products[members, slots[0] : slots[0] + count] = products[:, :count]


class DualRun:
    """The state of one training: the scores of all examples, the corrections they know of, and the ledger."""

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
        self._crew: Crew = alone
        self.examples = Examples(kernel, problem.rows)
        self.scores = np.zeros((n, K))
        self.corrections = Corrections()
        self._shown = np.flatnonzero(problem.weight) if problem.weight.size else np.arange(n)
        self._known = np.zeros(n, np.int64)
        self._cache = Cache(n, kernel, cache_mb)
        self._scratch = np.empty(K)
        self._out = tuple(np.empty(SHORT_BLOCK * K, dtype) for dtype in ("i8", "i8", "i4", "i4", "f8", "f8"))

    def present(self, order: Ints) -> int:
        """Present examples in order, writing the ledger; return the number of mistakes."""
        before = len(self.ledger)
        self.presented += len(order)
        with self.kernel.crew(len(self._shown) > BLOCK) as self._crew:
            for begin in range(0, len(order), BLOCK):
                block = order[begin : begin + BLOCK]
                self._bring_up(self.examples.side(np.unique(block)))
                for at in range(0, len(block), SHORT_BLOCK):
                    self._present(block[at : at + SHORT_BLOCK])
        return len(self.ledger) - before

    def bring_up(self) -> None:
        """Let every example that is presented know of all corrections, those together that know of equally many."""
        shown = self._shown[np.argsort(self._known[self._shown], kind="stable")]
        with self.kernel.crew(len(self._shown) > BLOCK) as self._crew:
            for begin in range(0, len(shown), BLOCK):
                self._bring_up(self.examples.side(np.sort(shown[begin : begin + BLOCK])))

    def mistakes(self) -> int:
        """Return how many examples the scores get wrong, all of them being up to date."""
        problem = self.problem
        wrong = dual.count_mistakes(problem.codes, problem.weight, self.scores, self._scratch, self.joint, self.ledger.tie)
        return int(wrong)

    def _bring_up(self, left: Side) -> None:
        """Let the corrections that some examples do not know of change their scores."""
        members = left.which
        since, now = int(self._known[members].min()), len(self.corrections)
        if since == now:
            return
        first = self._known[members] - since
        self._known[members] = now
        example, *corrections = self.corrections.since(since)
        names, place, column = np.unique(example, return_index=True, return_inverse=True)
        cached = (self._cache.slot[names] != NEVER) & (self._cache.born[names] < since)
        fresh = np.flatnonzero(~cached)
        fresh = fresh[np.argsort(place[fresh])]  # by their first correction, which is the order of their slots
        parts = [(left.part(k, k + PART), first[k : k + PART]) for k in range(0, len(members), PART)]
        for chosen in (np.flatnonzero(cached), *(fresh[k : k + COLUMNS] for k in range(0, len(fresh), COLUMNS))):
            if not chosen.size:
                continue
            position = np.full(len(names), NEVER)
            position[chosen] = np.arange(len(chosen))
            which = np.flatnonzero(position[column] != NEVER)
            events = tuple(frozen(values[which]) for values in (position[column], *corrections))
            right = self.examples.side(names[chosen])
            task = partial(self._absorb, right, bool(cached[chosen[0]]), which, events)
            (self._crew if len(members) * len(chosen) >= WORTHWHILE else alone)(task, parts)

    def _absorb(self, right: Side, cached: bool, which: Ints, events: tuple[Array, ...], part: tuple[Side, Ints]) -> None:
        """Let corrections change the scores of a part of the examples, from the first one on that each does not know of."""
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
        """Present a few examples, with their kernel values among themselves once one of them is mistaken."""
        members, visit = np.unique(order, return_inverse=True)
        side = self.examples.side(members)
        self._bring_up(side)
        problem, done, products, gram = self.problem, 0, NO_GRAM, NO_GRAM
        while done < len(visit):
            found, done, self.ledger.steps = (
                int(value)
                for value in dual.present(
                    *(gram, frozen(visit), members, problem.codes, problem.weight, self.scores, self._scratch, done),
                    *(False, self.joint, self.ledger.tie, self.ledger.steps, self._out),
                )
            )
            if found:
                self._record(side, products, [column[:found] for column in self._out])
            elif done < len(visit):
                products = self.kernel.products(side, side)
                gram = self.kernel.filled(products, side, side).T.copy()
        self._known[members] = len(self.corrections)

    def _record(self, side: Side, products: Array, mistakes: list[Array]) -> None:
        """Write mistakes into the ledger, and their products with the members into the cache."""
        _, example, up, down, by, _ = mistakes
        fresh = self._cache.meet(example, len(self.corrections))
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
        for block in visits(order, problem.rows, seed, number)
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
        self.run.bring_up()
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
        self.run.bring_up()
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
