"""Undoing a mistake: its correction is subtracted or, if all examples were kept, the model is trained again without it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
import orjson

from separatrix.web.server import snapshots
from separatrix.web.server.live_model import LiveModel
from separatrix.web.server.request_reader import RequestError

if TYPE_CHECKING:
    from separatrix.web.server.writer import Writer


def undo_mistake(writer: Writer, number: int, answer: Future[bytes]) -> None:
    """Undo a mistake; runs in the writer's thread."""
    store, buffer = writer.store, writer.buffer
    undone = store.undone()
    page = store.mistakes_page(number + 1, 1)
    if not page or page[0][0] != number:
        answer.set_exception(RequestError(404, f"there is no mistake {number}"))
        return
    if number in undone:
        answer.set_exception(RequestError(409, f"mistake {number} was already undone"))
        return
    learning = buffer.learning
    assert learning.run is not None
    rebuilt = _retrained_without(writer, {*undone, number})
    if rebuilt is None and learning.run.rule.spread:
        reason = (
            "this update rule keeps variances, which cannot be subtracted: undo needs --keep-all from the first example on"
        )
        answer.set_exception(RequestError(409, reason))
        return
    commit = learning.undoing(number, page[0][3], page[0][2])
    if rebuilt is None:
        learning.apply(commit)
        writer.write(commit, [])
        buffer.follow(commit)
    else:
        rebuilt.progressive.undone = learning.progressive.undone + 1
        commit.rebuilt = True
        snapshot = snapshots.ModelSnapshot.of(store, store.last + 1, rebuilt, buffer.names(learning))
        snapshot.write(snapshots.rebuilt_path(store, store.last + 1))
        buffer.restart(rebuilt)
        writer.write(commit, [])
        buffer.restart()
    answer.set_result(orjson.dumps({"undone": number, "how": "subtracted" if rebuilt is None else "replayed"}))


def _retrained_without(writer: Writer, numbers: set[int]) -> LiveModel | None:
    """Return the model that learned from all examples except those of some mistakes; None if not all examples were kept."""
    live_model, _ = snapshots.initial_model(writer.store)
    classes = writer.buffer.learning.classes
    for stored in writer.store.commits():
        commit = stored.commit
        if stored.undoes is not None:
            continue
        if commit.kept is None:
            return None
        positions = [n - stored.mistakes_before - 1 for n in numbers]
        steps = commit.step[[at for at in positions if 0 <= at < stored.mistakes]]
        rows = np.setdiff1d(np.arange(commit.n), steps - (commit.steps - commit.n) - 1)
        if not rows.size and live_model.run is None:
            live_model.n_names += len(commit.names)
            continue
        labels = [classes[k] for k in commit.kept_class[rows].tolist()]
        live_model.learn(commit.kept.take(rows), labels, commit.names, None, False)
    live_model.renumber(classes)
    return live_model
