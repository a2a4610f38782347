"""Write a model for scikit-learn, ONNX or SQL.

The result reads the raw columns of the table that the model was trained on and needs nothing of this package: a pickled
scikit-learn pipeline, an ONNX file with an input for each column, or SQL. Only scikit-learn reads texts.
"""

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from separatrix.cli.errors import errors_reported, fail
from separatrix.cli.options import ModelFile, Output
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Option

if TYPE_CHECKING:
    from separatrix.modelfile.model import Model

TARGETS = ("sklearn", "onnx", "sql")
SHOWN = 8
"""So many columns are named."""


def export(
    model: ModelFile,
    to: Annotated[str, Option("--to", choices=TARGETS, help="Target.")],
    table: Annotated[
        str | None,
        Option(metavar="NAME", help="Of SQL: write a query over this table; by default an expression for the label."),
    ] = None,
    scores: Annotated[bool, Option("--scores", help="Add the scores to the query.")] = False,
    probabilities: Annotated[
        bool, Option("--probabilities", help="Add the scores and the calibrated probabilities to the query.")
    ] = False,
    output: Output = None,
) -> int:
    """Write the model in the form of the target; SQL is printed where no file is named."""
    from separatrix.data.atomic import check_place, replacing
    from separatrix.exporting import to_onnx, to_sklearn, to_sql
    from separatrix.modelfile.archive import load

    with errors_reported("export", model):
        if output is None and to != "sql":
            raise DataError(f"--to {to} writes a file: name it with -o")
        if to != "sql" and (table is not None or scores or probabilities):
            raise DataError("--table, --scores and --probabilities are for --to sql")
        if output is not None:
            check_place(output)
        loaded = load(model, plain=True)
        try:
            if to == "sql":
                text = to_sql(loaded, table=table, scores=scores, probabilities=probabilities)
                if output is None:
                    click.echo(text)
                    return 0
                contents = f"{text}\n".encode()
            elif to == "onnx":
                contents = to_onnx(loaded).SerializeToString(deterministic=True)
            else:
                contents = pickle.dumps(to_sklearn(loaded))
        except ImportError as error:
            fail("export", error)
        assert output is not None
        with replacing(output) as name:
            Path(name).write_bytes(contents)
    click.echo(f"written to {output}; it reads {_input_of(loaded)}", err=True)
    return 0


def _input_of(model: "Model") -> str:
    """Say what the exported model is given."""
    if model.features is None:
        return counted(model.estimator.n_features_in_, "feature")
    if not hasattr(model.features, "schema"):
        return "texts"
    columns = [name for name, part in model.features.schema.parts.items() if part.width]
    more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
    return f"the column{'s' if len(columns) > 1 else ''} {', '.join(columns[:SHOWN])}{more}"
