"""Words in a column of numbers: a few are missing values, and are reported; many make it a column of text.

Which columns hold numbers is decided by the first megabyte. What is no number is taken as missing while the reading goes on,
and counted. At the end of it a column of which at least 2 % are words becomes text, and the data are to be read again; words
such as "unknown" or "--", which say that there is no number, do not count for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from separatrix.data.column_types import MOSTLY, says_nothing
from separatrix.data.errors import counted, named, shown

FEW = 50
"""So many words that are most of a column are no slip."""


class StrayWords:
    """The words that one reading met in columns of numbers."""

    def __init__(self) -> None:
        self.values = Counter[str]()
        """How many values each column has, words included."""
        self.words = Counter[str]()
        self.nothing = Counter[str]()
        """How many of the words say that there is no number."""
        self.first: dict[str, str] = {}
        """The first word of each column, quoted, and its place."""

    def clear(self) -> None:
        """Forget what was counted: a reading begins."""
        self.values.clear()
        self.words.clear()
        self.nothing.clear()
        self.first.clear()

    def add_values(self, name: str, column: Any) -> None:
        """Count the values of a column."""
        self.values[name] += len(column) - column.null_count

    def add_word(self, name: str, word: str, place: str) -> None:
        """Count a word, which is missing from the column."""
        self.words[name] += 1
        self.nothing[name] += says_nothing(word)
        self.values[name] += 1
        self.first.setdefault(name, f"{shown(word)} at {place}")

    def forget(self, names: Collection[str]) -> None:
        """Leave out columns that nobody looks at."""
        for name in names:
            del self.words[name]

    def many(self) -> list[str]:
        """Return the columns that are text rather than numbers."""
        strays = {name: n - self.nothing[name] for name, n in self.words.items()}
        return [name for name, n in strays.items() if n and self.values[name] - n <= MOSTLY * self.values[name]]

    def useless(self) -> list[str]:
        """Return the columns that hold hardly any numbers."""
        return [name for name, n in self.words.items() if n >= FEW and 2 * n > self.values[name]]

    def finding(self, name: str) -> str:
        """Say what was found in a column."""
        n = self.words[name]
        are = "is not a number" if n == 1 else "are not numbers"
        return f"column {named(name)}: {counted(n, 'value')} of {self.values[name]:,} {are}, the first {self.first[name]}"

    def note(self, name: str) -> str:
        """Say what was done about a column that stays one of numbers."""
        return f"{self.finding(name)}: taken as missing"
