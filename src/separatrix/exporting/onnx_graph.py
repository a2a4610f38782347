"""A fitted linear classifier as an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from separatrix import __version__
from separatrix.engine.protocols import Classifier
from separatrix.exporting.linear_decision import linear_decision

OPSET = 17
IR_VERSION = 8


def to_onnx(model: Classifier, path: str | os.PathLike[str] | None = None) -> Any:
    """Return an ONNX model, and write it to a file if a path is given. Needs the package onnx: `separatrix[onnx]`.

    Input `X`, float64 of shape (n, d); outputs `label` and `scores` (one per row for two classes), and `probabilities` if
    the classifier was calibrated.

    Examples
    --------
    >>> from separatrix.exporting import to_onnx
    >>> to_onnx(Perceptron().fit(X, y), "model.onnx")  # doctest: +SKIP
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        raise ImportError("to_onnx needs the package onnx: pip install 'separatrix[onnx]'") from None
    coef, intercept, classes, names, zero_is_positive, slope = linear_decision(model)
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
            node("GreaterOrEqual" if zero_is_positive else "Greater", ["scores", "zero"], ["positive"]),
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
        logits = "scaled"
        if K == 1:
            nodes += [node("Mul", ["scaled", "zero"], ["none"]), node("Concat", ["none", "scaled"], ["both"], axis=1)]
            logits = "both"
        nodes.append(node("Softmax", [logits], ["probabilities"], axis=1))
        outputs.append(helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["n", len(classes)]))
    graph = helper.make_graph(
        nodes,
        "separatrix",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", d])],
        outputs,
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    onnx_model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="separatrix",
        producer_version=__version__,
    )
    if names is not None:
        helper.set_model_props(onnx_model, {"features": "\n".join(names)})
    if path is not None:
        with open(path, "wb") as file:
            file.write(onnx_model.SerializeToString(deterministic=True))
    return onnx_model
