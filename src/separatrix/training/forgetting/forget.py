"""`forget`: the model that training without some rows gives, from the model that was trained with them, and a receipt."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from separatrix import __version__
from separatrix.data.errors import DataError
from separatrix.data.keyed_checksums import keyed, new_key
from separatrix.data.without_rows import content_of
from separatrix.engine.labels import as_labels
from separatrix.engine.rows import Ints, Rows
from separatrix.learners.forgetting import Forgetting
from separatrix.learners.linear_base import LinearLearner
from separatrix.modelfile.archive import learned_checksum
from separatrix.modelfile.model import Model
from separatrix.modelfile.registry import CLASSIFIERS
from separatrix.training.forgetting.receipt import FORMAT, KIND, Receipt
from separatrix.training.forgetting.refitting import (
    Fit,
    featurized,
    figures_of,
    fit_left,
    labelled,
    order_document,
    parameters_document,
    refitted,
    trained_on,
)
from separatrix.training.forgetting.retraining import OTHER_FEATURES, Earlier, are_same
from separatrix.training.forgetting.rows import changed_weights, check_can_forget, row_numbers

KEY_NOTE = "HMAC-SHA256 of each row's content with a key that is not in this receipt"
HOW_TO_CHECK = "separatrix check RECEIPT --data REMAINING trains on the remaining rows in this order, and compares"


class Forgotten(NamedTuple):
    """The model without the rows, and the receipt."""

    model: Any
    receipt: Receipt


def forget(
    model: Any,
    rows: Any,
    data: Any,
    label: Any = None,
    *,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    validate: Any = None,
) -> Forgotten:
    """Return the model that training without some rows gives, bit for bit, and a receipt; the given model stays as it is.

    The order of the presentations is that of the earlier training, in which the rows are skipped. A row on which no mistake
    was made costs no presentation; for one with mistakes, training is made again from the first of them on. What is fitted
    from the data is fitted again, and where that changes it, training starts from the beginning: the receipt says so.

    Parameters
    ----------
    model : a fitted linear classifier such as `AveragedPerceptron`, or a `Model` that has one
    rows : the number of a row of the data, or several, counted from 0
    data, label : what the model was trained on, the rows to forget included: X and y of `fit`, or the data and the label of
        `train`, which are compared with the checksum that the model has
    sample_weight, X_val, y_val : as they were given to `fit`, for all rows
    validate : as it was given to `train`

    Examples
    --------
    >>> from separatrix import Perceptron, forget
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> p = Perceptron(order="cyclic", fit_intercept=False).fit(X, y)
    >>> without, receipt = forget(p, 1, X, y)
    >>> without.coef_, without.ledger_.example.tolist()
    (array([[ 2., -3.]]), [0, 1, 2])
    >>> receipt["replay"]["presented"], receipt["replay"]["steps"]
    (5, 6)
    """
    classifier = model.estimator if isinstance(model, Model) else model
    check_can_forget(classifier)
    given = {"sample_weight": sample_weight, "X_val": X_val, "y_val": y_val}
    settings = {name: value for name, value in given.items() if value is not None}
    if isinstance(model, Model) and "settings" in model.facts:
        if settings:
            raise DataError(f"{next(iter(settings))} was not given to train, and is not needed")
        plain = type(classifier) is CLASSIFIERS[classifier.public_name()].resolve(True)
        return forget_trained(Earlier(model, data, label, validate, plain), rows, 0)
    if label is None:
        raise DataError("the labels are missing: pass what the model was fitted on, X and y")
    if isinstance(model, Model) and model.features is not None:
        return _forget_featurized(model, Fit(data, label, settings), rows)
    return _forget_fit(model, classifier, Fit(data, label, settings), rows)


def _forget_fit(model: Any, learner: LinearLearner, fit: Fit, rows: Any) -> Forgotten:
    """Forget rows of arrays or matrices."""
    matrix, labels = learner.unfitted().read_rows(fit.X, reset=True).source, as_labels(np.asarray(fit.y))
    forgotten = row_numbers(rows, matrix.shape[0], 0)
    removed = [content_of(matrix[i : i + 1], labels[i]) for i in forgotten.tolist()]
    fresh, forgetting = refitted(learner, fit, forgotten)
    after = Model(fresh, None) if isinstance(model, Model) else fresh
    receipt = receipt_of(model, after, forgetting, forgotten, 0, removed)
    return Forgotten(after, receipt)


def forget_trained(earlier: Earlier, rows: Any, first: int, keep: Path | None = None) -> Forgotten:
    """Forget rows, counted from `first`, of data that `train` was given; a copy of what remains may be kept."""
    done = earlier.without(rows, first, keep)
    settings = {"settings": done.model.facts["settings"], "label": done.model.facts["label"]}
    receipt = receipt_of(earlier.model, done.model, done.forgetting, done.rows, first, done.contents, **settings)
    receipt["order"]["rows_forgotten"] = done.model.facts["forgotten"]
    receipt["before"]["data"] = keyed(receipt.key or b"", earlier.facts["data"])
    receipt["after"]["data"] = done.model.facts["data"]
    return Forgotten(done.model, receipt)


def _forget_featurized(model: Model, fit: Fit, rows: Any) -> Forgotten:
    """Forget rows of data whose features a `Model` has fitted."""
    learner, which = model.estimator, labelled(model.features, fit)
    rows_of_data = len(fit.y)
    forgotten = row_numbers(rows, rows_of_data, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the data was said when the model was fitted
        then, features, _ = featurized(model.features, fit)
    if features.get_state()[0] != model.features.get_state()[0]:
        raise DataError("the data are not what the features were fitted on")
    now, features, facts = featurized(model.features, fit.without(forgotten))
    examples = np.flatnonzero(np.isin(which, forgotten))
    problem = trained_on(learner, then)
    kept = np.delete(np.arange(problem.rows.n), examples)
    same = are_same(problem.rows.take(kept), Rows(now.X))
    forgetting = Forgetting.of(learner, problem, examples, "" if same else OTHER_FEATURES)
    after = Model(fit_left(learner, forgetting, now), features, facts)
    removed = [content_of(then.X[k : k + 1], then.y[k]) for k in examples.tolist()]
    return Forgotten(after, receipt_of(model, after, forgetting, forgotten, 0, removed))


def receipt_of(
    before: Any, after: Any, forgetting: Forgetting, rows: Ints, first: int, row_contents: list[Any], **training: Any
) -> Receipt:
    """Return the receipt of a forgetting; `rows` count from 0, and are shown as counted from `first`."""
    then, now = (model.estimator if isinstance(model, Model) else model for model in (before, after))
    key, steps = new_key(), int(now.n_seen_)
    from_beginning = bool(forgetting.why)
    receipt = Receipt(
        receipt=KIND,
        format=FORMAT,
        version=__version__,
        removed={
            "rows": (rows + first).tolist(),
            "counted_from": first,
            "checksums": [keyed(key, content) for content in row_contents],
            "checksums_are": KEY_NOTE,
        },
        before={**figures_of(then), "learned": keyed(key, learned_checksum(before)), "learned_is": "made with the same key"},
        after={**figures_of(now), "learned": learned_checksum(after)},
        changed={"mistakes": now.n_mistakes_ - then.n_mistakes_, "weights": changed_weights(then, now)},
        replay={
            "from_beginning": from_beginning,
            "why": forgetting.why,
            "first_mistake": forgetting.first_mistake,
            "presented": steps if from_beginning else steps - forgetting.skipped,
            "steps": steps,
        },
        order=order_document(forgetting, now.run_.order, now.run_.rows_seen),
        training={**parameters_document(now), **training},
        how_to_check=HOW_TO_CHECK,
    )
    receipt.key = key
    return receipt
