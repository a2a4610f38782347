"""The one caller of the pass kernel: presents visits to rows, and hands the mistakes to a sink.

A run appends them to its ledger, the server puts them into a commit, and the choice of C ignores them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.orders import Visits
from separatrix.engine.rows import BLOCK_ROWS, NO_ORDER, NO_WEIGHT, Array, Floats, Ints, Rows, frozen
from separatrix.engine.rules import Rule
from separatrix.engine.weights import Flat
from separatrix.kernels.learning import passes

NO_FLAGS = np.empty(0, np.uint8)
"""In place of a flag for each visit, where the number of misjudged examples is enough."""


class Problem(NamedTuple):
    """What is presented: rows, the code of each label, and the weight of each example (none: all 1)."""

    rows: Rows
    codes: Codes
    weight: Floats = NO_WEIGHT

    def taken(self, which: Ints) -> Problem:
        """Return some of the examples as a copy that the kernels can read."""
        weight = frozen(self.weight[which]) if self.weight.size else NO_WEIGHT
        return Problem(self.rows.take(which), frozen(self.codes[which]), weight)


class Mistakes(NamedTuple):
    """Mistakes as the kernel writes them, a column for each of their properties; valid until the next block."""

    step: Array
    example: Array
    machine: Array
    up: Array
    down: Array
    correction: Array
    score: Array
    shrink: Array


Sink = Callable[[Mistakes], None]
"""Where mistakes go, block by block."""


def _room_for(size: int) -> Mistakes:
    return Mistakes(*(np.empty(size, dtype) for dtype in ("i8", "i8", "i4", "i4", "i4", "f8", "f8", "f8")))


_NO_ROOM = _room_for(0)


@dataclass
class Presenter:
    """Presents examples to weights and corrects them: one machine, or several side by side that differ in C.

    Machine g has the outputs g·K … g·K + K − 1 of `last` and `late`.

    Attributes
    ----------
    last, late : the weights, and the lazy sum from which their average follows (empty: no average)
    Cs : the C of each machine
    steps : how many examples were presented
    average_after : the step after which the average begins
    heaviest : the largest weight presented so far, where weights count relative to it; else empty
    tally : for each machine the examples it misjudged and the sum of its losses
    slots : the output of each class, where `last` has room for more classes than there are; else empty
    """

    last: Flat
    late: Flat
    rule: Rule
    bias: bool
    joint: bool
    tie: int
    Cs: Floats
    steps: int
    average_after: int
    heaviest: Floats
    tally: Floats
    slots: Ints = field(default_factory=lambda: NO_ORDER)
    _room: Mistakes = _NO_ROOM

    def present(
        self, problem: Problem, visits: Visits, sink: Sink, *, flags: Array = NO_FLAGS, rows_at_once: int = BLOCK_ROWS
    ) -> None:
        """Present one block of visits to rows that the kernels can read in place.

        Parameters
        ----------
        sink : gets the mistakes; `example` is the number of the row
        flags : flags[t] is set to 1 where visit visits.begin + t was misjudged; empty: not wanted
        rows_at_once : a call of the kernel presents so many visits at most, after which Ctrl-C is heard
        """
        outputs, rows = self.last.K, problem.rows
        each = len(self.Cs) if self.joint else len(self.slots) or outputs
        order, begin, end, soon = visits
        at_once = max(1, rows_at_once // each)
        scores = None if outputs == 1 else np.empty(int(passes.TOGETHER) * outputs + len(self.slots))
        for first in range(begin, end, at_once):
            stop = min(first + at_once, end)
            if len(self._room.step) < (stop - first) * each:
                self._room = _room_for((stop - first) * each)
            count, steps = passes.present(
                *(rows.parts, rows.d, problem.codes, problem.weight, order, soon, first, stop),
                *((self.last.W, self.last.b), (self.late.W, self.late.b), self.last.sigma, scores, self.slots),
                *((self.bias, self.joint, self.tie, self.rule.code, self.rule.margin), self.Cs),
                *(self.steps, self.average_after, self.heaviest, tuple(self._room), self.tally),
                flags[first - begin : stop - begin] if flags.size else NO_FLAGS,
            )
            self.steps = int(steps)
            if count:
                sink(Mistakes(*(column[: int(count)] for column in self._room)))

    def present_anywhere(self, problem: Problem, visits: Visits, sink: Callable[[Mistakes, Ints | None], None]) -> None:
        """The same for rows that may first have to be copied; the sink also gets the rows that were copied, or None."""
        if problem.rows.parts is not None:
            self.present(problem, visits, lambda mistakes: sink(mistakes, None))
            return
        which = visits.order[visits.begin : visits.end] if visits.order.size else np.arange(visits.begin, visits.end)
        copied = Visits(NO_ORDER, 0, visits.end - visits.begin)
        self.present(problem.taken(which), copied, lambda mistakes: sink(mistakes, which))
