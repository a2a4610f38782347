"""`separatrix compare`: the map of classifiers, cross-validated on the reader's data."""

from collections.abc import Sequence

import typer
from rich.console import Console

from separatrix.analysis.comparing import compare
from separatrix.cli.refusal import refusing
from separatrix.data.in_memory import read_source


def show(
    data: str,
    label: str | None,
    positive: str | None,
    *,
    drop: Sequence[str],
    categorical: Sequence[str],
    models: str | None,
    folds: int,
    seed: int,
    form: str,
) -> None:
    """Print the comparison in one of the forms."""
    with refusing("compare", data):
        source = read_source(data, label, positive, mixed=True, drop=drop)
        found = compare(
            source.X,
            source.y,
            feature_names=source.feature_names,
            models=models,
            folds=folds,
            categorical=categorical,
            random_state=seed,
            verbose=1,
        )
    found.name = source.name
    if form == "table":
        Console().print(found)
    else:
        typer.echo({"markdown": found.to_markdown, "json": found.to_json}[form]().rstrip("\n"))
