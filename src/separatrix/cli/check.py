"""`separatrix check`: does this certificate hold for these data?"""

from __future__ import annotations

from pathlib import Path

import typer

from separatrix.certificate import Certificate
from separatrix.cli.refusal import refusing
from separatrix.data.sources import read_source


def run(certificate: Path, data: str, label: str | None, positive: str | None) -> int:
    """Check, print, and return the exit status."""
    with refusing("check", certificate):
        claimed = Certificate.from_json(certificate)
        source = read_source(data, label, positive)
        fault = claimed.fault(source.X, source.y)
    if fault is not None:
        typer.echo(f"NOT VALID for {source.name}: {fault}")
        return 1
    kind = claimed.separation or "not claimed"
    typer.echo(f"VALID: the {claimed.proof.n} examples of {source.name} are {claimed.verdict}; separation: {kind}")
    return 0
