"""Explain the score of a row by its terms and training mistakes.

The score is the sum of the terms; the mistakes shown are those of the training that contributed most to it. For more than
two classes it is the lead of the predicted class over the runner-up, unless --class names a class. Of hashed words and
categories those are named that the row has.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import click

from separatrix.cli.errors import errors_reported, in_options, tell, terminal_width
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import Json, ModelFile
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Data, Option, ReadingOptions


def explain(
    model: ModelFile,
    data: Data,
    row: Annotated[int, Option(min=1, help="Number of the row, from 1.")] = 1,
    top: Annotated[int, Option(min=1, help="How many terms and mistakes to show.")] = 10,
    of: Annotated[str | None, Option("--class", metavar="CLASS", help="Explain the score of this class.")] = None,
    against: Annotated[
        str | None, Option(metavar="CLASS", help="Explain what the score is ahead of that of this class.")
    ] = None,
    token: Annotated[
        int | None, Option(min=1, help="Of a tagger of sequences: number of the token, from 1; --row is the sequence.")
    ] = None,
    as_json: Json = False,
    *,
    reading: ReadingOptions,
) -> int:
    """Print the explanation of one row."""
    from separatrix.analysis import explaining
    from separatrix.cli.model_rows import ModelRows
    from separatrix.modelfile.archive import as_file, holds_tagger

    with errors_reported("explain", data), as_file(model) as model_file:
        model = Path(model_file)
        if holds_tagger(model):
            from separatrix.cli import sequences

            encoding = sequences.check_unused(reading, **{"class": of})
            return sequences.explain_tags(model, data, encoding, row, token, against, top, as_json)
        rows = ModelRows(model, data, reading.reading())
        first = 1  # the number of the batch's first row
        for X, y, batch in rows.batches():
            if row < first + len(batch):
                i = row - first
                x = X[i : i + 1] if rows.model.features is None else rows.features_of(batch[i : i + 1])
                explanation = explaining.explain(rows.model, x, of=of, against=against, n=top)
                place = batch.origin.place(i)
                label: Any = None if y is None else y[i]
                break
            first += len(batch)
        else:
            raise DataError(f"{rows.source.name} has {counted(first - 1, 'row')}; there is no row {row:,}")
    tell("explain", rows.notes)
    explanation = replace(explanation, no_causes=in_options(explanation.no_causes))
    label = label.as_py() if hasattr(label, "as_py") else None if label is None else label.item()
    if as_json:
        document = {"place": place, "label": label} | explanation.to_dict()
        echo_json(json.dumps(document, ensure_ascii=False, default=str))
    else:
        click.echo(place + ("" if label is None else f", labelled {label}"))
        click.echo(explanation.text(top, first_example=1, width=terminal_width()))
    return 0
