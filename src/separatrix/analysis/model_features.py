"""The examples of a comparison, and the feature matrices that classifiers need of them (L2 12).

The columns of a table are read as `train` reads them (`features/table.py`): what a column is for is decided once, by all
rows; its categories, scales, bins and frequencies of words are learned from the training rows of a fold alone. A matrix of
numbers, sparse or dense, is taken as it is or scaled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from separatrix.data.arrow_arrays import number_array
from separatrix.data.batches import MISSING
from separatrix.data.column_types import TEXT, has_leading_zeros, kind_of, numbers, trimmed
from separatrix.data.errors import no_column, shown
from separatrix.engine.labels import Codes
from separatrix.engine.rows import Array, Ints
from separatrix.features.columns.arrow_columns import frame_of
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn, SetColumn
from separatrix.features.columns.dates import DateColumn
from separatrix.features.columns.numbers import NumberColumn
from separatrix.features.columns.schema import Schema
from separatrix.features.columns.texts import TextColumn
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer

DENSE_BYTES = 1 << 30
LONGEST = (1 << 31) - 1
"""The most bytes of a column of strings that is looked at for numbers."""
TEXT_FEATURES = 1 << 18
"""How many features the words of a column are hashed to, as `train` does; those that no training row has are left out."""
KINDS = {
    "number": "numeric",
    "category": "categorical",
    "boolean": "boolean",
    "date": "date",
    "set": "set",
    "text": "text",
}
Part = NumberColumn | CategoryColumn | BooleanColumn | TextColumn


class Form(Enum):
    """The features that a model needs: see the values."""

    AS_THEY_ARE = "numbers as they are, counts of words"
    SCALED = "numbers with mean 0 and deviation 1, tf-idf of words"
    FULL_RANK = "scaled, and one category of each column, which follows from the others, left out"
    AS_IN_TRAIN = "the features of `separatrix train`: bins of numbers, tf-idf of words"


class Prepared(NamedTuple):
    """The features of the training rows and of the test rows, the latter prepared as the former were."""

    train: Any
    test: Any
    n_numbers: int = 0
    """Of features as they are: how many are numbers, which come first; the others are counts, 0 or more."""


class Examples(Protocol):
    """What cross-validation needs of the examples."""

    notes: list[str]

    @property
    def n(self) -> int:
        """The number of examples."""
        ...

    def describe(self) -> str:
        """Return the number of columns of each kind and of missing values, as a phrase."""
        ...

    def note_leaks(self, codes: Codes) -> None:
        """Note the columns that alone predict the classes."""
        ...

    def fold(self, train: Ints, test: Ints) -> Fold:
        """Return what makes the features of a fold."""
        ...


class Fold(Protocol):
    """The rows of a fold."""

    def prepared(self, form: Form) -> Prepared:
        """Return the features in a form."""
        ...


# Tables.


def table_of(
    X: Any, roles: dict[str, str], categorical: Sequence[str | int] = (), names: Sequence[str] | None = None
) -> TableExamples:
    """Return the examples of an array or a data frame; text that reads as numbers, or as missing, is what it says."""
    frame = frame_of(X)
    table = frame.table if isinstance(frame.table, pa.Table) else pa.Table.from_batches([frame.table])
    if names is not None:
        if len(names) != table.num_columns:
            raise ValueError(f"there are {len(names)} feature names for {table.num_columns} columns")
        table = table.rename_columns([str(name) for name in names])
    titles = table.column_names
    roles = roles | {titles[_place(column, titles)]: "category" for column in categorical}
    columns = [column if name in roles else _read(column, name) for name, column in zip(titles, table.columns, strict=True)]
    return TableExamples(pa.table(columns, names=titles), roles)


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


def _read(column: Any, name: str) -> Any:
    """Return a column of strings as the reader of files would: null where it says so, numbers where all others are."""
    if not (kinds.is_string(column.type) or kinds.is_large_string(column.type) or kinds.is_string_view(column.type)):
        return column
    if column.nbytes > LONGEST:
        return column
    words = trimmed(pa.concat_arrays(column.cast(pa.string()).chunks), MISSING) if len(column) else column
    if not len(column) or (kind := kind_of(words, mostly=1.0)) == TEXT or has_leading_zeros(words):
        return words
    values, lost = numbers(words, kind)
    if len(lost):
        raise ValueError(f"row {lost[0]}, column {name!r}: {shown(words[int(lost[0])].as_py())} is not a finite number")
    return values


@dataclass
class TableExamples:
    """The rows of a table: what its columns are for, and what there is to say about them."""

    table: pa.Table
    roles: dict[str, str]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Of the text nothing needs to be learned for the roles.
        text = TextFeaturizer(n_features=1, ngram_range=(1, 1), idf=False, keep_names=0)
        features = TableFeaturizer(roles=self.roles, numbers="none", text=text).fit(self.table)
        self.schema: Schema = features.schema
        self.leaks = features.leak_search()
        self.kinds = Counter(part.role for part in self.schema.parts.values())
        self.notes = [*self.schema.notes, *self.notes]

    @property
    def n(self) -> int:
        """The number of examples."""
        return int(self.table.num_rows)

    def note_leaks(self, codes: Codes) -> None:
        """Note the columns that alone predict the classes."""
        self.leaks.offer(self.table, number_array(codes), 0)
        self.notes += [str(telling) for telling in self.leaks.report()]

    def describe(self) -> str:
        """Return the number of columns of each kind and of missing values, as a phrase."""
        counts = [f"{self.kinds[role]:,} {word}" for role, word in KINDS.items() if self.kinds[role]]
        listed = " and ".join([", ".join(counts[:-1]), counts[-1]] if counts[1:] else counts)
        missing = sum(part.n_missing for part in self.schema.parts.values())
        gaps = f", {missing:,} missing value{'s' * (missing != 1)}" if missing else ""
        return f"{listed} column{'s' * (self.kinds.total() != 1)}{gaps}"

    def fold(self, train: Ints, test: Ints) -> TableFold:
        """Return what makes the features of a fold."""
        return TableFold(self, self.table.take(number_array(train)), self.table.take(number_array(test)))


class TableFold:
    """The rows of a fold; matrices that are the same in several forms are made once."""

    def __init__(self, examples: TableExamples, train: pa.Table, test: pa.Table) -> None:
        self.examples, self.train, self.test = examples, train, test
        self._made: dict[tuple[str, str], tuple[Schema, Any, Any]] = {}

    def prepared(self, form: Form) -> Prepared:
        """Return the features in a form."""
        how = "bins" if form is Form.AS_IN_TRAIN else "standard"
        schema, train, test = self._matrices(how, "counts" if form is Form.AS_THEY_ARE else "tf-idf")
        used = np.ones(schema.width, np.bool_)
        if any(isinstance(part, TextColumn) for part in schema.parts.values()):
            used = np.bincount(train.indices, minlength=schema.width) > 0
        if form is Form.FULL_RANK:
            used[_redundant(schema)] = False
        numbers, shifts, scales = _numbers(schema) if form is Form.AS_THEY_ARE else _NO_NUMBERS
        used[numbers] = False
        others, is_dense = np.flatnonzero(used), form is not Form.AS_IN_TRAIN and self._is_dense(schema.width)
        train, test = (
            _beside(X[:, numbers].toarray() / scales + shifts, X if used.all() else X[:, others], is_dense)
            for X in (train, test)
        )
        return Prepared(train, test, len(numbers))

    def _is_dense(self, width: int) -> bool:
        """Tell whether the features are a dense matrix: where most are not 0, or where it is small."""
        in_runs = not self.examples.kinds["text"] and not self.examples.kinds["set"]
        return in_runs and 8 * self.examples.n * width <= DENSE_BYTES

    def _matrices(self, numbers: str, words: str) -> tuple[Schema, Any, Any]:
        """Return what was learned from the training rows, and the features of both."""
        kinds = self.examples.kinds
        key = (numbers if kinds["number"] + kinds["date"] else "standard", words if kinds["text"] else "tf-idf")
        if key not in self._made:
            text = TextFeaturizer(n_features=TEXT_FEATURES, keep_names=0)
            if words == "counts":
                text.set_params(tf="count", idf=False, norm=None)
            features = TableFeaturizer(roles=self.examples.roles, numbers=key[0], text=text)
            schema = features.new_schema()
            schema.adopt_roles(self.examples.schema)
            features.adopt(schema).partial_fit(self.train)
            self._made[key] = (features.schema, features.transform(self.train), features.transform(self.test))
        return self._made[key]


def _parts(schema: Schema) -> Iterator[tuple[Part, int]]:
    """Yield each column, those of which a date is made included, with its first feature."""
    for name, whole in schema.parts.items():
        base = schema.bases[name]
        for part in whole.used if isinstance(whole, DateColumn) else [whole]:
            yield part, base
            base += part.width


def _numbers(schema: Schema) -> tuple[Ints, Array, Array]:
    """Return the features that are scaled numbers, what was subtracted from each, and what it was multiplied by."""
    parts = [(base, part) for part, base in _parts(schema) if isinstance(part, NumberColumn) and part.n_values]
    places = np.array([base for base, _ in parts], np.int64)
    return places, np.array([part.shift for _, part in parts]), np.array([part.scale for _, part in parts])


_NO_NUMBERS = np.empty(0, np.int64), np.empty(0), np.empty(0)


def _redundant(schema: Schema) -> list[int]:
    """Return the first category of each column: the others tell where it is."""
    parts = [(part, base) for part, base in _parts(schema) if isinstance(part, CategoryColumn)]
    return [base for part, base in parts if not isinstance(part, SetColumn) and part.width > 1]


def _beside(numbers: Array, others: Any, is_dense: bool) -> Any:
    """Return numbers and sparse features as one matrix."""
    if is_dense:
        return np.hstack([numbers, others.toarray()])
    return sp.hstack([sp.csr_matrix(numbers), others], format="csr") if numbers.shape[1] else others


# Matrices.


@dataclass
class MatrixExamples:
    """Rows of numbers, sparse or dense, that are no table: all of them features."""

    X: Any
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if 0 in self.X.shape:
            raise ValueError(f"X has shape {self.X.shape}: there is nothing to learn from")
        self.X = self.X.tocsr().astype(np.float64) if sp.issparse(self.X) else np.asarray(self.X, np.float64)
        infinite = np.isinf(self.X.data if sp.issparse(self.X) else self.X)
        if infinite.any():
            places = [] if sp.issparse(self.X) else np.argwhere(infinite)[0].tolist()
            where = " at row {}, column {}".format(*places) if places else ""
            raise ValueError(f"there is infinity{where}; replace it or drop the row first")

    @property
    def n(self) -> int:
        """The number of examples."""
        return int(self.X.shape[0])

    def note_leaks(self, codes: Codes) -> None:
        """Note nothing: `train` does not look at single features of such data either."""

    def describe(self) -> str:
        """Return the number of columns and of missing values, as a phrase."""
        values = self.X.data if sp.issparse(self.X) else self.X
        missing = int(np.isnan(values).sum())
        gaps = f", {missing:,} missing value{'s' * (missing != 1)}" if missing else ""
        d = self.X.shape[1]
        return f"{d:,} numeric column{'s' * (d != 1)}{' (sparse)' if sp.issparse(self.X) else ''}{gaps}"

    def fold(self, train: Ints, test: Ints) -> MatrixFold:
        """Return what makes the features of a fold."""
        return MatrixFold(self.X[train], self.X[test])


class MatrixFold(NamedTuple):
    """The rows of a fold."""

    train: Any
    test: Any

    def prepared(self, form: Form) -> Prepared:
        """Return the features in a form: missing numbers are the median, and sparse ones stay sparse."""
        train, test = self.train, self.test
        is_sparse = sp.issparse(train)
        steps: list[Any] = []
        if any(np.isnan(X.data if is_sparse else X).any() for X in (train, test)):
            steps.append(SimpleImputer(strategy="median", keep_empty_features=True))
        if form in (Form.SCALED, Form.FULL_RANK):
            steps.append(MaxAbsScaler() if is_sparse else StandardScaler())
        for step in steps:
            train = step.fit_transform(train)
            test = step.transform(test)
        return Prepared(train, test, 0 if is_sparse else train.shape[1])
