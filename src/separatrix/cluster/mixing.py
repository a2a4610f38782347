"""Iterative parameter mixing (McDonald, Hall and Mann 2010): training on shards, with any engine.

In each pass every shard starts from the same weights w, and the results w_s are mixed:

    w ← w + Σ_s μ_s·(w_s − w)        μ_s = 1/S, or shard s's share of the mistakes of the pass; or, for each feature
                                     separately, 1/c, where c is the number of shards in which it occurs

On separable data Σ over passes and shards of μ·mistakes (mixing by features: of mistakes/S) is at most R²/γ², so some pass
makes no mistake. Mixing by features moves rare features as far as one machine would; if every feature occurs in every shard
it is the same as 1/S. AROW's weights are mixed with their precisions: 1/v ← Σ μ_s/v_s and w/v ← Σ μ_s·w_s/v_s. The average
is over the weights after every presentation on any shard: with u = T·w − Σw_t after T of them, u ← u + T'·(w' − w) −
Σ_s Σ_t (w_t − w), where the sum over the steps of a shard is exactly n·(w_s − w) − u_s. One shard is trained bit for bit as
by `fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from separatrix.cluster.engines import Engine
from separatrix.cluster.feature_rows import FeatureRows
from separatrix.cluster.results import PassResult
from separatrix.cluster.shards import ShardReader
from separatrix.cluster.summaries import ShardSummary
from separatrix.cluster.work import (
    ChooseC,
    CollectScores,
    CountByClass,
    CountCorrect,
    CountMistakes,
    MakePass,
    rows_to_weights,
    weights_to_rows,
)
from separatrix.engine.labels import come_in_runs
from separatrix.engine.ledger import NEVER
from separatrix.engine.loop import train
from separatrix.engine.rows import NO_WEIGHT, Array, Floats
from separatrix.engine.run import Run, Snapshot
from separatrix.engine.stopping import History, StateDigests
from separatrix.engine.weights import Weights, averaged
from separatrix.learners.calibration import find_slope
from separatrix.learners.inputs import warn_of_sorted_rows
from separatrix.learners.linear import AveragedLearner, LastLearner, PassiveAggressiveLearner
from separatrix.learners.online import OnlineLearner

PLAIN_LEARNERS = {learner.saved_as: learner for learner in (LastLearner, AveragedLearner, PassiveAggressiveLearner)}
"""The learners without scikit-learn, which workers do not need, by the name of the estimator."""


@dataclass
class Listeners:
    """Callbacks after each pass (mistakes, held-out accuracy) and after each shard (what is done, shards done, in total)."""

    after_pass: Callable[[int, float | None], None] = lambda mistakes, score: None
    working: Callable[[str, int, int], None] = lambda doing, done, total: None


@dataclass
class Mixture:
    """A training on shards: the weights as rows of features, the bias last, and the history of the passes."""

    engine: Engine
    reader: ShardReader
    learner: OnlineLearner
    classes: Array
    summaries: dict[int, ShardSummary]
    train: list[int]
    held_out: list[int]
    mix: str = "features"
    listeners: Listeners = field(default_factory=Listeners)
    after_pass: Callable[[Mixture], None] = lambda mixture: None
    first_pass: PassResult | None = None
    """The first pass, where it was made as the shards were read, …"""
    seed: int | None = None
    """… and the seed with which it was made."""

    def __post_init__(self) -> None:
        self.d = max(summary.d for summary in self.summaries.values())
        self.filled = [number for number in self.train if self.summaries[number].n]
        self.lone = len(self.filled) == 1
        self.factors = class_factors(self.learner, self.classes, [self.summaries[number] for number in self.train])
        self.run: Run = None  # type: ignore[assignment]
        self.mistakes: list[list[int]] = []
        self.history = History()
        self.digests = StateDigests()
        self.C_scores: dict[float, float] | None = None
        self.errors = 0
        self.holders: Floats | None = None
        """In how many shards each feature occurs, counted in the first pass; None if the mix does not need it."""

    # State.

    def begin(self, start: Weights | None = None) -> None:
        """Start from zero weights, or from those of `start`."""
        seed, C = self.learner.seed() if self.first_pass is None or self.seed is None else self.seed, self.learner.C
        if C == "auto":
            self.learner.check_choosable()
            (choice,) = self.engine.reduce(ChooseC(*self._common(), seed=seed), self.filled[:1]).items
            C, self.C_scores = choice
        self.run = self.learner.new_run(self.classes, self.d, C, start)
        self.run.seed = seed
        self.run.ledger.weighted = self.learner.class_weight is not None
        self.run.radius_squared = max((self.summaries[number].radius_squared for number in self.train), default=0.0)
        self.adopt(self.run)

    def adopt(self, run: Run) -> None:
        """Take over the weights and counts of a run."""
        self.run = run
        run.ledger.limit = 0
        self.w = weights_to_rows(run.last.weights())
        self.u = weights_to_rows(run.late.weights()) if run.average else None
        self.v = weights_to_rows(Weights(*run.last.spreads())) if run.rule.spread else None

    def settle(self) -> Run:
        """Write the weights back into the run, and return it."""
        self.run.last.load(rows_to_weights(self.w))
        if self.u is not None:
            self.run.late.load(rows_to_weights(self.u))
        if self.v is not None:
            self.run.last.load_spread([*rows_to_weights(self.v)])
        self.run.used = None
        return self.run

    @property
    def counting(self) -> bool:
        """Whether the next pass counts in how many shards each feature occurs."""
        return self.mix == "features" and not self.lone and self.holders is None

    @property
    def elapsed(self) -> int:
        """The number of presentations that are averaged."""
        return self.run.ledger.steps - self.run.ledger.average_after

    def used(self) -> Floats:
        """Return the weights to predict with now: the averaged ones if the learner averages."""
        if self.u is None or self.elapsed <= 0:
            return self.w
        return weights_to_rows(averaged(rows_to_weights(self.w), rows_to_weights(self.u), self.elapsed))

    def _common(self) -> tuple[ShardReader, OnlineLearner, Array, int, Floats]:
        """Return the fields that all work on examples has."""
        return self.reader, plain(self.learner), self.classes, self.d, self.factors

    def _to_send(self, *arrays: Floats | None) -> FeatureRows:
        """Return weights in the form in which they are sent; an untouched variance is 1, an untouched weight 0."""
        values = [array for array in arrays if array is not None]
        defaults = tuple(1.0 if array is self.v else 0.0 for array in values)
        return FeatureRows.of(self.d + 1, None, values, defaults)

    # Passes.

    def resume(self) -> None:
        """Make passes until there is a reason to stop."""
        train(self, self.learner.reasons(self.run), self.history, after_pass=self._report)
        self.learner.warn_unless_converged(self.history)

    def make_pass(self, number: int) -> tuple[int, float]:
        """Make a pass over every shard from the same weights, and mix the results."""
        self.run.begin_pass(number, self.learner.average_from)
        loss = self._mix(self._passed(number))
        return sum(self.mistakes[-1]), loss

    def _report(self, history: History) -> None:
        self.listeners.after_pass(*history.news())
        self.after_pass(self)

    def held_out_accuracy(self) -> float | None:
        """Return the accuracy on the held-out shards, if there are any."""
        if not self.held_out:
            return None
        correct, n = self.engine.reduce(self.work(CountCorrect, self.used()), self.held_out).values
        return float(correct / max(1.0, n))

    def sweep_is_clean(self) -> bool:
        """Return whether no example is a mistake under the mixed weights; only a random order does not visit all of them."""
        if self.learner.order != "random":
            return True
        totals: Floats = self.engine.reduce(self.work(CountMistakes, self.w, C=self.run.rule.C), self.filled).values
        return not totals[0]

    def snapshot(self, passes: int) -> Snapshot:
        """Return a copy of the weights and of the counts of steps."""
        return self.settle().snapshot(passes)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the weights of an earlier pass."""
        self.settle().restore(snapshot)
        self.adopt(self.run)

    def finish(self) -> None:
        """Do nothing: the weights are complete after each pass."""

    def state(self) -> tuple[Array, ...]:
        """Return a digest of the weights: with the perceptron rule they determine all later passes."""
        return self.digests.add(self.w)

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return the digests that a checkpoint stored."""
        return self.digests.states()

    def cycle_start(self, period: int) -> int:
        """Return the first pass whose starting weights occur again."""
        return self.digests.first_repeated(period)

    def verdict(self, seconds: float) -> str:
        """Return "undecided": no process has all the examples that a proof needs."""
        return "undecided"

    def is_finite(self) -> bool:
        """Return whether weights and averages are finite."""
        arrays = [array for array in (self.w, self.u) if array is not None]
        return all(bool(np.isfinite(array.max()) and np.isfinite(array.min())) for array in arrays)

    def _passed(self, number: int) -> PassResult:
        ledger = self.run.ledger
        averaging = self.u is not None and ledger.average_after < NEVER
        if averaging and ledger.average_after > ledger.steps and not self.lone:
            raise ValueError("average=N counts examples and needs a single shard: with several shards, use average=True")
        doing = f"pass {number + 1}"
        n = len(self.filled)
        if number == 0 and self.first_pass is not None:
            self.listeners.working(doing, n, n)
            first_pass, self.first_pass = self.first_pass, None
            return first_pass._replace(changes=first_pass.changes.widened(self.d + 1))
        weights = self._to_send(self.w, self.u if self.lone else None, self.v)
        work = MakePass(
            *self._common(),
            weights=weights,
            number=number,
            seed=self.run.seed,
            C=self.run.rule.C,
            mix=self.mix,
            counting=counts_of(len(self.filled)) if self.counting else "",
            averaging=averaging,
            lone=self.lone,
            clock=(ledger.steps, ledger.average_after),
            tally=self.run.tally,
            heaviest=max(self.run.heaviest, default=1.0),
        )
        result: PassResult = self.engine.reduce(work, self.filled, lambda done: self.listeners.working(doing, done, n))
        return result

    def _mix(self, result: PassResult) -> float:
        """Add the mixed changes of the shards to the weights, and their counts to the history; return the mean loss."""
        changes, (_, mistakes, errors, losses, steps, heaviest) = result.changes, result.counts.T
        run, rows = self.run, result.changes.index()
        if self.counting:
            self.holders = np.ones((self.d + 1, 1))
            self.holders[rows] = np.maximum(changes.values.pop(), 1)
        run.heaviest[:] = heaviest.max(initial=1.0)
        run.ledger.steps += int(steps.sum())
        run.ledger.absent += int(mistakes.sum())
        loss = losses.sum() - (run.tally[1] if self.lone else 0.0)
        mean_loss = float(loss / max(1.0, steps.sum()))
        tally = np.array([errors.sum(), losses.sum()])
        run.tally = tally if self.lone else run.tally + tally
        by_shard = dict(zip(result.counts[:, 0].astype(int).tolist(), mistakes.astype(int).tolist(), strict=True))
        self.mistakes.append([by_shard.get(number, 0) for number in self.train])
        if len(self.mistakes) == 1:
            self.errors = run.errors
        if self.lone:
            for array, values in zip((self.w, *(a for a in (self.u, self.v) if a is not None)), changes.values, strict=True):
                array[rows] = values
        elif self.holders is not None:
            self._add(changes, rows, self.holders[rows])
        elif divisor := mistakes.sum() if self.mix == "mistakes" else len(self.filled):
            self._add(changes, rows, float(divisor))
        return mean_loss

    def _add(self, changes: FeatureRows, rows: Array | slice, divisor: float | Floats) -> None:
        w, moved = self.w[rows], changes.values[0] / divisor
        if self.v is not None:
            precision = 1.0 / self.v[rows] + changes.values[-1] / divisor
            moved = (w / self.v[rows] + moved) / precision - w
            self.v[rows] = 1.0 / precision
        self.w[rows] = w + moved
        if self.u is not None and self.elapsed > 0:
            self.u[rows] += self.elapsed * moved - changes.values[1]

    def work(self, kind: Any, weights: Floats, **more: Any) -> Any:
        """Return work of some kind that scores examples with these weights."""
        return kind(*self._common(), weights=self._to_send(weights), **more)

    # The end.

    def publish(self) -> None:
        """Write the fitted attributes to the learner."""
        run, learner = self.settle(), self.learner
        correct, counts = self.engine.reduce(self.work(CountByClass, self.used()), self.filled).values.reshape(2, -1)
        run.rows_seen = sum(self.summaries[number].n for number in self.train)
        learner.n_features_in_ = self.d
        learner.__dict__.pop("feature_names_in_", None)
        names = self.summaries[self.filled[0]].names
        if names is not None:
            learner.__dict__["feature_names_in_"] = np.array(names, dtype=object)
        learner.publish(
            *(run, [sum(row) for row in self.mistakes], self.history),
            progressive_errors_=self.errors,
            training_error_=float((counts - correct).sum() / counts.sum()),
            training_recalls_=correct / counts,
            validation_scores_=list(self.history.scores) if self.held_out else None,
            slope_=self._slope() if learner.calibrate is not None else None,
            threshold_=None,
            C_=run.rule.C if learner.C == "auto" else None,
            C_scores_=self.C_scores,
            shard_mistakes_=np.array(self.mistakes, np.int64),
            mix_=self.mix,
            _runs=None,
        )
        if self.presents_sorted_rows():
            warn_of_sorted_rows(self.learner)

    def presents_sorted_rows(self) -> bool:
        """Tell whether passes that were not clean presented rows in their order, and some shard is sorted by label."""
        if self.learner.order != "cyclic" or self.learner.converged_:
            return False
        summaries = [self.summaries[number] for number in self.filled]
        return any(come_in_runs(summary.counts, summary.changes) for summary in summaries)

    def _slope(self) -> float:
        pairs = self.engine.reduce(self.work(CollectScores, self.used()), self.held_out).items
        scores, codes = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return find_slope(scores, codes, NO_WEIGHT)


def plain(learner: OnlineLearner) -> OnlineLearner:
    """Return the learner without scikit-learn, as workers get it."""
    made: OnlineLearner = PLAIN_LEARNERS[learner.saved_as](**learner.get_params(deep=False))
    return made


def first_pass_on_reading(learner: OnlineLearner, reader: ShardReader, n_shards: int, mix: str) -> MakePass | None:
    """Return the first pass, as workers can make it while they read; None where it needs to know all shards before."""
    waits = learner.C == "auto" or learner.class_weight is not None or learner.warm_start
    if waits or n_shards < 2 or not (learner.random_state is None or isinstance(learner.random_state, Integral)):
        return None
    run: Run = learner.new_run(np.arange(2), 0, learner.C)
    if run.ledger.average_after < NEVER:
        return None
    return MakePass(
        *(reader, plain(learner), run.classes, 0),
        seed=learner.seed(),
        C=run.rule.C,
        mix=mix,
        counting=counts_of(n_shards) if mix == "features" else "",
        averaging=run.average and learner.average_from == 1,
    )


def counts_of(n_shards: int) -> str:
    """Return the smallest type that can count so many shards."""
    return np.min_scalar_type(n_shards).str


def class_factors(learner: OnlineLearner, classes: Array, summaries: list[ShardSummary]) -> Floats:
    """Return the weight of each class, or an empty array if all are 1; balanced weights use the counts of all shards."""
    if learner.class_weight is None:
        return NO_WEIGHT
    if learner.class_weight != "balanced":
        factors: Floats = learner.example_weight(None, classes, classes)
        return factors
    counts = np.zeros(len(classes))
    place = {label: k for k, label in enumerate(classes.tolist())}
    for summary in summaries:
        for label, count in zip(summary.labels, summary.counts.tolist(), strict=True):
            counts[place[label]] += count
    balanced: Floats = counts.sum() / (len(classes) * counts)
    return balanced
