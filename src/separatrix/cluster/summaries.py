"""Summaries of shards: what the driver knows about each, and what follows from all of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from separatrix.data.errors import DataError
from separatrix.data.labels import alike, lonely, matched, strangers
from separatrix.engine.labels import check_kinds, check_two_classes
from separatrix.engine.rows import Array, Ints
from separatrix.files.blocks import LabelIndex

FEW_LABELS = 1 << 12
"""Whole numbers within such a range are counted and not sorted."""


class ShardSummary(NamedTuple):
    """What the driver learns about a shard: its shape, its labels with their counts, its largest ‖x‖², its checksum."""

    n: int
    d: int
    sparse: bool
    labels: list[Any]
    label_dtype: str | None
    """NumPy's name of the labels' type, of a pair (X, y)."""
    counts: Ints
    radius_squared: float
    digest: bytes
    skipped: int
    problems: list[str]
    names: list[str] | None
    unlabelled: int
    notes: list[str]
    changes: int = 0
    """How many rows have another label than the one before."""


Summaries = dict[int, ShardSummary]
"""The summary of each shard, by its number."""


def numbered(labels: LabelIndex, y: Array) -> Ints:
    """Return `labels.codes(y)`; small whole numbers need not be sorted for that."""
    low, high = (int(y.min()), int(y.max())) if y.size and y.dtype.kind in "iu" else (0, FEW_LABELS)
    if high - low >= FEW_LABELS or high >> 62:
        return labels.codes(y)
    above_low = y.astype(np.int64, copy=False) - low
    distinct = np.flatnonzero(np.bincount(above_low))
    number_of = np.zeros(high - low + 1, np.int64)
    number_of[distinct] = labels.add((distinct + low).tolist())
    return number_of[above_low]


def classes_of(summaries: list[ShardSummary]) -> Array:
    """Return the classes of all shards, with the type that `fit` gives them."""
    labels = LabelIndex()
    for summary in summaries:
        labels.add(summary.labels)
    dtypes = [np.dtype(summary.label_dtype) for summary in summaries if summary.label_dtype is not None]
    if dtypes:
        distinct = np.array(labels.met(), dtype=np.result_type(*dtypes))
        check_kinds(distinct)
        classes = np.unique(distinct)
    else:
        classes, _ = labels.settled()
    check_two_classes(classes)
    return classes


def class_counts(summaries: list[ShardSummary], classes: Array) -> Ints:
    """Return how many rows of each class each shard has: a row for each shard."""
    counts = np.zeros((len(summaries), len(classes)), np.int64)
    for row, summary in zip(counts, summaries, strict=True):
        labels = LabelIndex()
        labels.add(summary.labels)
        codes = labels.among(classes, as_written=False)
        np.add.at(row, codes[codes >= 0], summary.counts[codes >= 0])
    return counts


def _label_counts(summaries: list[ShardSummary]) -> Counter[Any]:
    """Return how many rows have each label, as it is written."""
    counts = Counter[Any]()
    for summary in summaries:
        counts.update(dict(zip(summary.labels, summary.counts.tolist(), strict=True)))
    return counts


def check_alike(summaries: Summaries, names: list[str]) -> None:
    """Raise if two shards do not have the same features; `names` are those of the shards."""
    filled = {number: summary for number, summary in summaries.items() if summary.n}
    if not filled:
        return
    first = next(iter(filled))
    expected, first_name = filled[first], names[first]
    for number, summary in filled.items():
        if summary.names != expected.names:
            raise DataError(f"{names[number]}: its column names differ from those of {first_name}")
        if summary.sparse != expected.sparse or (not summary.sparse and summary.d != expected.d):
            raise DataError(
                f"{names[number]} has {_shape(summary)}, but {first_name} has {_shape(expected)}: they must agree"
            )


def notes_on_labels(train: list[ShardSummary], held_out: list[ShardSummary], classes: Array) -> list[str]:
    """Return notes on labels that are much alike, and on held-out ones that are no class, or not written as it is.

    Raise if no held-out row has a label that is a class.
    """
    notes = alike(list(_label_counts(train))) + lonely(_label_counts(train))
    if not held_out:
        return notes
    n, counts = sum(summary.n for summary in held_out), _label_counts(held_out)
    if not n:
        raise DataError("the held-out shards have no row with a label")
    labels = LabelIndex()
    labels.add(list(counts))
    codes = labels.among(classes, as_written=False).tolist()
    unknown = {label: count for (label, count), code in zip(counts.items(), codes, strict=True) if code < 0}
    notes += [f"held-out rows: {note}" for note in matched(labels.matching(classes))]
    return [*notes, strangers(unknown, n, "the held-out shards")] if unknown else notes


def _shape(summary: ShardSummary) -> str:
    return f"{summary.d} {'sparse' if summary.sparse else 'dense'} features"


def fingerprint(digests: list[bytes]) -> str:
    """Return the hash of the data of all shards: the one that a single machine computes when it reads the files."""
    whole = hashlib.sha256()
    for digest in digests:
        whole.update(digest)
    return whole.hexdigest()
