"""Corrections that stick: an example is corrected until the model judges it right, a bounded number of times.

Where weights are averaged, a usual correction moves the average by a share of 1/steps, so the next prediction would be wrong
again. The corrections here count in the average from its beginning on, as if they had been part of the initial weights: the
average moves by the whole correction, as the last weights do. The example is right when both judge it right.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from separatrix.engine.rows import Array, Floats
from separatrix.web.server.live.commits import SparseRows

if TYPE_CHECKING:
    from separatrix.web.server.live.live_model import LiveModel

MOST_UPDATES = 1_000
"""An example is corrected at most so many times more."""
MOST_VALUES = 1 << 20
"""The rows of its corrections have at most about so many values in the ledger."""


class Update(NamedTuple):
    """A correction: the classes raised and lowered, by number, how much of the example is added, and how much Σ shrinks."""

    up: int
    down: int
    correction: float
    shrink: float


class _Standing(NamedTuple):
    """The lead of the true class over its rival, by position among the sorted classes, and whether it is judged right."""

    lead: float
    rival: int
    is_right: bool


def corrections(live_model: LiveModel, block: SparseRows, at: int, number: int) -> tuple[tuple[Array, ...], bool]:
    """Correct row `at` until its class, by number, is predicted.

    Returns the corrections as columns (step, row, up, down, correction, shrink), and whether the class is predicted now.
    """
    updates, is_right = _updates(live_model, block.take(np.array([at])), number)
    up, down, correction, shrink = zip(*updates, strict=True) if updates else ((), (), (), ())
    step, rows = np.full(len(updates), live_model.steps), np.full(len(updates), at)
    whole = (step, rows, np.array(up, np.int64), np.array(down, np.int64))
    return (*whole, np.array(correction, np.float64), np.array(shrink, np.float64)), is_right


def _updates(live_model: LiveModel, row: SparseRows, number: int) -> tuple[list[Update], bool]:
    """Correct one row; return the corrections, and whether its class is predicted now."""
    updates: list[Update] = []
    most = min(MOST_UPDATES, max(1, MOST_VALUES // max(1, len(row.data))))
    if len(live_model.classes) < 2:
        return updates, True
    position = int(live_model.table.position_of[number])
    while True:
        standings = [standing for standing in _standings(live_model, row, position) if not standing.is_right]
        if not standings:
            return updates, True
        worst = min(standings)
        rival = int(live_model.table.number_at[worst.rival])
        correction, shrink = _step(live_model, row, worst.lead, number, rival)
        if len(updates) == most or not 0.0 < correction < math.inf:
            return updates, False
        updates.append(Update(number, rival, correction, shrink))
        one = np.zeros(1, np.int64)
        shrinks = np.array([shrink]) if live_model.run and live_model.run.rule.spread else np.empty(0)
        live_model.correct(row, one, one + number, one + rival, np.array([correction]), shrinks, np.zeros(1))


def _standings(live_model: LiveModel, row: SparseRows, position: int) -> list[_Standing]:
    """Return the standing of a class under the weights that predict, and under the last weights."""
    scores = live_model.scores(row)[0]
    decision = live_model.decide(scores[None])[0] == live_model.labels[position]
    last = live_model.scores(row, last=True)[0]
    lead, rival = _lead(scores, position, live_model.learner.threshold_ or 0.0)
    last_lead, last_rival = _lead(last, position, 0.0)
    return [_Standing(lead, rival, decision), _Standing(last_lead, last_rival, last_lead > 0.0)]


def _lead(scores: Floats, position: int, threshold: float) -> tuple[float, int]:
    """Return the lead of a class over the best other one, and that one."""
    if len(scores) == 1:
        score = float(scores[0]) - threshold
        return (score, 0) if position else (-score, 1)
    others = np.where(np.arange(len(scores)) == position, -np.inf, scores)
    rival = int(np.argmax(others))
    return float(scores[position] - scores[rival]), rival


def _step(live_model: LiveModel, row: SparseRows, lead: float, number: int, rival: int) -> tuple[float, float]:
    """Return the rule's correction for a lead, and how much Σ shrinks; 0 where the example has no length."""
    run = live_model.run
    assert run is not None
    rule, loss = run.rule, 1.0 - lead
    sides = 1.0 if run.last.K == 1 else 2.0
    square = sides * (float(row.data @ row.data) + run.bias)
    if not square:
        return 0.0, 0.0
    if rule.spread:
        outputs = np.array([0]) if run.last.K == 1 else live_model.table.outputs_of(np.array([number, rival]))
        V = run.last.V.reshape(-1, run.last.K)[row.indices[:, None], outputs]
        spread = float((row.data**2 @ V).sum() + (run.last.vb[outputs].sum() if run.bias else 0.0))
        return loss / (spread + 1.0 / rule.C), 1.0 / (spread + 1.0 / rule.C)
    if rule.entry.asks != "loss":
        return 1.0, 0.0
    if rule.name == "pa2":
        return loss / (square + 0.5 / rule.C), 0.0
    return min(rule.C if rule.name == "pa1" else math.inf, loss / square), 0.0
