"""Text features: blocks, threads, batches and copies leave no trace, and what cannot be asked is said."""

import copy
import itertools
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from separatrix import TextFeatures
from separatrix.features.words import ngrams
from support.text_corpus import CORPUS, plain, same, same_state


def test_blocks_leave_no_trace(monkeypatch):
    texts = [text * k for k, text in enumerate(CORPUS * 5)]
    settings = [
        {},
        {"columns": "vocabulary", "min_df": 2},
        {"analyzer": "char", "ngram_range": (2, 4)},
        {"analyzer": "char_wb", "n_features": 99},
    ]
    expected = [TextFeatures(**one).fit_transform(texts) for one in settings]
    monkeypatch.setattr(ngrams, "BLOCK_BYTES", 16)
    monkeypatch.setattr(ngrams, "BLOCK_TEXTS", 3)
    for one, whole in zip(settings, expected, strict=True):
        assert same(TextFeatures(**one).fit_transform(texts), whole)
        assert same(TextFeatures(**one).fit(texts).transform(texts), whole)


def test_long_texts_and_many_texts():
    rng = np.random.default_rng(0)
    words = [f"w{k}é" if k % 7 == 0 else f"w{k}" for k in range(5000)]
    texts = [" ".join(rng.choice(words, size)) for size in (200_000, 0, 3, 50_000)] + ["w1 w2"] * 5000
    theirs = HashingVectorizer(ngram_range=(1, 2), n_features=2**31 - 1).transform(texts)
    assert same(plain(ngram_range=(1, 2), n_features=2**31 - 1, alternate_sign=True, norm="l2").transform(texts), theirs)


def test_threads_leave_no_trace():
    texts = pa.chunked_array([CORPUS * 7, CORPUS[:2], [], ["x" * 500], CORPUS])
    for settings in ({}, {"columns": "vocabulary"}, {"idf": False, "tf": "count", "norm": None}):
        features = TextFeatures(**settings).fit(texts)
        alone = features.transform(texts)
        for jobs in (2, 3, 200):
            assert same(features.set_params(n_jobs=jobs).transform(texts), alone)
        assert features.transform([]).shape == (0, alone.shape[1])
        assert features.transform(["", ""]).nnz == 0


def test_float32():
    wide, narrow = (TextFeatures(dtype=dtype).fit_transform(CORPUS) for dtype in (np.float64, np.float32))
    assert narrow.dtype == np.float32
    assert np.array_equal(narrow.indices, wide.indices)
    assert narrow.data == pytest.approx(wide.data, rel=2e-7)


SETTINGS = [
    {},
    {"keep_names": 5, "n_features": 50},
    {"idf": False, "alternate_sign": True},
    {"columns": "vocabulary", "min_df": 2, "dtype": np.float32},
    {"columns": "vocabulary", "max_features": 4, "analyzer": "char_wb", "ngram_range": [2, 3]},
]


@pytest.mark.parametrize("settings", SETTINGS)
@given(cuts=st.lists(st.integers(0, 12), max_size=4))
def test_batches_of_any_size_learn_the_same(settings, cuts):
    texts = CORPUS * 2
    whole, parts = TextFeatures(**settings).fit(texts), TextFeatures(**settings)
    bounds = [0, *sorted(cuts), len(texts)]
    for begin, end in itertools.pairwise(bounds):
        parts.partial_fit(texts[begin:end])
    assert parts.n_texts_ == 12
    assert same_state(whole, parts)
    assert same(parts.transform(texts), whole.transform(texts))


@pytest.mark.parametrize("settings", [{}, {"idf": False}, {"norm": None, "tf": "count"}])
def test_a_stream_weighs_each_text_by_those_up_to_it(settings):
    texts, stream, one_by_one = CORPUS * 2, TextFeatures(**settings), TextFeatures(**settings)
    rows = sp.vstack([stream.partial_fit_transform(texts[begin : begin + 5]) for begin in range(0, 12, 5)], format="csr")
    assert same(rows, TextFeatures(**settings).partial_fit_transform(texts))
    for i, text in enumerate(texts):
        assert same(one_by_one.partial_fit([text]).transform([text]), rows[i])
    assert same_state(stream, one_by_one)
    assert same_state(stream, TextFeatures(**settings).fit(texts))
    with pytest.raises(ValueError, match="known only at the end"):
        TextFeatures(columns="vocabulary").partial_fit_transform(texts)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_state_is_plain_and_comes_back_exactly(settings):
    features = TextFeatures(**settings).fit(CORPUS)
    state, arrays = features.get_state()
    assert all(type(array) is np.ndarray and array.dtype.kind in "iuf" for array in arrays.values())
    again = TextFeatures.from_state(json.loads(json.dumps(state)), {key: array.copy() for key, array in arrays.items()})
    assert same_state(features, again)
    assert same(again.transform(CORPUS), features.transform(CORPUS))
    assert again.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    more = ["free entry now", "ΑΣ Α new", "win"]
    assert same_state(features.partial_fit(more), again.partial_fit(more))
    assert same(again.transform(more), features.transform(more))


@pytest.mark.parametrize("columns", ["hashed", "vocabulary"])
def test_a_broken_state_is_refused(columns):
    state, arrays = TextFeatures(columns=columns, n_features=1000, keep_names=9).fit(CORPUS).get_state()
    for key, array in arrays.items():
        worse = [None, array.astype(np.complex128), array[:, None]]
        worse += [array + 1000, -1 - array] if key in ("df_columns", "names_more") else []
        worse += [array[:-1], np.append(array, array)] if key != "names_more" else []
        for bad in worse:
            with pytest.raises(ValueError, match="the state is broken"):
                TextFeatures.from_state(state, {k: v for k, v in (arrays | {key: bad}).items() if v is not None})


def test_pickle_deepcopy_and_clone():
    features = TextFeatures().fit(CORPUS)
    for again in (pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        assert same_state(features, again)
        assert same(again.transform(CORPUS), features.transform(CORPUS))
    assert not clone(features).__sklearn_is_fitted__()
    assert same_state(clone(features).fit(CORPUS), features)


def test_what_cannot_be_asked():
    with pytest.raises(NotFittedError):
        TextFeatures().transform(CORPUS)
    with pytest.raises(NotFittedError):
        TextFeatures(columns="vocabulary", idf=False).transform(CORPUS)
    with pytest.raises(NotFittedError):
        TextFeatures(idf=False).names_of(3)
    for ngram_range in ((0, 1), (2, 1), (1,), (1.5, 2), ("a", "b")):
        with pytest.raises(ValueError, match="1 ≤ fewest ≤ most"):
            TextFeatures(ngram_range=ngram_range).fit(CORPUS)
    wrong = {"analyzer": "phrase", "token_pattern": r"[a-z]+", "tf": "log", "columns": "both", "norm": "l3", "dtype": int}
    for name, value in (wrong | {"n_features": 0, "min_df": 0, "max_features": 0, "keep_names": -1, "idf": "yes"}).items():
        with pytest.raises(ValueError, match=f"The '{name}' parameter of TextFeatures must be"):
            TextFeatures(**{name: value}).fit(CORPUS)
    with pytest.raises(AttributeError, match='vocabulary_ needs columns="vocabulary"'):
        TextFeatures().fit(CORPUS).vocabulary_  # noqa: B018


def test_what_was_learned_with_cannot_change_in_mid_stream():
    features = TextFeatures().fit(CORPUS).set_params(n_features=100)
    for act in (features.partial_fit, features.transform, features.partial_fit_transform):
        with pytest.raises(ValueError, match="n_features was 1048576 when learning began and is 100: it cannot change"):
            act(CORPUS)
    assert features.fit(CORPUS).transform(CORPUS).shape == (6, 100)


def test_a_failed_fit_leaves_the_earlier_one():
    features = TextFeatures(columns="vocabulary").fit(CORPUS)
    before = features.transform(CORPUS)
    for bad in ([""], ["a", 3]):
        with pytest.raises(ValueError):
            features.fit(bad)
        assert same(features.transform(CORPUS), before)


def test_scikit_learn_contract_pipelines_and_grid_search():
    with pytest.warns(Warning, match="Can't test estimator"):
        for estimator, check in estimator_checks_generator(TextFeatures()):
            check(estimator)
    texts, labels = ["win free cup", "see you home", "free win now", "home at six"] * 6, [1, 0, 1, 0] * 6
    search = GridSearchCV(
        make_pipeline(TextFeatures(), RidgeClassifier()), {"textfeatures__columns": ["hashed", "vocabulary"]}, cv=2
    )
    assert search.fit(texts, labels).best_score_ == 1.0
    assert TextFeatures().__sklearn_tags__().input_tags.string


def test_idf_of_a_small_batch_is_that_of_a_large_one():
    features = TextFeatures(n_features=2**12).fit(CORPUS)
    small = features.transform(CORPUS)
    assert not features._idf.size
    idf = features.idf_
    assert idf.shape == (2**12,)
    assert same(features.transform(CORPUS), small)
