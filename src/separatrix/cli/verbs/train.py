"""Train a classifier on a file, and write it to one.

Try:

  separatrix train iris -o iris.sepx

  separatrix train messages.tsv --label 0 --text 1 -o spam.sepx

  separatrix train 'part-*.svm.gz' --holdout 0.1 --early-stopping --checkpoint run.ckpt -o model.sepx

  separatrix train 'part-*.parquet' --label kind --engine local:4 -o model.sepx
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import click

from separatrix.cli.commands import options_from
from separatrix.cli.errors import ROLE_OPTIONS, errors_reported
from separatrix.cli.options import Engine, Json, Output, Quiet
from separatrix.data.errors import DataError
from separatrix.data.options import Categorical, Data, Drop, Label, MissingLabel, Option, ReadingOptions
from separatrix.engine.rules import RULES, TIES, in_words

NOT_STORED = (
    *("data", "output", "validate", "memory", "checkpoint", "checkpoint_every", "as_json", "quiet", "engine", "mix"),
    "missing_label",
)
"""Options on which the model does not depend, or which the hash of the data stands for; missing labels that are kept are."""


@dataclass(frozen=True)
class TrainOptions(ReadingOptions):
    """The options of `separatrix train`."""

    data: Data
    label: Label = None
    output: Output = None
    text: Annotated[list[str] | None, Option(help="Text column; repeatable.")] = None
    categorical: Categorical = None
    number: Annotated[list[str] | None, Option(help="Number column; repeatable.")] = None
    date: Annotated[list[str] | None, Option(help="Column of dates or times; repeatable.")] = None
    sets: Annotated[list[str] | None, Option("--set", help="Column of sets, such as red|green; repeatable.")] = None
    drop: Drop = None
    numbers: Annotated[
        str | None, Option(help="How numbers become features: bins, standard, max-abs or none; by default bins.")
    ] = None
    bits: Annotated[int, Option(min=8, max=28, help="Hash text to 2^bits features, shared by the text columns.")] = 18
    learner: Annotated[
        str,
        Option(help="Which weights predict: averaged, last, voted (all, by vote) or pocket (fewest training mistakes)."),
    ] = "averaged"
    rule: Annotated[str, Option(help=f"Update rule: {in_words(RULES)}.")] = "pa1"
    C: Annotated[
        str,
        Option(
            "-C",
            "--C",
            help=f"Aggressiveness of {in_words(name for name, rule in RULES.items() if rule.has_C)}; auto searches a grid.",
        ),
    ] = "1"
    margin: Annotated[float, Option(min=0, help="Margin of the margin rule.")] = 1.0
    passes: Annotated[int, Option(min=1, help="Maximum number of passes.")] = 10
    average_from: Annotated[int, Option(min=1, help="First pass to be averaged.")] = 1
    order: Annotated[str, Option(help="Order of the examples in a pass: shuffle, permutation, cyclic or random.")] = (
        "shuffle"
    )
    tie: Annotated[str, Option(help=f"Meaning of a score of 0: {in_words(TIES)}.")] = "mistake"
    bias: Annotated[bool, Option("--bias/--no-bias", help="Learn a bias.")] = True
    multi_class: Annotated[str, Option(help="How to learn several classes: joint, or ovr (each against the rest).")] = (
        "joint"
    )
    class_weight: Annotated[str | None, Option(help="balanced: weight each class by the inverse of its frequency.")] = None
    seed: Annotated[int, Option(min=0, help="Seed for shuffling and the hold-out split.")] = 0
    holdout: Annotated[float, Option(min=0, max=0.9, help="Fraction of the rows to hold out.")] = 0.0
    validate: Annotated[str | None, Option(help="File of held-out data.")] = None
    early_stopping: Annotated[
        bool,
        Option("--early-stopping", help="Stop when held-out accuracy no longer improves, and return to the best pass."),
    ] = False
    patience: Annotated[int, Option(min=1, help="Passes without improvement before stopping early.")] = 5
    calibrate: Annotated[bool, Option("--calibrate", help="Fit probabilities to the held-out scores.")] = False
    memory: Annotated[str, Option(help="Memory for the examples, for example 512M or 2G; the rest is kept on disk.")] = "2G"
    checkpoint: Annotated[
        Path | None, Option(help="Save the state of training here; an interrupted run resumes from it.")
    ] = None
    checkpoint_every: Annotated[float, Option(min=0, help="Seconds between checkpoints.")] = 30.0
    record: Annotated[bool, Option("--record", help="Store the rows of the mistakes, for explain.")] = False
    engine: Engine = None
    mix: Annotated[
        str,
        Option(
            help="How to average the shards' weights: features (each over the shards that have it), uniform or mistakes."
        ),
    ] = "features"
    missing_label: MissingLabel = "skip"
    as_json: Json = False
    quiet: Quiet = False

    def settings(self) -> dict[str, Any]:
        """Return what the model depends on besides the data, as JSON values: the model file stores it."""
        stored = {name: value for name, value in asdict(self).items() if name not in NOT_STORED and value is not None}
        stored |= {"missing_label": self.missing_label} if self.missing_label == "keep" else {}
        settings: dict[str, Any] = json.loads(json.dumps(stored, default=str))
        return settings

    def roles(self) -> dict[str, str]:
        """Return the roles given to columns, by the column's name or number."""
        columns = {"text": self.text, "category": self.categorical, "number": self.number, "drop": self.drop}
        columns |= {"date": self.date, "set": self.sets}
        roles: dict[str, str] = {}
        for role, column in ((role, column) for role, names in columns.items() for column in names or ()):
            if roles.setdefault(column, role) != role:
                raise DataError(f"{ROLE_OPTIONS[roles[column]]} and {ROLE_OPTIONS[role]} both name {column}: choose one")
        return roles


@options_from(TrainOptions)
def train(options: TrainOptions) -> int:
    """Train, print the summary and write the model."""
    from separatrix.cli.summary import print_summary
    from separatrix.cli.training import Training

    with errors_reported("train", options.data):
        training = Training(options)
        try:
            summary = training.run()
        except KeyboardInterrupt:
            summary = None
    if summary is None:
        resume = f"run the same command again to resume from {options.checkpoint}"
        click.echo(f"separatrix train: interrupted; {resume if training.saved else 'nothing was written'}", err=True)
        return 130
    if options.as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    else:
        print_summary(summary)
    return 0
