"""What follows from how long each weight vector survived: the votes and the pocket (L4 8, L1 3)."""

from __future__ import annotations

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from separatrix.kernels import passes
from separatrix.ledger import Ledger
from separatrix.rows import NO_WEIGHT, Array, Floats, Rows, frozen
from separatrix.training import Problem, Run
from separatrix.weights import Flat, Weights, n_outputs

PRODUCT_BYTES = 1 << 25


class Ballot:
    """The votes on some examples. Mistakes made later can be counted on, without starting again."""

    def __init__(self, ledger: Ledger, joint: bool, voters: Rows) -> None:
        K = n_outputs(len(ledger.classes))
        self.ledger, self.joint, self.voters = ledger, joint, voters
        start = ledger.start or Weights(np.zeros((K, voters.d)), np.zeros(K))
        self.scores = voters.scores(*start)
        self.votes = np.zeros((voters.n, K))
        self.counted = 0

    def count(self, rows: Rows, numbers: Array) -> Floats:
        """Count the mistakes not yet counted, mistake m being row numbers[m]; return the share of votes up to now."""
        ledger, since = self.ledger, self.counted
        survived = ledger.survival(since)
        which, row = np.unique(numbers[since:].astype(np.int64), return_inverse=True)
        columns = (ledger.up[since:].astype(np.int32), ledger.down[since:].astype(np.int32))
        correction = ledger.correction[since:] if ledger.correction.size else NO_WEIGHT
        arguments = (frozen(row.astype(np.int64)), frozen(columns[0]), frozen(columns[1]), frozen(correction))
        nothing = tuple(frozen(a[:0]) for a in arguments)
        known = _float64(rows.take(which))
        at_once = max(1, PRODUCT_BYTES // (8 * max(1, len(which))))
        shares = np.empty_like(self.votes)
        for begin in range(0, self.voters.n, at_once):
            part = slice(begin, min(begin + at_once, self.voters.n))
            products = safe_sparse_dot(_float64(self.voters.take(part)), known.T, dense_output=True)
            products = np.ascontiguousarray(products) + float(ledger.bias)
            scores, votes = self.scores[part], self.votes[part]
            passes.vote(products, *arguments, frozen(np.append(survived[:-1], 0.0)), scores, votes, self.joint)
            shares[part] = votes
            passes.vote(products[:, :0], *nothing, frozen(survived[-1:].copy()), scores, shares[part], self.joint)
        self.counted = len(ledger)
        return shares / max(1, ledger.steps)


def _float64(rows: Rows) -> Array:
    source: Array = rows.source
    return source.astype(np.float64, copy=False)


class Pocket:
    """The best survivor so far: replaced by weights that lasted longer, and only when they make fewer training mistakes."""

    def __init__(self, run: Run, problem: Problem) -> None:
        self._now = Flat(run.last.K, run.last.d, problem.rows.sparse, run.ledger.start)
        self.best = self._now.weights()
        self.fewest = run.training_mistakes(problem, self._now)
        self.longest = 0.0
        self._replayed = 0
        self._judged = -1
        run.ledger.kept = 0

    def after_pass(self, run: Run, problem: Problem) -> None:
        """Judge the weights that the pass held."""
        ledger = run.ledger
        survived = ledger.survival(self._replayed)
        if ledger.kept == self._replayed:
            self.longest = max(self.longest, survived[0])
        for k, lasted in enumerate(survived, start=self._replayed):
            if lasted > self.longest and k != self._judged:
                self._judge(run, problem, k, lasted)
        self._advance(run, problem, len(ledger))

    def _advance(self, run: Run, problem: Problem, k: int) -> None:
        run.ledger.replay_into(self._now, problem.rows, run.ledger.example, slice(self._replayed, k))
        self._replayed = k

    def _judge(self, run: Run, problem: Problem, k: int, lasted: float) -> None:
        self._advance(run, problem, k)
        self._judged = k
        mistakes = run.training_mistakes(problem, self._now)
        if mistakes < self.fewest:
            self.fewest, self.longest, self.best = mistakes, lasted, self._now.weights()
            run.ledger.kept = k

    def finish(self, run: Run, problem: Problem) -> None:
        """Judge the last weights too, however short they lasted."""
        if self._judged != len(run.ledger):
            self._judge(run, problem, len(run.ledger), self.longest)
