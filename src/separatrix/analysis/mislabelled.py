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
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from separatrix.analysis.contradictions import Contradictions
from separatrix.engine.labels import Codes, check_two_classes, encode
from separatrix.engine.rows import Array, Floats, Rows
from separatrix.learners.linear import AveragedLearner, LastLearner
from separatrix.proofs.inputs import read_examples
from separatrix.proofs.search.pairs import Pairs

_FOLDS, _REPEATS, _PASSES = 10, 2, 10
_WITNESS_CELLS = 2_000_000
_WITNESS_SECONDS = 2.0


class Suspect(NamedTuple):
    """One example with the evidence against its label; `suggested` is the class that the other examples suggest."""

    row: int
    label: Any
    suggested: Any
    suspicion: float
    margin: float
    mistakes: float
    witness: float


class Suspects(list[Suspect]):
    """All examples, the most suspicious first."""

    @property
    def rows(self) -> Array:
        """The rows, the most suspicious first."""
        return np.asarray([suspect.row for suspect in self])

    def __repr__(self) -> str:
        lines = [f"{'row':>8}  {'label':<14}{'suggested':<14}{'margin':>8}{'mistakes':>10}{'witness':>9}"]
        lines += [
            f"{s.row:>8}  {s.label!s:<14.13}{s.suggested!s:<14.13}{s.margin:>8.3f}{s.mistakes:>10.2f}{s.witness:>9.4f}"
            for s in self[:10]
        ]
        return "\n".join([f"{len(self):,} examples, the most suspicious first", *lines])


def suspects(X: Any, y: Any, *, random_state: int = 0, time_limit: float | None = None) -> Suspects:
    """Rank the examples by how likely their label is wrong, with the evidence.

    After `time_limit` seconds the evidence gathered so far is ranked: fewer repetitions, and no witnesses. One training is
    never cut short, as without any there is nothing to rank by.

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
    margin, suggested = _held_out_margins(rows, codes, len(classes), random_state, begun + 0.7 * limit)
    mistakes = _repeated_mistakes(rows, codes, random_state, begun + 0.9 * limit)
    witness = _witness_weight(rows, codes, len(classes), begun + limit)
    suspicion = _standard(-margin) + 0.1 * _standard(mistakes) + 0.05 * _standard(witness)
    ranked = np.argsort(-suspicion, kind="stable")
    return Suspects(
        Suspect(
            int(i),
            classes[codes[i]].item() if isinstance(classes[codes[i]], np.generic) else classes[codes[i]],
            classes[suggested[i]].item() if isinstance(classes[suggested[i]], np.generic) else classes[suggested[i]],
            float(suspicion[i]),
            float(margin[i]),
            float(mistakes[i]),
            float(witness[i]),
        )
        for i in ranked
    )


def _standard(values: Floats) -> Floats:
    spread = values.std()
    return np.asarray((values - values.mean()) / spread if spread else np.zeros(len(values)))


def _held_out_margins(rows: Rows, codes: Codes, n_classes: int, seed: int, deadline: float) -> tuple[Floats, Array]:
    """Return the mean normalised lead of each example's class under learners that did not see it, and the best class."""
    rng = np.random.default_rng(seed)
    norms = np.sqrt(rows.squared_norms() + 1.0)
    total = np.zeros((rows.n, n_classes))
    counted = np.zeros(rows.n)
    plan = _plan(rows, codes, deadline)
    for repeat in range(plan.repeats):
        fold = rng.permutation(rows.n) % plan.folds
        for k in range(plan.folds):
            if repeat and time.monotonic() > deadline:
                break
            in_training = fold != k
            if len(np.unique(codes[in_training])) < n_classes:
                continue
            model = AveragedLearner(max_iter=plan.passes, random_state=seed + repeat)
            model.fit(rows.source, codes, sample_weight=in_training.astype(float))
            which = np.flatnonzero(~in_training)
            scores = rows.scores(model.coef_, model.intercept_, which)
            scores = np.hstack([-scores, scores]) if n_classes == 2 else scores
            size = np.sqrt(np.sum(model.coef_**2) + np.sum(model.intercept_**2)) or 1.0
            total[which] += scores / size / norms[which, None]
            counted[which] += 1
    scores = total / np.maximum(counted, 1)[:, None]
    every = np.arange(rows.n)
    own = scores[every, codes]
    scores[every, codes] = -np.inf
    rival = np.argmax(scores, axis=1)
    lead = own - scores[every, rival]
    return lead, np.where(lead < 0, rival, codes)


class _Plan(NamedTuple):
    """How many parts the examples are dealt into, how often, and how many passes a training makes."""

    folds: int
    repeats: int
    passes: int


def _plan(rows: Rows, codes: Codes, deadline: float) -> _Plan:
    """Return how much of the usual trainings there is time for, by the time of a single pass; at least two folds."""
    folds = min(_FOLDS, rows.n)
    if deadline == np.inf:
        return _Plan(folds, _REPEATS, _PASSES)
    begun = time.monotonic()
    AveragedLearner(max_iter=1).fit(rows.source, codes)
    affordable = int((deadline - time.monotonic()) / (1.2 * (time.monotonic() - begun)))
    if affordable >= folds * _REPEATS:
        return _Plan(folds, _REPEATS, min(_PASSES, affordable // (folds * _REPEATS)))
    return _Plan(min(folds, max(2, affordable)), 1, 1)


def _repeated_mistakes(rows: Rows, codes: Codes, seed: int, deadline: float) -> Floats:
    """Return the share of its presentations at which each example was a mistake."""
    counts, presentations = np.zeros(rows.n), 0
    plan = _plan(rows, codes, deadline)
    for repeat in range(_REPEATS):
        if repeat and time.monotonic() > deadline:
            break
        model = LastLearner(max_iter=plan.passes, random_state=seed + repeat).fit(rows.source, codes)
        counts += np.bincount(model.ledger_.example, minlength=rows.n)
        presentations += model.n_iter_
    return counts / presentations


def _witness_weight(rows: Rows, codes: Codes, n_classes: int, deadline: float) -> Floats:
    """Return the weight of each example in disjoint exact witnesses; zeros where the data are too large for the search."""
    weight = np.zeros(rows.n)
    pairs = Pairs(rows, codes, n_classes, True)
    if pairs.count * pairs.dim > _WITNESS_CELLS or time.monotonic() > deadline:
        return weight
    search = Contradictions(pairs, "mistake", min(deadline, time.monotonic() + _WITNESS_SECONDS))
    for witness in search.disjoint():
        for row, share in zip(witness.rows, witness.weights, strict=True):
            weight[row] += float(share)
    return weight
