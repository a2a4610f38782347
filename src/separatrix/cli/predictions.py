"""Predictions as CSV, JSON lines or Parquet, batch by batch, with the columns of the file that are to be kept before them.

Where lines may be left out, each prediction has the number of its line, so that it can be put beside what it predicts.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from separatrix.cli.model_rows import ModelRows
from separatrix.data.arrow_arrays import number_array, text_array, value_array
from separatrix.data.errors import Origin

ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
"""The format of predictions by the ending of the file."""
AS_READ = " (as read)"
"""What is added to the name of a kept column that one of ours has."""
_QUOTE, _TWO_QUOTES, _COMMA, _NOTHING = text_array(['"', '""', ",", ""])
_NEEDS_QUOTES = r'[",\r\n]|^\s|\s$'


def write_predictions(rows: ModelRows, file: BinaryIO, form: str, with_scores: bool) -> int:
    """Write the predictions of all rows; return how many."""
    writer: Any = None
    try:
        n = 0
        for X, _, batch in rows.batches():
            ours = prediction_table(rows, X, with_scores)
            places = _places(batch.origin, ours.num_rows, len(rows.source.files) > 1) if rows.skipping else {}
            kept = {} if getattr(batch, "kept", None) is None else _kept(rows, batch.kept, [*places, *ours.column_names])
            json_texts = kept if rows.source.format == "jsonl" else {}
            if form != "jsonl":
                kept |= {name: _from_json(column) for name, column in json_texts.items()}
            table = pa.table(places | kept | dict(zip(ours.column_names, ours.columns, strict=True)))
            n += table.num_rows
            if form == "parquet":
                from pyarrow.parquet import ParquetWriter

                writer = writer or ParquetWriter(file, table.schema)
                writer.write_table(table)
            elif form == "jsonl":
                file.write(_json_lines(table, json_texts))
            else:
                file.write(_csv_lines(table, kept, header=n == table.num_rows))
            file.flush()
        if writer is not None:
            writer.close()
    except BaseException:
        if writer is not None:
            writer.is_open = False  # the file is thrown away: nothing is added to it when the writer is collected
        raise
    return n


def _places(origin: Origin, n: int, several_files: bool) -> dict[str, Any]:
    """Return the line, or row, of each prediction; before it the file, where there are several."""
    places = {"file": text_array([origin.file] * n)} if several_files else {}
    return places | {origin.unit: number_array(origin.numbers_of(np.arange(n)))}


def _kept(rows: ModelRows, table: pa.RecordBatch, ours: Collection[str]) -> dict[str, Any]:
    """Return the columns that are kept by name; one that has the name of one of ours gets another name, with a note."""
    columns: dict[str, Any] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        unique = name
        while unique in ours or (unique != name and unique in table.schema.names):
            unique += AS_READ
        if unique != name:
            rows.source.add_note(f"kept {name}", f"the column {name!r} of the file is written as {unique!r}")
        columns[unique] = column.dictionary_decode() if kinds.is_dictionary(column.type) else column
    return columns


def _from_json(column: Any) -> Any:
    """Return JSON texts as texts: strings without their quotes, null as null, and anything else as it is written."""
    texts = ((None, text) if text is None or text[0] != '"' else (json.loads(text), text) for text in column.to_pylist())
    return text_array(None if text in (None, "null") else text if value is None else value for value, text in texts)


def _json_lines(table: pa.Table, json_texts: Collection[str]) -> bytes:
    """Return the rows as JSON objects; some columns are JSON already."""
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = column.to_pylist()
        texts = [text or "null" for text in values] if name in json_texts else [*map(_json_text, values)]
        head = json.dumps(name, ensure_ascii=False)
        columns.append([f"{head}: {text}" for text in texts])
    return "".join(f"{{{', '.join(row)}}}\n" for row in zip(*columns, strict=True)).encode()


def _json_text(value: Any) -> str:
    return json.dumps(None if value != value else value, ensure_ascii=False, default=str)  # NaN is no JSON


def _csv_lines(table: pa.Table, kept: Collection[str], header: bool) -> bytes:
    """Return the rows as CSV: texts in quotes, those of columns that are kept only if they need them."""
    fields = [_csv_fields(column, name in kept) for name, column in zip(table.column_names, table.columns, strict=True)]
    lines = pc.binary_join_element_wise(*fields, _COMMA).to_pylist() if table.num_rows else []
    names = _csv_fields(pa.chunked_array([text_array(table.column_names)]), False).to_pylist()
    return "".join(f"{line}\n" for line in [*[",".join(names)] * header, *lines]).encode()


def _csv_fields(column: pa.ChunkedArray, bare: bool) -> pa.ChunkedArray:
    """Return a column as CSV writes it; a missing value is empty. `bare`: without quotes, except where they are needed."""
    is_text = kinds.is_string(column.type) or kinds.is_large_string(column.type) or kinds.is_string_view(column.type)
    if kinds.is_nested(column.type):
        column, is_text = pa.chunked_array([text_array(map(_json_text, column.to_pylist()))]), True
    texts = column if column.type == pa.string() else column.cast(pa.string())
    if is_text:
        doubled = pc.replace_substring(texts, _QUOTE.as_py(), _TWO_QUOTES.as_py())
        quoted = pc.binary_join_element_wise(_QUOTE, doubled, _QUOTE, _NOTHING)
        texts = pc.if_else(pc.match_substring_regex(texts, _NEEDS_QUOTES), quoted, texts) if bare else quoted
    return pc.fill_null(texts, _NOTHING)


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
