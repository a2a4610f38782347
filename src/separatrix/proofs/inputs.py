"""Reads the data of a proof: rows of which float64 holds every number exactly, labels, and feature names."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.labels import check_unmasked, labels_of
from separatrix.engine.rows import Array, Rows, as_matrix, name_text_column

_LARGEST_EXACT = 1 << 53
_MUCH_SHORTER = 2.0**-600


def read_examples(X: Any, y: Any) -> tuple[Rows, Array, list[str] | None]:
    """Return rows that float64 holds exactly, labels and feature names; raise for data that no proof could be about."""
    labels = labels_of(X, y, "certify")
    check_unmasked(X, "X")
    table = X if sp.issparse(X) else np.asarray(X)
    try:
        matrix = as_matrix(table)
    except (TypeError, ValueError, OverflowError) as problem:
        name_text_column(X)
        raise ValueError(f"X must hold numbers: {problem}") from None
    if table.dtype.kind in "OUS":
        _check_exact(table, matrix)
    elif matrix.dtype.kind == "f" and not isinstance(X, np.ndarray):
        _check_exact(X, matrix)
    if 0 in matrix.shape:
        raise ValueError(f"X has {matrix.shape[0]} sample(s) and {matrix.shape[1]} feature(s): there is nothing to prove")
    if matrix.dtype.kind == "f" and matrix.dtype.itemsize > 8:
        raise ValueError(f"X has the type {matrix.dtype}, but float64 cannot hold all its numbers: convert it first")
    names = column_names(X)
    rows = Rows(sp.csr_array(matrix) if sp.issparse(matrix) else matrix)
    _check_readable(rows, names)
    return rows, labels, names


def _check_readable(rows: Rows, names: list[str] | None) -> None:
    """Raise for NaN, infinity and broken indices. Rows too long to score in floating point can be proven about."""
    try:
        rows.survey(names=names)
    except ValueError:
        longest = np.sqrt(Rows(rows.source * _MUCH_SHORTER).survey(names=names))
        if not longest < np.finfo(np.float64).max * _MUCH_SHORTER:
            raise ValueError("X has a row whose norm is above the largest float64: scale it down") from None


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a data frame, or None if there are none or not all are strings."""
    names = getattr(X, "column_names", None)  # of an Arrow table, whose `columns` are the values
    names = list(getattr(X, "columns", ()) if names is None else names)
    return names if names and all(isinstance(name, str) for name in names) else None


def _check_exact(X: Any, floats: Any) -> None:
    """Raise where a number of X was rounded on its way to float64: the proof would be about other data."""
    if sp.issparse(X):
        return
    for j, (kind, values) in enumerate(_columns(X, floats.shape)):
        column = floats[:, j]
        if kind == "f" or (kind in "iub" and (np.abs(column) < _LARGEST_EXACT).all()):
            continue
        for i, (value, number) in enumerate(zip(values(), column.tolist(), strict=True)):
            exact = _compared_exactly(value)
            if exact is not None and exact == exact and exact != number:
                raise ValueError(
                    f"X[{i}, {j}] = {exact!r} is not exactly a float64, and the proof would be about {number!r}: scale the "
                    "column to whole numbers below 2**53, or round it yourself"
                )


def _compared_exactly(value: Any) -> Any:
    """Return a number that Python compares with a float exactly, or None: a text with a point denotes a float64."""
    if isinstance(value, str | bytes):
        try:
            return int(value)
        except ValueError:
            return None
    if isinstance(value, np.generic):
        value = value.item()  # NumPy rounds its integers before it compares them with a float
    return value if isinstance(value, Number) else None


def _columns(X: Any, shape: tuple[int, int]) -> list[tuple[str, Callable[[], list[Any]]]]:
    """Return for each column the kind of its type, as NumPy names kinds, and a function that lists its values."""
    if hasattr(X, "itercolumns"):  # of an Arrow table
        kinds = {"int": "i", "uin": "i", "hal": "f", "flo": "f", "dou": "f"}
        return [(kinds.get(str(column.type)[:3], "O"), column.to_pylist) for column in X.itercolumns()]
    if hasattr(X, "get_columns"):  # of a polars data frame
        columns = X.get_columns()
        return [("i" if c.dtype.is_integer() else "f" if c.dtype.is_float() else "O", c.to_list) for c in columns]
    if hasattr(X, "iloc"):  # of a pandas data frame
        series = [X.iloc[:, j] for j in range(shape[1])]
        return [(getattr(column.dtype, "kind", "O"), column.tolist) for column in series]
    objects = np.empty(shape, object)
    objects[:] = X
    return [("O", objects[:, j].tolist) for j in range(shape[1])]
