"""Show what a model is and what it was trained on."""

import inspect
import json
from typing import Any

import click

from separatrix.cli.errors import errors_reported
from separatrix.cli.options import Json, ModelFile


def info(model: ModelFile, as_json: Json = False) -> int:
    """Print what the file says."""
    from separatrix.modelfile.archive import load

    with errors_reported("info", model):
        loaded = load(model, plain=True)
    estimator, facts = loaded.estimator, loaded.facts
    parameters = {name: value for name, value in estimator.get_params().items() if value is not None}
    document: dict[str, Any] = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "learner": estimator.public_name(),
        "parameters": parameters,
        "classes": [str(label) for label in estimator.classes_.tolist()],
        "features": int(estimator.n_features_in_),
        "columns": describe_columns(loaded.features),
        "mistakes": int(getattr(estimator, "n_mistakes_", 0)),
        "passes": int(getattr(estimator, "n_iter_", 0)),
        "trained_on": facts,
    }
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False, default=str))
        return 0
    classes = document["classes"]
    counts = f"{len(classes)} classes, {document['features']:,} features, {document['bytes']:,} bytes"
    click.echo(f"{model}: {document['learner']}, {counts}")
    click.echo(f"  {', '.join(f'{name}={value}' for name, value in parameters.items())}")
    click.echo(f"  classes: {', '.join(classes[:10])}{' …' if len(classes) > 10 else ''}")
    for line in document["columns"]:
        click.echo(f"  {line}")
    click.echo(f"  {document['mistakes']:,} mistakes in {document['passes']} passes")
    if facts.get("rows"):
        click.echo(f"  trained on {facts['rows']:,} rows of {facts['format']} data with the hash {facts['data'][:16]}…")
        click.echo(f"  by separatrix {facts['version']}")
    return 0


def describe_columns(features: Any) -> list[str]:
    """Return one line for each column of a table, or one line for a text."""
    if features is None:
        return []
    if hasattr(features, "describe"):
        lines: list[str] = features.describe().splitlines()
        return lines
    defaults = inspect.signature(type(features)).parameters
    changed = [f"{name}={value!r}" for name, value in features.get_params().items() if value != defaults[name].default]
    return [f"a text, by {features.public_name()}({', '.join(changed)})"]
