"""The numbers of examples, which stay what they were when others are forgotten, and what a store says of a forgetting."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Ints

FORGOTTEN = "forgotten-"
"""A store has an entry with this beginning for each forgetting, numbered in order."""

TIMES = "times_forgotten"
"""The entry in which a repair says how often a store had forgotten."""


class Forgetting(NamedTuple):
    """One forgetting: the name of its entry, its receipt, the first commit that it changed, and whether all is erased."""

    name: str
    receipt: dict[str, Any]
    commit: int
    is_erased: bool

    @classmethod
    def of(cls, name: str, entry: dict[str, Any]) -> Forgetting:
        """Read an entry of the store."""
        return cls(name, entry["receipt"], int(entry["commit"]), bool(entry["erased"]))

    def entry(self) -> dict[str, Any]:
        """Return the entry of the store."""
        return {"receipt": self.receipt, "commit": self.commit, "erased": self.is_erased}

    @property
    def order(self) -> int:
        """Its number among the forgettings of the store, from 1."""
        return int(self.name.removeprefix(FORGOTTEN))

    @property
    def numbers(self) -> list[int]:
        """The numbers of the examples that were forgotten."""
        return [int(number) for number in self.receipt["removed"]["examples"]]


def times_forgotten(base: dict[str, dict[str, Any]]) -> int:
    """Return how often a store has forgotten, given its entries; a repair may have lost which examples that were."""
    orders = [int(name.removeprefix(FORGOTTEN)) for name in base if name.startswith(FORGOTTEN)]
    return max([*orders, int(base.get(TIMES, {}).get("count", 0))])


def forgotten_numbers(forgettings: list[Forgetting]) -> Ints:
    """Return the numbers of all examples that were forgotten, sorted."""
    return np.array(sorted(number for forgetting in forgettings for number in forgetting.numbers), np.int64)


def numbers_of(last: int, n: int, forgotten: Ints) -> Ints:
    """Return the numbers of the n examples of a commit: the greatest up to `last` that were not forgotten.

    Examples
    --------
    >>> numbers_of(7, 3, np.array([2, 6])).tolist()
    [4, 5, 7]
    """
    begin = last - n
    while (more := last - n - int(np.count_nonzero((forgotten > begin) & (forgotten <= last)))) != begin:
        begin = more
    numbers = np.arange(begin + 1, last + 1)
    return numbers[~np.isin(numbers, forgotten)]
