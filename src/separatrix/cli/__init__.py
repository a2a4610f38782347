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
    """A group that lists the files of `verbs/`, and imports the one that is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the verbs."""
        names = {path.stem for path in VERBS.glob("[!_]*.py")}
        return [name for name in ORDER if name in names] + sorted(names.difference(ORDER))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command that has the help text's first line and no more, which needs no import; None for no verb."""
        if cmd_name not in self.list_commands(ctx):
            return None
        with open(VERBS / f"{cmd_name}.py", encoding="utf-8") as file:
            return TyperCommand(cmd_name, help=file.readline().strip().strip('"'))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the whole command and the other arguments: this verb is to be run, or asked for help."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_verb(name), rest

    def invoke(self, ctx: Any) -> None:
        """Run the verb; what it returns is the exit status."""
        ctx.exit(super().invoke(ctx))


def load_verb(name: str) -> Any:
    """Import a verb and return its command."""
    module = importlib.import_module(f"separatrix.cli.verbs.{name}")
    single = typer.Typer(add_completion=False)
    single.command(name, help=module.__doc__)(getattr(module, name))
    return typer.main.get_command(single)


app = typer.Typer(name="separatrix", cls=VerbGroup, no_args_is_help=True, pretty_exceptions_enable=False)


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
