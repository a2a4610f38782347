"""Where examples come from: a CSV file, or a built-in name such as `iris` or `lecture:L4.1`.

Numbers of a CSV are read as Python reads them: whole numbers exactly, others as the nearest float64. A first line whose
feature columns are not all numbers is a header.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.lectures import EXAMPLES

Array = NDArray[Any]

_BUILT_IN = ("iris", "wine", "digits", "breast_cancer", "wdbc")


class BadInput(ValueError):  # noqa: N818
    """What could not be read, and where."""


@dataclass(frozen=True)
class Source:
    """Examples with their labels, and the names of the columns where there are any."""

    name: str
    X: Array
    y: Array
    feature_names: tuple[str, ...] | None = None
    bias: bool = True
    """Whether the examples are meant to be separated with a bias: those of the lectures mostly are not."""
    tie: str = "mistake"
    """What a score of 0 means there."""


def read_source(name: str, label: str | None = None, positive: str | None = None, mixed: bool = False) -> Source:
    """Return the examples of a CSV path or a built-in name; with `positive`, that class against the rest.

    Where columns may be `mixed`, those of a CSV are not all numbers, and X holds the text of each cell.

    Examples
    --------
    >>> read_source("lecture:L2.4").X.tolist()
    [[3.0, 2.0], [-2.0, 2.0], [-2.0, -3.0]]
    """
    built_in = name.startswith("lecture:") or (name in _BUILT_IN and not Path(name).exists())
    if built_in and label is not None:
        raise BadInput(f"{name} is built in and has its own labels: there is no column {label!r} to choose")
    if name.startswith("lecture:"):
        found = _lecture(name)
    elif built_in:
        found = _built_in(name)
    else:
        found = _csv(Path(name), label, mixed)
    return found if positive is None else _against_the_rest(found, positive)


def _lecture(name: str) -> Source:
    example = EXAMPLES.get(name.removeprefix("lecture:"))
    if example is None:
        raise BadInput(f"{name}: no such example; there are {', '.join(f'lecture:{known}' for known in EXAMPLES)}")
    return Source(name, example.X, example.y, example.feature_names or None, bias=example.bias, tie=example.tie)


def _built_in(name: str) -> Source:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{'breast_cancer' if name == 'wdbc' else name}")()
    return Source(name, bunch.data, bunch.target_names[bunch.target], tuple(str(title) for title in bunch.feature_names))


def _against_the_rest(source: Source, positive: str) -> Source:
    chosen = np.array([str(value) == positive for value in source.y.tolist()])
    if not chosen.any():
        known = ", ".join(str(value) for value in np.unique(source.y).tolist()[:10])
        raise BadInput(f"{source.name}: no example has the class {positive!r}; the classes are {known}")
    name = f"{source.name} ({positive} against the rest)"
    return replace(source, name=name, y=np.where(chosen, positive, f"not {positive}"))


def _csv(path: Path, label: str | None, mixed: bool) -> Source:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            table = [(lines.line_num, row) for row in lines if row]
    except FileNotFoundError:
        known = ", ".join(_BUILT_IN)
        raise BadInput(f"{path}: no such file, and no built-in name ({known}, lecture:L4.1 and so on)") from None
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise BadInput(f"{path}: {problem}") from None
    if not table:
        raise BadInput(f"{path}: the file is empty")
    first = table[0][1]
    column = _label_column(path, first, label)
    features = [j for j in range(len(first)) if j != column]
    if not features:
        raise BadInput(f"{path}, line {table[0][0]}: there is no column beside the label")
    titled = all(_number(first[j]) is None for j in features)
    rows: list[list[Any]] = []
    labels = []
    for line, row in table[titled:]:
        if len(row) != len(first):
            raise BadInput(f"{path}, line {line}: {len(row)} columns where line {table[0][0]} has {len(first)}")
        titles = first if titled else [""] * len(first)
        rows.append([row[j] if mixed else _required(path, line, j, row[j], titles[j]) for j in features])
        if not row[column].strip():
            raise BadInput(f"{path}, line {line}, column {column + 1}{_title(titles[column])}: the label is missing")
        labels.append(row[column])
    if not rows:
        raise BadInput(f"{path}: there is a header and no example")
    names = tuple(first[j] for j in features) if titled else None
    return Source(str(path), np.array(rows, dtype=object) if mixed else _table(path, rows), _labels(labels), names)


def _label_column(path: Path, first: list[str], label: str | None) -> int:
    if label is None:
        return len(first) - 1
    if label in first:
        return first.index(label)
    try:
        place = int(label)
    except ValueError:
        raise BadInput(f"{path}, line 1: no column is called {label!r}; there are {', '.join(first[:10])}") from None
    if not -len(first) <= place < len(first):
        raise BadInput(f"{path}, line 1: there is no column {place}; there are {len(first)}, counted from 0")
    return place % len(first)


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _required(path: Path, line: int, j: int, text: str, title: str) -> int | float:
    value = _number(text)
    if value is None or not abs(value) < np.inf:
        raise BadInput(f"{path}, line {line}, column {j + 1}{_title(title)}: {text!r} is not a finite number")
    return value


def _title(title: str) -> str:
    return f" ({title})" if title else ""


def _table(path: Path, rows: list[list[int | float]]) -> Array:
    values = [value for row in rows for value in row]
    if all(isinstance(value, int) for value in values) and max(abs(value) for value in values) < 1 << 63:
        return np.array(rows, np.int64)
    if any(isinstance(value, int) and int(float(value)) != value for value in values):
        raise BadInput(f"{path}: whole numbers above 2**53 beside fractions cannot be held exactly: scale them down")
    return np.array(rows, np.float64)


def _labels(labels: list[str]) -> Array:
    """Return whole numbers where all labels are, else strings."""
    try:
        return np.array([int(label) for label in labels], np.int64)
    except (ValueError, OverflowError):
        return np.array(labels)
