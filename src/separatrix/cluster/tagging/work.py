"""What a worker does with a shard of sequences: learn its features, make a pass, count right tags, find the margin."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from separatrix.cluster.feature_rows import FeatureRows
from separatrix.cluster.results import ItemList, Minimum, Sum
from separatrix.cluster.shards import IN_MEMORY, Shard, mapped, new_training_id, renumbered, store
from separatrix.data.errors import DataError, NoExampleError, counted
from separatrix.data.streams import digest_of
from separatrix.engine.rows import Array, Floats, Ints, frozen
from separatrix.sequences import inputs
from separatrix.sequences.bounds import margins_of
from separatrix.sequences.conll import ConllFile, read_conll
from separatrix.sequences.encoded import Encoded, PathWeights
from separatrix.sequences.perceptron import SequencePerceptron
from separatrix.sequences.run import TaggedSequences, best_paths


class ShardOfSequences(NamedTuple):
    """The sequences of a shard over the features that occur in it, and the numbers of these among all features."""

    tagged: TaggedSequences
    features: Ints


class TaggedShard(NamedTuple):
    """What the driver learns about a shard: how many sequences it has, its checksum, and the form of its tokens."""

    number: int
    n: int
    digest: bytes
    form: str


class Learned(NamedTuple):
    """What shards have: their features, the tokens of each tag, and what is known about each shard."""

    features: inputs.Features | None
    tags: Counter[Any]
    shards: list[TaggedShard]

    def __add__(self, other: Learned) -> Learned:  # type: ignore[override]
        shards = self.shards + other.shards
        if (
            self.features is not None
            and other.features is not None
            and len({shard.form for shard in shards if shard.n}) == 1
        ):
            self.features.join(other.features)  # type: ignore[arg-type]
        return Learned(self.features or other.features, self.tags + other.tags, shards)


@dataclass
class SequenceReader:
    """How workers read their sequences, and where they store them."""

    tagger: SequencePerceptron
    training_id: str = field(default_factory=new_training_id)
    features: inputs.Features | None = None
    classes: Array = field(default_factory=lambda: np.empty(0, np.str_))

    def read(self, shard: Shard) -> tuple[Any, Any]:
        """Return the sequences of a shard and their tags."""
        if isinstance(shard.chunk, str):
            try:
                X, y = read_conll(shard.chunk)
                return X, y
            except NoExampleError:
                return [], []
        if not isinstance(shard.chunk, tuple):
            raise DataError(f"a shard of sequences is a CoNLL file or a pair (X, y), not a {type(shard.chunk).__name__}")
        return shard.chunk

    def examples(self, shard: Shard) -> ShardOfSequences:
        """Return the sequences of a shard; the first call on a machine reads and stores them."""
        if isinstance(shard.chunk, tuple):
            in_memory = IN_MEMORY.setdefault(self.training_id, {})
            if shard.number not in in_memory:
                in_memory[shard.number] = _over_features(self._arrays(shard))
            kept: ShardOfSequences = in_memory[shard.number]
            return kept
        folder = shard.folder / self.training_id / str(shard.number)
        if not folder.is_dir():
            store(folder, None, self._arrays(shard))
        return _over_features({name: mapped(folder, name) for name in (*Encoded._fields, "codes", "features")})

    def _arrays(self, shard: Shard) -> dict[str, Array]:
        X, y = self.read(shard)
        assert self.features is not None
        encoded = self.features.encode(X, False)
        features, indices = renumbered(encoded.indices, self.features.n)
        codes = inputs.read_tags(y, encoded).known_among(self.classes)
        return encoded._asdict() | {"indices": indices, "codes": codes, "features": features}


def _over_features(arrays: dict[str, Array]) -> ShardOfSequences:
    encoded = Encoded.of(*(arrays[name] for name in Encoded._fields))
    return ShardOfSequences(TaggedSequences(encoded, frozen(arrays["codes"])), arrays["features"])


@dataclass
class LearnFeatures:
    """Find the features and the tags of a shard."""

    reader: SequenceReader

    def __call__(self, shard: Shard) -> Learned:
        """Return what the shard has."""
        X, y = self.reader.read(shard)
        tagger, kind = self.reader.tagger, inputs.kind_of(X)
        digest = digest_of(shard.chunk) if isinstance(shard.chunk, str) else b""
        if kind is None:
            return Learned(None, Counter(), [TaggedShard(shard.number, 0, digest, "")])
        features = inputs.new_features(kind, tagger.templates, tagger.n_features)
        encoded = features.encode(X, True)
        tags = inputs.read_tags(y, encoded)
        where = (ConllFile(shard.chunk).place,) if tagger.scheme and isinstance(shard.chunk, str) else ()
        tagger.check_scheme(tags, encoded.starts, tags.names, *where)
        counts = Counter(dict(zip(tags.names.tolist(), np.bincount(tags.codes).tolist(), strict=True)))
        width = getattr(features, "n_columns", features.n if kind == "numbers" else 0)
        form = f"{inputs.KINDS[kind]}, {counted(width, 'column')}" if width else inputs.KINDS[kind]
        return Learned(features, counts, [TaggedShard(shard.number, len(encoded), digest, form)])


class MixedChanges(NamedTuple):
    """The sums over some shards that mixing needs, of features and of transitions, and a row of counts for each shard."""

    changes: FeatureRows
    links: Floats
    counts: Floats

    def __add__(self, other: MixedChanges) -> MixedChanges:  # type: ignore[override]
        counts = np.concatenate([self.counts, other.counts])
        return MixedChanges(self.changes + other.changes, self.links + other.links, counts)


@dataclass
class TaggingWork:
    """The base of all work with given weights: those of features, and of transitions."""

    reader: SequenceReader
    weights: FeatureRows
    links: list[Floats]

    def at(self, features: Ints) -> PathWeights:
        """Return the weights of some features, and of transitions."""
        size = len(self.reader.classes) + 1
        return PathWeights.of(self.weights.at(features)[0], self.links[0].reshape(size, size))


@dataclass
class MakeTaggerPass(TaggingWork):
    """One pass over a shard from the given weights; return how far each has moved, and what the average needs.

    A lone shard continues the driver's count of steps and returns its weights as they are: nothing is mixed.
    """

    number: int
    seed: int
    mix: str
    counting: bool
    steps: int
    lone: bool

    def __call__(self, shard: Shard) -> MixedChanges:
        """Return the changes that the pass made, and (shard, mistakes, steps, the largest ‖φ(y) − φ(ẑ)‖²)."""
        tagged, features = self.reader.examples(shard)
        tagger, d = self.reader.tagger, len(features)
        run = tagger.new_run(self.reader.classes, d)
        before = self.weights.at(features)
        if self.lone:
            run.set_parts(before[0], self.links[0], before[1], self.links[1])
            run.ledger.steps = self.steps
        else:
            run.set_parts(before[0], self.links[0], np.zeros_like(before[0]), np.zeros_like(self.links[0]))
        n = len(tagged.encoded)
        mistakes = run.present(tagged, tagger.order_of(n, self.seed, self.number, 0 if self.lone else shard.number))
        ledger = run.ledger
        square = ledger.squares(tagged.encoded, d).max(initial=0.0) if tagger.rule == "perceptron" else 0.0
        counts = np.array([[shard.number, mistakes, n, square]])
        W, T, U, UT = run.parts()
        size = self.weights.size
        if self.lone:
            return MixedChanges(FeatureRows(size, features, [W, U], (0.0, 0.0)), np.array([T, UT]), counts)
        worth = float(mistakes if self.mix == "mistakes" else 1)
        moved, moved_links = W - before[0], T - self.links[0]
        changes = [worth * moved, n * moved - U, *([np.ones((d, 1))] if self.counting else [])]
        links = np.array([worth * moved_links, n * moved_links - UT])
        return MixedChanges(FeatureRows.of(size, features, changes, (0.0,) * len(changes)), links, counts)


@dataclass
class CountRightTags(TaggingWork):
    """Count the tokens whose tag is predicted; a tag that is no class counts as wrong."""

    def __call__(self, shard: Shard) -> Sum:
        """Return how many are right, and how many there are."""
        tagged, features = self.reader.examples(shard)
        codes = best_paths(tagged.encoded, self.at(features), _forbidden(self.reader))
        return Sum(np.array([np.count_nonzero(codes == tagged.codes), len(codes)], np.float64))


@dataclass
class FindSmallestMargin(TaggingWork):
    """Find the smallest margin of the weights, divided by their length, less what rounding could have added."""

    length: float

    def __call__(self, shard: Shard) -> Minimum:
        """Return the smallest margin of the shard's sequences."""
        (encoded, codes, _), features = self.reader.examples(shard)
        margins = margins_of(encoded, codes, self.at(features), _forbidden(self.reader), self.length)
        return Minimum(float(margins.min(initial=np.inf)))


@dataclass
class CollectPaths:
    """Tag the sequences of a shard with a fitted tagger."""

    reader: SequenceReader
    fitted: SequencePerceptron

    def __call__(self, shard: Shard) -> ItemList:
        """Return the true and the predicted tags of each sequence."""
        X, y = self.reader.read(shard)
        return ItemList(list(zip(map(list, y), self.fitted.predict(X), strict=True)))


def _forbidden(reader: SequenceReader) -> Array:
    return reader.tagger.new_run(reader.classes, 0).forbidden
