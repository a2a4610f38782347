"""The types of the server's replies, as the clients return them: plain dicts with known keys.

A reply may have more keys than are listed here, from a newer server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

Example = str | Mapping[str, Any] | Sequence[float]
"""A text, a mapping of features (or of a table's columns, if the model was trained on a table), or a vector."""
Label = str | int

Score = TypedDict("Score", {"class": Any, "score": float})


class Prediction(TypedDict):
    """What the model predicts; None before anything was learned. The scores are those of at most ten classes."""

    prediction: Any
    margin: float | None
    scores: list[Score]
    commit: int
    ask: NotRequired[bool]
    """With --ask: whether a label is worth asking for, and with which probability that was decided."""
    ask_probability: NotRequired[float]
    citations: NotRequired[dict[str, Any]]
    """The corrections behind the prediction, if they were asked for."""


class Learned(TypedDict):
    """How many examples a request had, how many were predicted wrongly before, and how many corrected the weights."""

    learned: int
    errors: int
    mistakes: int
    examples: int
    """The number of the last example, by which it can be forgotten; it stays what it is when others are."""
    right: NotRequired[bool]
    """Whether the examples with `until_right` were brought to the right side."""
    broke: NotRequired[list[int]]
    """The pinned examples that this request broke."""


class Undone(TypedDict):
    """A mistake that was undone: its correction was subtracted, or all other examples were replayed."""

    undone: int
    how: str


class Forgotten(TypedDict):
    """The examples that were forgotten, the receipt, and the key of its checksums, which only the first answer has."""

    forgotten: list[int]
    receipt: dict[str, Any]
    key: str | None


class Unpinned(TypedDict):
    """An example that was taken out of the regression set."""

    unpinned: int


class Regressions(TypedDict):
    """The numbers of the pinned examples, and those that are predicted wrongly now."""

    pinned: list[int]
    regressions: list[dict[str, Any]]


class Term(TypedDict):
    """A feature of an example, its weight, and their product."""

    name: str
    value: float
    weight: float
    product: float


class Explanation(TypedDict):
    """A prediction, and the terms whose sum is its score."""

    prediction: Any
    score: float
    scores: list[Score]
    terms: list[Term]
    columns: list[dict[str, Any]] | None
    total: float
    of: Any
    against: Any
    commit: int


class Mistake(TypedDict, total=False):
    """A mistake of the ledger, with the example in the form in which it was sent."""

    number: int
    time: float
    example: int
    raised: Any
    lowered: Any
    correction: float
    undone: bool
    features: dict[str, float]
    text: str
    row: dict[str, Any]


class Stats(TypedDict):
    """What a model has learned, and its progressive error."""

    examples: int
    forgotten: int
    errors: int
    mistakes: int
    undone: int
    error: float | None
    windows: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    drift: dict[str, Any]
    in_runs: bool
    features: int
    commits: int
    waiting: int
    input: str
    learner: str
    started: float
    snapshot: float | None


class ModelSummary(TypedDict):
    """A model of a server of many; None for what only an open model knows."""

    name: str
    open: bool
    examples: int | None
    errors: int | None
    mistakes: int | None
    commits: int | None
    features: int | None
    classes: int | None
    waiting: int
    used: float | None
    problem: str | None


class CreatedModel(TypedDict):
    """A model that was created, unless it existed already with the same settings."""

    name: str
    created: bool
    settings: dict[str, Any]


class DeletedModel(TypedDict):
    """A model that was deleted, and how many examples it had learned from."""

    deleted: str
    examples: int | None
