"""Evaluate a model on labelled data.

Shows accuracy with its 95 % interval, the majority baseline, balanced accuracy, F1, ROC AUC, average precision, log loss
and calibration error if the model is calibrated, figures of each class, and the confusion matrix. Of a tagger of sequences,
shows precision, recall and F1 of entities, as conlleval counts them, and the share of right tags.
"""

from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import Json, ModelFile
from separatrix.data.options import Data, Label, MissingLabel, Option, PositiveClass, ReadingOptions


def evaluate(
    model: ModelFile,
    data: Data,
    label: Label = None,
    missing_label: MissingLabel = "skip",
    positive: PositiveClass = None,
    threshold: Annotated[
        str | None,
        Option(
            metavar="SCORE",
            group="evaluation",
            help="Predict the positive class where its score is above this, or with p=0.3 its probability (of a "
            "calibrated model). By default the model's own, 0 if it has none.",
        ),
    ] = None,
    optimize: Annotated[
        str | None,
        Option(
            metavar="PURPOSE",
            group="evaluation",
            help="Choose the threshold that is best on these rows for f1 (of the positive class), balanced (accuracy), "
            "accuracy or cost=FP:FN (what a false positive and a false negative cost). The figures are then optimistic.",
        ),
    ] = None,
    report: Annotated[
        Path | None, Option(group="evaluation", help="Write a page of HTML: curves, confusions, errors, weights.")
    ] = None,
    curves: Annotated[
        bool, Option("--curves", group="evaluation", rare=True, help="With --json: add the points of the curves.")
    ] = False,
    as_json: Json = False,
    *,
    reading: ReadingOptions,
) -> int:
    """Print the figures."""
    from separatrix.cli.evaluation import Decision, evaluate_rows, print_evaluation
    from separatrix.cli.model_rows import ModelRows
    from separatrix.data.atomic import check_place
    from separatrix.modelfile.archive import as_file, holds_tagger

    with errors_reported("evaluate", data), as_file(model) as model_file:
        model = Path(model_file)
        if holds_tagger(model):
            from separatrix.cli import sequences

            unused: dict[str, object] = {
                "label": label,
                "positive": positive,
                "threshold": threshold,
                "optimize": optimize,
                "report": report,
            }
            unused |= {"curves": curves or None, "missing_label": None if missing_label == "skip" else missing_label}
            encoding = sequences.check_unused(reading, **unused)
            return sequences.evaluate_tagger(model, data, encoding, as_json)
        decision = Decision(threshold, optimize)
        if report is not None:
            check_place(report)
        rows = ModelRows(model, data, reading.reading(), label, need_labels=True, missing_label=missing_label)
        evaluation = decision.of(evaluate_rows(rows, positive))
        if report is not None:
            evaluation.report(report, model=rows.model)
    if as_json:
        echo_json(evaluation.to_json(curves))
    else:
        print_evaluation(evaluation)
        if report is not None:
            click.echo(f"report written to {report}")
    return 0
