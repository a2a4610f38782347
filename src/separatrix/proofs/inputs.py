"""The data of a proof: rows of which float64 holds every number exactly, and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _get_feature_names, check_array

from separatrix.engine.inputs import name_text_column
from separatrix.engine.labels import labels_of
from separatrix.engine.rows import Array, Rows

_LARGEST_EXACT = 1 << 53


def read_examples(X: Any, y: Any) -> tuple[Rows, Array, list[str] | None]:
    """Return rows that float64 holds exactly, labels and feature names; raise for what no proof could be about."""
    names = _get_feature_names(X)
    labels = labels_of(X, y, "certify")
    if isinstance(X, list) or getattr(X, "dtype", None) is np.dtype(object):
        _refuse_unrepresentable(np.asarray(X))
    given = X
    try:
        X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        X = X.astype(np.float64) if X.dtype == object else X
    except ValueError:
        name_text_column(given)
        raise
    if X.dtype.kind == "f" and X.dtype.itemsize > 8:
        raise ValueError(f"X has the type {X.dtype}, of which float64 cannot hold every number: convert it first")
    rows = Rows(sp.csr_array(X) if sp.issparse(X) else X)
    rows.survey(names=None if names is None else [str(name) for name in names])
    return rows, labels, None if names is None else [str(name) for name in names]


def _refuse_unrepresentable(table: Array) -> None:
    """Raise for whole numbers that NumPy would round: the proof would be about other data."""
    if table.dtype != object:
        return
    for place, value in np.ndenumerate(table):
        if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
            raise ValueError(f"X{list(place)} = {value} is too large to be held exactly beside the others: scale it down")
