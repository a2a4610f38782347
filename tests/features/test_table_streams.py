"""Table features: batches and copies leave no trace, and what cannot be learned or transformed is named."""

import copy
import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from separatrix import TableFeatures
from separatrix.data.batches import TableBatch
from separatrix.data.errors import Origin
from separatrix.features.columns import arrow_columns
from support.scale import property_examples
from support.text_corpus import MIXED, same, same_state


@settings(max_examples=property_examples(10))
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
            "price": [f"${k:,}.50" for k in rng.integers(0, 5000, n)],
            "day": pa.array([f"2024-0{k}-1{k}" if k else None for k in rng.integers(0, 9, n)], pa.string()),
            "moment": pa.array(np.datetime64("2024-02-28", "s") + rng.integers(0, 10**6, n)),
            "sets": ["|".join(rng.choice(["a", "b", "c"], k)) for k in rng.integers(1, 4, n)],
            "lists": [rng.choice(["a", "b", "c"], k).tolist() for k in rng.integers(0, 4, n)],
        }
    )
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=6))})
    how = {
        "numbers": data.draw(st.sampled_from(["none", "standard", "max-abs", "bins"])),
        "n_bins": 4,
        "max_categories": 5,
        "n_hashed": 8,
        "roles": {"many": "category", "text": "text", "price": "number", "day": "date", "sets": "set"},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_columns, "BLOCK_ROWS", data.draw(st.sampled_from([7, 16, 1000])))
        patch.setattr(arrow_columns, "BLOCK_BYTES", data.draw(st.sampled_from([400, 1 << 20])))
        patch.setattr("separatrix.features.columns.schema.SAMPLE", 8)
        patch.setattr("separatrix.features.columns.schema.SAMPLES", 8)
        patch.setattr("separatrix.features.columns.schema.LAID_OUT", 64)
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


PLACE = TableBatch(pa.RecordBatch.from_pydict({"a": ["1", "2", "many"], "b": ["x", "y", "x"]}), Origin("test.csv", 5))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0]}, r"there is no column 'b'; the columns are a; add it"),
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
        ({"a": [1.0]}, {"roles": {"b": "drop"}}, "there is no column 'b'; the columns are a"),
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
    with pytest.raises(ValueError, match="there is no column 'a'"):
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
    with pytest.raises(ValueError, match="fixed once transform"):
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
