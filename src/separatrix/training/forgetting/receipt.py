"""The receipt of a forgetting: which rows, from which state to which, what it changed, and how to check it.

A receipt holds no contents. What could be guessed by trying out (a short row, or the data and the model before, of which
all but the row may be known) is there only as a checksum with a key, HMAC-SHA256, and the key is not in the receipt.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from separatrix import __version__
from separatrix.data.atomic import replacing
from separatrix.data.errors import DataError, counted
from separatrix.data.keyed_checksums import keyed

KIND = "separatrix forget"
FORMAT = 1


class ReceiptError(DataError):
    """A file is not a receipt that can be read."""


class Receipt(dict[str, Any]):
    """A receipt, by the names of its parts; `print(receipt)` shows it.

    removed : the numbers of the rows, from which number rows count, and a checksum of each content, with a key
    before, after : rows, mistakes, passes, and checksums; those before are made with the key
    replay : from which mistake on training was made again, why from the beginning, how many presentations that took
    order, training : what `check` trains with: the order with its gaps, and the learner or the options of `train`
    key : of the checksums, 32 bytes, None once the receipt was read from a file. Whoever has it can show that a row, or the
        earlier model, is the one that the receipt means. It is not part of the receipt.
    """

    key: bytes | None = None

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the receipt, without the key, to a file."""
        with replacing(path) as temporary:
            Path(temporary).write_text(json.dumps(self, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Receipt:
        """Read a receipt from a file; raise a `ReceiptError` for anything else."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ReceiptError(f"{os.fspath(path)} is not a receipt: {str(error)[:100]}") from None
        if not is_receipt(document):
            raise ReceiptError(f"{os.fspath(path)} is not a receipt of `forget`")
        if document.get("format") != FORMAT:
            raise ReceiptError(
                f"{os.fspath(path)} is a receipt in format {document.get('format')!r:.20}, and separatrix {__version__} "
                f"knows format {FORMAT}"
            )
        missing = [part for part in ("removed", "before", "after", "replay", "order", "training") if part not in document]
        if missing:
            raise ReceiptError(f"{os.fspath(path)} is a receipt without the part {missing[0]!r}")
        return cls(document)

    def holds(self, key: bytes, content: Any) -> bool:
        """Tell whether a row with this content, as `forget` was given it, is among the removed ones."""
        return keyed(key, content) in self["removed"]["checksums"]

    def was_before(self, key: bytes, model: Any) -> bool:
        """Tell whether a model is the one that the rows were removed from."""
        from separatrix.modelfile.archive import learned_checksum

        return hmac.compare_digest(keyed(key, learned_checksum(model)), str(self["before"]["learned"]))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield what a person wants to know."""
        removed, before, after, replay = self["removed"], self["before"], self["after"], self["replay"]
        numbers = ", ".join(map(str, removed["rows"][:10])) + (" …" if len(removed["rows"]) > 10 else "")
        yield f"forgot {counted(len(removed['rows']), 'row')} of {before['rows']:,}: {numbers}"
        steps = replay["steps"]
        if replay["from_beginning"]:
            yield f"  trained from the beginning, because {replay['why']}: {counted(steps, 'presentation')}"
        elif replay["first_mistake"] is None:
            yield f"  no mistake was made on {_them(removed)}: {_made(replay)} of {steps:,} presentations made again"
        else:
            what = f"trained again from mistake {replay['first_mistake'] + 1:,} of {before['mistakes']:,} on"
            yield f"  {what}: {_made(replay)} of {steps:,} presentations made again"
        weights = self["changed"]["weights"]
        changes = "other weights than before" if weights is None else f"{weights[0]:,} of {weights[1]:,} weights changed"
        yield f"  mistakes: {before['mistakes']:,} before, {after['mistakes']:,} after; {changes}"
        yield f"  what was learned now has the checksum {after['learned'][:16]}…"


def _made(replay: dict[str, Any]) -> str:
    return f"{replay['presented']:,}" if replay["presented"] else "none"


def _them(removed: dict[str, Any]) -> str:
    return "it" if len(removed["rows"]) == 1 else "them"


def is_receipt(document: Any) -> bool:
    """Tell whether JSON values are a receipt."""
    return isinstance(document, dict) and document.get("receipt") == KIND


def is_receipt_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file holds a receipt; what is wrong with another one is for others to say."""
    try:
        return is_receipt(json.loads(Path(path).read_text(encoding="utf-8")))
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        return False
