"""From the signature of a verb to its command: an annotated parameter is the only declaration of an option.

A parameter that is annotated with a dataclass stands for the options that its fields declare, so that verbs can share them.
"""

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

import click

T = TypeVar("T")


class Argument:
    """Declares a positional argument: `data: Annotated[str, Argument(help=…)]`."""

    def __init__(self, *, help: str) -> None:
        self.help = help


class Option:
    """Declares an option: `passes: Annotated[int, Option(help=…)] = 10`. Its flag is by default the parameter's name."""

    def __init__(
        self,
        *flags: str,
        help: str,
        min: float | None = None,
        max: float | None = None,
        envvar: str | None = None,
    ) -> None:
        self.flags, self.help, self.min, self.max, self.envvar = flags, help, min, max, envvar

    def range(self, kind: type) -> Any:
        """Return the type of a number, with its limits."""
        if self.min is None and self.max is None:
            return kind
        limited: Any = click.IntRange if kind is int else click.FloatRange
        return limited(self.min, self.max)


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

        super().__init__(name, callback=verb, params=[*map(as_click, options)], help=inspect.cleandoc(help or ""))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the arguments, then that of the options."""
        arguments = [(p.human_readable_name, p.description) for p in self.params if isinstance(p, VerbArgument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)


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
        argument = VerbArgument([name], required=required, type=type_, nargs=-1 if several else 1, **settings)
        argument.description = declaration.help
        return argument
    if kind in (int, float):
        type_ = declaration.range(kind)
    if several:
        settings["multiple"] = True
    elif not required:
        settings |= {"default": default, "show_default": not any(default is value for value in (None, False, ""))}
    if kind is bool:
        settings["is_flag"] = True
    flags = declaration.flags or (f"--{name.replace('_', '-')}",)
    return click.Option(
        [name, *flags],
        required=required,
        type=type_,
        help=declaration.help,
        envvar=declaration.envvar,
        show_envvar=True,
        **settings,
    )
