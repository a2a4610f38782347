"""Train a classifier on a file, and write it to one.

Try:

  separatrix train iris -o iris.sepx
  separatrix train messages.tsv --label 0 --text 1 -o spam.sepx
  separatrix train staff.csv --label pay --tune --budget 60 -o pay.sepx
  separatrix train 'part-*.svm.gz' --holdout 0.1 --early-stopping -o m.sepx
  separatrix train chunks.conll --sequence --holdout 0.1 -o chunks.sepx
  separatrix train 'part-*.parquet' --label kind --engine local:4 -o m.sepx
"""

import json

import click

from separatrix.cli.errors import errors_reported
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import Json, Quiet
from separatrix.training.options import TrainOptions


def train(options: TrainOptions, as_json: Json = False, quiet: Quiet = False) -> int:
    """Train, print the summary and write the model."""
    from separatrix.data.streams import FileDigests

    # The files are hashed while the packages are imported, which takes longer and does not use the other cores.
    is_hashed = options.engine is None and not options.sequence
    digests = FileDigests(options.data) if is_hashed else None

    from separatrix.cli.training import InterruptibleTraining, as_options, printed, progress_of

    with errors_reported("train", options.data):
        with progress_of(options, quiet or as_json) as progress:
            training = InterruptibleTraining(options, progress, plain=True, digests=digests)
            try:
                summary = training.run().summary
            except KeyboardInterrupt:
                summary = None
    if summary is None:
        resume = f"run the same command again to resume from {options.checkpoint}"
        click.echo(f"separatrix train: interrupted; {resume if training.saved else 'nothing was written'}", err=True)
        return 130
    if as_json:
        echo_json(json.dumps(as_options(summary), ensure_ascii=False))
    else:
        click.echo(printed(summary))
    return 0
