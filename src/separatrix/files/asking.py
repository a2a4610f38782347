"""One pass over a stream that learns only from the labels it asks for (engine/asking.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.orders import Visits
from separatrix.engine.rows import NO_ORDER
from separatrix.engine.stopping import PassLimit, Reason
from separatrix.files.out_of_core import BlockPasses
from separatrix.kernels.learning.asking import next_asked


class Asking(NamedTuple):
    """How to ask: the b of selective sampling, and the most labels to ask for (None: any number)."""

    b: float
    budget: int | None = None


class AskingPass(BlockPasses):
    """The one pass of a training that asks for labels, in the order of the rows.

    `asked` are the labels that it asked for, and `expected` is the sum of the probabilities with which it asked.
    """

    def __init__(self, asking: Asking, *parts: Any) -> None:
        """Prepare a pass; `parts` are those of `BlockPasses`."""
        super().__init__(*parts)
        self.asking = asking
        self.asked, self.expected = 0, 0.0

    def reasons(self) -> Sequence[Reason]:
        """Return why it ends: there is one pass, and that it made no mistake does not say that there is none to make."""
        return [PassLimit(1)]

    def make_pass(self, number: int) -> tuple[int, float]:
        """Present the examples whose label is asked for; of the others, only count whether the prediction is right."""
        run, state, random = self.run, self.state_, np.random.default_rng(self.run.seed)
        run.begin_pass(number, 1)
        mistakes, counts = 0, np.zeros(2)
        for k in range(len(self.blocks)):
            problem = self.blocks.read(k)
            if problem.rows.parts is None:
                problem = problem.taken(np.arange(problem.rows.n))
            rows, n = problem.rows, problem.rows.n
            run.radius_squared = max(run.radius_squared, rows.survey())
            run.last.lay(rows.sparse)
            chances, scores, at = random.random(n), np.empty(run.last.K), 0
            while at < n:
                left = self.asking.budget is None or self.asked < self.asking.budget
                flat = (run.last.W, run.last.b)
                b = self.asking.b if left else 0.0
                at = int(next_asked(rows.parts, rows.d, problem.codes, at, n, flat, scores, b, chances, counts))
                if at < n:
                    mistakes += run.present(problem, [Visits(NO_ORDER, at, at + 1)], self.blocks.numbers(k))
                    self.asked += 1
                    at += 1
            self._last_rows = n
            if k + 1 < len(self.blocks):
                self._after_block(state, n)
        state.partial, state.errors, self.expected = 0, run.errors + int(counts[0]), float(counts[1])
        return mistakes, float(run.tally[1] / max(1, run.ledger.steps))
