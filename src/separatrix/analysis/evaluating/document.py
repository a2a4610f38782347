"""An evaluation in words and as plain values, as JSON has them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.data.errors import counted
from separatrix.engine.rows import Ints

if TYPE_CHECKING:
    from separatrix.analysis.evaluating.evaluation import Evaluation


def remarks_on(evaluation: Evaluation) -> list[str]:
    """Return what a person should know before trusting the figures."""
    remarks = []
    low, high = evaluation.interval
    best = f"always predicting {evaluation.baseline.label} ({evaluation.baseline.accuracy:.4f})"
    if not evaluation.beats_baseline:
        why = ", as a threshold for another purpose may have it" if evaluation.threshold else ""
        remarks.append(f"the accuracy is no better than {best}{why}")
    elif low <= evaluation.baseline.accuracy <= high:
        remarks.append(f"the interval includes {best}: the difference may be chance")
    if evaluation.chosen_by:
        remarks.append("the threshold was chosen on these rows: the figures are optimistic for other rows")
    if evaluation.sample is not None and len(evaluation.sample.codes) < evaluation.sample.n:
        some = f"{len(evaluation.sample.codes):,} of {evaluation.sample.n:,} rows, drawn at random"
        remarks.append(f"ROC AUC and average precision are of {some}")
    if unknown := evaluation.unknown_labels:
        labels = ", ".join(f"{name} ({count:,})" for name, count in list(unknown.items())[:6])
        have = counted(sum(unknown.values()), "row has a label", "rows have labels")
        remarks.append(f"{have} unknown to the model, counted as wrong: {labels}{' …' if len(unknown) > 6 else ''}")
    absent = [name for name, rows in zip(evaluation.names, evaluation.confusion.sum(axis=1), strict=True) if not rows]
    if absent and not evaluation.two_classes:
        which = ", ".join(absent[:6]) + (" …" if len(absent) > 6 else "")
        remarks.append(f"no row is of {which}: balanced accuracy, ROC AUC and average precision leave them out")
    return remarks


def as_document(evaluation: Evaluation, curves: bool) -> dict[str, Any]:
    """Return all figures as plain values, with the points of the curves if they are wanted."""
    low, high = evaluation.interval
    document: dict[str, Any] = {
        "data": evaluation.name,
        "rows": evaluation.rows,
        "accuracy": evaluation.accuracy,
        "accuracy_interval": {"low": low, "high": high, "confidence": 0.95, "method": "Wilson"},
        "baseline": evaluation.baseline._asdict() | {"label": str(evaluation.baseline.label)},
        "beats_baseline": evaluation.beats_baseline,
        **{name: getattr(evaluation, name) for name in ("balanced_accuracy", "macro_f1", "weighted_f1", "roc_auc")},
        **{name: getattr(evaluation, name) for name in ("average_precision", "log_loss", "brier", "calibration_error")},
        "average": "of the positive class" if evaluation.two_classes else "mean of one class against the rest",
        "undefined": evaluation.undefined,
        "classes": {str(label): figures._asdict() for label, figures in evaluation.by_class.items()},
        "confusion": {
            "labels": evaluation.names,
            "matrix": evaluation.confusion.tolist(),
            "unknown": evaluation.of_unknown.tolist(),
        },
        "unknown_labels": evaluation.unknown_labels,
        "remarks": evaluation.remarks(),
        "notes": evaluation.notes,
    }
    if evaluation.two_classes:
        document["positive"] = evaluation.names[evaluation.positive]
        document["threshold"] = {
            "score": evaluation.threshold,
            "probability": evaluation.probability_threshold,
            "chosen_by": evaluation.chosen_by,
        }
    if evaluation.calibration is not None:
        document["calibration"] = evaluation.calibration.bins()
    if evaluation.chosen_by and evaluation.chosen_by.startswith("cost="):
        document["mean_cost"] = evaluation.cost(evaluation.chosen_by)
    document["errors"] = [
        error._asdict()
        | {"true": evaluation.names[error.true], "predicted": evaluation.names[error.predicted]}
        | {"values": {name: plain(value) for name, value in error.values.items()}}
        for error in evaluation.errors
    ]
    if curves:
        document["curves"] = evaluation.curves()
    return document | evaluation.facts


def curves_of(evaluation: Evaluation, most: int) -> dict[str, dict[str, list[list[float]]]]:
    """Return by class the points of its ROC curve and of precision against recall, thinned to about `most` each."""
    curves = {}
    for name, ranking in zip(evaluation.names, evaluation.rankings, strict=bool(evaluation.rankings)):
        pairs = {"roc": ranking.roc(), "precision_recall": ranking.precision_recall()}
        curves[name] = {kind: np.column_stack(pair)[_thinned(len(pair[0]), most)].tolist() for kind, pair in pairs.items()}
    return curves


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _thinned(n: int, most: int) -> Ints:
    """Return at most about `most` of n places, the first and the last among them."""
    return np.unique(np.linspace(0, max(0, n - 1), min(n, most)).round().astype(np.int64))
