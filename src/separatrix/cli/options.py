"""The options that several verbs share, each declared once."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

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
MissingLabel = Annotated[
    str,
    Option(
        "--missing-label",
        help="What to do with a row without a label: skip (leave it out), raise, or keep (words such as NA are labels).",
    ),
]
Engine = Annotated[
    str | None,
    Option(
        help="Where to work, one shard per file: local:4 (processes), dask://HOST:PORT or spark://HOST:PORT.",
    ),
]
Output = Annotated[Path | None, Option("-o", "--output", help="File to write.")]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress bar.")]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text is read: parameters of `open_source`, by the same names."""

    header: Annotated[
        bool | None,
        Option("--header/--no-header", help="Whether the first line has the column names; detected by default."),
    ] = None
    delimiter: Annotated[str | None, Option(help="Character between the columns; detected by default.")] = None
    quote: Annotated[str | None, Option(help="Character around quoted values, '' for none; detected by default.")] = None
    encoding: Annotated[
        str | None, Option(help="Encoding of text, for example utf-8, latin-1 or utf-16; detected by default.")
    ] = None
    on_error: Annotated[str, Option(help="What to do with a malformed line: raise or skip.")] = "raise"

    def reading(self) -> dict[str, Any]:
        """Return the parameters of `open_source` that are not at their defaults."""
        return _chosen(self, TextOptions)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TextOptions):
    """How data are read: parameters of `open_source`, by the same names."""

    form: Annotated[str | None, Option("--format", help=f"Input format: {NAMES}; detected from the content by default.")] = (
        None
    )
    zero_based: Annotated[
        bool | None,
        Option("--zero-based/--one-based", help="Whether svmlight features count from 0 or 1; detected by default."),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the parameters of `open_source` that are not at their defaults."""
        chosen = _chosen(self, ReadingOptions)
        return {"format" if name == "form" else name: value for name, value in chosen.items()}


def _chosen(options: TextOptions, declared: type[TextOptions]) -> dict[str, Any]:
    values = {field.name: (getattr(options, field.name), field.default) for field in fields(declared)}
    return {name: value for name, (value, default) in values.items() if value != default}
