"""The fewest training mistakes of any linear classifier: NP-hard (L1 3), so the result is a proven interval.

    upper   a concrete classifier, found by exact 0/1 line searches from the pocket and along random directions
    lower   witnesses Σλa = 0, λ > 0. By Gordan's theorem no classifier gets all examples of a witness right, so the mistakes
            of every classifier hit every witness: they are a hitting set. k disjoint witnesses prove at least k mistakes,
            and the size of a minimum hitting set of all witnesses found so far is the best bound that these can give.

Conversely, when the examples outside a minimum hitting set are separable, the classifier that separates them makes exactly
that many mistakes, and the interval is closed. Every witness is checked exactly, and mistakes are counted in exact
arithmetic; only the 0/1 program of the minimum hitting set relies on HiGHS.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array

from separatrix.engine.labels import check_two_classes, encode
from separatrix.engine.rows import Array, Floats, Ints, Rows
from separatrix.engine.rules import TIES, tie_code
from separatrix.learners.linear import PocketLearner
from separatrix.proofs.exact_signs import exact_signs, is_balanced
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.pairs import Pairs
from separatrix.proofs.proof import Witness
from separatrix.proofs.rationals import dependency

_FIRST_LOOK, _LAST_LOOK = 0.1, 0.25
_STALE = 300


@dataclass(frozen=True)
class LinearRule:
    """A linear classifier: weights, biases, classes and the meaning of a score of 0."""

    coef: Floats
    intercept: Floats
    classes: Array
    tie: str

    def predict(self, X: Any) -> Array:
        """Return the labels."""
        scores = Rows(np.asarray(X) if not hasattr(X, "tocsr") else X.tocsr()).scores(self.coef, self.intercept)
        if len(self.classes) > 2:
            return np.asarray(self.classes[np.argmax(scores, axis=1)])
        positive = scores[:, 0] >= 0 if self.tie == "+1" else scores[:, 0] > 0
        return np.asarray(self.classes[positive.astype(np.int64)])


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
        if self.optimal:
            proof = "the data are separable" if not self.upper else f"proven by {_counted(len(self.witnesses))}"
            return f"FewestMistakes: exactly {self.upper} ({proof}), made on rows {list(self.mistaken)[:12]}"
        return f"FewestMistakes: between {self.lower}, proven by {_counted(len(self.witnesses))}, and {self.upper}"


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
    rows, labels, _ = read_examples(X, y)
    classes, codes = encode(labels)
    check_two_classes(classes)
    tie_code(tie, len(classes), "joint")
    search = _Search(Pairs(rows, codes, len(classes), bool(fit_intercept)), tie, time.monotonic() + float(time_limit))
    search.run(float(time_limit))
    W = search.best_w.reshape(search.pairs.blocks, -1)
    d = rows.d
    intercept = W[:, d] if fit_intercept else np.zeros(len(W))
    rule = LinearRule(W[:, :d].copy(), intercept.copy(), classes, tie)
    return FewestMistakes(search.lower, search.upper, rule, tuple(search.mistaken.tolist()), tuple(search.proof))


class Contradictions:
    """Finds exact witnesses among some of the examples, one after the other.

    `strict` tells which pairs need a positive lead; on the others a lead of 0 is right, depending on `tie`. A witness must
    contain a strict pair: Σλa = 0 on the others alone contradicts nothing.
    """

    def __init__(self, pairs: Pairs, tie: str, deadline: float) -> None:
        self.pairs, self.tie, self.deadline = pairs, tie, deadline
        self.n = pairs.rows.n
        self.scales = pairs.column_scales()
        self.rng = np.random.default_rng(0)
        self.pair_numbers = np.flatnonzero(pairs.exist)
        self.strict = _strict(pairs, self.pair_numbers, tie)
        self.rows_of = pairs.row_of(self.pair_numbers)
        vectors = pairs.vectors(self.pair_numbers) / self.scales
        norms = np.abs(vectors).max(axis=1)
        self.Z = vectors / np.where(norms > 0, norms, 1.0)[:, None]

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.deadline - time.monotonic()

    def witness(self, allowed: NDArray[np.bool_]) -> Witness | None:
        """Return an exact witness among the allowed rows, or None if there is none or none was found.

        The linear program is λ ≥ 0, Zᵀλ = 0, Σλ = 1 over the strict pairs, with random costs, so that its solution is a
        vertex: by Carathéodory's theorem at most dim + 1 pairs have a positive weight, and small witnesses give the best
        bounds.
        """
        which = np.flatnonzero(allowed[self.rows_of])
        if not which.size or not self.strict[which].any() or self.left() <= 0:
            return None
        Z, strict = self.Z[which], self.strict[which]
        equal = np.vstack([Z.T, strict.astype(float)])
        answer = linprog(
            self.rng.random(len(which)),
            A_eq=equal,
            b_eq=np.r_[np.zeros(Z.shape[1]), 1.0],
            method="highs-ds",
            options={"time_limit": max(0.05, self.left())},
        )
        if answer.status != 0:
            return None
        for floor in (1e-9, 1e-12, 0.0, 1e-7):
            witness = self._exact_witness(which[answer.x > floor])
            if witness is not None:
                return witness
        return None

    def _exact_witness(self, support: Ints) -> Witness | None:
        """Return the witness on these pairs with exact weights, or None if they have none."""
        numbers = self.pair_numbers[support]
        weights = dependency(self.pairs.whole(numbers)[0]) if numbers.size else None
        if weights is None or min(weights) <= 0 or not self.strict[support].any():
            return None
        return self.pairs.witness(numbers, weights) if is_balanced(self.pairs, numbers, weights) else None

    def disjoint(self, allowed: NDArray[np.bool_] | None = None) -> list[Witness]:
        """Return witnesses that share no row, until no more are found: each contains a mistake of its own."""
        allowed, witnesses = np.ones(self.n, bool) if allowed is None else allowed.copy(), []
        while (witness := self.witness(allowed)) is not None:
            witnesses.append(witness)
            allowed[list(witness.rows)] = False
        return witnesses


class _Search(Contradictions):
    """Both bounds of one search. Invariant: `proof` proves `lower`, and `best_w` makes `upper` mistakes, on `mistaken`."""

    def __init__(self, pairs: Pairs, tie: str, deadline: float) -> None:
        super().__init__(pairs, tie, deadline)
        self.lower = 0
        self.proof: list[Witness] = []
        self.witnesses: list[Witness] = []
        self.upper, self.best_w, self.mistaken = self.n + 1, np.zeros(pairs.dim), np.arange(self.n)
        self.offer(np.zeros(pairs.dim))

    # Upper: a classifier and its exact count.

    def offer(self, w: Floats) -> None:
        """Take w, in the scaled coordinates, as the best if it makes fewer mistakes."""
        w = w / self.scales
        if not np.isfinite(w).all():
            return
        signs = exact_signs(self.pairs, w)[self.pair_numbers]
        is_wrong = (signs < 0) | ((signs == 0) & self.strict)
        mistaken = np.unique(self.rows_of[is_wrong])
        if len(mistaken) < self.upper:
            self.upper, self.best_w, self.mistaken = len(mistaken), w, mistaken

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
            step, best = _best_step(scores, slopes)
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
        """Lower the upper bound: start from the pocket, then from random perturbations of the best w."""
        for seed in range(3):
            pocket = PocketLearner(fit_intercept=self.pairs.bias, tie=self.tie, max_iter=30, random_state=seed)
            pocket.fit(self._scaled_source(), self.pairs.codes)
            W = np.column_stack([pocket.coef_, pocket.intercept_]) if self.pairs.bias else pocket.coef_
            self.offer(W.reshape(-1))
            if time.monotonic() > until:
                return
        if self.pairs.K > 2:
            return
        self.offer(_least_squares(self.Z))
        while time.monotonic() < until and self.upper > self.lower:
            best = self.best_w * self.scales
            size = np.linalg.norm(best)
            amount = self.rng.choice([0.0, 0.05, 0.3, 1.0])
            self.descend(best / (size or 1.0) + amount * self.rng.standard_normal(len(best)), until)

    def _scaled_source(self) -> Any:
        """Return X with its columns divided by powers of two, so that all of them matter to the perceptron."""
        scales = self.scales[: self.pairs.rows.d]
        source = self.pairs.rows.source
        return source.multiply(1.0 / scales).tocsr() if self.pairs.rows.sparse else source / scales

    # Lower: witnesses and the sets that hit them.

    def pack(self) -> None:
        """Raise the lower bound by disjoint witnesses, which prove one mistake each."""
        self.proof = self.disjoint()
        self.witnesses, self.lower = list(self.proof), len(self.proof)

    def hit(self, until: float) -> None:
        """Raise the lower bound by minimum hitting sets of the witnesses, adding new witnesses from the examples outside."""
        if not self.witnesses:
            self._separate(np.ones(self.n, bool))
            return
        while (left := until - time.monotonic()) > 0 and self.lower < self.upper:
            exact, hitting = self._minimum_hitting_set(left)
            if hitting is None:
                return
            if exact > self.lower:
                self.lower, self.proof = exact, list(self.witnesses)
            fresh = self.disjoint(~hitting)
            self.witnesses += fresh
            if not fresh:
                self._separate(~hitting)
                return

    def _separate(self, allowed: NDArray[np.bool_]) -> None:
        """Offer a separator of the allowed rows, which are separable as far as is known."""
        which = np.flatnonzero(allowed[self.rows_of])
        options = {"time_limit": max(0.05, self.left())}
        free = np.zeros(self.Z.shape[1])
        for needed in (np.ones(len(which)), self.strict[which].astype(float)):  # leads of 0 only if needed
            answer = linprog(free, A_ub=-self.Z[which], b_ub=-needed, bounds=(None, None), method="highs", options=options)
            if answer.status == 0:
                self.offer(np.asarray(answer.x))
                return

    def _minimum_hitting_set(self, limit: float) -> tuple[int, NDArray[np.bool_] | None]:
        """Return a proven lower bound on the size of a hitting set of the witnesses, and a hitting set."""
        sets = [sorted(set(witness.rows)) for witness in self.witnesses]
        indptr = np.concatenate([[0], np.cumsum([len(s) for s in sets])])
        table = csr_array((np.ones(indptr[-1]), np.concatenate(sets), indptr), shape=(len(sets), self.n))
        used = np.unique(table.indices)
        answer = milp(
            np.ones(len(used)),
            integrality=np.ones(len(used)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(table[:, used], lb=1.0),
            options={"time_limit": limit},
        )
        bound = int(np.ceil(answer.mip_dual_bound - 1e-6)) if answer.mip_dual_bound is not None else 0
        if answer.x is None:
            return bound, None
        hitting = np.zeros(self.n, bool)
        hitting[used[answer.x > 0.5]] = True
        return bound, hitting

    def run(self, time_limit: float) -> None:
        """Narrow the interval while there is time and a gap: the upper end briefly, the lower end, the upper end again."""
        self.pack()
        self.improve(min(self.deadline, time.monotonic() + min(1.0, _FIRST_LOOK * time_limit)))
        self.hit(self.deadline - _LAST_LOOK * time_limit)
        if self.lower < self.upper:
            self.improve(self.deadline)


def _counted(number: int) -> str:
    return f"{number} witness" if number == 1 else f"{number} witnesses"


def _strict(pairs: Pairs, numbers: Ints, tie: str) -> NDArray[np.bool_]:
    """Return which pairs need a positive lead; a lead of 0 is right for the others."""
    if tie == "mistake":
        return np.ones(len(numbers), bool)
    if pairs.K == 2:
        return np.asarray(pairs.codes == (0 if tie == "+1" else 1))
    return np.asarray(pairs.rival_of(numbers) < pairs.codes[pairs.row_of(numbers)])


def _least_squares(Z: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(Z, np.ones(len(Z)), rcond=None)[0])


def _best_step(scores: Floats, slopes: Floats) -> tuple[float, int]:
    """Return the t with the fewest s + t·r ≤ 0 over scores s and slopes r, and that number.

    The count changes only at the t where a score is 0; after sorting these, one cumulative sum gives it on every piece.
    """
    moving = slopes != 0
    still = int(np.sum(scores[~moving] <= 0))
    s, r = scores[moving], slopes[moving]
    if not s.size:
        return 0.0, still
    at = -s / r
    order = np.argsort(at)
    at, rising = at[order], r[order] > 0
    count = still + int(np.sum(rising)) + np.concatenate([[0], np.cumsum(np.where(rising, -1, 1))])
    is_wide = np.concatenate([[True], np.diff(at) > 1e-12 * (1 + np.abs(at[1:])), [True]])
    count = np.where(is_wide, count, len(scores) + 1)
    k = int(np.argmin(count))
    if k == 0:
        return float(at[0] - 1.0), int(count[0])
    if k == len(at):
        return float(at[-1] + 1.0), int(count[-1])
    return float((at[k - 1] + at[k]) / 2), int(count[k])
