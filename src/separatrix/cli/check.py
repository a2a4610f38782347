"""`separatrix check`: does this certificate hold for these data?"""

from __future__ import annotations

from pathlib import Path

import typer

from separatrix.cli.refusal import refusing
from separatrix.cli.using import examples_of
from separatrix.proofs.certificate import Certificate


def run(certificate: Path, data: str, label: str | None, positive: str | None, drop: list[str], model: Path | None) -> int:
    """Check, print, and return the exit status."""
    with refusing("check", certificate):
        claimed = Certificate.from_json(certificate)
        source = examples_of(data, label, positive, drop, model)
        fault = claimed.fault(source.X, source.y)
    if fault is not None:
        typer.echo(f"NOT VALID for {source.name}: {fault}")
        return 1
    kind = claimed.separation or "not claimed"
    typer.echo(f"VALID: the {claimed.proof.n} examples of {source.name} are {claimed.verdict}; separation: {kind}")
    return 0
