"""Examples in memory, from any source: what `certify`, `check` and `trace` read.

Numbers of a text are read as Python reads them: whole numbers exactly, others as the nearest float64. Every feature must be
a number and none may be missing; labels are whole numbers where all are, else text.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.batches import TableBatch
from separatrix.data.errors import DataError, NoExampleError, ReadAgainError, counted, did_you_mean, named, no_column, shown
from separatrix.data.labels import Unlabelled, alike, as_one, one_class, words_kept
from separatrix.data.reading import Source, open_source
from separatrix.data.streams import STDIN, all_bytes, is_pipe

Array = NDArray[Any]


class NotANumberError(DataError):
    """A table has a value that is missing, or no number."""


@dataclass(frozen=True)
class Examples:
    """Examples with their labels, and the names of the columns where there are any."""

    name: str
    X: Any
    y: Array
    feature_names: tuple[str, ...] | None = None
    bias: bool = True
    """Whether the examples are meant to be separated with a bias: those of the lectures mostly are not."""
    tie: str = "mistake"
    """What a score of 0 means there."""
    notes: tuple[str, ...] = ()
    """What a person should know of how they were read."""
    columns: tuple[str, ...] = ()
    """What the columns of a table are called, also where they have no titles."""
    label: str | None = None
    """The column of the labels."""
    all_columns: tuple[str, ...] = ()
    """The columns of the file in their order, the label among them."""


def read_source(
    name: str,
    label: str | None = None,
    positive: str | None = None,
    mixed: bool = False,
    content: bytes | None = None,
    drop: Sequence[str] = (),
    missing_label: str = "skip",
    **reading: Any,
) -> Examples:
    """Return the examples of a path, a pattern, a pipe or a built-in name; with `positive`, that class against the rest.

    The columns to `drop` of a table are left out. Where columns may be `mixed`, not all are numbers, and X of a table
    is one of pyarrow's, read as `train` reads it, which still has the columns to drop. Rows without a label are left out,
    or as `missing_label` says: "skip", "raise" or "keep". Where the `content` of a CSV file is at hand, nothing is opened,
    and the name serves for messages. `reading` has further parameters of `open_source`: how text is written, and what is
    done with lines that cannot be read.

    Examples
    --------
    >>> read_source("lecture:L2.4").X.tolist()
    [[3.0, 2.0], [-2.0, 2.0], [-2.0, -3.0]]
    """
    place: Any = name
    if content is not None:
        reading["format"] = "csv"
    if content is not None or is_pipe(name):
        place = io.BytesIO(all_bytes(name) if content is None else content)
        place.name = "standard input" if content is None and name == STDIN else name
    words = words_kept(missing_label)
    source = open_source(place, label=label, settle=not mixed, unused=drop, label_words=words, **reading)
    if drop and source.kind == "rows" and not mixed:
        raise DataError(f"{source.name} has numbered features, and no column to leave out: {', '.join(drop)}")
    with nullcontext() if source.rereadable or not mixed else source.kept(None):
        examples = _examples(source, mixed, drop, missing_label)
    return examples if positive is None else against_the_rest(examples, positive)


def _examples(source: Source, mixed: bool, drop: Sequence[str], missing_label: str) -> Examples:
    """Return the examples of a source, which is read again where a column turns out to be text late in the data."""
    while True:
        unlabelled = Unlabelled.as_chosen(missing_label)
        if source.kind == "rows":
            return _from_rows(source, unlabelled)
        try:
            return _from_table(source, mixed, drop, unlabelled)
        except ReadAgainError:
            continue


def _from_rows(source: Source, unlabelled: Unlabelled) -> Examples:
    parts, labels = [], []
    for batch in source:
        if batch.y is None:
            raise DataError(f"{source.name}: there are no labels; save them as y")
        kept = unlabelled.kept(batch.y, batch.origin)
        parts.append(batch.X if kept is None else batch.X[kept])
        labels.append(batch.y if kept is None else batch.y[kept])
    X: Any
    if sp.issparse(parts[0]):
        width = max(part.shape[1] for part in parts)
        parts = [sp.csr_matrix((part.data, part.indices, part.indptr), (part.shape[0], width)) for part in parts]
        X = parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")
    else:
        X = np.concatenate(parts)
    reader = source.reader
    bias, tie = getattr(reader, "bias", True), getattr(reader, "tie", "mistake")
    y = _labels(np.concatenate(labels))
    return Examples(source.name, X, y, source.feature_names, bias, tie, _notes(source, unlabelled, y))


def _notes(source: Source, unlabelled: Unlabelled, y: Array) -> tuple[str, ...]:
    """Return what there is to say of the reading of examples; raise where rows without a label leave none, or one class."""
    if unlabelled.count and len(y) and (y == y[0]).all():
        raise DataError(f"{source.name}: {one_class(y.tolist()[0], unlabelled, remedy=False)}")
    if not len(y):
        raise NoExampleError(f"{source.name}: there is no row with a label; {unlabelled.note}")
    notes = source.notes
    if source.skipped:
        notes.append(f"left out {counted(source.skipped, 'line')}, the first: {source.problems[0]}")
    return (*notes, unlabelled.note) if unlabelled.count else tuple(notes)


def _labels(y: Array) -> Array:
    """Return whole numbers where all labels are."""
    whole = y.dtype.kind == "f" and bool((y == np.floor(y)).all()) and bool((np.abs(y) < 1 << 53).all())
    return y.astype(np.int64) if whole else y


def _from_table(source: Source, mixed: bool, drop: Sequence[str], unlabelled: Unlabelled) -> Examples:
    from separatrix.data.arrow_arrays import numpy_array

    assert source.schema is not None and source.label is not None
    features = [name for name in source.schema.names if name != source.label and (mixed or name not in drop)]
    absent = [name for name in drop if name not in source.schema.names]
    if absent and not mixed:
        raise DataError(f"{source.name}: {no_column(absent[0], source.schema.names, most=20)}")
    if not features:
        raise DataError(f"{source.name}: there is no column beside the label{source.why_alone}")
    titled = not hasattr(source.reader, "dialect") or source.reader.dialect.titled
    blocks: list[Any] = []
    labels = []
    for batch in source:
        kept = unlabelled.kept(batch.table[source.label], batch.origin)
        batch = batch if kept is None else batch.where(kept)
        blocks.append(batch.table.select(features) if mixed else [_numbers(batch, name, titled) for name in features])
        labels.append(numpy_array(batch.table[source.label]))
    y = np.concatenate(labels)
    y = np.array(y.tolist()) if y.dtype == object else _labels(y)
    names = tuple(features) if titled else None
    notes = _notes(source, unlabelled, y)
    if y.dtype.kind == "U":
        distinct, place = np.unique(y, return_inverse=True)
        y, notes = np.array(as_one(distinct.tolist()))[place], (*notes, *alike(distinct.tolist()))
    if mixed:
        import pyarrow as pa

        all_columns = tuple(source.schema.names)
        table = pa.Table.from_batches(blocks)
        return Examples(source.name, table, y, names, True, "mistake", notes, tuple(features), source.label, all_columns)
    columns = [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
    return Examples(source.name, _joined(columns, source.name), y, names, notes=notes, columns=tuple(features))


def _numbers(batch: TableBatch, name: str, titled: bool) -> Array:
    """Return a column as numbers; raise for the first value that is none."""
    from separatrix.data.arrow_arrays import numpy_array

    column = batch.table[name]
    values: Array = numpy_array(column)
    if values.dtype.kind in "fiub" and not column.null_count:
        return values
    cells = column.to_pylist()
    bad = next((i for i, value in enumerate(cells) if value is None or not _is_number(value)), None)
    if bad is None:
        return np.array([float(value) for value in cells])
    where = f"{batch.origin.place(bad)}, column {batch.table.schema.names.index(name) + 1}" + (
        f" ({named(name)})" if titled else ""
    )
    raise NotANumberError(
        f"{where}: " + ("a value is missing" if cells[bad] is None else f"{shown(cells[bad])} is not a finite number")
    )


def _is_number(value: Any) -> bool:
    try:
        return abs(float(value)) < np.inf
    except (TypeError, ValueError):
        return False


def _joined(columns: list[Array], name: str) -> Array:
    """Return the matrix: whole numbers where all columns are, else float64, if that holds the whole numbers exactly."""
    if all(column.dtype.kind in "ib" for column in columns):
        return np.column_stack(columns).astype(np.int64)
    for column in columns:
        if column.dtype.kind in "iu" and (column.astype(np.float64).astype(column.dtype) != column).any():
            raise DataError(f"{name}: whole numbers above 2**53 beside fractions cannot be held exactly: scale them down")
    return np.column_stack(columns).astype(np.float64)


def against_the_rest(examples: Examples, positive: str) -> Examples:
    """Return the examples with two classes: one, and all the others."""
    chosen = np.array([str(value) == positive for value in examples.y.tolist()])
    if not chosen.any():
        classes = np.unique(examples.y).tolist()
        listed = ", ".join(map(named, classes[:10])) + (" …" if len(classes) > 10 else "")
        what = f"no example has the class {shown(positive)}; the classes are {listed}"
        raise DataError(f"{examples.name}: {what}{did_you_mean(positive, classes)}")
    name = f"{examples.name} ({positive} against the rest)"
    return replace(examples, name=name, y=np.where(chosen, positive, f"not {positive}"))
