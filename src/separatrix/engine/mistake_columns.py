"""The columns of a ledger: one growing array for each property of a mistake, as narrow as its values allow."""

from typing import Any

import numpy as np

from separatrix.engine.parcel import MOST, Parcel, StateError
from separatrix.engine.rows import Array, frozen


class Column:
    """A growing array that is as narrow as its values allow."""

    def __init__(self, dtype: str, wider: str = "") -> None:
        self._array: Array = np.empty(0, dtype)
        self._wider = wider
        self._most = np.iinfo(dtype).max if wider else 0
        self._size = 0

    @property
    def size(self) -> int:
        """How many values there are."""
        return self._size

    @property
    def values(self) -> Array:
        """The values so far, read-only."""
        return frozen(self._array[: self._size])

    def append(self, values: Array) -> None:
        """Add values at the end, widening the type when one does not fit."""
        if not values.size:
            return
        if self._wider and int(values.max() if values.size > 1 else values[0]) > self._most:
            self._array, self._wider = self._array.astype(self._wider), ""
        size = self._size + len(values)
        if size > len(self._array):
            grown = np.empty(max(size, len(self._array) + len(self._array) // 2), self._array.dtype)
            grown[: self._size] = self._array[: self._size]
            self._array = grown
        self._array[self._size : size] = values
        self._size = size

    def truncate(self, size: int) -> None:
        """Forget all but the first `size` values."""
        self._size = size

    def replace(self, values: Array) -> None:
        """Put other values in place of these."""
        self._array, self._size = values, len(values)

    def fill(self, values: Array) -> None:
        """Take over values that were kept elsewhere, in the type they have."""
        self._wider = self._wider if values.dtype == self._array.dtype else ""
        self.replace(values)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_array": self._array[: self._size].copy()}


class MistakeColumns:
    """The properties of the mistakes of a run, a column for each; all columns that are not empty are equally long."""

    def __init__(self, scored: bool) -> None:
        self._scored = scored
        self._step = Column("u4", "i8")
        self._example = Column("u4", "i8")
        self._up = Column("i1", "i4")
        self._down = Column("i1", "i4")
        self._correction = Column("f8")
        self._shrink = Column("f8")
        self._score = Column("f8")
        self._row = Column("u4", "i8")

    def __len__(self) -> int:
        """Return the number of mistakes that are kept: all of them, or none where there were more than `limit`."""
        return self._step.size

    @property
    def step(self) -> Array:
        """At which presentation, counted from 1, each mistake was made."""
        return self._step.values

    @property
    def example(self) -> Array:
        """On which row of X; rows of successive partial fits are counted on."""
        return self._example.values

    @property
    def up(self) -> Array:
        """The class whose weights were raised."""
        return self._up.values

    @property
    def down(self) -> Array:
        """The class whose weights were lowered."""
        return self._down.values

    @property
    def correction(self) -> Array:
        """By how much of x̃; empty when every correction is 1."""
        return self._correction.values

    @property
    def shrink(self) -> Array:
        """By how much of (Σx̃)(Σx̃)ᵀ the variances shrank; empty for rules that keep none."""
        return self._shrink.values

    @property
    def score(self) -> Array:
        """The score that was wrong (jointly: the lead over the rival); empty unless recorded."""
        return self._score.values

    @property
    def nbytes(self) -> int:
        """The memory that the columns take."""
        return sum(column.values.nbytes for column in self._columns)

    @property
    def _columns(self) -> tuple[Column, ...]:
        return self._step, self._example, self._up, self._down, self._correction, self._shrink, self._score

    @property
    def row(self) -> Array:
        """Which of the stored rows each mistake was made on; empty where none are stored."""
        return self._row.values

    # Saving.

    def pack_columns(self, parcel: Parcel, at: str) -> None:
        """Put the columns into a parcel."""
        for name, column in self._saved_columns().items():
            parcel.put(f"{at}.{name}", column.values)

    def unpack_columns(self, parcel: Parcel, at: str, steps: int, last: int, *, shrinks: bool, has_rows: bool) -> None:
        """Fill the columns of a run of so many steps whose classes have the codes 0…`last`."""
        step = parcel.take(f"{at}.step", "u4 i8", (-1,), low=1, high=steps)
        if np.any(step[1:] < step[:-1]):
            raise StateError(f"{at}.step must not decrease")
        m = len(step)
        corrections = len(parcel.take(f"{at}.correction", "f8", (-1,)))
        values = {
            "step": step,
            "example": parcel.take(f"{at}.example", "u4 i8", (m,), low=0, high=MOST),
            "up": parcel.take(f"{at}.up", "i1 i4", (m,), low=-1, high=last),
            "down": parcel.take(f"{at}.down", "i1 i4", (m,), low=-1, high=last),
            "correction": parcel.take(f"{at}.correction", "f8", (m if corrections else 0,)),
            "shrink": parcel.take(f"{at}.shrink", "f8", (m if shrinks else 0,)),
            "score": parcel.take(f"{at}.score", "f8", (m if self._scored else 0,)),
            "row": parcel.take(f"{at}.row", "u4 i8", (m if has_rows else 0,)),
        }
        for name, column in self._saved_columns().items():
            column.fill(values[name])

    def _saved_columns(self) -> dict[str, Column]:
        return {
            "step": self._step,
            "example": self._example,
            "up": self._up,
            "down": self._down,
            "correction": self._correction,
            "shrink": self._shrink,
            "score": self._score,
            "row": self._row,
        }
