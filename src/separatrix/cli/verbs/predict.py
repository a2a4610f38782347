"""Predict the label of every row of a file.

A tagger of sequences writes each line of a CoNLL file with the predicted tag behind it.

With --on-error skip, each prediction has the number of its line, since fewer rows may be written than the file has.
"""

import sys
from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, tell
from separatrix.cli.options import Engine, ModelFile
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Data, Option, ReadingOptions


def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            help="A .csv, .jsonl or .parquet file (with --engine a folder); by default CSV to standard output.",
        ),
    ] = None,
    scores: Annotated[bool, Option("--scores", help="Write the score of each class, too.")] = False,
    keep: Annotated[
        list[str] | None,
        Option(
            metavar="COLUMNS",
            help="Columns of the file to write before the predictions, as they are: names, or numbers from 0, with commas "
            "between; or all.",
        ),
    ] = None,
    engine: Engine = None,
    *,
    reading: ReadingOptions,
) -> int:
    """Write the predictions to a file or to standard output."""
    from separatrix.cli.model_rows import ModelRows
    from separatrix.cli.predictions import ENDINGS, write_predictions
    from separatrix.data.atomic import check_place, replacing
    from separatrix.modelfile.archive import as_file, holds_tagger

    how = reading.reading() | ({"keep": keep} if keep else {})
    with errors_reported("predict", data), as_file(model) as model_file:
        model = Path(model_file)
        if holds_tagger(model):
            from separatrix.cli import sequences

            encoding = sequences.check_unused(reading, scores=scores or None, keep=keep, engine=engine)
            return sequences.predict_sequences(model, data, output, encoding)
        if engine is not None:
            from separatrix.cli.sharded import PredictShard, predict_on_shards

            if output is None:
                raise DataError("--engine writes one file per shard: name a folder with -o")
            work = PredictShard(model.absolute(), output.absolute(), scores, how)
            n, skipped = predict_on_shards(engine, work, data)
        else:
            written_as = "csv" if output is None else ENDINGS.get(output.suffix.lower())
            if written_as is None:
                raise DataError(f"{output}: the file's name must end in {', '.join(ENDINGS)}")
            if output is not None:
                check_place(output)
            rows = ModelRows(model, data, how)
            if output is None:
                write_predictions(rows, sys.stdout.buffer, written_as, scores)
                tell("predict", rows.notes)
                return 0
            with replacing(output) as name, open(name, "wb") as file:
                n, skipped = write_predictions(rows, file, written_as, scores), rows.source.skipped
            tell("predict", rows.source.notes)
    note = f", {counted(skipped, 'line')} skipped" if skipped else ""
    click.echo(f"{counted(n, 'prediction')} written to {output}{note}", err=True)
    return 0
