"""The regression set: pinned examples, which are predicted again after each commit, before it is written.

Whether a pin is right is judged by the weights that predict. A pin that becomes wrong is stored as broken with the commit
that did it, in the same transaction; one that becomes right again is no longer broken. The cost of a check is one product
of each pinned value with its weight, for each class: there are at most MOST_PINS pins of MOST_VALUES values together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Ints
from separatrix.web.server.citations import leads_added
from separatrix.web.server.live.commits import EMPTY, Commit, SparseRows, stacked
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.reading.feature_index import FeatureIndex
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples, RequestReader
from separatrix.web.server.storage.pins import Pin, Statement

MOST_PINS, MOST_VALUES = 1_000, 1 << 21
_BLAME_WORK = 1 << 25
"""Finding out which corrections broke pins takes at most about so many products for a commit."""


class Marks:
    """What the requests of a commit ask for beside learning: corrections until an example is right, and pins."""

    def __init__(self) -> None:
        self.persistent: list[int] = []
        """The positions of the examples that are corrected until they are right."""
        self._pinned: list[tuple[int, Any, dict[str, Any]]] = []

    @property
    def n_pinned(self) -> int:
        """The number of examples to be pinned."""
        return len(self._pinned)

    def add(self, examples: RequestExamples, before: int, reader: RequestReader) -> None:
        """Add the marks of a request whose examples come after `before` others."""
        self.persistent += [before + at for at in examples.until_right]
        self._pinned += [(before + at, examples.labels[at], reader.source(examples, at)) for at in examples.pinned]

    def pins(self, place: Place) -> list[Pin]:
        """Return the pins of a commit."""
        return [Pin(place.examples_before + at + 1, place.number, label, source) for at, label, source in self._pinned]


class Place(NamedTuple):
    """A commit's number, how many mistakes and examples come before it, and its time."""

    number: int
    mistakes_before: int
    examples_before: int
    time: float


class Changes(NamedTuple):
    """What a commit changes in the regression set: the pins after it, the statements that store it, and who became wrong."""

    pins: dict[int, Pin]
    statements: list[Statement]
    broken: list[Pin]


class RegressionSet:
    """The pinned examples of a store; used by the writer's thread."""

    def __init__(self, reader: RequestReader, pins: Iterable[Pin]) -> None:
        self._reader = reader
        self.pins = {pin.example: pin for pin in pins}
        self._rows: dict[int, SparseRows] = {}
        """The rows of the pins that were looked up so far."""
        self._stack: tuple[list[int], Ints, SparseRows] | None = None
        """The pins in order, the columns that they have, and their rows over these columns; made when needed."""

    def check_room(self, examples: RequestExamples, waiting: int) -> None:
        """Raise RequestError if the pinned examples of a request do not fit; `waiting` others of this commit come first."""
        n = len(self.pins) + waiting + len(examples.pinned)
        values = sum(len(row.data) for row in self._rows.values())
        values += sum(int(examples.indptr[i + 1] - examples.indptr[i]) for i in examples.pinned)
        if n > MOST_PINS or values > MOST_VALUES:
            limit = f"{MOST_PINS:,} examples and {MOST_VALUES:,} values"
            raise RequestError(422, f"the regression set is full (at most {limit}): take some out with /unpin")

    def changes(
        self,
        live_model: LiveModel,
        index: FeatureIndex | None,
        commit: Commit,
        place: Place,
        new: Iterable[Pin] = (),
    ) -> Changes:
        """Return what a commit, which `live_model` has learned and which has `new` pins, changes; nothing is changed yet."""
        pins = dict(self.pins)
        statements: list[Statement] = []
        for pin in new:
            for older in [other for other in pins.values() if other.source == pin.source]:
                statements.append(pins.pop(older.example).removal())
            pins[pin.example] = pin
            statements.append(pin.statement())
        if not pins or live_model.run is None:
            return Changes(pins, statements, [])
        order, columns, rows = self._stacked(pins, live_model, index)
        predictions = live_model.decide(live_model.scores_at(columns, rows))
        broken: list[Pin] = []
        work = 0
        for at, (example, prediction) in enumerate(zip(order, predictions, strict=True)):
            pin, is_right = pins[example], prediction == pins[example].label
            if is_right == (pin.broken is None):
                continue
            if is_right:
                pins[example] = replace(pin, broken=None)
            else:
                work += len(commit.rows.data)
                row = rows.take(np.array([at]))
                row = row._replace(indices=columns[row.indices])
                cause = _cause(live_model, commit, place, pin, prediction, row if work <= _BLAME_WORK else None)
                broken_now = {"prediction": prediction, "commit": place.number, "since": place.time, "by": cause}
                pins[example] = replace(pin, broken=broken_now)
                broken.append(pins[example])
            statements.append(pins[example].statement())
        return Changes(pins, statements, broken)

    def accept(self, changes: Changes) -> None:
        """Take over changes that are on the disk."""
        if changes.pins.keys() != self.pins.keys():
            self._stack = None
            self._rows = {example: row for example, row in self._rows.items() if example in changes.pins}
        self.pins = changes.pins

    def _stacked(
        self, pins: dict[int, Pin], live_model: LiveModel, index: FeatureIndex | None
    ) -> tuple[list[int], Ints, SparseRows]:
        if self._stack is not None and self._stack[0] == list(pins):
            return self._stack
        for pin in pins.values():
            if pin.example not in self._rows:
                parsed = self._reader.stored(pin.source)
                column_of = {} if index is None else index.column
                self._rows[pin.example] = parsed.known_rows(column_of, max(live_model.width, live_model.n_names))
        whole = stacked([self._rows[example] for example in pins]) if pins else EMPTY
        columns, positions = np.unique(whole.indices, return_inverse=True)
        self._stack = list(pins), columns, whole._replace(indices=positions)
        return self._stack


def _cause(
    live_model: LiveModel, commit: Commit, place: Place, pin: Pin, prediction: Any, row: SparseRows | None
) -> dict[str, Any]:
    """Return what broke a pin: the examples of the commit and, of its corrections, the one that pushed the pin most."""
    if commit.undoes is not None:
        return {"undone": commit.undoes}
    cause: dict[str, Any] = {"examples": [place.examples_before + 1, live_model.progressive.numbered], "mistake": None}
    if row is not None and commit.mistakes:
        dense = np.zeros(live_model.width)
        np.add.at(dense, row.indices, row.data)
        number = live_model.table.number
        pushes = leads_added(
            commit, dense, bool(live_model.run and live_model.run.bias), number[pin.label], number[prediction]
        )
        strongest = int(np.argmin(pushes))
        if pushes[strongest] < 0.0:
            cause["mistake"] = place.mistakes_before + strongest + 1
    return cause
