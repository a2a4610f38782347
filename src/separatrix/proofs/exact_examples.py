"""The examples of a proof in exact arithmetic, as the checker reads them: signs of leads, sums of witnesses, norms.

A float is an exact rational. The sign of ⟨w,a⟩ is first computed in floating point, where the error is at most
(q+8)·u·‖x‖‖w‖ (u = 2⁻⁵³, any order of summation, q the most numbers of a row); a row whose score lies within that bound
of the threshold is decided again with integers, and so is a row so short or so long that its norm is lost to underflow or
overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import inf, isqrt, lcm, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.proofs.proof import Direction, Witness

Signs = NDArray[np.int8]
Pause = Callable[[], None]

_UNIT = 2.0**-53
_TINY = 1e-290
_SHORTEST, _LONGEST = 1e-130, 1e130
"""Norms of rows whose squares are lost neither to underflow, which takes less than _TINY, nor to overflow."""
_BLOCK, _CELLS, _SCORES = 1 << 21, 1 << 18, 1 << 22


class ExactExamples:
    """The rows x̃ of X, with a 1 appended where there is a bias, and the class of each."""

    def __init__(self, X: Any, codes: NDArray[Any], n_classes: int, bias: bool, pause: Pause = lambda: None) -> None:
        self.X: Any = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        self.codes = np.asarray(codes, np.int64)
        self.n, self.d = self.X.shape
        self.K, self.bias, self.m, self.pause = n_classes, bias, self.X.shape[1] + bias, pause
        self.unit = 2.02 * (_most_numbers(self.X) + bias + 8) * _UNIT
        """The relative error of a sum of products over a row, twice over."""
        self._norms: NDArray[np.float64] | None = None
        self._totals: dict[int, SumOfExamples] = {}

    def blocks(self, scores: int = 1, first: int = 0, last: int | None = None) -> Iterator[tuple[int, int, Any]]:
        """Yield (begin, end, rows as float64) for so many scores a row; integers above 2⁵³ are rounded, once."""
        last = self.n if last is None else last
        width = -(-self.X.nnz // max(1, self.n)) if sp.issparse(self.X) else self.d
        step = max(1, _BLOCK // max(1, width, scores))
        for begin in range(first, last, step):
            self.pause()
            end = min(last, begin + step)
            block = self.X if end - begin == self.n else self.X[begin:end]  # slicing CSR copies it
            yield begin, end, block.astype(np.float64, copy=False)

    @property
    def norms(self) -> NDArray[np.float64]:
        """‖x̃‖ of each row, with a relative error far below 1/1000."""
        if self._norms is None:
            squares = np.empty(self.n)
            with np.errstate(all="ignore"):
                for begin, end, block in self.blocks():
                    if sp.issparse(block):
                        squares[begin:end] = np.asarray(block.multiply(block).sum(axis=1)).reshape(-1)
                    else:
                        squares[begin:end] = np.einsum("ij,ij->i", block, block)
                self._norms = np.sqrt(squares + self.bias)
        return self._norms

    def occupied(self, which: NDArray[Any]) -> NDArray[Any]:
        """Return the columns in which some rows x̃ can differ from 0."""
        columns = np.unique(self.X[which].indices) if sp.issparse(self.X) else np.arange(self.d)
        return np.append(columns, self.d) if self.bias else columns

    def total(self, witness: Witness) -> SumOfExamples:
        """Return w = Σλa, for a direction that is stated in this way."""
        if id(witness) not in self._totals:
            self._totals[id(witness)] = SumOfExamples(self, witness)
        return self._totals[id(witness)]

    def signs(self, direction: Direction | Witness, threshold: Fraction) -> Iterator[tuple[int, int, Signs]]:
        """Yield (begin, end, signs of ⟨w,a⟩ − threshold) for blocks of rows.

        There is one column for two classes, and one for each rival for more (own class: 0).
        """
        if isinstance(direction, Witness):
            yield from self.total(direction).signs(threshold)
            return
        scale = lcm(threshold.denominator, *{number.denominator for vector in direction for number in vector})
        W = [multiplied(vector, scale) for vector in direction]
        (c,) = multiplied([threshold], scale)
        top = 1 << max(1, abs(c).bit_length(), *(abs(number).bit_length() for vector in W for number in vector))
        floats = np.array([[number / top for number in vector] for vector in W])
        coef = np.ascontiguousarray(floats[0, : self.d] if self.K == 2 else floats[:, : self.d].T)
        intercept = floats[:, self.d] if self.bias else np.zeros(len(W))
        size = float(np.max(np.sqrt(np.sum(floats * floats, axis=1)))) + _TINY
        limit = c / top
        for begin, end, block in self.blocks(len(W)):
            codes = self.codes[begin:end]
            with np.errstate(all="ignore"):
                scores = np.asarray(block @ coef).reshape(end - begin, -1) + intercept
                error = self.unit * (self.norms[begin:end] + _TINY)[:, None] * size + _TINY
                if self.K == 2:
                    leads = scores * np.where(codes == 1, 1.0, -1.0)[:, None]
                else:
                    leads = scores[np.arange(end - begin), codes][:, None] - scores
                    error = 2 * error
                error = error + 8 * _UNIT * abs(limit)
                leads = leads - limit
                norms = self.norms[begin:end, None]
                sure = (np.abs(leads) > error) & (norms > _SHORTEST) & (norms < _LONGEST)
            signs = np.where(leads > 0, 1, -1).astype(np.int8)
            if self.K > 2:
                sure[np.arange(end - begin), codes] = True
                signs[np.arange(end - begin), codes] = 0
            doubtful = np.flatnonzero(~sure.all(axis=1))
            if doubtful.size:
                self._decide(begin, doubtful, W, c, sure, signs)
            yield begin, end, signs

    def _decide(self, begin: int, doubtful: NDArray[Any], W: list[list[int]], c: int, sure: Any, signs: Signs) -> None:
        """Replace the doubtful signs by exact ones."""
        if self._decide_in_whole_floats(begin, doubtful, W, c, signs):
            return
        vectors = np.array(W, object)
        used = np.flatnonzero([vector.any() for vector in vectors.T])
        for part in np.array_split(doubtful, 1 + len(doubtful) * max(min(len(used), 1 << 12), len(W)) // _CELLS):
            self.pause()
            columns = np.intersect1d(used, self.occupied(begin + part))
            table, cleared = self.whole_rows(begin + part, columns)
            scale = max(cleared, default=1)  # powers of two
            scores = table @ (vectors[:, columns] * np.array([scale // each for each in cleared], object)).T
            own = self.codes[begin + part]
            if self.K == 2:
                leads = scores * np.where(own == 1, 1, -1).astype(object)[:, None]
            else:
                leads = scores[np.arange(len(part)), own][:, None] - scores
            exact = (leads > c * scale).astype(np.int8) - (leads < c * scale)
            signs[part] = np.where(sure[part], signs[part], exact)

    def _decide_in_whole_floats(self, begin: int, doubtful: NDArray[Any], W: list[list[int]], c: int, signs: Signs) -> bool:
        """Decide with floats if they are exact: integers whose products and sums stay below 2⁵³. Return whether it did."""
        if max((abs(number) for vector in W for number in vector), default=0) >= 1 << 52 or abs(c) >= 1 << 50:
            return False
        rows = self.X[begin + doubtful].astype(np.float64)
        values = rows.data if sp.issparse(rows) else rows
        floats = np.array(W, dtype=np.float64)
        size = float(np.max(np.sqrt(np.sum(floats * floats, axis=1))))
        with np.errstate(all="ignore"):
            if not (values == np.floor(values)).all() or not (self.norms[begin + doubtful] * size < 2.0**50).all():
                return False
        scores = np.asarray(rows @ np.ascontiguousarray(floats[:, : self.d].T)) + (floats[:, self.d] if self.bias else 0.0)
        codes = self.codes[begin + doubtful]
        if self.K == 2:
            leads = scores * np.where(codes == 1, 1.0, -1.0)[:, None]
        else:
            leads = scores[np.arange(len(codes)), codes][:, None] - scores
        signs[doubtful] = np.sign(leads - c).astype(np.int8)
        if self.K > 2:
            signs[doubtful, codes] = 0
        return True

    def whole_rows(self, which: Any, columns: NDArray[Any] | None = None) -> tuple[NDArray[Any], list[int]]:
        """Return rows x̃, or some columns of them, as Python integers, and the denominator cleared from each column."""
        columns = np.arange(self.m) if columns is None else columns
        table = self.X[np.asarray(which)][:, columns[columns < self.d]]
        table = table.toarray() if sp.issparse(table) else table
        d = table.shape[1]
        whole, scales = np.ones((len(table), len(columns)), object), [1] * len(columns)
        if table.dtype.kind in "iub":
            whole[:, :d] = table.astype(object) + 0
            return whole, scales
        mantissas, exponents = np.frexp(table.astype(np.float64))
        exponents = np.where(mantissas != 0, exponents - 53, 1024)
        lowest = np.minimum(exponents.min(axis=0, initial=0), 0)
        raised = np.where(mantissas != 0, exponents - lowest, 0)
        whole[:, :d] = (mantissas * 2.0**53).astype(np.int64).astype(object) << raised.astype(object)
        scales[:d] = [1 << -int(exponent) for exponent in lowest]
        return whole, scales

    def combination(self, witness: Witness) -> dict[tuple[int, int], Fraction]:
        """Return the nonzero numbers of Σλa by (block, column); two classes share block 0."""
        scale = lcm(1, *(weight.denominator for weight in witness.weights))
        weights = np.array(multiplied(witness.weights, scale), object)
        columns = self.occupied(np.array(witness.rows))
        rows, cleared = self.whole_rows(witness.rows, columns)
        own, rivals = self.codes[list(witness.rows)], np.array(witness.rivals)
        total: dict[tuple[int, int], Fraction] = {}
        for block in range(1 if self.K == 2 else self.K):
            signs = np.where(own == 1, 1, -1) if self.K == 2 else (own == block).astype(int) - (rivals == block)
            self.pause()
            used = np.flatnonzero(signs)
            for j, value in enumerate((weights[used] * signs[used].astype(object)) @ rows[used] if used.size else ()):
                if value:
                    total[block, int(columns[j])] = Fraction(int(value), cleared[j] * scale)
        return total

    def within_radius(self, claimed: Fraction) -> bool:
        """Return whether every ‖x̃‖² is at most `claimed`, and the largest agrees with it to nine digits."""
        longest = float(np.max(self.norms))
        if not _SHORTEST < longest < _LONGEST:
            largest = max(map(self._square, range(self.n)))
            return largest <= claimed <= largest * (1 + Fraction(1, 10**9))
        if not claimed <= Fraction(longest * longest) * (1 + Fraction(1, 10**9)):
            return False
        squares, top = self.norms * self.norms, float(claimed)
        error = self.unit * squares + _TINY
        doubtful = np.flatnonzero(~(squares + error < top))
        if doubtful.size and top < 2.0**50:
            rows = self.X[doubtful].astype(np.float64)
            values = rows.data if sp.issparse(rows) else rows
            if (values == np.floor(values)).all():
                whole = rows.multiply(rows).sum(axis=1) if sp.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
                return int(np.max(np.asarray(whole))) + self.bias <= claimed
        return all(self._square(i) <= claimed for i in doubtful.tolist())

    def _square(self, i: int) -> Fraction:
        self.pause()
        (row,), cleared = self.whole_rows([i], self.occupied(np.array([i])))
        scale = max(cleared, default=1)  # powers of two
        total = sum((int(value) * (scale // each)) ** 2 for value, each in zip(row, cleared, strict=True))
        return Fraction(total, scale * scale)


class SumOfExamples:
    """w = Σλa, a direction that a proof states by its pairs: in floating point with an error bound, exactly where needed.

    w_k = Σ_t c_tk x̃_t over s rows t, where c_tk adds up the λ of the row's pairs, with a minus where k is the rival. A
    computed number of w_k is wrong by at most (s+1)·u·Σ_t |c_tk||x_tj|, so w_k itself by (s+1)·u·B_k in length, where
    B_k = Σ_t |c_tk|‖x̃_t‖ is an upper bound on ‖w_k‖; and a score of a row with q numbers by (s+q+8)·u·‖x̃‖·B_k. Twice that is
    allowed for.
    """

    def __init__(self, examples: ExactExamples, witness: Witness) -> None:
        self.examples, self.witness = examples, witness
        self.scale = lcm(1, *{weight.denominator for weight in witness.weights})
        weights = multiplied(witness.weights, self.scale)
        rows = np.unique(np.array(witness.rows))
        place = {i: t for t, i in enumerate(rows.tolist())}
        self.terms: list[dict[int, int]] = [{} for _ in place]
        """For each of the rows the coefficients c_tk, by class."""
        for i, rival, weight in zip(witness.rows, witness.rivals, weights, strict=True):
            terms, own = self.terms[place[i]], int(examples.codes[i])
            if examples.K == 2:
                terms[0] = terms.get(0, 0) + (weight if own == 1 else -weight)
            else:
                terms[own] = terms.get(own, 0) + weight
                terms[rival] = terms.get(rival, 0) - weight
        self.table: Any = examples.X[rows]
        entries = [(k, t, c) for t, terms in enumerate(self.terms) for k, c in terms.items()]
        sizes = np.array([float(c) if abs(c) < 1 << 1000 else inf for _, _, c in entries])
        places = np.array([k for k, _, _ in entries]), np.array([t for _, t, _ in entries])
        self.coefficients = sp.csr_array((sizes, places), shape=(1 if examples.K == 2 else examples.K, len(rows)))
        norms = examples.norms[rows]
        self.bounds = 1.01 * np.asarray(abs(self.coefficients) @ norms)
        self.is_ordinary = bool(((norms == 0) | ((norms > _SHORTEST) & (norms < _LONGEST))).all())
        self._at_once = max(1, 2 * _BLOCK // max(1, examples.d))
        """So many classes have their vectors computed at a time."""
        self._columns: dict[int, dict[int, Fraction]] = {}
        self._by_column: Any = None
        self._squares: list[float] = []
        """‖w_k‖² of each class, rounded, once the vectors have been computed."""

    def _unit(self) -> float:
        return self.examples.unit + 2.02 * (len(self.terms) + 8) * _UNIT

    def _vectors(self) -> Iterator[tuple[slice, NDArray[np.float64], NDArray[np.float64]]]:
        """Yield (classes, their vectors without the bias, their biases), a few classes at a time."""
        blocks = self.coefficients.shape[0]
        squares: list[float] = []
        for first in range(0, blocks, self._at_once):
            self.examples.pause()
            part = slice(first, min(blocks, first + self._at_once))
            with np.errstate(all="ignore"):
                vectors = self.coefficients[part] @ self.table.astype(np.float64)
                vectors = np.asarray(vectors.toarray() if sp.issparse(vectors) else vectors)
                biases = np.asarray(self.coefficients[part].sum(axis=1)).reshape(-1) * self.examples.bias
                squares += (np.einsum("ij,ij->i", vectors, vectors) + biases * biases).tolist()
            yield part, vectors, biases
        self._squares = squares

    def length(self) -> Fraction:
        """Return an upper bound on ‖w‖."""
        with np.errstate(all="ignore"):
            for _ in self._vectors() if not self._squares else ():
                pass
            error = self._unit() * float(np.sqrt(np.sum(self.bounds**2)))
            bound = sqrt(sum(self._squares)) * (1 + 2 * (self.examples.m + len(self._squares) + 16) * _UNIT) + 1.01 * error
        if not (self.is_ordinary and _TINY < bound < inf):  # only an exact sum could tell
            square = sum((value * value for value in self.examples.combination(self.witness).values()), Fraction(0))
            return Fraction(isqrt(square.numerator * square.denominator) + 1, square.denominator)
        return Fraction(bound) / self.scale

    def signs(self, threshold: Fraction) -> Iterator[tuple[int, int, Signs]]:
        """Yield the signs of ⟨w,a⟩ − threshold by blocks of rows, as `ExactExamples.signs` does."""
        examples, limit = self.examples, threshold * self.scale
        is_small = abs(limit) < 1 << 1000
        level = float(limit) if is_small else inf
        for first, last, scores in self._scores():
            codes, norms, every = examples.codes[first:last], examples.norms[first:last], np.arange(last - first)
            with np.errstate(all="ignore"):
                error = self._unit() * (norms + _TINY)[:, None] * self.bounds + _TINY
                if examples.K == 2:
                    leads = scores * np.where(codes == 1, 1.0, -1.0)[:, None]
                else:
                    leads, error = scores[every, codes][:, None] - scores, error + error[every, codes][:, None]
                leads -= level
                fit = (norms > _SHORTEST) & (norms < _LONGEST) & (norms * float(self.bounds.max()) < 1e300)
                sure = (np.abs(leads) > error + 8 * _UNIT * abs(level)) & (fit & self.is_ordinary & is_small)[:, None]
            signs = np.where(leads > 0, 1, -1).astype(np.int8)
            if examples.K > 2:
                sure[every, codes] = True
                signs[every, codes] = 0
            for i in np.flatnonzero(~sure.all(axis=1)).tolist():
                exact = self._exact_scores(first + i)
                own = int(codes[i])
                if examples.K == 2:
                    lead = (exact.get(0, Fraction(0)) if own == 1 else -exact.get(0, Fraction(0))) - limit
                    signs[i, 0] = (lead > 0) - (lead < 0)
                    continue
                for rival in range(examples.K):
                    lead = exact.get(own, Fraction(0)) - exact.get(rival, Fraction(0)) - limit
                    signs[i, rival] = 0 if rival == own else (lead > 0) - (lead < 0)
            yield first, last, signs

    def _scores(self) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Yield (begin, end, scores of the rows in floating point): so many rows at once that the scores fit in memory.

        The vectors are computed again for each such part of the rows, unless all classes fit in memory, too.
        """
        examples, blocks = self.examples, self.coefficients.shape[0]
        step = max(1, _SCORES // blocks)
        vectors = None if self._at_once < blocks else list(self._vectors())
        for first in range(0, examples.n, step):
            last = min(examples.n, first + step)
            scores = np.empty((last - first, blocks))
            for classes, W, b in self._vectors() if vectors is None else vectors:
                columns = np.ascontiguousarray(W.T)
                for begin, end, block in examples.blocks(W.shape[0], first, last):
                    with np.errstate(all="ignore"):
                        scores[begin - first : end - first, classes] = np.asarray(block @ columns) + b
            yield first, last, scores

    def _exact_scores(self, i: int) -> dict[int, Fraction]:
        """Return the exact scores of row i by class, without those that are 0."""
        self.examples.pause()
        columns = self.examples.occupied(np.array([i]))
        (row,), cleared = self.examples.whole_rows([i], columns)
        scores: dict[int, Fraction] = {}
        for value, scale, j in zip(row, cleared, columns.tolist(), strict=True):
            if value:
                for k, number in self._column(j).items():
                    scores[k] = scores.get(k, Fraction(0)) + number * Fraction(int(value), scale)
        return scores

    def _column(self, j: int) -> dict[int, Fraction]:
        """Return number j of each w_k, exactly."""
        if j not in self._columns:
            self.examples.pause()
            if self._by_column is None:
                self._by_column = sp.csc_array(self.table) if sp.issparse(self.table) else self.table
            if j == self.examples.d:
                places, values = range(len(self.terms)), [1] * len(self.terms)
            elif sp.issparse(self.table):
                part = slice(self._by_column.indptr[j], self._by_column.indptr[j + 1])
                places, values = self._by_column.indices[part].tolist(), self._by_column.data[part].tolist()
            else:
                places, values = range(len(self.terms)), self.table[:, j].tolist()
            sums: dict[int, Fraction] = {}
            for t, value in zip(places, values, strict=True):
                for k, c in self.terms[t].items():
                    sums[k] = sums.get(k, Fraction(0)) + c * Fraction(value)
            self._columns[j] = sums
        return self._columns[j]


def _most_numbers(X: Any) -> int:
    """Return how many numbers a row has at most; a sparse one has those that are written."""
    return int(np.diff(X.indptr).max(initial=0)) if sp.issparse(X) else int(X.shape[1])


def multiplied(numbers: Iterable[Fraction], scale: int) -> list[int]:
    """Return numbers × scale, for a scale that every denominator divides."""
    return [number.numerator * (scale // number.denominator) for number in numbers]
