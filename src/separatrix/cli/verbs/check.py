"""Check a certificate, or a receipt of `forget`, against the data.

A certificate is checked exactly. A receipt holds if training on the remaining data, in the order with gaps that it
describes, gives what it says; of a server's receipt, DATA is the folder of its store.

Exit status: 0 it holds, 1 it does not, 2 bad input.
"""

from pathlib import Path
from typing import Annotated, Any

import click

from separatrix.cli.errors import errors_reported, fail, in_options, reader_may_leave, tell
from separatrix.cli.options import FeatureModel, ModelFormula
from separatrix.data.errors import DataError, counted
from separatrix.data.options import Argument, Drop, Label, Option, Positive, ReadingOptions


def check(
    certificate: Annotated[Path, Argument(help="A certificate of `separatrix certify -o`, or a receipt of `forget`.")],
    data: Annotated[str | None, Argument(help="The data that it is about: a file, a pattern, - …", file=True)] = None,
    data_option: Annotated[
        str | None, Option("--data", metavar="DATA", file=True, group="data", help="The same as DATA.")
    ] = None,
    validate: Annotated[
        str | None,
        Option(metavar="DATA", file=True, group="data", help="Of a receipt: held-out data, if there was such a file."),
    ] = None,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    model: FeatureModel = None,
    model_formula: ModelFormula = None,
    *,
    reading: ReadingOptions,
) -> int:
    """Print whether the certificate or the receipt holds."""
    from separatrix.training.forgetting.receipt import Receipt, is_receipt_file

    with errors_reported("check", certificate):
        if (data is None) == (data_option is None):
            raise DataError("name the data that it is about, once: as DATA or with --data")
        data = data or data_option or ""
        if (receipt_of_server := _server_receipt(certificate)) is not None:
            if not Path(data).is_dir():
                raise DataError(f"it is the receipt of a server: name the folder of its store, and not {data}")
            return _check_server_receipt(receipt_of_server, Path(data))
        if is_receipt_file(certificate):
            return _check_receipt(Receipt.from_json(certificate), data, validate)
    from separatrix.cli.model_rows import read_examples
    from separatrix.proofs.certificate import Certificate

    with errors_reported("check", certificate):
        claim = Certificate.from_json(certificate)
        examples = read_examples(data, label, positive, drop or [], model, reading.reading(), model_formula)
        fault = claim.fault(examples.X, examples.y, examples.feature_names)
    tell("check", examples.notes)
    status = 0 if fault is None else 1
    with reader_may_leave(status):
        if fault is not None:
            click.echo(f"NOT VALID for {examples.name}: {fault}")
        else:
            what = f"the {counted(claim.proof.n, 'example')} of {examples.name} are {claim.verdict}"
            click.echo(f"VALID: {what}; separation: {claim.separation or 'not claimed'}")
    return status


def _server_receipt(path: Path) -> dict[str, Any] | None:
    """Return the receipt of a server in a file, or None where it is something else."""
    from separatrix.web.server.forgetting.receipts import read_receipts

    try:
        return read_receipts(path)[-1]
    except (ValueError, IndexError):
        return None


def _check_server_receipt(receipt: dict[str, Any], folder: Path) -> int:
    """Learn from what a store has kept, and print whether that gives what the receipt of a server says."""
    try:
        from separatrix.web.server.forgetting.checking import fault_of
    except ImportError as error:
        fail("check", f"the receipt of a server needs the package {error.name}: pip install 'separatrix[web]'")

    fault = fault_of(receipt, folder)
    with reader_may_leave(0 if fault is None else 1):
        if fault is not None:
            click.echo(f"NOT VALID for {folder}: {fault}")
            return 1
        gone = counted(len(receipt["removed"]["examples"]), "example")
        click.echo(f"VALID: learning from what {folder} has kept, without the {gone} forgotten, gives what the receipt says")
    return 0


def _check_receipt(receipt: dict[str, Any], data: str, validate: str | None) -> int:
    """Train on the remaining data, and print whether that gives what the receipt says."""
    from separatrix.training.forgetting.checking import fault_of

    fault = fault_of(receipt, data, validate=validate)
    n = len(receipt["removed"]["rows"])
    gone = "the row that was removed" if n == 1 else f"the {n:,} rows that were removed"
    with reader_may_leave(0 if fault is None else 1):
        if fault is not None:
            click.echo(in_options(f"NOT VALID for {data}: {fault}"))
            return 1
        click.echo(f"VALID: training on {data}, without {gone}, gives what the receipt says")
    return 0
