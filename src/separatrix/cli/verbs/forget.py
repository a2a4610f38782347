"""Forget rows of the training data, as if they had never been there.

The model becomes the one that training on the other rows gives, bit for bit, in the order of the earlier training. DATA are
what the model was trained on, the rows to forget included; rows count from 1 as those of `explain --row` do, and a header is
no row. A receipt is written, without contents, which `separatrix check RECEIPT --data REMAINING` verifies by training.

Try:

  separatrix forget pay.sepx staff.csv --rows 17,23 --remaining staff-left.csv
  separatrix check pay.receipt.json --data staff-left.csv
"""

from pathlib import Path
from typing import Annotated

import click

from separatrix.cli.errors import errors_reported, in_options
from separatrix.cli.narrow_encodings import echo_json
from separatrix.cli.options import Json, ModelFile
from separatrix.data.errors import DataError
from separatrix.data.options import Data, Option


def forget(
    model: ModelFile,
    data: Data,
    rows: Annotated[str, Option("--rows", metavar="NUMBERS", help="Rows to forget, from 1, with commas between: 17,23.")],
    output: Annotated[
        Path | None, Option("-o", "--output", help="File for the model without the rows; by default it replaces MODEL.")
    ] = None,
    receipt: Annotated[
        Path | None, Option(help="File for the receipt; by default the model's name with .receipt.json at the end.")
    ] = None,
    remaining: Annotated[Path | None, Option(help="Write DATA without the rows to this file, too.")] = None,
    key: Annotated[
        Path | None,
        Option(
            help="Write the key of the receipt's checksums to this file; without it, nobody can guess what was removed, and "
            "nobody can show it."
        ),
    ] = None,
    validate: Annotated[
        str | None, Option(metavar="DATA", file=True, help="File of held-out data, if the model was trained with one.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Write the model without the rows, and the receipt."""
    import json

    from separatrix.data.atomic import check_place, replacing
    from separatrix.modelfile.archive import load, save
    from separatrix.training.forgetting.forget import forget_trained
    from separatrix.training.forgetting.retraining import Earlier
    from separatrix.training.forgetting.rows import check_can_forget

    output = output or model
    receipt = receipt or output.with_name(f"{output.name.removesuffix('.sepx')}.receipt.json")
    with errors_reported("forget", data):
        numbers = _numbers(rows)
        for path in (output, receipt, remaining, key):
            if path is not None:
                check_place(path)
        before = load(model, plain=True)
        check_can_forget(before.estimator)
        if before.facts.get("settings") is None:
            raise DataError(f"{model}: the model does not say how it was trained, so it cannot be trained without the rows")
        earlier = Earlier(before, data, None, validate, True)
        written = {"-o": output, "--receipt": receipt, "--remaining": remaining, "--key": key}
        _check_apart({"DATA": [*earlier.source.files], "--validate": [] if validate is None else [validate]}, written)
        done = forget_trained(earlier, numbers, 1, remaining)
        with replacing(output) as unnamed:  # the old model is replaced once there is a receipt
            save(done.model, unnamed)
            done.receipt["after"]["model"] = load(unnamed, plain=True).sha256
            done.receipt.to_json(receipt)
            if key is not None:
                with replacing(key) as name:
                    Path(name).write_text((done.receipt.key or b"").hex() + "\n")
    if as_json:
        echo_json(json.dumps(done.receipt, ensure_ascii=False))
        return 0
    for line in done.receipt.lines():
        click.echo(in_options(line))
    click.echo(f"  model written to {output}, receipt to {receipt}")
    if remaining is not None:
        click.echo(f"  the other rows are in {remaining}; to check: separatrix check {receipt} --data {remaining}")
    return 0


def _check_apart(read: dict[str, list[str]], written: dict[str, Path | None]) -> None:
    """Raise where a file that is written is one that is read, or another one that is written."""
    from separatrix.data.atomic import is_regular

    owners = {Path(name).resolve(): what for what, names in read.items() for name in names}
    for option, path in written.items():
        if path is None or not is_regular(path):
            continue
        other = owners.setdefault(path.resolve(), option)
        if other != option:
            raise DataError(f"{path} is both {other} and {option}: name another file with {option}")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = next((part for part in parts if not part.isdecimal()), None)
    if wrong is not None or not parts:
        raise DataError(f"--rows: {wrong or text!r} is not a row number; use for example 17,23")
    return [*map(int, parts)]
