"""Checking a receipt: training on the remaining data, in the order with gaps that it describes, must give what it says."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.data.errors import DataError
from separatrix.engine.parcel import Parcel
from separatrix.learners.forgetting import Forgetting
from separatrix.learners.linear_base import LinearLearner
from separatrix.modelfile.archive import learned_checksum
from separatrix.modelfile.model import Model
from separatrix.modelfile.registry import CLASSIFIERS
from separatrix.training.forgetting.receipt import ReceiptError
from separatrix.training.forgetting.refitting import (
    Fit,
    featurized,
    figures_of,
    fit_left,
    order_document,
    order_from,
    parameters_document,
)
from separatrix.training.forgetting.retraining import OtherRowsError, retrained


def fault_of(receipt: dict[str, Any], data: Any, label: Any = None, *, validate: Any = None, **settings: Any) -> str | None:
    """Return why a receipt does not hold for the remaining data, or None where it does.

    Parameters
    ----------
    data, label : what is left: X and y of a fit, or the data and the label of `train`
    validate, settings : as they were given to `train`, or to `fit`, for what is left: sample_weight, X_val, y_val; `model`
        is one whose featurizer has the parameters of the forgotten model's, where it has one that `train` did not choose
    """
    try:
        _check(receipt)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "settings" in receipt["training"]:
                model: Any = retrained(receipt, data, label, validate)
            else:
                model = _refitted(receipt, data, label, settings)
    except OtherRowsError as error:
        return str(error)
    except DataError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ReceiptError(f"the receipt is damaged: {type(error).__name__} {str(error)[:80]}") from None
    learner = model.estimator if isinstance(model, Model) else model
    if learned_checksum(model) != receipt["after"]["learned"]:
        counts = f"{learner.n_mistakes_:,} mistakes in {learner.n_iter_:,} passes"
        said = f"{receipt['after']['mistakes']} in {receipt['after']['passes']}"
        return f"training on them gives another model ({counts}; the receipt says {said})"
    facts = [*_facts(learner), *([("training", "label", model.facts["label"])] if "settings" in receipt["training"] else ())]
    for part, name, value in facts:
        if (said := receipt[part].get(name)) != json.loads(json.dumps(value)):
            return f"training gives the model of the receipt, but {name} is {value!r:.60}; the receipt says {said!r:.60}"
    return None


def _facts(learner: LinearLearner) -> Iterator[tuple[str, str, Any]]:
    """Yield what a receipt says of the model that was left, by part and name."""
    run = learner.run_
    order = order_document(Forgetting(run.seed, run.gaps), run.order, run.rows_seen)
    parts = {"after": figures_of(learner), "order": order, "training": parameters_document(learner)}
    for part, facts in parts.items():
        yield from ((part, name, value) for name, value in facts.items())
    yield "replay", "steps", int(learner.n_seen_)


def _check(receipt: dict[str, Any]) -> None:
    """Raise where the parts of a receipt contradict each other, or its order cannot be one."""
    removed, before, after, order = (receipt[part] for part in ("removed", "before", "after", "order"))
    rows = np.array(removed["rows"], np.int64) - int(removed["counted_from"])
    all_rows = np.array(order["forgotten"] if order.get("rows_forgotten") is None else order["rows_forgotten"], np.int64)
    n_examples = int(before["rows"]) - int(after["rows"])
    figures = [*(after[name] for name in ("learned", "mistakes", "passes", "rows")), before["learned"], before["mistakes"]]
    if None in figures or not rows.size or rows[0] < 0 or not 0 <= n_examples <= len(rows):
        raise ReceiptError("the receipt is damaged: it does not say what was removed, from what, and what was left")
    # Each counts the rows before it that are left: what was forgotten before has the same number, wherever it was.
    left_before, all_left_before = rows - np.arange(len(rows)), (all_rows - np.arange(len(all_rows))).tolist()
    if "settings" in receipt["training"]:
        for number in left_before.tolist():
            if number not in all_left_before or len(removed["checksums"]) != len(rows):
                raise ReceiptError("the receipt is damaged: the rows that it names are not those that its order leaves out")
            all_left_before.remove(number)
    if receipt["changed"]["mistakes"] != after["mistakes"] - before["mistakes"]:
        raise ReceiptError("the receipt is damaged: its numbers of mistakes contradict each other")
    replay, weights = receipt["replay"], receipt["changed"]["weights"]
    presented, steps, first = (replay[name] for name in ("presented", "steps", "first_mistake"))
    begins, reason = replay["from_beginning"], replay["why"]
    is_replay = begins is bool(reason) and (presented == steps if begins else 0 <= presented <= steps)
    if not is_replay or not (first is None or 0 <= first < before["mistakes"]):
        raise ReceiptError("the receipt is damaged: what it says of the presentations made again is contradictory")
    if int(before["passes"]) < 0 or not (weights is None or 0 <= weights[0] <= weights[1]):
        raise ReceiptError("the receipt is damaged: it has numbers that none can be")
    numbers = np.array(order["forgotten"], np.int64)
    n = int(order["examples_once"])
    if numbers.ndim != 1 or np.any(numbers[1:] <= numbers[:-1]) or (numbers.size and not 0 <= numbers[0] <= numbers[-1] < n):
        raise ReceiptError("the receipt is damaged: its gaps are not sorted, or more than there were examples")


def _refitted(receipt: dict[str, Any], X: Any, y: Any, settings: dict[str, Any]) -> Any:
    training, like = receipt["training"], settings.pop("model", None)
    parameters = {name: Parcel().take_value(name, value) for name, value in training["parameters"].items()}
    learner = CLASSIFIERS[training["learner"]].resolve(False)(**parameters)
    learner.threshold_ = training.get("threshold")
    fit, features = Fit(X, y, settings), None
    if like is not None and like.features is not None:
        fit, features, _ = featurized(like.features, fit)
    expected = int(receipt["after"]["rows"])
    n = fit.X.shape[0] if hasattr(fit.X, "shape") else len(fit.X)
    if n != expected:
        raise OtherRowsError(f"there are {n:,} rows to train on, and the receipt says {expected:,}")
    fresh = fit_left(learner, order_from(receipt["order"]), fit)
    return fresh if features is None else Model(fresh, features)
