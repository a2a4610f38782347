"""Proofs about data with thousands of weights or millions, such as text: a separator is a sum of examples, w = Σλa.

A perceptron and the dual of the largest margin both build w from examples: λ counts the mistakes on a pair, or is its
multiplier. So a few integers state a separator of millions of weights, and prove both ends of the margin:

    min ⟨w,a⟩ / ‖w‖  ≤  γ  ≤  ‖w‖ / Σλ

No vector of a pair is written out: rows are read as they lie, and the only arrays as wide as the data are one vector of
weights for each class. Where no pass of the perceptron is clean, the reason is often a row that occurs in two classes; the
dual, and the nearest point of the hull of the hardest pairs, computed from their products, come next.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.engine.rows import Array, Floats, Ints, Rows, frozen
from separatrix.engine.weights import Flat, Weights
from separatrix.kernels.learning import dual_descent as kernels
from separatrix.proofs.clock import begin, check_time, seconds_left
from separatrix.proofs.proof import MarginProof, Proof, Witness
from separatrix.proofs.search.nearest_point import nearest_by_products
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.perceptron import perceptron_run
from separatrix.proofs.search.rationals import dependency, whole_columns
from separatrix.proofs.search.separation import Face
from separatrix.solvers.soft_margin import ABSENT, AUGMENTED, MarginProblem

WIDE = 2000
"""Data with more weights than this are proven about here."""
_UNIT = 2.0**-53
_FINE, _SHORT = 2.0**40, 2.0**16
"""Multipliers are rounded to integers up to the first where a separator is sought, and to the second for a margin."""
_SCORES_AT_ONCE = 1 << 22
_MOST_TWINS = 1000
_GOOD_GAP = 0.01
"""The relative width of the margin's interval at which the descent ends."""
_PERCEPTRON_PASSES, _MOST_PERCEPTRON_PASSES, _PASSES, _MARGIN_PASSES = 50, 300, 300, 48
_BATCH, _ROUNDS, _MOST_PAIRS = 300, 60, 3000
_WITNESS_CELLS = 2_000_000


class Sum(NamedTuple):
    """w = Σλa over some pairs, each once, with whole λ > 0."""

    pairs: Ints
    weights: Floats


class Judgement(NamedTuple):
    """What a sum proves: by how much each row is right at least, against which rival, and an upper bound on ‖w‖."""

    sum: Sum
    leads: Floats
    rivals: Ints
    norm: float

    @property
    def least(self) -> float:
        """A lower bound on all leads."""
        return float(self.leads.min())

    @property
    def upper(self) -> float:
        """An upper bound on the margin, ‖w‖ / Σλ."""
        return self.norm / float(self.sum.weights.sum())


class WidePairs:
    """Pairs whose vectors are never written out."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.rows: Rows = pairs.rows if pairs.rows.parts is not None else pairs.rows.take(slice(None))
        source = self.rows.source
        self.slack = 1e-9 + 8 * pairs.m * _UNIT
        """By how much the ends of a margin are rounded away from it, so that the checker's own rounding does not matter."""
        self.longest_row = int(np.diff(source.indptr).max(initial=0)) if self.rows.sparse else self.rows.d
        self._flat: Flat | None = None

    def judged(self, total: Sum) -> Judgement:
        """Return the leads of w = Σλa, reduced by a bound on their rounding errors, and ‖w‖, raised by one.

        A number of w is a sum of s products, and its error at most s·u·Σλ|x|; so the error of w is at most s·u·Σλ‖x̃‖ in
        length, and that of a score (s + m)·u·‖x̃‖·Σλ‖x̃'‖, where m is how many numbers a row has. Twice that is allowed for.
        """
        pairs, rows = self.pairs, self.rows
        n, K = rows.n, pairs.blocks
        (coef, intercept), lengths = self.weights(total)
        unit = 4.04 * (len(total.pairs) + self.longest_row + 16) * _UNIT
        leads, against = np.empty(n), np.empty(n, np.int64)
        step = max(1, _SCORES_AT_ONCE // K)
        for first in range(0, n, step):
            check_time()
            part = np.arange(first, min(n, first + step))
            scores = rows.scores(coef, intercept, part)
            if K == 1:
                leads[part], against[part] = scores[:, 0] * pairs.signs[part], 1 - pairs.codes[part]
                continue
            own = scores[np.arange(len(part)), pairs.codes[part]]
            scores[np.arange(len(part)), pairs.codes[part]] = -np.inf
            against[part] = np.argmax(scores, axis=1)
            leads[part] = own - scores[np.arange(len(part)), against[part]]
        leads -= 2 * unit * pairs.norms * float(lengths.max(initial=0.0))
        norm = float(np.sqrt(sum(float(w @ w) for w in coef) + float(intercept @ intercept)))
        norm += unit * float(np.linalg.norm(lengths))
        return Judgement(total, leads, against, norm)

    def weights(self, total: Sum) -> tuple[Weights, Floats]:
        """Return w = Σλa by class, rounded, and for each class the sum of the lengths of what is added up.

        The next call overwrites w: the first write to an array of that size takes longer than adding up.
        """
        pairs, rows, K = self.pairs, self.rows, self.pairs.blocks
        self._flat = self._flat or Flat(K, rows.d, rows.sparse)
        flat, lengths = self._flat, np.zeros(K)
        flat.W[:], flat.b[:] = 0.0, 0.0
        step = max(1, _SCORES_AT_ONCE // K) if pairs.are_many else rows.n
        for first in range(0, rows.n, step):
            last = min(rows.n, first + step)
            here = (
                (pairs.row_of(total.pairs) >= first) & (pairs.row_of(total.pairs) < last) if step < rows.n else slice(None)
            )
            numbers, weights = total.pairs[here], total.weights[here]
            which, rivals = pairs.row_of(numbers), pairs.rival_of(numbers)
            coefficients = np.zeros((last - first, K))
            if K == 1:
                coefficients[which, 0] = weights * pairs.signs[which]
            else:
                np.add.at(coefficients, (which - first, pairs.codes[which]), weights)
                np.add.at(coefficients, (which - first, rivals), -weights)
            part = rows.take(slice(first, last)) if pairs.are_many else rows
            kernels.combine(part.parts, rows.d, frozen(coefficients.reshape(-1)), flat.W, flat.b, K)
            lengths += np.abs(coefficients).T @ pairs.norms[first:last]
        coef = flat.W.reshape(rows.d, K).T if rows.sparse else flat.W.reshape(K, rows.d)
        return Weights(coef, flat.b if pairs.bias else np.zeros(K)), lengths

    def margin(self, best: Judgement, short: Judgement) -> MarginProof:
        """Return the interval that one sum proves from below and another from above."""
        least = best.least * (1 - self.slack)
        direction = self.witness(best.sum)
        weights = direction if short is best else self.witness(short.sum)
        lower = least / (best.norm * (1 + 2 * self.slack))
        return MarginProof(direction, Fraction(least), weights, lower, short.upper * (1 + 2 * self.slack))

    def witness(self, total: Sum) -> Witness:
        """Return the sum as rows, rivals and weights."""
        order = np.argsort(total.pairs)
        which = total.pairs[order]
        rows, rivals = self.pairs.row_of(which).tolist(), self.pairs.rival_of(which).tolist()
        return Witness(tuple(rows), tuple(rivals), tuple(Fraction(int(weight)) for weight in total.weights[order].tolist()))

    def search(self) -> Judgement | Face | None:
        """Return a sum that separates, or a witness, or None where neither was found."""
        begin("looking for equal rows of different classes")
        twins = self.twins()
        if twins is not None:
            return Face(twins, [Fraction(1), Fraction(1)], None)
        begin("training a perceptron")
        judged = self.judged(self._mistakes())
        if judged.least > 0:
            return judged
        begin("searching for a separator by the dual of the largest margin")
        share = time.monotonic() + seconds_left() / 2
        for attempt in self.descent(_PASSES, _FINE):
            if attempt.least > 0:
                return attempt
            judged = attempt if attempt.least > judged.least else judged
            if time.monotonic() > share:
                break
        begin("searching for a witness among the hardest pairs")
        return self._nearest(judged)

    def _mistakes(self) -> Sum:
        """Return the mistakes of a perceptron that stopped after a clean pass, or in time."""
        run, _ = perceptron_run(self.pairs, "shuffle", _PERCEPTRON_PASSES, _MOST_PERCEPTRON_PASSES)
        example = np.asarray(run.ledger.example, np.int64)
        pairs = example if self.pairs.K == 2 else example * self.pairs.K + run.ledger.down
        return Sum(*(column.astype(dtype) for column, dtype in zip(np.unique(pairs, return_counts=True), "lf", strict=True)))

    def narrowed(self, judged: Judgement) -> tuple[Judgement, Judgement]:
        """Return the sums with the best lower and the best upper end of the margin that a few passes find."""
        best, short = judged, judged
        for attempt in self.descent(_MARGIN_PASSES, _SHORT, time.monotonic() + seconds_left(), patience=4):
            if attempt.least > 0 and attempt.least / attempt.norm > best.least / best.norm:
                best = attempt
            short = attempt if attempt.upper < short.upper else short
            if best.least / best.norm > (1 - _GOOD_GAP) * short.upper:
                break
        return best, short

    def descent(self, passes: int, top: float, until: float = np.inf, patience: int = 2) -> Iterator[Judgement]:
        """Descend in the dual of the largest margin, and yield what its multipliers prove after 1, 2, 4, … passes.

        While they separate nothing, the next try is after `patience` times as many passes.

        From eight passes on their means over the passes since the last power of two are tried, too: a pass fits each row at
        the cost of those before it, so the smallest lead, on which the lower end depends, swings from pass to pass.

        Nothing is yielded where the pairs are very many: each has a multiplier.
        """
        pairs = self.pairs
        if pairs.are_many or not (pairs.bias or pairs.norms.all()):
            return
        cost = np.full(self.rows.n, np.inf)
        codes = pairs.codes.astype(np.int32)
        problem = MarginProblem(self.rows, codes, pairs.K, cost, AUGMENTED if pairs.bias else ABSENT)
        begun, total, due = time.monotonic(), np.zeros(0), 1
        for number, alpha in enumerate(problem.passes(0), 1):
            check_time()
            total = total + alpha if total.size else alpha.copy()
            each = (time.monotonic() - begun) / number  # seconds a pass; judging takes about as long
            is_last = number >= passes or time.monotonic() + 3 * each > until
            if number == due or is_last:
                due = patience * number
                for multipliers in (alpha, total) if number >= 8 else (alpha,):
                    rounded = self._rounded(multipliers, top)
                    if rounded.pairs.size:
                        judged = self.judged(rounded)
                        due = 2 * number if judged.least > 0 else due
                        yield judged
            if number & (number - 1) == 0:
                total = np.zeros(0)
            if is_last:
                return

    def _rounded(self, alpha: Floats, size: float) -> Sum:
        """Return the pairs of positive multipliers with these rounded to integers, the largest to `size`."""
        multipliers = alpha if self.pairs.K == 2 else np.where(self.pairs.exist, -alpha, 0.0)
        top = float(multipliers.max(initial=0.0))
        whole = np.round(multipliers * (size / top)) if 0 < top < np.inf else np.zeros(0)
        which = np.flatnonzero(whole > 0)
        return Sum(which, whole[which])

    def twins(self) -> Ints | None:
        """Return the pairs of two equal rows of different classes, each against the other's class, or None."""
        hashes = self._row_hashes()
        order = np.lexsort((self.pairs.codes, hashes))
        alike = hashes[order[1:]] == hashes[order[:-1]]
        candidates = np.flatnonzero(alike & (self.pairs.codes[order[1:]] != self.pairs.codes[order[:-1]]))
        for place in candidates[:_MOST_TWINS].tolist():
            i, j = sorted(order[place : place + 2].tolist())
            x, other = self.rows.source[[i]], self.rows.source[[j]]
            if (x != other).nnz == 0 if self.rows.sparse else np.array_equal(x, other):
                pair = np.array([i, j])
                return pair if self.pairs.K == 2 else pair * self.pairs.K + self.pairs.codes[[j, i]]
        return None

    def _row_hashes(self) -> NDArray[np.uint64]:
        """Return a number for each row that is the same for equal rows: Σ r_j·bits(x_j) modulo 2⁶⁴ for scattered odd r."""
        hashes = np.empty(self.rows.n, np.uint64)
        step = max(1, _SCORES_AT_ONCE // max(1, self.longest_row))
        for first in range(0, self.rows.n, step):
            check_time()
            last = min(self.rows.n, first + step)
            if self.rows.sparse:
                ends = self.rows.source.indptr[first : last + 1]
                begin_at, end_at = int(ends[0]), int(ends[-1])
                bits = (self.rows.source.data[begin_at:end_at].astype(np.float64) + 0.0).view(np.uint64)
                bits *= _scattered(self.rows.source.indices[begin_at:end_at])
                sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bits)])
                hashes[first:last] = sums[ends[1:] - begin_at] - sums[ends[:-1] - begin_at]
            else:
                block = np.ascontiguousarray(self.rows.source[first:last].astype(np.float64) + 0.0)
                hashes[first:last] = block.view(np.uint64) @ _scattered(np.arange(self.rows.d))
        return hashes

    def _nearest(self, judged: Judgement) -> Judgement | Face | None:
        """Search among the hardest pairs by the nearest point of their hull; those that its w fails on join them."""
        work = self._hardest(judged, np.empty(0, np.int64))
        for _ in range(_ROUNDS):
            check_time()
            products = self._products(work)
            lengths = np.sqrt(products.diagonal())
            if not lengths.all():  # a = 0 alone is a witness
                return Face(work[lengths == 0][:1], [Fraction(1)], None)
            weights = nearest_by_products(products / np.outer(lengths, lengths))
            if weights is None:
                return None
            support = np.flatnonzero(weights > 0)
            scaled = weights / lengths
            if float(weights @ (products / np.outer(lengths, lengths)) @ weights) < 1e-12:
                face = self._exact_witness(work[support])
                if face is not None:
                    return face
            total = np.round(scaled[support] * (_FINE / scaled.max()))
            judged = self.judged(Sum(work[support][total > 0], total[total > 0]))
            if judged.least > 0:
                return judged
            new = self._hardest(judged, work)
            if not new.size:
                return None
            work = np.union1d(work if len(work) < _MOST_PAIRS else work[support], new)
        return None

    def _hardest(self, judged: Judgement, work: Ints) -> Ints:
        """Return some pairs on which a sum fails, or at first those with the smallest leads, that are not among `work`."""
        which = np.argsort(judged.leads, kind="stable")[: _BATCH + len(work)]
        which = which[judged.leads[which] <= 0] if work.size else which
        numbers = which if self.pairs.K == 2 else which * self.pairs.K + judged.rivals[which]
        new: Ints = np.setdiff1d(numbers, work)[:_BATCH]
        return new

    def _products(self, which: Ints) -> Floats:
        """Return ⟨a,a'⟩ of some pairs: ⟨x̃,x̃'⟩, times 1, −1, 0, 2 or −2 by the classes that the pairs have in common."""
        pairs, rows = self.pairs, self.pairs.row_of(which)
        taken = self.rows.source[rows].astype(np.float64)
        products = taken @ taken.T
        products = np.asarray(products.toarray() if sp.issparse(products) else products) + float(pairs.bias)
        if pairs.K == 2:
            signs = pairs.signs[rows]
            return np.asarray(products * np.outer(signs, signs))
        own, rival = pairs.codes[rows], pairs.rival_of(which)
        same = (own[:, None] == own).astype(float) + (rival[:, None] == rival)
        return np.asarray(products * (same - (own[:, None] == rival) - (rival[:, None] == own)))

    def _exact_witness(self, which: Ints) -> Face | None:
        """Return the witness on these pairs with its exact weights, or None if they have none or are too many."""
        pairs, rows = self.pairs, self.pairs.row_of(which)
        taken: Any = self.rows.source[rows]
        if self.rows.sparse:
            taken = taken[:, np.unique(taken.indices)]
        own, rival = pairs.codes[rows], pairs.rival_of(which)
        classes = np.array([1]) if pairs.K == 2 else np.unique(np.concatenate([own, rival]))
        if len(which) * (taken.shape[1] + 1) * len(classes) > _WITNESS_CELLS:
            return None
        table, _ = whole_columns(np.asarray(taken.toarray() if self.rows.sparse else taken))
        if pairs.bias:
            table = np.concatenate([table, np.ones((len(which), 1), object)], axis=1)
        signs: Array = (own[:, None] == classes).astype(object) - (rival[:, None] == classes).astype(object)
        weights = dependency(np.concatenate([signs[:, [k]] * table for k in range(len(classes))], axis=1))
        return None if weights is None or min(weights) <= 0 else Face(which, weights, None)


def _scattered(numbers: Ints) -> NDArray[np.uint64]:
    """Return an odd number that looks random for each number."""
    mixed = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return mixed | np.uint64(1)


def with_used_columns(pairs: Pairs) -> Pairs:
    """Return the pairs of sparse rows without the columns that are 0 in all of them, if these are at least half."""
    rows = pairs.rows
    if not rows.sparse:
        return pairs
    source, is_used = rows.source, np.zeros(rows.d, bool)
    is_used[source.indices] = True
    used = np.count_nonzero(is_used)
    if 2 * used > rows.d:
        return pairs
    place = np.cumsum(is_used, dtype=source.indices.dtype) - 1
    packed = sp.csr_matrix((source.data, place[source.indices], source.indptr), shape=(rows.n, used))
    return Pairs(Rows(packed), pairs.codes, pairs.K, pairs.bias)


def separable(wide: WidePairs, blank: Proof, best: Judgement, short: Judgement) -> Proof:
    """Return the proof that a sum gives."""
    margin = wide.margin(best, short)
    factor = 1 if wide.pairs.K == 2 else 2
    square = (Fraction(best.norm) * (1 + Fraction(wide.slack))) ** 2
    return replace(
        blank,
        verdict="separable",
        separation="complete",
        direction=margin.direction,
        margin=margin,
        geometric=margin if wide.pairs.K == 2 and not wide.pairs.bias else None,
        mistake_bound=(factor * blank.radius_squared * square / margin.least**2).__floor__(),
    )


def summed(pairs: Pairs, total: Witness) -> Weights:
    """Return the weights that a sum of examples states, rounded to float64."""
    numbers = np.array(total.rows) if pairs.K == 2 else np.array(total.rows) * pairs.K + np.array(total.rivals)
    return WidePairs(pairs).weights(Sum(numbers, np.array([float(weight) for weight in total.weights])))[0]
