"""Machines that learn side by side from one read of the rows, and what each of their candidates gets right.

The test rows are scored after every pass, so that each smaller number of passes costs nothing. Neither does the pass in
which the average begins: scores are linear in the weights, so those of the average over the passes a … b follow from those
of the averages over 1 … b and over 1 … a − 1. A machine whose pass was without a mistake has converged: training it alone
ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.engine.labels import encode
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Floats, Rows, frozen
from separatrix.engine.weights import Flat
from separatrix.kernels.threads import in_order, threads_of
from separatrix.learners.auto_c import Machines, groups_of
from separatrix.learners.linear_base import LinearLearner
from separatrix.training.tuning.examples import Examples
from separatrix.training.tuning.folds import Split

MOST_BYTES = 1 << 27
"""What the weights, and the scores, of machines that learn side by side may take; more of them learn in groups."""


class TestRows:
    """The rows of a split as features, with what a learner needs to be trained and tested on them."""

    __test__ = False  # no test case, whatever its name begins with

    def __init__(self, examples: Examples, X: Any, split: Split, learner: LinearLearner) -> None:
        self.classes, codes = encode(examples.labels[split.train])
        self.known = np.searchsorted(examples.classes, self.classes)
        weight = learner.example_weight(None, self.classes[codes], self.classes)
        self.problem = Problem(Rows(X[split.train]), frozen(codes), frozen(weight))
        self.rows, self.truth, self.learner = Rows(X[split.test]), examples.codes[split.test], learner

    def trained(self, Cs: list[float], most: int, keys: list[tuple[int, int]]) -> Iterator[tuple[list[float], Array]]:
        """Train machines with the C's in groups; yield the C's of each, and which rows their candidates get right.

        `keys` are the candidates, passes and the start of the average; the array is (machines, candidates, rows).
        """
        template = self.learner.new_run(self.classes, self.problem.rows.d, 1.0)
        template.seed = self.learner.seed()
        size = template.last.W.nbytes * (1 + bool(template.late.W.size)) + template.last.V.nbytes
        threads = threads_of(None, self.problem.rows.n * self.problem.rows.row_bytes * most)
        groups = groups_of(Cs, MOST_BYTES // max(size, 32 * self.rows.n * template.last.K, 1), threads)
        trained = in_order(lambda group: _Group(self, Machines(template, group), keys).run(most), groups, threads)
        yield from zip(groups, trained, strict=True)


class _Group:
    """Some machines under way."""

    def __init__(self, test: TestRows, machines: Machines, keys: list[tuple[int, int]]) -> None:
        self.test, self.machines, self.keys = test, machines, keys
        self.K, self.many = machines.template.last.K, len(machines.presenter.Cs)
        self.right = np.zeros((self.many, len(keys), test.rows.n), np.bool_)
        self.before: dict[int, tuple[int, Floats]] = {}
        """By the start of an average: the steps that it leaves out, and the scores of the average over those."""

    def run(self, most: int) -> Array:
        """Make passes, and note what is got right after each."""
        starts = {start for _, start in self.keys}
        going = np.ones(self.many, np.bool_)
        passes = self.machines.passes(self.test.problem, self.test.learner.order, most)
        for number, mistaken in enumerate(passes, 1):
            steps, last = self.machines.presenter.steps, self._scores(self.machines.presenter.last)
            mean = last
            if self.machines.presenter.late.d:
                mean = last - self._scores(self.machines.presenter.late) / steps
            if number + 1 in starts:
                self.before[number + 1] = steps, mean
            converged = going & ~mistaken
            for k, (passes_of_k, start) in enumerate(self.keys):
                here = going if passes_of_k == number else converged if passes_of_k > number else None
                if here is not None and here.any():
                    self.right[here, k] = self._right(self._since(start, number, steps, mean, last))[here]
            going = going & mistaken
        return self.right

    def _scores(self, flat: Flat) -> Floats:
        """Return the scores of the test rows under weights that are read in place."""
        coef = flat.W.reshape(flat.d, flat.K).T if flat.sparse else flat.W.reshape(flat.K, flat.d)
        return self.test.rows.scores(coef, flat.b)

    def _since(self, start: int, number: int, steps: int, mean: Floats, last: Floats) -> Floats:
        """Return the scores of the average from pass `start` on; of the last weights, where it has not begun."""
        if start > number:
            return last
        skipped, then = self.before.get(start, (0, mean))
        return (steps * mean - skipped * then) / (steps - skipped) if skipped else mean

    def _right(self, scores: Floats) -> Array:
        """Return which rows each machine gets right: none where its weights have outgrown float64."""
        test = self.test
        each = [scores[:, g * self.K : (g + 1) * self.K] for g in range(self.many)]
        decided = [test.known[test.learner.decide(of, len(test.known))] == test.truth for of in each]
        return np.array([row & bool(np.isfinite(of).all()) for row, of in zip(decided, each, strict=True)])
