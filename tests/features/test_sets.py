"""Fields with several values, and lists, have a feature for each item; texts with commas stay what they are."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from separatrix import TableFeatures
from support.text_corpus import same, same_state

GENRES = ["Action", "Adventure", "Comedy", "Drama", "Film noir", "Thriller", "Western"]


def drawn(items, n=200, seed=0, largest=3):
    rng = np.random.default_rng(seed)
    return [sorted(rng.choice(items, rng.integers(1, largest + 1), replace=False).tolist()) for _ in range(n)]


@pytest.mark.parametrize("delimiter", ["|", ";", ", ", ",", "/", " / ", "; "])
def test_items_that_recur_are_features(delimiter):
    sets = drawn(GENRES)
    texts = [delimiter.join(items) for items in sets]
    features = TableFeatures().fit({"genres": texts})
    assert features.roles_ == {"genres": "set"}
    names = [name.removeprefix("genres has ") for name in features.get_feature_names_out()]
    assert sorted(names) == GENRES
    X = features.transform({"genres": texts}).toarray()
    assert [sorted(names[j] for j in np.flatnonzero(row)) for row in X] == sets


def names(first, last, seed=1, n=2000):
    rng = np.random.default_rng(seed)
    return [f"{rng.choice(last)}, {rng.choice(first)}" for _ in range(n)]


FIRST = [f"First{k}" for k in range(60)]
LAST = [f"Last{k}" for k in range(400)]
WORDS = "the phone works very well but its screen breaks and nobody answers when one calls them again after that".split()


def remarks(n=300):
    rng = np.random.default_rng(2)
    return [", ".join(" ".join(rng.choice(WORDS, rng.integers(2, 8))) for _ in range(rng.integers(1, 4))) for _ in range(n)]


def addresses(n=600):
    rng = np.random.default_rng(3)
    return [f"{rng.integers(1, 99)} Main St, {rng.choice(LAST[:30])}, {rng.choice(['IL', 'NY', 'CA'])}" for _ in range(n)]


def paths(n=600):
    rng = np.random.default_rng(4)
    return ["/".join(["", "usr", *(f"d{level}{rng.integers(3)}" for level in range(rng.integers(1, 5)))]) for _ in range(n)]


@pytest.mark.parametrize(
    "texts",
    [
        names(FIRST, LAST),
        names(FIRST[:5], LAST[:5]),
        remarks(),
        addresses(),
        paths(),
        ["https://a.org/b/c", "https://a.org/b", "https://a.org/c/b"] * 50,
        ["male/female", "female/male"] * 50,
        ["a, b", "a", "b"] * 50,
        ["120/80", "110/70", "120/70", "110/80"] * 50,
        ["Springfield, IL", "Boston, MA", "Salem, MA"] * 50,
        ["yes", "no"] * 100,
        ["a|b", "b|c"],
    ],
    ids="names few-names remarks addresses paths urls pair combinations pressure cities words few".split(),
)
def test_texts_with_delimiters_are_no_sets(texts):
    assert TableFeatures().fit({"c": texts, "x": np.arange(len(texts)) % 3}).roles_["c"] in ("category", "text", "drop")


LISTS = [["red", "green"], ["red"], None, [], ["blue", None, "red", "red"]]


def test_lists_are_sets_whatever_holds_them():
    expected = TableFeatures().fit(pa.table({"c": LISTS}))
    assert expected.roles_ == {"c": "set"}
    assert expected.get_feature_names_out().tolist() == ["c has red", "c has green", "c has blue", "c is missing"]
    X = expected.transform(pa.table({"c": LISTS}))
    assert X.toarray().tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0]]
    holders = [
        pd.DataFrame({"c": LISTS}),
        pl.DataFrame({"c": LISTS}),
        pa.table({"c": pa.array(LISTS, pa.large_list(pa.large_string()))}),
        pa.table({"c": pa.array([[], *LISTS], pa.list_(pa.string()))}).slice(1),
        {"c": LISTS},
    ]
    for holder in holders:
        ours = TableFeatures().fit(holder)
        assert same_state(ours, expected)
        assert same(ours.transform(holder), X)


def test_lists_of_whole_numbers_are_sets_and_those_of_others_are_refused():
    features = TableFeatures().fit({"c": [[1, 2], [2]]})
    assert features.get_feature_names_out().tolist() == ["c has 1", "c has 2"]
    for lists in ([[0.5, 1.0]], [[{"a": 1}]]):
        with pytest.raises(ValueError, match=r"column 'c' holds .*, of which no features can be made"):
            TableFeatures().fit({"c": lists})


def test_text_and_lists_are_told_apart_at_prediction():
    texts = TableFeatures().fit({"c": ["|".join(items) for items in drawn(GENRES)]})
    assert same(texts.transform({"c": [["Drama", "Action"]]}), texts.transform({"c": ["Action | Drama"]}))
    lists = TableFeatures().fit({"c": LISTS})
    with pytest.raises(ValueError, match=r"'red\|green' is string, where lists were learned from"):
        lists.transform({"c": ["red|green"]})


def test_unseen_and_missing_items():
    features = TableFeatures(roles={"c": "set"}).fit({"c": ["a;b", "b", None]})
    assert features.get_feature_names_out().tolist() == ["c has a", "c has b", "c is missing"]
    X = features.transform({"c": ["z;b;;b", None, "", "z"]})
    assert X.toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    complete = TableFeatures(roles={"c": "set"}).fit({"c": ["a;b", "b"]})
    assert complete.transform({"c": [None]}).nnz == 0


def test_items_beyond_the_largest_number_are_hashed():
    features = TableFeatures(roles={"c": "set"}, max_categories=2, n_hashed=4).fit({"c": ["a|b|c|d", "e"]})
    assert features.n_features_out_ == 6
    assert features.transform({"c": ["a|c|e"]}).toarray()[0, :2].tolist() == [1, 0]
    assert any("c has c" in features.names_of(j) for j in range(2, 6))
    again = TableFeatures.from_state(*features.get_state())
    assert same(again.transform({"c": ["a|c|e", "f"]}), features.transform({"c": ["a|c|e", "f"]}))


def test_sets_beside_numbers_and_texts():
    n = 120
    table = {
        "genres": ["|".join(items) for items in drawn(GENRES, n)],
        "x": np.arange(n) % 5,
        "remark": [f"call me at {k} or write to {k + 1} please" for k in range(n)],
        "day": ["2024-03-01", "2024-03-02", "2024-03-04"] * (n // 3),
    }
    features = TableFeatures().fit(table)
    assert features.roles_ == {"genres": "set", "x": "number", "remark": "text", "day": "date"}
    X = features.transform(table)
    assert X.has_sorted_indices
    names = features.get_feature_names_out()
    row = {names[j] for j in X[1].indices}
    assert {"x > 0", "day > 2024-03-01", "day day of week=Sat", "remark: call"} <= row
    assert {f"genres has {item}" for item in table["genres"][1].split("|")} <= row
    assert sum(features.sums_by_column(X[1].indices, X[1].data).values()) == pytest.approx(X[1].data.sum())
