"""The command line: arguments come in, text or JSON and an exit status go out.

Each file of `verbs/` is one verb. Its module docstring is the help text, the function of the same name takes the options
and returns the exit status; nothing else registers it. The other files hold what several verbs share, and `Training`.
"""

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from separatrix import __version__

VERBS = Path(__file__).parent / "verbs"
ORDER = "trace lab demo certify check compare bench train predict evaluate explain export info serve".split()
"""The order of the verbs in the help text; any other verb follows, by name."""


class VerbGroup(TyperGroup):
    """A group whose commands are the files of `verbs/`; a verb is imported when it is run, or asked for its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names = {path.stem for path in VERBS.glob("[!_]*.py")}
        order = [*(name for name in ORDER if name in names), *sorted(names.difference(ORDER))]
        self.commands = {name: TyperCommand(name, help=first_help_line(name)) for name in order}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name of the verb to run, its command with all options, and the other arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_verb(name), rest

    def invoke(self, ctx: Any) -> None:
        """Run the verb; what it returns is the exit status."""
        ctx.exit(super().invoke(ctx))


def first_help_line(name: str) -> str:
    """Return the first line of a verb's help text, without importing the verb."""
    with open(VERBS / f"{name}.py", encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def load_verb(name: str) -> Any:
    """Import a verb and return its command."""
    module = importlib.import_module(f"separatrix.cli.verbs.{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, help=module.__doc__)(getattr(module, name))
    return typer.main.get_command(single)


app = typer.Typer(cls=VerbGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"separatrix {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Error-driven linear classification: learn a boundary from mistakes, and keep the mistakes."""
