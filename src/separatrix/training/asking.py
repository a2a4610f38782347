"""`train` with `ask=`: the options that one pass of asking for labels goes with, and its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from separatrix.data.errors import DataError
from separatrix.engine.rules import STREAMING
from separatrix.files.asking import Asking, AskingPass
from separatrix.training.options import TrainOptions

USUAL = {"passes": (10, 1), "order": ("shuffle", "cyclic")}
"""What a training that asks changes: from the default, to the one value that it has."""
UNSUITED = ("class_weight", "checkpoint", "engine", "sequence", "tune", "folds", "early_stopping", "calibrate", "optimize")
"""Options that need labels which were not asked for, or more than one pass."""


def asking_options(options: TrainOptions) -> TrainOptions:
    """Return the options of a training that asks, completed; of any other, as they are. Raises DataError."""
    if options.ask is None and options.ask_budget is None:
        return options
    b = 1.0 if options.ask is None else options.ask
    if not 0.0 < b < float("inf"):
        raise DataError(f"ask={b:g} must be a positive number")
    if options.learner not in STREAMING:
        raise DataError(f"ask= supports the learners {' and '.join(STREAMING)}, not {options.learner}")
    if options.C == "auto":
        raise DataError("ask= cannot be combined with C='auto', which is chosen by all labels: give a number")
    defaults = TrainOptions("")
    for name in UNSUITED:
        if getattr(options, name) != getattr(defaults, name):
            raise DataError(f"ask= cannot be combined with {name}=, which needs all labels, or several passes")
    for name, (default, only) in USUAL.items():
        if getattr(options, name) not in (default, only):
            raise DataError(f"ask= makes one pass in the order of the rows: leave out {name}=")
    return replace(options, ask=b, passes=1, order="cyclic")


def asking_of(options: TrainOptions) -> Asking | None:
    """Return how the options ask for labels; None where all are given."""
    return None if options.ask is None else Asking(options.ask, options.ask_budget)


def asking_figures(asked: AskingPass, rows: int) -> dict[str, Any]:
    """Return the figures of a pass that asked for labels."""
    return {
        "asked": asked.asked,
        "asked_share": asked.asked / max(1, rows),
        "asked_expected": round(asked.expected, 3),
        "ask": asked.asking.b,
        "ask_budget": asked.asking.budget,
    }
