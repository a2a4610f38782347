"""Table features by hand: roles, bins, categories and text, whatever holds the table, under names that tell the truth."""

import contextlib
import datetime
import unittest
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from separatrix import AveragedPerceptron, TableFeatures, TextFeatures
from separatrix.data.batches import TableBatch
from separatrix.data.errors import Origin
from separatrix.data.reading import open_source
from separatrix.features.columns.numbers import NumberColumn, row_keys
from support.text_corpus import MIXED, same, same_state


def shown(features, X):
    """The rows as {name: value}."""
    return [
        {" | ".join(features.names_of(j)): float(v) for j, v in zip(row.indices, row.data, strict=True)}
        for row in (X[i] for i in range(X.shape[0]))
    ]


def test_a_mixed_table_by_hand():
    features = TableFeatures(numbers="none").fit(MIXED)
    assert features.roles_ == {"age": "number", "gain": "number", "job": "category", "member": "boolean", "remark": "text"}
    rows = shown(features, features.transform(MIXED))
    assert {name: v for name, v in rows[0].items() if "remark" not in name} == {"age": 22.0, "job=clerk": 1.0, "member": 1.0}
    assert rows[2] == {"age is missing": 1.0, "job is missing": 1.0}
    assert rows[4] == {"age": 61.0, "job=cook": 1.0}
    assert rows[1].keys() >= {"member is missing", "remark: never", "remark: never called"}
    assert features.describe().splitlines()[:3] == [
        "column  role      features   missing",
        "age     number    2          1",
        "gain    number    1",
    ]


@pytest.mark.parametrize("numbers", ["none", "bins"])
def test_every_holder_of_a_table_gives_the_same(numbers):
    expected = TableFeatures(numbers=numbers).fit(pa.table(MIXED))
    X = expected.transform(pa.table(MIXED))
    chunked = pa.concat_tables([pa.table(MIXED).slice(0, 2), pa.table(MIXED).slice(2)])
    holders = [
        pa.RecordBatch.from_pydict(MIXED),
        chunked,
        pd.DataFrame(MIXED),
        pd.DataFrame(MIXED).astype({"member": "boolean", "age": "Float64", "job": "string"}),
        pd.DataFrame(MIXED).astype({"job": object, "remark": object}),
        pl.DataFrame(MIXED),
        pd.DataFrame(MIXED).astype({"gain": pd.SparseDtype(float, 0.0)}),
        MIXED,
        pa.table(MIXED).cast(pa.schema([*pa.table(MIXED).schema][:4]).append(pa.field("remark", pa.large_string()))),
        TableBatch(pa.RecordBatch.from_pydict(MIXED), Origin("people.csv", 2)),
    ]
    for holder in holders:
        ours = TableFeatures(numbers=numbers).fit(holder)
        assert same(ours.transform(holder), X)
        assert same_state(ours, expected)
        assert same(expected.transform(holder), X)


def test_typed_categories_are_categories_whatever_they_look_like():
    words = [f"w{k}" for k in range(30)]
    expected = TableFeatures(roles={"c": "category"}).fit_transform(pa.table({"c": words}))
    for holder in (
        pd.DataFrame({"c": pd.Categorical(words)}),
        pl.DataFrame({"c": pl.Series(words, dtype=pl.Categorical)}),
        pa.table({"c": pa.array(words).dictionary_encode()}),
    ):
        features = TableFeatures().fit(holder)
        assert features.roles_ == {"c": "category"}
        assert same(features.transform(holder), expected)
    codes = TableFeatures().fit(pd.DataFrame({"c": pd.Categorical([3, 1, 3])}))
    assert codes.get_feature_names_out().tolist() == ["c=3", "c=1"]


def test_numbers_spelled_as_categories_are_one_whatever_their_type():
    features = TableFeatures(roles={"c": "category"}).fit({"c": [3, 1, 3]})
    assert features.get_feature_names_out().tolist() == ["c=3", "c=1"]
    assert features.transform({"c": [1.0, 3.0, 1.5, None]}).toarray().tolist() == [[0, 1], [1, 0], [0, 0], [0, 0]]
    assert features.transform({"c": ["1", "3"]}).toarray().tolist() == [[0, 1], [1, 0]]


def test_few_whole_numbers_stay_numbers():
    assert TableFeatures().fit({"c": [1, 2, 3, 1, 2, 3]}).roles_ == {"c": "number"}


def test_a_column_of_text_alone_gives_the_columns_of_text_features():
    texts = ["Free entry: call now!", "Call me when you are home", None, "are you there, my friend?"]
    ours, theirs = TableFeatures().fit({"text": texts}), TextFeatures().fit(texts)
    assert ours.roles_ == {"text": "text"}
    X = ours.transform({"text": texts})
    assert same(X, theirs.transform(texts))
    assert all(ours.names_of(j) == theirs.names_of(j) for j in X.indices)
    assert ours.n_features_out_ == theirs.n_features_out_ == 2**20


def test_columns_of_text_share_the_width_and_are_named_by_column():
    table = {
        "x": [1.0, 2.0, 3.0],
        "title": ["a b c", "b c d", "e f g"],
        "body": ["call me now", "call you later then", "never call us again"],
    }
    features = TableFeatures().fit(table)
    assert features.n_features_out_ == 2 + 2 * 2**19
    names = [name for row in shown(features, features.transform(table)) for name in row]
    assert {"title: a", "body: call", "x > 1"} <= set(names)
    chosen = TableFeatures(text=TextFeatures(n_features=64, idf=False, ngram_range=(1, 1))).fit(table)
    assert chosen.n_features_out_ == 2 + 2 * 64
    assert same(TableFeatures.from_state(*chosen.get_state()).transform(table), chosen.transform(table))


def test_a_text_varies_as_much_as_all_columns_beside_it():
    rng = np.random.default_rng(0)
    table = {"remark": [f"a remark of w{k} and w{k + 1}" for k in rng.integers(30, size=500)]}
    alone = TextFeatures().fit_transform(table["remark"])
    numbers = {f"x{j}": rng.normal(size=500) for j in range(4)}
    features = TableFeatures(roles={"remark": "text"}).fit(numbers | table)
    X, span = features.transform(numbers | table), features.column_spans()["remark"]
    assert np.all(X[:, : span.start].data == 1.0)
    text, beside = X[:, span], X[:, : span.start].toarray()
    lengths = np.sqrt(np.asarray(text.multiply(text).sum(axis=1)))
    np.testing.assert_allclose(lengths**2, beside.var(axis=0).sum(), rtol=0.1)
    np.testing.assert_allclose(np.sort(text.data / lengths[0, 0]), np.sort(alone.data))
    copied = TableFeatures.from_state(*features.get_state())
    assert same(copied.transform(numbers | table), X)
    counts = TableFeatures(roles={"remark": "text"}, text=TextFeatures(norm=None, tf="count", idf=False)).fit(
        numbers | table
    )
    assert set(counts.transform(numbers | table).data) <= {1.0, 2.0}


def test_text_is_learned_from_beside_numbers_that_tell_nothing():
    rng = np.random.default_rng(0)
    codes = rng.integers(40, size=2400)
    words = rng.integers(300, size=(len(codes), 8))
    table = {f"x{j}": rng.normal(size=len(codes)) for j in range(6)}
    table["remark"] = [f"about topic{k} " + " ".join(f"w{j}" for j in row) for k, row in zip(codes, words, strict=True)]
    train, test = ({name: values[part] for name, values in table.items()} for part in (slice(1800), slice(1800, None)))
    model = make_pipeline(TableFeatures(), AveragedPerceptron(rule="pa1", random_state=0)).fit(train, codes[:1800])
    assert model.score(test, codes[1800:]) > 0.9  # 0.1 with texts of length 1


def test_bins_of_a_column_with_many_zeros_leave_zero_alone():
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(10_000) < 0.92, 0.0, np.round(np.exp(rng.normal(8, 1, 10_000))))
    features = TableFeatures(n_bins=8).fit({"gain": gain})
    names = features.get_feature_names_out().tolist()
    assert names[0] == "gain > 0"
    assert len(names) == 8
    X = features.transform({"gain": gain}).toarray()
    assert np.array_equal(X.sum(axis=1) == 0, gain == 0)
    sizes = -np.diff(X.sum(axis=0), append=0) / (gain > 0).sum()
    assert np.all(np.abs(sizes - 1 / 8) < 0.01)
    thresholds = [float(name.split("> ")[1]) for name in names]
    assert np.array_equal(X, gain[:, None] > thresholds)


def test_bins_on_both_sides_of_zero():
    x = np.array([-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0])
    features = TableFeatures(n_bins=4).fit({"x": x})
    assert features.get_feature_names_out().tolist() == ["x > 0", "x > 2", "x < 0", "x < -2"]
    assert features.transform({"x": [-9.0, -2.0, 0.0, 2.0, 9.0]}).toarray().tolist() == [
        [0, 0, 1, 1],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
        [1, 0, 0, 0],
        [1, 1, 0, 0],
    ]
    one_hot = TableFeatures(n_bins=4, code="one-hot").fit({"x": x})
    assert one_hot.get_feature_names_out().tolist() == ["x > 0 up to 2", "x > 2", "x < 0 down to -2", "x < -2"]
    assert one_hot.transform({"x": [-9.0, 2.0, 9.0]}).toarray().tolist() == [[0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]


@given(st.lists(st.integers(-6, 6).map(lambda k: k / 2), min_size=1, max_size=60), st.integers(2, 8))
def test_thermometer_is_what_its_names_say(values, n_bins):
    features = TableFeatures(n_bins=n_bins, roles={"x": "number"}).fit({"x": values})
    if not features.n_features_out_:
        assert len(set(values)) == 1
        return
    x, X = np.array(values), features.transform({"x": values}).toarray()
    for j, name in enumerate(features.get_feature_names_out()):
        _, sign, threshold = name.split()
        assert np.array_equal(X[:, j], x > float(threshold) if sign == ">" else x < float(threshold))
    if len(set(values)) <= n_bins // 2:
        assert len(np.unique(X, axis=0)) == len(set(values))


def test_frequent_values_have_bins_of_their_own():
    x = np.concatenate([np.full(500, 40.0), np.arange(1, 101, dtype=float)])
    features = TableFeatures(n_bins=4).fit({"hours": x})
    assert {"hours > 39", "hours > 40"} <= set(features.get_feature_names_out())


def test_many_columns_of_numbers_have_fewer_bins():
    rng = np.random.default_rng(0)
    for columns, bins in ((10, 32), (128, 16), (1000, 4)):
        table = {f"x{j}": 1.0 + rng.random(300) for j in range(columns)}
        assert TableFeatures().fit(table).n_features_out_ == columns * (bins - 1)


def test_the_sample_is_uniform_and_bounded():
    column = NumberColumn("x", "bins", 10, True, sample=1000)
    x = np.arange(1.0, 50_001.0)
    for begin in range(0, 50_000, 5000):
        column.learn(x[begin : begin + 5000], row_keys(begin, 5000))
    assert len(column.sample.values) == 1000
    column.settle()
    assert np.all(np.abs(column.thresholds / 5000 - np.arange(1, 10)) < 0.5)


def test_standard_scaling_leaves_mostly_zero_columns_sparse():
    table = {"x": [1.0, 2.0, 3.0, 6.0], "zeros": [0.0, 0.0, 0.0, 8.0]}
    X = TableFeatures(numbers="standard").fit_transform(table).toarray()
    assert np.allclose(X[:, 0], (np.array(table["x"]) - 3) / np.std(table["x"]))
    assert np.allclose(X[:, 1], np.array(table["zeros"]) / np.std(table["zeros"]))
    assert TableFeatures(numbers="max-abs").fit_transform(table).toarray()[3].tolist() == [1.0, 1.0]


def test_unseen_categories_have_no_feature():
    features = TableFeatures().fit({"c": ["a", "b", "a"], "x": [1.0, 2.0, 1.0]})
    assert features.transform({"c": ["z", None, "b"], "x": [1.0, 1.0, 1.0]}).toarray().tolist() == [
        [0, 0, 0],
        [0, 0, 0],
        [0, 1, 0],
    ]


def test_categories_beyond_the_dictionary_are_hashed_and_named():
    values = [f"v{k}" for k in range(100)] * 2
    features = TableFeatures(roles={"c": "category"}, max_categories=10, n_hashed=16).fit({"c": values})
    assert features.n_features_out_ == 26
    X = features.transform({"c": values})
    assert X.nnz == 200
    for value, j in zip(values, X.indices, strict=True):
        assert f"c={value}" in features.names_of(j) or features.has_unnamed(j)
    assert features.names_of(3) == ["c=v3"]
    named = sum(len(features.names_of(j)) for j in range(26))
    assert named == 20
    assert features.transform({"c": ["never met"]}).nnz == 1
    assert any("…" in name for name in features.get_feature_names_out())


def test_ids_empty_and_counting_columns_are_dropped_with_a_note():
    n = 40
    table = pa.table(
        {
            "id": [f"{k:08x}" for k in range(n)],
            "row": np.arange(n),
            "when": [datetime.date(2020, 1, 1)] * n,
            "empty": pa.nulls(n, pa.float64()),
            "nothing": pa.nulls(n),
            "x": np.arange(n) % 7,
            "zip": [f"0{k % 5}" for k in range(n)],
        }
    )
    features = TableFeatures().fit(table)
    assert [name for name, role in features.roles_.items() if role != "drop"] == ["when", "x", "zip"]
    assert [note.split("'")[1] for note in features.notes_] == ["id", "row", "empty", "nothing", "zip"]
    assert "40 different values in 40 rows" in features.notes_[0]
    assert "numbers written as text" in features.notes_[-1]
    kept = TableFeatures(roles={"row": "number", "id": "category"}).fit(table)
    assert kept.roles_["row"] == "number"
    assert kept.roles_["id"] == "category"
    assert features.transform(table.drop_columns(["id", "row"])).shape[0] == n


def test_columns_are_found_by_name_and_others_passed_over():
    features = TableFeatures().fit({"a": [1.0, 2.0], "b": ["x", "y"]})
    expected = features.transform({"a": [2.0], "b": ["x"]})
    assert same(features.transform({"more": [0], "b": ["x"], "a": [2]}), expected)


@pytest.mark.parametrize("row", [{"age": 50, "job": "cook"}, {"job": "cook", "age": "old!"}, {"job": None, "age": 3.5}])
def test_a_row_of_single_values_is_no_table(row):
    """A text is not taken for a column of its characters."""
    features = TableFeatures().fit({"age": [22, 38, 50], "job": ["cook", "clerk", "cook"]})
    with pytest.raises(ValueError, match=r"column '\w+' is one value, .*, and no list of values; a table of one row"):
        features.transform(row)
    with pytest.raises(ValueError, match="X is one text, 'cook': put it into a list"):
        features.transform("cook")


def test_a_column_that_is_not_there_is_named_with_what_to_do():
    features = TableFeatures().fit({"age": [22, 38, 50], "job": ["cook", "clerk", "cook"]})
    advice = r"add it \(empty, where its values are not known\), or train without it: roles=\{'age': 'drop'\}"
    with pytest.raises(ValueError, match=rf"the columns are job; {advice}"):
        features.transform({"job": ["cook"]})
    with pytest.raises(ValueError, match=rf"did you mean 'Age'\? If not, {advice}"):
        features.transform({"job": ["cook"], "Age": [22]})


def test_single_precision():
    X = TableFeatures(dtype=np.float32).fit_transform(MIXED)
    assert X.dtype == np.float32
    assert np.allclose(X.toarray(), TableFeatures().fit_transform(MIXED).toarray(), atol=1e-6)


def test_scikit_learn_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in estimator_checks_generator(TableFeatures()):
            with contextlib.suppress(unittest.SkipTest):
                check(estimator)
    model = make_pipeline(TableFeatures(), AveragedPerceptron(random_state=0)).fit(pd.DataFrame(MIXED), [0, 1, 1, 0, 1, 0])
    assert model.score(pd.DataFrame(MIXED), [0, 1, 1, 0, 1, 0]) == 1.0


def test_adult_with_inferred_roles(data_folder):
    parts = []
    for name in ("train", "test"):
        batches = [batch.table for batch in open_source(data_folder / "adult" / f"adult-{name}.csv.gz", label="c14")]
        table = pa.Table.from_batches(batches)
        parts += [table.drop_columns(["c14"]), np.array([label.rstrip(".") for label in table["c14"].to_pylist()])]
    X, y, X_test, y_test = parts
    model = make_pipeline(TableFeatures(), AveragedPerceptron(random_state=0)).fit(X, y)
    assert model.score(X_test, y_test) > 0.866


@pytest.mark.parametrize("size", [1e155, 1e308])
def test_numbers_too_large_for_a_variance_are_named_and_scaled_otherwise(size):
    table = {"a": [size, -size, size / 2, 0.0], "b": [1.0, 2.0, 3.0, 4.0]}
    with pytest.raises(ValueError, match=r"column 'a' has numbers up to 1e\+(155|308), too large"):
        TableFeatures(numbers="standard").fit_transform(table)
    for numbers in ("bins", "max-abs"):
        X = TableFeatures(numbers=numbers).fit_transform(table).toarray()
        assert np.isfinite(X).all() and len(np.unique(X, axis=0)) == 4


def test_what_is_masked_is_missing():
    masked = np.ma.array(np.arange(12.0).reshape(6, 2), mask=np.arange(12).reshape(6, 2) == 3)
    features = TableFeatures(numbers="standard").fit(masked)
    assert features.get_feature_names_out().tolist() == ["x0", "x1", "x1 is missing"]
    filled = masked.filled(np.nan)
    assert (features.transform(masked) != TableFeatures(numbers="standard").fit_transform(filled)).nnz == 0


def test_rows_of_numbers_are_no_table():
    batch = next(iter(open_source("iris")))
    with pytest.raises(TypeError, match="rows of numbers, not a table"):
        TableFeatures().partial_fit(batch)
