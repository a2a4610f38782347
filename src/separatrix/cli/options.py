"""The options that several verbs share, each declared once, and dataclasses of options."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, TypeVar

import typer

Data = Annotated[
    str,
    typer.Argument(
        help="A file (svmlight, CSV, JSON lines, Parquet, Arrow, npz), a pattern such as 'part-*.csv', - for standard "
        "input, or a built-in name: iris, lecture:L4.1 …"
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A model written by `separatrix train -o`.")]
Label = Annotated[str | None, typer.Option(help="Label column, by name or by number from 0; by default the last one.")]
Positive = Annotated[str | None, typer.Option(help="Class to separate from all the others.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")]
Categorical = Annotated[list[str] | None, typer.Option(help="Category column; repeatable.")]
FeatureModel = Annotated[
    Path | None,
    typer.Option("--model", help="Use the features that this model makes of the columns, words included."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="Input format: svmlight, csv, tsv, jsonl, parquet, arrow or npz; detected from the content by default.",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first line has the column names; detected by default."),
]
OnError = Annotated[str, typer.Option("--on-error", help="What to do with a malformed line: raise or skip.")]
Engine = Annotated[
    str | None,
    typer.Option(
        help="Where to work, one shard per file: local:4 (processes), dask://HOST:PORT or spark://HOST:PORT.",
    ),
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="File to write.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")]

T = TypeVar("T")


def options_from(options: type[T]) -> Callable[[Callable[[T], int]], Callable[..., int]]:
    """Give a function of one dataclass a parameter for each field, so that a long list of options is declared once."""

    def decorate(function: Callable[[T], int]) -> Callable[..., int]:
        @wraps(function)
        def verb(**values: object) -> int:
            return function(options(**values))

        verb.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        verb.__annotations__ = {name: field.annotation for name, field in verb.__signature__.parameters.items()}  # type: ignore[attr-defined]
        return verb

    return decorate
