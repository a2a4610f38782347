"""Cross-validate the lectures' classifiers on your data.

Shows accuracy, time, size, and the view of the data that each classifier takes.
"""

from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, tell
from separatrix.cli.options import Json
from separatrix.data.options import Categorical, Data, Drop, Label, Option, Positive, ReadingOptions


def compare(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    categorical: Categorical = None,
    models: Annotated[
        str | None,
        Option(
            metavar="NAMES", group="evaluation", help="Names of the models, separated by commas; by default all of them."
        ),
    ] = None,
    folds: Annotated[int, Option(group="evaluation", min=2, help="Number of folds of the cross-validation.")] = 5,
    seed: Annotated[int, Option(group="evaluation", min=0, help="Seed for the folds and the models.")] = 0,
    as_json: Json = False,
    markdown: Annotated[bool, Option("--markdown", group="running", help="Print a Markdown table.")] = False,
    *,
    reading: ReadingOptions,
) -> int:
    """Print the comparison as a table, as Markdown, or as JSON with the learning curves."""
    from rich.console import Console

    from separatrix.analysis import cross_validation
    from separatrix.data.in_memory import read_source

    with errors_reported("compare", data):
        examples = read_source(data, label, positive, mixed=True, drop=drop or [], **reading.reading())
        tell("compare", examples.notes)
        comparison = cross_validation.compare(
            examples.X,
            examples.y,
            feature_names=examples.feature_names,
            models=models,
            folds=folds,
            categorical=categorical or [],
            random_state=seed,
            verbose=1,
        )
    comparison.name = examples.name
    if as_json:
        click.echo(comparison.to_json().rstrip("\n"))
    elif markdown:
        click.echo(comparison.to_markdown().rstrip("\n"))
    else:
        Console().print(comparison)
    return 0
