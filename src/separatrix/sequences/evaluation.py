"""`evaluate_sequences`: entities that were found exactly, counted as conlleval counts them, and the share of right tags."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from separatrix.data.errors import counted
from separatrix.engine.rows import Array, Ints
from separatrix.sequences.inputs import check_lengths
from separatrix.sequences.schemes import entities, marks_entities, parts_of
from separatrix.sequences.tokens import TagSequences


class Figures(NamedTuple):
    """How many entities there are, were found, and were found rightly: begin, end and type; and what follows from that."""

    true: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """The share of found entities that are right; 0 where none was found."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of entities that were found; 0 where there is none."""
        return self.right / self.true if self.true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.right / (self.true + self.predicted) if self.true + self.predicted else 0.0


class Confusion(NamedTuple):
    """How often a tag was taken for another."""

    true: Any
    predicted: Any
    tokens: int


@dataclass(frozen=True)
class SequenceEvaluation:
    """Figures of predicted tags beside the true ones; `print` shows them.

    Attributes
    ----------
    sequences, tokens : how many there are
    accuracy : the share of right tags
    exact : the share of sequences without a wrong tag
    entities : the figures of all entities; None where tags do not mark entities (B-X, I-X, O)
    by_type : the figures of each type of entity or, where tags do not mark entities, of each tag, by its tokens
    confusions : the wrong tags, the most frequent ones first

    Examples
    --------
    >>> from separatrix import evaluate_sequences
    >>> evaluate_sequences([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "B-NP"]]).by_type["NP"]
    Figures(true=1, predicted=2, right=1)
    """

    sequences: int
    tokens: int
    accuracy: float
    exact: float
    entities: Figures | None
    by_type: dict[str, Figures]
    confusions: list[Confusion]

    @property
    def f1(self) -> float | None:
        """The F1 of all entities; None where tags do not mark entities."""
        return None if self.entities is None else self.entities.f1

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values."""

        def figures(of: Figures) -> dict[str, Any]:
            return of._asdict() | {"precision": of.precision, "recall": of.recall, "f1": of.f1}

        document = asdict(self) | {"confusions": [each._asdict() for each in self.confusions]}
        document["entities"] = None if self.entities is None else figures(self.entities)
        document["by_type"] = {name: figures(of) for name, of in self.by_type.items()}
        return document

    def to_json(self) -> str:
        """Return all figures as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, default=str)

    def __str__(self) -> str:
        lines = [
            f"{counted(self.sequences, 'sequence')}, {counted(self.tokens, 'token')}: {self.accuracy:.4f} of the tags are "
            f"right, and all tags of {self.exact:.4f} of the sequences"
        ]
        what = "tag"
        rows = list(self.by_type.items())
        if self.entities is not None:
            what = "entity"
            rows = [("all", self.entities), *rows]
        width = max([len(what), *(len(name) for name, _ in rows)])
        lines += ["", f"{what:<{width}}  precision  recall      F1     true    found    right"]
        for name, of in rows:
            numbers = (
                f"{of.precision:>9.4f}  {of.recall:.4f}  {of.f1:.4f}  {of.true:>7,}  {of.predicted:>7,}  {of.right:>7,}"
            )
            lines.append(f"{name:<{width}}  {numbers}")
        if self.confusions:
            lines += ["", "the most frequent wrong tags:"]
            lines += [f"  {each.tokens:>6,}  {each.true} taken for {each.predicted}" for each in self.confusions]
        return "\n".join(lines)


def evaluate_sequences(y_true: Any, y_pred: Any, *, confusions: int = 10) -> SequenceEvaluation:
    """Compare predicted tags with the true ones: entities by precision, recall and F1, tags by their share.

    An entity is right where its begin, its end and its type are. Tags are read as BIO, IOB1, IOBES or any mixture, as
    conlleval does it; other tags, such as parts of speech, mark no entities and get figures each.

    Parameters
    ----------
    y_true, y_pred : the tags, a list for each sequence
    confusions : how many of the most frequent confusions of tags to list

    Examples
    --------
    >>> from separatrix import evaluate_sequences
    >>> figures = evaluate_sequences([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    >>> figures.accuracy, figures.f1
    (0.6666666666666667, 0.0)
    """
    for who, y in (("y_true", y_true), ("y_pred", y_pred)):
        if not hasattr(y, "__len__"):
            raise TypeError(f"{who} is a {type(y).__name__}: it must be a list with a list of tags for each sequence")
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences and y_pred has {len(y_pred)}")
    starts, names, true, predicted = _codes(y_true, y_pred)
    wrong = np.flatnonzero(true != predicted)
    lengths = np.diff(starts)
    spoiled = np.unique(np.searchsorted(starts, wrong, side="right") - 1)
    counts = Counter(zip(true[wrong].tolist(), predicted[wrong].tolist(), strict=True))
    listed = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:confusions]
    n, n_sequences = len(true), len(lengths)
    overall: Figures | None = None
    if marks_entities([str(name) for name in names]):
        overall, by_type = _entity_figures(names, true, predicted, starts)
    else:
        by_type = _tag_figures(names, true, predicted)
    return SequenceEvaluation(
        n_sequences,
        n,
        1.0 - len(wrong) / n if n else 1.0,
        1.0 - len(spoiled) / n_sequences if n_sequences else 1.0,
        overall,
        by_type,
        [Confusion(names[a], names[b], count) for (a, b), count in listed],
    )


def _codes(y_true: Any, y_pred: Any) -> tuple[Ints, list[Any], Array, Array]:
    """Return where sequences start, all tags sorted, and both codes of each token."""
    if isinstance(y_true, TagSequences):
        lengths = np.diff(y_true.starts).tolist()
    else:
        lengths = [len(tags) if hasattr(tags, "__len__") else 0 for tags in y_true]
        check_lengths(y_true, lengths, "y_true")
    check_lengths(y_pred, lengths, "y_pred")
    flat = [list(chain.from_iterable(y)) for y in (y_true, y_pred)]
    distinct = {*flat[0], *flat[1]}
    kinds = sorted({"str" if isinstance(name, str) else type(name).__name__ for name in distinct})
    if len(kinds) > 1 and ("str" in kinds or "NoneType" in kinds):
        raise ValueError(f"the tags must be strings or whole numbers, all of one kind; they are {', '.join(kinds)}")
    names = sorted(distinct)
    place_of = {name: place for place, name in enumerate(names)}
    codes = [np.fromiter(map(place_of.__getitem__, tags), np.int64, len(tags)) for tags in flat]
    return np.append(0, np.cumsum(lengths, dtype=np.int64)), names, codes[0], codes[1]


def _entity_figures(names: list[Any], true: Array, predicted: Array, starts: Ints) -> tuple[Figures, dict[str, Figures]]:
    parts = [parts_of(name) for name in names]
    kinds = sorted({kind for letter, kind in parts if letter != "O"})
    letters = np.array([letter for letter, _ in parts])
    kind_of = np.array([kinds.index(kind) if letter != "O" else -1 for letter, kind in parts])
    spans = []
    for codes in (true, predicted):
        begins, ends = entities(letters[codes], kind_of[codes], starts)
        spans.append(np.stack([begins, ends, kind_of[codes[begins]]]) if begins.size else np.empty((3, 0), np.int64))
    shared = {*zip(*spans[0].tolist(), strict=True)} & {*zip(*spans[1].tolist(), strict=True)}
    right = Counter(kind for _, _, kind in shared)
    each = [np.bincount(span[2], minlength=len(kinds)).tolist() for span in spans]
    by_type = {kind: Figures(each[0][k], each[1][k], right[k]) for k, kind in enumerate(kinds)}
    return Figures(sum(each[0]), sum(each[1]), len(shared)), by_type


def _tag_figures(names: list[Any], true: Array, predicted: Array) -> dict[str, Figures]:
    counts = [np.bincount(codes, minlength=len(names)).tolist() for codes in (true, predicted, true[true == predicted])]
    return {str(name): Figures(*(count[k] for count in counts)) for k, name in enumerate(names)}
