"""What cannot be read, said in one line: the file, the line, the column, and what to do.

A message names a remedy as a parameter of Python, `on_error='skip'` or `roles={'age': 'drop'}`, and never as an option: the
command line shows the same remedy as `--on-error skip` or `--drop age` (`in_options` of `cli/errors.py`). `counted` writes
numbers of things, and `no_column` is the message about a column that is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LEAVE_OUT = "leave such lines out with on_error='skip'"
"""The remedy for a line that cannot be read."""


class DataError(ValueError):
    """Data that cannot be used; the message names the place."""


class NoExampleError(DataError):
    """Data without a single example."""


class ReadAgainError(DataError):
    """A column turned out to be text after some of it had been given as numbers: the next reading gives text."""


class OutputError(OSError):
    """A file cannot be written to its end: the disk is full, the device is broken, or nobody reads the other end."""


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

    def at(self, rows: NDArray[np.int64]) -> Origin:
        """Return where these rows of the batch come from."""
        return Origin.of(self.file, self.numbers_of(rows), self.unit)

    def numbers_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the line or row of each of these rows of the batch."""
        return rows + self.first if self.numbers is None else self.numbers[rows]

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

    def report(self, what: str, n_lines: int = 1) -> None:
        """Raise, or note a line, or a record of several lines, that is left out."""
        if not self.skipping:
            raise DataError(what)
        self.count += n_lines
        if len(self.reasons) < 10:
            self.reasons.append(what.replace(f", or {LEAVE_OUT}", "").replace(f"; {LEAVE_OUT}", ""))

    def clear(self) -> None:
        """Reset the counts."""
        self.count = 0
        self.reasons.clear()


def counted(n: int, thing: str, things: str | None = None) -> str:
    """Return a number of things, in the singular where there is one.

    Examples
    --------
    >>> counted(1, "row"), counted(2_000, "row"), counted(1, "class"), counted(3, "class")
    ('1 row', '2,000 rows', '1 class', '3 classes')
    """
    several = things or thing + ("es" if thing.endswith("s") else "s")
    return f"{n:,} {thing if n == 1 else several}"


def did_you_mean(name: object, names: Iterable[object]) -> str:
    """Return a question about the name nearest to one that is not there, to append to a message; or nothing.

    Examples
    --------
    >>> did_you_mean("agee", ["age", "job"]), did_you_mean("AGE", ["age", "job"]), did_you_mean("height", ["age", "job"])
    ("; did you mean 'age'?", "; did you mean 'age'?", '')
    """
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for each in map(str, names):
        folded.setdefault(each.casefold().strip(), each)
    nearest = get_close_matches(str(name).casefold().strip(), folded, n=1)
    return f"; did you mean {folded[nearest[0]]!r}?" if nearest else ""


def no_column(name: object, names: Sequence[str], most: int = 10) -> str:
    """Return the message about a column that is not among these names.

    Examples
    --------
    >>> no_column("agee", ["age", "job"])
    "there is no column 'agee'; the columns are age, job; did you mean 'age'?"
    """
    listed = ", ".join(map(named, names[:most])) + (" …" if len(names) > most else "")
    return f"there is no column {shown(name)}; the columns are {listed}{did_you_mean(name, names)}"


def named(name: object) -> str:
    r"""Return the name of a column or a class as it stands in a message: in quotes where it is no plain word.

    Examples
    --------
    >>> named("shoe size"), named("C=5"), named("net\nweight")
    ('shoe size', "'C=5'", "'net\\nweight'")
    """
    text = str(name)
    return text if text.strip() and text.isprintable() and "=" not in text else repr(text)


def shown(value: Any, size: int = 40) -> str:
    """Return a value as it is quoted in a message, cut short where it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= size else text[: size - 1] + "…")
