"""Training in the dual: scores kept up to date, so that a pass costs what its mistakes cost (L4 2; F&S 1999).

Each example has its scores as of its last visit. When it is visited again, only the kernel values against the mistakes made
since are needed: examples × mistakes over a whole training, however many passes there are. Blocks of examples meet blocks of
mistakes, so that BLAS makes the products; those with examples that were mistaken before come from a cache.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from separatrix.engine.growable import Column
from separatrix.engine.orders import visits
from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, frozen
from separatrix.engine.run import PASS_CAP, WHY_IT_ENDED, Cycle, Outcome, Problem
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
NOT_SEPARATED = "{:,} passes did not separate the data in the space of the kernel. Set max_iter to go on."
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
        self._marked: tuple[int, int, int] | None = None
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

    def mark(self, passes: int) -> None:
        """Remember how things are after so many passes."""
        self._marked = passes, self.ledger.steps, len(self.ledger)

    def go_back(self) -> None:
        """Go back to how things were when last marked."""
        if self._marked is not None:
            self.ledger.cut_to(*self._marked)

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


def train(
    run: DualRun | ProjectedRun,
    *,
    order: str,
    max_iter: int | None,
    patience: int | None,
    held_out_score: Callable[[], float] | None,
    progress: Callable[[int, float | None], None],
) -> Outcome:
    """Make passes until one is clean, held-out accuracy stalls for `patience` passes, or `max_iter`.

    With `max_iter=None` also until the scores at the start of a pass in cyclic order come back: they would for ever.
    """
    ledger = run.ledger
    per_pass: list[int] = []
    scores: list[float] = []
    seen: dict[bytes, int] = {}
    cycle, converged, best = None, False, 0
    limit = PASS_CAP if max_iter is None else max_iter
    while len(per_pass) < limit and not converged:
        number = len(per_pass)
        run.bring_up()
        if order == "cyclic" and cycle is None and ledger.budget is None:
            first = seen.setdefault(hashlib.blake2b((run.scores + 0.0).tobytes()).digest(), number + 1)
            cycle = Cycle(first, number + 1 - first) if first <= number else None
        if cycle is not None and max_iter is None:
            break
        ledger.begin_pass()
        per_pass.append(run.present(visited(order, run.problem, run.seed, number)))
        if not np.isfinite(run.scores).all():
            raise ValueError("the scores outgrew float64: scale the features or the weights down, or lower the degree")
        converged = not per_pass[-1] and (order != "random" or not run.mistakes())
        if held_out_score is not None:
            scores.append(held_out_score())
            if not best or scores[-1] > scores[best - 1]:
                best = len(scores)
                run.mark(best)
        progress(per_pass[-1], scores[-1] if scores else None)
        if patience is not None and len(scores) - best >= patience:
            break
    if patience is not None and best < len(scores):
        run.go_back()
    if max_iter is None and not converged:
        why = NOT_SEPARATED if cycle is None else WHY_IT_ENDED["cycle"].replace("weights", "scores")
        warnings.warn(why.format(len(per_pass), *(cycle or ())), ConvergenceWarning, stacklevel=4)
    return Outcome(per_pass, converged, cycle, scores)
