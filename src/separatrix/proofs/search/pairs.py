"""The vectors a of the theorems: aᵢ = yᵢx̃ᵢ; for K classes a pair (row, rival) has x̃ in two blocks (Kesler's construction).

A pair has a number: its row for two classes, row·K + rival for more. The search needs the leads ⟨w,a⟩ of all pairs, and the
vectors of a few, in floating point or as exact integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.engine.rows import NO_ORDER, Array, Floats, Ints, Rows, frozen
from separatrix.kernels.modular import PRIME
from separatrix.proofs.clock import check_time
from separatrix.proofs.proof import Direction, Witness
from separatrix.proofs.search.rationals import Whole, whole_columns

_ORDINARY = 400
"""Squares of numbers within 2^±400 neither underflow nor overflow."""
_SMALLEST_SQUARE = 2.0**-1000
"""A larger sum of squares has lost nothing that matters to underflow."""
_PAIRS_AT_ONCE = 1 << 20
"""So many leads are computed at a time."""
_KEPT_PAIRS = 1 << 23
"""Of more than two classes, no array has a float64 for each of more pairs: what is needed of them is computed by blocks."""
_FEW_NUMBERS = 500
"""Pairs with so few numbers in all are decided exactly in milliseconds."""
_LOWEST = -1074
"""The exponent that frexp gives to the smallest float is larger; that of the largest is 1024."""


@cache
def _powers_of_two() -> NDArray[np.int64]:
    """Return 2^(e − 53) mod p for the exponents e of frexp, from the lowest on."""
    return np.array([pow(2, e - 53, PRIME) for e in range(_LOWEST, 1025)], np.int64)


class Pairs:
    """All pairs of a data set."""

    def __init__(self, rows: Rows, codes: Array, n_classes: int, bias: bool) -> None:
        self.rows, self.codes, self.K, self.bias = rows, np.asarray(codes, np.int64), n_classes, bias
        self.m = rows.d + bias
        self.blocks = 1 if n_classes == 2 else n_classes
        self.dim = self.blocks * self.m
        self.signs = np.where(self.codes == 1, 1.0, -1.0)
        self.count = rows.n * (n_classes - 1)

    @property
    def is_tiny(self) -> bool:
        """Whether exact arithmetic on all pairs takes milliseconds."""
        return self.count * self.dim <= _FEW_NUMBERS

    @property
    def are_many(self) -> bool:
        """Whether a float64 for each pair would take more memory than the data may cost."""
        return self.K > 2 and self.rows.n * self.K > _KEPT_PAIRS

    def row_of(self, pairs: Ints) -> Ints:
        """Return the row of each pair."""
        return pairs if self.K == 2 else pairs // self.K

    def rival_of(self, pairs: Ints) -> Ints:
        """Return the rival class of each pair."""
        return 1 - self.codes[pairs] if self.K == 2 else pairs % self.K

    def leads(self, w: Floats, which: Ints = NO_ORDER) -> Floats:
        """Return ⟨w,a⟩ for all pairs by number, or for those of some rows in order; infinite at a row's own class."""
        if not which.size and self.rows.n * self.blocks > _PAIRS_AT_ONCE:
            return np.concatenate([leads for _, _, leads in self.blocks_of_leads(w)])
        W = w.reshape(self.blocks, self.m)
        bias = W[:, self.rows.d] if self.bias else np.zeros(self.blocks)
        scores = self.rows.scores(W[:, : self.rows.d], bias, which)
        if self.K == 2:
            return scores[:, 0] * (self.signs[which] if which.size else self.signs)
        codes = self.codes[which] if which.size else self.codes
        every = np.arange(len(codes))
        leads = scores[every, codes][:, None] - scores
        leads[every, codes] = np.inf
        flat: Floats = leads.reshape(-1)
        return flat

    def blocks_of_leads(self, w: Floats) -> Iterator[tuple[int, int, Floats]]:
        """Yield blocks of rows, begin and end, with the leads of their pairs; all at once unless these are very many."""
        for begin, end in self.row_blocks():
            yield begin, end, self.leads(w, NO_ORDER if end - begin == self.rows.n else frozen(np.arange(begin, end)))

    def row_blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the ends of blocks of rows, whose pairs are worked on at once; check the time before each."""
        step = max(1, _PAIRS_AT_ONCE // self.blocks)
        for begin in range(0, self.rows.n, step):
            check_time()
            yield begin, min(begin + step, self.rows.n)

    def smallest_leads(self, w: Floats) -> tuple[Floats, Ints]:
        """Return the smallest lead of each row, and the number of the pair that has it."""
        return Leads(self, w).smallest()

    def leads_of(self, w: Floats, pairs: Ints) -> Floats:
        """Return ⟨w,a⟩ of some pairs, at least one."""
        W, which = w.reshape(self.blocks, self.m), self.row_of(pairs)
        bias = W[:, self.rows.d] if self.bias else np.zeros(self.blocks)
        scores = self.rows.scores(W[:, : self.rows.d], bias, which)
        if self.K == 2:
            return scores[:, 0] * self.signs[which]
        every = np.arange(len(pairs))
        leads: Floats = scores[every, self.codes[which]] - scores[every, self.rival_of(pairs)]
        return leads

    @cached_property
    def exist(self) -> NDArray[np.bool_]:
        """Which numbers are pairs: for K classes a row has none against its own class."""
        return self.existing(0, self.rows.n)

    def existing(self, begin: int, end: int) -> NDArray[np.bool_]:
        """Return which numbers of the rows begin…end are pairs."""
        if self.K == 2:
            return np.ones(end - begin, bool)
        return np.asarray(np.arange(self.K)[None, :] != self.codes[begin:end, None]).reshape(-1)

    def some(self, most: int, rng: np.random.Generator) -> Ints:
        """Return random pairs, each once: `most` of them, or all, or a few less where the pairs are very many."""
        if not self.are_many:
            drawn: Ints = rng.choice(np.flatnonzero(self.exist), min(most, self.count), replace=False)
            return drawn
        numbers = np.unique(rng.integers(0, self.rows.n * self.K, most))
        return np.asarray(numbers[numbers % self.K != self.codes[numbers // self.K]])

    def _taken(self, which: Ints) -> NDArray[Any]:
        taken = self.rows.source[which]
        return taken.toarray() if sp.issparse(taken) else np.asarray(taken)

    def _block(self, begin: int, end: int) -> Any:
        """Return rows begin…end; without a slice where these are all, because slicing a CSR matrix copies it."""
        return self.rows.source if end - begin == self.rows.n else self.rows.source[begin:end]

    def vectors(self, pairs: Ints) -> Floats:
        """Return the vectors of some pairs, a row each."""
        which = self.row_of(pairs)
        x = np.ones((len(pairs), self.m))
        x[:, : self.rows.d] = self._taken(which)
        return self._placed(x, pairs)

    def _placed(self, x: NDArray[Any], pairs: Ints) -> NDArray[Any]:
        if self.K == 2:
            return np.asarray(x * self.signs[pairs].astype(np.int64).astype(x.dtype)[:, None])
        out = np.zeros((len(pairs), self.K, self.m), x.dtype)
        every = np.arange(len(pairs))
        out[every, self.codes[self.row_of(pairs)]] = x
        out[every, self.rival_of(pairs)] = -x
        return out.reshape(len(pairs), self.dim)

    def whole(self, pairs: Ints) -> tuple[Whole, list[int]]:
        """Return the vectors of some pairs as integers, and the power of two by which each column was multiplied."""
        table, shifts = whole_columns(self._taken(self.row_of(pairs)))
        if self.bias:
            table = np.concatenate([table, np.ones((len(pairs), 1), object)], axis=1)
            shifts = [*shifts, 0]
        return self._placed(table, pairs), shifts * self.blocks

    def residues(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return rows x̃ modulo p. A float is an integer times a power of two, which has an inverse."""
        block = self._block(begin, end)
        block = block.toarray() if sp.issparse(block) else np.asarray(block)
        if block.dtype.kind == "u":
            residues = (block % np.uint64(PRIME)).astype(np.int64)
        elif block.dtype.kind in "ib":
            residues = np.mod(block.astype(np.int64), PRIME)
        else:
            mantissa, exponent = np.frexp(block.astype(np.float64))
            residues = np.mod((mantissa * 2.0**53).astype(np.int64), PRIME)
            residues = residues * _powers_of_two()[exponent.astype(np.int64) - _LOWEST] % PRIME
        return np.concatenate([residues, np.ones((len(residues), 1), np.int64)], axis=1) if self.bias else residues

    def direction(self, w: Any) -> Direction:
        """Return a flat vector as an exact direction."""
        numbers = [Fraction(value) for value in (w.tolist() if isinstance(w, np.ndarray) else w)]
        return tuple(tuple(numbers[k * self.m : (k + 1) * self.m]) for k in range(self.blocks))

    def witness(self, pairs: Ints, weights: list[Fraction]) -> Witness:
        """Return the pairs of positive weight as a witness, in order of rows."""
        chosen = sorted((int(p), weight) for p, weight in zip(pairs, weights, strict=True) if weight)
        places = np.array([p for p, _ in chosen], np.int64)
        rows, rivals = self.row_of(places).tolist(), self.rival_of(places).tolist()
        return Witness(tuple(rows), tuple(rivals), tuple(weight for _, weight in chosen)).normalised()

    def column_scales(self) -> Floats:
        """Return for each column of x̃ the power of two nearest above its largest size: dividing by it is exact."""
        tops = np.append(self._tops, np.ones(self.m - self.rows.d))
        exponents = np.minimum(np.frexp(tops)[1], 1023).astype(np.float64)  # 2^1024 is infinite
        exponents[tops == 0] = 0
        scales: Floats = np.tile(2.0**exponents, self.blocks)
        return scales

    @cached_property
    def _tops(self) -> Floats:
        """The largest size in each column of x."""
        tops = np.zeros(self.rows.d)
        for begin, end in self.rows.blocks():
            block = self._block(begin, end)
            if sp.issparse(block):
                np.maximum.at(tops, block.indices, np.abs(block.data.astype(np.float64)))
            elif end > begin:
                low, high = block.min(axis=0).astype(np.float64), block.max(axis=0).astype(np.float64)
                tops = np.maximum(tops, np.maximum(high, -low))
        return tops

    def is_whole(self, which: Ints) -> bool:
        """Tell whether some rows hold integers only."""
        for begin in range(0, len(which), 1000):
            taken = self.rows.source[which[begin : begin + 1000]]
            values = taken.data if sp.issparse(taken) else np.asarray(taken)
            if not (values == np.floor(values)).all():
                return False
        return True

    @cached_property
    def _squares(self) -> Floats:
        """‖x‖² of each row, rounded; it may overflow or underflow."""
        squares = np.empty(self.rows.n)
        for begin, end in self.rows.blocks():
            block = self._block(begin, end).astype(np.float64, copy=False)
            summed = block.multiply(block).sum(axis=1) if sp.issparse(block) else np.einsum("ij,ij->i", block, block)
            squares[begin:end] = np.asarray(summed).reshape(-1)
        return squares

    @cached_property
    def exponent(self) -> int:
        """An e with the largest numbers near 2^e; 0 where all are 0."""
        longest = float(self._squares.max(initial=0.0))
        if _SMALLEST_SQUARE < longest < np.inf:
            return int(np.frexp(longest)[1]) // 2
        return int(np.frexp(self._tops.max(initial=0.0))[1])

    @cached_property
    def _scaled_squares(self) -> tuple[Floats, Ints]:
        """Sums s and exponents e with ‖x‖² = s·4^e, rounded, where plain squares could overflow or underflow.

        A row has the exponent of its own largest number: beside rows that are 2^500 times as long, no common power of two
        keeps the squares of both.
        """
        sums, exponents = np.empty(self.rows.n), np.empty(self.rows.n, np.int64)
        for begin, end in self.rows.blocks():
            block = self._block(begin, end).astype(np.float64, copy=False)
            if sp.issparse(block):
                own = np.frexp(abs(block).max(axis=1).toarray().reshape(-1))[1]
                data = np.ldexp(block.data, -np.repeat(own, np.diff(block.indptr)))
                block = sp.csr_matrix((data, block.indices, block.indptr), block.shape)
                summed = block.multiply(block).sum(axis=1)
            else:
                own = np.frexp(np.abs(block).max(axis=1, initial=0.0))[1]
                block = np.ldexp(block, -own[:, None])
                summed = np.einsum("ij,ij->i", block, block)
            sums[begin:end], exponents[begin:end] = np.asarray(summed).reshape(-1), own
        return sums, exponents

    @property
    def _is_ordinary(self) -> bool:
        return abs(self.exponent) <= _ORDINARY

    @cached_property
    def norms(self) -> Floats:
        """‖x̃‖ of each row, rounded."""
        if self._is_ordinary:
            return np.sqrt(self._squares + self.bias)
        sums, exponents = self._scaled_squares
        return np.hypot(np.ldexp(np.sqrt(sums), exponents), float(self.bias))

    @cached_property
    def radius_squared(self) -> Fraction:
        """Max ‖x̃‖² exactly, or, where many rows are within rounding of the largest, a slightly larger number."""
        e = 0 if self._is_ordinary else self.exponent
        squares, source = self._squares, self.rows.source
        numbers = int(np.diff(source.indptr).max(initial=0)) if sp.issparse(source) else self.rows.d
        slack = 1e-12 + 5e-16 * numbers  # above the rounding errors of two such sums, and far below 1e-9
        if e:
            sums, exponents = self._scaled_squares
            squares = np.ldexp(sums, 2 * (exponents - e))
        top = float(squares.max())
        close = np.flatnonzero(squares >= top * (1 - slack))
        if not e and top < 2.0**50 and self.is_whole(close):
            return Fraction(int(top) + self.bias)
        if close.size <= 64:
            taken = source[close]
            if sp.issparse(taken):
                taken = taken[:, np.unique(taken.indices)].toarray()
            exact, shifts = whole_columns(np.asarray(taken))
            common = max(shifts, default=0)
            raised = exact << np.array([common - shift for shift in shifts], object)
            return Fraction(max(sum(int(v) ** 2 for v in row) for row in raised), 1 << (2 * common)) + self.bias
        if e:
            return Fraction(top * (1 + slack)) * Fraction(4) ** e + self.bias
        return Fraction((top + self.bias) * (1 + slack))


class Leads:
    """⟨w,a⟩ of all pairs by number: kept, or, where the pairs are very many, computed by blocks each time they are read."""

    def __init__(self, pairs: Pairs, w: Floats, known: Floats | None = None) -> None:
        self.pairs, self.w = pairs, w
        self.kept = pairs.leads(w) if known is None and not pairs.are_many else known

    def __iter__(self) -> Iterator[tuple[int, Floats]]:
        """Yield the number of the first pair of a block, and the leads of the block."""
        if self.kept is not None:
            yield 0, self.kept
            return
        for begin, _, leads in self.pairs.blocks_of_leads(self.w):
            yield begin * self.pairs.blocks, leads

    def of(self, which: Ints) -> Floats:
        """Return the leads of some pairs."""
        return self.pairs.leads_of(self.w, which) if self.kept is None else self.kept[which]

    def least(self) -> float:
        """Return the smallest lead; NaN where one is NaN."""
        return float(np.min([leads.min() for _, leads in self]))

    def are_finite(self) -> bool:
        """Tell whether all leads are finite; those of rows against their own class, which are infinite, do not count."""
        own = self.pairs.rows.n if self.pairs.K > 2 else 0
        return sum(int(np.count_nonzero(~np.isfinite(leads))) for _, leads in self) == own

    def smallest(self) -> tuple[Floats, Ints]:
        """Return the smallest lead of each row, and the number of the pair that has it."""
        if self.pairs.K == 2 and self.kept is not None:
            return self.kept, np.arange(self.pairs.rows.n)
        least, numbers = np.empty(self.pairs.rows.n), np.arange(self.pairs.rows.n) * self.pairs.K
        for first, leads in self:
            table = leads.reshape(-1, self.pairs.K)
            rivals, begin = np.argmin(table, axis=1), first // self.pairs.K
            least[begin : begin + len(table)] = table[np.arange(len(table)), rivals]
            numbers[begin : begin + len(table)] += rivals
        return least, numbers
