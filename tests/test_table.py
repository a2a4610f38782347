"""Table features: the batches leave no trace, every holder of a table gives the same, names and states tell the truth."""

import contextlib
import copy
import datetime
import itertools
import json
import pickle
import unittest
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from separatrix import AveragedPerceptron, TableFeatures, TextFeatures, frames, numerals
from separatrix.data.batches import TableBatch
from separatrix.data.errors import Origin
from separatrix.data.reading import open_source

MIXED = {
    "age": [22.0, 38.0, None, 38.0, 61.0, 22.0],
    "gain": [0.0, 0.0, 0.0, 5178.0, 0.0, -12.5],
    "job": ["clerk", "cook", None, "clerk", "cook", "clerk"],
    "member": [True, None, False, True, False, True],
    "remark": ["likes the long way home", "never called us back", "", "pays late but pays", None, "likes us a lot"],
}


def same(one, other):
    return (
        one.shape == other.shape
        and np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, other.data)
    )


def same_state(one, other):
    (a, x), (b, y) = one.get_state(), other.get_state()
    return (
        a == b and list(x) == list(y) and all(x[key].dtype == y[key].dtype and np.array_equal(x[key], y[key]) for key in x)
    )


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


@settings(max_examples=25)
@given(st.data())
def test_batches_leave_no_trace(data):
    n = data.draw(st.integers(1, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    table = pa.table(
        {
            "x": rng.normal(size=n).round(1),
            "zeros": np.where(rng.random(n) < 0.8, 0.0, rng.normal(size=n)),
            "holes": pa.array(np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 5, n)), from_pandas=True),
            "few": pa.array(rng.choice(["a", "b", "ç", None], n).tolist(), pa.string()),
            "many": [f"v{k}" for k in rng.integers(0, 20, n)],
            "yes": pa.array(rng.choice([True, False, None], n).tolist(), pa.bool_()),
            "text": [" ".join(rng.choice(["win", "free", "home", "you"], 4)) for _ in range(n)],
            "id": [f"{k:032d}" for k in range(n)],
            "late": pa.array([None] * (n // 2) + ["a"] * (n - n // 2), pa.string()),
        }
    )
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=6))})
    how = {
        "numbers": data.draw(st.sampled_from(["none", "standard", "max-abs", "bins"])),
        "n_bins": 4,
        "max_categories": 5,
        "n_hashed": 8,
        "roles": {"many": "category", "text": "text"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "BLOCK_ROWS", data.draw(st.sampled_from([7, 16, 1000])))
        patch.setattr(frames, "BLOCK_BYTES", data.draw(st.sampled_from([400, 1 << 20])))
        patch.setattr("separatrix.schema.SAMPLE", 8)
        patch.setattr("separatrix.schema.SAMPLES", 8)
        patch.setattr("separatrix.schema.LAID_OUT", 64)
        whole, pieces = TableFeatures(**how).fit(table), TableFeatures(**how)
        for begin, end in itertools.pairwise(cuts):
            pieces.partial_fit(table.slice(begin, end - begin))
        assert same_state(whole, pieces)
        X = whole.transform(table)
        parts = [pieces.transform(table.slice(b, e - b)).toarray() for b, e in itertools.pairwise(cuts)]
        assert np.array_equal(np.vstack(parts), X.toarray())
        again = TableFeatures.from_state(*whole.get_state())
        assert same(again.transform(table), X)
        assert same_state(again, whole)


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
    column = numerals.NumberColumn("x", "bins", 10, True, sample=1000)
    x = np.arange(1.0, 50_001.0)
    for begin in range(0, 50_000, 5000):
        column.learn(x[begin : begin + 5000], numerals.row_keys(begin, 5000))
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


def test_ids_dates_empty_and_counting_columns_are_dropped_with_a_note():
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
    assert [name for name, role in features.roles_.items() if role != "drop"] == ["x", "zip"]
    assert [note.split("'")[1] for note in features.notes_] == ["id", "row", "when", "empty", "nothing", "zip"]
    assert "40 different values in 40 rows" in features.notes_[0]
    assert "numbers written as text" in features.notes_[-1]
    kept = TableFeatures(roles={"row": "number", "id": "category"}).fit(table)
    assert kept.roles_["row"] == "number"
    assert kept.roles_["id"] == "category"
    assert features.transform(table.drop_columns(["id", "row", "when"])).shape[0] == n


def test_columns_are_found_by_name_and_others_passed_over():
    features = TableFeatures().fit({"a": [1.0, 2.0], "b": ["x", "y"]})
    expected = features.transform({"a": [2.0], "b": ["x"]})
    assert same(features.transform({"more": [0], "b": ["x"], "a": [2]}), expected)


PLACE = TableBatch(pa.RecordBatch.from_pydict({"a": ["1", "2", "many"], "b": ["x", "y", "x"]}), Origin("test.csv", 5))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0]}, r"column 'b' is missing from this table, which has a; add it"),
        (
            {"a": ["1", "2", "many", "3"], "b": ["x"] * 4},
            r"row 2, column 'a': 'many' is text, where numbers were learned from",
        ),
        (PLACE, r"test.csv, line 7, column 'a': 'many' is text"),
        ({"a": [1.0, 2.0], "b": [None, 3.5]}, r"row 1, column 'b': '3.5' is double, where text was learned from"),
        ({"a": [1.0, np.inf], "b": ["x", "y"]}, r"row 1, column 'a': inf is infinity"),
        ({"a": pa.array([[1.0]]), "b": ["x"]}, r"column 'a' holds list<item: double>"),
    ],
)
def test_what_cannot_be_transformed_is_named(table, message):
    features = TableFeatures().fit({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    with pytest.raises(ValueError, match=message):
        features.transform(table if isinstance(table, TableBatch) else pa.table(table))


def test_text_that_reads_as_numbers_serves_where_numbers_were():
    features = TableFeatures().fit({"a": [1.0, 2.0, 3.0]})
    assert same(features.transform({"a": [" 2", "3.0", None]}), features.transform({"a": [2.0, 3.0, None]}))


def test_truth_values_of_other_types():
    features = TableFeatures(roles={"b": "boolean"}).fit({"b": ["Yes", "no", None, "YES"]})
    assert features.transform({"b": [1.0, 0.0, None]}).toarray().tolist() == [[1, 0], [0, 0], [0, 1]]
    with pytest.raises(ValueError, match="row 1, column 'b': 'perhaps' is neither true nor false"):
        features.transform({"b": ["yes", "perhaps"]})


@pytest.mark.parametrize(
    ("table", "how", "message"),
    [
        ({"a": []}, {}, "there are no rows"),
        ({}, {}, "X has no columns"),
        ({"a": [1.0]}, {"roles": {"b": "drop"}}, "roles names the column 'b', which is not there; there are a"),
        ({"a": [1.0]}, {"roles": {"a": "words"}}, r"roles\['a'\] is 'words', not one of"),
        ({"a": [1.0]}, {"roles": {"a": "drop"}}, "there is no column to learn from"),
        ({"a": [1.0, -np.inf]}, {}, "row 1, column 'a': -inf is infinity"),
        ({"a": [1.0]}, {"numbers": "quantile"}, "'numbers' parameter"),
        ({"a": [1.0]}, {"n_bins": 1}, "'n_bins' parameter"),
    ],
)
def test_what_cannot_be_learned_is_named(table, how, message):
    with pytest.raises(ValueError, match=message):
        TableFeatures(**how).fit(pa.table(table))


def test_values_of_different_kinds_are_named():
    with pytest.raises(
        ValueError, match=r"column 'a' holds values of different kinds: int \('1' at row 0\), str \('x' at row 1\)"
    ):
        TableFeatures().fit(pd.DataFrame({"a": [1, "x"]}, dtype=object))
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        TableFeatures().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_batch_that_cannot_be_used_leaves_no_trace():
    first, second = pa.table({"a": [1.0, 2.0]}), pa.table({"a": [4.0, 7.0]})
    ours = TableFeatures().partial_fit(first)
    with pytest.raises(ValueError, match="infinity"):
        ours.partial_fit({"a": [3.0, np.inf]})
    with pytest.raises(ValueError, match="is missing"):
        ours.partial_fit({"b": [3.0]})
    assert same_state(ours.partial_fit(second), TableFeatures().fit(pa.concat_tables([first, second])))


def test_what_was_learned_does_not_change_with_the_callers_arrays():
    x = np.arange(1.0, 9.0)
    whole, pieces = TableFeatures().fit(pd.DataFrame({"x": x})), TableFeatures()
    expected = whole.get_state()[1]["0.thresholds"].copy()
    buffer = np.empty((2, 1))
    for begin in range(0, 8, 2):
        buffer[:] = x[begin : begin + 2, None]
        pieces.partial_fit(buffer)
    lazy = TableFeatures().fit(x[:, None])
    x[:] = 0.0
    for features in (pieces, lazy):
        assert np.array_equal(features.get_state()[1]["0.thresholds"], expected)


def test_learning_ends_with_the_first_transform():
    features = TableFeatures().partial_fit({"a": [1.0, 2.0]})
    features.transform({"a": [1.0]})
    with pytest.raises(ValueError, match="settled once they are used"):
        features.partial_fit({"a": [3.0]})
    with pytest.raises(NotFittedError):
        TableFeatures().transform({"a": [1.0]})


def test_the_state_is_json_and_plain_arrays_and_copies_are_equal():
    features = TableFeatures(max_categories=1, n_hashed=4).fit(MIXED)
    state, arrays = features.get_state()
    again = TableFeatures.from_state(json.loads(json.dumps(state)), {key: array.copy() for key, array in arrays.items()})
    X = features.transform(MIXED)
    for other in (again, pickle.loads(pickle.dumps(features)), copy.deepcopy(features), clone(features).fit(MIXED)):
        assert same(other.transform(MIXED), X)
        assert same_state(other, features)
        assert other.describe() == features.describe()
    used = np.unique(X.indices)
    assert [again.names_of(j) for j in used] == [features.names_of(j) for j in used]


def test_a_broken_state_is_refused():
    state, arrays = TableFeatures().fit({"x": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]}).get_state()
    broken = [
        (state, arrays | {"0.thresholds": arrays["0.thresholds"][:0].astype(np.float32)}),
        (state, {key: array for key, array in arrays.items() if key != "1.bytes"}),
        (state, arrays | {"1.lengths": arrays["1.lengths"] + np.uint32(1)}),
        (state, arrays | {"0.thresholds": arrays["0.thresholds"][:0]}),
    ]
    for some, more in broken:
        with pytest.raises(ValueError, match="the state is broken"):
            TableFeatures.from_state(some, more)


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


def test_rows_of_numbers_are_no_table():
    batch = next(iter(open_source("iris")))
    with pytest.raises(TypeError, match="rows of numbers, not a table"):
        TableFeatures().partial_fit(batch)
