"""A model and the rows it is used on: what `predict`, `evaluate` and `explain` share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError
from separatrix.data.reading import Source, open_source
from separatrix.modelfile import Model, load
from separatrix.rows import Array, Floats, Rows

__all__ = ["Use"]


class Use:
    """A loaded model, and rows as it wants them."""

    def __init__(
        self,
        path: Path,
        data: str,
        form: str | None,
        header: bool | None,
        on_error: str = "raise",
        label: str | None = None,
        judging: bool = False,
    ) -> None:
        self.model: Model = load(path)
        self.estimator: Any = self.model.estimator
        self.classes: Array = self.estimator.classes_
        known = label or self.model.facts.get("label")
        source = open_source(
            data,
            format=form,
            header="auto" if header is None else header,
            on_error=on_error,
            label=known if judging and self.model.features is not None else None,
            columns=getattr(self.model.features, "feature_names_in_", ()),
        )
        trained = "rows" if self.model.features is None else "columns"
        if source.kind != trained:
            raise DataError(
                f"{source.name} holds {_kind(source.kind)}, but {path} was trained on {_kind(trained)}: they must be alike"
            )
        self.source: Source = source
        self.label: str | None = source.label if judging else known
        self.labelled = source.schema is None or self.label in source.schema.names

    def batches(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, labels or None, the batch) for each batch of rows."""
        for batch in self.source:
            if self.model.features is None:
                yield self._fitting(batch.X), batch.y, batch
            else:
                y = batch.table[self.label] if self.labelled else None
                yield self.model.features.transform(self.features_of(batch)), y, batch

    def features_of(self, batch: TableBatch) -> Any:
        """Return the columns of a batch without that of the label."""
        return batch.table.drop_columns([self.label]) if self.labelled else batch.table

    def _fitting(self, X: Any) -> Any:
        """Return X as wide as the model: features that it never met have no weight."""
        d = self.estimator.n_features_in_
        if X.shape[1] == d:
            return X
        if not sp.issparse(X):
            raise DataError(f"{self.source.name} has {X.shape[1]} features, but the model was trained on {d}")
        return X[:, :d] if X.shape[1] > d else sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], d))

    def scores(self, X: Any) -> Floats:
        """Return the scores, a column for each output."""
        found: Floats = np.asarray(self.estimator._scores(Rows(sp.csr_matrix(X) if sp.issparse(X) else X)))
        return found

    def decided(self, scores: Floats) -> Array:
        """Return the classes that the scores decide for."""
        chosen: Array = self.classes[self.estimator._decide(scores, len(self.classes))]
        return chosen


def _kind(kind: str) -> str:
    return {"rows": "numbered features", "columns": "a table of columns"}[kind]
