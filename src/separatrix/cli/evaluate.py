"""`separatrix evaluate`: how well a model does on labelled data."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from separatrix.cli.refusal import refusing
from separatrix.cli.using import Use
from separatrix.data.errors import DataError
from separatrix.files.blocks import Labels

SHOWN = 12


def run(
    model: Path, data: str, label: str | None, form: str | None, header: bool | None, on_error: str, as_json: bool
) -> int:
    """Evaluate and print; return the exit status."""
    with refusing("evaluate", data):
        found = evaluate(Use(model, data, form, header, on_error, label, judging=True))
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
    else:
        _show(found)
    return 0


def evaluate(use: Use) -> dict[str, Any]:
    """Return the figures."""
    names = [str(label) for label in use.classes.tolist()]
    K = len(names)
    confusion, strangers = np.zeros((K, K), np.int64), Counter[str]()
    loss, n = 0.0, 0
    for X, y in use.labelled_batches():
        labels = Labels()
        places = labels.codes(y)
        true = labels.among(use.classes, as_written=False)[places]
        scores = use.scores(X)
        told = use.estimator._decide(scores, K)
        known = true >= 0
        np.add.at(confusion, (true[known], told[known]), 1)
        met = np.array([str(label) for label in labels.met()])
        strangers.update(met[places[~known]].tolist())
        if hasattr(use.estimator, "slope_"):
            from separatrix.learners.calibration import probabilities

            shares = probabilities(scores, use.estimator.slope_, told)[known, true[known]]
            loss -= float(np.log(np.maximum(shares, 1e-15)).sum())
        n += len(true)
    if n and not confusion.any():
        raise DataError(_all_strangers(use, n, strangers))
    right, seen, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = np.nan_to_num(right / said), np.nan_to_num(right / seen)
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    by_class = {
        name: {"precision": precision[k], "recall": recall[k], "f1": f1[k], "rows": int(seen[k])}
        for k, name in enumerate(names)
    }
    found: dict[str, Any] = {
        "data": use.source.name,
        "rows": n,
        "accuracy": float(right.sum() / n),
        "macro_f1": float(f1[seen > 0].mean()) if (seen > 0).any() else 0.0,
        "classes": {
            name: {key: float(v) if key != "rows" else v for key, v in one.items()} for name, one in by_class.items()
        },
        "confusion": {"labels": names, "matrix": confusion.tolist()},
        "unknown_labels": dict(strangers.most_common()),
        "skipped": use.source.skipped,
    }
    if hasattr(use.estimator, "slope_"):
        found["log_loss"] = loss / max(1, int(seen.sum()))
    return found


def _all_strangers(use: Use, n: int, strangers: Counter[str]) -> str:
    several = ", ".join(name[:40] for name, _ in strangers.most_common(3)) + (" …" if len(strangers) > 3 else "")
    where = "" if use.label is None else f"; is {use.label!r} the column of labels? --label names another"
    return f"{use.source.name}: no row of {n:,} has a label that the model knows: {several}{where}"


def _show(found: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(f"{found['data']}: {found['rows']:,} rows, accuracy [bold]{found['accuracy']:.4f}[/bold]", soft_wrap=True)
    if "log_loss" in found:
        console.print(f"log loss {found['log_loss']:.4f}")
    if found["skipped"]:
        console.print(f"{found['skipped']:,} lines were skipped")
    if found["unknown_labels"]:
        several = ", ".join(f"{name} ({count:,})" for name, count in list(found["unknown_labels"].items())[:6])
        total = sum(found["unknown_labels"].values())
        console.print(
            f"{total:,} rows have labels that the model has never met, all counted as wrong: {several}", soft_wrap=True
        )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for k, column in enumerate(("class", "precision", "recall", "F1", "rows")):
        table.add_column(column, justify="left" if k == 0 else "right")
    for name, one in list(found["classes"].items())[: 2 * SHOWN]:
        table.add_row(name, *(f"{one[key]:.4f}" for key in ("precision", "recall", "f1")), f"{one['rows']:,}")
    if len(found["classes"]) > 2 * SHOWN:
        table.add_row(f"… {len(found['classes'])} classes in all", "", "", "", "")
    console.print(table)
    names, matrix = found["confusion"]["labels"], np.array(found["confusion"]["matrix"])
    if len(names) <= SHOWN:
        console.print("\nrows: the true class; columns: the predicted one", style="dim")
        grid = Table(box=None, pad_edge=False, header_style="dim")
        grid.add_column("")
        for name in names:
            grid.add_column(name, justify="right")
        for name, row in zip(names, matrix.tolist(), strict=True):
            grid.add_row(name, *(f"{count:,}" for count in row))
        console.print(grid)
    else:
        off = matrix - np.diag(np.diag(matrix))
        worst = np.argsort(-off, axis=None)[:SHOWN]
        for place in worst.tolist():
            i, j = divmod(place, len(names))
            if off[i, j]:
                console.print(f"  {off[i, j]:,} of {names[i]} were called {names[j]}", markup=False, soft_wrap=True)
