"""`separatrix certify`: a proven answer to whether a linear classifier can get the examples right."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer
from scipy.sparse import issparse

from separatrix.cli.refusal import refusing
from separatrix.cli.using import examples_of
from separatrix.data.in_memory import Examples
from separatrix.proofs.certificate import Certificate
from separatrix.proofs.certificate import certify as prove
from separatrix.proofs.wording import lines

STATUS = {"separable": 0, "touching": 1, "inseparable": 1, "undecided": 3}


def run(
    data: str,
    label: str | None,
    positive: str | None,
    drop: list[str],
    model: Path | None,
    bias: bool | None,
    as_json: bool,
    output: Path | None,
    time_limit: float | None,
) -> int:
    """Certify, print, write, and return the exit status."""
    with refusing("certify", data):
        source = examples_of(data, label, positive, drop, model)
        certificate = prove(source.X, source.y, fit_intercept=source.bias if bias is None else bias, time_limit=time_limit)
        certificate.feature_names = None if source.feature_names is None else list(source.feature_names)
        text = certificate.to_json(output)
    if as_json:
        typer.echo(text, nl=False)
    else:
        _show(source, certificate)
        if output is not None:
            given = [("label", label), ("positive", positive), ("model", model), *(("drop", name) for name in drop)]
            options = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in given if value is not None)
            typer.echo(f"certificate written to {output}; check it with: separatrix check {output} {data}{options}")
    return STATUS[certificate.verdict]


def _show(source: Examples, certificate: Certificate) -> None:
    first, *rest = lines(certificate)
    typer.echo(f"{source.name} is {first}")
    for line in rest:
        typer.echo(f"  {line}")
    if certificate.witness is not None:
        typer.echo("  the witness, rows counted from 0:")
        for i, weight in list(zip(certificate.witness.rows, certificate.witness.weights, strict=True))[:10]:
            row = source.X[[i]].toarray()[0] if issparse(source.X) else source.X[i]
            values = ", ".join(f"{value:g}" for value in row[:8].tolist())
            more = ", …" if source.X.shape[1] > 8 else ""
            typer.echo(f"    row {i}: ({values}{more}) → {source.y[i]}, weight {float(weight):.6g}")
        if len(certificate.witness) > 10:
            typer.echo(f"    … {len(certificate.witness)} rows in all")
