"""`separatrix explain`: why a row got its score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from separatrix.analysis.explaining import explain
from separatrix.cli.refusal import refusing
from separatrix.cli.using import Use
from separatrix.data.errors import DataError


def run(model: Path, data: str, row: int, top: int, form: str | None, header: bool | None, as_json: bool) -> int:
    """Explain one row and print; return the exit status."""
    with refusing("explain", data):
        use = Use(model, data, form, header)
        met = 0
        for X, y, batch in use.batches():
            if met + len(batch) >= row:
                at = row - 1 - met
                x = X[at : at + 1] if use.model.features is None else use.features_of(batch[at : at + 1])
                told = explain(use.model, x, n=top)
                place = batch.origin.place(at)
                label: Any = None if y is None else y[at]
                break
            met += len(batch)
        else:
            raise DataError(f"{use.source.name} has {met:,} rows: there is no row {row:,}")
    true = label.as_py() if hasattr(label, "as_py") else None if label is None else label.item()
    if as_json:
        typer.echo(json.dumps({"place": place, "label": true} | told.to_dict(), ensure_ascii=False, default=str))
        return 0
    typer.echo(place + ("" if true is None else f", labelled {true}"))
    typer.echo(told.text(top))
    return 0
