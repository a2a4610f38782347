"""The options of a training, declared once: for the command `train` and for the function `train`."""

import json
import re
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from separatrix.data.errors import DataError
from separatrix.data.options import (
    MOST_SEED,
    Categorical,
    Data,
    Date,
    Drop,
    Engine,
    Label,
    MissingLabel,
    Number,
    Option,
    Output,
    PositiveClass,
    ReadingOptions,
    Sets,
    Text,
    roles_of,
)
from separatrix.engine.rules import LEARNERS, MIXES, MULTI_CLASS, ORDERS, RULES, TIES, in_words
from separatrix.features.columns import NUMBERS

NOT_STORED = (
    *("data", "output", "validate", "memory", "checkpoint", "checkpoint_every", "engine", "mix", "missing_label"),
    *("resume", "float32", "report", "folds", "oof", "tune", "budget", "sequence"),
)
"""Options on which the model does not depend, or which the hash of the data stands for. Missing labels that are kept are
stored, and so is `sequence` where it is set: files of classifiers are as they were before there were taggers."""


@dataclass(frozen=True)
class TrainOptions(ReadingOptions):
    """The options of a training; `data` and `validate` may also be a source that is in memory."""

    data: Data
    label: Label = None
    output: Output = None
    sequence: Annotated[
        bool,
        Option(
            "--sequence",
            group="data",
            help="Learn to tag sequences: a CoNLL file has a token a line, with columns between spaces or tabs and the tag "
            "last, and an empty line after each sequence.",
        ),
    ] = False
    text: Text = None
    categorical: Categorical = None
    number: Number = None
    date: Date = None
    sets: Sets = None
    drop: Drop = None
    numbers: Annotated[
        str | None,
        Option(group="features", choices=NUMBERS, help=f"How numbers become features; by default {NUMBERS[0]}."),
    ] = None
    bits: Annotated[
        int,
        Option(group="features", min=8, max=28, rare=True, help="Hash text to 2^bits features, shared by the text columns."),
    ] = 18
    bins: Annotated[
        int | None,
        Option(
            group="features",
            min=2,
            max=1 << 16,
            rare=True,
            help="Number of bins of a column of numbers; by default 32, or fewer where there are many columns.",
        ),
    ] = None
    ngrams: Annotated[
        str | None,
        Option(
            metavar="RANGE",
            group="features",
            help="Words in a row that are a feature of a text: 1 for single words, 1-3 for up to three; by default 1-2.",
        ),
    ] = None
    char_ngrams: Annotated[
        str | None,
        Option(
            metavar="RANGE",
            group="features",
            help="Take characters in a row, inside words, in place of words, for example 3-5.",
        ),
    ] = None
    tf: Annotated[
        str | None,
        Option(
            group="features",
            choices={"sublinear": "1 + log of the count", "count": "", "binary": "1 where it occurs"},
            rare=True,
            help="How often an n-gram occurs in a text, as a number; by default sublinear.",
        ),
    ] = None
    idf: Annotated[
        bool | None,
        Option(
            "--idf/--no-idf",
            group="features",
            rare=True,
            help="Whether n-grams that occur in many texts count less; by default they do.",
        ),
    ] = None
    templates: Annotated[
        list[str] | None,
        Option(
            "--templates",
            metavar="TEMPLATES",
            group="features",
            rare=True,
            help="With --sequence: what of the tokens is a feature, such as word[0],suffix3[0],word[-1]|word[0]; by default "
            "a set for words and parts of speech.",
        ),
    ] = None
    scheme: Annotated[
        str | None,
        Option(
            group="learning",
            choices={"bio": "I-X follows B-X or I-X", "iob2": "the same", "iobes": "with E-X and S-X"},
            rare=True,
            help="With --sequence: the scheme whose rules predicted tags keep; by default none.",
        ),
    ] = None
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
    ask: Annotated[
        float | None,
        Option(
            metavar="B",
            group="learning",
            help="Make one pass in the order of the rows, and learn only from labels asked for, each with probability "
            "B/(B + |margin|): how many does the stream need? 1 with --ask-budget alone.",
        ),
    ] = None
    ask_budget: Annotated[
        int | None, Option(metavar="N", group="learning", min=1, rare=True, help="Ask for at most N labels.")
    ] = None
    seed: Annotated[
        int, Option(group="learning", min=0, max=MOST_SEED, help="Seed for shuffling and the hold-out split.")
    ] = 0
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
        bool,
        Option(
            "--calibrate",
            group="evaluation",
            help="Fit probabilities to scores of rows that were held out or, if none were, left out in turn.",
        ),
    ] = False
    optimize: Annotated[
        str | None,
        Option(
            metavar="PURPOSE",
            group="evaluation",
            help="Choose the threshold between two classes that is best on the held-out rows for f1 (of the positive "
            "class), balanced (accuracy), accuracy or cost=FP:FN (what a false positive and a false negative cost), and "
            "store it in the model.",
        ),
    ] = None
    positive: PositiveClass = None
    report: Annotated[
        Path | None,
        Option(group="evaluation", help="Write a page of HTML about the held-out rows: curves, errors, weights."),
    ] = None
    folds: Annotated[
        int | None,
        Option(
            metavar="K",
            group="evaluation",
            min=2,
            help="Predict each of K folds by a model of the others before training on all rows; a search uses 5 by default.",
        ),
    ] = None
    oof: Annotated[
        Path | None,
        Option(
            group="evaluation",
            help="Write the out-of-fold predictions to this .csv, .jsonl or .parquet file.",
        ),
    ] = None
    tune: Annotated[
        bool,
        Option(
            "--tune",
            group="evaluation",
            help="Search rule, C, passes and features by out-of-fold accuracy; what is not at its default stays.",
        ),
    ] = False
    budget: Annotated[
        float,
        Option(
            metavar="SECONDS",
            group="evaluation",
            min=0,
            help="Time for the search; cross-validation and training come on top.",
        ),
    ] = 120.0
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
    resume: Annotated[
        bool,
        Option(
            "--resume/--no-resume",
            group="running",
            rare=True,
            help="Whether the model file has what only further learning needs; without it, the file is smaller.",
        ),
    ] = True
    float32: Annotated[
        bool,
        Option(
            "--float32",
            group="running",
            rare=True,
            help="Store the weights in float32, and count the training predictions that this changes.",
        ),
    ] = False

    def settings(self) -> dict[str, Any]:
        """Return what the model depends on besides the data, as JSON values: the model file stores it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        stored = {name: value for name, value in values.items() if name not in NOT_STORED and value is not None}
        stored |= {"missing_label": self.missing_label} if self.missing_label == "keep" else {}
        stored |= {"sequence": True} if self.sequence else {}
        settings: dict[str, Any] = json.loads(json.dumps(stored, default=str))
        return settings

    def roles(self) -> dict[str, str]:
        """Return the roles given to columns, by the column's name or number."""
        return roles_of(self)


class Declared(NamedTuple):
    """An option of `train`: its field in `TrainOptions`, the type of its value, whether a list, its default and the rest."""

    field: str
    kind: Any
    several: bool
    default: Any
    option: Option


def declared_options() -> dict[str, Declared]:
    """Return the options of `train` by the names that they have in Python: those of the command with underscores."""
    hints = get_type_hints(TrainOptions, include_extras=True)
    declared = {}
    for field in fields(TrainOptions):
        annotation, declaration = get_args(hints[field.name])
        if not isinstance(declaration, Option) or field.name == "label":
            continue
        kind = next(iter({*get_args(annotation)} - {NoneType})) if NoneType in get_args(annotation) else annotation
        several = get_origin(kind) is list
        flag = next((flag for flag in declaration.flags if flag.startswith("--")), f"--{field.name}").partition("/")[0]
        name = flag.removeprefix("--").replace("-", "_")
        declared[name] = Declared(field.name, get_args(kind)[0] if several else kind, several, field.default, declaration)
    return declared


def size_of(text: str, option: str = "memory") -> int:
    """Return a size such as 512M or 2G in bytes; `option` is named where it is none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]?", text.strip())
    if not match:
        raise DataError(f"{option}={text!r} is not a size; use for example 512M or 2G")
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def ngram_range(name: str, text: str) -> tuple[int, int]:
    """Return the fewest and the most words or characters of "2" or "1-3"."""
    match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", text.strip())
    fewest, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= fewest <= most:
        raise DataError(f"{name}={text!r} is not a range of whole numbers; use for example 1-3, or 2")
    return fewest, most


def number_or_auto(text: str) -> float | str:
    """Return C as a number, or "auto"."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise DataError(f"C={text!r} is neither a number nor auto") from None
