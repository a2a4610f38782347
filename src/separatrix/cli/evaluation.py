"""The figures of `separatrix evaluate`, and how they are printed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from separatrix.cli.errors import in_options
from separatrix.cli.model_rows import ModelRows
from separatrix.data.errors import DataError, NoExampleError, counted
from separatrix.data.labels import matched
from separatrix.files.blocks import LabelIndex

MOST_CONFUSIONS = 12
"""Up to how many classes the whole confusion matrix is printed; for more, this many of its largest entries."""
MOST_CLASSES = 24


def evaluate_rows(rows: ModelRows) -> dict[str, Any]:
    """Return accuracy, macro F1, precision, recall and F1 by class, the confusion matrix, and log loss if calibrated."""
    names = [str(label) for label in rows.classes.tolist()]
    K = len(names)
    confusion, unknown_labels = np.zeros((K, K), np.int64), Counter[str]()
    loss, n = 0.0, 0
    meant: dict[Any, Any] = {}
    for X, y in rows.labelled_batches():
        labels = LabelIndex()
        codes = labels.codes(y)
        true = labels.among(rows.classes, as_written=False)[codes]
        meant |= labels.matching(rows.classes)
        scores = rows.scores(X)
        predicted = rows.predicted_codes(scores)
        is_class = true >= 0
        np.add.at(confusion, (true[is_class], predicted[is_class]), 1)
        label_names = np.array([str(label) for label in labels.met()])
        unknown_labels.update(label_names[codes[~is_class]].tolist())
        if rows.calibrated:
            of_true = rows.probabilities(scores)[is_class, true[is_class]]
            loss -= float(np.log(np.maximum(of_true, 1e-15)).sum())
        n += len(true)
    if not n:
        raise NoExampleError(f"{rows.source.name}: there is no row with a label; {rows.unlabelled.note}")
    if not confusion.any():
        raise DataError(_no_known_label(rows, n, unknown_labels))
    right, rows_of, predicted_as = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = np.nan_to_num(right / predicted_as), np.nan_to_num(right / rows_of)
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    evaluation: dict[str, Any] = {
        "data": rows.source.name,
        "rows": n,
        "accuracy": float(right.sum() / n),
        "macro_f1": float(f1[rows_of > 0].mean()) if (rows_of > 0).any() else 0.0,
        "classes": {
            name: {"precision": float(p), "recall": float(r), "f1": float(f), "rows": int(count)}
            for name, p, r, f, count in zip(names, precision, recall, f1, rows_of, strict=True)
        },
        "confusion": {"labels": names, "matrix": confusion.tolist()},
        "unknown_labels": dict(unknown_labels.most_common()),
        "skipped": rows.source.skipped,
        "unlabelled": rows.unlabelled.count,
        "notes": [*rows.notes, *matched(meant)],
    }
    if rows.calibrated:
        evaluation["log_loss"] = loss / max(1, int(rows_of.sum()))
    return evaluation


def _no_known_label(rows: ModelRows, n: int, unknown_labels: Counter[str]) -> str:
    names = ", ".join(name[:40] for name, _ in unknown_labels.most_common(3)) + (" …" if len(unknown_labels) > 3 else "")
    hint = "" if rows.label is None else f"; is {rows.label!r} the label column? --label names another one"
    return f"{rows.source.name}: none of {counted(n, 'row')} has a label that the model knows: {names}{hint}"


def print_evaluation(evaluation: dict[str, Any]) -> None:
    """Print the figures for a person."""
    console = Console(highlight=False)
    accuracy = f"accuracy [bold]{evaluation['accuracy']:.4f}[/bold]"
    console.print(f"{evaluation['data']}: {counted(evaluation['rows'], 'row')}, {accuracy}", soft_wrap=True)
    if "log_loss" in evaluation:
        console.print(f"log loss {evaluation['log_loss']:.4f}")
    for note in evaluation["notes"]:
        console.print(in_options(note), markup=False, soft_wrap=True)
    if unknown := evaluation["unknown_labels"]:
        names = ", ".join(f"{name} ({count:,})" for name, count in list(unknown.items())[:6])
        total = sum(unknown.values())
        have = counted(total, "row has a label", "rows have labels")
        console.print(f"{have} unknown to the model, counted as wrong: {names}", markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for k, column in enumerate(("class", "precision", "recall", "F1", "rows")):
        table.add_column(column, justify="left" if k == 0 else "right")
    classes = evaluation["classes"]
    for name, figures in list(classes.items())[:MOST_CLASSES]:
        table.add_row(name, *(f"{figures[key]:.4f}" for key in ("precision", "recall", "f1")), f"{figures['rows']:,}")
    if len(classes) > MOST_CLASSES:
        table.add_row(f"… {len(classes)} classes in all", "", "", "", "")
    console.print(table)
    _print_confusions(console, evaluation["confusion"]["labels"], np.array(evaluation["confusion"]["matrix"]))


def _print_confusions(console: Console, names: list[str], matrix: Any) -> None:
    if len(names) <= MOST_CONFUSIONS:
        console.print("\nrows: the true class; columns: the predicted one", style="dim")
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("")
        for name in names:
            table.add_column(name, justify="right")
        for name, counts in zip(names, matrix.tolist(), strict=True):
            table.add_row(name, *(f"{count:,}" for count in counts))
        console.print(table)
        return
    errors = matrix - np.diag(np.diag(matrix))
    for place in np.argsort(-errors, axis=None)[:MOST_CONFUSIONS].tolist():
        i, j = divmod(place, len(names))
        if errors[i, j]:
            line = f"  {errors[i, j]:,} of {names[i]} were predicted as {names[j]}"
            console.print(line, markup=False, soft_wrap=True)
