"""From the signature of a verb to its command: an annotated parameter is the only declaration of an option.

A parameter that is annotated with a dataclass stands for the options that its fields declare, so that verbs can share them.
The declarations are those of `data/options.py`; the help shows the options by group, and the rare ones with `--help-all`.
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from separatrix.cli.errors import DEBUG, fail, not_one_of
from separatrix.data.options import Argument, Option
from separatrix.engine.rules import in_words

HEADINGS = {
    "": "Options",
    "data": "Data",
    "features": "Features",
    "learning": "Learning",
    "evaluation": "Evaluation",
    "running": "Running",
}
"""The headings of the groups of options, in the order of the help."""
METAVARS: dict[type, str | None] = {bool: None, int: "N", float: "NUMBER", Path: "FILE"}
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"
WIDEST_TERM = 26
"""The text of an option that is wider than this begins on the next line."""

T = TypeVar("T")


def options_from(options: type[T]) -> Callable[[Callable[[T], int]], Callable[..., int]]:
    """Give a function of one dataclass a parameter for each field."""

    def decorate(function: Callable[[T], int]) -> Callable[..., int]:
        @wraps(function)
        def verb(**values: object) -> int:
            return function(options(**values))

        verb.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        return verb

    return decorate


class VerbArgument(click.Argument):
    """An argument with a help text."""

    description = ""


class VerbOption(click.Option):
    """An option with its declaration; the help shows it in the declared group."""

    declaration: Option

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Return how the option is written, and its help text with choices, default and limits."""
        term, _ = super().get_help_record(ctx) or ("", "")
        declared, text = self.declaration, self.help or ""
        if declared.choices:
            words = [f"{word} ({reason})" if reason else word for word, reason in declared.choices.items()]
            subject, mark, rest = text.partition(";")
            text = f"{subject.rstrip('.')}: {in_words(words)}{mark}{rest if mark else '.'}"
        remarks = [f"default: {self._default_in_words()}"] if self.show_default else []
        if declared.min is not None and declared.max is not None:
            remarks.append(f"{declared.min} to {declared.max}")
        remarks += [f"environment variable: {declared.envvar}"] if declared.envvar else []
        unbroken = "; ".join(remark.replace(" ", NO_BREAK_SPACE) for remark in remarks)
        return term, f"{text} [{unbroken}]" if remarks else text

    def _default_in_words(self) -> str:
        if isinstance(self.default, bool):
            flag = (self.opts if self.default else self.secondary_opts)[0]
            return flag.lstrip("-")
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


class DebugOption(click.Option):
    """--debug, of the program and of every verb: an unexpected error shows its traceback."""

    def __init__(self, hidden: bool = False) -> None:
        settings: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": self._remember, "hidden": hidden}
        super().__init__(["--debug"], help="Show the traceback of an unexpected error.", **settings)

    @staticmethod
    def _remember(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.meta[DEBUG] = True  # which a context shares with those of its subcommands


class Words(click.ParamType):  # type: ignore[type-arg]  # click 8.2 has no type arguments
    """The type of an option that has choices: the shell completes them, and another word is an error of one line."""

    name = "word"

    def __init__(self, declaration: Option) -> None:
        self.declaration = declaration

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word; end with a message if it is none of the choices."""
        words = (*self.declaration.choices, *self.declaration.aliases)
        if value in words or ctx is None or ctx.resilient_parsing:
            return str(value)
        if value.lower() in words:
            return str(value.lower())
        option = max(param.opts, key=len) if param else ""
        fail(ctx.info_name or "", not_one_of(option, value, [*self.declaration.choices]))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the choices that begin so."""
        return [
            CompletionItem(word, help=reason or None)
            for word, reason in self.declaration.choices.items()
            if word.startswith(incomplete)
        ]


class DataName(click.ParamType):  # type: ignore[type-arg]
    """The type of a name that may be a file: the shell completes files, and any text is accepted."""

    name = "text"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete the name of a file."""
        return [CompletionItem(incomplete, type="file")]


class Verb(click.Command):
    """The command of a function whose parameters are annotated with `Argument` or `Option`."""

    def __init__(self, name: str, function: Callable[..., int], help: str | None) -> None:
        declared = inspect.signature(function).parameters
        annotations: dict[str, Any] = {key: parameter.annotation for key, parameter in declared.items()}
        groups: dict[str, Any] = {key: group for key, group in annotations.items() if is_dataclass(group)}
        fields = {key: inspect.signature(group).parameters for key, group in groups.items()}
        options = [option for key, each in declared.items() for option in fields.get(key, {key: each}).values()]

        def verb(**values: object) -> int:
            for key, group in groups.items():
                values[key] = group(**{field: values.pop(field) for field in fields[key]})
            return function(**values)

        params = [*map(as_click, options)]
        self.rare = [each for each in params if isinstance(each, VerbOption) and each.declaration.rare]
        self.help_all = False
        settings: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": self._show_all}
        settings |= {"help": "Show all options and exit.", "hidden": not self.rare}
        params.append(click.Option(["--help-all"], **settings))
        self.debug = DebugOption(hidden=True)
        params.append(self.debug)
        text = inspect.cleandoc(help or "").replace("\n\n  ", "\n\n\b\n  ")  # Click keeps the lines of such a paragraph
        super().__init__(name, callback=verb, params=params, help=text)

    def _show_all(self, ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            self.help_all, self.debug.hidden = True, False
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the arguments, then that of the options by group."""
        arguments = [(p.human_readable_name, p.description) for p in self.params if isinstance(p, VerbArgument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in HEADINGS}
        own = "running" if any(o.declaration.group == "running" for o in self._shown()) else ""
        for option in self._shown():
            groups[option.declaration.group].append(option.get_help_record(ctx))
        for each in self.get_params(ctx):
            if isinstance(each, click.Option) and not isinstance(each, VerbOption) and not each.hidden:
                groups[own].append(each.get_help_record(ctx) or ("", ""))
        width = min(max(len(term) for rows in groups.values() for term, _ in rows), WIDEST_TERM)
        for group, rows in groups.items():
            if rows:
                with formatter.section(HEADINGS[group]):
                    for term, text in rows:
                        _write_row(formatter, term, text, width)

    def _shown(self) -> list[VerbOption]:
        options = [each for each in self.params if isinstance(each, VerbOption)]
        return [option for option in options if self.help_all or not option.declaration.rare]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say how many options the help does not show."""
        if self.rare and not self.help_all:
            count = len(self.rare)
            formatter.write_paragraph()
            formatter.write_text(f"--help-all shows {count} more option{'s' if count > 1 else ''}.")


def _write_row(formatter: click.HelpFormatter, term: str, text: str, width: int) -> None:
    """Write an option and its help text; words are not broken at hyphens."""
    indent = " " * formatter.current_indent
    column = len(indent) + width + 2
    first, below = (f"{indent}{term:{width}}  ", "") if len(term) <= width else (" " * column, f"{indent}{term}\n")
    wrapper = textwrap.TextWrapper(
        max(formatter.width, column + 20),
        initial_indent=first,
        subsequent_indent=" " * column,
        break_on_hyphens=False,
        break_long_words=False,
    )
    formatter.write(below + wrapper.fill(text).replace(NO_BREAK_SPACE, " ") + "\n")


def as_click(parameter: inspect.Parameter) -> click.Parameter:
    """Return the parameter of a verb as Click knows it."""
    annotation, declaration = get_args(parameter.annotation)
    name, default, required = parameter.name, parameter.default, parameter.default is parameter.empty
    (kind,) = {*get_args(annotation)} - {NoneType} if NoneType in get_args(annotation) else (annotation,)
    several = get_origin(kind) is list
    kind = get_args(kind)[0] if several else kind
    type_: Any = click.Path(path_type=Path) if kind is Path else kind
    settings: dict[str, Any] = {"callback": lambda ctx, parameter, values: list(values) or None} if several else {}
    if isinstance(declaration, Argument):
        type_ = DataName() if declaration.file else type_
        argument = VerbArgument([name], required=required, type=type_, nargs=-1 if several else 1, **settings)
        argument.description = declaration.help
        return argument
    if declaration.choices:
        type_ = Words(declaration)
    elif declaration.file:
        type_ = DataName()
    elif kind in (int, float):
        type_ = limited(declaration, kind)
    if several:
        settings["multiple"] = True
    elif not required:
        settings |= {"default": default, "show_default": not any(default is value for value in (None, False, ""))}
    if kind is bool:
        settings["is_flag"] = True
    flags = declaration.flags or (f"--{name.replace('_', '-')}",)
    option = VerbOption(
        [name, *flags],
        required=required,
        type=type_,
        help=declaration.help,
        envvar=declaration.envvar,
        metavar=declaration.metavar or METAVARS.get(kind, "WORD" if declaration.choices else "TEXT"),
        **settings,
    )
    option.declaration = declaration
    return option


def limited(declaration: Option, kind: type) -> Any:
    """Return the type of a number, with its limits."""
    if declaration.min is None and declaration.max is None:
        return kind
    limited_type: Any = click.IntRange if kind is int else click.FloatRange
    return limited_type(declaration.min, declaration.max)
