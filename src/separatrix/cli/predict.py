"""`separatrix predict`: the label of every row, streamed to a file or to standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from separatrix.cli.refusal import refusing
from separatrix.cli.using import Use
from separatrix.data.errors import DataError
from separatrix.modelfile.model import replacing

KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}


def run(
    model: Path,
    data: str,
    output: Path | None,
    scores: bool,
    engine: str | None,
    form: str | None,
    header: bool | None,
    on_error: str,
) -> int:
    """Predict and write; return the exit status."""
    with refusing("predict", data):
        if engine is not None:
            from separatrix.cli import clusters

            clusters.predict(engine, model, data, output, scores, form, header, on_error)
            return 0
        kind = "csv" if output is None else KINDS.get(output.suffix.lower(), "")
        if not kind:
            raise DataError(f"{output}: write to a file that ends in {', '.join(KINDS)}")
        use = Use(model, data, form, header, on_error)
        if output is None:
            write(use, sys.stdout.buffer, kind, scores)
        else:
            with replacing(output) as name, open(name, "wb") as file:
                n = write(use, file, kind, scores)
            skipped = f", {use.source.skipped:,} lines skipped" if use.source.skipped else ""
            print(f"{n:,} predictions written to {output}{skipped}", file=sys.stderr)
    return 0


def write(use: Use, file: Any, kind: str, scores: bool) -> int:
    """Write the predictions of all rows; return how many."""
    writer: Any = None
    n = 0
    for X, _, _ in use.batches():
        table = _predictions(use, X, scores)
        n += table.num_rows
        if kind == "jsonl":
            import json

            file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in table.to_pylist())
            continue
        if writer is None:
            maker = pa.csv.CSVWriter if kind == "csv" else pa.parquet.ParquetWriter
            writer = maker(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return n


def _predictions(use: Use, X: Any, with_scores: bool) -> pa.Table:
    found = use.scores(X)
    labels = use.decided(found)
    columns: dict[str, Any] = {"prediction": pa.array(labels.tolist())}
    lead = np.abs(found[:, 0]) if found.shape[1] == 1 else -np.diff(np.sort(found, axis=1)[:, -2:][:, ::-1], axis=1)[:, 0]
    columns["margin"] = lead
    names = [str(label) for label in use.classes.tolist()]
    if hasattr(use.estimator, "slope_"):
        from separatrix.learners.calibration import probabilities

        shares = probabilities(found, use.estimator.slope_, use.estimator._decide(found, len(use.classes)))
        columns |= {f"probability of {name}": shares[:, k] for k, name in enumerate(names)}
    if with_scores:
        shown = names if found.shape[1] > 1 else names[1:]
        columns |= {f"score of {name}": found[:, k] for k, name in enumerate(shown)}
    return pa.table(columns)
