"""The command line: one file a verb. Heavy imports wait until a verb runs, so that `--help` is quick."""

import gc
from pathlib import Path
from typing import Annotated

import typer

from separatrix import __version__
from separatrix.cli import models, services
from separatrix.cli.options import Data, Drop, InModel, Label, Positive
from separatrix.cli.postponed import postpone

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
    postpone()
    gc.freeze()
    gc.set_threshold(100_000)  # a tenth of the start-up would go into looking for garbage that is not there


@app.command()
def trace(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    order: Annotated[str, typer.Option(help="cyclic, shuffle, permutation or random.")] = "cyclic",
    tie: Annotated[str | None, typer.Option(help='What a score of 0 means: mistake, "+1" or "-1".')] = None,
    bias: Annotated[
        bool | None, typer.Option("--bias/--no-bias", help="Learn a bias (a lecture's example: as there).")
    ] = None,
    passes: Annotated[int, typer.Option(min=1, help="Passes at most.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="For orders drawn at random.")] = 0,
    form: Annotated[str, typer.Option("--format", help="table, markdown, csv or json.")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a page to step through, which opens from disk.")] = None,
) -> None:
    """Step through a perceptron on your data, with the two lines of the proof at every mistake."""
    from separatrix.cli.trace import show

    form = "json" if as_json else form
    show(data, label, positive, drop or [], order=order, tie=tie, bias=bias, passes=passes, seed=seed, form=form, html=html)


@app.command()
def lab(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen on this machine; 0: any free port.")] = 8765,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Step through the algorithms in the browser: draw points, choose a rule, watch the theorem hold."""
    from separatrix.cli.lab import run

    raise typer.Exit(run(port, browser))


@app.command()
def demo() -> None:
    """Step through a perceptron with its proof, then train on real data. Needs no files."""
    from separatrix.cli.demo import show

    show()


@app.command()
def certify(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    model: InModel = None,
    bias: Annotated[
        bool | None, typer.Option("--bias/--no-bias", help="Allow a bias. Default: yes, except for the lectures' examples.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the certificate to this file.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which to stay undecided.")] = None,
) -> None:
    """Prove whether a linear classifier can get every example right. Exit: 0 separable, 1 not, 2 bad input, 3 undecided."""
    from separatrix.cli.certify import run

    raise typer.Exit(run(data, label, positive, drop or [], model, bias, as_json, output, time_limit))


@app.command()
def check(
    certificate: Annotated[Path, typer.Argument(help="A certificate written by `separatrix certify -o`.")],
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    model: InModel = None,
) -> None:
    """Check a certificate against the data, exactly. Exit: 0 it holds, 1 it does not, 2 bad input."""
    from separatrix.cli.check import run

    raise typer.Exit(run(certificate, data, label, positive, drop or [], model))


@app.command()
def compare(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    categorical: Annotated[
        list[str] | None, typer.Option(help="A column whose numbers are codes of categories; may be given again.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Some of the models, by name, with commas between. Default: all.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the folds and of the models.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, the curves too.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
) -> None:
    """Cross-validate the classifiers of the lectures on your data: accuracy, time, size, and the view each takes."""
    from separatrix.cli.compare import show

    form = "json" if as_json else "markdown" if markdown else "table"
    chosen = {"drop": drop or (), "categorical": categorical or (), "models": models, "folds": folds, "seed": seed}
    show(data, label, positive, form=form, **chosen)  # type: ignore[arg-type]


@app.command()
def bench(
    suites: Annotated[list[str] | None, typer.Argument(help="Which suites. Default: all.", metavar="[SUITE]...")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes and few repeats: under three minutes.")] = False,
    json: Annotated[Path | None, typer.Option(help="Also write every time and figure to this file.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write docs/benchmarks.md and its pictures.")] = False,
) -> None:
    """Measure everything beside its peers, in a checkout of the project. Exit: 0 done, 1 a floor is missed, 2 bad input."""
    from separatrix.cli.bench import bench as measure

    raise typer.Exit(measure(suites or [], quick, json, write))


for verb in (models.train, models.predict, models.evaluate, models.explain, models.export, models.info):
    app.command()(verb)
app.command()(services.serve)
