"""The votes of the weight vectors of a run, each as many as the steps that it survived (L4 8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.ledger import Ledger
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows, dense_product, frozen
from separatrix.engine.weights import Weights, n_outputs
from separatrix.kernels.learning import replays

PRODUCT_BYTES = 1 << 25
"""The memory for the products of a block of examples with the mistaken rows."""


class Ballot:
    """The votes on some examples, counted mistake by mistake: `count` continues after the mistakes counted before.

    Weight vector k is the one after k mistakes. Its score of an example differs from that of vector k − 1 by the correction
    times the product of the example with the mistaken row, so no weight vector is ever built: `scores` is that of the
    vector reached so far, and `votes` the sum of the votes before it.
    """

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
        # The last weight vector still survives: its votes are added to a copy, and not to those that are stored.
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
        """Count some mistakes; where the rule keeps variances, the correction is along Σx and not along x."""
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
            products = [dense_product(voters, directions.T) + bias for directions, bias in added]
            replays.vote(products[0], products[-1], *columns, survived, self.scores[part], self.votes[part], self.joint)


def _float64(rows: Rows) -> Array:
    source: Array = rows.source
    return source.astype(np.float64, copy=False)
