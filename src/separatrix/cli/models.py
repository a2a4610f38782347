"""The verbs that make and use models: their options. What they do is in a file each, imported when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from separatrix.cli.options import Data, Drop, Label
from separatrix.engine.rules import RULES, TIES, in_words

Model = Annotated[Path, typer.Argument(help="A model written by `separatrix train -o`.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="svmlight, csv, tsv, jsonl, parquet, arrow or npz; else told by the content."),
]
Engine = Annotated[
    str | None,
    typer.Option(help="Who works on the files, a shard each: local:4 (processes), dask://HOST:PORT, spark://HOST:PORT."),
]
OnError = Annotated[str, typer.Option("--on-error", help="raise, or skip: leave out lines that cannot be read.")]
Header = Annotated[bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")]


def train(
    data: Data,
    label: Label = None,
    output: Output = None,
    text: Annotated[list[str] | None, typer.Option(help="A column of text; may be given again.")] = None,
    categorical: Annotated[list[str] | None, typer.Option(help="A column of categories; may be given again.")] = None,
    number: Annotated[list[str] | None, typer.Option(help="A column of numbers; may be given again.")] = None,
    drop: Drop = None,
    numbers: Annotated[str | None, typer.Option(help="How numbers become features: bins, standard, max-abs, none.")] = None,
    bits: Annotated[int, typer.Option(min=8, max=28, help="Text is hashed to 2^bits features, shared by its columns.")] = 18,
    learner: Annotated[str, typer.Option(help="averaged, last, voted or pocket: which weights predict.")] = "averaged",
    rule: Annotated[str, typer.Option(help=f"{in_words(RULES)}.")] = "pa1",
    C: Annotated[str, typer.Option("-C", "--C", help="Of rules that have one; auto: a grid is tried.")] = "1",
    margin: Annotated[float, typer.Option(min=0, help="Of the margin rule.")] = 1.0,
    passes: Annotated[int, typer.Option(min=1, help="Passes at most.")] = 10,
    average_from: Annotated[int, typer.Option(min=1, help="The pass at which the average begins.")] = 1,
    order: Annotated[str, typer.Option(help="shuffle, permutation, cyclic or random.")] = "shuffle",
    tie: Annotated[str, typer.Option(help=f"What a score of 0 means: {in_words(TIES)}.")] = "mistake",
    bias: Annotated[bool, typer.Option("--bias/--no-bias", help="Learn a bias.")] = True,
    multi_class: Annotated[str, typer.Option(help="joint, or ovr: one class against the rest.")] = "joint",
    class_weight: Annotated[str | None, typer.Option(help="balanced: rare classes count more.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the order and of what is held out.")] = 0,
    holdout: Annotated[float, typer.Option(min=0, max=0.9, help="Fraction of the rows to hold out.")] = 0.0,
    validate: Annotated[str | None, typer.Option(help="Held-out data in a file of their own.")] = None,
    early_stopping: Annotated[
        bool,
        typer.Option("--early-stopping", help="Stop when held-out accuracy stalls, and go back to the best pass."),
    ] = False,
    patience: Annotated[int, typer.Option(min=1, help="For how many passes it may not rise.")] = 5,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Probabilities, from the held-out scores.")] = False,
    memory: Annotated[str, typer.Option(help="What the examples may take, as 512M or 2G; the rest goes to disk.")] = "2G",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the state of training here; a run that was ended goes on from it.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(min=0, help="Seconds between checkpoints.")] = 30.0,
    record: Annotated[bool, typer.Option("--record", help="Keep the rows of the mistakes, for explain.")] = False,
    engine: Engine = None,
    mix: Annotated[
        str,
        typer.Option(help="How shards are mixed: features (each over the shards that have it), uniform, mistakes."),
    ] = "features",
    form: Format = None,
    header: Header = None,
    on_error: OnError = "raise",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier on a file, and write it to one.

    Try:

      separatrix train iris -o iris.sepx

      separatrix train messages.tsv --label 0 --text 1 -o spam.sepx

      separatrix train 'part-*.svm.gz' --holdout 0.1 --early-stopping --checkpoint run.ckpt -o model.sepx

      separatrix train 'part-*.parquet' --label kind --engine local:4 -o model.sepx
    """
    from separatrix.cli.train import Options, run

    given = {name: value for name, value in locals().items() if name not in ("Options", "run")}
    raise typer.Exit(run(Options(**given)))


def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="A .csv, .jsonl or .parquet file (with --engine a folder); else standard output."
        ),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="The score of each class too.")] = False,
    engine: Engine = None,
    form: Format = None,
    header: Header = None,
    on_error: OnError = "raise",
) -> None:
    """Predict the label of every row of a file."""
    from separatrix.cli.predict import run

    raise typer.Exit(run(model, data, output, scores, engine, form, header, on_error))


def evaluate(
    model: Model,
    data: Data,
    label: Label = None,
    form: Format = None,
    header: Header = None,
    on_error: OnError = "raise",
    as_json: Json = False,
) -> None:
    """Judge a model on labelled data: accuracy, precision, recall and F1 by class, confusions, log loss if calibrated."""
    from separatrix.cli.evaluate import run

    raise typer.Exit(run(model, data, label, form, header, on_error, as_json))


def explain(
    model: Model,
    data: Data,
    row: Annotated[int, typer.Option(min=1, help="Which row, counted from 1.")] = 1,
    top: Annotated[int, typer.Option(min=1, help="How many terms and mistakes to show.")] = 10,
    form: Format = None,
    header: Header = None,
    as_json: Json = False,
) -> None:
    """Show the score of a row as the sum of its terms, and the training mistakes that contributed most."""
    from separatrix.cli.explain import run

    raise typer.Exit(run(model, data, row, top, form, header, as_json))


def export(
    model: Model,
    to: Annotated[str, typer.Option("--to", help="sklearn, onnx or sql.")],
    output: Output = None,
) -> None:
    """Write the model for another program: a scikit-learn estimator, ONNX, or a SQL expression over the columns."""
    from separatrix.cli.export import run

    raise typer.Exit(run(model, to, output))


def info(model: Model, as_json: Json = False) -> None:
    """Say what a model is and what it was trained on."""
    from separatrix.cli.info import run

    raise typer.Exit(run(model, as_json))
