"""A fitted linear classifier without this library: as a scikit-learn object, as an ONNX graph, as a SQL expression.

Each decides as `predict` does, a score of exactly 0 and ties of the K classes included. They add up in an order of their
own, so that a score within rounding of a tie may fall to the other side.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from separatrix import __version__
from separatrix.engine.rows import Array, Floats

_OPSET = 17
_IR_VERSION = 8
_QUOTES = {'"': '"', "`": "`", "[": "]"}


class _Linear(NamedTuple):
    """What a linear classifier decides with; `zero_is_plus`: a score of 0 is `classes[1]`."""

    coef: Floats
    intercept: Floats
    classes: Array
    names: list[str] | None
    zero_is_plus: bool
    slope: float | None


def _linear(model: Any) -> _Linear:
    estimator = getattr(model, "estimator", model)
    if getattr(model, "features", None) is not None:
        raise ValueError(
            "the classifier can be exported and its featurizer cannot: export model.estimator, and give it features"
        )
    check_is_fitted(estimator)
    if not hasattr(estimator, "coef_") or getattr(estimator, "_stores_rows", False):
        raise ValueError(f"a {type(estimator).__name__} is no linear function of the features: it cannot be exported")
    names = getattr(estimator, "feature_names_in_", None)
    plus = len(estimator.classes_) == 2 and getattr(estimator, "tie", "") == "+1"
    if len(estimator.classes_) < 2:
        raise ValueError("a classifier of one class has no boundary to export")
    return _Linear(
        np.array(estimator.coef_, dtype=np.float64, order="C"),
        np.array(estimator.intercept_, dtype=np.float64),
        estimator.classes_.copy(),
        None if names is None else [str(name) for name in names],
        plus,
        getattr(estimator, "slope_", None),
    )


def to_sklearn(model: Any) -> Any:
    """Return a scikit-learn classifier that predicts the same, and pickles without this library.

    A `LinearSVC`; a `LogisticRegression`, with the same probabilities, where the classifier was calibrated.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.exporting.linear_models import to_sklearn
    >>> model = Perceptron(order="cyclic").fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1])
    >>> to_sklearn(model).predict([[1, 1], [1, 0]]).tolist()
    [1, 0]
    """
    coef, intercept, classes, names, zero_is_plus, slope = _linear(model)
    if zero_is_plus:  # scikit-learn gives 0 to the first class: w·x ≥ −b where w·x is above the number before −b
        intercept = np.nextafter(intercept, np.inf)
    made: Any = LinearSVC() if slope is None else LogisticRegression()
    made.coef_, made.intercept_ = (coef, intercept) if slope is None else (slope * coef, slope * intercept)
    made.classes_, made.n_features_in_ = classes, coef.shape[1]
    made.n_iter_ = np.zeros(1, np.int32)
    if names is not None:
        made.feature_names_in_ = np.array(names, dtype=object)
    return made


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """Return an ONNX model, and write it to a file where a path is given. Needs the package onnx: `separatrix[onnx]`.

    Input `X`, float64 of shape (n, d); outputs `label` and `scores` (one a row for two classes), and `probabilities` where
    the classifier was calibrated.

    Examples
    --------
    >>> from separatrix.exporting.linear_models import to_onnx
    >>> to_onnx(Perceptron().fit(X, y), "model.onnx")  # doctest: +SKIP
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install 'separatrix[onnx]'") from None
    coef, intercept, classes, names, zero_is_plus, slope = _linear(model)
    K, d = coef.shape
    text = classes.dtype.kind in "UO"
    labels = np.array(classes.tolist(), dtype=object if text else np.int64 if classes.dtype.kind in "biu" else np.float64)
    kind = TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(labels.dtype)
    constants = {
        "weights": coef.T.copy(),
        "biases": intercept,
        "zero": np.zeros(1),
        "classes": labels,
        "last": np.array([1]),
    }
    node = helper.make_node
    nodes = [node("MatMul", ["X", "weights"], ["products"]), node("Add", ["products", "biases"], ["scores"])]
    if K == 1:
        nodes += [
            node("GreaterOrEqual" if zero_is_plus else "Greater", ["scores", "zero"], ["positive"]),
            node("Cast", ["positive"], ["column"], to=TensorProto.INT64),
            node("Squeeze", ["column", "last"], ["place"]),
        ]
    else:
        nodes.append(node("ArgMax", ["scores"], ["place"], axis=1, keepdims=0))
    nodes.append(node("Gather", ["classes", "place"], ["label"]))
    outputs = [
        helper.make_tensor_value_info("label", kind, ["n"]),
        helper.make_tensor_value_info("scores", TensorProto.DOUBLE, ["n", K]),
    ]
    if slope is not None:
        constants["slope"] = np.array([slope])
        nodes.append(node("Mul", ["scores", "slope"], ["scaled"]))
        leads = "scaled"
        if K == 1:
            nodes += [node("Mul", ["scaled", "zero"], ["none"]), node("Concat", ["none", "scaled"], ["both"], axis=1)]
            leads = "both"
        nodes.append(node("Softmax", [leads], ["probabilities"], axis=1))
        outputs.append(helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", len(classes)]))
    graph = helper.make_graph(
        nodes,
        "separatrix",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", d])],
        outputs,
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="separatrix",
        producer_version=__version__,
    )
    if names is not None:
        helper.set_model_props(made, {"features": "\n".join(names)})
    if path is not None:
        with open(path, "wb") as file:
            file.write(made.SerializeToString(deterministic=True))
    return made


def to_sql(
    model: Any, *, columns: Sequence[str] | None = None, expressions: Sequence[str] | None = None, quote: str = '"'
) -> str:
    """Return a SQL expression whose value is the predicted label of a row, or NULL where a column that counts is NULL.

    For K classes it is a scalar subquery, so that each score is written once.

    Parameters
    ----------
    columns : the column of each feature; by default the names that the classifier was trained with
    expressions : instead of columns, SQL for each feature, such as CASE WHEN job = 'cook' THEN 1 ELSE 0 END
    quote : how names are quoted: '"' (the standard), "`" or "["

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.exporting.linear_models import to_sql
    >>> model = Perceptron(order="cyclic", max_iter=1).fit([[1, 0], [0, 0], [0, 1]], ["spam", "ham", "spam"], [4, 9, 2])
    >>> print(to_sql(model, columns=["free", "money"]))
    CASE WHEN -3.0 + (4.0 * "free" + 2.0 * "money") > 0 THEN 'spam'
         WHEN -3.0 + (4.0 * "free" + 2.0 * "money") <= 0 THEN 'ham' END
    """
    coef, intercept, classes, names, zero_is_plus, _ = _linear(model)
    if expressions is None:
        columns = names if columns is None else columns
        if columns is None:
            raise ValueError("the classifier was trained without feature names: give columns, one for each feature")
        expressions = [quoted(name, quote) for name in columns]
    else:
        expressions = [f"({text})" for text in expressions]
    if len(expressions) != coef.shape[1]:
        raise ValueError(f"{len(expressions)} columns are given, and the classifier has {coef.shape[1]} features")
    labels = [_literal(label) for label in classes.tolist()]
    scores = [_score(w, b, expressions) for w, b in zip(coef.tolist(), intercept.tolist(), strict=True)]
    if len(scores) == 1:
        above, below = (">=", "<") if zero_is_plus else (">", "<=")
        return f"CASE WHEN {scores[0]} {above} 0 THEN {labels[1]} WHEN {scores[0]} {below} 0 THEN {labels[0]} END"
    cases = []
    for k, label in enumerate(labels):  # the first that no other beats
        leads = " AND ".join(f"score_{k} >= score_{j}" for j in range(len(labels)) if j != k)
        cases.append(f"WHEN {leads} THEN {label}")
    inner = ", ".join(f"{score} AS score_{k}" for k, score in enumerate(scores))
    return f"(SELECT CASE {' '.join(cases)} END FROM (SELECT {inner}) AS scores)"


def _score(w: list[float], b: float, expressions: Sequence[str]) -> str:
    terms = [f"{weight!r} * {text}" for weight, text in zip(w, expressions, strict=True) if weight]
    if not terms:
        return repr(b)
    total = _summed(terms)
    return f"{b!r} + {total}" if b else total


def _summed(terms: list[str]) -> str:
    """Return the sum as a tree: databases limit how deep an expression may be."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_summed(terms[:half])} + {_summed(terms[half:])})"


def quoted(name: str, quote: str) -> str:
    """Return a name as SQL quotes it."""
    if quote not in _QUOTES:
        raise ValueError(f"quote is {quote!r}: names are quoted with one of {', '.join(_QUOTES)}")
    if not name or "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a column")
    end = _QUOTES[quote]
    return f"{quote}{name.replace(end, end + end)}{end}"


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        if "\0" in label:
            raise ValueError(f"the label {label!r} cannot be written in SQL")
        return "'" + label.replace("'", "''") + "'"
    return repr(label)
