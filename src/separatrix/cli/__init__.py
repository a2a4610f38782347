"""The command line: arguments come in, text or JSON and an exit status go out.

Each file of `verbs/` is one verb. Its module docstring is the help text, the function of the same name takes the options
and returns the exit status; nothing else registers it. The other files hold what several verbs share, and `Training`.
"""

import importlib
from pathlib import Path
from typing import Any

import click

from separatrix import __version__
from separatrix.cli.commands import DebugOption, Verb
from separatrix.cli.errors import faults_reported

VERBS = Path(__file__).parent / "verbs"
ORDER = (
    "trace lab demo certify check compare bench train predict evaluate explain forget export info serve backup restore"
).split()
"""The order of the verbs in the help text; any other verb follows, by name."""


class VerbGroup(click.Group):
    """A group whose commands are the files of `verbs/`; a verb is imported when it is run, or asked for its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names = {path.stem for path in VERBS.glob("[!_]*.py")}
        order = [*(name for name in ORDER if name in names), *sorted(names.difference(ORDER))]
        self.commands = {name: click.Command(name, help=first_help_line(name)) for name in order}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs in the order of the help text."""
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the name of the verb to run, its command with all options, and the other arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load_verb(name), rest

    def invoke(self, ctx: click.Context) -> None:
        """Run the verb; what it returns is the exit status."""
        with faults_reported(ctx):
            status = super().invoke(ctx)
        ctx.exit(status)


def first_help_line(name: str) -> str:
    """Return the first line of a verb's help text, without importing the verb."""
    with open(VERBS / f"{name}.py", encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def load_verb(name: str) -> Verb:
    """Import a verb and return its command."""
    module = importlib.import_module(f"separatrix.cli.verbs.{name}")
    return Verb(name, getattr(module, name), module.__doc__)


def _print_completion(ctx: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is None or ctx.resilient_parsing:
        return
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(ctx.command, {}, "separatrix", "_SEPARATRIX_COMPLETE").source())
    ctx.exit()


@click.group(cls=VerbGroup, no_args_is_help=True)
@click.version_option(__version__, prog_name="separatrix", message="%(prog)s %(version)s")
@click.option(
    "--show-completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    metavar="SHELL",
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the completion script for bash, zsh or fish.",
)
def app() -> None:
    """Error-driven linear classification: learn a boundary from mistakes, and keep the mistakes."""


app.params.append(DebugOption())
