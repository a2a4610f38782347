"""Columns of texts.

A text is a row of length 1, while a number in thirty bins has features whose variances add up to five. A learner corrects
features in proportion to their values, so it would learn from the numbers and hardly from the text, however little the
numbers tell. So the features of each text are scaled until they vary about as much as those of all other columns together.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

import scipy.sparse as sp

from separatrix.engine.rows import Array, Floats
from separatrix.features.text import TextFeaturizer


class TextColumn:
    """One column of texts: its features are those of `TextFeaturizer`."""

    role = "text"

    def __init__(self, name: str, features: TextFeaturizer) -> None:
        self.name, self.features = name, features
        self.n = self.n_missing = 0
        self.alone = False
        self.scale = 1.0

    def learn(self, column: Any, keys: Array) -> None:
        """Learn from a block of texts."""
        self.n_missing += column.null_count
        self.n += len(column) - column.null_count
        self.features.partial_fit(column)

    def settle(self) -> None:
        """Fix the features: they are."""

    def matrix(self, column: Any, dtype: Any) -> sp.csr_matrix:
        """Return the features of each text, a row each."""
        rows = self.features.transform(column)
        if self.scale != 1.0:
            rows.data *= rows.data.dtype.type(self.scale)
        return rows

    @property
    def width(self) -> int:
        """How many features there are."""
        return self.features.n_features_out_

    def names_of(self, k: int) -> list[str]:
        """Return the n-grams of feature k."""
        names = self.features.names_of(k)
        return names if self.alone else [f"{self.name}: {name}" for name in names]

    def names_in(self, column: Any) -> dict[int, list[str]]:
        """Return the n-grams of some texts by their hashed features."""
        by_feature = self.features.names_in(column)
        return {k: names if self.alone else [f"{self.name}: {name}" for name in names] for k, names in by_feature.items()}

    def spread(self, weights: Floats) -> float | None:
        """Return None: how much the part of a text in a score varies cannot be told without texts."""
        return None

    def all_names(self) -> list[str]:
        """Return a name for each feature."""
        names = self.features.get_feature_names_out().tolist()
        return names if self.alone else [f"{self.name}: {name}" for name in names]

    def has_unnamed(self, k: int) -> bool:
        """Tell whether n-grams without a name were hashed to feature k."""
        return self.features.has_unnamed(k)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned."""
        state, arrays = self.features.get_state()
        scale = {} if self.scale == 1.0 else {"scale": self.scale}
        return {"n": self.n, "n_missing": self.n_missing, "text": state} | scale, arrays

    def restore(self, state: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take back what `state` gave."""
        self.n, self.n_missing = int(state["n"]), int(state["n_missing"])
        self.scale = float(state.get("scale", 1.0))
        self.features = TextFeaturizer.from_state(state["text"], arrays)


def balance(columns: Iterable[Any]) -> None:
    """Scale texts of length 1 until they vary about as much as all columns beside the texts, once these are settled."""
    columns = list(columns)
    variance = sum(column.variance for column in columns if not isinstance(column, TextColumn))
    for column in columns:
        if isinstance(column, TextColumn) and column.features.norm is not None:
            column.scale = sqrt(max(1.0, variance))
