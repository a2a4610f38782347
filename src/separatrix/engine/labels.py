"""Labels as the kernels read them: the sorted classes, and each label's place among them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Codes = NDArray[np.int32]

_SAMPLE = 1000
ENOUGH_CHANGES = 20
"""Whether labels come in runs is told where a random order would have so many changes of the label at least."""
MIXED = 0.8
"""Rows are mixed where the label changes at least so often as in a random order, in proportion."""


def expected_changes(counts: NDArray[np.int64]) -> float:
    """Return how often a label differs from the one before in a random order; `counts` are the examples of each class."""
    n = int(counts.sum())
    return n - float((counts.astype(np.float64) ** 2).sum()) / max(1, n)


def are_mixed(codes: Codes) -> bool:
    """Tell whether neighbours have equal labels hardly more often than in a random order.

    Examples
    --------
    >>> are_mixed(np.array([0, 1, 1, 0, 1, 0, 0, 1])), are_mixed(np.array([0, 0, 0, 0, 1, 1, 1, 1]))
    (True, False)
    """
    changes = int(np.count_nonzero(codes[1:] != codes[:-1]))
    if changes >= MIXED * len(codes):  # no classes would make more changes likely
        return True
    return changes >= MIXED * expected_changes(np.bincount(codes))


def come_in_runs(counts: NDArray[np.int64], changes: int) -> bool:
    """Tell whether equal labels follow each other far more often than in a random order.

    Parameters
    ----------
    counts : how many examples each class has
    changes : how many examples have another label than the one before

    Examples
    --------
    >>> come_in_runs(np.array([500, 500]), 1), come_in_runs(np.array([500, 500]), 480)
    (True, False)
    """
    expected = expected_changes(counts)
    return expected >= ENOUGH_CHANGES and changes < expected / 10


def check_two_classes(classes: Array, what: str = "a boundary") -> None:
    """Raise unless there are two classes or more, of which `what` is to be learned.

    Examples
    --------
    >>> check_two_classes(np.array(["EU"]))
    Traceback (most recent call last):
    ValueError: a boundary needs two classes, but there is only 1 class: 'EU'
    """
    if len(classes) < 2:
        only = "".join(f": {label!r}" for label in classes.tolist())
        raise ValueError(f"{what} needs two classes, but there is only {len(classes)} class{only}")


def check_no_name(y: Any) -> None:
    """Raise for one text in the place of labels: the name of a column, most likely."""
    if isinstance(y, str | bytes):
        raise ValueError(f"y is {y!r}, one text: pass the labels themselves, as in X.drop(columns={y!r}), X[{y!r}]")


def check_unmasked(values: Any, name: str) -> None:
    """Raise for a masked array with masked values: they would be read as the numbers that lie below the mask."""
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.count_nonzero(np.ma.getmaskarray(values)))):
        what = f"{name} is a masked array with {masked:,} masked value{'s' if masked > 1 else ''}"
        raise ValueError(f"{what}: fill in what is masked ({name}.filled(…)), or leave out these rows")


def as_labels(y: Any) -> Array:
    """Return labels as a one-dimensional array of a type that can be sorted (not NumPy's variable-width strings)."""
    check_no_name(y)
    check_unmasked(y, "y")
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.reshape(-1)
    if labels.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {labels.shape} instead")
    return np.array(labels.tolist()) if labels.dtype.kind == "T" else labels


def labels_of(X: Any, y: Any, who: str) -> Array:
    """Return the labels y of X, or raise for what cannot be the label of an example."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    labels = as_labels(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(labels) != n:
        raise ValueError(f"X and y have inconsistent numbers of samples: [{n}, {len(labels)}]")
    check_labels(labels)
    return labels


def check_labels(labels: Array) -> None:
    """Raise for labels that are not discrete: NaN, fractions, or objects that are no strings."""
    check_kinds(labels)
    if labels.dtype.kind in "biuU":
        return
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError("Input y contains NaN or infinity.")
        if np.any(labels != np.floor(labels)):
            raise ValueError("Unknown label type: continuous. A classifier expects discrete classes, such as 0 and 1.")
    elif labels.dtype != object or not all(isinstance(label, str) for label in labels):
        raise ValueError("Unknown label type: unknown. Labels must be strings, whole numbers or booleans.")


def check_kinds(y: Array) -> None:
    """Raise where a label is missing, or where strings and other labels are mixed: they have no common order."""
    if y.dtype == object:
        kinds = sorted({"str" if isinstance(label, str) else type(label).__name__ for label in y})
        if kinds == ["str"]:
            return
        missing = [row for row, label in enumerate(y) if label is None or type(label).__name__ == "NAType" or label != label]
        if missing:
            raise ValueError(f"Input y contains NaN or None: row {missing[0]} has no label. Leave out rows without a label.")
        if "str" in kinds and len(kinds) > 1:
            raise ValueError(f"y mixes labels of different kinds: {', '.join(kinds)}")


def encode(y: Array) -> tuple[Array, Codes]:
    """Return the sorted classes of y and the code of each label."""
    check_kinds(y)
    classes = np.unique(y[:_SAMPLE])
    codes = _look_up(classes, y)
    if codes is None:
        classes = np.unique(y)
        codes = _look_up(classes, y)
    assert codes is not None
    return classes, codes


def encode_as(classes: Array, y: Array) -> Codes:
    """Return the code of each label among known classes; raise for one that is not there."""
    check_kinds(y)
    codes = _look_up(classes, y) if _comparable(classes, y) else None
    if codes is None:
        unknown = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
        known = ", ".join(map(repr, classes[:5].tolist())) + (" …" if len(classes) > 5 else "")
        raise ValueError(f"y contains labels that are not among the classes: {unknown[:5]}; the classes are {known}")
    return codes


def _comparable(classes: Array, y: Array) -> bool:
    if object in (classes.dtype, y.dtype):
        return not y.size or isinstance(classes[0], str) == isinstance(y[0], str)
    return (classes.dtype.kind in "US") == (y.dtype.kind in "US")


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
    """Return (row, label) for the first row of each label of y that is not among the classes, in the order of rows."""
    check_kinds(y)
    labels, rows = np.unique(y, return_index=True)
    if _comparable(classes, labels):
        places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        is_new = classes[places] != labels
        labels, rows = labels[is_new], rows[is_new]
    order = np.argsort(rows)
    return [(int(rows[k]), labels[k]) for k in order]


def with_newcomer(classes: Array, label: Any) -> tuple[Array, int]:
    """Return the classes with `label` at its sorted place, and that place."""
    added = np.asarray([label], dtype=object if classes.dtype == object else None)
    value = label.item() if isinstance(label, np.generic) else label
    if not _comparable(classes, added):
        raise ValueError(f"label {value!r} cannot be sorted among the classes {classes.tolist()[:5]}")
    grown = np.concatenate([classes, added])
    exact = np.array_equal(grown[:-1].astype(classes.dtype), classes) and grown[-1:].astype(added.dtype)[0] == label
    grown = np.sort(grown)
    if not exact or not np.all(grown[:-1] < grown[1:]):
        raise ValueError(f"label {value!r} cannot be distinguished from the classes {classes.tolist()[:5]} in one type")
    return grown, int(np.searchsorted(grown, label))
