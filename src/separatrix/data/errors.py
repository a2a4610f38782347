"""What cannot be read, said in one line: the file, the line, the column, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class DataError(ValueError):
    """Data that cannot be used; the message names the place."""


class NoExampleError(DataError):
    """Data without a single example."""


@dataclass(frozen=True)
class Origin:
    """Where the rows of a batch come from: a file, and the line or row (counted from 1) of each."""

    file: str
    first: int
    unit: str = "line"
    numbers: NDArray[np.int64] | None = None
    """The number of each row, where they do not simply count on from the first."""

    def number(self, i: int) -> int:
        """Return the line or row of row i of the batch."""
        return self.first + i if self.numbers is None else int(self.numbers[i])

    def place(self, i: int) -> str:
        """Name row i of the batch for a message.

        Examples
        --------
        >>> Origin("points.csv", 2).place(3)
        'points.csv, line 5'
        """
        return f"{self.file}, {self.unit} {self.number(i)}"

    def __getitem__(self, rows: slice) -> Origin:
        if self.numbers is None:
            return Origin(self.file, self.first + (rows.start or 0), self.unit)
        return Origin.of(self.file, self.numbers[rows], self.unit)

    @staticmethod
    def of(file: str, numbers: NDArray[np.int64], unit: str = "line") -> Origin:
        """Return the origin of rows with these numbers."""
        return Origin(file, int(numbers[0]) if len(numbers) else 1, unit, numbers)


@dataclass
class Skips:
    """What is done with a line that cannot be read: an error, or, to skip it, a count and the first few reasons."""

    skipping: bool
    count: int = 0
    reasons: list[str] = field(default_factory=list)

    def report(self, what: str) -> None:
        """Raise, or note a line that is left out."""
        if not self.skipping:
            raise DataError(what)
        self.count += 1
        if len(self.reasons) < 10:
            self.reasons.append(what)

    def clear(self) -> None:
        """Reset the counts."""
        self.count = 0
        self.reasons.clear()


def shown(value: Any, size: int = 40) -> str:
    """Return a value as it is quoted in a message, cut short where it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= size else text[: size - 1] + "…")
