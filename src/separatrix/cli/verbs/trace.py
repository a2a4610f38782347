"""Step through a perceptron with its proof on your data.

Every mistake is shown with the two inequalities of the convergence proof in the numbers of your data.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from separatrix.cli.errors import errors_reported, tell
from separatrix.cli.narrow_encodings import echo_json
from separatrix.data.errors import DataError
from separatrix.data.options import MOST_SEED, Data, Drop, Label, Option, Positive, TextOptions
from separatrix.engine.rules import ORDERS, TIES

if TYPE_CHECKING:
    from separatrix.data.in_memory import Examples
    from separatrix.learners.linear_base import LinearLearner

FORMATS = ("table", "markdown", "csv", "json")


def trace(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    order: Annotated[str, Option(group="learning", choices=ORDERS, help="Order of the examples.")] = "cyclic",
    tie: Annotated[str | None, Option(group="learning", choices=tuple(TIES), help="Meaning of a score of 0.")] = None,
    bias: Annotated[
        bool | None,
        Option(
            "--bias/--no-bias", group="learning", help="Learn a bias; by default yes, except for the lectures' examples."
        ),
    ] = None,
    passes: Annotated[int, Option(group="learning", min=1, help="Maximum number of passes.")] = 20,
    seed: Annotated[int, Option(group="learning", min=0, max=MOST_SEED, help="Seed for random orders.")] = 0,
    sequence: Annotated[
        bool, Option("--sequence", group="data", help="Show one mistake of a tagger of sequences, trained on a CoNLL file.")
    ] = False,
    mistake: Annotated[
        int | None, Option(min=1, help="With --sequence: number of the mistake, from 1; by default the last one.")
    ] = None,
    form: Annotated[str, Option("--format", group="running", choices=FORMATS, help="Output format.")] = "table",
    as_json: Annotated[bool, Option("--json", group="running", help="The same as --format json.")] = False,
    html: Annotated[
        Path | None, Option(group="running", help="Write a page to step through, which a browser opens from disk.")
    ] = None,
    *,
    reading: TextOptions,
) -> int:
    """Print the trace in one of the formats, or write it as a page."""
    from rich.console import Console

    from separatrix.analysis import tracing
    from separatrix.cli.model_rows import with_identifiers_noted
    from separatrix.data.atomic import check_place
    from separatrix.data.in_memory import NotANumberError, read_source
    from separatrix.learners.linear import LastLearner

    form = "json" if as_json else form
    with errors_reported("trace", data):
        if sequence:
            from separatrix.cli.sequences import check_unused, trace_tagger

            unused = {"label": label, "positive": positive, "drop": drop, "tie": tie, "bias": bias}
            encoding = check_unused(reading, **unused, format=None if form == "table" else form)
            return trace_tagger(data, encoding, mistake, order, passes, seed, html)
        if mistake is not None:
            raise DataError("--mistake is for --sequence")
        if html is not None:
            check_place(html)
        try:
            examples = with_identifiers_noted(read_source(data, label, positive, drop=drop or [], **reading.reading()))
        except NotANumberError as error:
            raise DataError(f"{error}; leave the column out with --drop") from None
        tell("trace", examples.notes)
        perceptron = LastLearner(
            order=order,
            tie=tie or examples.tie,
            fit_intercept=examples.bias if bias is None else bias,
            max_iter=passes,
            random_state=seed,
        )
        if html is not None:
            named = {"label": label, "positive": positive, "drop": drop or None} | reading.reading()
            arguments = [repr(data), *(f"{name}={value!r}" for name, value in named.items() if value is not None)]
            _write_page(html, examples, perceptron, f"read_source({', '.join(arguments)})")
            return 0
        steps = tracing.trace(perceptron, examples.X, examples.y)
    if form == "table":
        console = Console()
        console.print(steps.table())
        console.print()
        console.print(steps.explanation(), highlight=False)
    elif form == "json":
        echo_json(steps.to_json())
    else:
        click.echo((steps.to_markdown() if form == "markdown" else steps.to_csv()).rstrip("\n"))
    return 0


def _write_page(path: Path, examples: "Examples", perceptron: "LinearLearner", reading: str) -> None:
    """Write a page of the lab that holds the whole run; `reading` is the Python code that reads the same examples."""
    import numpy as np

    from separatrix.data.atomic import replacing
    from separatrix.web.lab.document import document
    from separatrix.web.lab.experiment import Experiment, plain_names
    from separatrix.web.lab.page import page

    X = np.asarray(examples.X.toarray() if hasattr(examples.X, "toarray") else examples.X, np.float64)
    code = ("from separatrix.data.in_memory import read_source", f"source = {reading}", "X, y = source.X, source.y")
    names = tuple(examples.feature_names or plain_names(X.shape[1]))
    text = page(document(Experiment(examples.name, X, examples.y, names, perceptron, code)))
    with replacing(path) as name:
        size = Path(name).write_bytes(text.encode())
    click.echo(f"wrote {path} ({size:,} bytes): open it in a browser")
