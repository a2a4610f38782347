"""Predicting from the mistakes of a kernel perceptron in four ways: last, averaged, voted, random (L4 8; F&S 1999)."""

from __future__ import annotations

import numpy as np

from separatrix.engine.parcel import Parcel, StateError
from separatrix.engine.rows import NO_ORDER, Floats, Ints, Rows, frozen
from separatrix.kernels.learning import replays
from separatrix.solvers.dual_ledger import NOT_RECORDED, DualLedger, absorb, summed
from separatrix.solvers.kernel_matrix import KernelRows

PREDICTIONS = ("last", "averaged", "voted", "random")
ON_THE_WAY = ("voted", "random")
"""Those that need all weights that the run had, not only the last and the averaged ones."""
VALUES_BYTES = 1 << 24
"""The memory that each thread has for the kernel values of a block of rows with all mistaken examples."""


class Voters:
    """The weight vectors that a run went through, as the mistakes that each of them consists of.

    The rows of the mistaken examples (under a budget: of the stored ones) are taken out of the training rows, or out of some
    of them, whose `numbers` are given. `coefficients`, last and summed over all steps, serve where no mistake is kept.
    """

    def __init__(
        self,
        ledger: DualLedger,
        joint: bool,
        rows: Rows | None,
        numbers: Ints | None = None,
        coefficients: tuple[Floats, Floats] | None = None,
    ) -> None:
        example, *self._corrections = ledger.corrections()
        self._step = ledger.step.astype(np.int64)
        self._steps, self._K, self._joint = ledger.steps, ledger.n_outputs, joint
        self._coefficients, self._combination = coefficients, None
        if ledger.budget is None:
            self.support, self._column = np.unique(example, return_inverse=True)
        else:
            self.support, self._column = np.array(ledger.basis, np.int64), np.arange(len(ledger))
            if coefficients is None:
                self._combination = ledger.combination
        self.kernel, self.rows = ledger.kernel, None
        if rows is not None and not self.kernel.precomputed:
            places = np.argsort(numbers) if numbers is not None else NO_ORDER
            chosen = self.support if numbers is None else places[np.searchsorted(numbers, self.support, sorter=places)]
            self.rows = rows.take(chosen)

    def pack(self, parcel: Parcel, at: str) -> str:
        """Put the rows and the coefficients into a parcel; return the form of the rows."""
        if self._coefficients is not None:
            parcel.put(f"{at}.coefficients", np.array(self._coefficients))
        return "none" if self.rows is None else self.rows.pack(parcel, f"{at}.rows")

    @classmethod
    def unpack(cls, ledger: DualLedger, joint: bool, form: str, n_features: int, parcel: Parcel, at: str) -> Voters:
        """Return the voters of a ledger whose rows have a form."""
        coefficients = None
        if not ledger.recorded:
            shape = (2, ledger.n_outputs, len(ledger.basis))
            coefficients = tuple(parcel.take(f"{at}.coefficients", "f8", shape))
        support = np.unique(ledger.example).astype(np.int64) if ledger.budget is None else np.array(ledger.basis, np.int64)
        rows = None
        if not ledger.kernel.precomputed:
            rows = Rows.unpack(form, parcel, f"{at}.rows", n_features)
            if rows.n != len(support):
                raise StateError(f"{rows.n} rows for {len(support)} examples")
        elif len(support) and int(support.max()) >= n_features:
            raise StateError("it needs kernel values that are missing")
        return cls(ledger, joint, rows, support, coefficients)

    def coefficients(self, how: str) -> Floats:
        """Return the coefficient of each stored example, in the mean of the weights after each step or in the last."""
        return self._scaled(how) / (self._steps if how == "averaged" else 1)

    def _scaled(self, how: str) -> Floats:
        """Return the coefficients in the sum of the weights after each step, or in the last ones."""
        if self._coefficients is not None:
            return self._coefficients[how == "averaged"]
        up, down, by = self._corrections
        lasted = self._steps + 1 - self._step if how == "averaged" else 1
        width = len(self.support) if self._combination is None else len(self._step)
        coefficients = summed(self._K, width, self._column, up, down, by * lasted)
        return coefficients if self._combination is None else coefficients @ self._combination

    def scores(self, rows: Rows, how: str, seed: int) -> Floats:
        """Return the scores of some rows, rows × outputs; voted: the share of the votes; random: by a voter for each row."""
        if how in ON_THE_WAY and self._coefficients is not None:
            raise ValueError(f"predict_with={how!r} needs the weights after every mistake: {NOT_RECORDED}")
        examples = KernelRows(self.kernel, rows)
        support = KernelRows(self.kernel, self.rows).side(self.support if self.rows is None else np.arange(self.rows.n))
        out, coefficients = np.zeros((rows.n, self._K)), self._scaled(how).T
        drawn = np.random.default_rng([seed, 0, 2]).integers(1, self._steps + 1, size=rows.n)
        wide = len(self.support) if self._combination is None else len(self._step)
        at_once = max(1, min(rows.n, VALUES_BYTES // (8 * max(1, wide))))

        def score(begin: int) -> None:
            part = np.arange(begin, min(begin + at_once, rows.n))
            values, scores = self.kernel.values(examples.side(part), support), out[begin : begin + at_once]
            if how in ON_THE_WAY and self._combination is not None:
                values = values @ self._combination.T
            if how == "voted":
                self._vote(values, scores)
            elif how == "random":
                last = np.searchsorted(self._step, drawn[part], side="right")
                absorb(values, np.arange(len(part)), (self._column, *self._corrections), last, scores)
            else:
                np.matmul(values, coefficients, out=scores)

        with self.kernel.in_threads(rows.n > at_once) as for_each:
            for_each(score, range(0, rows.n, at_once))
        return out / self._steps if how in ("averaged", "voted") else out

    def _vote(self, values: Floats, votes: Floats) -> None:
        up, down, by = (frozen(column) for column in self._corrections)
        survived = np.diff(np.append(self._step, self._steps + 1), prepend=1).astype(np.float64)
        scores = np.zeros(votes.shape)
        replays.vote(values, values, frozen(self._column), up, down, by, frozen(survived), scores, votes, self._joint)
