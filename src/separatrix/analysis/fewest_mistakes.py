"""The fewest training mistakes of any linear classifier: NP-hard (L1 3), so the result is a proven interval.

    upper   a concrete classifier, found by training without the examples that are far on the wrong side, and by exact 0/1
            line searches from the pocket and along random directions
    lower   witnesses Σλa = 0, λ > 0. By Gordan's theorem no classifier gets all examples of a witness right, so the mistakes
            of every classifier hit every witness: they are a hitting set. k disjoint witnesses prove at least k mistakes,
            and the size of a minimum hitting set of all witnesses found so far is the best bound that these can give.

The verdict of `certify` comes first: a separator makes no mistakes, and its witness proves one. Conversely, when the
examples outside a minimum hitting set are separable, the classifier that separates them makes exactly that many mistakes,
and the interval is closed. Every witness is checked exactly, and mistakes are counted in exact arithmetic; only the 0/1
program of the minimum hitting set relies on HiGHS.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from separatrix.analysis.contradictions import Contradictions, is_strict, minimum_hitting_set
from separatrix.analysis.line_search import best_step, least_squares
from separatrix.analysis.linear_rule import LinearRule
from separatrix.engine.labels import check_two_classes, encode
from separatrix.engine.rows import NO_ORDER, Floats, Ints, Rows
from separatrix.engine.rules import TIES, tie_code
from separatrix.learners.linear import AveragedLearner, PocketLearner
from separatrix.proofs.clock import TimeUp, watched
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.proof import Direction, Proof, Witness
from separatrix.proofs.prover import prove
from separatrix.proofs.search.exact_signs import blocks_of_signs, is_balanced
from separatrix.proofs.search.pairs import Pairs
from separatrix.proofs.search.wide import summed

_FIRST_LOOK, _LAST_LOOK = 0.1, 0.25
_PROVER_SHARE, _LARGE_SHARES = 0.5, (0.3, 0.6)
"""Of the time: for the verdict of `certify`; on large data, of what is left then, for the upper end and for witnesses."""
_STALE, _TRIMS, _PASSES = 300, 10, 30
_FAR_WRONG = 0.1
"""A lead below minus this share of the median size is far on the wrong side."""
_SAMPLE, _SAMPLES, _TINY = 10_000, 50, 1e-100
_LEAST_SECONDS, _GRACE = 0.01, 0.5
"""Seconds for the search where reading took the time; and those that the last exact count may take beyond the limit."""
_MOST_SORTED = 2_000_000
"""Of more pairs, about so many are drawn, around which witnesses are sought."""
_LEAST_SQUARES_SECONDS = 2e-9
"""A singular value decomposition takes up to so long for each product of n, d and the smaller of the two."""
_LINE_CELLS = 40_000_000
"""Line searches keep the vectors of all pairs in memory, up to so many numbers."""


@dataclass(frozen=True)
class FewestMistakes:
    """lower ≤ the fewest training mistakes of a linear classifier ≤ upper.

    `classifier` makes `upper` mistakes, on the examples `mistaken`; the `witnesses` prove `lower`.
    """

    lower: int
    upper: int
    classifier: LinearRule
    mistaken: tuple[int, ...]
    witnesses: tuple[Witness, ...]

    @property
    def optimal(self) -> bool:
        """Whether the interval is closed."""
        return self.lower == self.upper

    def __repr__(self) -> str:
        proof = f"proven by {len(self.witnesses)} witness" + "es" * (len(self.witnesses) != 1)
        if self.optimal:
            proof = proof if self.upper else "the data are separable"
            return f"FewestMistakes: exactly {self.upper} ({proof}), made on rows {list(self.mistaken)[:12]}"
        return f"FewestMistakes: between {self.lower}, {proof}, and {self.upper}"


def fewest_mistakes(
    X: Any, y: Any, *, fit_intercept: bool = True, tie: str = "mistake", time_limit: float = 10
) -> FewestMistakes:
    """Bound the fewest training mistakes of a linear classifier from both sides, with proof.

    Examples
    --------
    XOR: one mistake with a bias; without a bias two, or one if a score of 0 counts as +1.

    >>> from separatrix import fewest_mistakes
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
    >>> fewest_mistakes(X, y).upper, fewest_mistakes(X, y).lower
    (1, 1)
    >>> [fewest_mistakes(X, y, fit_intercept=False, tie=tie).upper for tie in ("mistake", "+1")]
    [2, 1]
    """
    if tie not in TIES:
        raise ValueError(f"tie must be one of {sorted(TIES)}, not {tie!r}")
    if not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds, not {time_limit!r}")
    deadline = time.monotonic() + float(time_limit)
    rows, labels, _ = read_examples(X, y)
    classes, codes = encode(labels)
    check_two_classes(classes)
    tie_code(tie, len(classes), "joint")
    search = _Search(Pairs(rows, codes, len(classes), bool(fit_intercept)), tie, deadline)
    # Where floating point overflows, exact arithmetic refuses what it found.
    with np.errstate(all="ignore"), watched(deadline + _GRACE), suppress(TimeUp):
        search.run(max(_LEAST_SECONDS, search.left()))
    search.take_constant()
    W = np.asarray(search.best_w).reshape(search.pairs.blocks, -1)
    d = rows.d
    intercept = W[:, d] if fit_intercept else np.zeros(len(W))
    rule = LinearRule(W[:, :d].copy(), intercept.copy(), classes, tie)
    return FewestMistakes(search.lower, search.upper, rule, tuple(search.mistaken.tolist()), tuple(search.proof))


class _Search(Contradictions):
    """Both bounds of one search. Invariant: `proof` proves `lower`, and `best_w` makes `upper` mistakes, on `mistaken`."""

    def __init__(self, pairs: Pairs, tie: str, deadline: float) -> None:
        super().__init__(pairs, tie, deadline)
        self.lower = 0
        self.proof: list[Witness] = []
        self.witnesses: list[Witness] = []
        self.upper, self.mistaken = self.n + 1, np.arange(self.n)
        self.trims, self.quickest_trim, self.pass_seconds = 0, 0.0, 0.0
        self.best_w: Floats | Sequence[Fraction] = np.zeros(pairs.dim)
        self._take(np.zeros(pairs.dim))

    def ask_prover(self, allowed: NDArray[np.bool_], limit: float) -> Witness | None:
        """Offer the separator of a proof about the allowed rows, or return its witness; both are checked here."""
        pairs, which, proofs = self.pairs, np.flatnonzero(allowed), [Proof(0, 0, 0, False, "undecided")]
        rows, codes = (pairs.rows, pairs.codes) if allowed.all() else (Rows(pairs.rows.source[which]), pairs.codes[which])
        if not which.size:
            return None
        with watched(time.monotonic() + limit), suppress(TimeUp):
            proofs.append(prove(rows, codes, pairs.K, pairs.bias, False, proofs.append))
        proof = proofs[-1]
        if proof.verdict == "separable" or (proof.verdict == "touching" and proof.ties == self.tie):
            self._take(self._direction(proof.direction, Pairs(rows, codes, pairs.K, pairs.bias)))
        elif proof.witness is not None:
            witness = replace(proof.witness, rows=tuple(which[list(proof.witness.rows)].tolist()))
            numbers = np.array(witness.rows, np.int64)
            numbers = numbers if pairs.K == 2 else numbers * pairs.K + np.array(witness.rivals)
            if is_strict(pairs, numbers, self.tie).any() and is_balanced(pairs, numbers, witness.weights):
                return witness
        return None

    def _direction(self, direction: Direction | Witness | None, pairs: Pairs) -> Floats | list[Fraction]:
        """Return a direction that is about these pairs as one vector, of float64 where that is exact."""
        assert direction is not None
        if isinstance(direction, Witness):  # of wide data; the sum is rounded, and its mistakes are counted like any other's
            coef, intercept = summed(pairs, direction)
            return np.asarray(np.column_stack([coef, intercept]) if pairs.bias else coef).reshape(-1)
        w = [number for vector in direction for number in vector]
        is_exact = all(abs(number) < 1 << 1000 and Fraction(float(number)) == number for number in w)
        return np.array([float(number) for number in w]) if is_exact else w

    # Upper: a classifier and its exact count.

    def offer(self, w: Floats) -> None:
        """Take w, in the scaled coordinates, as the best if it makes fewer mistakes."""
        w = w / self.scales
        if np.isfinite(w).all():
            self._take(w)

    def _take(self, w: Floats | Sequence[Fraction]) -> None:
        pairs, is_mistaken = self.pairs, np.zeros(self.n, bool)
        for begin, end, signs in blocks_of_signs(pairs, w):
            first = begin * pairs.blocks
            zeros = np.flatnonzero((signs == 0) & pairs.existing(begin, end))
            is_wrong = signs < 0
            is_wrong[zeros] = is_strict(pairs, first + zeros, self.tie)
            for column in is_wrong.reshape(end - begin, -1).T:  # any(axis=1) takes ten times as long
                is_mistaken[begin:end] |= column
        mistaken = np.flatnonzero(is_mistaken)
        if len(mistaken) < self.upper:
            self.upper, self.best_w, self.mistaken = len(mistaken), w, mistaken

    def take_constant(self) -> None:
        """Take the classifier that always answers with the largest class, if nothing better was found in time."""
        if not self.pairs.bias:
            return
        sizes = np.bincount(self.pairs.codes)
        largest = int(np.argmax(sizes))
        if self.n - sizes[largest] < self.upper:
            W = np.zeros((self.pairs.blocks, self.pairs.m))
            W[largest if self.pairs.K > 2 else 0, -1] = 1.0 if self.pairs.K > 2 or largest == 1 else -1.0
            self.mistaken = np.flatnonzero(self.pairs.codes != largest)
            self.upper, self.best_w = len(self.mistaken), W.reshape(-1)

    def trim(self, until: float) -> None:
        """Train again and again without the examples that are far on the wrong side (the ramp loss).

        Where these are noise, the others are nearly separable. Those that are wrong by little stay: they may become right.
        """
        kept, passes = np.ones(self.n), 1
        for number in range(_TRIMS):
            left = until - time.monotonic()
            is_late = left <= self.quickest_trim and (number > 0 or self.trims > 0)  # some classifier is needed
            if is_late or self.upper <= self.lower or not np.bincount(self.pairs.codes, kept, self.pairs.K).all():
                return
            if self.trims == 0 and self._sample_took_all(left):
                return
            begun = time.monotonic()
            learner = AveragedLearner(**self._options, max_iter=passes, random_state=self.trims)
            w = self._weights(learner.fit(self._scaled_source, self.pairs.codes, sample_weight=kept))
            self.offer(w)
            leads, _ = self.pairs.smallest_leads(w / self.scales)
            kept = (leads > -_FAR_WRONG * np.median(np.abs(leads))).astype(np.float64)
            self.trims += 1
            spent = time.monotonic() - begun
            self.quickest_trim = min(spent, self.quickest_trim or spent)
            passes = max(1, min(_PASSES, int(left / 4 / spent * passes)))

    def _sample_took_all(self, left: float) -> bool:
        """Train on a sample of very many rows; offer its w and return True where there is no time for a pass over all."""
        if self.n <= _SAMPLE:
            return False
        if self.pass_seconds:
            return self.pass_seconds > left
        size = max(_SAMPLE, self.n // _SAMPLES)
        codes, begun = self.pairs.codes, time.monotonic()
        some = np.random.default_rng(0).integers(0, self.n, size)
        missing = np.flatnonzero(np.bincount(codes[some], minlength=self.pairs.K) == 0)
        some = np.union1d(some, [int(np.argmax(codes == k)) for k in missing]).astype(np.int64)
        learner = AveragedLearner(**self._options, max_iter=1, random_state=0)
        scaled = self._scaled(self.pairs.rows.source[some], self.scales[: self.pairs.rows.d] * self._learner_scales)
        learner.fit(scaled, codes[some])
        self.pass_seconds = (time.monotonic() - begun) * self.n / len(some)
        if self.pass_seconds > left:
            self.offer(self._weights(learner))
        return self.pass_seconds > left

    @property
    def _options(self) -> dict[str, Any]:
        return {"fit_intercept": self.pairs.bias, "tie": self.tie}

    def _weights(self, learner: Any) -> Floats:
        """Return the weights of a learner as one vector in the scaled coordinates."""
        coef, bias_scale = learner.coef_ / self._learner_scales, self.scales[-1]
        W = np.column_stack([coef, learner.intercept_ * bias_scale]) if self.pairs.bias else coef
        return np.asarray(W).reshape(-1)

    def descend(self, w: Floats, until: float) -> None:
        """Improve w by exact line searches along random directions (two classes).

        The number of mistakes is piecewise constant on the line; w moves to the middle of the piece with the fewest.
        """
        scores = self.Z @ w
        count, stale = int(np.sum(scores <= 0)), 0
        while time.monotonic() < until and stale < _STALE and self.upper > self.lower:
            direction = self.rng.standard_normal(len(w))
            if self.rng.random() < 0.5:
                direction *= self.rng.random(len(w)) < 0.3
            slopes = self.Z @ direction
            step, best = best_step(scores, slopes)
            if best > count or not np.any(w + step * direction):
                stale += 1
                continue
            stale = 0 if best < count else stale + 1
            w, scores, count = w + step * direction, scores + step * slopes, best
            size = np.linalg.norm(w)
            w, scores = w / size, scores / size
            if count < self.upper:
                self.offer(w)

    def improve(self, until: float) -> None:
        """Lower the upper bound: without far mistakes, from the pocket, then from perturbations of the best w."""
        self.trim(until)
        for seed in range(3):
            if time.monotonic() > until or not self.is_small:
                break
            pocket = PocketLearner(**self._options, max_iter=30, random_state=seed)
            self.offer(self._weights(pocket.fit(self._scaled_source, self.pairs.codes)))
        if self.pairs.K > 2 or self.n * self.pairs.dim > _LINE_CELLS or time.monotonic() > until:
            return
        if _LEAST_SQUARES_SECONDS * self.Z.size * min(self.Z.shape) < until - time.monotonic():
            self.offer(least_squares(self.Z))
        while time.monotonic() < until and self.upper > self.lower:
            best = np.asarray(self.best_w) * self.scales
            size = np.linalg.norm(best)
            amount = self.rng.choice([0.0, 0.05, 0.3, 1.0])
            self.descend(best / (size or 1.0) + amount * self.rng.standard_normal(len(best)), until)

    @cached_property
    def _scaled_source(self) -> Any:
        """X with its columns divided by powers of two near their mean size, so that the perceptron sees all of them."""
        return self._scaled(self.pairs.rows.source, self.scales[: self.pairs.rows.d] * self._learner_scales)

    def _scaled(self, source: Any, scales: Floats) -> Any:
        return source.multiply(1.0 / scales[None, :]).tocsr() if self.pairs.rows.sparse else source / scales[None, :]

    @cached_property
    def _learner_scales(self) -> Floats:
        """The root of the mean square of each column in the scaled coordinates, as a power of two."""
        some = self.rng.choice(self.n, min(self.n, _SAMPLE), replace=False)
        scaled = self._scaled(self.pairs.rows.source[some], self.scales[: self.pairs.rows.d])
        squares = scaled.multiply(scaled).mean(axis=0) if self.pairs.rows.sparse else (scaled * scaled).mean(axis=0)
        sizes = np.sqrt(np.asarray(squares, np.float64).reshape(-1))
        return np.asarray(2.0 ** np.round(np.log2(np.where(sizes > _TINY, sizes, 1.0))))

    # Lower: witnesses and the sets that hit them.

    def pack(self, until: float) -> None:
        """Raise the lower bound by disjoint witnesses, which prove one mistake each."""
        self._prove(self.disjoint(until=until))

    def pack_around(self, until: float) -> None:
        """Raise the lower bound by disjoint witnesses around the mistakes of the best w, the worst first."""
        places, leads = self._some_leads(np.asarray(self.best_w))
        wrong, rights = (places[which[np.argsort(leads[which], kind="stable")]] for which in _by_sign(leads))
        self._prove(list(self.around(wrong, rights, until)))

    def _some_leads(self, w: Floats) -> tuple[Ints, Floats]:
        """Return the places of pairs, and their leads over the lengths of their rows.

        These are all pairs, or those of a random sample of the rows where they are too many to be sorted in a moment.
        """
        each = self.pairs.K - 1
        if self.pairs.count <= _MOST_SORTED:
            rows, which = np.arange(self.n), NO_ORDER
        else:
            is_drawn = np.zeros(self.n, bool)  # np.unique takes thirty times as long
            is_drawn[self.rng.integers(0, self.n, max(1, _MOST_SORTED // each))] = True
            rows = which = np.flatnonzero(is_drawn)
        leads = self.pairs.leads(w, which)
        if each > 1:
            leads = leads[(np.arange(each + 1) != self.pairs.codes[rows][:, None]).reshape(-1)]
        places = (rows[:, None] * each + np.arange(each)).reshape(-1)
        return places, leads / np.repeat(self.pairs.norms[rows], each)

    def _prove(self, disjoint: list[Witness]) -> None:
        if len(disjoint) > self.lower:
            self.lower, self.proof, self.witnesses = len(disjoint), disjoint, list(disjoint)

    def hit(self, until: float) -> None:
        """Raise the lower bound by minimum hitting sets of the witnesses, adding new witnesses from the examples outside."""
        while (left := until - time.monotonic()) > 0 and self.lower < self.upper:
            exact, hitting = minimum_hitting_set(self.witnesses, self.n, left)
            if hitting is None:
                return
            if exact > self.lower:
                self.lower, self.proof = exact, list(self.witnesses)
            fresh = self.disjoint(~hitting)
            if not fresh:
                self._separate(~hitting)
            if not fresh and self.lower < self.upper:  # linear programs in floating point have failed, or found all they can
                proven = self.ask_prover(~hitting, until - time.monotonic())
                fresh = [] if proven is None else [proven]
            if not fresh:
                return
            self.witnesses += fresh

    def _separate(self, allowed: NDArray[np.bool_]) -> None:
        """Offer a separator of the allowed rows, which are separable as far as is known."""
        which = self.allowed_places(allowed)
        strict = is_strict(self.pairs, self.numbers_of(which), self.tie)
        options = {"time_limit": max(0.05, self.left())}
        free = np.zeros(self.Z.shape[1])
        for needed in (np.ones(len(which)), strict.astype(float)):  # leads of 0 only if needed
            answer = linprog(free, A_ub=-self.Z[which], b_ub=-needed, bounds=(None, None), method="highs", options=options)
            if answer.status == 0:
                self.offer(np.asarray(answer.x))
                return

    def run(self, time_limit: float) -> None:
        """Narrow the interval while there is time and a gap: the verdict, the upper end, the lower end, the upper end."""
        witness = self.ask_prover(np.ones(self.n, bool), _PROVER_SHARE * time_limit)
        if witness is not None:
            self._prove([witness])
        if not self.upper:
            return
        if not self.is_small:
            left, begun = self.left(), time.monotonic()
            self.improve(begun + _LARGE_SHARES[0] * left)
            self.pack_around(begun + sum(_LARGE_SHARES) * left)
            self.improve(self.deadline)
            return
        first_look = min(1.0, _FIRST_LOOK * time_limit)
        self.trim(time.monotonic() + first_look)
        self.pack(self.deadline - 2 * _LAST_LOOK * time_limit)
        self.improve(min(self.deadline, time.monotonic() + first_look))
        self.hit(self.deadline - _LAST_LOOK * time_limit)
        if self.lower < self.upper:
            self.improve(self.deadline)


def _by_sign(leads: Floats) -> tuple[Ints, Ints]:
    return np.flatnonzero(leads < 0), np.flatnonzero(leads > 0)
