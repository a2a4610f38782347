"""Iterative parameter mixing (McDonald, Hall and Mann 2010): training on shards, whoever runs the work.

Each pass every shard starts from the same weights w, and what comes out is mixed:

    w ← w + Σ_s μ_s·(w_s − w)        μ_s = 1/S, or shard s's share of the mistakes of the pass; or, for each feature by
                                     itself, 1/c, where c is the number of shards in which it occurs

On separable data Σ over passes and shards of μ·mistakes (by features: of mistakes/S) is at most R²/γ², so a pass without a
mistake comes. By features rare ones move as far as on one machine; where every feature is in every shard it is 1/S. AROW's
weights are mixed with their precisions: 1/v ← Σ μ_s/v_s and w/v ← Σ μ_s·w_s/v_s. The average is that of the weights after
every presentation, wherever it was made: with u = T·w − Σw_t after T of them, u ← u + T'·(w' − w) − Σ_s Σ_t (w_t − w),
where the sum over the steps of a shard is n·(w_s − w) − u_s, exactly. One shard is trained bit for bit as by `fit`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.cluster.engines import Engine
from separatrix.cluster.parts import Part
from separatrix.cluster.shards import Known, Reading
from separatrix.cluster.work import Choose, Clean, Judge, Mixed, Pass, Scores, apart, joined
from separatrix.engine.ledger import NEVER
from separatrix.engine.loop import train
from separatrix.engine.rows import NO_WEIGHT, Array, Floats
from separatrix.engine.run import Run, Snapshot
from separatrix.engine.stopping import History, StateDigests, why_not_converged
from separatrix.engine.weights import averaged
from separatrix.learners.calibration import find_slope
from separatrix.learners.linear_base import NotConvergedWarning

MIXES = ("features", "uniform", "mistakes")


@dataclass
class Told:
    """What is said after each pass, and while shards are worked on: (pass, shards done, of how many)."""

    after_pass: Callable[[int, float | None], None] = lambda mistakes, score: None
    working: Callable[[str, int, int], None] = lambda doing, done, total: None


@dataclass
class Mixture:
    """A training on shards: the weights as rows of features, the bias last, and what was found on the way."""

    engine: Engine
    reading: Reading
    learner: Any
    classes: Array
    known: dict[int, Known]
    train: list[int]
    held_out: list[int]
    mix: str = "features"
    told: Told = field(default_factory=Told)
    after_pass: Callable[[Mixture], None] = lambda mixture: None

    def __post_init__(self) -> None:
        self.d = max(known.d for known in self.known.values())
        self.shown = [number for number in self.train if self.known[number].n]
        self.lone = len(self.shown) == 1
        self.factors = class_factors(self.learner, self.classes, [self.known[number] for number in self.train])
        self.run: Run = None  # type: ignore[assignment]
        self.mistakes: list[list[int]] = []
        self.history = History()
        self.digests = StateDigests()
        self.C_scores: dict[float, float] | None = None
        self.errors = 0
        self.holders: Floats | None = None
        """In how many shards each feature occurs, which the first pass tells; None where it does not matter."""

    # State.

    def begin(self, start: Any = None) -> None:
        """Start from zero weights, or from others."""
        seed, C = self.learner.seed(), self.learner.C
        if C == "auto":
            self.learner.check_choosable()
            (choice,) = self.engine.reduce(Choose(*self._task(), seed=seed), self.shown[:1]).items
            C, self.C_scores = choice
        self.run = self.learner.new_run(self.classes, self.d, C, start)
        self.run.seed = seed
        self.run.ledger.weighted = self.learner.class_weight is not None
        self.run.radius_squared = max((self.known[number].radius_squared for number in self.train), default=0.0)
        self.adopt(self.run)

    def adopt(self, run: Run) -> None:
        """Go on from a run."""
        self.run = run
        run.ledger.limit = 0
        self.w = joined(run.last.weights())
        self.u = joined(run.late.weights()) if run.average else None
        self.v = joined(apart_of_spread(run)) if run.rule.spread else None

    def settle(self) -> Run:
        """Put the weights into the run."""
        self.run.last.load(apart(self.w))
        if self.u is not None:
            self.run.late.load(apart(self.u))
        if self.v is not None:
            self.run.last.load_spread([*apart(self.v)])
        self.run.used = None
        return self.run

    @property
    def counting(self) -> bool:
        """Whether it is still to be found out in how many shards each feature occurs."""
        return self.mix == "features" and not self.lone and self.holders is None

    @property
    def elapsed(self) -> int:
        """How many presentations are averaged."""
        return self.run.ledger.steps - self.run.ledger.average_after

    def used(self) -> Floats:
        """Return the weights that would be used now: the averaged ones where the learner averages."""
        if self.u is None or self.elapsed <= 0:
            return self.w
        return joined(averaged(apart(self.w), apart(self.u), self.elapsed))

    def _task(self) -> tuple[Reading, Any, Array, int, Floats]:
        return self.reading, self.learner.unfitted(), self.classes, self.d, self.factors

    def _part(self, *arrays: Floats | None) -> Part:
        held = [array for array in arrays if array is not None]
        blanks = tuple(1.0 if array is self.v else 0.0 for array in held)
        return Part.of(self.d + 1, None, held, blanks)

    # Passes.

    def resume(self) -> None:
        """Make passes until there is a reason to stop."""
        train(self, self.learner.reasons(self.run), self.history, after_pass=self._report)
        if self.learner.max_iter is None:
            rule = self.run.rule
            why = why_not_converged(self.history, rule=rule.name, ends_on_separable=rule.entry.ends)
            if why is not None:
                warnings.warn(why, NotConvergedWarning, stacklevel=4)

    def make_pass(self, number: int) -> tuple[int, float]:
        """Make a pass over every shard from the same weights, and mix what comes out."""
        self.run.begin_pass(number, self.learner.average_from)
        loss = self._mix(self._passed(number))
        return sum(self.mistakes[-1]), loss

    def _report(self, history: History) -> None:
        self.told.after_pass(*history.news())
        self.after_pass(self)

    def held_out_accuracy(self) -> float | None:
        """Return the accuracy on the held-out shards, if there are any."""
        if not self.held_out:
            return None
        right, n = self.engine.reduce(self.work(Judge, self.used()), self.held_out).values
        return float(right / max(1.0, n))

    def sweep_is_clean(self) -> bool:
        """Tell whether no example is a mistake under the mixed weights; an order that visits all has shown it."""
        if self.learner.order != "random":
            return True
        mistaken: Floats = self.engine.reduce(self.work(Clean, self.w, C=self.run.rule.C), self.shown).values
        return not mistaken[0]

    def snapshot(self, passes: int) -> Snapshot:
        """Return a copy of the weights and of the clock."""
        return self.settle().snapshot(passes)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier pass."""
        self.settle().restore(snapshot)
        self.adopt(self.run)

    def finish(self) -> None:
        """Do nothing more."""

    def state(self) -> tuple[Array, ...]:
        """Return a digest of the weights: with the perceptron rule they determine all that follows."""
        return self.digests.add(self.w)

    def past_states(self) -> Iterable[tuple[Array, ...]]:
        """Return the digests that a checkpoint stored."""
        return self.digests.states()

    def cycle_start(self, period: int) -> int:
        """Return the first pass whose starting weights come back."""
        return self.digests.first_repeated(period)

    def verdict(self, seconds: float) -> str:
        """Return "undecided": nobody has all examples."""
        return "undecided"

    def is_finite(self) -> bool:
        """Tell whether the weights are finite."""
        return bool(np.isfinite(self.w.max()) and np.isfinite(self.w.min()))

    def _passed(self, number: int) -> Mixed:
        ledger = self.run.ledger
        averaging = self.u is not None and ledger.average_after < NEVER
        if averaging and ledger.average_after > ledger.steps and not self.lone:
            raise ValueError("an average that begins with a certain example needs one shard: with several, average=True")
        weights = self._part(self.w, self.u if self.lone else None, self.v)
        work = Pass(
            *self._task(),
            weights=weights,
            number=number,
            seed=self.run.seed,
            C=self.run.rule.C,
            mix=self.mix,
            counting=self.counting,
            averaging=averaging,
            lone=self.lone,
            clock=(ledger.steps, ledger.average_after),
            tally=self.run.tally,
        )
        doing = f"pass {number + 1}"
        found: Mixed = self.engine.reduce(work, self.shown, lambda done: self.told.working(doing, done, len(self.shown)))
        return found

    def _mix(self, mixed: Mixed) -> float:
        """Take over what the shards have learned; return the mean loss."""
        part, (_, mistakes, errors, losses, steps) = mixed.part, mixed.counts.T
        run, rows = self.run, mixed.part.rows()
        if self.counting:
            self.holders = np.ones((self.d + 1, 1))
            self.holders[rows] = np.maximum(part.values.pop(), 1.0)
        run.ledger.steps += int(steps.sum())
        run.ledger.absent += int(mistakes.sum())
        loss = losses.sum() - (run.tally[1] if self.lone else 0.0)
        mean_loss = float(loss / max(1.0, steps.sum()))
        tally = np.array([errors.sum(), losses.sum()])
        run.tally = tally if self.lone else run.tally + tally
        by_shard = dict(zip(mixed.counts[:, 0].astype(int).tolist(), mistakes.astype(int).tolist(), strict=True))
        self.mistakes.append([by_shard.get(number, 0) for number in self.train])
        if len(self.mistakes) == 1:
            self.errors = run.errors
        if self.lone:
            for array, values in zip((self.w, *(a for a in (self.u, self.v) if a is not None)), part.values, strict=True):
                array[rows] = values
        elif self.holders is not None:
            self._add(part, rows, self.holders[rows])
        elif worth := mistakes.sum() if self.mix == "mistakes" else len(self.shown):
            self._add(part, rows, float(worth))
        return mean_loss

    def _add(self, part: Part, rows: Any, worth: float | Floats) -> None:
        w, gone = self.w[rows], part.values[0] / worth
        if self.v is not None:
            precision = 1.0 / self.v[rows] + part.values[-1] / worth
            gone = (w / self.v[rows] + gone) / precision - w
            self.v[rows] = 1.0 / precision
        self.w[rows] = w + gone
        if self.u is not None and self.elapsed > 0:
            self.u[rows] += self.elapsed * gone - part.values[1]

    def work(self, kind: Any, weights: Floats, **more: Any) -> Any:
        """Return work that looks at examples under some weights."""
        return kind(*self._task(), weights=self._part(weights), **more)

    # The end.

    def publish(self) -> None:
        """Let the learner be fitted."""
        run, learner = self.settle(), self.learner
        run.rows_seen = sum(self.known[number].n for number in self.train)
        learner.n_features_in_ = self.d
        learner.__dict__.pop("feature_names_in_", None)
        names = self.known[self.shown[0]].names
        if names is not None:
            learner.feature_names_in_ = np.array(names, dtype=object)
        learner.publish(
            *(run, [sum(row) for row in self.mistakes], self.history),
            progressive_errors_=self.errors,
            validation_scores_=list(self.history.scores) if self.held_out else None,
            slope_=self._slope() if learner.calibrate is not None else None,
            C_=run.rule.C if learner.C == "auto" else None,
            C_scores_=self.C_scores,
            shard_mistakes_=np.array(self.mistakes, np.int64),
            mix_=self.mix,
            _runs=None,
        )

    def _slope(self) -> float:
        parts = self.engine.reduce(self.work(Scores, self.used()), self.held_out).items
        scores, codes = (np.concatenate(side) for side in zip(*parts, strict=True))
        return find_slope(scores, codes, NO_WEIGHT)


def apart_of_spread(run: Run) -> Any:
    """Return the variances of a run in the shapes of weights."""
    return apart(np.concatenate([run.last.spreads()[0].T, run.last.spreads()[1][None]]))


def class_factors(learner: Any, classes: Array, known: list[Known]) -> Floats:
    """Return the weight of each class, or none where all are 1; the balanced ones from the counts of all shards."""
    if learner.class_weight is None:
        return NO_WEIGHT
    if learner.class_weight != "balanced":
        factors: Floats = learner.example_weight(None, classes, classes)
        return factors
    counts = np.zeros(len(classes))
    place = {label: k for k, label in enumerate(classes.tolist())}
    for shard in known:
        for label, count in zip(shard.labels, shard.counts.tolist(), strict=True):
            counts[place[label]] += count
    balanced: Floats = counts.sum() / (len(classes) * counts)
    return balanced
