"""Check a certificate against the data, exactly.

Exit status: 0 it holds, 1 it does not, 2 bad input.
"""

from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, reader_may_leave, tell
from separatrix.cli.options import FeatureModel, ModelFormula
from separatrix.data.errors import counted
from separatrix.data.options import Argument, Data, Drop, Label, Positive, ReadingOptions


def check(
    certificate: Annotated[Path, Argument(help="A certificate written by `separatrix certify -o`.")],
    data: Data,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    model: FeatureModel = None,
    model_formula: ModelFormula = None,
    *,
    reading: ReadingOptions,
) -> int:
    """Print whether the certificate holds."""
    from separatrix.cli.model_rows import read_examples
    from separatrix.proofs.certificate import Certificate

    with errors_reported("check", certificate):
        claim = Certificate.from_json(certificate)
        examples = read_examples(data, label, positive, drop or [], model, reading.reading(), model_formula)
        fault = claim.fault(examples.X, examples.y)
    tell("check", examples.notes)
    status = 0 if fault is None else 1
    with reader_may_leave(status):
        if fault is not None:
            click.echo(f"NOT VALID for {examples.name}: {fault}")
        else:
            what = f"the {counted(claim.proof.n, 'example')} of {examples.name} are {claim.verdict}"
            click.echo(f"VALID: {what}; separation: {claim.separation or 'not claimed'}")
    return status
