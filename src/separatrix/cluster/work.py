"""The work that is done on shards: detect the format, learn columns, summarise, make a pass, evaluate weights.

Each class is a pure function of a shard and of the fields that it carries. The results of the shards are added up in the
order of the shard numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.cluster.feature_rows import FeatureRows
from separatrix.cluster.results import FirstPass, FirstReader, ItemList, Minimum, PassResult, ShardsRead, Sum
from separatrix.cluster.shard_columns import LearnedSchema, learn_schema, schema_of_first_rows
from separatrix.cluster.shards import Deal, Shard, ShardExamples, ShardReader, naming_text_columns, problem_of
from separatrix.cluster.summaries import ShardSummary, classes_of
from separatrix.data.batches import TableBatch
from separatrix.data.errors import NoExampleError
from separatrix.data.labels import without_label, words_kept
from separatrix.engine.labels import Codes
from separatrix.engine.ledger import NEVER
from separatrix.engine.orders import Visits, order_for, visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, Rows, frozen
from separatrix.engine.rules import RULES
from separatrix.engine.run import Run
from separatrix.engine.weights import Weights, n_outputs
from separatrix.files.ingest import roles_for
from separatrix.kernels.codes import NOBODY
from separatrix.kernels.learning.shards import changes, mark_occurring
from separatrix.learners.auto_c import Choice
from separatrix.learners.online import OnlineLearner

ROWS_AT_ONCE = 4096
VISITS_AT_ONCE = 4096
MANY = 16
"""A class with so many examples in one shard has some in every shard, if the shards are samples of the whole."""

# Before training.


@dataclass
class DetectFormat:
    """Detect how the shards are to be read, and the roles of the columns of a table."""

    reader: ShardReader
    learn: bool = True

    def __call__(self, shard: Shard) -> FirstReader:
        """Return a reader for all shards, detected from this one."""
        reader = self.reader
        try:
            source = reader.source(shard)
            reader.format, reader.label = source.format, source.label if source.kind == "columns" else None
            reader.file_reader = None if source.format == "built-in" else getattr(source, "reader", None)
            if source.kind == "rows":
                return FirstReader(replace(reader, label=None, features=None))
            if not self.learn:
                return FirstReader(reader)
            names = [name for name in source.schema.names if name != source.label]  # type: ignore[union-attr]
            features = reader.features
            assert features is not None
            features.roles = roles_for(source.name, source.schema.names, names, features.roles or {})  # type: ignore[union-attr]
            with naming_text_columns(source):
                schema = schema_of_first_rows(features, (batch.without(source.label) for batch in source))
        except NoExampleError:
            return FirstReader(None)
        assert schema is not None
        features.adopt(schema)
        return FirstReader(reader)


@dataclass
class FindStrayQuotes:
    """Find files in which quotes are plain characters, as apostrophes are: then they are so in all files."""

    reader: ShardReader

    def __call__(self, shard: Shard) -> Sum:
        """Return 1 for such a file, and else 0."""
        return Sum(np.array([float(self.reader.has_stray_quotes(shard))]))


@dataclass
class LearnColumns:
    """Learn the categories, scales and words of the columns of a shard; with a deal, from rows dealt to some shards only."""

    reader: ShardReader
    deal: Deal | None = None
    train: list[int] = field(default_factory=list)

    def __call__(self, shard: Shard) -> LearnedSchema:
        """Return what was learned from the shard."""
        source, features = self.reader.source(shard), self.reader.features
        assert features is not None
        try:
            with naming_text_columns(source):
                return learn_schema(features.schema_so_far, shard.number, self._batches(shard, source))
        except NoExampleError:
            return LearnedSchema(None)

    def _batches(self, shard: Shard, source: Any) -> Iterator[TableBatch]:
        """Yield the rows that have a label and, with a deal, that are not held out."""
        recipients = None if self.deal is None else self.deal.rows(shard.number)
        words = words_kept(self.reader.missing_label)
        for batch in source:
            missing = without_label(batch.table[source.label], words)
            if missing is not None:
                batch = batch.where(~missing)
            if recipients is not None:
                batch = batch.where(np.isin(recipients.next(len(batch)), self.train))
            yield batch.without(source.label)


# Training and evaluating.


@dataclass
class ExampleWork:
    """The base of all work on examples: how to read them, the learner, the classes and the weight of each class."""

    reader: ShardReader
    learner: OnlineLearner
    classes: Array
    d: int
    factors: Floats = field(default_factory=lambda: NO_WEIGHT)

    def problem(self, shard: Shard) -> tuple[Problem, ShardExamples]:
        """Return the examples of a shard as a problem over its own features."""
        examples = self.reader.examples(shard)
        if examples.features is None and examples.rows.sparse and examples.rows.d < self.d:  # others have further features
            X = examples.rows.source
            rows = Rows(sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], self.d)))
            examples = examples._replace(rows=rows)
        return problem_of(examples, self.classes, self.factors), examples

    def features(self, examples: ShardExamples) -> Ints | None:
        """Return the features of the shard's weights, the bias last; None: all."""
        return None if examples.features is None else np.append(examples.features, self.d)


@dataclass
class MakePass(ExampleWork):
    """One pass over a shard from the given weights w; return how far each weight has moved.

    With several shards, the average is summed by counting the steps of this shard only. A lone shard continues the driver's
    count of steps and returns its weights as they are: nothing is mixed.
    """

    weights: FeatureRows = None  # type: ignore[assignment]
    number: int = 0
    seed: int = 0
    C: float = 1.0
    mix: str = "features"
    counting: str = ""
    """The type in which to return also which features occur; the sum is the number of shards in which each occurs."""
    averaging: bool = False
    lone: bool = False
    clock: tuple[int, int] = (0, NEVER)
    """The steps made so far, and the step after which averaging begins."""
    tally: Floats = field(default_factory=lambda: np.zeros(2))
    heaviest: float = 1.0
    """The largest weight of an example so far."""

    def __call__(self, shard: Shard) -> PassResult:
        """Return the changes that the pass made, and (shard, mistakes, errors, loss, steps, heaviest weight)."""
        problem, examples = self.problem(shard)
        if not problem.rows.n:
            return PassResult(self._no_changes(self.weights.values[0].shape[1]), np.empty((0, 6)))
        features = self.features(examples)
        before = self.weights.at(features)
        run = self._run(problem.rows, before)
        seed = self.seed + (shard.number << 64)
        order = order_for(self.learner.order, problem.rows, problem.codes)
        mistakes = run.present(problem, few_at_once(visits(order, problem.rows, seed, self.number)))
        n = run.ledger.steps - (self.clock[0] if self.lone else 0)
        counts = np.array([[shard.number, mistakes, *run.tally, n, max(run.heaviest, default=1.0)]])
        if self.lone:
            after = [weights_to_rows(run.last.weights())]
            if run.average:
                after.append(weights_to_rows(run.late.weights()) if self.averaging else np.zeros_like(before[0]))
            if run.rule.spread:
                after.append(weights_to_rows(Weights(*run.last.spreads())))
            return PassResult(FeatureRows(self.d + 1, features, after, ()), counts)
        weight = float(mistakes if self.mix == "mistakes" else 1)
        changed = self._changes(before, n, weight, run)
        if self.counting:
            changed.append(occurring(problem.rows.source, self.counting))
        return PassResult(FeatureRows.of(self.d + 1, features, changed, (0.0,) * len(changed)), counts)

    def first(self, shard: Shard, summary: ShardSummary) -> FirstPass:
        """Make the first pass over a shard, of which nothing is known but its summary, from zero weights.

        The classes are those of the shard. They are those of all shards if each has many examples; else no pass is made.
        """
        labels = summary.labels
        if not summary.n or len(labels) < 2 or summary.counts.min() < MANY:
            return FirstPass(labels, None)
        try:
            classes = classes_of([summary])
            d = summary.d if self.reader.features is None else self.reader.features.n_features_out_
            defaults = (0.0, 1.0)[: 1 + bool(RULES[self.learner.rule].spread)]
            no_rows = [np.empty((0, n_outputs(len(classes)))) for _ in defaults]
            weights = FeatureRows(d + 1, np.empty(0, np.int32), no_rows, defaults)
            return FirstPass(classes.tolist(), replace(self, classes=classes, d=d, weights=weights)(shard))
        except ValueError:  # it is raised again, if it concerns anybody, when all shards are known
            return FirstPass(labels, None)

    def _no_changes(self, K: int) -> FeatureRows:
        n = 1 + self.averaging + bool(RULES[self.learner.rule].spread)
        values: list[Array] = [np.empty((0, K))] * n
        if self.counting:
            values.append(np.empty((0, 1), self.counting))
        return FeatureRows(self.d + 1, np.empty(0, np.int32), values, (0.0,) * len(values))

    def _run(self, rows: Rows, before: list[Floats]) -> Run:
        """Return a run that starts from the given weights."""
        run: Run = self.learner.new_run(self.classes, rows.d, self.C)
        run.ledger.limit = 0
        run.heaviest[:] = self.heaviest
        run.last.sparse = rows.sparse
        run.last.load(rows_to_weights(before[0]))
        run.ledger.steps, run.ledger.average_after = (0, 0 if self.averaging else NEVER)
        if self.lone:
            run.ledger.steps, run.ledger.average_after = self.clock
            run.tally = self.tally.copy()
            if run.average:
                run.late.load(rows_to_weights(before[1]))
        if run.rule.spread:
            run.last.load_spread([*rows_to_weights(before[-1])])
        return run

    def _changes(self, before: list[Floats], n: int, weight: float, run: Run) -> list[Floats]:
        """Return what is summed over the shards, in one allocation: on Dask workers every large array is expensive."""
        last, late, spread = run.last, run.late, bool(run.rule.spread)
        out = np.empty((1 + self.averaging + spread, *before[0].shape))
        old, average = (before[0], before[-1]), (late.W, late.b) if self.averaging else (NO_WEIGHT, NO_WEIGHT)
        weights = *map(frozen, (*old, last.W, last.b)), last.sparse
        changes(*weights, *map(frozen, average), late.sparse, frozen(last.V), frozen(last.vb), n, weight, out)
        return list(out)


def few_at_once(blocks: Iterable[Visits]) -> Iterator[Visits]:
    """Yield the same visits in smaller blocks: the mistakes of each, which nobody keeps here, share one small array."""
    for block in blocks:
        for begin in range(block.begin, block.end, VISITS_AT_ONCE):
            yield block._replace(begin=begin, end=min(begin + VISITS_AT_ONCE, block.end))


def occurring(X: Any, dtype: str) -> Array:
    """Return 1 for each column that has a value other than 0, and for the bias, as a column."""
    occurs = np.zeros(X.shape[1] + 1, np.uint8)
    occurs[-1] = 1
    if sp.issparse(X):
        mark_occurring(frozen(X.data), frozen(X.indices), occurs)
        return occurs[:, None].astype(dtype, copy=False)
    for first in range(0, X.shape[0], ROWS_AT_ONCE):
        occurs[:-1] |= (X[first : first + ROWS_AT_ONCE] != 0).any(axis=0)
        if occurs.all():
            break
    return occurs[:, None].astype(dtype, copy=False)


@dataclass
class SummarizeShard:
    """Read a shard, store it on the worker's disk, and return its summary; make the first pass over some shards at once."""

    reader: ShardReader
    first_pass: MakePass | None = None
    train: frozenset[int] = frozenset()

    def __call__(self, shard: Shard) -> ShardsRead:
        """Return the summary of the shard, and the first pass over it."""
        summary = self.reader.examples(shard).summary
        made = None if self.first_pass is None or shard.number not in self.train else self.first_pass.first(shard, summary)
        return ShardsRead({shard.number: summary}, made)


def weights_to_rows(weights: Weights) -> Floats:
    """Return weights and biases as rows of features, the bias last."""
    return np.concatenate([weights.coef.T, weights.intercept[None]])


def rows_to_weights(rows: Floats) -> Weights:
    """Return rows of features, the bias last, as weights and biases."""
    return Weights(rows[:-1].T, rows[-1])


@dataclass
class ScoringWork(ExampleWork):
    """The base of all work that scores examples with given weights."""

    weights: FeatureRows = None  # type: ignore[assignment]

    def scored(self, shard: Shard) -> tuple[Problem, Floats]:
        """Return the examples and their scores."""
        problem, examples = self.problem(shard)
        if not problem.rows.n:
            return problem, np.empty((0, self.weights.values[0].shape[1]))
        return problem, problem.rows.scores(*rows_to_weights(self.weights.at(self.features(examples))[0]))


@dataclass
class CountCorrect(ScoringWork):
    """Count the examples that the weights predict correctly; examples of an unknown class count as wrong."""

    def __call__(self, shard: Shard) -> Sum:
        """Return how many are correct, and how many there are."""
        problem, scores = self.scored(shard)
        correct = np.count_nonzero(self.learner.decide(scores, len(self.classes)) == problem.codes)
        return Sum(np.array([correct, problem.rows.n], np.float64))


@dataclass
class CountByClass(ScoringWork):
    """Count the training examples of each class, and those of them that the weights predict correctly."""

    def __call__(self, shard: Shard) -> Sum:
        """Return how many of each class are correct, and then how many there are."""
        problem, scores = self.scored(shard)
        correct = self.learner.decide(scores, len(self.classes)) == problem.codes
        counts = [np.bincount(codes, minlength=len(self.classes)) for codes in (problem.codes[correct], problem.codes)]
        return Sum(np.concatenate(counts).astype(np.float64))


@dataclass
class FindSmallestLead(ScoringWork):
    """Find the smallest lead of the true class: the margin of the weights times their length."""

    def __call__(self, shard: Shard) -> Minimum:
        """Return the smallest lead over the examples of the shard."""
        problem, scores = self.scored(shard)
        return Minimum(float(leads(scores, problem.codes).min(initial=np.inf)))


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
class CollectScores(ScoringWork):
    """Collect the scores of held-out examples, from which probabilities are calibrated."""

    def __call__(self, shard: Shard) -> ItemList:
        """Return the scores and the classes of the examples of known classes."""
        problem, scores = self.scored(shard)
        known = problem.codes > NOBODY
        return ItemList([(scores[known], problem.codes[known])])


@dataclass
class CountMistakes(ScoringWork):
    """Count the mistakes of the rule without correcting any: for an order that does not visit every example."""

    C: float = 1.0

    def __call__(self, shard: Shard) -> Sum:
        """Return the total weight of the examples that are mistakes."""
        problem, examples = self.problem(shard)
        if not problem.rows.n:
            return Sum(np.zeros(1))
        run: Run = self.learner.new_run(self.classes, problem.rows.d, self.C)
        run.last.load(rows_to_weights(self.weights.at(self.features(examples))[0]))
        return Sum(np.array([run.training_mistakes(problem, run.last)]))


@dataclass
class ChooseC(ExampleWork):
    """Choose C by the accuracy on examples held out of a shard."""

    seed: int = 0

    def __call__(self, shard: Shard) -> ItemList:
        """Return the choice."""
        problem, _ = self.problem(shard)
        self.learner.n_features_in_ = problem.rows.d
        choice: Choice = self.learner.choose_c(self.classes, problem, None, None, self.seed)
        return ItemList([choice])
