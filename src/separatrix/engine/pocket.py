"""The pocket: the weights of a run that made the fewest training mistakes (L1 3)."""

from __future__ import annotations

import numpy as np

from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Ints
from separatrix.engine.run import Run

TRIED_PER_PASS = 10
"""After a pass, so many of its weight vectors are tried on all training examples."""


class Pocket:
    """The best weights so far, which only weights with fewer training mistakes replace.

    After each pass, those of its weight vectors that survived most steps are tried on all training examples, and at the end
    the last weights. Trying all of them would cost a pass for each mistake. Of equally good ones, the longest survivor wins.

    Attributes
    ----------
    best, fewest : the best weights and the weight of their training mistakes
    _now : the weights after the first `_since` mistakes, replayed from the ledger
    _tried : the number of mistakes after which weights were tried last
    """

    def __init__(self, run: Run, problem: Problem, *, tries_last: bool = True) -> None:
        self.tries_last = tries_last
        self._now = run.ledger.state(problem.rows.sparse, run.ledger.start)
        self.best = self._now.weights()
        self.fewest = run.training_mistakes(problem, self._now, decided=True)
        self._tried = 0
        self._since = 0
        run.ledger.kept = 0

    def after_pass(self, run: Run, problem: Problem) -> None:
        """Try the longest survivors of the pass, among them the weights with which it began."""
        lasted = run.ledger.survival(self._since)
        numbers = np.arange(self._since, len(run.ledger) + 1)
        lasted[numbers == self._tried] = 0.0
        longest = np.argsort(-lasted, kind="stable")[:TRIED_PER_PASS]
        self._try(run, problem, numbers[longest[lasted[longest] > 0.0]])
        self._since = len(run.ledger)
        run.used = self.best

    def _try(self, run: Run, problem: Problem, chosen: Ints) -> None:
        """Build the weights after each chosen number of mistakes, in one replay, and count their training mistakes."""
        ledger, at, better = run.ledger, self._since, {}
        for k in np.sort(chosen).tolist():
            ledger.replay_into(self._now, problem.rows, ledger.example, slice(at, k))
            at = k
            mistakes = run.training_mistakes(problem, self._now, decided=True)
            if mistakes < self.fewest:
                better[k] = mistakes, self._now.weights()
            self._tried = k
        ledger.replay_into(self._now, problem.rows, ledger.example, slice(at, len(ledger)))
        for k in chosen.tolist():
            if k in better and better[k][0] < self.fewest:
                self.fewest, self.best = better[k]
                ledger.kept = k

    def after_training(self, run: Run, problem: Problem) -> None:
        """Try the last weights too, however short they lasted."""
        if self.tries_last and self._tried != len(run.ledger):
            self._try(run, problem, np.asarray([len(run.ledger)]))
