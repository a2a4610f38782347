"""What workers are asked to do on a shard: open it, learn its columns, survey it, make a pass over it, judge weights on it.

Each is a pure function of the shard and of what it carries, and its results add up in the order of the shards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.cluster.learning import Columns, begun, learned
from separatrix.cluster.parts import Part
from separatrix.cluster.shards import Examples, Reading, Shard, problem_of
from separatrix.data.errors import NoExampleError
from separatrix.engine.labels import Codes
from separatrix.engine.ledger import NEVER
from separatrix.engine.orders import visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows, frozen
from separatrix.engine.rules import RULES
from separatrix.engine.run import Run
from separatrix.engine.weights import Weights
from separatrix.files.ingest import roles_for
from separatrix.kernels.codes import NOBODY
from separatrix.kernels.learning.shards import changes
from separatrix.learners.auto_c import Choice

SOME = 4096


class First(NamedTuple):
    """What the first shard that has any examples tells of the others: None where it has none."""

    found: Reading | None

    def __add__(self, other: First) -> First:  # type: ignore[override]
        return self if self.found is not None else other


class Total(NamedTuple):
    """Numbers that add up."""

    values: Floats

    def __add__(self, other: Total) -> Total:  # type: ignore[override]
        return Total(self.values + other.values)


class Least(NamedTuple):
    """The least of numbers."""

    value: float

    def __add__(self, other: Least) -> Least:  # type: ignore[override]
        return min(self, other)


class Several(NamedTuple):
    """Results one after the other."""

    items: list[Any]

    def __add__(self, other: Several) -> Several:  # type: ignore[override]
        return Several(self.items + other.items)


@dataclass
class Open:
    """Find out how the shards are to be read, and what the columns of a table are for."""

    reading: Reading
    learn: bool = True

    def __call__(self, shard: Shard) -> First:
        """Return how this shard is read, as all will be."""
        reading = self.reading
        try:
            source = reading.source(shard)
            reading.form, reading.label = source.format, source.label if source.kind == "columns" else None
            reading.reader = None if source.format == "built-in" else getattr(source, "reader", None)
            if source.kind == "rows":
                return First(Reading(reading.token, None, reading.options, reading.form, reading.reader))
            if not self.learn:
                return First(reading)
            names = [name for name in source.schema.names if name != source.label]  # type: ignore[union-attr]
            reading.features.roles = roles_for(source.name, source.schema.names, names, reading.features.roles or {})  # type: ignore[union-attr]
            schema = begun(reading.features, (batch.table.drop_columns([source.label]) for batch in source))
        except NoExampleError:
            return First(None)
        assert schema is not None
        reading.features.adopt(schema)
        return First(reading)


@dataclass
class Learn:
    """Learn the columns of a shard."""

    reading: Reading

    def __call__(self, shard: Shard) -> Columns:
        """Return what the shard tells of its columns."""
        source = self.reading.source(shard)
        try:
            tables = (batch.table.drop_columns([source.label]) for batch in source)
            return learned(self.reading.features.schema_so_far, shard.number, tables)
        except NoExampleError:
            return Columns(None)


@dataclass
class Survey:
    """Read a shard, keep it on the worker's disk, and say what is known of it."""

    reading: Reading

    def __call__(self, shard: Shard) -> Several:
        """Return what is known of the shard: how many rows, which labels, how long the longest row."""
        return Several([(shard.number, self.reading.examples(shard).known)])


@dataclass
class Task:
    """What every look at the examples needs: how to read them, the learner, the classes, and their weights."""

    reading: Reading
    learner: Any
    classes: Array
    d: int
    factors: Floats = field(default_factory=lambda: NO_WEIGHT)

    def problem(self, shard: Shard) -> tuple[Problem, Examples]:
        """Return the examples of a shard as a problem of its own features."""
        examples = self.reading.examples(shard)
        return problem_of(examples, self.classes, self.factors), examples

    def features(self, examples: Examples) -> Ints | None:
        """Return the features that the shard's weights are of, the bias last; None: all."""
        return None if examples.features is None else np.append(examples.features, self.d)


@dataclass
class Pass(Task):
    """One pass over a shard from the weights given: w ← the kernel's pass, and how far each weight has gone.

    With several shards the average is summed on a clock of the shard's own. A lone shard goes on with the driver's
    clock and returns its weights as they are: nothing is mixed.
    """

    weights: Part = None  # type: ignore[assignment]
    number: int = 0
    seed: int = 0
    C: float = 1.0
    mix: str = "features"
    counting: bool = False
    """Whether to tell which features occur, too: added up, in how many shards."""
    averaging: bool = False
    lone: bool = False
    clock: tuple[int, int] = (0, NEVER)
    tally: Floats = field(default_factory=lambda: np.zeros(2))

    def __call__(self, shard: Shard) -> Mixed:
        """Return the corrections of the pass, and (shard, mistakes, errors, loss, steps)."""
        problem, examples = self.problem(shard)
        values = self.weights.values
        if not problem.rows.n:
            return Mixed(self._nothing(values[0].shape[1]), np.empty((0, 5)))
        features = self.features(examples)
        before = self.weights.at(features)
        run = self._run(problem.rows, before)
        seed = self.seed + (shard.number << 64)
        mistakes = run.present(problem, visits(self.learner.order, problem.rows, seed, self.number))
        n = run.ledger.steps - (self.clock[0] if self.lone else 0)
        count = np.array([[shard.number, mistakes, *run.tally, n]])
        if self.lone:
            after = [joined(run.last.weights())]
            if run.average:
                after.append(joined(run.late.weights()) if self.averaging else np.zeros_like(before[0]))
            if run.rule.spread:
                after.append(joined(Weights(*run.last.spreads())))
            return Mixed(Part(self.d + 1, features, after, ()), count)
        worth = float(mistakes if self.mix == "mistakes" else 1)
        changed = self._changes(before, n, worth, run)
        if self.counting:
            changed.append(np.append(occurring(problem.rows.source), True)[:, None].astype(np.float64))
        return Mixed(Part.of(self.d + 1, features, changed, (0.0,) * len(changed)), count)

    def _nothing(self, K: int) -> Part:
        n = 1 + self.averaging + bool(RULES[self.learner.rule].spread) + self.counting
        return Part(self.d + 1, np.empty(0, np.int32), [np.empty((0, K))] * n, (0.0,) * n)

    def _run(self, rows: Rows, before: list[Floats]) -> Run:
        """Return a run that starts from the weights given."""
        run: Run = self.learner.new_run(self.classes, rows.d, self.C)
        run.ledger.limit = 0
        run.last.sparse = rows.sparse
        run.last.load(apart(before[0]))
        run.ledger.steps, run.ledger.average_after = (0, 0 if self.averaging else NEVER)
        if self.lone:
            run.ledger.steps, run.ledger.average_after = self.clock
            run.tally = self.tally.copy()
            if run.average:
                run.late.load(apart(before[1]))
        if run.rule.spread:
            run.last.load_spread([*apart(before[-1])])
        return run

    def _changes(self, before: list[Floats], n: int, worth: float, run: Run) -> list[Floats]:
        """Return what is summed over the shards, computed in one go: a worker of Dask pays for every large array anew."""
        last, late, spread = run.last, run.late, bool(run.rule.spread)
        out = np.empty((1 + self.averaging + spread, *before[0].shape))
        old, average = (before[0], before[-1]), (late.W, late.b) if self.averaging else (NO_WEIGHT, NO_WEIGHT)
        given = (*map(frozen, (*old, last.W, last.b)), last.sparse), (*map(frozen, average), late.sparse)
        changes(*given[0], *given[1], frozen(last.V), frozen(last.vb), n, worth, out)
        return list(out)


def occurring(X: Any) -> NDArray[np.bool_]:
    """Return which columns have a value that is not 0."""
    if sp.issparse(X):
        every = X.data.all()
        return np.ones(X.shape[1], np.bool_) if every else np.bincount(X.indices[X.data != 0], minlength=X.shape[1]) > 0
    found: NDArray[np.bool_] = np.zeros(X.shape[1], np.bool_)
    for first in range(0, X.shape[0], SOME):
        found |= (X[first : first + SOME] != 0).any(axis=0)
        if found.all():
            break
    return found


class Mixed(NamedTuple):
    """What passes over some shards add up to: the corrections, and the counts of each shard in order."""

    part: Part
    counts: Floats

    def __add__(self, other: Mixed) -> Mixed:  # type: ignore[override]
        return Mixed(self.part + other.part, np.concatenate([self.counts, other.counts]))


def joined(weights: Weights) -> Floats:
    """Return weights and biases as rows of features, the bias last."""
    return np.concatenate([weights.coef.T, weights.intercept[None]])


def apart(rows: Floats) -> Weights:
    """Return rows of features, the bias last, as weights and biases."""
    return Weights(rows[:-1].T, rows[-1])


@dataclass
class Judge(Task):
    """Count the examples that weights get right, those of no known class among the wrong ones."""

    weights: Part = None  # type: ignore[assignment]

    def __call__(self, shard: Shard) -> Total:
        """Return how many are right, and how many there are."""
        problem, scores = self.scored(shard)
        right = np.count_nonzero(self.learner.decide(scores, len(self.classes)) == problem.codes)
        return Total(np.array([right, problem.rows.n], np.float64))

    def scored(self, shard: Shard) -> tuple[Problem, Floats]:
        """Return the examples and their scores."""
        problem, examples = self.problem(shard)
        if not problem.rows.n:
            return problem, np.empty((0, self.weights.values[0].shape[1]))
        return problem, problem.rows.scores(*apart(self.weights.at(self.features(examples))[0]))


@dataclass
class Lead(Judge):
    """Find the least lead of the true class: the margin of the weights, times their length."""

    def __call__(self, shard: Shard) -> Least:  # type: ignore[override]
        """Return the least lead over the examples of the shard."""
        problem, scores = self.scored(shard)
        return Least(float(leads(scores, problem.codes).min(initial=np.inf)))


def leads(scores: Floats, codes: Codes) -> Floats:
    """Return by how much the true class of each example leads: y·s for two classes, else over the best rival."""
    if scores.shape[1] == 1:
        signed: Floats = scores[:, 0] * (2.0 * codes - 1.0)
        return signed
    rows, others = np.arange(len(codes)), scores.copy()
    others[rows, codes] = -np.inf
    lead: Floats = scores[rows, codes] - others.max(axis=1)
    return lead


@dataclass
class Scores(Judge):
    """Return the scores of held-out examples, from which probabilities are calibrated."""

    def __call__(self, shard: Shard) -> Several:  # type: ignore[override]
        """Return the scores and the classes of the examples that have one."""
        problem, scores = self.scored(shard)
        known = problem.codes > NOBODY
        return Several([(scores[known], problem.codes[known])])


@dataclass
class Clean(Task):
    """Count what the rule would call mistakes, correcting nothing: for an order that does not visit every example."""

    weights: Part = None  # type: ignore[assignment]
    C: float = 1.0

    def __call__(self, shard: Shard) -> Total:
        """Return the weight of the mistaken examples."""
        problem, examples = self.problem(shard)
        if not problem.rows.n:
            return Total(np.zeros(1))
        run: Run = self.learner.new_run(self.classes, problem.rows.d, self.C)
        run.last.load(apart(self.weights.at(self.features(examples))[0]))
        return Total(np.array([run.training_mistakes(problem, run.last)]))


@dataclass
class Choose(Task):
    """Choose C by what does best on examples held out of a shard."""

    seed: int = 0

    def __call__(self, shard: Shard) -> Several:
        """Return the choice."""
        problem, _ = self.problem(shard)
        self.learner.n_features_in_ = problem.rows.d
        choice: Choice = self.learner.choose_c(self.classes, problem, None, None, self.seed)
        return Several([choice])
