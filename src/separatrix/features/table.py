"""Tables as features: numbers, dates, categories, sets, truth values and texts, side by side in one matrix (L2 12)."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import WRITTEN
from separatrix.engine.parameters import (
    Constraint,
    NotFittedError,
    Parameterized,
    choices,
    float_type,
    instance_of,
    none,
    whole,
)
from separatrix.engine.rows import Array, Floats
from separatrix.features.columns import NUMBERS
from separatrix.features.columns.arrow_columns import ARROW, NUMBER, TEXT, frame_of
from separatrix.features.columns.leaks import LeakSearch
from separatrix.features.columns.misfits import Misfits
from separatrix.features.columns.roles import DROP, Role
from separatrix.features.columns.schema import Schema, Settings
from separatrix.features.columns.texts import TextColumn
from separatrix.features.text import TextFeaturizer
from separatrix.features.words.arrow_text import is_column, text_column


class TableFeaturizer(Parameterized):
    """Turn a table of mixed columns into a sparse matrix, without scikit-learn.

    `separatrix.TableFeatures` is this class as a scikit-learn transformer, and describes the parameters.
    """

    saved_as = "TableFeatures"
    not_fitted_error: ClassVar[type[Exception]] = NotFittedError
    text_class: ClassVar[type[TextFeaturizer]] = TextFeaturizer
    """The class of the parameter `text` that is read from a file."""
    constraints: ClassVar[dict[str, Constraint]] = {
        "roles": instance_of(dict) | none,
        "numbers": choices(*NUMBERS),
        "n_bins": whole(2, 1 << 16) | choices("auto"),
        "code": choices("thermometer", "one-hot"),
        "max_categories": whole(1, 1 << 30),
        "n_hashed": whole(1, 1 << 30),
        "text": Constraint(("a TextFeatures", lambda value: isinstance(value, TextFeaturizer))) | none,
        "dtype": float_type,
    }

    def __init__(
        self,
        *,
        roles: dict[str, str] | None = None,
        numbers: str = "bins",
        n_bins: int | str = "auto",
        code: str = "thermometer",
        max_categories: int = 10_000,
        n_hashed: int = 2**12,
        text: TextFeaturizer | None = None,
        dtype: Any = np.float64,
    ) -> None:
        self.roles = roles
        self.numbers = numbers
        self.n_bins = n_bins
        self.code = code
        self.max_categories = max_categories
        self.n_hashed = n_hashed
        self.text = text
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the columns' roles, categories and scales.

        Parameters
        ----------
        X : pyarrow, pandas or polars table, dictionary of columns, batch of a reader, or two-dimensional array
        y : ignored
        """
        schema = self.new_schema()
        schema.take(frame_of(X))
        schema.check()
        return self.adopt(schema)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some more rows: batches of any size give the same as all at once. Learning ends with `transform`."""
        if not self.is_fitted():
            schema = self.new_schema()
        else:
            schema = self._schema
            if schema.settled:
                raise ValueError("the features are fixed once transform has used them; call fit() to start again")
        schema.take(frame_of(X))
        return self.adopt(schema)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the features of a table, a row each: a CSR matrix with sorted indices.

        The columns that were learned from must be there, in any order; others are passed over. A category that was never met
        has no feature.
        """
        return self.schema.features(frame_of(X), self.dtype)

    def as_table(self, X: Any) -> Any:
        """Return X; a list of texts, or a column by itself, as a table if only one column was learned from."""
        if self.n_features_in_ != 1 or not is_column(X):
            return X
        return {str(self.feature_names_in_[0]): text_column(X)}

    def matrix(self, X: Any) -> sp.csr_matrix:
        """Return the features of a table, or of its only column, as a CSR matrix, whatever `set_output` says."""
        return TableFeaturizer.transform(self, self.as_table(X))

    def new_schema(self) -> Schema:
        """Return a schema that has learned nothing, with the parameters of now; raises where they are wrong."""
        self.check_parameters()
        thermometer = self.code == "thermometer"
        roles = {str(name): role for name, role in (self.roles or {}).items()}
        n_bins = None if self.n_bins == "auto" else int(self.n_bins)
        how = (self.numbers, n_bins, thermometer, int(self.max_categories), int(self.n_hashed))
        text = None if self.text is None else TextFeaturizer(**self.text.get_params())
        return Schema(Settings(roles, *how, text))

    def adopt(self, schema: Schema) -> Self:
        """Take over what was learned of the columns."""
        self._schema = schema
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        return self

    @property
    def schema(self) -> Schema:
        """What was learned of the columns, which is fixed from now on; raises before the fit."""
        schema = self.schema_so_far
        schema.settle()
        return schema

    @property
    def schema_so_far(self) -> Schema:
        """What was learned of the columns up to now, which may change with more rows; raises before the fit."""
        if not self.is_fitted():
            raise self.not_fitted_error("this TableFeatures has learned nothing yet: call fit or partial_fit first")
        return self._schema

    def is_fitted(self) -> bool:
        """Tell whether something was learned."""
        return hasattr(self, "_schema")

    @property
    def roles_(self) -> dict[str, str]:
        """The role of each column."""
        return {name: role.role for name, role in self.schema.roles.items()}

    @property
    def notes_(self) -> list[str]:
        """What was left out, and why."""
        return self.schema.notes

    def leak_search(self) -> LeakSearch:
        """Return a search, among the columns that are used, for those that alone predict the label."""
        return LeakSearch(self.schema)

    @property
    def n_rows_(self) -> int:
        """How many rows were learned from."""
        return self.schema.n_rows

    @property
    def n_features_out_(self) -> int:
        """The number of features."""
        return self.schema.width

    def describe(self) -> str:
        """Return a table of the columns, for people: role, number of features, missing values; and the notes."""
        schema = self.schema
        rows = [("column", "role", "features", "missing")]
        for name, (role, *_) in schema.roles.items():
            part = schema.parts.get(name)
            numbers = ("", "") if part is None else (f"{part.width:,}", f"{part.n_missing:,}" if part.n_missing else "")
            rows.append((name if name.isprintable() else repr(name), "dropped" if role == DROP else role, *numbers))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, *(f"note: {note}" for note in schema.notes)])

    def names_of(self, feature: int) -> list[str]:
        """Return what a feature stands for: "age > 37", "job=clerk", "job is missing", "remarks: call me".

        More than one name means a collision of hashed values, none that no value met so far is hashed there.
        """
        part, k = self._place(feature)
        names: list[str] = part.names_of(k)
        return names

    def names_in(self, X: Any) -> dict[int, list[str]]:
        """Return what hashed features stand for in the rows of a table; other features are left out.

        Two values of these rows that share a feature are both named; those of other rows are not, as they are by `names_of`.
        """
        return self.schema.names_in(frame_of(X))

    def column_spans(self) -> dict[str, slice]:
        """Return which features each column has, of those that have any."""
        schema = self.schema
        spans = {name: slice(base, base + schema.parts[name].width) for name, base in schema.bases.items()}
        return {name: span for name, span in spans.items() if span.stop > span.start}

    def spreads(self, weights: Floats) -> dict[str, float | None]:
        """Return, for each column that has features, how much its part of a score varies by what is known of its values.

        `weights` has a row for each class. None: not known without rows.
        """
        return {name: self.schema.parts[name].spread(weights[:, span]) for name, span in self.column_spans().items()}

    def sums_by_column(self, features: Any, values: Any) -> dict[str, float]:
        """Return, for each column that has features, the sum of the values that some of its features were given.

        Examples
        --------
        >>> from separatrix import TableFeatures
        >>> features = TableFeatures().fit({"age": [30, 40, 50], "job": ["clerk", "smith", "clerk"]})
        >>> row = features.transform({"age": [45], "job": ["smith"]})
        >>> features.sums_by_column(row.indices, row.data)
        {'age': 2.0, 'job': 1.0}
        """
        spans = self.column_spans()
        at = np.searchsorted([span.start for span in spans.values()], features, side="right") - 1
        summands = np.asarray(values, dtype=np.float64)
        return {name: math.fsum(summands[at == k].tolist()) for k, name in enumerate(spans)}

    def has_unnamed(self, feature: int) -> bool:
        """Tell whether values without a name were hashed to the feature."""
        part, k = self._place(feature)
        return bool(part.has_unnamed(k))

    def _place(self, feature: int) -> tuple[Any, int]:
        """Return the column of a feature, and its number there."""
        schema = self.schema
        if not 0 <= feature < schema.width:
            raise IndexError(f"there is no feature {feature}: there are {schema.width}")
        name, span = [(name, span) for name, span in self.column_spans().items() if span.start <= feature][-1]
        return schema.parts[name], int(feature) - span.start

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return a name for each feature: what it stands for with " | " in between, or "column: column k" where nothing."""
        names: list[str] = []
        for part in self.schema.parts.values():
            if isinstance(part, TextColumn):
                names += part.all_names()
                continue
            for k in range(part.width):
                meanings = part.names_of(k) + ["…"] * part.has_unnamed(k)
                names.append(" | ".join(meanings) or f"{part.name}: column {k}")
        return np.array(names, dtype=object)

    def get_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return all that `transform` needs, and the parameters, as JSON values and plain arrays."""
        schema = self.schema
        columns: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for j, name in enumerate(schema.names):
            column: dict[str, Any] = {"name": name, "kind": schema.kinds[name], "spelled": schema.spelled.get(name, False)}
            column |= schema.roles[name].state()
            if name in schema.misfits:
                column["misfits"] = list(schema.misfits[name])
            if name in schema.parts:
                column["learned"], of_column = schema.parts[name].state()
                arrays |= {f"{j}.{key}": array for key, array in of_column.items()}
            columns.append(column)
        parameters = self.get_params(deep=False) | {"dtype": np.dtype(self.dtype).name}
        if self.text is not None:
            parameters["text"] = self.text.json_parameters()
        return {"parameters": parameters, "n_rows": schema.n_rows, "columns": columns}, arrays

    @classmethod
    def like(cls, other: TableFeaturizer) -> Self:
        """Return the same features, learned or not, as an object of this class."""
        features = cls(**other.get_params(deep=False))
        if other.text is not None:
            features.text = cls.text_class(**other.text.get_params())
        return features.adopt(other._schema) if other.is_fitted() else features

    def plain(self) -> TableFeaturizer:
        """Return the same features, learned or not, as an object that needs no scikit-learn."""
        return TableFeaturizer.like(self)

    def kinds_as_read(self) -> dict[str, str]:
        """Return what columns held when they were learned, "number" or "text", where no role was chosen for them.

        A text that is read as numbers is "written".

        Of a column with a chosen role, this is told where its values would not be the same if they were read as numbers.
        """
        schema = self.schema
        kinds = {
            name: kind for name, kind in schema.kinds.items() if not schema.spelled.get(name) or schema.is_spelled_out(name)
        }
        kinds = {name: kind for name, kind in kinds.items() if kind in (NUMBER, TEXT) and name in schema.parts}
        return {name: WRITTEN if schema.is_in_notation(name) else str(kind) for name, kind in kinds.items()}

    def left_out(self) -> list[str]:
        """Return the columns that have no features, whatever they hold."""
        return [name for name, role in self.schema.roles.items() if role.role == DROP]

    def without_names(self) -> TableFeaturizer:
        """Return the same features without the names of hashed words, which `transform` does not need."""
        return self.plain().adopt(self.schema.without_names())

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the transformer that `get_state` described."""
        parameters = dict(state["parameters"])
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        if parameters["text"] is not None:
            parameters["text"] = cls.text_class.from_parameters(parameters["text"])
        features = cls(**parameters)
        schema = features.new_schema()
        for column in state["columns"]:
            name = column["name"]
            schema.names.append(name)
            if column["kind"] is not None and column["kind"] not in ARROW:
                raise ValueError(f"the column {name!r} is of the kind {column['kind']!r}, which is unknown")
            schema.kinds[name], schema.spelled[name] = column["kind"], bool(column["spelled"])
            schema.roles[name] = Role.from_state(column)
            if "misfits" in column:
                schema.misfits[name] = Misfits(*column["misfits"])
        schema.make_parts()
        for j, column in enumerate(state["columns"]):
            if column["name"] in schema.parts:
                of_column = {key.removeprefix(f"{j}."): array for key, array in arrays.items() if key.startswith(f"{j}.")}
                schema.parts[column["name"]].restore(column["learned"], of_column)
        schema.n_rows, schema.settled = int(state["n_rows"]), True
        return features.adopt(schema)
