"""The options that several verbs share, each declared once."""

from pathlib import Path
from typing import Annotated

from separatrix.cli.commands import Argument, Option
from separatrix.data.formats import NAMES, TITLES

Data = Annotated[
    str,
    Argument(
        help=f"A file ({TITLES}), a pattern such as 'part-*.csv', - for standard "
        "input, or a built-in name: iris, lecture:L4.1 …"
    ),
]
ModelFile = Annotated[Path, Argument(help="A model written by `separatrix train -o`.")]
Label = Annotated[str | None, Option(help="Label column, by name or by number from 0; by default the last one.")]
Positive = Annotated[str | None, Option(help="Class to separate from all the others.")]
Drop = Annotated[list[str] | None, Option(help="Column to leave out; repeatable.")]
Categorical = Annotated[list[str] | None, Option(help="Category column; repeatable.")]
FeatureModel = Annotated[
    Path | None,
    Option("--model", help="Use the features that this model makes of the columns, words included."),
]
Format = Annotated[
    str | None,
    Option(
        "--format",
        help=f"Input format: {NAMES}; detected from the content by default.",
    ),
]
Header = Annotated[
    bool | None,
    Option("--header/--no-header", help="Whether the first line has the column names; detected by default."),
]
Encoding = Annotated[
    str | None,
    Option(help="Encoding of text, for example utf-8, latin-1 or utf-16; detected by default."),
]
MissingLabel = Annotated[
    str, Option("--missing-label", help="What to do with a row without a label: skip (leave it out) or raise.")
]
OnError = Annotated[str, Option("--on-error", help="What to do with a malformed line: raise or skip.")]
Engine = Annotated[
    str | None,
    Option(
        help="Where to work, one shard per file: local:4 (processes), dask://HOST:PORT or spark://HOST:PORT.",
    ),
]
Output = Annotated[Path | None, Option("-o", "--output", help="File to write.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress bar.")]
