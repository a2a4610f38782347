"""Exports of models with features read raw columns and texts, and predict the same without this library."""

import pickle
import sqlite3
import subprocess
import sys

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from separatrix import AveragedPerceptron, Model, Perceptron, TableFeatures, TextFeatures
from separatrix.engine.weights import Weights
from separatrix.exporting import to_onnx, to_sklearn, to_sql
from separatrix.exporting.column_terms import LARGEST
from support.exported_models import assert_same, fitted_model, in_duckdb, in_sqlite, onnx_inputs, run_onnx
from support.passengers import passengers

JOBS = ["clerk", "cook", "Ünïcødé 日本", 'it\'s "q"', "", "NULL", "a\nb", "é", "e\u0301"]
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, LARGEST, -LARGEST, 1e300, -1e300, 0.1 + 0.2, np.nan]


def mixed(seed, n=400):
    """Numbers of both signs with zeros and gaps, categories of any characters, truth values, numbers as categories."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            'a "b" --': np.round(draw.normal(0, 10, n), 1),
            "gain": np.where(draw.random(n) < 0.6, 0, draw.integers(1, 90, n)),
            "loss": -draw.random(n),
            "job": draw.choice(np.array(JOBS, dtype=object), n),
            "flag": draw.choice(np.array([True, False, None], dtype=object), n, p=[0.4, 0.5, 0.1]),
            "always": draw.random(n) < 0.5,
            "zip": draw.integers(-3, 9, n),
            "classes": draw.choice(["x", "y"], n),
        }
    )
    frame.loc[draw.random(n) < 0.1, 'a "b" --'] = np.nan
    frame.loc[draw.random(n) < 0.1, "job"] = None
    return frame


def labels_of(frame, n_classes):
    score = frame['a "b" --'].fillna(3) + 9 * (frame["job"] == "cook") + 5 * (frame["flag"] == True) + frame["zip"]  # noqa: E712
    return np.array(["no", "yes it's", "perhaps"])[np.clip(np.digitize(score, [4, 12]), 0, n_classes - 1)]


def fitted(numbers="bins", n_classes=2, code="thermometer", **parameters):
    frame = mixed(0)
    features = TableFeatures(numbers=numbers, code=code, roles={"zip": "category"})
    return fitted_model(AveragedPerceptron(random_state=0, **parameters), features, frame, labels_of(frame, n_classes))


def unseen(numbers):
    """Rows with values that were not learned from, extreme numbers where these are cut into bins, and nothing but gaps."""
    frame = mixed(1, 60).astype({"gain": float, "zip": object})
    frame.loc[:9, "job"] = [*JOBS, "never met"]
    frame.loc[:9, "zip"] = [77, None, 8, -3, 0, 1, 2, 3, 4, 5]
    if numbers == "bins":
        for name in ('a "b" --', "gain", "loss"):
            frame.loc[:9, name] = EXTREMES
    for name in ('a "b" --', "gain", "loss", "job", "flag", "zip", "classes"):
        frame[name] = frame[name].astype(object if frame[name].dtype.kind not in "f" else float)
        frame.loc[20, name] = None
    return frame


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ("bins", "thermometer"),
        ("bins", "one-hot"),
        ("standard", "thermometer"),
        ("max-abs", "thermometer"),
        ("none", "one-hot"),
    ],
)
def test_raw_columns_in_and_the_same_out(numbers, code, n_classes):
    model = fitted(numbers, n_classes, code, calibrate="sigmoid")
    assert_same(model, mixed(0))
    assert_same(model, unseen(numbers))


def test_values_at_the_thresholds_fall_on_the_same_side():
    values = np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 0.1, 0.30000000000000004, -0.7] * 4)
    near = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    for code in ("thermometer", "one-hot"):
        features = TableFeatures(code=code)
        model = fitted_model(Perceptron(random_state=0), features, {"x": values}, np.round(values) % 2 == 0)
        assert_same(model, pd.DataFrame({"x": near}))


@pytest.mark.parametrize("tie", ["mistake", "+1"])
def test_a_score_of_zero_goes_where_predict_has_it(tie):
    frame = pd.DataFrame({"x": ["a", "b", "c", "a"], "y": ["u", "u", "v", "v"]})
    model = fitted_model(Perceptron(order="cyclic", max_iter=3, tie=tie), TableFeatures(), frame, [0, 1, 1, 0])
    rows = pd.DataFrame({"x": ["new", "a", "b", "c"], "y": ["new", "new", "v", "u"]})
    learner = model.estimator
    learner.run_.last.load(Weights(learner.coef_.copy(), np.zeros(1)))
    learner.run_.used = None
    assert model.decision_function(rows)[0] == 0.0
    assert_same(model, rows)


@pytest.mark.parametrize("calibrate", [None, "sigmoid"])
@pytest.mark.parametrize("tie", ["mistake", "+1"])
def test_a_threshold_moves_the_labels_and_neither_scores_nor_probabilities(tie, calibrate):
    model, frame = fitted(tie=tie, calibrate=calibrate), mixed(1, 60)
    before = model.predict(frame)
    model.estimator.threshold_ = float(np.sort(model.decision_function(frame))[40:42].mean())  # between two scores
    assert (before != model.predict(frame)).any()
    assert_same(model, frame)


def test_a_pipeline_of_our_featurizer_and_learner():
    frame = mixed(0)[["job", "gain"]]
    pipeline = make_pipeline(TableFeatures(), Perceptron(random_state=0)).fit(frame, labels_of(mixed(0), 2))
    model = Model(pipeline[1], pipeline[0])
    assert to_sql(pipeline) == to_sql(model)
    assert to_onnx(pipeline).SerializeToString() == to_onnx(model).SerializeToString()
    assert to_sklearn(pipeline).predict(frame).tolist() == pipeline.predict(frame).tolist()
    with pytest.raises(ValueError, match="step 'standardscaler' of the pipeline is a StandardScaler"):
        to_sql(make_pipeline(StandardScaler(), Perceptron()))


def test_passengers_with_gaps():
    frame, labels = passengers(0)
    frame["Pclass"] = frame["Pclass"].astype("category")
    frame.loc[::9, "Sex"] = None
    model = fitted_model(AveragedPerceptron(random_state=0), TableFeatures(roles={"Name": "drop"}), frame, labels)
    others, _ = passengers(1)
    others.loc[::7, ["Sex", "Fare", "Age"]] = None
    assert_same(model, frame)
    assert_same(model, others)


def test_infinity_counts_as_missing():
    for numbers in ("bins", "standard"):
        model = fitted(numbers)
        frame = mixed(2, 3)
        gaps = frame.copy()
        gaps['a "b" --'] = np.nan
        frame['a "b" --'] = [np.inf, -np.inf, np.nan]
        expected = model.decision_function(gaps)
        graph = to_onnx(model)
        assert np.allclose(run_onnx(graph, onnx_inputs(graph, frame))["scores"][:, 0], expected)
        query = to_sql(model, table="rows", scores=True)
        assert np.allclose(in_sqlite(query, frame)["score of yes it's"], expected)
        assert np.allclose(_with_infinities(query, frame), expected)
        if numbers == "bins":
            assert np.allclose(to_sklearn(model).decision_function(frame), expected)
        else:
            with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="infinity"):
                to_sklearn(model).predict(frame)


def _with_infinities(query, frame):
    """DuckDB takes the NaN of a data frame for NULL, and that of an Arrow table for NaN."""
    import pyarrow as pa

    arrays = {name: pa.array(frame[name].tolist(), from_pandas=name in ("job", "flag")) for name in frame}
    table = pa.table(arrays)
    assert np.isnan(table['a "b" --'].to_pylist()[2])
    return in_duckdb(query, table)["score of yes it's"]


def test_sqlite_compares_numbers_in_columns_of_text_as_numbers():
    model, frame = fitted(), mixed(1, 50)
    types = dict.fromkeys(['a "b" --', "gain", "loss", "zip", "flag"], "TEXT")
    result = in_sqlite(to_sql(model, table="rows"), frame, types)
    assert result["prediction"].tolist() == model.predict(frame).tolist()


def test_a_column_that_the_table_lacks_is_an_error_in_sqlite():
    with sqlite3.connect(":memory:") as base:
        mixed(0).drop(columns="gain").to_sql("rows", base)
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            base.execute(to_sql(fitted(), table="rows"))


def test_numbers_taken_for_categories_are_compared_as_text():
    model = Model(Perceptron(random_state=0), TableFeatures(roles={"zip": "category"}))
    frame = pd.DataFrame({"zip": [1, 2, 3, 1, 2, 3]})
    model.fit(frame, ["a", "b", "c"] * 2)
    expected = model.predict(frame).tolist()
    for zips in (frame, frame.astype(float), frame.astype("Int64"), frame.astype(str)):
        assert to_sklearn(model).predict(zips).tolist() == expected
        graph = to_onnx(model)
        assert run_onnx(graph, onnx_inputs(graph, zips))["label"].tolist() == expected
        for run in (in_sqlite, in_duckdb):
            assert run(to_sql(model, table="rows"), zips)["prediction"].tolist() == expected


def test_words_for_missing_values_are_categories_where_the_column_is_text():
    frame = pd.DataFrame({"job": ["a", "None", "nan", None, "missing", "true"] * 8, "zip": ["01", "02", "03"] * 16})
    model = fitted_model(Perceptron(random_state=0), TableFeatures(), frame, [0, 1, 1, 0, 1, 0] * 8)
    made = to_sklearn(model)
    for rows in (frame, frame.astype("category"), frame.astype(object).where(frame.notna(), None)):
        assert made.predict(rows).tolist() == model.predict(rows).tolist()
    for number in (3, 3.5, True):
        with pytest.raises(ValueError, match="StringDType only allows string data"):
            made.predict(frame.assign(zip=number))


def test_two_thousand_categories_and_many_classes():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"town": [f"town {k}" for k in range(2000)], "x": draw.normal(size=2000)})
    features = TableFeatures(roles={"town": "category"})
    model = fitted_model(AveragedPerceptron(random_state=0, max_iter=3), features, frame, draw.integers(0, 9, 2000))
    assert_same(model, frame[:200])


def test_the_pipeline_needs_nothing_of_ours():
    frame = mixed(0).assign(
        remarks=["free money at noon" if k % 3 else "lunch, see you there !" for k in range(400)],
        tags=["red|new" if k % 2 else "blue | old|red" for k in range(400)],
    )
    frame.loc[::11, ["remarks", "tags"]] = None
    features = TableFeatures(roles={"remarks": "text", "tags": "set"}, text=TextFeatures(n_features=512))
    for numbers in ("bins", "standard"):
        model = Model(AveragedPerceptron(random_state=0, calibrate="sigmoid"), features.set_params(numbers=numbers))
        model.fit(frame, labels_of(frame, 3))
        assert_same(model, frame, sql=False)
        code = """if True:
            import pickle, sys
            sys.modules["separatrix"] = None
            made, X = pickle.load(sys.stdin.buffer)
            print(made.predict(X).tolist())"""
        packed = pickle.dumps((to_sklearn(model), frame))
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], input=packed, capture_output=True, check=True)
        assert done.stdout.decode().strip() == str(model.predict(frame).tolist())
        columns = {name: [None if pd.isna(cell) else cell for cell in frame[name].tolist()] for name in frame}
        assert to_sklearn(model).predict(pl.DataFrame(columns)).tolist() == model.predict(frame).tolist()


@pytest.mark.parametrize(
    ("column", "what", "roles"),
    [
        (["2024-03-01", "2024-03-05"], "dates", None),
        (["$1", "$2"], r"numbers written as text \(such as 1\.234,5 or \$9\)", None),
        ([["a"], ["a", "b"]], "lists", None),
        ([f"{k}" for k in range(40)], "more than 30 categories, hashed", {"c": "category"}),
        ([b"\xff", b"a"], "categories that are not UTF-8", {"c": "category"}),
    ],
)
def test_what_no_export_computes_is_named_with_a_remedy(column, what, roles):
    features = TableFeatures(roles=roles, max_categories=30)
    model = fitted_model(Perceptron(), features, {"c": column}, np.arange(len(column)) % 2)
    for export, target in ((to_sql, "SQL"), (to_onnx, "ONNX"), (to_sklearn, "scikit-learn")):
        with pytest.raises(ValueError, match=rf"^column 'c' holds {what}, which {target} cannot .*roles=.*'drop'\}}$"):
            export(model)


def test_what_one_target_computes_and_another_does_not():
    table = {"t": ["free money at noon", "see you at lunch"] * 20, "s": ["a|b", "b"] * 20}
    for name, role, what, exports in (("t", "text", "texts", (to_sql, to_onnx)), ("s", "set", "sets", (to_sql,))):
        model = fitted_model(Perceptron(), TableFeatures(roles={name: role}), {name: table[name]}, [0, 1] * 20)
        for export in exports:
            with pytest.raises(ValueError, match=f"column '{name}' holds {what}, which .*: export to scikit-learn instead"):
                export(model)
    texts = fitted_model(Perceptron(), TextFeatures(n_features=16), table["t"], [0, 1] * 20)
    for export in (to_sql, to_onnx):
        with pytest.raises(ValueError, match=r"the model reads texts, .*: export to scikit-learn instead"):
            export(texts)


def test_names_and_settings_that_cannot_be_used():
    frame = pd.DataFrame({"scores": ["a", "b"], "score of 1": [1.0, 2.0], "p": ["None", "b"]})
    model = fitted_model(Perceptron(), TableFeatures(roles={"p": "category"}), frame, [0, 1])
    with pytest.raises(ValueError, match="'scores' has the name of an output"):
        to_onnx(model)
    with pytest.raises(ValueError, match="'score of 1' has the name of a column of the query"):
        to_sql(model, table="rows", scores=True)
    with pytest.raises(ValueError, match="category 'None', which scikit-learn"):
        to_sklearn(model)
    with pytest.raises(ValueError, match="no probabilities"):
        to_sql(model, table="rows", probabilities=True)
    with pytest.raises(ValueError, match="name the table"):
        to_sql(model, scores=True)
    with pytest.raises(ValueError, match="must be None"):
        to_sql(model, columns=["a", "b"])
    single = fitted_model(Perceptron(), TableFeatures(numbers="standard", dtype=np.float32), {"x": [1.0, 2.0]}, [0, 1])
    with pytest.raises(ValueError, match="'x' holds numbers scaled in float32"):
        to_sql(single)
    signed = fitted_model(Perceptron(), TextFeatures(alternate_sign=True), ["a", "b"], [0, 1])
    with pytest.raises(ValueError, match="alternate_sign=False"):
        to_sklearn(signed)


def test_classes_that_differ_by_case_have_columns_of_their_own():
    model = fitted_model(Perceptron(random_state=0), TableFeatures(), {"x": ["u", "v", "w"] * 5}, ["a", "A", "b"] * 5)
    result = in_duckdb(to_sql(model, table="rows", scores=True), pd.DataFrame({"x": ["u", "v"]}))
    assert result["prediction"].tolist() == ["a", "A"]
    assert [name for name in result if name.startswith("score")] == ["score 0 of A", "score 1 of a", "score 2 of b"]


def test_the_graph_says_what_its_inputs_are_and_is_written_whole(tmp_path):
    graph = to_onnx(fitted(), tmp_path / "model.onnx")
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    described = {value.name: value.doc_string for value in graph.graph.input}
    assert described["job"] == "text, nan where missing" and described["classes"] == "text, empty where missing"
    assert described["gain"] == "number, NaN where missing"
    assert set(described) == set(mixed(0)) and [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
