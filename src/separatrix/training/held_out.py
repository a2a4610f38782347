"""The evaluation of a training on its held-out rows, the threshold that is chosen on them, and the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.analysis.evaluating.counting import Tally, described_row, python_value
from separatrix.analysis.evaluating.evaluation import Evaluation
from separatrix.analysis.evaluating.ranking import check_criterion
from separatrix.data.errors import DataError, counted
from separatrix.data.labels import Unlabelled
from separatrix.data.reading import Source
from separatrix.engine.rows import Array, Ints
from separatrix.files.blocks import Blocks, held_out_rows
from separatrix.learners.calibration import probabilities
from separatrix.learners.linear_base import LinearLearner
from separatrix.training.options import TrainOptions


def check_evaluation(options: TrainOptions) -> None:
    """Raise for options that cannot be had, before anything is read."""
    for name in ("optimize", "positive", "report"):
        if getattr(options, name) is None:
            continue
        if not options.holdout and options.validate is None:
            raise DataError(f"{name}= is about held-out rows: use holdout=0.2 or validate=")
        if options.engine is not None:
            raise DataError(f"{name}= needs the scores of held-out rows, which only workers have with engine=")
    if options.optimize is not None:
        try:
            check_criterion(options.optimize)
        except ValueError as error:
            raise DataError(str(error)) from None


def check_classes(options: TrainOptions, classes: Array) -> None:
    """Raise for options that are about two classes, before anything is trained, where there are others."""
    if options.optimize is not None and len(classes) != 2:
        raise DataError(f"optimize= chooses a threshold between two classes, and there are {len(classes)}")
    if options.positive is not None:
        try:
            Tally(classes.tolist(), positive=options.positive)
        except ValueError as error:
            raise DataError(str(error)) from None


def evaluate_held_out(options: TrainOptions, learner: LinearLearner, held_out: Blocks, name: str) -> Evaluation:
    """Return the evaluation on the held-out rows, at the best threshold for `optimize`, which the learner gets."""
    classes = learner.classes_.tolist()
    slope, K = getattr(learner, "slope_", None), len(classes)
    tally = Tally(classes, positive=options.positive, zero_is_positive=learner.tie == "+1", slope=slope)
    for k in range(len(held_out)):
        problem, numbers = held_out.read(k), held_out.numbers(k)
        scores = learner.scores(problem.rows)
        winners = learner.winners(scores, K)
        shares = None if slope is None else probabilities(scores, slope, winners)

        def describe(i: int, numbers: int | Ints = numbers) -> tuple[str, dict[str, Any]]:
            return str(i if isinstance(numbers, int) else int(numbers[i])), {}

        tally.add(problem.codes.astype(np.int64), winners, scores, shares, describe=describe)
    for label, count in held_out.unknown_labels().items():
        tally.unknown_labels[str(label)] += count
    chosen = [what for what, is_chosen in _chosen_on_these_rows(options).items() if is_chosen]
    notes = [f"{' and '.join(chosen)} on these rows: the figures are optimistic for other rows"] if chosen else []
    evaluation = _with_numbers(tally.evaluation(name, notes))
    if options.optimize is not None:
        evaluation = evaluation.optimize(options.optimize)
        learner.threshold_ = evaluation.cut or None
    return evaluation


def _chosen_on_these_rows(options: TrainOptions) -> dict[str, bool]:
    return {
        "the pass was chosen": options.early_stopping,
        "C was chosen": options.C == "auto",
        "probabilities were calibrated": options.calibrate,
    }


def _with_numbers(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with errors named by the number of their row, in the order in which held-out rows were read."""
    errors = [error._replace(row=int(error.place), place=f"held-out row {error.place}") for error in evaluation.candidates]
    return evaluation.with_candidates(errors)


def with_values(evaluation: Evaluation, options: TrainOptions, source: Source, validation: Source | None) -> Evaluation:
    """Return the evaluation with the places and values of the most confident errors, which are read again."""
    read, fraction = (source, options.holdout) if validation is None else (validation, None)
    wanted = {error.row for error in evaluation.candidates}
    described = dict(_rows_at(wanted, read, source.label, fraction, options))
    errors = []
    for error in evaluation.candidates:
        place, values = described.get(error.row, (error.place, error.values))
        errors.append(error._replace(place=place, values=values))
    return evaluation.with_candidates(errors)


def _rows_at(
    wanted: set[int], source: Source, label: str | None, fraction: float | None, options: TrainOptions
) -> Iterator[tuple[int, tuple[str, dict[str, Any]]]]:
    """Yield the held-out rows with some numbers, where each comes from, and its values."""
    unlabelled, first, number = Unlabelled.as_chosen(options.missing_label), 0, 0
    for batch in source:
        y = batch.y if source.kind == "rows" else batch.table[label]
        kept = unlabelled.kept(y, batch.origin)
        is_held_out = np.ones(len(batch), np.bool_) if kept is None else kept.copy()
        if fraction is not None:
            is_held_out &= held_out_rows(first, len(batch), fraction, options.seed)
        first += len(batch)
        for i in np.flatnonzero(is_held_out).tolist():
            if number in wanted:
                if source.kind == "rows":
                    values = described_row(batch.X, i)
                else:
                    table = batch.table
                    values = {name: python_value(table.column(name)[i]) for name in table.schema.names if name != label}
                yield number, (batch.origin.place(i), values)
            number += 1


def evaluation_lines(evaluation: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of an evaluation that stand beside the accuracy, in short lines."""
    interval, baseline = evaluation["accuracy_interval"], evaluation["baseline"]
    yield (
        f"95 % interval {interval['low']:.4f} to {interval['high']:.4f} (Wilson); always predicting {baseline['label']}: "
        f"{baseline['accuracy']:.4f}"
    )
    names = {
        "balanced accuracy": "balanced_accuracy",
        "macro F1": "macro_f1",
        "ROC AUC": "roc_auc",
        "average precision": "average_precision",
    }
    yield _listed(evaluation, names)
    if evaluation["log_loss"] is not None:
        yield _listed(evaluation, {"log loss": "log_loss", "Brier score": "brier", "calibration error": "calibration_error"})
    threshold = evaluation.get("threshold", {})
    if threshold.get("chosen_by"):
        yield (
            f"threshold {threshold['score']:.6g} on the score of {evaluation['positive']}, best for "
            f"{threshold['chosen_by']} on the held-out rows: their figures are optimistic"
        )
    yield from evaluation["notes"]


def _listed(evaluation: dict[str, Any], names: dict[str, str]) -> str:
    figures = ((name, evaluation[key]) for name, key in names.items())
    return ", ".join(f"{name} {'undefined' if value is None else f'{value:.4f}'}" for name, value in figures)


def held_out_name(source: Source, validation: Source | None, held_out: Blocks) -> str:
    """Return what the held-out rows are called."""
    return f"{counted(held_out.n, 'held-out row')} of {source.name}" if validation is None else validation.name
