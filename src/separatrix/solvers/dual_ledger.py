"""The mistakes of a kernel perceptron, and what became of them under a budget.

The weights are never built: what the ledger replays to is the sum of the corrections on each example, `coef[k, i]`, so that
the score of x is Σᵢ coef[k, i]·k(xᵢ, x) + intercept[k]. Under a budget only some examples are stored, and a mistake on
another one corrects by the nearest combination of those.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from separatrix.engine.labels import Codes, as_labels, encode_as
from separatrix.engine.ledger import Ledger
from separatrix.engine.mistake_columns import Column
from separatrix.engine.parcel import Parcel, StateError
from separatrix.engine.rows import NO_ORDER, NO_WEIGHT, Array, Floats, Ints, as_rows, frozen
from separatrix.engine.weights import Weights, n_outputs
from separatrix.kernels.codes import NOBODY, TIE_IS_MISTAKE, TIE_IS_PLUS
from separatrix.kernels.learning import dual
from separatrix.solvers.kernel_matrix import COLUMNS, BlockSide, Kernel, KernelRows

WHOLE = float(1 << 53)
ROUNDING = 64.0
AS_GIVEN = (dual.GIVEN, 0.0, 0.0, 0, 0.0)
NOT_RECORDED = "under a budget they are stored only with record=True"


@dataclass(frozen=True)
class Dropped:
    """The mistakes that a budget did not store.

    `mistake` are their numbers in the ledger and `example` their examples. `lost` is the part of ‖φ(x)‖² that the stored
    examples could not express: 0 where nothing was lost, 1 where everything was.
    """

    budget: int | None
    mistake: Ints
    example: Ints
    lost: Floats

    def __len__(self) -> int:
        return len(self.mistake)

    def __repr__(self) -> str:
        if self.budget is None:
            return "<Dropped: nothing, for there is no budget>"
        if not len(self):
            return f"<Dropped: nothing, the budget of {self.budget:,} examples sufficed>"
        examples, mean, most = len(np.unique(self.example)), self.lost.mean(), self.lost.max()
        return (
            f"<Dropped: {len(self):,} mistakes on {examples:,} examples, for a budget of {self.budget:,}; "
            f"of each {mean:.1%} was lost on average, {most:.1%} at most>"
        )


class DualLedger(Ledger):
    """The mistakes of a kernel perceptron on n examples; `at` and `weights` return a coefficient for each example.

    Under a budget, `basis` are the examples stored, in that order, and `combination[m]`, if recorded, the coefficients of
    the correction of mistake m on them.
    """

    def __init__(self, classes: Array, n: int, kernel: Kernel, *, tie: int, scored: bool, budget: int | None) -> None:
        super().__init__(classes, n, bias=bool(kernel.form[-1]), tie=tie, scored=scored, start=None)
        self.kernel, self.budget = kernel, budget
        self.basis: list[int] = []
        self._lost = Column("f8")
        self._combinations: list[Floats] | None = [] if scored else None

    @property
    def n_outputs(self) -> int:
        """How many scores an example has."""
        return n_outputs(len(self.classes))

    def store(self, combination: Floats, lost: float, times: int) -> None:
        """Note by what combination of the stored examples the latest mistakes correct, and the part that was lost."""
        self._lost.append(np.full(times, lost))
        if self._combinations is not None:
            self._combinations += [combination] * times

    @property
    def recorded(self) -> bool:
        """Whether the corrections are known: without a budget from the mistakes alone."""
        return self.budget is None or self._combinations is not None

    def cut_to(self, pass_number: int, steps: int, mistakes: int) -> None:
        """Go back to the end of a pass, forgetting what came after and saying so."""
        super().cut_to(pass_number, steps, mistakes)
        self.basis = self.basis[: int(np.count_nonzero(np.isin(self.basis, self.example)))]

    @property
    def dropped(self) -> Dropped:
        """The mistakes that the budget did not store."""
        lost = self._lost.values[: len(self)]
        gone = np.flatnonzero(~np.isin(self.example, self.basis)) if self.budget is not None else NO_ORDER
        return Dropped(self.budget, gone, self.example[gone].astype(np.int64), lost[gone])

    @property
    def combination(self) -> Floats:
        """The correction of each mistake on the stored examples."""
        if self._combinations is None:
            raise ValueError(f"the corrections of mistakes are not known: {NOT_RECORDED}")
        table = np.zeros((len(self), len(self.basis)))
        for row, combination in zip(table, self._combinations, strict=False):
            row[: len(combination)] = combination
        return table

    def pack_budget(self, parcel: Parcel, at: str) -> None:
        """Put what a budget stored into a parcel, and what each mistake lost."""
        parcel.put(f"{at}.basis", np.array(self.basis, np.int64))
        parcel.put(f"{at}.lost", self._lost.values[: len(self)])
        if self._combinations is not None:
            combinations = self._combinations[: len(self)]
            parcel.put(f"{at}.combinations", np.concatenate([np.empty(0), *combinations]))
            parcel.put(f"{at}.lengths", np.array([len(combination) for combination in combinations], np.int64))

    def unpack_budget(self, parcel: Parcel, at: str) -> None:
        """Fill in what a budget stored, and what each mistake lost."""
        self.basis = parcel.take(f"{at}.basis", "i8", (-1,), low=0, high=self.n_features - 1).tolist()
        if len(self.basis) > (self.budget or 0) or len(set(self.basis)) < len(self.basis):
            raise StateError("more examples are stored than the budget allows, or one of them twice")
        m = len(self) if self.budget else 0
        self._lost.fill(parcel.take(f"{at}.lost", "f8", (m,)))
        if self._combinations is not None:
            lengths = parcel.take(f"{at}.lengths", "i8", (m,), low=0, high=len(self.basis))
            coefficients = parcel.take(f"{at}.combinations", "f8", (int(lengths.sum()),))
            self._combinations = np.split(coefficients, np.cumsum(lengths)[:-1]) if len(lengths) else []

    def until(self, step: int) -> DualLedger:
        """Return a copy that ends with step `step`."""
        then = copy.deepcopy(self)
        passes = sum(begin < step for begin, _ in self.pass_starts)
        then.cut_to(passes, step, int(np.searchsorted(self.step, step, side="right")))
        return then

    def corrections(self) -> tuple[Array, ...]:
        """Return example, class raised, class lowered and correction of each mistake, as the kernels read them."""
        by = self.correction if self.correction.size else np.ones(len(self))
        return self.example.astype(np.int64), self.up.astype(np.int32), self.down.astype(np.int32), by

    def at(self, k: int, X: Any = None) -> Weights:
        """Return the coefficient of each example after the first k mistakes; X is not needed."""
        if not 0 <= k <= len(self):
            raise ValueError(f"k must be between 0 and the {len(self)} mistakes of the ledger, got {k}")
        example, *corrections = (column[:k] for column in self.corrections())
        if self.budget is None:
            coef = summed(self.n_outputs, self.n_features, example, *corrections)
        else:
            coef = np.zeros((self.n_outputs, self.n_features))
            coef[:, self.basis] = summed(self.n_outputs, k, np.arange(k), *corrections) @ self.combination[:k]
        return Weights(coef, coef.sum(axis=1) * float(self.bias))

    def verify(self, X: Any, y: Any) -> bool:
        """Tell whether every mistake really was one, given the corrections before it, on these data.

        Exactly where all kernel values are whole numbers and there is no budget; else up to rounding.
        """
        rows, labels = as_rows(X), as_labels(y)
        if rows.n != self.n_features or len(labels) != rows.n:
            return False
        try:
            codes = encode_as(self.classes, labels)
        except ValueError:
            return False
        examples, numbers = KernelRows(self.kernel, rows), np.arange(len(self))
        before = np.searchsorted(self.step, self.step)  # one visit makes all its mistakes at once
        parts = (numbers[begin : begin + COLUMNS] for begin in range(0, len(self), COLUMNS))
        return all(self._audit(examples, codes, part, before[part]) for part in parts)

    def _audit(self, examples: KernelRows, codes: Codes, which: Ints, before: Ints) -> bool:
        """Tell whether some mistakes were mistakes: the right class raised, and no lead over the class lowered."""
        scores, largest, whole = self._scores(examples, which, before)
        example, up, down, by = self.corrections()
        total = np.concatenate([[0.0], np.cumsum(by)])[before]
        exact = (total * largest < WHOLE) & whole & bool(np.all(by == np.floor(by)))
        slack = np.where(exact, 0.0, ROUNDING * np.finfo(self.kernel.dtype).eps * total * largest)
        label, up, down, each = codes[example[which]], up[which], down[which], np.arange(len(which))
        if scores.shape[1] == 1:
            score = scores[:, 0]
            lead = np.where(up == 1, score, -score)
        else:
            lead = np.where(up == NOBODY, 0.0, scores[each, up]) - np.where(down == NOBODY, 0.0, scores[each, down])
            score = np.where(up == NOBODY, -lead, lead)
            wrong = scores.copy()
            wrong[each, up] = -np.inf
            if np.any(exact & (up != NOBODY) & (down != NOBODY) & (np.argmax(wrong, axis=1) != down)):
                return False
        if np.any((up != NOBODY) & (label != up)) or np.any(label == down):
            return False
        if self.score.size and np.any(np.abs(score - self.score[which]) > slack):
            return False
        return not np.any((lead > slack) | (exact & (lead == 0.0) & _tie_wins(up, down, self.tie)))

    def _scores(self, examples: KernelRows, which: Ints, before: Ints) -> tuple[Floats, float, bool]:
        """Return the scores at which some mistakes were made, the largest kernel value, and whether all were whole."""
        example, *corrections = (column[: before.max(initial=0)] for column in self.corrections())
        left, largest, whole = examples.side(self.example[which].astype(np.int64)), 0.0, self.budget is None
        names, column = np.unique(example, return_inverse=True)
        if self.budget is not None:
            names = column = np.arange(len(example))
        scores, every = np.zeros((len(which), self.n_outputs)), np.arange(len(which))
        for begin in range(0, len(names), COLUMNS):
            values = self._values(left, examples, names[begin : begin + COLUMNS])
            largest, whole = max(largest, float(np.abs(values).max())), whole and bool(np.all(values == np.floor(values)))
            chosen = np.flatnonzero((column >= begin) & (column < begin + COLUMNS))
            events = (column[chosen] - begin, *(part[chosen] for part in corrections))
            absorb(values, every, events, np.searchsorted(chosen, before), scores)
        return scores, largest, whole

    def _values(self, left: BlockSide, examples: KernelRows, names: Ints) -> Floats:
        """Return kernel values with the named examples; under a budget, with the corrections of the numbered mistakes."""
        if self.budget is None:
            return self.kernel.values(left, examples.side(names))
        return self.kernel.values(left, examples.side(np.asarray(self.basis))) @ self.combination[names].T


def absorb(values: Floats, every: Ints, corrections: tuple[Array, ...], last: Ints, scores: Floats) -> None:
    """Let the first last[e] corrections change the scores of row e, with kernel values that are at hand."""
    events, first = tuple(frozen(column) for column in corrections), np.zeros(len(every), np.int64)
    scratch = np.empty((2, values.shape[1]))
    dual.absorb(
        *(values, frozen(every), NO_ORDER, AS_GIVEN, NO_WEIGHT, NO_WEIGHT, events, first, last),
        *(every, scores, scratch),
    )


def summed(K: int, n: int, column: Ints, up: Array, down: Array, by: Floats) -> Floats:
    """Return the sum of the corrections on each of n columns, for each of K outputs."""
    coef = np.zeros((K, n))
    if K == 1:
        np.add.at(coef[0], column, np.where(up == 1, by, -by))
        return coef
    for classes, sign in ((up, 1.0), (down, -1.0)):
        named = classes != NOBODY
        np.add.at(coef, (classes[named], column[named]), sign * by[named])
    return coef


def _tie_wins(up: Array, down: Array, tie: int) -> Array:
    """Tell where an exact tie would have been right for the class raised."""
    if tie == TIE_IS_MISTAKE:
        return np.zeros(len(up), bool)
    alone = (up == NOBODY) | (down == NOBODY)
    plus = tie == TIE_IS_PLUS
    return np.where(alone, (up != NOBODY) == plus, up > down if plus else up < down)
