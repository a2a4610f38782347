"""Reads the data of a proof: rows of which float64 holds every number exactly, labels, and feature names."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.labels import labels_of
from separatrix.engine.rows import Array, Rows, as_matrix, name_text_column

_LARGEST_EXACT = 1 << 53


def read_examples(X: Any, y: Any) -> tuple[Rows, Array, list[str] | None]:
    """Return rows that float64 holds exactly, labels and feature names; raise for data that no proof could be about."""
    labels = labels_of(X, y, "certify")
    table = X if sp.issparse(X) else np.asarray(X)
    if table.dtype == object:
        _check_exact(table)
    try:
        matrix = as_matrix(table)
    except (TypeError, ValueError) as problem:
        name_text_column(X)
        raise ValueError(f"X must hold numbers: {problem}") from None
    if 0 in matrix.shape:
        raise ValueError(f"X has {matrix.shape[0]} sample(s) and {matrix.shape[1]} feature(s): there is nothing to prove")
    if matrix.dtype.kind == "f" and matrix.dtype.itemsize > 8:
        raise ValueError(f"X has the type {matrix.dtype}, but float64 cannot hold all its numbers: convert it first")
    names = column_names(X)
    rows = Rows(sp.csr_array(matrix) if sp.issparse(matrix) else matrix)
    rows.survey(names=names)
    return rows, labels, names


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, or None if there are none or not all are strings."""
    names = getattr(X, "column_names", None)  # of an Arrow table, whose `columns` are the values
    names = list(getattr(X, "columns", ()) if names is None else names)
    return names if names and all(isinstance(name, str) for name in names) else None


def _check_exact(table: Array) -> None:
    """Raise for integers that float64 would round: the proof would be about other data."""
    for place, value in np.ndenumerate(table):
        if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
            raise ValueError(f"X{list(place)} = {value} is too large to be held exactly beside the others: scale it down")
