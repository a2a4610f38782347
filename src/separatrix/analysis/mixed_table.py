"""A table with columns of numbers and of words, and the feature matrices that classifiers need of it (L2 12).

Missing numbers are replaced by the median and, if a model needs it, numbers are scaled; each category becomes a 0/1 feature,
and a missing word is a category of its own. All of this is learned from the training rows alone and applied to the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from separatrix.data.batches import MISSING
from separatrix.data.errors import no_column
from separatrix.engine.rows import Array, Floats, Ints
from separatrix.features.columns.identifiers import signs_of

FEW_CATEGORIES = 10
DENSE_BYTES = 1 << 30


@dataclass
class Columns:
    """The columns of a table: numbers (NaN where missing) and words ("" where missing)."""

    numbers: Any
    words: Array
    number_names: list[str]
    word_names: list[str]
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.numbers.shape[0])

    @property
    def sparse(self) -> bool:
        """Whether the table came as a sparse matrix."""
        return bool(sp.issparse(self.numbers))

    @cached_property
    def width(self) -> int:
        """The number of features after every category has become one, in all rows."""
        return len(self.number_names) + sum(len(set(self.words[:, j].tolist())) for j in range(self.words.shape[1]))

    @property
    def wide(self) -> bool:
        """Whether the features stay a sparse matrix, because a dense one would be too large."""
        return self.sparse or 8 * self.n * self.width > DENSE_BYTES

    def describe(self) -> str:
        """Return the number of columns of each kind and of missing values, as a phrase."""
        p, q = len(self.number_names), len(self.word_names)
        kinds = f"{p:,} numeric" if p else ""
        kinds += (" and " if p and q else "") + (f"{q:,} categorical" if q else "")
        numbers = self.numbers.data if self.sparse else self.numbers
        missing = int(np.isnan(numbers).sum()) + int((self.words == "").sum())
        gaps = f", {missing:,} missing value{'s' * (missing != 1)}" if missing else ""
        return f"{kinds} column{'s' * (p + q != 1)}{' (sparse)' if self.sparse else ''}{gaps}"


def read_columns(X: Any, categorical: Sequence[str | int] = (), names: Sequence[str] | None = None) -> Columns:
    """Return the columns of an array, a sparse matrix or a data frame.

    A column is numeric if each of its values is a number, text that reads as a number, or missing; `categorical` has the
    names, or the numbers from 0, of columns whose numbers are codes of categories. A column with a different word in most
    rows cannot help to classify other rows and is left out, as are numbers that identify the rows (by the signs of
    `features/columns/identifiers.py`) and a column without any value.
    """
    if sp.issparse(X):
        return _read_sparse(X, categorical)
    table = _as_table(X, names)
    titles = [name for name, _, _ in table]
    forced = {_place(wanted, titles) for wanted in categorical}
    numbers: list[Floats] = []
    words: list[Array] = []
    columns = Columns(np.empty(0), np.empty(0), [], [])
    for j, (name, values, of_words) in enumerate(table):
        as_numbers = None if of_words or j in forced else _numbers(values, name)
        if as_numbers is not None:
            if np.isnan(as_numbers).all():
                columns.notes.append(f"column {name!r} has no value and is left out")
                continue
            _check_finite(as_numbers, name)
            signs = signs_of(name, as_numbers, titles)
            if signs.words:
                what = " and is left out" if signs.enough else ": kept; drop it if it is one"
                columns.notes.append(signs.of(name) + what)
            if signs.enough:
                continue
            numbers.append(as_numbers)
            columns.number_names.append(name)
            continue
        column = np.array(["" if _is_missing(value) else str(value) for value in values], dtype=object)
        different = len(set(column.tolist()))
        if different > max(FEW_CATEGORIES, len(column) / 2):
            variety = f"{different:,} different values in {len(column):,} rows"
            columns.notes.append(f"column {name!r} has {variety} and is left out")
            continue
        if not of_words and j not in forced:
            columns.notes += _almost_numbers(column, name)
        words.append(column)
        columns.word_names.append(name)
    if not numbers and not words:
        raise ValueError("there is no column to learn from" + "".join(f"; {note}" for note in columns.notes))
    n = len(table[0][1])
    columns.numbers = np.column_stack(numbers) if numbers else np.empty((n, 0))
    columns.words = np.column_stack(words) if words else np.empty((n, 0), dtype=object)
    return columns


def _read_sparse(X: Any, categorical: Sequence[str | int]) -> Columns:
    if len(categorical):
        raise ValueError("a sparse matrix has columns of numbers only: none of them can be categorical")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: there is nothing to learn from")
    numbers = X.tocsr().astype(np.float64)
    _check_finite(numbers.data, None)
    return Columns(numbers, np.empty((X.shape[0], 0), dtype=object), [str(j) for j in range(X.shape[1])], [])


def _as_table(X: Any, names: Sequence[str] | None) -> list[tuple[str, Any, bool]]:
    """Return (name, values, whether its type is categorical) of each column."""
    if hasattr(X, "column_names"):  # pyarrow
        columns = [(str(name), X.column(j).to_pylist(), False) for j, name in enumerate(X.column_names)]
    elif hasattr(X, "iloc"):  # pandas
        series = [X.iloc[:, j] for j in range(X.shape[1])] if len(X.shape) == 2 else []
        columns = [(str(s.name), np.asarray(s), s.dtype.name == "category") for s in series]
    elif hasattr(X, "get_columns"):  # polars
        columns = [(s.name, s.to_numpy(), False) for s in X.get_columns()]
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must be a table with rows and columns, but its shape is {array.shape}")
        titles = names or [str(j) for j in range(array.shape[1])]
        if len(titles) != array.shape[1]:
            raise ValueError(f"there are {len(titles)} feature names for {array.shape[1]} columns")
        columns = [(title, array[:, j], False) for j, title in enumerate(titles)]
    if not columns or not len(columns[0][1]):
        raise ValueError("there are no rows" if columns else "there are no columns")
    return columns


def _place(wanted: str | int, names: list[str]) -> int:
    if wanted in names:
        return names.index(str(wanted))
    try:
        place = int(wanted)
    except ValueError:
        raise ValueError(no_column(wanted, names)) from None
    if not 0 <= place < len(names):
        raise ValueError(f"there is no column {place}; the columns are 0 to {len(names) - 1}")
    return place


def _numbers(values: Any, name: str) -> Floats | None:
    """Return the values as numbers, NaN where missing, or None if one of them is not a number."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    if kind in "mM":
        raise ValueError(f"column {name!r} holds dates or times: convert them to numbers first")
    try:
        return np.array([np.nan if _is_missing(value) else float(value) for value in values])
    except (TypeError, ValueError):
        return None


def _almost_numbers(column: Array, name: str) -> list[str]:
    """Return a note if a column is categorical only because of a few words among its numbers."""
    strange = [row for row, value in enumerate(column.tolist()) if _numbers([value], name) is None]
    if len(strange) > len(column) / 2:
        return []
    where = f"{column[strange[0]]!r} at row {strange[0]} is not a number"
    return [f"column {name!r} is treated as categorical: {where}; write ? for a missing value"]


def _is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in MISSING
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _check_finite(values: Floats, name: str | None) -> None:
    rows = np.flatnonzero(np.isinf(values))
    if rows.size:
        where = "" if name is None else f" at row {rows[0]}, column {name!r}"
        raise ValueError(f"there is infinity{where}; replace it or drop the row first")


@dataclass(frozen=True)
class Form:
    """The features that a model needs: numbers scaled or not, one category of each column left out as redundant or not."""

    scaled: bool = False
    full_rank: bool = False


AS_THEY_ARE, SCALED, FULL_RANK = Form(), Form(scaled=True), Form(scaled=True, full_rank=True)


def prepared(columns: Columns, train: Ints, test: Ints, form: Form) -> tuple[Any, Any]:
    """Return the features of the training rows and of the test rows, the latter prepared as the former were."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a category that the training rows lack is expected: its 0/1 features are all 0
        parts = list(_parts(columns, train, test, form))
    seen, unseen = (list(side) for side in zip(*parts, strict=True))
    if columns.wide:
        return sp.hstack(seen).tocsr(), sp.hstack(unseen).tocsr()
    return np.hstack(seen), np.hstack(unseen)


def _parts(columns: Columns, train: Ints, test: Ints, form: Form) -> Iterator[tuple[Any, Any]]:
    if columns.number_names:
        seen, unseen = columns.numbers[train], columns.numbers[test]
        steps = [SimpleImputer(strategy="median", keep_empty_features=True)]
        if form.scaled:
            steps.append(MaxAbsScaler() if columns.sparse else StandardScaler())
        for step in steps:
            seen = step.fit_transform(seen)
            unseen = step.transform(unseen)
        yield (sp.csr_array(seen), sp.csr_array(unseen)) if columns.wide else (seen, unseen)
    if columns.word_names:
        drop = "first" if form.full_rank else None
        encoder = OneHotEncoder(drop=drop, handle_unknown="ignore", sparse_output=columns.wide)
        yield encoder.fit_transform(columns.words[train]), encoder.transform(columns.words[test])
