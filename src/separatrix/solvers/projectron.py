"""The kernel perceptron on a budget: once the budget is used up, a correction is projected onto the stored examples.

F. Orabona, J. Keshet and B. Caputo, "The Projectron: a bounded kernel-based perceptron", ICML 2008; "Bounded kernel-based
online learning", JMLR 10 (2009). All weights, averaged ones too, lie in the space that the stored examples span: the
correction c·φ(x) becomes the nearest point of it, c·Σ dₛφ(xₛ) with K d = k(x), which loses least. An example is stored while
the budget lasts, unless it lies in that space already. With the Cholesky factor L Lᵀ = K, its inverse grows by a row for
each stored example:

    z = L⁻¹k(x),   d = L⁻ᵀz,   lost: ‖φ(x)‖² − ‖z‖²,   the new row of L⁻¹: (−dᵀ, 1) / √lost
"""

from __future__ import annotations

import numpy as np

from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Floats, Ints, frozen
from separatrix.kernels.learning import dual
from separatrix.solvers.dual_ledger import DualLedger, summed
from separatrix.solvers.dual_votes import Voters
from separatrix.solvers.kernel_matrix import BlockSide, Kernel, KernelRows
from separatrix.solvers.threads import ForEach, one_by_one

BLOCK = 500
ROWS_PER_TASK = 125
PARALLEL_ENTRIES = 1 << 15
NO_CHANGE: Floats = np.zeros((BLOCK, BLOCK))
DEPENDENT = 1e-8
"""An example is not stored if less than this part of ‖φ(x)‖² lies outside the space of the stored ones."""


class ProjectedRun:
    """The state of one training on a budget: the stored examples, their coefficients, and the ledger."""

    def __init__(self, kernel: Kernel, problem: Problem, ledger: DualLedger, joint: bool, budget: int, seed: int) -> None:
        n, K = problem.rows.n, ledger.n_outputs
        self.kernel, self.problem, self.ledger, self.joint = kernel, problem, ledger, joint
        self.seed, self.presented = seed, 0
        self._for_each: ForEach = one_by_one
        self.examples = KernelRows(kernel, problem.rows)
        self.scores = np.zeros((n, K))
        self._index_of: dict[int, int] = {}
        """The place of each stored example among them."""
        self._capacity = min(budget, n)
        self._inverse = np.zeros((self._capacity, self._capacity))
        """L⁻¹, lower triangular."""
        self._last, self._late = np.zeros((2, K, self._capacity))
        """The coefficients of the last weights, and Σ (step − 1)·correction, from which the averaged ones follow."""
        self._scratch = np.empty(K)
        self._out = tuple(np.empty(K, dtype) for dtype in ("i8", "i8", "i4", "i4", "f8", "f8"))

    def present(self, order: Ints) -> int:
        """Present examples in order, writing the ledger; return the number of mistakes."""
        before = len(self.ledger)
        self.presented += len(order)
        with self.kernel.in_threads(len(order) > BLOCK) as self._for_each:
            for begin in range(0, len(order), BLOCK):
                self._present(order[begin : begin + BLOCK])
        return len(self.ledger) - before

    def update_scores(self) -> None:
        """Do nothing: the scores are computed from the stored examples at each visit."""

    def mistakes(self) -> int:
        """Return how many examples are mistakes now."""
        problem, n = self.problem, self.problem.rows.n
        with self.kernel.in_threads(n > BLOCK) as self._for_each:
            for begin in range(0, n, BLOCK):
                self._score(self.examples.side(np.arange(begin, min(begin + BLOCK, n))))
        wrong = dual.count_mistakes(problem.codes, problem.weight, self.scores, self._scratch, self.joint, self.ledger.tie)
        return int(wrong)

    def snapshot(self, passes: int) -> tuple[tuple[int, int, int], Floats, Floats]:
        """Return how things are after so many passes."""
        ledger = self.ledger
        return (passes, ledger.steps, len(ledger)), self._last.copy(), self._late.copy()

    def restore(self, snapshot: tuple[tuple[int, int, int], Floats, Floats]) -> None:
        """Go back to an earlier pass."""
        when, self._last, self._late = snapshot
        self.ledger.cut_to(*when)

    def voters(self) -> Voters:
        """Return all weights that the run had; without a record, the last and the averaged ones only."""
        if self.ledger.recorded:
            return Voters(self.ledger, self.joint, self.problem.rows)
        last, late = (table[:, : len(self.ledger.basis)].copy() for table in (self._last, self._late))
        return Voters(self.ledger, self.joint, self.problem.rows, coefficients=(last, self.ledger.steps * last - late))

    def _score(self, side: BlockSide) -> Floats:
        """Score some examples; return their kernel values with the stored ones, with empty columns for later ones."""
        size, members = len(self.ledger.basis), side.which
        values = np.empty((len(members), self._capacity))
        if size:
            stored = self.examples.side(np.array(self.ledger.basis))

            def fill(begin: int) -> None:
                end = begin + ROWS_PER_TASK
                values[begin:end, :size] = self.kernel.values(side.part(begin, end), stored)

            for_each = self._for_each if len(members) * size > PARALLEL_ENTRIES else one_by_one
            for_each(fill, range(0, len(members), ROWS_PER_TASK))
        self.scores[members] = values[:, :size] @ self._last[:, :size].T
        return values

    def _present(self, order: Ints) -> None:
        """Present a block of examples; the compiled code returns after each visit with a mistake."""
        members, visit = np.unique(order, return_inverse=True)
        side = self.examples.side(members)
        values, problem, done = self._score(side), self.problem, 0
        while done < len(visit):
            count, done, self.ledger.steps = (
                int(value)
                for value in dual.present(
                    *(NO_CHANGE, frozen(visit), members, problem.codes, problem.weight, self.scores, self._scratch, done),
                    *(True, self.joint, self.ledger.tie, self.ledger.steps, self._out),
                )
            )
            if count:
                self._correct(side, values, [column[:count] for column in self._out])

    def _correct(self, side: BlockSide, values: Floats, mistakes: list[Array]) -> None:
        """Write the mistakes of one visit into the ledger, and correct by what the stored examples can express."""
        step, example, up, down, by, _ = mistakes
        combination, lost = self._combination(side, values, int(np.searchsorted(side.which, example[0])))
        self.ledger.append(*mistakes)
        self.ledger.store(combination, lost, len(example))
        size = len(combination)
        change, K = values[:, :size] @ combination, self.scores.shape[1]
        coefficients = summed(K, len(up), np.arange(len(up)), up, down, by).sum(axis=1)
        self._last[:, :size] += np.outer(coefficients, combination)
        self._late[:, :size] += (step[0] - 1.0) * np.outer(coefficients, combination)
        self.scores[side.which] += np.outer(change, coefficients)

    def _combination(self, side: BlockSide, values: Floats, e: int) -> tuple[Floats, float]:
        """Return the coefficients of member e on the stored examples, itself one if there is room, and what is lost."""
        example, size = int(side.which[e]), len(self.ledger.basis)
        if example in self._index_of:
            return np.eye(1, size, self._index_of[example])[0], 0.0
        itself, inverse = side.part(e, e + 1), self._inverse[:size, :size]
        whole = float(self.kernel.values(itself, itself)[0, 0])
        z = inverse @ values[e, :size]
        combination = z @ inverse
        lost = max(0.0, whole - float(z @ z))
        if size == self._capacity or lost <= DEPENDENT * whole:
            return combination, lost / whole if whole > 0.0 else 0.0
        self._inverse[size, :size] = -combination / np.sqrt(lost)
        self._inverse[size, size] = 1.0 / np.sqrt(lost)
        self._index_of[example] = size
        self.ledger.basis.append(example)
        values[:, size] = self.kernel.values(side, itself)[:, 0]
        return np.eye(1, size + 1, size)[0], 0.0
