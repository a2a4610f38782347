"""Evaluate a model on labelled data.

Shows accuracy; precision, recall and F1 of each class; the confusion matrix; and log loss if the model is calibrated.
"""

import json

import click

from separatrix.cli.errors import errors_reported
from separatrix.cli.options import Data, Encoding, Format, Header, Json, Label, MissingLabel, ModelFile, OnError


def evaluate(
    model: ModelFile,
    data: Data,
    label: Label = None,
    form: Format = None,
    header: Header = None,
    encoding: Encoding = None,
    on_error: OnError = "raise",
    missing_label: MissingLabel = "skip",
    as_json: Json = False,
) -> int:
    """Print the figures."""
    from separatrix.cli.evaluation import evaluate_rows, print_evaluation
    from separatrix.cli.model_rows import ModelRows

    with errors_reported("evaluate", data):
        rows = ModelRows(
            *(model, data, form, header, on_error, label),
            need_labels=True,
            missing_label=missing_label,
            encoding=encoding,
        )
        evaluation = evaluate_rows(rows)
    if as_json:
        click.echo(json.dumps(evaluation, ensure_ascii=False))
    else:
        print_evaluation(evaluation)
    return 0
