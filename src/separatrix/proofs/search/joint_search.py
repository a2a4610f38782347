"""Many classes at once: Newton's method finds a separator, or the two classes that nothing separates.

    min  ½ Σ max(0, 1 − ⟨W,a⟩)² + ½ρ‖W‖²        over W, for the pairs a of `pairs.py`; ρ falls towards 0

The loss is a parabola while the set of pairs with a lead below 1 stays the same, so a Newton step solves it, and a line
search keeps the steps short while the set changes (finite Newton method, Keerthi and DeCoste 2005). A pair has x̃ in two of
K blocks: the Hessian is a sum of one matrix XᵀX for each two classes, which is K times cheaper than products of the pairs
themselves. On separable data every lead becomes positive as ρ falls.

Where some leads stay negative, the classes that W confuses are tried by themselves: rows of two classes that no plane
separates are a witness for all classes, with at most d + 2 rows. Classes that W does not confuse are separated by it.
If no smaller set of classes will do, the minimum is a witness up to rounding: there Σ max(0, 1 − ⟨W,a⟩)·a = ρW ≈ 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.rows import Floats, Ints, Rows
from separatrix.proofs.clock import check_time
from separatrix.proofs.search.nearest_point import worst
from separatrix.proofs.search.pairs import Pairs

_MANY_WEIGHTS = 200
_MANY_ROWS, _ROWS_AT_ONCE = 10_000, 1_000
_STEPS = 120
_LEAST_RIDGE = 1e-13
_FLAT = 1e-11
"""A gradient that is this small beside the sum of all losses ends the descent for one ρ."""
_HALVINGS = 12
_PAIRS_AT_ONCE = 1 << 20
_MOST_CLASSES = 4
"""Of a set that is tried by itself: larger sets take nearly as long as all classes."""


@dataclass
class Descent:
    """Where Newton's method ended: W as one vector, for columns that are divided by `scales`, and the leads of all pairs."""

    w: Floats
    leads: LeadTables
    lengths: Floats
    """Of the rows, by which the leads were divided."""
    separates: bool

    def hardest(self, most: int) -> Ints:
        """Return the numbers of the pairs with the smallest leads."""
        largest = float(np.finfo(np.float64).max)  # leads over a row's own class are infinite
        chosen, _ = worst(self.blocks(), largest, most, np.empty(0, np.int64))
        return chosen

    def blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield the number of the first pair of a block of rows, and the leads of the block."""
        for block, leads in self.leads:
            yield block.start * leads.shape[1], leads.reshape(-1)

    def nearly_balanced(self, K: int, most: int) -> tuple[Ints, list[float]]:
        """Return the pairs with a lead below 1, and weights by which they add up to nearly 0, the largest first.

        None are returned where they are more than `most`.
        """
        found, shortfalls, count = [], [], 0
        for first, leads in self.blocks():
            short_ones = np.flatnonzero(leads < 1.0)
            found.append(first + short_ones)
            shortfalls.append(1.0 - leads[short_ones])
            count += len(short_ones)
            if count > most:
                return short_ones[:0], []
        which, short = np.concatenate(found), np.concatenate(shortfalls)
        order = np.argsort(-short, kind="stable")
        weights = short[order] / self.lengths[which[order] // K]
        return which[order], (weights / weights.max(initial=1e-300)).tolist()


def needs_descent(pairs: Pairs) -> bool:
    """Tell whether Newton's method comes before the search, whose linear programs would take too long."""
    return pairs.K > 2 and pairs.dim > _MANY_WEIGHTS


class LeadTables:
    """The leads over the rows' lengths at W, and how they change along D, as tables of rows and rivals, a block at a time.

    They are kept, or, where the pairs are very many, computed each time that they are read. A row's own class has an
    infinite lead that never changes.
    """

    def __init__(self, pairs: Pairs, A: Floats | sp.csr_matrix) -> None:
        n, K = pairs.rows.n, pairs.K
        self.A, self.codes, self.blocks = A, pairs.codes, _blocks(n, K)
        self.parts = [A] if len(self.blocks) == 1 else [A[block] for block in self.blocks]
        self.W, self.D = np.zeros((2, K, pairs.m))
        self.kept: tuple[Floats, Floats] | None = None
        if not pairs.are_many:
            self.kept = np.zeros((n, K)), np.empty((n, K))
            self.kept[0][np.arange(n), self.codes] = inf

    def __iter__(self) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows with their leads."""
        for number, block in enumerate(self.blocks):
            check_time()
            yield block, self.at(number)

    def at(self, number: int) -> Floats:
        """Return the leads of a block."""
        block = self.blocks[number]
        if self.kept is not None:
            return self.kept[0][block]
        return _leads(self.parts[number], self.W, self.codes[block], inf)

    def gain(self, number: int) -> Floats:
        """Return the changes of the leads of a block for a step of 1."""
        block = self.blocks[number]
        return self.kept[1][block] if self.kept is not None else _leads(self.parts[number], self.D, self.codes[block], 0.0)

    def of(self, rows: Ints) -> Iterator[tuple[Ints, Floats]]:
        """Yield some rows with their leads, all at once or a few at a time."""
        if self.kept is not None:
            yield rows, self.kept[0][rows]
            return
        step = self.blocks[0].stop
        for part in (rows[begin : begin + step] for begin in range(0, len(rows), step)):
            check_time()
            yield part, _leads(self.A[part], self.W, self.codes[part], inf)

    def turn(self, D: Floats) -> None:
        """Look along another D."""
        self.D = D
        if self.kept is not None:
            for part, block in zip(self.parts, self.blocks, strict=True):
                check_time()
                self.kept[1][block] = _leads(part, D, self.codes[block], 0.0)

    def move(self, step: float) -> None:
        """Go along D."""
        self.W += step * self.D
        if self.kept is not None:
            for block in self.blocks:
                self.kept[0][block] += step * self.kept[1][block]


def _leads(part: Floats | sp.csr_matrix, W: Floats, codes: Ints, own_lead: float) -> Floats:
    scores = np.asarray(part @ W.T)
    own = np.arange(len(scores)), codes
    leads: Floats = scores[own][:, None] - scores
    leads[own] = own_lead
    return leads


def descend(pairs: Pairs, scales: Floats) -> Descent:
    """Minimise the loss until every lead is positive or nothing changes any more."""
    (A, lengths), codes, K = _unit_rows(pairs, scales), pairs.codes, pairs.K
    members = [np.flatnonzero(codes == k) for k in range(K)]
    leads, ridge, separates = LeadTables(pairs, A), 1.0, False
    for _ in range(_STEPS):
        check_time()
        downhill, losses, W = np.zeros_like(leads.W), 0.0, leads.W
        for (block, table), part in zip(leads, leads.parts, strict=True):
            pull = np.minimum(0.0, table - 1.0)  # exactly 0 at a row's own class, whose lead is infinite
            lost = -pull.sum(axis=1)
            pull[np.arange(len(pull)), codes[block]] = lost
            downhill += _gradient(part, pull)
            losses += float(lost.sum())
        while np.abs(downhill - ridge * W).max() < _FLAT * (losses + 1.0) and ridge > _LEAST_RIDGE:
            ridge *= 0.01
        if ridge <= _LEAST_RIDGE:
            break
        try:
            D = np.linalg.solve(_hessian(A, members, leads, ridge), (downhill - ridge * W).reshape(-1)).reshape(W.shape)
        except np.linalg.LinAlgError:
            break
        leads.turn(np.asarray(D))
        leads.move(_step(leads, float((W * D).sum()) * ridge, float((D * D).sum()) * ridge))
        separates = all(bool((table > 0).all()) for _, table in leads)
        if separates:
            break
    return Descent(leads.W.reshape(-1), leads, lengths, separates)


def _gradient(A: Floats | sp.csr_matrix, pull: Floats) -> Floats:
    """Return pullᵀA. Of many rows, BLAS gets a few at a time: its threads wait for each other, long on a busy machine."""
    if sp.issparse(A) or len(A) <= _MANY_ROWS:
        return np.asarray(A.T @ pull).T
    total = np.zeros((pull.shape[1], A.shape[1]))
    for begin in range(0, len(A), _ROWS_AT_ONCE):
        check_time()
        part = slice(begin, begin + _ROWS_AT_ONCE)
        total += pull[part].T @ A[part]
    return total


def _blocks(n: int, K: int) -> list[slice]:
    """Return blocks of rows, so that what is computed for all pairs of a block stays small."""
    step = max(1, _PAIRS_AT_ONCE // K)
    return [slice(first, first + step) for first in range(0, n, step)]


def _unit_rows(pairs: Pairs, scales: Floats) -> tuple[Floats | sp.csr_matrix, Floats]:
    """Return the rows x̃ with columns divided by `scales`, each row divided by its length, and the lengths."""
    divisors, d = scales[: pairs.rows.d], pairs.rows.d
    if pairs.rows.sparse:
        A = sp.csr_matrix(pairs.rows.source.astype(np.float64).multiply(1.0 / divisors))
        A = sp.hstack([A, np.ones((pairs.rows.n, 1)) / scales[pairs.m - 1]], format="csr") if pairs.bias else A
        lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
        lengths[lengths == 0] = 1.0
        return sp.csr_matrix(sp.diags(1.0 / lengths) @ A), lengths
    dense = np.empty((pairs.rows.n, pairs.m))
    dense[:, d:] = 1.0 / scales[pairs.m - 1]
    for begin, end in pairs.rows.blocks():
        np.divide(pairs.rows.source[begin:end], divisors, out=dense[begin:end, :d])
    lengths = np.sqrt(np.einsum("ij,ij->i", dense, dense))
    lengths[lengths == 0] = 1.0
    dense /= lengths[:, None]
    return dense, lengths


def _hessian(A: Floats | sp.csr_matrix, members: list[Ints], leads: LeadTables, ridge: float) -> Floats:
    """Return ρ·1 + Σ aaᵀ over the pairs with a lead below 1: XᵀX of the rows of class k with rival l is in four blocks.

    The same vector added to all blocks of W changes no lead; a 1 in every block keeps Newton's steps free of such vectors.
    """
    K, m = len(members), A.shape[1]
    H = np.tile(np.eye(m)[None, :, None, :], (K, 1, K, 1))
    for k, rows in enumerate(members):
        check_time()
        for some, table in leads.of(rows):
            for rival in range(K):
                chosen = some[table[:, rival] < 1]
                if not chosen.size:
                    continue
                part: Any = A[chosen]
                square = part.T @ part
                square = square.toarray() if sp.issparse(square) else square
                H[k, :, k] += square
                H[rival, :, rival] += square
                H[k, :, rival] -= square
                H[rival, :, k] -= square
    flat = H.reshape(K * m, K * m)
    flat[np.diag_indices(K * m)] += ridge
    return flat


def _step(leads: LeadTables, slope: float, curvature: float) -> float:
    """Return the best part of a Newton step: the slope of the loss along it rises, so halving an interval finds its 0."""

    def uphill(step: float) -> float:
        falling = 0.0
        for number in range(len(leads.blocks)):
            check_time()
            gain = leads.gain(number)
            short = np.maximum(0.0, 1.0 - leads.at(number) - step * gain)
            falling += float(np.einsum("ij,ij->", short, gain))
        return slope + step * curvature - falling

    if not uphill(1.0) > 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        check_time()
        middle = (low + high) / 2
        low, high = (low, middle) if uphill(middle) > 0 else (middle, high)
    return high


def confused_classes(pairs: Pairs, descent: Descent) -> Iterator[list[int]]:
    """Yield sets of classes that may be inseparable by themselves: each two that W confuses, then three and four.

    The most confused two come first. To these is added the class whose leads over and under them fall short most, and so on.
    """
    wrong, short = np.zeros((pairs.K, pairs.K)), np.zeros((pairs.K, pairs.K))
    for k in range(pairs.K):
        for _, of_class in descent.leads.of(np.flatnonzero(pairs.codes == k)):
            wrong[k] += np.maximum(0.0, -of_class).sum(axis=0)
            short[k] += np.maximum(0.0, 1.0 - of_class).sum(axis=0)
    confusion, short = np.triu(wrong + wrong.T, 1), short + short.T
    order = np.argsort(-confusion, axis=None, kind="stable")[: np.count_nonzero(confusion)]
    for place in order.tolist():
        yield list(divmod(place, pairs.K))
    classes = list(divmod(int(order[0]), pairs.K)) if order.size else list(range(pairs.K))
    while len(classes) < min(_MOST_CLASSES, pairs.K - 1):
        nearness = short[classes].sum(axis=0)
        nearness[classes] = -1.0
        classes.append(int(np.argmax(nearness)))
        yield sorted(classes)


def of_classes(pairs: Pairs, classes: list[int]) -> tuple[Pairs, Ints]:
    """Return the rows of some classes as pairs of these alone, and the numbers that they have among all pairs.

    In Kesler's construction x̃ and −x̃ stand in the blocks of the two classes of a pair, so what balances is the same.
    """
    code_of = np.full(pairs.K, -1)
    code_of[classes] = np.arange(len(classes))
    rows = np.flatnonzero(code_of[pairs.codes] >= 0)
    codes = code_of[pairs.codes[rows]]
    alone = Pairs(Rows(pairs.rows.source[rows]), codes, len(classes), pairs.bias)
    if len(classes) == 2:
        return alone, rows * pairs.K + np.array(classes)[1 - codes]
    return alone, (rows[:, None] * pairs.K + np.array(classes)[None, :]).reshape(-1)
