"""Fitted linear classifiers for programs that do not have this library.

A fitted classifier or a `Model` comes in. A scikit-learn object, an ONNX graph or a SQL expression goes out. Each predicts
the same class as `predict`, including scores of exactly 0 and ties between K classes; since each adds up in its own order,
a score within rounding error of a tie can go to the other class.
"""

from separatrix.exporting.onnx_graph import to_onnx
from separatrix.exporting.sklearn_object import to_sklearn
from separatrix.exporting.sql import sql_features, to_sql

__all__ = ["sql_features", "to_onnx", "to_sklearn", "to_sql"]
