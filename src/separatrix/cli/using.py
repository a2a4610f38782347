"""A model and the rows it is used on: what `predict`, `evaluate` and `explain` share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError
from separatrix.data.in_memory import Examples, NotANumberError, against_the_rest, read_source
from separatrix.data.reading import Source, open_source
from separatrix.engine.rows import Array, Floats, Rows
from separatrix.modelfile.model import Model, load

__all__ = ["Use", "examples_of"]

NAMED = 10_000
"""Up to how many features are named in a certificate: the rest of the weights would be lost among them."""


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
        if source.schema is not None and not hasattr(self.model.features, "describe"):
            columns = [name for name in source.schema.names if name != self.label]
            if len(columns) != 1:
                raise DataError(
                    f"{source.name} has the columns {', '.join(columns)}, and {path} reads one column of texts: give it "
                    "that column alone (--header where its first line is a title); to evaluate, name the label by --label"
                )

    def batches(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, labels or None, the batch) for each batch of rows."""
        for batch in self.source:
            if self.model.features is None:
                yield self._fitting(batch.X), batch.y, batch
            else:
                y = batch.table[self.label] if self.labelled else None
                yield self.model.features.transform(self.features_of(batch)), y, batch

    def labelled_batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield (X, labels) for each batch; raise where there are none, or one is missing."""
        if not self.labelled:
            known = self.model.facts.get("label")
            raise DataError(f"{self.source.name}: which column is the label? the model's was {known!r}")
        for X, y, batch in self.batches():
            if y is None:
                raise DataError(f"{self.source.name}: there are no labels")
            if getattr(y, "null_count", 0):
                raise DataError(f"{batch.origin.place(y.is_null().index(True).as_py())}: the label is missing")
            yield X, y

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


def examples_of(data: str, label: str | None, positive: str | None, drop: list[str], model: Path | None) -> Examples:
    """Return the examples to certify: the numbers of a table or of rows, or the features that a model makes of them."""
    if model is None:
        try:
            return read_source(data, label, positive, drop=drop)
        except NotANumberError as problem:
            ways = "leave the column out by --drop, or have --model FILE, trained on these columns, make features of them"
            raise DataError(f"{problem}; {ways}") from None
    if drop:
        raise DataError("the model has its columns: with --model none can be dropped")
    use = Use(model, data, None, None, label=label, judging=True)
    parts, labels = zip(*use.labelled_batches(), strict=True)
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    named = use.model.features is not None and X.shape[1] <= NAMED
    names = tuple(use.model.features.get_feature_names_out().tolist()) if named else None
    y = np.array([label for some in labels for label in some.tolist()])
    found = Examples(f"{use.source.name} in the features of {model}", X, y, names)
    return found if positive is None else against_the_rest(found, positive)


def _kind(kind: str) -> str:
    return {"rows": "numbered features", "columns": "a table of columns"}[kind]
