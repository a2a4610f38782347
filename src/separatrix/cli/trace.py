"""`separatrix trace`: every step of a perceptron on the reader's data, and the theorem in the reader's numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console

from separatrix.analysis.tracing import trace
from separatrix.cli.refusal import refuse, refusing
from separatrix.data.errors import DataError
from separatrix.data.in_memory import Examples, NotANumberError, read_source
from separatrix.estimators.linear import Perceptron

FORMATS = ("table", "markdown", "csv", "json")


def show(
    name: str,
    label: str | None,
    positive: str | None,
    drop: list[str],
    *,
    order: str,
    tie: str | None,
    bias: bool | None,
    passes: int,
    seed: int,
    form: str,
    html: Path | None = None,
) -> None:
    """Print the trace in one of the formats, or write it as a page."""
    if form not in FORMATS:
        refuse("trace", f"--format {form!r} is not one of {', '.join(FORMATS)}")
    with refusing("trace", name):
        try:
            source = read_source(name, label, positive, drop=drop)
        except NotANumberError as problem:
            raise DataError(f"{problem}; leave the column out by --drop") from None
        model = Perceptron(
            order=order,
            tie=tie or source.tie,
            fit_intercept=source.bias if bias is None else bias,
            max_iter=passes,
            random_state=seed,
        )
        if html is not None:
            _write(html, source, model, f"read_source({_given(name, label, positive, drop)})")
            return
        steps = trace(model, source.X, source.y)
    if form == "table":
        console = Console()
        console.print(steps.table())
        console.print()
        console.print(steps.explanation(), highlight=False)
    else:
        typer.echo({"markdown": steps.to_markdown, "csv": steps.to_csv, "json": steps.to_json}[form]().rstrip("\n"))


def _given(name: str, label: str | None, positive: str | None, drop: list[str]) -> str:
    named = {"label": label, "positive": positive, "drop": drop or None}
    return ", ".join([repr(name), *(f"{key}={value!r}" for key, value in named.items() if value is not None)])


def _write(html: Path, source: Examples, model: Any, reading: str) -> None:
    from separatrix.web.lab.document import document
    from separatrix.web.lab.experiment import Experiment, plain_names
    from separatrix.web.lab.page import page

    X = source.X.toarray() if hasattr(source.X, "toarray") else source.X
    code = ("from separatrix.data.in_memory import read_source", f"source = {reading}", "X, y = source.X, source.y")
    names = tuple(source.feature_names or plain_names(X.shape[1]))
    html.write_text(
        page(document(Experiment(source.name, np.asarray(X, np.float64), source.y, names, model, code))), "utf-8"
    )
    typer.echo(f"wrote {html} ({html.stat().st_size:,} bytes): open it in a browser")
