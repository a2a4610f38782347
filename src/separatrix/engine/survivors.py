"""What follows from how long each weight vector survived: the votes and the pocket (L4 8, L1 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.ledger import Ledger
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows, dense_product, frozen
from separatrix.engine.run import Run
from separatrix.engine.weights import Weights, n_outputs
from separatrix.kernels.learning import replays

PRODUCT_BYTES = 1 << 25
TRIED_PER_PASS = 10


class Ballot:
    """The votes on some examples. Mistakes made later can be counted on, without starting again."""

    def __init__(self, ledger: Ledger, joint: bool, voters: Rows) -> None:
        K = n_outputs(len(ledger.classes))
        self.ledger, self.joint, self.voters = ledger, joint, voters
        start = ledger.start or Weights(np.zeros((K, ledger.n_features)), np.zeros(K))
        self.scores = voters.scores(*start)
        self.votes = np.zeros((voters.n, K))
        self.counted = 0
        self._spread = ledger.state(voters.sparse, None) if ledger.rule.spread else None

    def count(self, rows: Rows, numbers: Array) -> Floats:
        """Count the mistakes not yet counted, mistake m being row numbers[m]; return the share of votes up to now."""
        ledger, end = self.ledger, len(self.ledger)
        at_once = max(1, end if self._spread is None else PRODUCT_BYTES // (16 * (ledger.n_features + 1)))
        for begin in range(self.counted, end, at_once):
            self._count(rows, numbers, slice(begin, min(begin + at_once, end)))
        self.counted = end
        shares, last = self.votes.copy(), frozen(ledger.survival(end))
        nothing = np.empty((len(shares), 0))
        replays.vote(nothing, nothing, *self._columns(slice(end, end)), last, self.scores, shares, self.joint)
        return shares / max(1, ledger.steps)

    def _columns(self, which: slice, row: Ints | None = None) -> tuple[Array, ...]:
        """Return what the kernel reads of some mistakes: the column of its products, the classes, the correction."""
        ledger = self.ledger
        row = np.arange(which.stop - which.start) if row is None else row.astype(np.int64)
        pair = ledger.up[which].astype(np.int32), ledger.down[which].astype(np.int32)
        correction = ledger.correction[which] if ledger.correction.size else NO_WEIGHT
        return frozen(row), frozen(pair[0]), frozen(pair[1]), frozen(correction)

    def _count(self, rows: Rows, numbers: Array, which: slice) -> None:
        ledger, size = self.ledger, which.stop - which.start
        survived = frozen(np.append(ledger.survival(which.start)[:size], 0.0))
        if self._spread is None:
            distinct, row = np.unique(numbers[which].astype(np.int64), return_inverse=True)
            added: list[tuple[Array, Any]] = [
                (_float64(rows if len(distinct) == rows.n else rows.take(distinct)), float(ledger.bias))
            ]
            columns = self._columns(which, row)
        else:
            self._spread.lay(rows.sparse)
            both = ledger.directions(self._spread, rows, numbers, which)
            added = [(each[:, :-1], each[:, -1]) for each in (both[:1] if both[0] is both[1] else both)]
            columns = self._columns(which)
        at_once = max(1, PRODUCT_BYTES // (8 * max(1, added[0][0].shape[0])))
        for begin in range(0, self.voters.n, at_once):
            part = slice(begin, min(begin + at_once, self.voters.n))
            voters = _float64(self.voters.take(part))
            products = [dense_product(voters, known.T) + bias for known, bias in added]
            replays.vote(products[0], products[-1], *columns, survived, self.scores[part], self.votes[part], self.joint)


def _float64(rows: Rows) -> Array:
    source: Array = rows.source
    return source.astype(np.float64, copy=False)


class Pocket:
    """The best survivor: replaced only by weights with fewer training mistakes.

    After each pass, those of its weight vectors that lasted longest are tried on all training examples, longest first, and
    at the end the last weights: trying every one would cost a pass for each mistake.
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
        """Try the longest survivors of the pass; the weights still standing may have come from an earlier one."""
        lasted = run.ledger.survival(self._since)
        numbers = np.arange(self._since, len(run.ledger) + 1)
        lasted[numbers == self._tried] = 0.0
        longest = np.argsort(-lasted, kind="stable")[:TRIED_PER_PASS]
        self._try(run, problem, numbers[longest[lasted[longest] > 0.0]])
        self._since = len(run.ledger)
        run.used = self.best

    def _try(self, run: Run, problem: Problem, chosen: Ints) -> None:
        """Build the weights after each chosen number of mistakes, in one replay, and count their training mistakes."""
        ledger, at, found = run.ledger, self._since, {}
        for k in np.sort(chosen).tolist():
            ledger.replay_into(self._now, problem.rows, ledger.example, slice(at, k))
            at = k
            mistakes = run.training_mistakes(problem, self._now, decided=True)
            if mistakes < self.fewest:
                found[k] = mistakes, self._now.weights()
            self._tried = k
        ledger.replay_into(self._now, problem.rows, ledger.example, slice(at, len(ledger)))
        for k in chosen.tolist():
            if k in found and found[k][0] < self.fewest:
                self.fewest, self.best = found[k]
                ledger.kept = k

    def after_training(self, run: Run, problem: Problem) -> None:
        """Try the last weights too, however short they lasted."""
        if self.tries_last and self._tried != len(run.ledger):
            self._try(run, problem, np.asarray([len(run.ledger)]))
