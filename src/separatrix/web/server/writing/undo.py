"""Taking back: a mistake, whose correction is subtracted or, if all examples were kept, left out of learning; or a pin."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import orjson

from separatrix.web.server.live.commits import EMPTY, Commit
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.reading.request_reader import RequestError
from separatrix.web.server.storage import snapshots
from separatrix.web.server.writing.regressions import Changes

if TYPE_CHECKING:
    from separatrix.web.server.writing.writer import Writer


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
    rebuilt = snapshots.relearned(store, {*undone, number}, store.last)
    if rebuilt is None and learning.run.rule.spread:
        reason = (
            "this update rule keeps variances, which cannot be subtracted: undo needs --keep-all from the first example on"
        )
        answer.set_exception(RequestError(409, reason))
        return
    commit = subtracting(learning, number, page[0][3], page[0][2])
    reply = orjson.dumps({"undone": number, "how": "subtracted" if rebuilt is None else "replayed"})
    if rebuilt is None:
        learning.apply(commit)
        writer.write(commit, [], [(answer, reply)])
        buffer.follow(commit)
    else:
        commit.rebuilt = True
        snapshot = snapshots.ModelSnapshot.of(store, store.last + 1, rebuilt, buffer.names(learning), stays=True)
        snapshot.write(snapshots.rebuilt_path(store, store.last + 1))
        buffer.restart(rebuilt)
        writer.write(commit, [], [(answer, reply)])
        buffer.restart()


def idle_commit(live_model: LiveModel) -> Commit:
    """Return a commit that changes nothing."""
    run, none = live_model.run, np.empty(0, np.int64)
    tally, radius = ([], 0.0) if run is None else (run.tally.tolist(), float(run.radius_squared))
    nothing = (none, none, none, np.empty(0), np.empty(0), EMPTY, none, none, np.zeros(len(live_model.classes), np.int64))
    return Commit(0, live_model.steps, tally, radius, *nothing)


def subtracting(live_model: LiveModel, number: int, mistake: Commit, at: int) -> Commit:
    """Return the commit that subtracts mistake `at` of an earlier commit, which is `number`; the caller applies it."""
    here = slice(at, at + 1)
    return replace(
        idle_commit(live_model),
        step=mistake.step[here],
        up=mistake.up[here],
        down=mistake.down[here],
        correction=-mistake.correction[here],
        rows=mistake.rows.take(np.array([at])),
        undoes=number,
        stuck=np.flatnonzero(mistake.stuck == at) * 0,
    )


def unpin(writer: Writer, example: int, answer: Future[bytes]) -> None:
    """Take an example out of the regression set; runs in the writer's thread."""
    pins = dict(writer.regressions.pins)
    if example not in pins:
        answer.set_exception(RequestError(404, f"example {example} is not pinned"))
        return
    removal = pins.pop(example).removal()
    writer.store.change([removal])
    writer.regressions.accept(Changes(pins, [removal], []))
    answer.set_result(orjson.dumps({"unpinned": example}))
