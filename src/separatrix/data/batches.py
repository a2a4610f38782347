"""What a reader yields: a bounded number of rows, which know where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.errors import Origin, Skips

if TYPE_CHECKING:
    import pyarrow as pa

    from separatrix.data.dialects.layouts import Layout

Array = NDArray[Any]

MOST_FEATURES = 1 << 26
"""So many features may the rows of a file have: weights are as long as a row is wide, and one wrong index must not take all
the memory."""
TOO_MANY = f"more than {MOST_FEATURES:,} features, the most that a file may have; renumber or hash them"
BATCH_ROWS = 1 << 16
BATCH_BYTES = 1 << 21

MISSING = (
    "",
    "?",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "nan",
    "NaN",
    "NAN",
    "-nan",
    "null",
    "NULL",
    "Null",
    "None",
    "none",
    "NIL",
    "nil",
)
"""What stands for a missing value in a table of text, unless it is quoted."""
CLASS_NAMES = ("none", "None")
"""Markers of a missing value that are as likely the name of a class: in a column of labels they are one."""
LABEL_WORDS = tuple(marker for marker in MISSING if marker)
"""Those that may be labels, where they are to be kept: NA is the code of a continent."""


WRITTEN = "written"
"""What a model expects of a column of text that it reads as numbers in some notation; typed numbers stay numbers."""


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Examples of numbers: X dense or CSR, y where there are labels, and where each row comes from."""

    X: Any
    y: Array | None
    origin: Origin
    queries: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: slice) -> RowBatch:
        y, queries = (None if array is None else array[rows] for array in (self.y, self.queries))
        return RowBatch(self.X[rows], y, self.origin[rows], queries)


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Rows of a table: named columns, the label's among them, and where each row comes from.

    `kept` has the columns that are to be kept as they are written in the file; those of JSON lines are JSON texts.
    """

    table: pa.RecordBatch
    origin: Origin
    kept: pa.RecordBatch | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, rows: slice) -> TableBatch:
        begin, end, _ = rows.indices(len(self))
        kept = None if self.kept is None else self.kept.slice(begin, end - begin)
        return TableBatch(self.table.slice(begin, end - begin), self.origin[rows], kept)

    def where(self, kept: NDArray[np.bool_]) -> TableBatch:
        """Return the rows that are kept."""
        from separatrix.data.arrow_arrays import number_array

        mask = number_array(kept)
        columns = None if self.kept is None else self.kept.filter(mask)
        return TableBatch(self.table.filter(mask), self.origin.at(np.flatnonzero(kept)), columns)

    def without(self, column: str) -> TableBatch:
        """Return the rows without a column."""
        return TableBatch(self.table.drop_columns([column]), self.origin, self.kept)


@dataclass(frozen=True)
class Options:
    """How to read: what `open_source` was asked for."""

    label: str | int | None = None
    header: bool | str = "auto"
    delimiter: str | None = None
    quote: str | None = "auto"
    types: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING
    zero_based: bool | str = "auto"
    n_features: int | None = None
    batch_rows: int = BATCH_ROWS
    batch_bytes: int = BATCH_BYTES
    threads: int = 1
    settle: bool = False
    """Look at the whole file before its columns get their types, and keep whole numbers whole."""
    skips: Skips = field(default_factory=lambda: Skips(False))
    columns: tuple[str, ...] = ()
    """Names that a header would have."""
    encoding: str = "auto"
    label_words: tuple[str, ...] = ()
    """Markers of a missing value that are labels in the label's column."""
    label_needed: bool = True
    """Whether a table without the label's column is an error."""
    layout: Layout | None = None
    """The columns by their places, of a model that was trained on a file without a header."""
    expected: Mapping[str, str] | None = None
    """What a model has learned of columns, by name: they are read so, whatever share of them are words."""
    unused: set[str] = field(default_factory=set)
    """Columns that nobody looks at, since a model leaves them out: whatever they hold is right."""
    keep: tuple[str, ...] = ()
    """Columns that are given as they are written, too."""
    notes: dict[str, str] = field(default_factory=dict)
    """What a person should know of the reading, each under a name, so that it is said once."""

    def kind_of(self, name: str) -> str | None:
        """Return what a column is said to hold, if anything is."""
        kind = self.types.get(name) or (self.expected or {}).get(name)
        return "text" if kind == WRITTEN else kind

    def is_written(self, name: str) -> bool:
        """Tell whether a model reads the text of a column as numbers."""
        return name not in self.types and (self.expected or {}).get(name) == WRITTEN
