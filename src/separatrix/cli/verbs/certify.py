"""Prove whether your data are linearly separable.

The certificate can be checked exactly with `separatrix check`. Exit status: 0 separable, 1 not separable, 2 bad input,
3 undecided.
"""

import shlex
from typing import TYPE_CHECKING, Annotated

import click

from separatrix.cli.errors import errors_reported, in_options, tell
from separatrix.cli.options import FeatureModel, Json, Output
from separatrix.data.errors import counted
from separatrix.data.options import Data, Drop, Label, Option, Positive, ReadingOptions

if TYPE_CHECKING:
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
    bias: Annotated[
        bool | None,
        Option(
            "--bias/--no-bias", group="features", help="Allow a bias; by default yes, except for the lectures' examples."
        ),
    ] = None,
    as_json: Json = False,
    output: Output = None,
    time_limit: Annotated[
        float | None, Option(metavar="SECONDS", group="running", help="Seconds after which the answer is undecided.")
    ] = None,
    *,
    reading: ReadingOptions,
) -> int:
    """Print the certificate, write it to a file, and return the status of its verdict."""
    from separatrix.cli.model_rows import read_examples
    from separatrix.proofs import certificate as proofs

    drop = drop or []
    with errors_reported("certify", data):
        examples = read_examples(data, label, positive, drop, model, reading.reading())
        certificate = proofs.certify(
            examples.X, examples.y, fit_intercept=examples.bias if bias is None else bias, time_limit=time_limit
        )
        certificate.feature_names = None if examples.feature_names is None else list(examples.feature_names)
        text = certificate.to_json(output)
    tell("certify", examples.notes)
    if as_json:
        click.echo(text, nl=False)
        return STATUS[certificate.verdict]
    _print(examples, certificate)
    if output is not None:
        same = [("label", label), ("positive", positive), ("model", model), *(("drop", name) for name in drop)]
        options = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in same if value is not None)
        options += "".join(f" {in_options(f'{name}={value!r}')}" for name, value in reading.reading().items())
        click.echo(f"certificate written to {output}; check it with: separatrix check {output} {data}{options}")
    return STATUS[certificate.verdict]


def _print(examples: "Examples", certificate: "Certificate") -> None:
    from separatrix.proofs.wording import lines

    first, *rest = lines(certificate, first_row=1)
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
