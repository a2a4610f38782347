"""Taggers on shards: iterative parameter mixing (McDonald, Hall and Mann 2010) of a `SequencePerceptron`.

A shard is a CoNLL file or a pair (X, y). First every shard tells which features and tags it has; the driver numbers the
features of all shards in the order in which one file would have had them. Then each pass starts on every shard from the same
weights, as `mixing.py` describes; a shard moves only the weights of its own features. Transitions are mixed as a feature
that occurs in every shard. One shard is trained bit for bit as by `fit`. The mistakes stay with the workers: there is no
ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.cluster.dealing import held_out_shards
from separatrix.cluster.engines import Engine
from separatrix.cluster.feature_rows import FeatureRows
from separatrix.cluster.summaries import fingerprint
from separatrix.cluster.tagging.work import (
    CollectPaths,
    CountRightTags,
    FindSmallestMargin,
    Learned,
    LearnFeatures,
    MakeTaggerPass,
    MixedChanges,
    SequenceReader,
)
from separatrix.data.errors import DataError
from separatrix.engine.rows import Array, Floats
from separatrix.modelfile.model import Model
from separatrix.sequences.bounds import length_of
from separatrix.sequences.evaluation import evaluate_sequences
from separatrix.sequences.perceptron import SequencePerceptron
from separatrix.sequences.run import SequencePasses, SequenceRun

Working = Callable[[str, int, int], None]


class TaggerMixture(SequencePasses):
    """The passes of a tagger over shards, as `engine/loop.py` asks for them."""

    def __init__(
        self, engine: Engine, reader: SequenceReader, filled: list[int], held_out: list[int], mix: str, working: Working
    ) -> None:
        assert reader.features is not None
        self.engine, self.reader, self.filled, self.held_out = engine, reader, filled, held_out
        self.mix, self.working, self.seed = mix, working, reader.tagger.seed()
        self.run: SequenceRun = reader.tagger.new_run(reader.classes, reader.features.n)
        self.lone = len(filled) == 1
        self.holders: Floats | None = None
        self.mistakes: list[list[int]] = []
        self.radius_squared = 0.0

    def make_pass(self, number: int) -> tuple[int, float]:
        """Make a pass over every shard from the same weights, and mix the results."""
        ledger, S = self.run.ledger, len(self.filled)
        ledger.pass_starts.append((ledger.steps, ledger.total))
        W, T, U, UT = self.run.parts()
        counting = self.mix == "features" and not self.lone and self.holders is None
        work = MakeTaggerPass(
            self.reader,
            _sent(W, U) if self.lone else _sent(W),
            [T, UT],
            *(number, self.seed, self.mix, counting, ledger.steps, self.lone),
        )
        doing = f"pass {number + 1}"
        result: MixedChanges = self.engine.reduce(work, self.filled, lambda done: self.working(doing, done, S))
        _, mistakes, steps, squares = result.counts.T
        ledger.steps += int(steps.sum())
        ledger.absent += int(mistakes.sum())
        self.mistakes.append(mistakes.astype(int).tolist())
        self.radius_squared = max(self.radius_squared, float(squares.max()))
        changes, rows = result.changes, result.changes.index()
        if self.lone:
            (W[rows], U[rows]), (T[:], UT[:]) = changes.values, result.links
            return self._counted(mistakes, steps)
        if counting:
            self.holders = np.ones((len(W), 1))
            self.holders[rows] = np.maximum(changes.values.pop(), 1.0)
        shared = float(mistakes.sum() if self.mix == "mistakes" else S)
        if shared:
            divisor: Any = shared if self.holders is None else self.holders[rows]
            moved, moved_links = changes.values[0] / divisor, result.links[0] / shared
            W[rows] += moved
            T += moved_links
            U[rows] += ledger.steps * moved - changes.values[1]
            UT += ledger.steps * moved_links - result.links[1]
        return self._counted(mistakes, steps)

    def _counted(self, mistakes: Floats, steps: Floats) -> tuple[int, float]:
        return int(mistakes.sum()), float(mistakes.sum() / max(1.0, steps.sum()))

    def held_out_accuracy(self) -> float | None:
        """Return the share of right tags of the held-out shards, if there are any."""
        if not self.held_out:
            return None
        W, T = self.run.weights(self.reader.tagger.averaged).dense()
        work = CountRightTags(self.reader, _sent(W), [T.reshape(-1)])
        right, n = self.engine.reduce(work, self.held_out).values
        return float(right / max(1.0, n))

    def smallest_margin(self) -> float:
        """Return the margin of the last weights over all shards."""
        weights = self.run.weights(False)
        W, T = weights.dense()
        work = FindSmallestMargin(self.reader, _sent(W), [T.reshape(-1)], length_of(weights))
        margin: float = self.engine.reduce(work, self.filled).value
        return margin

    def snapshot(self, passes: int) -> Any:
        """Return a copy of the state."""
        return self.run.ledger.absent, self.run.snapshot(passes)

    def restore(self, snapshot: Any) -> None:
        """Go back to an earlier pass."""
        absent, state = snapshot
        self.run.restore(state)
        self.run.ledger.absent, self.mistakes = absent, self.mistakes[: state.passes]

    def is_finite(self) -> bool:
        """Tell whether no weight has outgrown float64."""
        return self.run.is_finite()


def _sent(*arrays: Floats) -> FeatureRows:
    return FeatureRows.of(len(arrays[0]), None, list(arrays), (0.0,) * len(arrays))


def check_tagger(tagger: SequencePerceptron, **options: Any) -> None:
    """Raise for what cannot be combined with sequences on shards."""
    tagger.check_parameters()
    if tagger.record:
        raise ValueError("record=True stores the tokens of mistakes, but the driver holds no data: leave it out")
    for name, value in options.items():
        if value:
            raise ValueError(f"{name}= is not for sequences on shards")


def _checked(learned: Learned, names: list[str]) -> Array:
    """Return the tags of all shards, sorted; raise unless the shards have tokens and tags of one kind."""
    filled = [shard for shard in learned.shards if shard.n]
    if not filled:
        raise DataError(f"{names[learned.shards[0].number]}: there is no token in it, nor in any other shard")
    for shard in filled:
        if shard.form != filled[0].form:
            first = f"{names[filled[0].number]} has {filled[0].form}"
            raise DataError(f"{names[shard.number]} has tokens of {shard.form}, and {first}: they must agree")
    if len({isinstance(tag, str) for tag in learned.tags}) > 1:
        raise DataError("the tags of some shards are strings, and those of others numbers")
    return np.array(sorted(learned.tags))


def fit_tagger(
    tagger: SequencePerceptron,
    engine: Engine,
    data: tuple[Any, Any],
    held_out: Any,
    holdout: float,
    mix: str,
    working: Working | None,
) -> Model:
    """Train a tagger on shards; return a model with the fitted tagger."""
    report: Working = working or (lambda doing, done, total: None)
    train, held_out_numbers = engine.add_shards(*data), []
    if held_out is not None:
        pairs = isinstance(held_out, tuple)
        held_out_numbers = engine.add_shards([held_out] if pairs else held_out)
    elif fraction := holdout or tagger.early_stopping * tagger.validation_fraction:
        train, held_out_numbers = held_out_shards(train, fraction, tagger.seed())
    if not train:
        raise DataError("there are no shards to learn from")
    parameters = tagger.get_params() | {"verbose": 0, "n_jobs": None}
    reader = SequenceReader(SequencePerceptron(**parameters))
    try:
        doing = "finding the features"
        learned: Learned = engine.reduce(LearnFeatures(reader), train, lambda done: report(doing, done, len(train)))
        classes = _checked(learned, engine.names)
        assert learned.features is not None
        reader = replace(reader, features=learned.features, classes=classes)
        filled = [shard.number for shard in learned.shards if shard.n]
        mixture = TaggerMixture(engine, reader, filled, held_out_numbers, mix, report)
        tagger.make_passes(mixture, learned.features)
        mixture.run.n_sequences = sum(shard.n for shard in learned.shards)
        tagger.shard_mistakes_, tagger.mix_ = np.array(mixture.mistakes, np.int64), mix
        converged = tagger.converged_ and tagger.rule == "perceptron"
        facts: dict[str, Any] = {
            "format": "conll",
            "sequences": mixture.run.n_sequences,
            "tokens": learned.tags.total(),
            "features": tagger.n_features_in_,
            "classes": {str(tag): learned.tags[tag] for tag in classes.tolist()},
            "data": fingerprint([shard.digest for shard in learned.shards]),
            "shards": len(train),
            "mix": mix,
            "margin": mixture.smallest_margin() if converged else None,
            "radius": float(np.sqrt(mixture.radius_squared)),
        }
        model = Model(tagger, None, facts)
        if held_out_numbers:
            pairs_of_paths = engine.reduce(CollectPaths(reader, tagger), held_out_numbers).items
            true, predicted = zip(*pairs_of_paths, strict=True) if pairs_of_paths else ((), ())
            facts["held_out"] = len(true)
            model.evaluation = evaluate_sequences(list(true), list(predicted))
        return model
    finally:
        engine.forget(reader.training_id)
