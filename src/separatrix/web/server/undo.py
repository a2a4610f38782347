"""Taking a mistake back: its correction is subtracted or, where all examples were kept, they are replayed without it."""

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


def take_back(writer: Writer, number: int, answer: Future[bytes]) -> None:
    """Undo a mistake, in the writer's thread."""
    store, buffer = writer.store, writer.buffer
    undone = store.undone()
    page = store.mistakes_page(number + 1, 1)
    if not page or page[0][0] != number:
        answer.set_exception(RequestError(404, f"there is no mistake {number}"))
        return
    if number in undone:
        answer.set_exception(RequestError(409, f"mistake {number} was taken back already"))
        return
    learning = buffer.learning
    assert learning.run is not None
    rebuilt = without(writer, {*undone, number})
    if rebuilt is None and learning.run.rule.spread:
        why = "the rule keeps variances, which cannot be subtracted; with --keep-all from the start it could be replayed"
        answer.set_exception(RequestError(409, why))
        return
    commit = learning.undoing(number, page[0][3], page[0][2])
    if rebuilt is None:
        learning.apply(commit)
        writer.write(commit, [])
        buffer.follow(commit)
    else:
        rebuilt.progressive.undone = learning.progressive.undone + 1
        commit.rebuilt = True
        picture = snapshots.ModelSnapshot.of(store, store.last + 1, rebuilt, buffer.names(learning))
        picture.write(snapshots.rebuilt_path(store, store.last + 1))
        buffer.restart(rebuilt)
        writer.write(commit, [])
        buffer.restart()
    answer.set_result(orjson.dumps({"undone": number, "how": "subtracted" if rebuilt is None else "replayed"}))


def without(writer: Writer, numbers: set[int]) -> LiveModel | None:
    """Return the machine that learned from all examples but those of some mistakes; None where not all were kept."""
    machine, _ = snapshots.start(writer.store)
    classes = writer.buffer.learning.classes
    for stored in writer.store.commits():
        commit = stored.commit
        if stored.undoes is not None:
            continue
        if commit.kept is None:
            return None
        places = [n - stored.mistakes_before - 1 for n in numbers]
        steps = commit.step[[at for at in places if 0 <= at < stored.mistakes]]
        rows = np.setdiff1d(np.arange(commit.n), steps - (commit.steps - commit.n) - 1)
        if not rows.size and machine.run is None:
            machine.n_names += len(commit.names)
            continue
        labels = [classes[k] for k in commit.kept_class[rows].tolist()]
        machine.learn(commit.kept.take(rows), labels, commit.names, None, False)
    machine.renumber(classes)
    return machine
