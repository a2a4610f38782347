"""`separatrix trace`: every step of a perceptron on the reader's data, and the theorem in the reader's numbers."""

import typer
from rich.console import Console

from separatrix.cli.refusal import refuse, refusing
from separatrix.data.sources import read_source
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
        refuse("trace", f"--format {form!r} is not one of {', '.join(FORMATS)}")
    with refusing("trace", name):
        source = read_source(name, label, positive)
        model = Perceptron(
            order=order,
            tie=tie or source.tie,
            fit_intercept=source.bias if bias is None else bias,
            max_iter=passes,
            random_state=seed,
        )
        steps = trace(model, source.X, source.y)
    if form == "table":
        console = Console()
        console.print(steps.table())
        console.print()
        console.print(steps.explanation(), highlight=False)
    else:
        typer.echo({"markdown": steps.to_markdown, "csv": steps.to_csv, "json": steps.to_json}[form]().rstrip("\n"))
