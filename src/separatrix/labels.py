"""Labels as the kernels read them: the sorted classes, and each label's place among them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Codes = NDArray[np.int32]

_SAMPLE = 1000


def plain(y: Array) -> Array:
    """Return labels in a type that sorts and compares: NumPy's variable-width strings become fixed-width ones."""
    return np.array(y.tolist()) if y.dtype.kind == "T" else y


def encode(y: Array) -> tuple[Array, Codes]:
    """Return the sorted classes of y and the code of each label."""
    try:
        classes = np.unique(y[:_SAMPLE])
        codes = _look_up(classes, y)
        if codes is None:
            classes = np.unique(y)
            codes = _look_up(classes, y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(f"labels of different kinds cannot be told apart by order: {', '.join(kinds)}") from None
    assert codes is not None
    return classes, codes


def encode_as(classes: Array, y: Array) -> Codes:
    """Return the code of each label among known classes; raise for one that is not there."""
    codes = _look_up(classes, y)
    if codes is None:
        strangers = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
        raise ValueError(f"y contains labels that are not among the classes: {strangers[:5]}")
    return codes


def _look_up(classes: Array, y: Array) -> Codes | None:
    if len(classes) == 2:
        second = y == classes[1]
        return second.astype(np.int32) if np.all(second | (y == classes[0])) else None
    codes = np.searchsorted(classes, y)
    codes[codes == len(classes)] = 0
    if not np.array_equal(classes[codes], y):
        return None
    return codes.astype(np.int32)


def newcomers(classes: Array, y: Array) -> list[tuple[int, Any]]:
    """Return (row, label) at the first sight of each label of y that is not among the classes, in order of rows."""
    labels, rows = np.unique(y, return_index=True)
    known = set(classes.tolist())
    return sorted((int(row), label) for label, row in zip(labels, rows, strict=True) if label not in known)


def with_newcomer(classes: Array, label: Any) -> tuple[Array, int]:
    """Return the classes with `label` at its sorted place, and that place."""
    added = np.asarray([label])
    if classes.dtype.kind != added.dtype.kind and {classes.dtype.kind, added.dtype.kind} & set("US"):
        classes, added = classes.astype(object), added.astype(object)
    try:
        grown = np.sort(np.concatenate([classes, added]))
    except TypeError:
        shown = label.item() if isinstance(label, np.generic) else label
        raise ValueError(f"label {shown!r} cannot be sorted among the classes {classes.tolist()[:5]}") from None
    return grown, int(np.flatnonzero(grown == label)[0])
