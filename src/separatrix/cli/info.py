"""`separatrix info`: what a model is, and what it was trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from separatrix.cli.refusal import refusing
from separatrix.modelfile.model import load


def run(path: Path, as_json: bool) -> int:
    """Print what the file says; return the exit status."""
    with refusing("info", path):
        model = load(path)
    estimator, facts = model.estimator, model.facts
    classes = estimator.classes_.tolist()
    settings = {name: value for name, value in estimator.get_params().items() if value is not None}
    told: dict[str, Any] = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "learner": type(estimator).__name__,
        "parameters": settings,
        "classes": [str(label) for label in classes],
        "features": int(estimator.n_features_in_),
        "columns": columns_of(model.features),
        "mistakes": int(getattr(estimator, "n_mistakes_", 0)),
        "passes": int(getattr(estimator, "n_iter_", 0)),
        "trained_on": facts,
    }
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False, default=str))
        return 0
    typer.echo(f"{path}: {told['learner']}, {len(classes)} classes, {told['features']:,} features, {told['bytes']:,} bytes")
    typer.echo(f"  {', '.join(f'{name}={value}' for name, value in settings.items())}")
    typer.echo(f"  classes: {', '.join(told['classes'][:10])}{' …' if len(classes) > 10 else ''}")
    for line in told["columns"]:
        typer.echo(f"  {line}")
    typer.echo(f"  {told['mistakes']:,} mistakes in {told['passes']} passes")
    if facts.get("rows"):
        typer.echo(f"  trained on {facts['rows']:,} rows of {facts['format']} data with the hash {facts['data'][:16]}…")
        typer.echo(f"  by separatrix {facts['version']}")
    return 0


def columns_of(features: Any) -> list[str]:
    """Return the columns of a table a line each; a text in a line."""
    if features is None:
        return []
    return features.describe().splitlines() if hasattr(features, "describe") else [f"a text, by {features}"]
