"""How verbs end when something is wrong: one line on standard error that says what and where, and an exit status.

Input that cannot be used ends with status 2, output that cannot be written with 74, and a fault of this program with 70.

Messages of the rooms below name a remedy as a parameter of Python; `in_options` shows it as an option of the command line.
"""

import os
import re
import shlex
import shutil
import sys
import warnings
from ast import literal_eval
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from separatrix.data.atomic import WRITE_FAULTS
from separatrix.data.errors import DataError, OutputError, did_you_mean, shown
from separatrix.engine.rules import in_words

if TYPE_CHECKING:
    from separatrix.engine.parameters import ParameterError
    from separatrix.features.table import TableFeaturizer

BAD_INPUT = 2
INTERNAL = 70
"""A fault of this program, as EX_SOFTWARE of sysexits.h."""
NOT_WRITTEN = 74
"""Output could not be written, as EX_IOERR of sysexits.h."""
INTERRUPTED = 130

ROLE_OPTIONS = {
    "drop": "--drop",
    "category": "--categorical",
    "number": "--number",
    "text": "--text",
    "date": "--date",
    "set": "--set",
}
"""The option that gives a column a role; of the others there is none, and their advice stays as it is."""
RENAMED = {
    "C": "-C",
    "fit_intercept": "--bias",
    "max_iter": "--passes",
    "n_iter_no_change": "--patience",
    "output": "-o",
    "random_state": "--seed",
    "validation_fraction": "--holdout",
}
OFF = {
    "header": "--no-header",
    "idf": "--no-idf",
    "resume": "--no-resume",
    "fit_intercept": "--no-bias",
    "zero_based": "--one-based",
}
"""The options for False."""
DEBUG = "separatrix.debug"
"""The name under which a context has whether --debug was given."""
SAME = (
    *("ask", "ask_budget", "average_from", "bins", "bits", "budget", "calibrate", "categorical"),
    *("char_ngrams", "checkpoint", "class_weight", "date", "delimiter", "drop", "early_stopping", "encoding"),
    *("engine", "float32", "folds", "format", "header", "holdout", "idf", "label", "learner", "margin"),
    *("memory", "missing_label", "mix", "multi_class", "ngrams", "number", "numbers", "on_error", "oof"),
    *("optimize", "order", "passes", "positive", "quote", "record", "report", "resume", "rule", "scheme"),
    *("sequence", "set", "table", "templates", "text", "tf", "tie", "time_limit", "tune", "validate"),
    *("zero_based",),
)
"""Parameters whose option has the same name."""
OPTION_OF = {name: f"--{name.replace('_', '-')}" for name in SAME} | RENAMED

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PLACED = re.compile(r"[^,]+, (?:line|row) \d+, column ")
"""How a message begins that names a file and a place in it."""
_REMEDY = (
    rf"\broles=\{{(?P<column>{_QUOTED}): (?P<role>{_QUOTED})\}}"
    rf"|(?<![\w/.-])(?P<parameter>{'|'.join(OPTION_OF)})=(?:(?P<value>{_QUOTED}|(?:True|False|-?\d+(?:\.\d+)?)(?!\.?\w))|(?![^\s,;:.)]))"
    r"|, or [^,;:'\"]*\bX="
    rf"|(?<!\w)(?:{_QUOTED})"
)
"""A remedy in Python; one that the command line has no option for; or text in quotes, which is data and stays as it is.

An apostrophe follows a letter, and an opening quote does not."""


def in_options(message: object) -> str:
    """Return a message with its remedies as options of the command line.

    Examples
    --------
    >>> in_options("mend it, or leave the column out with roles={'shoe size': 'drop'}")
    "mend it, or leave the column out with --drop 'shoe size'"
    >>> in_options("pass over such lines with on_error='skip', or read quotes as they are with quote=''")
    "pass over such lines with --on-error skip, or read quotes as they are with --quote ''"
    >>> in_options("ask=-1 must be a positive number")
    '--ask -1 must be a positive number'
    >>> in_options("column 'format=5' holds 'C=5'")
    "column 'format=5' holds 'C=5'"
    """
    return re.sub(_REMEDY, _as_option, str(message))  # which compiles it when it is first needed


def _as_option(match: re.Match[str]) -> str:
    if match["column"] is not None:
        column, role = literal_eval(match["column"]), literal_eval(match["role"])
        return f"{ROLE_OPTIONS[role]} {shlex.quote(column)}" if role in ROLE_OPTIONS else match[0]
    parameter, value = match["parameter"], match["value"]
    if parameter is None:
        return "" if match[0].endswith("X=") else match[0]
    if value == "False" and parameter in OFF:
        return OFF[parameter]
    if value is None or value == "True":
        return OPTION_OF[parameter]
    return f"{OPTION_OF[parameter]} {shlex.quote(str(literal_eval(value)))}"


def described(features: "TableFeaturizer") -> list[str]:
    """Return the lines that describe the columns of a table; the remedies of its notes are options."""
    return [in_options(line) if line.startswith("note: ") else line for line in features.describe().splitlines()]


def of_parameter(error: "ParameterError") -> str:
    """Return what is wrong with the option of a parameter."""
    option = OPTION_OF.get(error.parameter, f"--{error.parameter.replace('_', '-')}")
    if not (error.choices and isinstance(error.value, str)):
        return f"{option}: {error.value!r} is not {error.allowed}"
    return not_one_of(option, error.value, error.choices)


def not_one_of(option: str, value: str, choices: Collection[str]) -> str:
    """Return the message about a value that is none of the choices of an option."""
    if len(choices) == 1:
        return f"{option}: {shown(value)} is no choice; the only one is {in_words(choices)}"
    several = "one of " if len(choices) > 2 else ""
    return f"{option}: {shown(value)} is not {several}{in_words(choices)}{did_you_mean(value, choices)}"


def fail(verb: str, message: object, status: int = BAD_INPUT) -> NoReturn:
    """Print an error message, and end with a status."""
    click.echo(f"separatrix {verb}: {in_options(message)}", err=True)
    raise click.exceptions.Exit(status)


def tell(verb: str, notes: Iterable[str]) -> None:
    """Print on standard error what a person should know of how the data were read."""
    for note in notes:
        click.echo(f"separatrix {verb}: note: {in_options(note)}", err=True)


def terminal_width() -> int:
    """Return how wide tables may be: as the terminal, and 120 characters at most."""
    return min(120, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 120


@contextmanager
def reader_may_leave(status: int = 0) -> Iterator[None]:
    """End with a status where the reader of our output has closed it, as `head` does."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(status) from None


@contextmanager
def faults_reported(ctx: click.Context) -> Iterator[None]:
    """Turn what no verb expects into one line and a status that no verb returns; --debug shows the traceback, too."""
    try:
        with reader_may_leave():
            yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except KeyboardInterrupt:
        fail(ctx.invoked_subcommand or "", "interrupted", INTERRUPTED)
    except Exception as error:
        verb = ctx.invoked_subcommand or ""
        if ctx.meta.get(DEBUG):
            import traceback

            traceback.print_exc()
        if isinstance(error, OSError) and (isinstance(error, OutputError) or error.errno in WRITE_FAULTS):
            fail(verb, _not_written(error), NOT_WRITTEN)
        what = " ".join(str(error).split())[:300]
        if isinstance(error, MemoryError):
            fail(verb, f"there is not enough memory{what and f': {what}'}", INTERNAL)
        advice = "" if ctx.meta.get(DEBUG) else "; --debug shows where"
        fail(verb, f"internal error, please report it: {type(error).__name__}{what and f': {what}'}{advice}", INTERNAL)


def _not_written(error: OSError) -> str:
    what = error.strerror or str(error)
    if error.filename is None and error.errno is None:
        return what
    subject = "standard output or a temporary file" if error.filename is None else error.filename
    return f"{subject} could not be written: {what}"


@contextmanager
def errors_reported(verb: str, subject: object) -> Iterator[None]:
    """Turn an error about the input into one line; a message that names no file is prefixed with `subject`.

    Warnings of the library become notes.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            show = warnings.showwarning

            def show_as_note(message: Warning | str, category: type[Warning], *place: Any) -> None:
                if issubclass(category, UserWarning):
                    tell(verb, [str(message)])
                else:
                    show(message, category, *place)

            warnings.showwarning = show_as_note  # type: ignore[assignment]
            yield
    except DataError as error:
        fail(verb, error)
    except OSError as error:
        if isinstance(error, BrokenPipeError | OutputError) or error.errno in WRITE_FAULTS:
            raise  # to `faults_reported`
        names_file = error.filename is not None and error.strerror
        fail(verb, f"{error.filename}: {error.strerror}" if names_file else error)
    except ValueError as error:
        parameter = getattr(error, "parameter", "")  # that of a ParameterError
        if parameter:
            fail(verb, of_parameter(error))  # type: ignore[arg-type]
        fail(verb, error if _PLACED.match(str(error)) else f"{subject}: {error}")
