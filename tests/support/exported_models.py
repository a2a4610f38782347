"""Exported models that are run by onnxruntime, SQLite, DuckDB and scikit-learn, and compared with the model itself."""

import sqlite3

import duckdb
import numpy as np
import onnxruntime
import pandas as pd

from separatrix import Model
from separatrix.exporting import to_onnx, to_sklearn, to_sql
from separatrix.exporting.column_terms import Choice, column_terms
from separatrix.exporting.linear_decision import linear_decision

ROUNDING = 1e-13
"""Of scores: times the sum of the sizes of the terms. Each export adds them up in another order."""


def fitted_model(learner, features, X, y):
    """A model of parts that are fitted on the values as they are."""
    features.fit(X)
    return Model(learner.fit(features.transform(X), y), features)


def run_onnx(graph, feed):
    """Return the outputs of a graph by name."""
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True))


def onnx_inputs(graph, frame):
    """Return the columns of a data frame as the inputs of a graph: texts, empty where missing, and float64."""
    feed = {}
    for value in graph.graph.input:
        column = frame[value.name]
        if value.type.tensor_type.elem_type == 8:  # strings
            missing = "nan" if "nan" in value.doc_string else ""
            texts = [missing if pd.isna(cell) else str(cell) for cell in column.tolist()]
            feed[value.name] = np.array(texts, dtype=object).reshape(-1, 1)
        else:
            feed[value.name] = column.to_numpy(dtype=np.float64, na_value=np.nan).reshape(-1, 1)
    return feed


def in_sqlite(sql, frame, types=None):
    """Return the result of a query over the table `rows` of SQLite."""
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("rows", base, index=False, dtype=types)
        return pd.read_sql_query(sql, base)


def in_duckdb(sql, frame):
    """Return the result of a query over the table `rows` of DuckDB."""
    with duckdb.connect() as base:
        base.register("frame", frame)
        base.execute("CREATE TABLE rows AS SELECT * FROM frame")
        return base.execute(sql).df()


def scores_in(result, labels):
    """Return the scores of a query's result: one a row for two classes."""
    names = [f"score of {label}" for label in (labels if len(labels) > 2 else labels[1:])]
    return result[names].to_numpy(dtype=np.float64)


def assert_same(model, frame, sql=True):
    """Check labels, scores and probabilities of all exports on a data frame against the model."""
    decision = linear_decision(model)
    labels, expected = model.classes_.tolist(), model.predict(frame).tolist()
    scores = model.decision_function(frame).reshape(len(frame), -1)
    shares = model.predict_proba(frame) if decision.slope is not None else None
    rounding = ROUNDING * (1e-100 + np.abs(decision.intercept) + abs(model.transform(frame)) @ np.abs(decision.coef).T)

    def check(what, predicted, their_scores, their_shares):
        assert list(predicted) == expected, what
        assert (np.abs(their_scores.reshape(scores.shape) - scores) <= rounding).all(), what
        if shares is not None:
            assert np.allclose(their_shares, shares, rtol=1e-9, atol=1e-12), what

    theirs = to_sklearn(model)
    slope = 1.0 if decision.slope is None else decision.slope
    their_shares = None if shares is None else theirs.predict_proba(frame)
    check("scikit-learn", theirs.predict(frame), theirs.decision_function(frame) / slope, their_shares)
    if not sql:
        return
    graph = to_onnx(model)
    outputs = run_onnx(graph, onnx_inputs(graph, frame))
    check("ONNX", outputs["label"], outputs["scores"], outputs.get("probabilities"))
    query = to_sql(model, table="rows", scores=True, probabilities=shares is not None)
    spelled = [term.name for term in column_terms(decision, "SQL", (object,)) if isinstance(term, Choice)]
    objects = frame.astype(dict.fromkeys(spelled, object))  # so that no missing value becomes a text
    for what, run in (("SQLite", in_sqlite), ("DuckDB", in_duckdb)):
        result = run(query, objects)
        names = [f"probability of {label}" for label in labels]
        their_shares = None if shares is None else result[names].to_numpy()
        check(what, result["prediction"], scores_in(result, labels), their_shares)
        label = run(f"SELECT {to_sql(model)} AS label FROM rows", objects)["label"]
        assert label.tolist() == expected, what
