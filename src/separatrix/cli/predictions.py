"""Predictions as CSV, JSON lines or Parquet, batch by batch.

Where lines may be left out, each prediction has the number of its line, so that it can be put beside what it predicts.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv

from separatrix.cli.model_rows import ModelRows
from separatrix.data.arrow_arrays import number_array, text_array, value_array
from separatrix.data.errors import Origin

ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
"""The format of predictions by the ending of the file."""


def write_predictions(rows: ModelRows, file: BinaryIO, form: str, with_scores: bool) -> int:
    """Write the predictions of all rows; return how many."""
    writer: Any = None
    n = 0
    for X, _, batch in rows.batches():
        table = prediction_table(rows, X, with_scores)
        if rows.skipping:
            table = with_places(table, batch.origin, len(rows.source.files) > 1)
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


def with_places(table: pa.Table, origin: Origin, several_files: bool) -> pa.Table:
    """Return predictions with the line, or row, of each in a first column; before it the file, where there are several."""
    places = {origin.unit: number_array(origin.numbers_of(np.arange(table.num_rows)))}
    if several_files:
        places = {"file": text_array([origin.file] * table.num_rows)} | places
    return pa.Table.from_arrays([*places.values(), *table.columns], names=[*places, *table.column_names])


def prediction_table(rows: ModelRows, X: Any, with_scores: bool) -> pa.Table:
    """Return the predicted label of each row, its margin, and where there are any the probabilities, and the scores."""
    scores = rows.scores(X)
    codes = np.asarray(rows.predicted_codes(scores), np.int64)
    columns = {"prediction": value_array(rows.classes.tolist()).take(number_array(codes))}
    if scores.shape[1] == 1:
        columns["margin"] = number_array(np.abs(scores[:, 0] - (rows.estimator.threshold_ or 0.0)))
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
