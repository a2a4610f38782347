"""Which corrections are behind a prediction: how much each of the ledger adds to the lead of the predicted class.

The weights are the sum of the corrections, so the lead is the sum of what each adds: its size times ⟨x̃, x̃_m⟩, in the average
times the share of the steps that came after it. What a model began with is the rest of the sum.
"""

from __future__ import annotations

import heapq
import time
from typing import Any

import numpy as np

from separatrix.engine.rows import Floats
from separatrix.web.server.forgetting.numbers import forgotten_numbers
from separatrix.web.server.live.commits import Commit
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.queries import example_of, known_rows, source_of
from separatrix.web.server.reading.request_reader import RequestError, RequestExamples
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_rows import COLUMNS, StoredCommit

MOST_CITED = 10
MOST_MISTAKES, MOST_SECONDS = 20_000, 1.0
"""At most about so many mistakes are considered, the newest first, and for so long."""


def leads_added(commit: Commit, dense: Floats, bias: bool, label: int, rival: int) -> Floats:
    """Return how much each correction of a commit adds to the score of a class less that of another, by number.

    `dense` is the example, a value for each column.
    """
    ends = np.concatenate([[0.0], np.cumsum(commit.rows.data * dense[commit.rows.indices])])
    products = ends[commit.rows.indptr[1:]] - ends[commit.rows.indptr[:-1]] + bias
    signs = 1.0 * (commit.up == label) - (commit.down == label) - (commit.up == rival) + (commit.down == rival)
    added: Floats = commit.correction * signs * products
    return added


def citations(store: CommitStore, buffer: DoubleBuffer, examples: RequestExamples) -> dict[str, Any]:
    """Return the corrections that add most to the lead of the predicted class over the next, or take most from it."""
    undone = store.undone()
    with buffer.reading() as (live_model, number):
        run, table = live_model.run, live_model.table
        if run is None or len(live_model.classes) < 2:
            return {"lead": None, "against": None, "corrections": [], "considered": 0, "of": 0, "sum": 0.0}
        if run.rule.spread:
            raise RequestError(422, f"{run.rule.name} scales corrections by variances: what each adds is not known")
        row = known_rows(buffer, live_model, examples)
        scores = live_model.scores(row)[0]
        (label,) = live_model.decide(scores[None])
        winner = live_model.labels.index(label)
        if len(scores) == 1:
            rival, lead = 1 - winner, float(scores[0]) * (1.0 if winner else -1.0)
        else:
            rival = int(np.argmax(np.where(np.arange(len(scores)) == winner, -np.inf, scores)))
            lead = float(scores[winner] - scores[rival])
        sides = int(table.number_at[winner]), int(table.number_at[rival])
        dense = np.zeros(live_model.width)
        np.add.at(dense, row.indices, row.data)
        elapsed = live_model.steps - run.ledger.average_after
        after, bias = run.ledger.average_after, run.bias
        classes, total = [*live_model.classes, None], live_model.progressive.mistakes
    forgotten = forgotten_numbers(store.forgettings)
    considered, whole, until = 0, 0.0, time.monotonic() + MOST_SECONDS
    best: list[tuple[float, int, float, StoredCommit, int, Commit]] = []
    query = f"SELECT {COLUMNS} FROM commits WHERE last <= ? AND (mistakes > 0 OR undoes IS NOT NULL) ORDER BY last DESC"
    for columns in store.db.execute(query, (number,)):
        stored = StoredCommit(*columns).checked()
        commit = stored.commit
        if commit.rebuilt:
            raise RequestError(409, "after an exact undo the ledger no longer adds up to the weights: nothing can be cited")
        if commit.undoes is not None:
            continue
        added = leads_added(commit, dense, bias, *sides) * (0.5 if len(classes) == 3 else 1.0)
        if elapsed > 0:
            averaged = np.maximum(0.0, commit.step.astype(np.float64) - 1.0 - after)
            averaged[commit.stuck] = 0.0
            added *= 1.0 - averaged / elapsed
        is_undone = [stored.mistakes_before + at + 1 in undone for at in range(len(added))] if undone else []
        added[np.flatnonzero(is_undone)] = 0.0
        considered, whole = considered + len(added), whole + float(added.sum())
        strongest = np.argsort(-np.abs(added), kind="stable")[:MOST_CITED]
        for at in strongest[added[strongest] != 0.0].tolist():
            entry = (abs(float(added[at])), stored.mistakes_before + at + 1, float(added[at]), stored, at, commit)
            heapq.heappush(best, entry)
        while len(best) > MOST_CITED:
            heapq.heappop(best)
        if considered >= MOST_MISTAKES or time.monotonic() > until:
            break
    corrections = [
        {
            "number": mistake,
            "example": example_of(stored, commit, at, forgotten),
            "time": stored.time,
            "raised": classes[commit.up[at]],
            "lowered": classes[commit.down[at]],
            "adds": value,
            **source_of(commit, at, buffer.index),
        }
        for _, mistake, value, stored, at, commit in sorted(best, reverse=True)
    ]
    counts = {"considered": considered, "of": total, "sum": whole}
    return {"lead": lead, "against": live_model.labels[rival], "corrections": corrections, **counts}
