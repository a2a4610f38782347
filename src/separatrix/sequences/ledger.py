"""The mistakes of a structured perceptron, in order: the sequence, its true path, the predicted path, and the correction.

The last weights are the sum of the corrections, and the average follows from *when* each was made. A replay makes the stored
corrections again and decides nothing, so it gives the fitted weights bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.parcel import MOST, Parcel, State, StateError, flag, whole
from separatrix.engine.rows import Array, Floats, Ints, frozen
from separatrix.kernels.sequences import paths
from separatrix.sequences.encoded import NO_SEQUENCES, Encoded, ranges, rows_of

_COLUMNS = {"step": "i8", "sequence": "i8", "correction": "f8", "lead": "f8", "wrong": "i8", "ends": "i8"}
_PATHS = ("true", "predicted")


class PathMistake(NamedTuple):
    """One mistake: the true path was raised and the predicted one lowered; `lead` is the difference of their scores."""

    pass_number: int
    step: int
    sequence: int
    true: list[Any]
    predicted: list[Any]
    correction: float
    lead: float


class SequenceLedger:
    """The mistakes of a `SequencePerceptron`.

    `len(ledger)` is their number and iterating yields each as a `PathMistake`. The columns `step`, `sequence`, `correction`,
    `lead` and `wrong` (how many tags) are arrays. `true` and `predicted` hold the paths as codes of `classes`, one after the
    other: those of mistake m end at ends[m]. `absent` counts the mistakes that a model file was saved without.
    """

    step: Ints
    sequence: Ints
    correction: Floats
    lead: Floats
    wrong: Ints
    ends: Ints
    true: Array
    predicted: Array

    def __init__(self, classes: Array) -> None:
        self.classes = classes
        self.steps = 0
        self.absent = 0
        self.pass_starts: list[tuple[int, int]] = []
        self.stored_numbers: Ints = np.empty(0, np.int64)
        self.stored: Encoded = NO_SEQUENCES
        self._waiting: list[tuple[Array, ...]] = []
        for name, kind in _COLUMNS.items():
            setattr(self, f"_{name}", np.empty(0, kind))
        self._true = self._predicted = np.empty(0, np.int32)

    def __getattr__(self, name: str) -> Array:
        """Return a column; what was appended since the last look is added first."""
        if name not in (*_COLUMNS, *_PATHS):
            raise AttributeError(f"a SequenceLedger has no attribute {name!r}")
        if self._waiting:
            blocks, self._waiting = self._waiting, []
            for column, arrays in zip((*_COLUMNS, *_PATHS), zip(*blocks, strict=True), strict=True):
                old = getattr(self, f"_{column}")
                if column == "ends":
                    offsets = np.cumsum([old[-1] if old.size else 0, *(ends[-1] for ends in arrays)])
                    arrays = tuple(ends + offset for ends, offset in zip(arrays, offsets, strict=False))
                setattr(self, f"_{column}", np.concatenate([old, *arrays]))
        column_of: Array = getattr(self, f"_{name}")
        return column_of

    def __len__(self) -> int:
        return len(self.step)

    @property
    def total(self) -> int:
        """The number of mistakes, kept or not."""
        return self.absent + len(self)

    def __iter__(self) -> Iterator[PathMistake]:
        """Yield the mistakes in order."""
        starts = [step for step, _ in self.pass_starts]
        passes_of = np.searchsorted(starts, self.step, side="left")
        begin = 0
        for m in range(len(self)):
            end = int(self.ends[m])
            true, predicted = (self.classes[codes[begin:end]].tolist() for codes in (self.true, self.predicted))
            numbers = int(passes_of[m]), int(self.step[m]), int(self.sequence[m])
            yield PathMistake(*numbers, true, predicted, float(self.correction[m]), float(self.lead[m]))
            begin = end

    def __repr__(self) -> str:
        return f"<SequenceLedger: {self.total:,} mistakes in {self.steps:,} steps, {len(self.pass_starts)} passes>"

    # Writing, as a run goes on.

    def append(self, columns: tuple[Array, ...]) -> None:
        """Append mistakes: the six columns, the true paths and the predicted ones."""
        self._waiting.append(columns)

    def insert_class(self, classes: Array, place: int) -> None:
        """Take a new class into account: the codes from its place on move up."""
        self.classes = classes
        for name in _PATHS:
            codes = getattr(self, name)
            setattr(self, f"_{name}", codes + (codes >= place).astype(np.int32))

    def cut_to(self, steps: int, mistakes: int, passes: int) -> None:
        """Forget what came after so many steps, mistakes and passes."""
        end = int(self.ends[mistakes - 1]) if mistakes else 0
        for name in (*_COLUMNS, *_PATHS):
            column = getattr(self, name)
            setattr(self, f"_{name}", column[: end if name in _PATHS else mistakes].copy())
        self.steps, self.pass_starts = steps, self.pass_starts[:passes]

    def store(self, encoded: Encoded, offset: int) -> None:
        """Store the tokens of the mistaken sequences among these, whose first one has the number `offset`."""
        numbers = np.unique(self.sequence[(self.sequence >= offset) & (self.sequence < offset + len(encoded))])
        self.stored = self.stored.and_then(encoded.take(numbers - offset))
        self.stored_numbers = np.append(self.stored_numbers, numbers)

    # Replaying.

    def replay(self, encoded: Encoded | None, n_features: int, *, averaged: bool, mistakes: int | None = None) -> Any:
        """Return (W, T) after so many mistakes (None: all): the weights of features and tags, and of transitions.

        Parameters
        ----------
        encoded : the sequences of the training; None: those that were stored
        averaged : whether to return the mean over all steps in place of the last weights
        """
        encoded, sequence = self.mistaken(encoded)
        K, n = len(self.classes), len(self) if mistakes is None else mistakes
        columns = encoded.starts, sequence, self.ends, self.true, self.predicted
        places = np.zeros(n_features, np.int32)  # a second replay finds a row for every feature
        weights = self._replay(encoded, columns, self.correction, n, places)
        if averaged and self.steps:
            delays = self.correction * np.maximum(self.step - 1, 0)
            late = self._replay(encoded, columns, delays, n, places)
            weights = weights[0] - late[0] / self.steps, weights[1] - late[1] / self.steps
        W, T = weights
        return rows_of(W, K)[places], T.reshape(K + 1, K + 1)

    def _replay(
        self, encoded: Encoded, columns: tuple[Array, ...], correction: Floats, n: int, places: Array
    ) -> tuple[Floats, Floats]:
        starts, sequence, ends, true, predicted = map(frozen, columns)
        K = len(self.classes)
        weights = np.zeros((len(places) + 1) * K), np.zeros((K + 1) ** 2)
        paths.replay(encoded.rows, starts, sequence, frozen(correction), ends, true, predicted, 0, n, places, K, weights)
        return weights

    def mistaken(self, encoded: Encoded | None) -> tuple[Encoded, Ints]:
        """Return the sequences, and the place of each mistake's one among them."""
        if self.absent:
            raise ValueError("the mistakes were not kept, on shards or in the model file: nothing can be replayed")
        lengths = np.diff(self.ends, prepend=0)
        if encoded is None:
            if not np.isin(self.sequence, self.stored_numbers).all():
                raise ValueError("the tokens of the mistakes were not stored: pass X, or fit with record=True")
            return self.stored, np.searchsorted(self.stored_numbers, self.sequence)
        if len(self) and (self.sequence.max() >= len(encoded)):
            raise ValueError(
                f"the ledger has mistakes on sequence {int(self.sequence.max())}, but X has {len(encoded)} sequences: pass "
                "those of the training, of all calls of partial_fit together"
            )
        if not np.array_equal(np.diff(encoded.starts)[self.sequence], lengths):
            raise ValueError("X does not have the sequences of the training: some have another number of tokens")
        return encoded, self.sequence

    def has_tags(self, encoded: Encoded, codes: Array) -> bool:
        """Tell whether the true path of each mistake is that of its sequence among these."""
        encoded, sequence = self.mistaken(encoded)
        tokens = ranges(encoded.starts[sequence], encoded.starts[sequence + 1])
        return bool(np.array_equal(codes[tokens], self.true))

    def squares(self, encoded: Encoded | None, n_features: int) -> Floats:
        """Return ‖φ(y) − φ(ẑ)‖² of each mistake."""
        encoded, sequence = self.mistaken(encoded)
        K, squares = len(self.classes), np.empty(len(self))
        places, room = np.zeros(n_features, np.int32), (np.zeros((n_features + 1) * K), np.zeros((K + 1) ** 2))
        columns = map(frozen, (encoded.starts, sequence, self.ends, self.true, self.predicted))
        paths.squares(encoded.rows, *columns, places, K, room, squares)
        return squares

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put the mistakes into a parcel, unless they are to be left out."""
        kept = parcel.ledger and not self.absent
        if kept:
            for name in (*_COLUMNS, *_PATHS):
                parcel.put(f"{at}.{name}", getattr(self, name))
            parcel.put(f"{at}.stored_numbers", self.stored_numbers)
            self.stored.pack(parcel, f"{at}.stored")
        return {
            "kept": kept,
            "total": self.total,
            "steps": self.steps,
            "pass_starts": [[*pair] for pair in self.pass_starts],
        }

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str, classes: Array, n_features: int) -> SequenceLedger:
        """Return the ledger that a parcel holds."""
        ledger = cls(classes)
        ledger.steps, total = whole(state, "steps"), whole(state, "total")
        ledger.pass_starts = [(whole(pair, 0), whole(pair, 1)) for pair in state["pass_starts"]]  # type: ignore[arg-type]
        if not flag(state, "kept"):
            ledger.absent = total
            return ledger
        for name, kind in _COLUMNS.items():
            low = 0 if kind == "i8" else -np.inf
            setattr(ledger, f"_{name}", parcel.take(f"{at}.{name}", kind, (total,), low=low, high=MOST))
        ends = ledger.ends
        n = int(ends[-1]) if total else 0
        if np.any(np.diff(ends, prepend=0) <= 0):
            raise StateError(f"{at}.ends must rise")
        for name in _PATHS:
            codes = parcel.take(f"{at}.{name}", "i4", (n,), low=0, high=len(classes) - 1)
            setattr(ledger, f"_{name}", codes)
        ledger.stored = Encoded.unpack(parcel, f"{at}.stored", n_features)
        ledger.stored_numbers = parcel.take(f"{at}.stored_numbers", "i8", (len(ledger.stored),), low=0)
        # The kernels that replay do not check where they read and write: what they are given has to fit together.
        if np.any(np.diff(ledger.stored_numbers) <= 0):
            raise StateError(f"{at}.stored_numbers must rise")
        is_stored = np.isin(ledger.sequence, ledger.stored_numbers)
        places = np.searchsorted(ledger.stored_numbers, ledger.sequence[is_stored])
        if not np.array_equal(np.diff(ledger.stored.starts)[places], np.diff(ends, prepend=0)[is_stored]):
            raise StateError(f"{at}.stored has sequences of other lengths than the mistakes")
        return ledger
