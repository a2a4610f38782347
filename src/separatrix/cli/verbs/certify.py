"""Prove whether your data are linearly separable.

The certificate can be checked exactly with `separatrix check`. Exit status: 0 separable, 1 not separable, 2 bad input,
3 undecided.
"""

import json
import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import click

from separatrix.cli.errors import errors_reported, in_options, reader_may_leave, tell, terminal_width
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import FeatureModel, Json, ModelFormula, Output
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Data, Drop, Label, Option, Positive, ReadingOptions

if TYPE_CHECKING:
    from separatrix.analysis.separation.report import SeparationCheck
    from separatrix.data.in_memory import Examples
    from separatrix.proofs.certificate import Certificate

STATUS = {"separable": 0, "touching": 1, "inseparable": 1, "undecided": 3}
MOST_ROWS, MOST_FEATURES = 10, 8
"""How much of a witness is printed."""


def certify(
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    model: FeatureModel = None,
    model_formula: ModelFormula = None,
    logistic: Annotated[
        bool,
        Option(
            group="features",
            help="Report what separation does to a logistic regression: infinite coefficients by name, rows, empty levels, "
            "collinear columns, and what to do. A formula implies it.",
        ),
    ] = False,
    bias: Annotated[
        bool | None,
        Option(
            "--bias/--no-bias", group="features", help="Allow a bias; by default yes, except for the lectures' examples."
        ),
    ] = None,
    as_json: Json = False,
    output: Output = None,
    time_limit: Annotated[
        float | None,
        Option(metavar="SECONDS", group="running", help="Seconds, with reading, after which what is open stays undecided."),
    ] = None,
    *,
    reading: ReadingOptions,
) -> int:
    """Print the certificate, write it to a file, and return the status of its verdict."""
    begun, drop = time.monotonic(), drop or []
    from separatrix.cli.progress_bars import ProofProgress

    is_printed = not (as_json or logistic or model_formula is not None)

    def tell_verdict(verdict: str) -> None:
        if is_printed:
            with reader_may_leave(STATUS[verdict]):
                (n, d), n_classes = examples.X.shape, len(set(examples.y.tolist()))
                click.echo(f"{examples.name} is {headline(verdict, n, d, n_classes, fit_intercept)}")
                sys.stdout.flush()

    with errors_reported("certify", data), ProofProgress(as_json, tell_verdict) as bar:
        from separatrix.cli.model_rows import read_examples
        from separatrix.data.atomic import check_place
        from separatrix.proofs import certificate as proofs
        from separatrix.proofs.wording import headline

        if output is not None:
            check_place(output)
        if model_formula is not None and bias is not None:
            raise DataError("--bias and --no-bias cannot be combined with --model-formula: write '- 1' for no intercept")
        examples = read_examples(data, label, positive, drop, model, reading.reading(), model_formula)
        fit_intercept = examples.bias if bias is None else bias
        names = None if examples.feature_names is None else list(examples.feature_names)
        report = None
        if time_limit is not None:
            time_limit = max(0.01, time_limit - (time.monotonic() - begun))
        if logistic or model_formula is not None:
            report = _report(examples, names, fit_intercept, time_limit, bar.proves)
            certificate = report.certificate
        else:
            certificate = proofs.certify(
                examples.X, examples.y, fit_intercept=fit_intercept, time_limit=time_limit, progress=bar.proves
            )
            certificate.feature_names = names
        text = certificate.to_json(output)
    tell("certify", examples.notes)
    with reader_may_leave(STATUS[certificate.verdict]):
        if as_json:
            echo_json(text if report is None else json.dumps(report.to_dict(), ensure_ascii=False, indent=1))
            return STATUS[certificate.verdict]
        if report is None:
            _print(examples, certificate)
        else:
            size = f"{counted(certificate.proof.n, 'example')}, {counted(len(report.names), 'column')}"
            click.echo(f"{examples.name}: {size}, rows counted from 1 among those used")
            click.echo(in_options(report.text(min(100, terminal_width()), first_row=1)))
        if output is not None:
            same = [("label", label), ("positive", positive), ("model", model), ("model-formula", model_formula)]
            same += [("drop", name) for name in drop]
            options = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in same if value is not None)
            options += "".join(f" {in_options(f'{name}={value!r}')}" for name, value in reading.reading().items())
            click.echo(f"certificate written to {output}; check it with: separatrix check {output} {data}{options}")
    return STATUS[certificate.verdict]


def _report(
    examples: "Examples",
    names: list[str] | None,
    fit_intercept: bool,
    time_limit: float | None,
    progress: Callable[[str, str | None], None],
) -> "SeparationCheck":
    """Return the check of a logistic regression on the examples."""
    from separatrix.analysis.separation.check import checked_design
    from separatrix.analysis.separation.designs import Design

    design = Design(examples.X, examples.y, names, fit_intercept, outcome=examples.label or "y")
    return checked_design(design, time_limit, progress)


def _print(examples: "Examples", certificate: "Certificate") -> None:
    from separatrix.proofs.wording import lines

    first, *rest = lines(certificate, first_row=1)
    if certificate.verdict == "undecided":  # any other verdict was told when it was proven
        click.echo(f"{examples.name} is {first}")
    for line in rest:
        click.echo(f"  {line}")
    if certificate.witness is None:
        return
    click.echo("  the witness, rows counted from 1:")
    X, d = examples.X, examples.X.shape[1]
    for i, weight in list(zip(certificate.witness.rows, certificate.witness.weights, strict=True))[:MOST_ROWS]:
        row = X[[i]].toarray()[0] if hasattr(X, "toarray") else X[i]
        values = ", ".join(f"{value:g}" for value in row[:MOST_FEATURES].tolist()) + (", …" if d > MOST_FEATURES else "")
        click.echo(f"    row {i + 1}: ({values}) → {examples.y[i]}, weight {float(weight):.6g}")
    if len(certificate.witness) > MOST_ROWS:
        click.echo(f"    … {counted(len(certificate.witness), 'row')} in all")
