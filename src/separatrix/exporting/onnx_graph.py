"""A fitted linear classifier as an ONNX graph."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from separatrix import __version__
from separatrix.data.atomic import replacing
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats
from separatrix.exporting.column_terms import MISSING_WORDS, Bins, Choice, Items, Line, Term, Truth, column_terms
from separatrix.exporting.linear_decision import LinearDecision, linear_decision
from separatrix.features.columns.categories import UNIT

OPSET, ML_OPSET, IR_VERSION = 17, 2, 8
OPSET_WITH_PATTERNS, IR_WITH_PATTERNS = 20, 9
"""The versions that have regular expressions, by which the items of sets are found."""
OUTPUTS = ("label", "scores", "probabilities")
_OWN = "separatrix:"
"""How the names begin that are neither inputs nor outputs."""
NUMBERS, TRUTHS = "number, NaN where missing", "1, 0, or NaN where missing"
CATEGORIES = "text, empty where missing", "text, nan where missing"
"""The descriptions of inputs; a category may itself be the empty text."""


def to_onnx(model: Classifier, path: str | os.PathLike[str] | None = None) -> Any:
    """Return an ONNX model, and write it to a file if a path is given. Needs the package onnx: `separatrix[onnx]`.

    The inputs of a `Model` with `TableFeatures` are the columns of the raw table, each of shape (n, 1): numbers and truth
    values (1 and 0) as float64, NaN where missing; categories and sets as text, empty where missing (or "nan", where the
    empty text is itself a category). Without a featurizer there is one input, `X`, float64 of shape (n, d). The outputs
    are `label`, `scores` (one per row for two classes) and, if the classifier was calibrated, `probabilities`.

    Examples
    --------
    >>> from separatrix.exporting import to_onnx
    >>> to_onnx(Perceptron().fit(X, y), "model.onnx")  # doctest: +SKIP
    """
    try:
        from onnx import helper
    except ImportError:
        raise ImportError("an ONNX graph needs the package onnx: pip install 'separatrix[onnx]'") from None
    decision = linear_decision(model)
    graph = _Graph()
    graph.add_scores(decision)
    graph.add_label(decision)
    graph.add_probabilities(decision)
    has_patterns = any(node.op_type == "RegexFullMatch" for node in graph.nodes)
    opset, ir_version = (OPSET_WITH_PATTERNS, IR_WITH_PATTERNS) if has_patterns else (OPSET, IR_VERSION)
    onnx_model = helper.make_model(
        helper.make_graph(graph.nodes, "separatrix", graph.inputs, graph.outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=ir_version,
        producer_name="separatrix",
        producer_version=__version__,
    )
    if decision.names is not None:
        helper.set_model_props(onnx_model, {"features": "\n".join(decision.names)})
    if path is not None:
        with replacing(path) as name, open(name, "wb") as file:
            file.write(onnx_model.SerializeToString(deterministic=True))
    return onnx_model


class _Graph:
    """The nodes, constants, inputs and outputs of a graph in the making; values go by their names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def node(self, kind: str, *values: str, name: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its value: `name`, or a new one."""
        from onnx import helper

        name = name or f"{_OWN}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, values, [name], **attributes))
        return name

    def constant(self, value: Array) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        name = f"{_OWN}constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def input(self, name: str, kind: int, width: int, description: str = "") -> str:
        """Add an input of shape (n, width) and return its name."""
        from onnx import helper

        self.inputs.append(helper.make_tensor_value_info(name, kind, ["n", width], description))
        return name

    def output(self, name: str, kind: int, *shape: str | int) -> None:
        """Declare a value to be an output."""
        from onnx import helper

        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def add_scores(self, decision: LinearDecision) -> None:
        """Add the inputs, and the scores made of them."""
        from onnx import TensorProto

        if decision.features is None:
            coef = decision.coef
            X = self.input("X", TensorProto.DOUBLE, coef.shape[1])
            parts = [self.node("MatMul", X, self.constant(coef.T.copy()))]
        else:
            terms = column_terms(decision, "ONNX", (Bins, Line, Truth, Choice, Items))
            for term in terms:
                if term.name in OUTPUTS or term.name.startswith(_OWN):
                    raise ValueError(
                        f"column {term.name!r} has the name of an output of the graph: rename it before training"
                    )
            parts = [self._add_term(term) for term in terms]
        total = self.node("Sum", *parts)
        self.node("Add", total, self.constant(decision.intercept), name="scores")

    def _add_term(self, term: Term) -> str:
        """Add the input of a column, and what it adds to the scores."""
        from onnx import TensorProto

        if isinstance(term, Choice):
            return self._of_category(term)
        if isinstance(term, Items):
            return self._of_set(term)
        value = self.input(term.name, TensorProto.DOUBLE, 1, TRUTHS if isinstance(term, Truth) else NUMBERS)
        if isinstance(term, Line):
            # x − x is 0 unless x is NaN or infinite.
            finite = self.node("Equal", self.node("Sub", value, value), self.constant(np.zeros(1)))
            moved = self.node("Sub", value, self.constant(np.array([term.shift])))
            scaled = self.node("Mul", moved, self.constant(np.array([term.scale])))
            product = self.node("Mul", scaled, self.constant(term.weights[None]))
            return self.node("Where", finite, product, self.constant(term.missing[None]))
        bins = term.bins if isinstance(term, Truth) else term
        assert isinstance(bins, Bins)
        passed = self.node("Not", self.node("LessOrEqual", value, self.constant(bins.bounds[None])))
        counted = self.node("Cast", passed, to=TensorProto.INT64)
        return self._row(bins.table, self.node("ReduceSum", counted, self.constant(np.array([1])), keepdims=0))

    def _of_category(self, term: Choice, value: str = "") -> str:
        from onnx import TensorProto

        row_of = {word: k + 1 for k, words in enumerate(term.spellings) for word in words}
        value = value or self.input(term.name, TensorProto.STRING, 1, CATEGORIES["" in row_of])
        row_of |= {word: len(term.spellings) + 1 for word in ("", *MISSING_WORDS) if word not in row_of}
        keys: dict[str, Any] = {"keys_strings": list(row_of), "values_int64s": list(row_of.values()), "default_int64": 0}
        row = self.node("LabelEncoder", value, domain="ai.onnx.ml", **keys)
        table = np.vstack([np.zeros_like(term.missing), term.weights, term.missing])
        return self._row(table, self.node("Squeeze", row, self.constant(np.array([1]))))

    def _of_set(self, term: Items) -> str:
        from onnx import TensorProto

        value = self.input(term.name, TensorProto.STRING, 1, CATEGORIES[False])
        ends = f"[{re.escape(term.delimiter)}{UNIT}]"
        patterns = [rf"(?s)(.*{ends})?[ \t-\r]*{re.escape(item)}[ \t-\r]*({ends}.*)?" for item in term.values]
        found = self.node("Concat", *(self.node("RegexFullMatch", value, pattern=text) for text in patterns), axis=1)
        product = self.node("MatMul", self.node("Cast", found, to=TensorProto.DOUBLE), self.constant(term.weights.copy()))
        gap = Choice(term.name, [], term.weights[:0], term.missing, False)
        return self.node("Add", product, self._of_category(gap, value))

    def _row(self, table: Floats, number: str) -> str:
        return self.node("Gather", self.constant(table), number)

    def add_label(self, decision: LinearDecision) -> None:
        """Add the outputs `label` and `scores`."""
        from onnx import TensorProto, helper

        classes = decision.classes
        text = classes.dtype.kind in "UO"
        kind = object if text else np.int64 if classes.dtype.kind in "biu" else np.float64
        labels = np.array(classes.tolist(), dtype=kind)
        if len(decision.coef) == 1:
            compared = "GreaterOrEqual" if decision.tie_is_positive else "Greater"
            positive = self.node(compared, "scores", self.constant(np.array([decision.threshold])))
            column = self.node("Cast", positive, to=TensorProto.INT64)
            place = self.node("Squeeze", column, self.constant(np.array([1])))
        else:
            place = self.node("ArgMax", "scores", axis=1, keepdims=0)
        self.node("Gather", self.constant(labels), place, name="label")
        self.output("label", TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(labels.dtype), "n")
        self.output("scores", TensorProto.DOUBLE, "n", len(decision.coef))

    def add_probabilities(self, decision: LinearDecision) -> None:
        """Add the output `probabilities`, where there are any."""
        from onnx import TensorProto

        if decision.slope is None:
            return
        logits = self.node("Mul", "scores", self.constant(np.array([decision.slope])))
        if len(decision.coef) == 1:
            logits = self.node("Concat", self.node("Mul", logits, self.constant(np.zeros(1))), logits, axis=1)
        self.node("Softmax", logits, axis=1, name="probabilities")
        self.output("probabilities", TensorProto.DOUBLE, "n", len(decision.classes))
