"""Checking a receipt: training on the remaining data, in the order with gaps that it describes, must give what it says."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from separatrix.engine.parcel import Parcel, StateError
from separatrix.modelfile.archive import learned_checksum
from separatrix.modelfile.model import Model
from separatrix.modelfile.registry import CLASSIFIERS
from separatrix.training.forgetting.receipt import ReceiptError
from separatrix.training.forgetting.refitting import Fit, featurized, fit_left, order_from
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
    except (KeyError, TypeError, IndexError, AttributeError, StateError) as error:
        raise ReceiptError(f"the receipt is damaged: {type(error).__name__} {str(error)[:80]}") from None
    if learned_checksum(model) == receipt["after"]["learned"]:
        return None
    learner = model.estimator if isinstance(model, Model) else model
    counts = f"{learner.n_mistakes_:,} mistakes in {learner.n_iter_:,} passes"
    said = f"{receipt['after']['mistakes']:,} in {receipt['after']['passes']:,}"
    return f"training on them gives another model ({counts}; the receipt says {said})"


def _check(receipt: dict[str, Any]) -> None:
    """Raise where the order of a receipt cannot be one."""
    order = receipt["order"]
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
