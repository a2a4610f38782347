"""The weights of a run while it learns on a server: room that grows, weights to score with, a copy without spare room."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import numpy as np

from separatrix.engine.rows import NO_ORDER, NO_WEIGHT, Floats, Ints, frozen
from separatrix.engine.rules import RULES
from separatrix.engine.run import Run
from separatrix.engine.weights import Flat, Weights
from separatrix.kernels.learning import rows as kernels
from separatrix.learners.linear_base import LinearLearner
from separatrix.web.server.live.class_table import ClassTable
from separatrix.web.server.live.commits import SparseRows

LEAST_COLUMNS = 64
_COPIES = 6.5
"""Copies of the weights in memory: one that learns, one that predicts, and up to 4.5 while a snapshot is written."""
_FEW_CLASSES = 8
"""Up to so many classes the weights have no spare room for others: a spare output costs time and memory."""


def room_for(run: Run | None, names: int, classes: int) -> tuple[int, int]:
    """Return how many outputs and columns the weights get for so many names and classes.

    They grow by half at least, so that each name or class takes amortized constant time.
    """
    K, d = (1, 0) if run is None else (run.last.K, run.last.d)
    if names > d:
        d = max(LEAST_COLUMNS, names, d + d // 2)
    if classes > 2 and classes > K:
        K = classes if classes <= _FEW_CLASSES else max(classes, K + K // 2)
    return K, d


def bytes_for(learner: LinearLearner, run: Run | None, names: int, classes: int) -> int:
    """Return how much memory a server needs for the weights of so many names and classes, a snapshot included."""
    K, d = room_for(run, names, classes)
    n_arrays = 1 + learner.averages + (RULES[learner.rule].spread == "diagonal")
    return int(_COPIES * n_arrays * K * d * 8)


def make_room(run: Run, names: int, classes: int) -> None:
    """Let the weights have room for so many names and, where each class has its output, so many classes."""
    K, d = room_for(run, names, classes if run.last.K > 1 else 0)
    if (K, d) != (run.last.K, run.last.d):
        run.last.grow(K, d)
        run.late.grow(K, d if run.average else 0)
        run.ledger.resize(d)
        run.used = None


def some_weights(run: Run, columns: Ints, outputs: Ints | None = None, *, last: bool = False) -> tuple[Floats, Floats]:
    """Return the weights of some columns and outputs (or all), one row per column, and the biases.

    They are those used for prediction or, with `last`, those that learn.
    """
    K, elapsed = run.last.K, 0 if last else run.ledger.steps - run.ledger.average_after
    which: Any = columns if outputs is None else (columns[:, None], outputs)
    W, b = run.last.W.reshape(-1, K)[which], run.last.b if outputs is None else run.last.b[outputs]
    if elapsed > 0:
        W *= elapsed
        W -= run.late.W.reshape(-1, K)[which]
        W /= elapsed
        b = (elapsed * b - (run.late.b if outputs is None else run.late.b[outputs])) / elapsed
    return W, b


def compacted(run: Run, table: ClassTable, width: int) -> Run:
    """Return a copy of the run without spare room, its outputs in the order of the sorted classes."""
    own, outputs = copy(run), table.many if table.many.size else np.zeros(1, np.int64)

    def taken(flat: Flat, d: int) -> Flat:
        part = Flat(len(outputs), 0, True, spread=flat.spread)
        part.d = d
        part.load(Weights(flat.W.reshape(-1, flat.K)[:d, outputs].T, flat.b[outputs]))
        if flat.spread:
            part.load_spread([flat.V.reshape(-1, flat.K)[:d, outputs].T, flat.vb[outputs]])
        return part

    own.last, own.late = taken(run.last, width), taken(run.late, width if run.average else 0)
    own.tally, own.heaviest, own.per_pass = run.tally.copy(), run.heaviest.copy(), list(run.per_pass)
    own.ledger = deepcopy(run.ledger)
    own.ledger.resize(width)
    if len(table.labels) > len(run.classes):
        own.ledger.classes = np.array(table.labels, dtype=object if run.classes.dtype == object else None)
    return own


def scored(rows: SparseRows, W: Floats, b: Floats) -> Floats:
    """Return the scores of rows, one column per output; W has one row per column of the rows."""
    d, K = W.shape
    out = np.empty(rows.n * K)
    kernels.score_rows(rows.parts, d, NO_ORDER, 0, rows.n, frozen(W.reshape(-1)), frozen(b), K, np.empty(K), out)
    return out.reshape(rows.n, K)


def squared_radius(block: SparseRows) -> float:
    """Return the largest ‖x‖² of the rows."""
    nnz = len(block.data)
    parts = block._replace(indices=np.arange(nnz)).parts
    problem, _, _, norm = kernels.survey(parts, nnz, 0, block.n, NO_WEIGHT, np.empty(0, np.int64))
    assert problem == kernels.FINE
    return float(norm)
