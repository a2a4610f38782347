"""What is read of a block of delimited text, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass
class TypedRecords:
    """The columns of some records, and what is wrong with rows that cannot be used.

    `words`: (row, column, word) for each word among numbers; `mended`: the rows with bytes that are not UTF-8.
    """

    table: Any
    wrong: dict[int, str] = field(default_factory=dict)
    words: list[tuple[int, str, str]] = field(default_factory=list)
    mended: list[int] = field(default_factory=list)


class Fault(NamedTuple):
    """What is wrong with a record: the lines before it, the message, and how many lines it has."""

    line: int
    what: str
    n_lines: int = 1


@dataclass
class ReadBlock:
    """The rows of a block, the lines before each, and what is wrong with others.

    `words` and `mended` are those of `TypedRecords`.
    """

    table: Any
    lines: NDArray[np.int32]
    n_lines: int
    faults: list[Fault] = field(default_factory=list)
    words: list[tuple[int, str, str]] = field(default_factory=list)
    mended: list[int] = field(default_factory=list)
    kept: Any = None
    oddities: dict[int, str] = field(default_factory=dict)
    """What a person should know of lines, by the number of lines before them."""
