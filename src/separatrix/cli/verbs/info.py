"""Show what a model is and what it was trained on."""

import inspect
import json
import os
from dataclasses import replace
from typing import Annotated, Any

import click

from separatrix.cli.errors import described, errors_reported, in_options, terminal_width
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import Json, ModelFile
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Option


def info(
    model: ModelFile,
    weights: Annotated[
        int | None, Option(min=1, help="List so many of the largest weights by name; for more than two classes, of each.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Print what the file says."""
    from separatrix.modelfile.archive import as_file, describe, load

    with errors_reported("info", model), as_file(model) as name:
        description, size = describe(name), os.stat(name).st_size
        if weights is not None and description.class_name == "SequencePerceptron":
            raise DataError("--weights is for classifiers: separatrix explain shows the weights behind a tag")
        largest = None if weights is None else load(name, plain=True).importances(weights)
    facts = description.facts
    parameters = {name: value for name, value in description.parameters.items() if value is not None}
    document: dict[str, Any] = {
        "file": str(model),
        "bytes": size,
        "learner": description.class_name,
        "parameters": parameters,
        "classes": [str(label) for label in description.classes],
        "features": description.n_features,
        "columns": describe_columns(description.features),
        "mistakes": description.mistakes,
        "passes": description.passes,
        "resumable": description.resumable,
        "trained_on": facts,
    }
    if description.threshold is not None:
        document["threshold"] = description.threshold
    if largest is not None:
        of_columns = in_options(largest.measure_of_columns)
        largest = replace(largest, measure=in_options(largest.measure), measure_of_columns=of_columns)
        document["weights"] = largest.to_dict()
    if as_json:
        echo_json(json.dumps(document, ensure_ascii=False, default=str))
        return 0
    classes = document["classes"]
    counts = f"{counted(len(classes), 'class')}, {counted(document['features'], 'feature')}, {document['bytes']:,} bytes"
    click.echo(f"{model}: {document['learner']}, {counts}")
    click.echo(f"  {', '.join(f'{name}={value}' for name, value in parameters.items())}")
    click.echo(f"  classes: {', '.join(classes[:10])}{' …' if len(classes) > 10 else ''}")
    if description.threshold is not None:
        click.echo(f"  predicts {classes[1]} where its score is above {description.threshold:.6g}")
    for line in document["columns"]:
        click.echo(f"  {line}")
    click.echo(f"  {counted(document['mistakes'], 'mistake')} in {counted(document['passes'], 'pass')}")
    if not description.resumable:
        click.echo("  predicts, and cannot continue to learn: it was saved with --no-resume")
    if facts.get("rows"):
        click.echo(
            f"  trained on {counted(facts['rows'], 'row')} of {facts['format']} data with the hash {facts['data'][:16]}…"
        )
        click.echo(f"  by separatrix {facts['version']}")
    if facts.get("sequences"):
        what = f"{counted(facts['sequences'], 'sequence')} of {counted(facts['tokens'], 'token')}"
        click.echo(f"  trained on {what} with the hash {facts['data'][:16]}…, by separatrix {facts['version']}")
    if largest is not None:
        click.echo(f"\n{largest.text(terminal_width())}")
    return 0


def describe_columns(features: Any) -> list[str]:
    """Return one line for each column of a table, or one line for a text."""
    if features is None:
        return []
    if hasattr(features, "describe"):
        return described(features)
    defaults = inspect.signature(type(features)).parameters
    changed = [f"{name}={value!r}" for name, value in features.get_params().items() if value != defaults[name].default]
    return [f"a text, by {features.public_name()}({', '.join(changed)})"]
