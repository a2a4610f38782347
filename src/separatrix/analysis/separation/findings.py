"""What `check_separation` finds about coefficients and levels: of text with many classes, millions of each.

They are kept as arrays of a few bytes each, and an item is made when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from separatrix.data.errors import named
from separatrix.engine.rows import Ints

_SHOWN = 8
_READ_AT_ONCE = 10_000
EXAMINED = {1: True, 0: False, -1: None}
"""How `certain` of a coefficient is kept."""


class InfiniteCoefficient(NamedTuple):
    """A coefficient whose estimate diverges to `limit`, inf or −inf, along the direction of the certificate.

    `certain` is True if the sign is the same in every direction that separates the same rows, False if there is one with the
    other sign, and None if that was not examined. With more than two classes the coefficient is that of the log odds of
    `against_first` against the first class.
    """

    name: str
    limit: float
    certain: bool | None = None
    against_first: Any = None

    def __str__(self) -> str:
        whose = "" if self.against_first is None else f" ({named(self.against_first)})"
        return f"{named(self.name)}{whose} → {'+' if self.limit > 0 else '−'}∞"


class EmptyCell(NamedTuple):
    """A level of a category, with `n_rows` rows, none of which has the class `label`."""

    column: str
    level: str
    label: Any
    n_rows: int


T = TypeVar("T")


class Findings(Sequence[T], Generic[T]):
    """A list that cannot be changed, and whose items are made when they are read."""

    _columns: tuple[NDArray[Any], ...]
    """What an item is made of: one number of each."""

    def _item(self, *numbers: Any) -> T:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._columns[0])

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [
                self._item(*numbers) for numbers in zip(*(column[place].tolist() for column in self._columns), strict=True)
            ]
        return self._item(*(column[place].item() for column in self._columns))

    def __iter__(self) -> Iterator[T]:
        for first in range(0, len(self), _READ_AT_ONCE):
            yield from self[first : first + _READ_AT_ONCE]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Findings):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = f", … {len(self):,} in all" if len(self) > _SHOWN else ""
        return f"[{', '.join(map(repr, self[:_SHOWN]))}{more}]"


class InfiniteCoefficients(Findings[InfiniteCoefficient]):
    """Coefficients from their signs, a row for each class after the first, or one for two classes.

    `certain` tells of some columns what was found; of others nothing was, or all if `is_unique`.
    """

    def __init__(
        self,
        signs: NDArray[np.int8],
        names: list[str],
        classes: list[Any],
        certain: dict[int, bool | None] | None = None,
        is_unique: bool = False,
    ) -> None:
        self._names, self._classes = names, classes
        places = np.flatnonzero(signs)
        examined = np.full(signs.shape, 1 if is_unique else -1, np.int8)
        for j, value in (certain or {}).items():
            examined[:, j] = -1 if value is None else int(value)
        self._columns = places, signs.reshape(-1)[places], examined.reshape(-1)[places]

    def _item(self, place: int, sign: int, examined: int) -> InfiniteCoefficient:
        k, j = divmod(place, len(self._names))
        against_first = self._classes[k + 1] if len(self._classes) > 2 else None
        return InfiniteCoefficient(self._names[j], inf if sign > 0 else -inf, EXAMINED[examined], against_first)

    def of(self, certain: bool | None) -> tuple[int, list[InfiniteCoefficient]]:
        """Return how many have this `certain`, and the first of them."""
        every = np.array([EXAMINED[value] is certain for value in (0, 1, -1)])[self._columns[2]]
        which = np.flatnonzero(every)[:_SHOWN]
        return int(every.sum()), [self[place] for place in which.tolist()]


class EmptyCells(Findings[EmptyCell]):
    """Cells from the numbers of their level and class, and how many rows the level has."""

    def __init__(self, levels: list[tuple[str, str]], cells: Ints, sizes: Ints, labels: list[Any]) -> None:
        self._levels, self._labels = levels, labels
        self._columns = cells, sizes

    def _item(self, cell: int, size: int) -> EmptyCell:
        level, k = divmod(cell, len(self._labels))
        return EmptyCell(*self._levels[level], self._labels[k], size)

    @property
    def columns(self) -> set[str]:
        """The columns whose levels these are."""
        return {self._levels[level][0] for level in np.unique(self._columns[0] // len(self._labels)).tolist()}
