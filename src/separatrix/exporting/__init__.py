"""Fitted linear classifiers, and the featurizers before them, for programs that do not have this library.

A fitted classifier, a `Model` or a pipeline comes in. A scikit-learn object, an ONNX graph or SQL goes out, which reads raw
columns (`column_terms.py` describes what each of them adds to the scores) or texts. Each predicts the same class as
`predict`, including scores of exactly 0 and ties between K classes; since each adds up in its own order, a score within
rounding error of a tie can go to the other class.
"""

from separatrix.exporting.onnx_graph import to_onnx
from separatrix.exporting.sklearn_object import to_sklearn
from separatrix.exporting.sql import to_sql

__all__ = ["to_onnx", "to_sklearn", "to_sql"]
