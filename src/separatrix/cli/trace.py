"""`separatrix trace`: every step of a perceptron on the reader's data, and the theorem in the reader's numbers."""

import csv
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer
from rich.console import Console

from separatrix.data.lectures import EXAMPLES
from separatrix.linear import Perceptron
from separatrix.tracing import trace

BUILT_IN = {"iris": "load_iris", "wine": "load_wine", "digits": "load_digits", "wdbc": "load_breast_cancer"}
FORMATS = ("table", "markdown", "csv", "json")


def show(
    name: str, label: str | None, *, order: str, tie: str | None, bias: bool | None, passes: int, seed: int, form: str
) -> None:
    """Print the trace in one of the formats."""
    if form not in FORMATS:
        _refuse(f"--format {form!r} is not one of {', '.join(FORMATS)}")
    lecture = EXAMPLES.get(name.removeprefix("lecture:")) if name.startswith("lecture:") else None
    if tie is None:
        tie = "mistake" if lecture is None else lecture.tie
    if bias is None:
        bias = lecture is None or lecture.name == "L3.6"
    try:
        X, y, _ = load(name, label)
        model = Perceptron(order=order, tie=tie, fit_intercept=bias, max_iter=passes, random_state=seed)
        steps = trace(model, X, y)
    except (ValueError, OSError) as problem:
        _refuse(str(problem))
    if form == "table":
        console = Console()
        console.print(steps.table())
        console.print()
        console.print(steps.explanation(), highlight=False)
    else:
        typer.echo({"markdown": steps.to_markdown, "csv": steps.to_csv, "json": steps.to_json}[form]().rstrip("\n"))


def load(name: str, label: str | None) -> tuple[Any, Any, list[str]]:
    """Return (X, y, names of the features) of a CSV file or a built-in name."""
    if name.startswith("lecture:"):
        example = EXAMPLES.get(name.removeprefix("lecture:"))
        if example is None:
            raise ValueError(
                f"there is no example {name!r}; there are {', '.join('lecture:' + known for known in EXAMPLES)}"
            )
        return example.X, example.y, list(example.feature_names)
    if name in BUILT_IN:
        from sklearn import datasets

        bunch = getattr(datasets, BUILT_IN[name])()
        names = bunch.get("target_names")
        return bunch.data, np.asarray(names)[bunch.target], list(bunch.feature_names)
    if not Path(name).is_file():
        known = ", ".join([*BUILT_IN, *("lecture:" + example for example in EXAMPLES)])
        raise ValueError(f"{name}: no such file, and not a built-in name ({known})")
    with open(name, newline="", encoding="utf-8") as file:
        return _table(name, [(line, row) for line, row in enumerate(csv.reader(file), 1) if row], label)


def _table(name: str, rows: list[tuple[int, list[str]]], label: str | None) -> tuple[Any, Any, list[str]]:
    if not rows:
        raise ValueError(f"{name}: the file is empty")
    first = rows[0][1]
    headed = not any(_is_number(value) for value in first)
    names = first if headed else [str(column) for column in range(len(first))]
    if label is not None and label not in names:
        raise ValueError(f"{name}: there is no column {label!r}; there are {', '.join(names)}")
    at = len(names) - 1 if label is None else names.index(label)
    X, y = [], []
    for line, row in rows[headed:]:
        if len(row) != len(names):
            raise ValueError(f"{name}: line {line} has {len(row)} values, the first line has {len(names)}")
        for column, value in enumerate(row):
            if column != at and not _is_number(value):
                raise ValueError(f"{name}: line {line}, column {names[column]!r}: {value!r} is not a number")
        X.append([float(value) for column, value in enumerate(row) if column != at])
        y.append(row[at])
    return np.asarray(X), np.asarray(y), [n for column, n in enumerate(names) if column != at]


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _refuse(message: str) -> NoReturn:
    typer.echo(f"separatrix trace: {message}", err=True)
    raise typer.Exit(2)
