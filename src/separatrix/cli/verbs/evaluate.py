"""Evaluate a model on labelled data.

Shows accuracy; precision, recall and F1 of each class; the confusion matrix; and log loss if the model is calibrated.
"""

import json

import click

from separatrix.cli.errors import errors_reported
from separatrix.cli.options import Json, ModelFile
from separatrix.data.options import Data, Label, MissingLabel, ReadingOptions


def evaluate(
    model: ModelFile,
    data: Data,
    label: Label = None,
    missing_label: MissingLabel = "skip",
    as_json: Json = False,
    *,
    reading: ReadingOptions,
) -> int:
    """Print the figures."""
    from separatrix.cli.evaluation import evaluate_rows, print_evaluation
    from separatrix.cli.model_rows import ModelRows

    with errors_reported("evaluate", data):
        rows = ModelRows(model, data, reading.reading(), label, need_labels=True, missing_label=missing_label)
        evaluation = evaluate_rows(rows)
    if as_json:
        click.echo(json.dumps(evaluation, ensure_ascii=False))
    else:
        print_evaluation(evaluation)
    return 0
