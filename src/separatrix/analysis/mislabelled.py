"""Ranks the examples by how likely their label is wrong (L2 9, L4 7).

There are three kinds of evidence:
- the **margin** under averaged perceptrons that were trained without the example: the score of its own class minus that of
  the best other class, over ‖w‖‖x‖. It is negative where they contradict the label;
- the **mistakes**: the share of presentations at which learners that do train on the example get it wrong;
- the **witness** weight: its weight in exact witnesses Σλa = 0 of inseparable data.
The margin detects flipped labels best and counts most (`benchmarks/certificates.py`); the others break near-ties.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, overload

import numpy as np

from separatrix.analysis.contradictions import Contradictions
from separatrix.engine.labels import Codes, check_two_classes, encode
from separatrix.engine.rows import Array, Floats, Ints, Rows
from separatrix.learners.linear import AveragedLearner, LastLearner
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.search.pairs import Pairs

_FOLDS, _REPEATS, _PASSES = 10, 2, 10
_WITNESS_CELLS = 2_000_000
_WITNESS_SECONDS = 2.0
_PROBE = 2_000
"""So many rows are trained on first, to tell how long a pass takes."""
_LEAST_ROWS = 1_000
"""A training has so many rows, however little time is left."""
_RANKED = 50_000
"""So many rows are ranked to tell how long the ranking of all takes."""
_SCORES = 2_000_000
"""So many scores are computed at a time."""


class Suspect(NamedTuple):
    """One example with the evidence against its label; `suggested` is the class that the other examples suggest."""

    row: int
    label: Any
    suggested: Any
    suspicion: float
    margin: float
    mistakes: float
    witness: float


@dataclass(frozen=True, eq=False, repr=False)
class Suspects(Sequence[Suspect]):
    """All examples, the most suspicious first; `notes` tells what a time limit left out.

    The evidence is kept in columns, by row, and an example is put together when it is asked for.
    """

    rows: Ints
    """The rows, the most suspicious first."""
    classes: Array
    codes: Codes
    suggested: Ints
    suspicion: Floats
    margin: Floats
    mistakes: Floats
    witness: Floats
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Suspect: ...

    @overload
    def __getitem__(self, place: slice) -> list[Suspect]: ...

    def __getitem__(self, place: int | slice) -> Suspect | list[Suspect]:
        chosen = self.rows[place]
        return [self._suspect(int(row)) for row in chosen] if isinstance(place, slice) else self._suspect(int(chosen))

    def _suspect(self, row: int) -> Suspect:
        label, suggested = (
            value.item() if isinstance(value, np.generic) else value
            for value in (self.classes[self.codes[row]], self.classes[self.suggested[row]])
        )
        evidence = (float(column[row]) for column in (self.suspicion, self.margin, self.mistakes, self.witness))
        return Suspect(row, label, suggested, *evidence)

    def __repr__(self) -> str:
        lines = [f"{'row':>8}  {'label':<14}{'suggested':<14}{'margin':>8}{'mistakes':>10}{'witness':>9}"]
        lines += [
            f"{s.row:>8}  {s.label!s:<14.13}{s.suggested!s:<14.13}{s.margin:>8.3f}{s.mistakes:>10.2f}{s.witness:>9.4f}"
            for s in self[:10]
        ]
        lines += [f"The time limit left {note}." for note in self.notes]
        return "\n".join([f"{len(self):,} examples, the most suspicious first", *lines])


def suspects(X: Any, y: Any, *, random_state: int = 0, time_limit: float | None = None) -> Suspects:
    """Rank the examples by how likely their label is wrong, with the evidence.

    With a `time_limit` in seconds there are as many trainings and passes as it allows, on a sample of the rows where it does
    not allow a pass over all; rows that it leaves no time for have the margin NaN. `notes` tells what it left out.

    Examples
    --------
    >>> from separatrix import suspects
    >>> X = [[i] for i in range(-20, 0)] + [[i] for i in range(1, 21)]
    >>> y = ["low"] * 20 + ["high"] * 20
    >>> y[3] = "high"
    >>> ranked = suspects(X, y)
    >>> ranked[0].row, ranked[0].label, ranked[0].suggested
    (3, 'high', 'low')
    """
    begun, limit = time.monotonic(), np.inf if time_limit is None else time_limit
    if not (isinstance(limit, Real) and limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, not {time_limit!r}")
    rows, labels, _ = read_examples(X, y)
    classes, codes = encode(labels)
    check_two_classes(classes)
    notes: list[str] = []
    begun, limit = time.monotonic(), limit - (time.monotonic() - begun)
    limit = max(0.0, limit - _ranking_seconds(rows.n)) if limit < np.inf else limit
    margin, suggested = _held_out_margins(rows, codes, len(classes), random_state, begun + 0.7 * limit, notes)
    mistakes = _repeated_mistakes(rows, codes, random_state, begun + 0.9 * limit, notes)
    witness = _witness_weight(rows, codes, len(classes), begun + limit, notes)
    suspicion, ranked = _ranked(margin, mistakes, witness)
    return Suspects(ranked, classes, codes, suggested, suspicion, margin, mistakes, witness, tuple(notes))


def _ranked(margin: Floats, mistakes: Floats, witness: Floats) -> tuple[Floats, Ints]:
    """Return how suspicious each row is, and the rows in that order."""
    suspicion = _standard(-margin) + 0.1 * _standard(mistakes) + 0.05 * _standard(witness)
    return suspicion, np.argsort(-suspicion, kind="stable")


def _ranking_seconds(n: int) -> float:
    """Return how long the ranking of all rows, which cannot be interrupted, will take by the time for some of them."""
    some = min(n, _RANKED)
    evidence = np.random.default_rng(0).random((3, some))
    begun = time.monotonic()
    _ranked(*evidence)
    return float((time.monotonic() - begun) * n / some * np.log2(n + 1) / np.log2(some + 1))


def _standard(values: Floats) -> Floats:
    """Return the values with mean 0 and deviation 1; 0 in place of NaN, which speaks neither for a label nor against it."""
    known = values[~np.isnan(values)]
    spread = known.std() if known.size else 0.0
    return np.asarray(np.nan_to_num((values - known.mean()) / spread) if spread else np.zeros(len(values)))


def _held_out_margins(
    rows: Rows, codes: Codes, n_classes: int, seed: int, deadline: float, notes: list[str]
) -> tuple[Floats, Ints]:
    """Return the mean normalised lead of each example's class under learners that did not see it, and the best class."""
    rng = np.random.default_rng(seed)
    lead, rival = np.zeros(rows.n), codes.astype(np.int64)
    counted, is_late = np.zeros(rows.n), np.zeros(rows.n, bool)
    plan, trainings = _plan(rows, codes, deadline), 0
    scores = _HeldOutScores(rows, n_classes, plan.folds)
    for repeat in range(plan.repeats):
        if plan.most < rows.n:  # a permutation of very many rows takes longer than a training on a sample of them
            fold = rng.integers(0, plan.folds, rows.n, np.int8)
        else:
            fold = rng.permutation(rows.n) % plan.folds
        scores.begin(fold)
        for k in range(plan.folds):
            which = np.flatnonzero(fold == k)
            if trainings and time.monotonic() > deadline:
                is_late[which] = counted[which] == 0
                continue
            if not np.bincount(codes[fold != k], minlength=n_classes).all():
                continue
            model = AveragedLearner(max_iter=plan.passes, random_state=seed + repeat)
            if plan.most < rows.n:
                some = _sample(codes, np.flatnonzero(fold != k), plan.most, rng)
                model.fit(rows.source[some], codes[some])
            else:
                model.fit(rows.source, codes, sample_weight=(fold != k).astype(float))
            trainings += 1
            scores.learned(k, model)
            step = max(1, _SCORES // n_classes)
            for part in (which[begin : begin + step] for begin in range(0, len(which), step)):
                if time.monotonic() > deadline and counted.any():
                    is_late[part] = counted[part] == 0
                    continue
                counted[part] += 1
                mean = scores.of(part, k) / counted[part, None]
                every, own = np.arange(len(part)), codes[part]
                own_scores = mean[every, own]
                mean[every, own] = -np.inf
                rival[part] = np.argmax(mean, axis=1)
                lead[part] = own_scores - mean[every, rival[part]]
    notes += plan.notes(rows.n, trainings, int(is_late.sum()))
    lead[is_late] = np.nan
    return lead, np.where(lead < 0, rival, codes)


class _HeldOutScores:
    """For each row the sum of its normalised scores under the learners of each repeat that did not see it.

    Rows are scored by the learner of their own fold. The sums are kept, or, where there are more rows than weights, the
    learners: then the scores of earlier repeats are computed again.
    """

    def __init__(self, rows: Rows, n_classes: int, folds: int) -> None:
        self.rows, self.n_classes, self.norms = rows, n_classes, np.sqrt(rows.squared_norms() + 1.0)
        self.sums = np.zeros((rows.n, n_classes)) if rows.n <= folds * (rows.d + 1) else None
        self.repeats: list[tuple[Array, dict[int, tuple[Floats, Floats, float]]]] = []
        """The fold of each row, and the weights, biases and length of each fold's learner."""

    def begin(self, fold: Array) -> None:
        """Begin a repeat."""
        self.repeats = [*(self.repeats if self.sums is None else []), (fold.astype(np.int8, copy=False), {})]

    def learned(self, k: int, model: AveragedLearner) -> None:
        """Take the learner that did not see fold k."""
        size = np.sqrt(np.sum(model.coef_**2) + np.sum(model.intercept_**2)) or 1.0
        learners = self.repeats[-1][1]
        if self.sums is not None:
            learners.clear()
        learners[k] = model.coef_, model.intercept_, float(size)

    def of(self, part: Ints, k: int) -> Floats:
        """Return the sums of some rows of fold k, after adding the scores of its learner."""
        if self.sums is not None:
            self.sums[part] += self._scores(part, *self.repeats[-1][1][k])
            return self.sums[part]
        sums = np.zeros((len(part), self.n_classes))
        for fold, learners in self.repeats:
            for j, learner in learners.items():
                which = np.flatnonzero(fold[part] == j)
                if which.size:
                    sums[which] += self._scores(part[which], *learner)
        return sums

    def _scores(self, part: Ints, coef: Floats, intercept: Floats, size: float) -> Floats:
        scores = self.rows.scores(coef, intercept, part)
        scores = np.hstack([-scores, scores]) if self.n_classes == 2 else scores
        return np.asarray(scores / size / self.norms[part, None])


def _sample(codes: Codes, allowed: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Return about so many of the allowed rows, with at least one of each class that these have."""
    some = allowed[rng.integers(0, len(allowed), most)]
    missing = np.flatnonzero(np.bincount(codes[some], minlength=int(codes.max()) + 1) == 0)
    first = [members[:1] for k in missing if (members := allowed[codes[allowed] == k]).size]
    chosen = np.zeros(len(codes), bool)
    chosen[np.concatenate([some, *first])] = True
    return np.flatnonzero(chosen)


class _Plan(NamedTuple):
    """How many parts the examples are dealt into, how often, and how many passes a training makes over how many rows."""

    folds: int
    repeats: int
    passes: int
    most: int

    def notes(self, n: int, trainings: int, n_late: int) -> list[str]:
        """Tell what is less than without a limit."""
        usual = min(_FOLDS, n) * _REPEATS
        sizes = [f"{self.passes} of {_PASSES} passes"] if self.passes < _PASSES else []
        sizes += [f"on {self.most:,} of {n:,} rows"] if self.most < n else []
        notes = []
        if sizes or self.folds * self.repeats < usual or n_late:
            notes.append(f"{trainings} of {usual} trainings" + (f", {' '.join(sizes)} each" if sizes else ""))
        return notes + ([f"{n_late:,} rows without a margin"] if n_late else [])


def _plan(rows: Rows, codes: Codes, deadline: float) -> _Plan:
    """Return how much of the usual trainings there is time for, by the time of a pass over some rows; at least two folds."""
    folds = min(_FOLDS, rows.n)
    if deadline == np.inf:
        return _Plan(folds, _REPEATS, _PASSES, rows.n)
    size, every, rng = min(rows.n, _PROBE), np.arange(rows.n), np.random.default_rng(0)
    while True:  # over four times as many rows, as long as that takes little of the time
        some = _sample(codes, every, size, rng) if size < rows.n else slice(None)
        begun = time.monotonic()
        AveragedLearner(max_iter=1).fit(rows.source[some], codes[some])
        spent, left = time.monotonic() - begun, deadline - time.monotonic()
        if size == rows.n or 32 * spent > left:
            break
        size = min(rows.n, 4 * size)
    affordable = max(0.0, left) / (1.2 * spent) * size / rows.n
    if affordable >= folds * _REPEATS:
        return _Plan(folds, _REPEATS, min(_PASSES, int(affordable) // (folds * _REPEATS)), rows.n)
    if affordable >= 2:
        return _Plan(min(folds, int(affordable)), 1, 1, rows.n)
    return _Plan(min(folds, 2), 1, 1, min(rows.n, max(_LEAST_ROWS, int(affordable / 2 * rows.n))))


def _repeated_mistakes(rows: Rows, codes: Codes, seed: int, deadline: float, notes: list[str]) -> Floats:
    """Return the share of its presentations at which each example was a mistake; zeros where there is no time for a pass."""
    counts, presentations = np.zeros(rows.n), 0
    plan = _plan(rows, codes, deadline) if time.monotonic() < deadline else None
    if plan is None or plan.most < rows.n:
        notes.append("no mistakes counted")
        return counts
    is_late = plan.passes < _PASSES
    for repeat in range(_REPEATS):
        if repeat and time.monotonic() > deadline:
            is_late = True
            break
        model = LastLearner(max_iter=plan.passes, random_state=seed + repeat).fit(rows.source, codes)
        counts += np.bincount(model.ledger_.example, minlength=rows.n)
        presentations += model.n_iter_
    if is_late:
        notes.append(f"{presentations} of {_REPEATS * _PASSES} passes to count mistakes")
    return counts / presentations


def _witness_weight(rows: Rows, codes: Codes, n_classes: int, deadline: float, notes: list[str]) -> Floats:
    """Return the weight of each example in disjoint exact witnesses; zeros where the data are too large for the search."""
    weight = np.zeros(rows.n)
    pairs = Pairs(rows, codes, n_classes, True)
    if pairs.count * pairs.dim > _WITNESS_CELLS:
        return weight
    if time.monotonic() > deadline:
        notes.append("no witnesses sought")
        return weight
    search = Contradictions(pairs, "mistake", min(deadline, time.monotonic() + _WITNESS_SECONDS))
    for witness in search.disjoint():
        for row, share in zip(witness.rows, witness.weights, strict=True):
            weight[row] += float(share)
    return weight
