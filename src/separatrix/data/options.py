"""How data are read: parameters of `open_source`, each declared once with its help.

`Option` and `Argument` declare a parameter in its annotation, `label: Annotated[str | None, Option(help=…)] = None`.
A dataclass of such parameters can live below the command line, which makes its options of them (`cli/commands.py`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from separatrix.data.errors import DataError
from separatrix.data.formats import FORMATS, TITLES

Group = Literal["", "data", "features", "learning", "evaluation", "running"]
"""The heading under which the help shows an option; "" is that of the verb's own options."""

MISSING_LABEL = {"skip": "leave it out", "raise": "", "keep": "words such as NA are labels"}
"""What is done with a row without a label."""
ON_ERROR = ("raise", "skip")
"""What is done with a malformed line."""


class Argument:
    """Declares a positional argument: `data: Annotated[str, Argument(help=…)]`."""

    def __init__(self, *, help: str, file: bool = False) -> None:
        self.help, self.file = help, file


class Option:
    """Declares an option: `passes: Annotated[int, Option(help=…)] = 10`. Its flag is by default the parameter's name.

    Attributes
    ----------
    flags, envvar, min, max : its names, the variable of the environment that sets it, the limits of a number
    help : a sentence; the help text adds the choices and the default
    metavar : what the help text calls the value, such as COLUMN; by default it tells from the type
    group : the heading under which the help shows it
    choices : the words that it may be, listed by the help and completed by the shell; a mapping explains them, or has ""
    aliases : words that are accepted, too, and not listed
    file : whether the text may be the name of a file, which the shell completes; one that is a Path always is
    rare : whether only `--help-all` shows it
    """

    def __init__(
        self,
        *flags: str,
        help: str,
        min: float | None = None,
        max: float | None = None,
        envvar: str | None = None,
        metavar: str | None = None,
        group: Group = "",
        choices: Iterable[str] | Mapping[str, str] = (),
        aliases: Iterable[str] = (),
        file: bool = False,
        rare: bool = False,
    ) -> None:
        self.flags, self.help, self.min, self.max, self.envvar = flags, help, min, max, envvar
        self.metavar, self.group, self.file, self.rare = metavar, group, file, rare
        self.choices = dict(choices) if isinstance(choices, Mapping) else dict.fromkeys(choices, "")
        self.aliases = tuple(aliases)


MOST_SEED = 2**32 - 1
"""The largest seed of NumPy's random generators."""

Data = Annotated[
    str,
    Argument(
        help=f"A file ({TITLES}), a pattern such as 'part-*.csv', - for standard "
        "input, or a built-in name: iris, lecture:L4.1 …",
        file=True,
    ),
]
Label = Annotated[
    str | None,
    Option(metavar="COLUMN", group="data", help="Label column, by name or by number from 0; by default the last one."),
]
Positive = Annotated[str | None, Option(metavar="CLASS", group="data", help="Class to separate from all the others.")]
PositiveClass = Annotated[
    str | None,
    Option(
        metavar="CLASS",
        group="evaluation",
        help="Of two classes the one that is looked for; by default the second in sorted order.",
    ),
]
Drop = Annotated[list[str] | None, Option(metavar="COLUMN", group="data", help="Column to leave out; repeatable.")]
Categorical = Annotated[list[str] | None, Option(metavar="COLUMN", group="features", help="Category column; repeatable.")]
Text = Annotated[list[str] | None, Option(metavar="COLUMN", group="features", help="Text column; repeatable.")]
Number = Annotated[list[str] | None, Option(metavar="COLUMN", group="features", help="Number column; repeatable.")]
Date = Annotated[list[str] | None, Option(metavar="COLUMN", group="features", help="Column of dates or times; repeatable.")]
Sets = Annotated[
    list[str] | None,
    Option("--set", metavar="COLUMN", group="features", help="Column of sets, such as red|green; repeatable."),
]
MissingLabel = Annotated[
    str,
    Option(
        "--missing-label",
        group="data",
        choices=MISSING_LABEL,
        rare=True,
        help="What to do with a row without a label.",
    ),
]
Engine = Annotated[
    str | None,
    Option(
        metavar="WHERE",
        group="running",
        help="Where to work, one shard per file: local:4 (processes), dask://HOST:PORT or spark://HOST:PORT.",
    ),
]
Output = Annotated[Path | None, Option("-o", "--output", group="running", help="File to write.")]


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text is read: parameters of `open_source`, by the same names."""

    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header", group="data", help="Whether the first line has the column names; detected by default."
        ),
    ] = None
    delimiter: Annotated[
        str | None, Option(metavar="CHAR", group="data", help="Character between the columns; detected by default.")
    ] = None
    quote: Annotated[
        str | None,
        Option(
            metavar="CHAR",
            group="data",
            rare=True,
            help="Character around quoted values, '' for none; detected by default.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        Option(
            metavar="NAME",
            group="data",
            rare=True,
            help="Encoding of text, for example utf-8, latin-1 or utf-16; detected by default.",
        ),
    ] = None
    on_error: Annotated[str, Option(group="data", choices=ON_ERROR, help="What to do with a malformed line.")] = "raise"

    def reading(self) -> dict[str, Any]:
        """Return the parameters of `open_source` that are not at their defaults."""
        return _chosen(self, TextOptions)


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(TextOptions):
    """How data are read: parameters of `open_source`, by the same names."""

    form: Annotated[
        str | None,
        Option(
            "--format",
            group="data",
            choices=tuple(FORMATS),
            aliases=[alias for entry in FORMATS.values() for alias in entry.aliases],
            rare=True,
            help="Input format; detected from the content by default.",
        ),
    ] = None
    zero_based: Annotated[
        bool | None,
        Option(
            "--zero-based/--one-based",
            group="data",
            rare=True,
            help="Whether svmlight features count from 0 or 1; detected by default.",
        ),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the parameters of `open_source` that are not at their defaults."""
        chosen = _chosen(self, ReadingOptions)
        return {"format" if name == "form" else name: value for name, value in chosen.items()}


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """What columns are for, where that is not left to their values: by name, or by number from 0."""

    text: Text = None
    categorical: Categorical = None
    number: Number = None
    date: Date = None
    sets: Sets = None
    drop: Drop = None

    def roles(self) -> dict[str, str]:
        """Return the roles of columns, by the column's name or number; raise where one has two."""
        return roles_of(self)


def roles_of(options: Any) -> dict[str, str]:
    """Return the roles that the fields of `ColumnOptions` give to columns; raise where a column has two.

    Examples
    --------
    >>> roles_of(ColumnOptions(text=["title"], drop=["id"]))
    {'title': 'text', 'id': 'drop'}
    """
    columns = {"text": options.text, "categorical": options.categorical, "number": options.number, "drop": options.drop}
    columns |= {"date": options.date, "set": options.sets}
    parameters: dict[str, str] = {}
    for parameter, column in ((parameter, column) for parameter, names in columns.items() for column in names or ()):
        if parameters.setdefault(column, parameter) != parameter:
            raise DataError(f"{parameters[column]}= and {parameter}= both name {column}: choose one")
    return {column: "category" if parameter == "categorical" else parameter for column, parameter in parameters.items()}


def _chosen(options: TextOptions, declared: type[TextOptions]) -> dict[str, Any]:
    values = {field.name: (getattr(options, field.name), field.default) for field in fields(declared)}
    return {name: value for name, (value, default) in values.items() if value != default}
