"""Predictions as CSV, JSON lines or Parquet, batch by batch."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv

from separatrix.cli.model_rows import ModelRows
from separatrix.data.arrow_arrays import number_array, value_array

ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
"""The format of predictions by the ending of the file."""


def write_predictions(rows: ModelRows, file: BinaryIO, form: str, with_scores: bool) -> int:
    """Write the predictions of all rows; return how many."""
    writer: Any = None
    n = 0
    for X, _, _ in rows.batches():
        table = prediction_table(rows, X, with_scores)
        n += table.num_rows
        if form == "jsonl":
            file.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in table.to_pylist())
            continue
        if writer is None:
            writer = new_writer(file, form, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return n


def new_writer(file: BinaryIO, form: str, schema: pa.Schema) -> Any:
    """Return pyarrow's writer of CSV or Parquet."""
    if form == "csv":
        return pa.csv.CSVWriter(file, schema)
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter(file, schema)


def prediction_table(rows: ModelRows, X: Any, with_scores: bool) -> pa.Table:
    """Return the predicted label of each row, its margin, and where there are any the probabilities, and the scores."""
    scores = rows.scores(X)
    codes = np.asarray(rows.predicted_codes(scores), np.int64)
    columns = {"prediction": value_array(rows.classes.tolist()).take(number_array(codes))}
    if scores.shape[1] == 1:
        columns["margin"] = number_array(np.abs(scores[:, 0]))
    else:  # the highest score less the second highest
        columns["margin"] = number_array(-np.diff(np.sort(scores, axis=1)[:, -2:][:, ::-1], axis=1)[:, 0])
    names = [str(label) for label in rows.classes.tolist()]
    if rows.calibrated:
        probabilities = rows.probabilities(scores)
        columns |= {f"probability of {name}": number_array(probabilities[:, k]) for k, name in enumerate(names)}
    if with_scores:
        scored = names if scores.shape[1] > 1 else names[1:]
        columns |= {f"score of {name}": number_array(scores[:, k]) for k, name in enumerate(scored)}
    return pa.Table.from_arrays(list(columns.values()), names=list(columns))
