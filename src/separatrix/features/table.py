"""Tables as features: numbers, categories, truth values and texts, side by side in one sparse matrix (L2 12)."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, Options, StrOptions

from separatrix.engine.rows import Array
from separatrix.features.columns.arrow_columns import frame_of
from separatrix.features.columns.roles import DROP, Role
from separatrix.features.columns.schema import Schema, Settings, TextColumn
from separatrix.features.text import TextFeatures


class TableFeatures(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg, misc]
    """Turn a table of mixed columns into a sparse matrix.

    Each column gets a role from its type and its first rows (at most 16,384): numbers, categories, truth values, texts, or
    dropped; `roles` overrides. Missing values (None, NaN, null) have a feature of their own where some were learned from,
    and none otherwise. Learning goes batch by batch in bounded memory, and the batches leave no trace in the result.

    Parameters
    ----------
    roles : of columns by name: "number", "category", "boolean", "text" or "drop"
    numbers : "bins": quantile bins of the values that are not 0, which is a bin of its own; "standard": mean 0 (unless most
        values are 0) and deviation 1; "max-abs": divided by the largest size; "none": as they are
    n_bins : about how many bins; a value as frequent as a bin has one to itself. "auto": 32, and fewer, down to 4, where
        there are more than 64 columns of numbers
    code : of bins. "thermometer": a feature for each threshold, "age > 37", and 1 for all that are exceeded; "one-hot": a
        feature for each bin
    max_categories : how many categories of a column get a feature each, the first come first; later ones share hashed ones
    n_hashed : how many hashed features such a column has
    text : the `TextFeatures` for columns of text; by default its defaults, with 2^20 features divided among the columns
    dtype : float64 or float32

    Attributes
    ----------
    roles_ : the role of each column
    notes_ : what was left out, and why
    n_features_out_ : the number of features
    n_rows_ : how many rows were learned from

    Examples
    --------
    >>> from separatrix import TableFeatures
    >>> table = {"age": [22, 38, 38, None], "job": ["clerk", "cook", None, "clerk"], "gain": [0.0, 0.0, 0.0, 5178.0]}
    >>> features = TableFeatures().fit(table)
    >>> features.get_feature_names_out().tolist()
    ['age > 22', 'age is missing', 'job=clerk', 'job=cook', 'job is missing', 'gain > 0']
    >>> features.transform({"age": [30], "job": ["pilot"], "gain": [100.0]}).toarray()
    array([[1., 0., 0., 0., 0., 1.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "roles": [dict, None],
        "numbers": [StrOptions({"none", "standard", "max-abs", "bins"})],
        "n_bins": [Interval(Integral, 2, 1 << 16, closed="both"), StrOptions({"auto"})],
        "code": [StrOptions({"thermometer", "one-hot"})],
        "max_categories": [Interval(Integral, 1, 1 << 30, closed="both")],
        "n_hashed": [Interval(Integral, 1, 1 << 30, closed="both")],
        "text": [TextFeatures, None],
        "dtype": [Options(type, {np.float32, np.float64})],
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
        text: TextFeatures | None = None,
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
        schema = self._begin()
        schema.take(frame_of(X))
        schema.check()
        return self._publish(schema)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some more rows: batches of any size give the same as all at once. Learning ends with `transform`."""
        if not self.__sklearn_is_fitted__():
            schema = self._begin()
        else:
            schema = self._learned
            if schema.settled:
                raise ValueError("the features are settled once they are used: learn first, then transform; or fit anew")
        schema.take(frame_of(X))
        return self._publish(schema)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the features of a table, a row each: a CSR matrix with sorted indices.

        The columns that were learned from must be there, in any order; others are passed over. A category that was never met
        has no feature.
        """
        return self._known().features(frame_of(X), self.dtype)

    def _begin(self) -> Schema:
        self._validate_params()
        thermometer = self.code == "thermometer"
        roles = {str(name): role for name, role in (self.roles or {}).items()}
        n_bins = None if self.n_bins == "auto" else int(self.n_bins)
        how = (self.numbers, n_bins, thermometer, int(self.max_categories), int(self.n_hashed))
        return Schema(Settings(roles, *how, self.text))

    def _publish(self, schema: Schema) -> Self:
        self._learned = schema
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.n_features_in_ = len(schema.names)
        return self

    def _known(self) -> Schema:
        """Return what was learned, which is settled from now on."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this TableFeatures has learned nothing yet: call fit or partial_fit first")
        self._learned.settle()
        return self._learned

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    @property
    def roles_(self) -> dict[str, str]:
        """The role of each column."""
        return {name: role.role for name, role in self._known().roles.items()}

    @property
    def notes_(self) -> list[str]:
        """What was left out, and why."""
        return self._known().notes

    @property
    def n_rows_(self) -> int:
        """How many rows were learned from."""
        return self._known().n_rows

    @property
    def n_features_out_(self) -> int:
        """The number of features."""
        return self._known().width

    def describe(self) -> str:
        """Return a table of the columns, for people: role, number of features, missing values; and the notes."""
        schema = self._known()
        rows = [("column", "role", "features", "missing")]
        for name, (role, _) in schema.roles.items():
            part = schema.parts.get(name)
            numbers = ("", "") if part is None else (f"{part.width:,}", f"{part.n_missing:,}" if part.n_missing else "")
            rows.append((name, "dropped" if role == DROP else role, *numbers))
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
        schema = self._known()
        names = [name for name, base in schema.bases.items() if schema.parts[name].width]
        at = np.searchsorted([schema.bases[name] for name in names], features, side="right") - 1
        given = np.asarray(values, dtype=np.float64)
        return {name: math.fsum(given[at == k].tolist()) for k, name in enumerate(names)}

    def has_unnamed(self, feature: int) -> bool:
        """Tell whether values without a name were hashed to the feature."""
        part, k = self._place(feature)
        return bool(part.has_unnamed(k))

    def _place(self, feature: int) -> tuple[Any, int]:
        """Return the column of a feature, and its number there."""
        schema = self._known()
        if not 0 <= feature < schema.width:
            raise IndexError(f"there is no feature {feature}: there are {schema.width}")
        bases = schema.bases
        name = [name for name in bases if bases[name] <= feature and schema.parts[name].width][-1]
        return schema.parts[name], int(feature) - bases[name]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return a name for each feature: what it stands for with " | " in between, or "column: column k" where nothing."""
        names: list[str] = []
        for part in self._known().parts.values():
            if isinstance(part, TextColumn):
                names += part.all_names()
                continue
            for k in range(part.width):
                some = part.names_of(k) + ["…"] * part.has_unnamed(k)
                names.append(" | ".join(some) or f"{part.name}: column {k}")
        return np.array(names, dtype=object)

    def get_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return all that `transform` needs, and the parameters, as JSON values and plain arrays."""
        schema = self._known()
        columns: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for j, name in enumerate(schema.names):
            role, note = schema.roles[name]
            column: dict[str, Any] = {"name": name, "kind": schema.kinds[name], "spelled": schema.spelled.get(name, False)}
            column |= {"role": role, "note": note}
            if name in schema.parts:
                column["learned"], some = schema.parts[name].state()
                arrays |= {f"{j}.{key}": array for key, array in some.items()}
            columns.append(column)
        parameters = self.get_params(deep=False) | {"dtype": np.dtype(self.dtype).name}
        if self.text is not None:
            parameters["text"] = _text_parameters(self.text)
        return {"parameters": parameters, "n_rows": schema.n_rows, "columns": columns}, arrays

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """Return the transformer that `get_state` described."""
        parameters = dict(state["parameters"])
        parameters["dtype"] = np.dtype(parameters["dtype"]).type
        if parameters["text"] is not None:
            parameters["text"] = _text_of(parameters["text"])
        features = cls(**parameters)
        schema = features._begin()
        for column in state["columns"]:
            name = column["name"]
            schema.names.append(name)
            schema.kinds[name], schema.spelled[name] = column["kind"], bool(column["spelled"])
            schema.roles[name] = Role(column["role"], column["note"])
        schema.make_parts()
        for j, column in enumerate(state["columns"]):
            if column["name"] in schema.parts:
                some = {key.removeprefix(f"{j}."): array for key, array in arrays.items() if key.startswith(f"{j}.")}
                schema.parts[column["name"]].restore(column["learned"], some)
        schema.n_rows, schema.settled = int(state["n_rows"]), True
        return features._publish(schema)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the transformer takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags


def _text_parameters(text: TextFeatures) -> dict[str, Any]:
    parameters: dict[str, Any] = text.get_params()
    return parameters | {"ngram_range": list(text.ngram_range), "dtype": np.dtype(text.dtype).name}


def _text_of(parameters: dict[str, Any]) -> TextFeatures:
    kept = {"ngram_range": tuple(parameters["ngram_range"]), "dtype": np.dtype(parameters["dtype"]).type}
    return TextFeatures(**(parameters | kept))
