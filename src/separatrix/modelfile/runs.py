"""A run and its ledger as JSON values and arrays: the weights, the clock, every mistake, and the rows that were stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from separatrix.engine.growable import Column
from separatrix.engine.ledger import Cut, Ledger
from separatrix.engine.orders import ORDERS
from separatrix.engine.rows import Rows, Store
from separatrix.engine.rules import RULES, TIES, Rule
from separatrix.engine.run import Run
from separatrix.engine.weights import Weights, n_outputs
from separatrix.modelfile.parcel import MOST, ModelFileError, Parcel, flag, number, whole, word

State = dict[str, Any]


def pack_weights(weights: Weights, parcel: Parcel, at: str) -> None:
    """Put in weights and biases."""
    parcel.put_weights(f"{at}_coef", weights.coef)
    parcel.put(f"{at}_intercept", weights.intercept)


def unpack_weights(parcel: Parcel, at: str, K: int, d: int) -> Weights:
    """Take out weights and biases of K outputs."""
    return Weights(parcel.take_weights(f"{at}_coef", (K, d)), parcel.take(f"{at}_intercept", "f8", (K,)))


def pack_run(run: Run, parcel: Parcel, at: str, ledger: bool) -> State:
    """Put in a run, with the mistakes of its ledger or without."""
    pack_weights(run.last.weights(), parcel, f"{at}.last")
    if run.average:
        pack_weights(run.late.weights(), parcel, f"{at}.late")
    if run.ledger.kept is not None:
        pack_weights(run.weights(), parcel, f"{at}.used")
    for name, array in zip(("sigma", "sigma_intercept"), run.last.spreads(), strict=False):
        parcel.put(f"{at}.{name}", array)
    parcel.put(f"{at}.tally", run.tally)
    parcel.put(f"{at}.per_pass", np.array(run.per_pass, dtype=np.int64))
    parcel.put(f"{at}.left_out", run.left_out)
    return {
        **{name: getattr(run, name) for name in ("tie", "multi_class", "rows_seen", "steps_dropped", "streaming", "order")},
        "seed": run.seed,
        **{name: bool(getattr(run, name)) for name in ("bias", "average", "keeps_rows")},
        "radius_squared": float(run.radius_squared),
        "rule": {name: value if name == "name" else float(value) for name, value in run.rule._asdict().items()},
        "ledger": pack_ledger(run.ledger, parcel, f"{at}.ledger", ledger),
    }


def unpack_run(classes: Any, d: int, state: State, parcel: Parcel, at: str) -> Run:
    """Take out a run."""
    K, average = n_outputs(len(classes)), flag(state, "average")
    last = unpack_weights(parcel, f"{at}.last", K, d)
    late = unpack_weights(parcel, f"{at}.late", K, d) if average else None
    kept = state["ledger"]["kept"] is not None
    used = unpack_weights(parcel, f"{at}.used", K, d) if kept else None
    told = state["rule"]
    rule = Rule(word(told, "name", RULES), number(told, "margin"), number(told, "C"))
    shape = {"": None, "diagonal": (K, d), "full": (K, d + 1, d + 1)}[rule.spread]
    spread = (
        None
        if shape is None
        else [parcel.take(f"{at}.sigma", "f8", shape), parcel.take(f"{at}.sigma_intercept", "f8", (K,))]
    )
    run = Run(
        *(classes, d),
        bias=flag(state, "bias"),
        tie=word(state, "tie", TIES),
        multi_class=word(state, "multi_class", ("joint", "ovr")),
        average=average,
        scored=flag(state["ledger"], "scored"),
        rule=rule,
        keeps_rows=flag(state, "keeps_rows"),
    )
    run.last.load(last)
    if late is not None:
        run.late.load(late)
    if spread:
        run.last.load_spread(spread)
    run.tally = parcel.take(f"{at}.tally", "f8", (2,))
    run.per_pass = parcel.take(f"{at}.per_pass", "i8", (-1,), low=0, high=MOST).tolist()
    run.rows_seen, run.steps_dropped = whole(state, "rows_seen"), whole(state, "steps_dropped")
    run.left_out = parcel.take(f"{at}.left_out", "i8", (-1,), low=0, high=max(0, run.rows_seen - 1))
    run.streaming, run.seed = flag(state, "streaming"), whole(state, "seed", 0, 1 << 128)
    run.order = word({"order": "cyclic"} | state, "order", ORDERS)  # the first files did not say
    run.radius_squared = number(state, "radius_squared")
    if run.radius_squared < 0.0:
        raise ModelFileError("radius_squared is negative")
    unpack_ledger(run.ledger, state["ledger"], parcel, f"{at}.ledger")
    run.used = used
    return run


_COLUMNS = ("step", "example", "up", "down", "correction", "shrink", "score", "row")


def pack_ledger(ledger: Ledger, parcel: Parcel, at: str, kept: bool) -> State:
    """Put in a ledger, with its mistakes or without."""
    columns = {name: getattr(ledger, f"_{name}").values for name in _COLUMNS}
    stored = "none"
    if kept:
        for name, column in columns.items():
            parcel.put(f"{at}.{name}", column)
        if ledger.stored is not None:
            stored = pack_rows(ledger.stored.rows(), parcel, f"{at}.rows")
    if ledger.start is not None:
        pack_weights(ledger.start, parcel, f"{at}.start")
    parcel.put(f"{at}.pass_starts", np.array(ledger.pass_starts, dtype=np.int64).reshape(-1, 2))
    return {
        **{name: getattr(ledger, name) for name in ("weighted", "grown", "steps", "average_after")},
        "kept": ledger.kept,
        "cut": None if ledger.cut is None else [*ledger.cut],
        "scored": bool(ledger._scored),
        "absent": ledger.absent + (0 if kept else len(ledger)),
        "started": ledger.start is not None,
        "columns": kept,
        "stored": stored,
    }


def unpack_ledger(ledger: Ledger, state: State, parcel: Parcel, at: str) -> None:
    """Take out what a ledger holds."""
    ledger.weighted, ledger.grown = flag(state, "weighted"), flag(state, "grown")
    ledger.steps = whole(state, "steps")
    ledger.average_after = whole(state, "average_after", -1)
    ledger.absent = whole(state, "absent")
    if flag(state, "started"):
        ledger.start = unpack_weights(parcel, f"{at}.start", n_outputs(len(ledger.classes)), ledger.n_features)
    if flag(state, "columns"):
        _unpack_columns(ledger, word(state, "stored", ("none", "dense", "csr")), parcel, at)
    made = len(ledger) + ledger.absent
    starts = parcel.take(f"{at}.pass_starts", "i8", (-1, 2), low=0, high=MOST)
    if starts.size and (starts[:, 0].max() > ledger.steps or starts[:, 1].max() > made):
        raise ModelFileError(f"{at}.pass_starts begin after the end")
    ledger.pass_starts = [(step, mistakes) for step, mistakes in starts.tolist()]
    ledger.kept = None if state["kept"] is None else whole(state, "kept", 0, made)
    ledger.cut = None if state["cut"] is None else Cut(*(whole(state["cut"], i) for i in range(3)))  # type: ignore[arg-type]


def _unpack_columns(ledger: Ledger, stored: str, parcel: Parcel, at: str) -> None:
    step = parcel.take(f"{at}.step", "u4 i8", (-1,), low=1, high=ledger.steps)
    if np.any(step[1:] < step[:-1]):
        raise ModelFileError(f"{at}.step goes back")
    m, last = len(step), len(ledger.classes) - 1
    size = len(parcel.take(f"{at}.correction", "f8", (-1,)))
    found = {
        "step": step,
        "example": parcel.take(f"{at}.example", "u4 i8", (m,), low=0, high=MOST),
        "up": parcel.take(f"{at}.up", "i1 i4", (m,), low=-1, high=last),
        "down": parcel.take(f"{at}.down", "i1 i4", (m,), low=-1, high=last),
        "correction": parcel.take(f"{at}.correction", "f8", (m if size else 0,)),
        "shrink": parcel.take(f"{at}.shrink", "f8", (m if ledger.rule.spread else 0,)),
        "score": parcel.take(f"{at}.score", "f8", (m if ledger._scored else 0,)),
        "row": parcel.take(f"{at}.row", "u4 i8", (0 if stored == "none" else m,)),
    }
    for name, values in found.items():
        column: Column = getattr(ledger, f"_{name}")
        column.fill(values)
    if stored == "none":
        return
    rows = unpack_rows(stored, parcel, f"{at}.rows", ledger.n_features)
    if m and int(found["row"].max()) >= rows.n:
        raise ModelFileError(f"{at}.row names rows that are not there")
    ledger.stored = Store(ledger.n_features)
    ledger.stored.add(rows)


def pack_rows(rows: Rows, parcel: Parcel, at: str) -> str:
    """Put in rows, and return which of the two forms they have."""
    if not rows.sparse:
        parcel.put(f"{at}.dense", rows.source)
        return "dense"
    assert rows.parts is not None
    for name, array in zip(("data", "indices", "indptr"), rows.parts, strict=True):
        parcel.put(f"{at}.{name}", array)
    return "csr"


def unpack_rows(kind: str, parcel: Parcel, at: str, d: int) -> Rows:
    """Take out rows of d features."""
    if kind == "dense":
        return Rows(parcel.take(f"{at}.dense", "f4 f8", (-1, d)))
    data = parcel.take(f"{at}.data", "f4 f8", (-1,))
    indices = parcel.take(f"{at}.indices", "i4 i8", data.shape, low=0, high=d - 1)
    indptr = parcel.take(f"{at}.indptr", "i4 i8", (-1,), low=0, high=len(data))
    if not indptr.size or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise ModelFileError(f"{at}.indptr does not begin at 0 and rise")
    rows = Rows(sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, d)))
    rows.survey()
    return rows
