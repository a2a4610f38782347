"""Probabilities from scores: one slope, found on scores of examples that were not trained on.

    two classes:  P(classes_[1] | x) = 1 / (1 + exp(−a·s))        K classes:  P(k | x) = exp(a·s_k) / Σ exp(a·s_j)

Platt's sigmoid has an offset as well, which would move the boundary away from where `predict` has it. With the slope alone
(temperature scaling, a = 1/T) the most probable class is always the predicted one.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.parameters import available_if
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows
from separatrix.engine.run import Run
from separatrix.learners.inputs import HeldOut, NoneHeldOutError

if TYPE_CHECKING:
    from separatrix.learners.linear_base import LinearLearner

FOLDS = 5
DOUBT = 2.0
"""So many more held-out examples are taken to be wrong: where none is, the best slope would be infinite."""
LOG_SLOPES = (-10.0, 10.0)


class _Calibratable(Protocol):
    """A learner with the parameter `calibrate`."""

    calibrate: str | None


def _require_calibration(learner: _Calibratable) -> None:
    if learner.calibrate is None:
        raise AttributeError('probabilities need held-out scores: set calibrate="sigmoid" before fit')


def _require_no_calibration(learner: _Calibratable) -> None:
    if learner.calibrate is not None:
        raise AttributeError("a stream has no held-out scores: use fit, or set calibrate=None before partial_fit")


takes_streams = available_if(_require_no_calibration)
"""Decorates `partial_fit`: probabilities calibrated once would be wrong for weights that have learned on."""


class Calibrated:
    """A classifier with `predict_proba` when `calibrate` is set."""

    calibrate: str | None

    @available_if(_require_calibration)
    def predict_proba(self: Any, X: Any) -> Floats:
        """Return the probability of each class, in the order of `classes_`; where `threshold_` is not set, the largest is

        that of the predicted class.
        """
        self._check_fitted()
        scores = self.scores(self.read_rows(X))
        if not hasattr(self, "slope_"):
            raise self.not_fitted_error(f"this {self.public_name()} was fitted with calibrate=None: fit it again")
        return probabilities(scores, self.slope_, self.winners(scores, len(self.classes_)))


def probabilities(scores: Floats, slope: float, decided: Ints) -> Floats:
    """Return the probabilities of the classes; `decided` stay the most probable where rounding or a tie levels them."""
    with np.errstate(over="ignore"):
        powers = np.exp(slope * _leads(scores))
        shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    each = np.flatnonzero(np.argmax(shares, axis=1) != decided)
    rivals = np.argmax(shares[each], axis=1)
    level = shares[each, rivals]
    shares[each, decided[each]] = np.nextafter(level, 1.0)
    shares[each, rivals] = np.nextafter(level, 0.0)
    return shares


def _leads(scores: Floats) -> Floats:
    """Return one score a class, the highest being 0."""
    scores = np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    leads: Floats = scores - scores.max(axis=1, keepdims=True)
    return leads


def find_slope(scores: Floats, codes: Codes, weight: Floats) -> float:
    """Return the slope with the smallest log loss on held-out scores."""
    from scipy import optimize  # slow to import, and needed for this alone

    leads = _leads(scores)
    n, K = len(leads), leads.shape[1]
    doubt = DOUBT / (n + 2.0 * DOUBT)
    targets = np.full((n, K), doubt / (K - 1))
    targets[np.arange(n), codes] = 1.0 - doubt
    weight = weight if weight.size else np.ones(n)
    scale = float(-leads.mean()) or 1.0

    def loss(log_slope: float) -> float:
        exponents = np.exp(log_slope) / scale * leads  # of which the highest is 0
        log_shares = exponents - np.log(np.exp(exponents).sum(axis=1, keepdims=True))
        return -float(weight @ np.sum(targets * log_shares, axis=1)) / n

    best: float = optimize.minimize_scalar(loss, bounds=LOG_SLOPES, method="bounded").x
    return math.exp(best) / scale


def slope_of(
    learner: LinearLearner, run: Run, problem: Problem, held_out: HeldOut | None, sample_weight: Any, y: Array
) -> float:
    """Return the slope of a fit's probabilities, found on the caller's held-out examples or by cross-fitting."""
    if held_out is not None and held_out.rows is not problem.rows:
        return find_slope(learner.held_out_scores(run, problem, held_out)(), held_out.codes, NO_WEIGHT)
    if run.ledger.start is not None:
        raise ValueError("after a warm start every example of X has been seen: calibrate needs X_val and y_val")
    weight = learner.example_weight(sample_weight, y, run.classes)
    return cross_fitted_slope(learner, run.rule.C, problem.rows, problem.codes, weight, run.seed)


def cross_fitted_slope(learner: LinearLearner, C: float, rows: Rows, codes: Codes, weight: Floats, seed: int) -> float:
    """Return the slope found on each example's scores by a learner trained on the other folds."""
    fold = _folds(codes, weight, seed)
    held = np.flatnonzero(fold >= 0)
    if not held.size:
        raise ValueError("calibrate needs held-out scores, and no class has two examples: give more, or X_val and y_val")
    changes = {"calibrate": None, "class_weight": None, "warm_start": False, "verbose": 0, "record": False}
    twin = learner.unfitted(C=C, random_state=seed, **changes)
    K = int(codes.max()) + 1
    scores = np.empty((rows.n, 1 if K == 2 else K))
    for k in np.unique(fold[held]).tolist():
        training_weight = np.where(fold == k, 0.0, weight if weight.size else 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                twin.fit(rows.source, codes, sample_weight=training_weight)
            except NoneHeldOutError:
                raise ValueError(
                    f"calibrate trains on {FOLDS - 1} of {FOLDS} parts of the examples, and there "
                    f"validation_fraction={learner.validation_fraction} leaves early stopping none to hold out: "
                    "give more examples, a larger fraction, or X_val and y_val"
                ) from None
        which = np.flatnonzero(fold == k)
        for begin in range(0, len(which), rows.block):
            part = which[begin : begin + rows.block]
            scores[part] = twin.decision_function(rows.take(part).source).reshape(len(part), -1)
    return find_slope(scores[held], codes[held], weight[held] if weight.size else weight)


def _folds(codes: Codes, weight: Floats, seed: int) -> Ints:
    """Return the fold of each example: those of a class in turn; −1 for a class's only example, and those of no weight."""
    rng = np.random.default_rng(seed)
    fold = np.full(len(codes), -1, np.int64)
    begin = 0
    for k in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero((codes == k) & (weight != 0.0 if weight.size else True)))
        if len(members) > 1:
            fold[members] = (begin + np.arange(len(members))) % FOLDS
            begin += len(members)
    return fold
