"""The command line: one file a verb. Heavy imports wait until a verb runs, so that `--help` is quick."""

from typing import Annotated

import typer

from separatrix import __version__

app = typer.Typer(
    name="separatrix",
    help="Error-driven linear classification: learn a boundary from mistakes, and keep the mistakes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"separatrix {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Error-driven linear classification: learn a boundary from mistakes, and keep the mistakes."""


@app.command()
def demo() -> None:
    """Step through a perceptron with its proof, then train on real data. Needs no files."""
    from separatrix.cli.demo import show

    show()
