"""A model and the rows it is applied to: what `predict`, `evaluate`, `explain`, `certify` and `check` share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.data.batches import CLASS_NAMES, LABEL_WORDS, MISSING, TableBatch
from separatrix.data.dialects.layouts import Layout
from separatrix.data.errors import DataError, NoExampleError, counted
from separatrix.data.in_memory import Examples, NotANumberError, against_the_rest, read_source
from separatrix.data.labels import Unlabelled, labels_at
from separatrix.data.reading import Source, open_source
from separatrix.engine.rows import Array, Floats, Ints, Rows
from separatrix.learners.calibration import probabilities
from separatrix.modelfile.archive import load
from separatrix.modelfile.model import Model

MOST_NAMES = 10_000
"""The most features that a certificate names."""
KINDS = {"rows": "numbered features", "columns": "a table of columns"}


class ModelRows:
    """A model of a file, and the rows of a source in its features.

    `reading` has parameters of `open_source`. With `need_labels` the source must have the label column, by default the one
    that the model was trained on.
    """

    def __init__(
        self,
        path: Path,
        data: str,
        reading: dict[str, Any],
        label: str | None = None,
        need_labels: bool = False,
        missing_label: str = "skip",
    ) -> None:
        self.model: Model = load(path, plain=True)
        self.estimator: Any = self.model.estimator
        self.classes: Array = self.estimator.classes_
        self.calibrated = hasattr(self.estimator, "slope_")
        facts, columns = self.model.facts, tuple(getattr(self.model.features, "feature_names_in_", ()))
        names = set(self.classes.tolist())
        words = tuple(marker for marker in LABEL_WORDS if marker in names)
        layout = Layout.of(columns, facts.get("label"), label, facts.get("delimiter"))
        label = label or facts.get("label")
        source = open_source(
            data,
            label=label if self.model.features is not None else None,
            label_needed=need_labels,
            columns=columns,
            layout=layout,
            missing=[marker for marker in MISSING if marker not in CLASS_NAMES or marker not in names],
            label_words=words,
            expected=getattr(self.model.features, "kinds_as_read", dict)(),
            unused=getattr(self.model.features, "left_out", tuple)(),
            **reading,
        )
        kind = "rows" if self.model.features is None else "columns"
        if source.kind != kind:
            raise DataError(f"{source.name} holds {KINDS[source.kind]}, but {path} was trained on {KINDS[kind]}")
        if kind == "rows" and reading.get("keep"):
            raise DataError(f"{source.name}: {source.format} data have no named columns that could be kept")
        self.source: Source = source
        self.skipping = reading.get("on_error") == "skip"
        self.unlabelled = Unlabelled.as_chosen(missing_label)
        self.unlabelled.words += words
        self.label: str | None = source.label if need_labels else label
        self.labelled = source.schema is None or self.label in source.schema.names
        if source.schema is not None and not hasattr(self.model.features, "describe"):
            others = [name for name in source.schema.names if name != self.label]
            if len(others) != 1:
                raise DataError(
                    f"{source.name} has the columns {', '.join(others)}, but {path} reads a single text column: give it a "
                    "file with that column alone (with --header if its first line is a title); to evaluate, name the "
                    "label column with --label"
                )

    @property
    def notes(self) -> list[str]:
        """What a person should know of how the rows were read so far."""
        notes = self.source.notes
        if self.source.skipped:
            notes.append(f"left out {counted(self.source.skipped, 'line')}, the first: {self.source.problems[0]}")
        return [*notes, self.unlabelled.note] if self.unlabelled.count else notes

    def notes_of_training(self, n: int) -> list[str]:
        """Say so where the source is what the model was trained on; `n` is how many labelled rows it has."""
        facts = self.model.facts
        if not facts.get("data") or facts.get("rows", 0) > n or self.source.fingerprint() != facts["data"]:
            return []
        which = "these rows" if facts["rows"] == n else f"{facts['rows']:,} of these rows"
        return [f"the model was trained on {which}, so the figures are optimistic: evaluate rows that it has not seen"]

    def batches(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (X, labels or None, the batch as read) for each batch of rows."""
        for batch in self.source:
            if self.model.features is None:
                yield self._widened(batch.X), batch.y, batch
            else:
                y = batch.table[self.label] if self.labelled else None
                table: Any = self.features_of(batch)
                if hasattr(self.model.features, "describe"):
                    table = TableBatch(table, batch.origin)  # messages name the line
                yield self.model.features.transform(table), y, batch

    def labelled_batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield (X, labels) of the rows that have a label; raise where there are no labels at all."""
        return ((X, y) for X, y, _, _ in self.labelled_rows())

    def labelled_rows(self) -> Iterator[tuple[Any, Any, Any, Ints]]:
        """Yield (X, labels, the batch as read, the places in it) of the rows that have a label."""
        if not self.labelled:
            trained_on = self.model.facts.get("label")
            raise DataError(f"{self.source.name} has no label column {trained_on!r}; name the label column with --label")
        for X, y, batch in self.batches():
            if y is None:
                raise DataError(f"{self.source.name} has no labels")
            kept = self.unlabelled.kept(y, batch.origin)
            if kept is None:
                yield X, y, batch, np.arange(len(batch))
            elif kept.any():
                which = np.flatnonzero(kept)
                yield X[which], labels_at(y, which), batch, which

    def features_of(self, batch: TableBatch) -> Any:
        """Return the columns of a batch without the label."""
        return batch.table.drop_columns([self.label]) if self.labelled else batch.table

    def _widened(self, X: Any) -> Any:
        """Return X as wide as the model: features that the model does not know have no weight."""
        d = self.estimator.n_features_in_
        if X.shape[1] == d:
            return X
        if not sp.issparse(X):
            raise DataError(f"{self.source.name} has {X.shape[1]} features, but the model was trained on {d}")
        return X[:, :d] if X.shape[1] > d else sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], d))

    def described(self, batch: Any, i: int) -> tuple[str, dict[str, Any]]:
        """Return where row i of a batch comes from, and its values by name without the label."""
        from separatrix.analysis.evaluating.counting import described_row, python_value

        place = batch.origin.place(i)
        if self.model.features is None:
            return place, described_row(batch.X, i)
        table = self.features_of(batch)
        return place, {name: python_value(table.column(name)[i]) for name in table.schema.names}

    def scores(self, X: Any) -> Floats:
        """Return the scores: one column per output."""
        scores: Floats = np.asarray(self.estimator.scores(Rows(sp.csr_matrix(X) if sp.issparse(X) else X)))
        return scores

    def predicted_codes(self, scores: Floats) -> Any:
        """Return the number of the predicted class for each row of scores."""
        return self.estimator.decide(scores, len(self.classes))

    def predicted(self, scores: Floats) -> Array:
        """Return the predicted label for each row of scores."""
        labels: Array = self.classes[self.predicted_codes(scores)]
        return labels

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probability of each class for each row of scores of a calibrated model."""
        return probabilities(scores, self.estimator.slope_, self.estimator.winners(scores, len(self.classes)))


def with_identifiers_noted(examples: Examples) -> Examples:
    """Return the examples of a table with a note on each column that looks like an identifier: no proof leaves one out."""
    from separatrix.features.columns.identifiers import signs_of

    notes = list(examples.notes)
    for j, name in enumerate(examples.columns):
        signs = signs_of(name, examples.X[:, j].astype(np.float64), examples.columns)
        if signs.words:
            notes.append(f"{signs.of(name)}: kept; leave it out with roles={{{name!r}: 'drop'}}")
    return replace(examples, notes=tuple(notes))


def read_examples(
    data: str,
    label: str | None,
    positive: str | None,
    drop: list[str],
    model: Path | None,
    reading: dict[str, Any],
    formula: str | None = None,
) -> Examples:
    """Return the examples to certify: the numbers of a source, or what a model or a formula makes of its columns."""
    if formula is not None:
        if label is not None or drop or model is not None:
            raise DataError("--label, --drop and --model cannot be combined with --model-formula, which names the columns")
        return _of_formula(data, formula, positive, reading)
    if model is None:
        try:
            return with_identifiers_noted(read_source(data, label, positive, drop=drop, **reading))
        except NotANumberError as error:
            remedy = (
                "leave the column out with --drop, or use --model FILE, trained on these columns, to make features of them"
            )
            raise DataError(f"{error}; {remedy}") from None
    if drop:
        raise DataError("--drop cannot be combined with --model")
    rows = ModelRows(model, data, reading, label, need_labels=True)
    batches = list(rows.labelled_batches())
    if not batches:
        raise NoExampleError(f"{rows.source.name}: there is no row with a label; {rows.unlabelled.note}")
    parts, labels = zip(*batches, strict=True)
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    features, names = rows.model.features, None
    if features is not None and X.shape[1] <= MOST_NAMES:
        names = tuple(features.get_feature_names_out().tolist())
    y = np.array([label for batch in labels for label in batch.tolist()])
    examples = Examples(f"{rows.source.name} in the features of {model}", X, y, names, notes=tuple(rows.notes))
    return examples if positive is None else against_the_rest(examples, positive)


def _of_formula(data: str, formula: str, positive: str | None, reading: dict[str, Any]) -> Examples:
    """Return the design matrix of a formula and the columns of a source."""
    import pyarrow as pa

    from separatrix.analysis.separation.designs import of_formula

    outcome = re.fullmatch(r"""\s*(?:([^\W\d]\w*)|Q\((['"])(.+)\2\))\s*""", formula.partition("~")[0])
    source = read_source(data, (outcome[1] or outcome[3]) if outcome else None, mixed=True, **reading)
    if not isinstance(source.X, pa.Table):
        raise DataError(f"{source.name} holds numbered features, but a formula needs a table with named columns")
    try:
        design = of_formula(formula, source.X.append_column(str(source.label), pa.array(source.y.tolist())))
    except ImportError as error:
        raise DataError(str(error)) from None
    name, notes = f"{source.name} by {formula.strip()}", (*source.notes, *design.notes)
    examples = Examples(name, design.X, design.y, tuple(design.names or ()), False, notes=notes, label=design.outcome)
    return examples if positive is None else against_the_rest(examples, positive)
