"""`separatrix export`: the model for another program."""

from __future__ import annotations

import pickle
from pathlib import Path

import typer

from separatrix.cli.refusal import refusing
from separatrix.data.errors import DataError
from separatrix.exporting import sql_features, to_onnx, to_sklearn, to_sql
from separatrix.modelfile.model import load, replacing

FORMS = ("sklearn", "onnx", "sql")


def run(path: Path, to: str, output: Path | None) -> int:
    """Write the model in another form; return the exit status."""
    with refusing("export", path):
        if to not in FORMS:
            raise DataError(f"--to {to} is not one of {', '.join(FORMS)}")
        if output is None and to != "sql":
            raise DataError(f"--to {to} makes a file: name it with -o")
        model = load(path)
        if to == "sql":
            given = None if model.features is None else sql_features(model.features)
            text = to_sql(model.estimator, expressions=given)
            if output is None:
                typer.echo(text)
            else:
                with replacing(output) as name:
                    Path(name).write_text(text + "\n", encoding="utf-8")
        else:
            assert output is not None
            with replacing(output) as name:
                if to == "onnx":
                    to_onnx(model.estimator, name)
                else:
                    Path(name).write_bytes(pickle.dumps(to_sklearn(model.estimator)))
        if output is not None:
            typer.echo(f"written to {output}", err=True)
            if model.features is not None and to != "sql":
                typer.echo(
                    f"it wants the {model.estimator.n_features_in_:,} features that the model makes of a row", err=True
                )
    return 0
