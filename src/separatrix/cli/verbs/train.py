"""Train a classifier on a file, and write it to one.

Try:

  separatrix train iris -o iris.sepx
  separatrix train messages.tsv --label 0 --text 1 -o spam.sepx
  separatrix train 'part-*.svm.gz' --holdout 0.1 --early-stopping -o m.sepx
  separatrix train 'part-*.parquet' --label kind --engine local:4 -o m.sepx
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
from separatrix.engine.rules import LEARNERS, MIXES, MULTI_CLASS, ORDERS, RULES, TIES, in_words
from separatrix.features.columns import NUMBERS

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
    text: Annotated[list[str] | None, Option(metavar="COLUMN", group="features", help="Text column; repeatable.")] = None
    categorical: Categorical = None
    number: Annotated[list[str] | None, Option(metavar="COLUMN", group="features", help="Number column; repeatable.")] = None
    date: Annotated[
        list[str] | None, Option(metavar="COLUMN", group="features", help="Column of dates or times; repeatable.")
    ] = None
    sets: Annotated[
        list[str] | None,
        Option("--set", metavar="COLUMN", group="features", help="Column of sets, such as red|green; repeatable."),
    ] = None
    drop: Drop = None
    numbers: Annotated[
        str | None,
        Option(group="features", choices=NUMBERS, help=f"How numbers become features; by default {NUMBERS[0]}."),
    ] = None
    bits: Annotated[
        int,
        Option(group="features", min=8, max=28, rare=True, help="Hash text to 2^bits features, shared by the text columns."),
    ] = 18
    learner: Annotated[str, Option(group="learning", choices=LEARNERS, help="Which weights predict.")] = "averaged"
    rule: Annotated[str, Option(group="learning", choices=tuple(RULES), help="Update rule.")] = "pa1"
    C: Annotated[
        str,
        Option(
            "-C",
            "--C",
            metavar="NUMBER",
            group="learning",
            help=f"Aggressiveness of {in_words(name for name, rule in RULES.items() if rule.has_C)}; auto searches a grid.",
        ),
    ] = "1"
    margin: Annotated[float, Option(group="learning", min=0, rare=True, help="Margin of the margin rule.")] = 1.0
    passes: Annotated[int, Option(group="learning", min=1, help="Maximum number of passes.")] = 10
    average_from: Annotated[int, Option(group="learning", min=1, rare=True, help="First pass to be averaged.")] = 1
    order: Annotated[str, Option(group="learning", choices=ORDERS, rare=True, help="Order of the examples in a pass.")] = (
        "shuffle"
    )
    tie: Annotated[str, Option(group="learning", choices=tuple(TIES), rare=True, help="Meaning of a score of 0.")] = (
        "mistake"
    )
    bias: Annotated[bool, Option("--bias/--no-bias", group="learning", help="Learn a bias.")] = True
    multi_class: Annotated[
        str, Option(group="learning", choices=MULTI_CLASS, rare=True, help="How to learn several classes.")
    ] = "joint"
    class_weight: Annotated[
        str | None,
        Option(
            group="learning",
            choices={"balanced": "by the inverse of its frequency"},
            help="How to weight each class; by default all alike.",
        ),
    ] = None
    seed: Annotated[int, Option(group="learning", min=0, help="Seed for shuffling and the hold-out split.")] = 0
    holdout: Annotated[float, Option(group="evaluation", min=0, max=0.9, help="Fraction of the rows to hold out.")] = 0.0
    validate: Annotated[str | None, Option(metavar="DATA", file=True, group="evaluation", help="File of held-out data.")] = (
        None
    )
    early_stopping: Annotated[
        bool,
        Option(
            "--early-stopping",
            group="evaluation",
            help="Stop when held-out accuracy no longer improves, and return to the best pass.",
        ),
    ] = False
    patience: Annotated[
        int,
        Option(group="evaluation", min=1, rare=True, help="Passes without improvement before stopping early."),
    ] = 5
    calibrate: Annotated[
        bool, Option("--calibrate", group="evaluation", help="Fit probabilities to the held-out scores.")
    ] = False
    memory: Annotated[
        str,
        Option(
            metavar="SIZE",
            group="running",
            rare=True,
            help="Memory for the examples, for example 512M or 2G; the rest is kept on disk.",
        ),
    ] = "2G"
    checkpoint: Annotated[
        Path | None,
        Option(group="running", help="Save the state of training here; an interrupted run resumes from it."),
    ] = None
    checkpoint_every: Annotated[
        float, Option(metavar="SECONDS", group="running", min=0, rare=True, help="Seconds between checkpoints.")
    ] = 30.0
    record: Annotated[bool, Option("--record", group="running", help="Store the rows of the mistakes, for explain.")] = False
    engine: Engine = None
    mix: Annotated[str, Option(group="running", choices=MIXES, rare=True, help="How to average the shards' weights.")] = (
        "features"
    )
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
