"""`separatrix trace`: every step of a perceptron on the reader's data, and the theorem in the reader's numbers."""

from typing import NoReturn

import typer
from rich.console import Console

from separatrix.data.sources import BadInput, read_source
from separatrix.linear import Perceptron
from separatrix.tracing import trace

FORMATS = ("table", "markdown", "csv", "json")


def show(
    name: str,
    label: str | None,
    positive: str | None,
    *,
    order: str,
    tie: str | None,
    bias: bool | None,
    passes: int,
    seed: int,
    form: str,
) -> None:
    """Print the trace in one of the formats."""
    if form not in FORMATS:
        _refuse(f"--format {form!r} is not one of {', '.join(FORMATS)}")
    try:
        source = read_source(name, label, positive)
        model = Perceptron(
            order=order,
            tie=tie or source.tie,
            fit_intercept=source.bias if bias is None else bias,
            max_iter=passes,
            random_state=seed,
        )
        steps = trace(model, source.X, source.y)
    except (BadInput, OSError) as problem:
        _refuse(str(problem))
    except ValueError as problem:
        _refuse(f"{name}: {problem}")
    if form == "table":
        console = Console()
        console.print(steps.table())
        console.print()
        console.print(steps.explanation(), highlight=False)
    else:
        typer.echo({"markdown": steps.to_markdown, "csv": steps.to_csv, "json": steps.to_json}[form]().rstrip("\n"))


def _refuse(message: str) -> NoReturn:
    typer.echo(f"separatrix trace: {message}", err=True)
    raise typer.Exit(2)
