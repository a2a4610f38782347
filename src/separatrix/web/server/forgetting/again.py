"""Forgetting again: a restored backup forgets what was forgotten after it was made.

Which examples these are is known from the file beside the backup that the server has written, from the store that the backup
was made of, where it is still there, and from receipts that a person names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from separatrix.data.errors import DataError
from separatrix.web.server.forgetting.act import forget
from separatrix.web.server.forgetting.erasing import erase, mark_of
from separatrix.web.server.forgetting.numbers import forgotten_numbers
from separatrix.web.server.forgetting.receipts import read_receipts
from separatrix.web.server.reading.feature_index import FeatureIndex
from separatrix.web.server.reading.request_errors import RequestError
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import DATABASE, StoreError


def forget_again(stage: Path, backup: Path, made_of: Path | None, receipts: Iterable[Path], of_many: bool) -> list[int]:
    """Let a restored store forget what was forgotten later; return the numbers of these examples.

    Raises DataError where a receipt cannot be read, is of another store, or cannot be followed.
    """
    with closing(CommitStore(stage, writing=False)) as store:
        identity, known = store.base["model"]["id"], set(forgotten_numbers(store.forgettings).tolist())
        later = {number for number in _numbers(identity, backup, made_of, receipts, of_many) if number <= store.examples}
    numbers = sorted(later - known)
    if not numbers:
        return []
    with closing(CommitStore(stage)) as store:
        live_model, names, _ = snapshots.recover(store)
        index = None if names is None else FeatureIndex(names)
        try:
            forgotten = forget(store, numbers, index, live_model)
        except RequestError as error:
            reason = f"examples {', '.join(map(str, numbers))} were forgotten after it was made, and cannot be again"
            raise DataError(f"{backup}: {reason}: {error.message}") from None
        erase(store)
        if forgotten.live_model.run is not None:
            snapshot = snapshots.ModelSnapshot.of(store, store.last, forgotten.live_model, forgotten.names, stays=True)
            snapshot.write(snapshots.path_of(stage, store.last))
    return numbers


def _numbers(identity: str, backup: Path, made_of: Path | None, receipts: Iterable[Path], of_many: bool) -> Iterator[int]:
    """Yield the numbers of the examples that are known to be forgotten."""
    mark = mark_of(backup)
    for path in [*receipts, *([mark] if mark.exists() else [])]:
        try:
            listed = read_receipts(path)
        except (OSError, ValueError) as error:
            raise DataError(f"{path} is not a receipt of a server's forgetting: {error}") from None
        for receipt in listed:
            if receipt.get("store") == identity:
                yield from receipt["removed"]["examples"]
            elif not of_many:
                raise DataError(f"{path} is a receipt of another store")
    if made_of is None or not (made_of / DATABASE).exists():
        return
    try:
        with closing(CommitStore(made_of, writing=False)) as store:
            if store.base.get("model", {}).get("id") == identity:
                yield from forgotten_numbers(store.forgettings).tolist()
    except (StoreError, OSError):  # it is damaged, which may be why its backup is restored
        return
