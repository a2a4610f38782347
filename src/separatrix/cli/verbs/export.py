"""Write a model for scikit-learn, ONNX or SQL.

The result is a pickled scikit-learn estimator, an ONNX file, or a SQL expression over the columns of the table.
"""

import pickle
from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported
from separatrix.cli.options import ModelFile, Output
from separatrix.data.errors import DataError
from separatrix.data.options import Option

TARGETS = ("sklearn", "onnx", "sql")


def export(
    model: ModelFile,
    to: Annotated[str, Option("--to", choices=TARGETS, help="Target.")],
    output: Output = None,
) -> int:
    """Write the model in the form of the target; SQL is printed where no file is named."""
    from separatrix.exporting import sql_features, to_onnx, to_sklearn, to_sql
    from separatrix.modelfile.archive import load
    from separatrix.modelfile.atomic import replacing

    with errors_reported("export", model):
        if output is None and to != "sql":
            raise DataError(f"--to {to} writes a file: name it with -o")
        loaded = load(model, plain=to == "sql")
        estimator, features = loaded.estimator, loaded.features
        if to == "sql":
            text = to_sql(estimator, expressions=None if features is None else sql_features(features))
            if output is None:
                click.echo(text)
                return 0
        assert output is not None
        with replacing(output) as name:
            if to == "sql":
                Path(name).write_text(text + "\n", encoding="utf-8")
            elif to == "onnx":
                to_onnx(estimator, name)
            else:
                Path(name).write_bytes(pickle.dumps(to_sklearn(estimator)))
    click.echo(f"written to {output}", err=True)
    if features is not None and to != "sql":
        click.echo(f"its input is the {estimator.n_features_in_:,} features that the model makes of a row", err=True)
    return 0
