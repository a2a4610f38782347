"""Checking a server's receipt against its store: learning from what is kept must give what the receipt says."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.data.errors import DataError
from separatrix.web.server.forgetting.act import FORMAT, learned_of
from separatrix.web.server.forgetting.numbers import Forgetting, forgotten_numbers
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore


def fault_of(receipt: dict[str, Any], folder: Path) -> str | None:
    """Return why a receipt does not hold for a store, or None where it does.

    What the store has kept is learned from again: from its beginning, or, where not all examples were kept by then, from
    the first commit on that the forgetting has changed.
    """
    if receipt.get("format") != FORMAT:
        raise DataError(f"the receipt has format {receipt.get('format')!r:.20}, and this version knows format {FORMAT}")
    with closing(CommitStore(folder, writing=False)) as store:
        if receipt.get("store") != store.base.get("model", {}).get("id"):
            return "it is the receipt of another store"
        forgettings = store.forgettings
        here = next((k for k, forgetting in enumerate(forgettings) if forgetting.receipt["id"] == receipt.get("id")), None)
        if here is None:
            return "the store does not know of this forgetting; a restored one has receipts of its own"
        entry = forgettings[here]
        if _claims(receipt) != _claims(entry.receipt):
            return "the store's own copy of the receipt says something else"
        if not entry.is_erased:
            return "not all traces are erased yet; the next start of the server erases them"
        newest = forgettings[-1]  # of a store that has forgotten more since, the state after that is checked
        return _fault_of_state(store, newest)


def _claims(receipt: dict[str, Any]) -> dict[str, Any]:
    """Return what a receipt says, but for what is known only once the traces are erased."""
    return {part: value for part, value in receipt.items() if part not in ("deleted", "backups")}


def _fault_of_state(store: CommitStore, forgetting: Forgetting) -> str | None:
    """Return what differs between what is kept and what the receipt of the last forgetting says."""
    after = forgetting.receipt["after"]
    until = int(after["commit"])
    if not store.leads(0, until):
        return f"the commits up to number {until:,} are missing, or joined with later ones: nothing can be compared"
    first = next((start for start in (0, forgetting.commit - 1) if _is_kept(store, start, until)), None)
    if first is None:
        return "the store has not kept the examples that came after"
    live_model, names = _learned(store, first, until)
    counts = live_model.progressive
    if (counts.examples, counts.mistakes) != (after["examples"], after["mistakes"]):
        said = f"{after['examples']:,} examples and {after['mistakes']:,} mistakes"
        return f"learning gives {counts.examples:,} examples and {counts.mistakes:,} mistakes; the receipt says {said}"
    if counts.numbered - counts.examples < len(forgotten_numbers(store.forgettings)):
        return "there are more examples than their numbers and the receipts allow"
    return None if learned_of(live_model, names) == after["learned"] else "learning gives another model"


def _is_kept(store: CommitStore, after: int, until: int) -> bool:
    commits = (stored.commit for stored in store.commits(after, until) if stored.undoes is None)
    return all(commit.kept is not None or not commit.n for commit in commits)


def _learned(store: CommitStore, after: int, until: int) -> tuple[LiveModel, list[str] | None]:
    """Return the model that learning from the commits after number `after` gives, and the names of its features."""
    live_model, names, _ = snapshots.recover(store, after)
    classes, undone = list(live_model.classes), store.undone()
    for stored in store.commits(after, until):
        commit = stored.commit
        if commit.rebuilt:
            rebuilt = snapshots.relearned(store, {n for n, at in undone.items() if at <= stored.last}, stored.last)
            if rebuilt is None:
                raise DataError("the initial model cannot be read, from which an exact undo has to be made again")
            live_model = rebuilt
        elif stored.undoes is not None:
            live_model.apply(commit)
        elif commit.n:
            assert commit.kept is not None
            classes += [label for _, label in commit.arrivals]
            labels = [classes[k] for k in commit.kept_class.tolist()]
            live_model.learn(commit.kept, labels, commit.names, None, False, persistent=np.asarray(commit.until_right))
        if names is not None:
            names.extend(commit.names)
        live_model.progressive.leave_out(stored.examples)
    return live_model, names
