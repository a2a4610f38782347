"""Cross-validate the lectures' classifiers and `train`.

Shows accuracy, time, size, and the view of the data that each classifier takes. Columns are told apart as `train` does.

Try:

  separatrix compare iris

  separatrix compare messages.csv --label kind --budget 5
"""

from dataclasses import replace
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, in_options, tell
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import Json
from separatrix.data.options import MOST_SEED, ColumnOptions, Data, Label, MissingLabel, Option, Positive, ReadingOptions


def compare(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    models: Annotated[
        str | None,
        Option(
            metavar="NAMES", group="evaluation", help="Names of the models, separated by commas; by default all of them."
        ),
    ] = None,
    folds: Annotated[int, Option(group="evaluation", min=2, help="Number of folds of the cross-validation.")] = 5,
    budget: Annotated[
        float,
        Option(
            metavar="SECONDS",
            group="evaluation",
            min=0,
            help="Time that a model may take for all folds; one that would take longer is dropped. 0: no limit.",
        ),
    ] = 30.0,
    curves: Annotated[
        bool,
        Option(
            "--curves/--no-curves", group="evaluation", rare=True, help="Measure the held-out accuracy after each pass, too."
        ),
    ] = True,
    seed: Annotated[int, Option(group="evaluation", min=0, max=MOST_SEED, help="Seed for the folds and the models.")] = 0,
    missing_label: MissingLabel = "skip",
    as_json: Json = False,
    markdown: Annotated[bool, Option("--markdown", group="running", help="Print a Markdown table.")] = False,
    *,
    columns: ColumnOptions,
    reading: ReadingOptions,
) -> int:
    """Print the comparison as a table, as Markdown, or as JSON with the learning curves; 130 after an interrupt."""
    from rich.console import Console

    from separatrix.analysis.cross_validation import cross_validated
    from separatrix.analysis.model_features import Examples, MatrixExamples, TableExamples, table_of
    from separatrix.data.in_memory import read_source
    from separatrix.files.ingest import roles_for

    with errors_reported("compare", data):
        roles, how = columns.roles(), reading.reading()
        source = read_source(data, label, positive, mixed=True, drop=columns.drop or (), missing_label=missing_label, **how)
        examples: Examples
        if source.all_columns:
            roles = roles_for(source.name, list(source.all_columns), list(source.columns), roles)
            examples = TableExamples(source.X, roles)
        elif roles and source.feature_names:
            names = list(source.feature_names)
            examples = table_of(source.X, roles_for(source.name, names, names, roles), names=names)
        elif roles:
            raise ValueError("there are no columns that could have a role")
        else:
            examples = MatrixExamples(source.X)
        tell("compare", source.notes)
        try:
            comparison = cross_validated(
                examples,
                source.y,
                models=models,
                folds=folds,
                budget=budget or None,
                curves=curves,
                random_state=seed,
                verbose=1,
                partial=True,
            )
        except KeyboardInterrupt:
            click.echo("separatrix compare: interrupted before any model was measured", err=True)
            return 130
    comparison.name = source.name
    comparison.notes = [in_options(note) for note in comparison.notes]
    comparison.rows = [
        replace(row, note=in_options(row.note), failure=row.failure and in_options(row.failure)) for row in comparison.rows
    ]
    if as_json:
        echo_json(comparison.to_json())
    elif markdown:
        click.echo(comparison.to_markdown().rstrip("\n"))
    else:
        Console().print(comparison)
    return 130 if comparison.interrupted else 0
