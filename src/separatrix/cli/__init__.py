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
def trace(
    data: Annotated[str, typer.Argument(help="A CSV file, or a built-in: iris, wine, digits, wdbc, lecture:L4.1, …")],
    label: Annotated[str | None, typer.Option(help="The column of the labels; the last one unless told.")] = None,
    order: Annotated[str, typer.Option(help="cyclic, shuffle, permutation or random.")] = "cyclic",
    tie: Annotated[str | None, typer.Option(help='What a score of 0 means: mistake, "+1" or "-1".')] = None,
    bias: Annotated[
        bool | None, typer.Option("--bias/--no-bias", help="Learn a bias (a lecture's example: as there).")
    ] = None,
    passes: Annotated[int, typer.Option(min=1, help="Passes at most.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="For orders drawn at random.")] = 0,
    form: Annotated[str, typer.Option("--format", help="table, markdown, csv or json.")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Step through a perceptron on your data, with the two lines of the proof at every mistake."""
    from separatrix.cli.trace import show

    show(data, label, order=order, tie=tie, bias=bias, passes=passes, seed=seed, form="json" if as_json else form)


@app.command()
def demo() -> None:
    """Step through a perceptron with its proof, then train on real data. Needs no files."""
    from separatrix.cli.demo import show

    show()
