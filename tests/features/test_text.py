"""Text features: tokens are those of `re`, matrices those of scikit-learn, in any column of texts; names tell the truth."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from separatrix import TextFeatures
from separatrix.features.words import arrow_text
from separatrix.features.words.ngrams import PATTERNS
from separatrix.kernels.text.counts import place
from support.text_corpus import CORPUS, any_text, grams, plain, same

LEADS = [0x41, 0xC3, 0xA9, 0xE0, 0xA0, 0xED, 0x9F, 0xA0, 0xF0, 0x90, 0x8F, 0xF4, 0xF5, 0xC1, 0x80, 0xFF, 0x20]
any_bytes = st.one_of(st.binary(), st.lists(st.sampled_from(LEADS)).map(bytes))


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.lists(any_text, max_size=4))
@example(["ΑΣ", "ΑΣ.", "ΑΣ.Α", "Σ", "ΑΣΣ", "AΣ\u0301\u0301b", "A\u00adΣ", "İΣ", "ͺΣ"])
def test_tokens_are_those_of_the_regular_expression(pattern, lowercase, texts):
    expected = [re.findall(pattern, text.lower() if lowercase else text) for text in texts]
    assert grams(texts, token_pattern=pattern, lowercase=lowercase) == expected


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_character_of_unicode_alone_and_around_a_sigma(pattern):
    points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = [" ".join(points[at : at + 4096]) for at in range(0, len(points), 4096)]
    texts += ["".join(points[at : at + 4096]) for at in range(0, len(points), 4096)]
    texts += [" ".join(f"A{c}ΣA{c} AΣ{c} {c}Σ" for c in points[at : at + 4096]) for at in range(0, 0x20000, 4096)]
    assert grams(texts, token_pattern=pattern) == [re.findall(pattern, text.lower()) for text in texts]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(st.lists(any_bytes, max_size=4))
@example([b"\xf0\x9f\x98", b"a\xe2\x82b", b"\xed\xa0\x80", b"\xc3(\xa9", b"\xf4\x90\x80\x80", b"\xce\xa3\xce"])
def test_malformed_bytes_are_replaced_as_python_replaces_them(pattern, texts):
    expected = [re.findall(pattern, text.decode("utf-8", "replace").lower()) for text in texts]
    assert grams(texts, token_pattern=pattern) == expected
    assert grams(pa.array(texts, pa.binary()), token_pattern=pattern) == expected


def test_half_a_surrogate_pair_is_three_malformed_bytes():
    for texts in (["a\ud800b", "c"], np.array(["a\ud800b", "c"]), np.array(["a\ud800b", "c"], object)):
        assert grams(texts, token_pattern=r"\S+") == [["a\ufffd\ufffd\ufffdb"], ["c"]]


@given(
    st.lists(any_text, max_size=5),
    st.sampled_from(["word", "char", "char_wb"]),
    st.sampled_from(list(PATTERNS)),
    st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (3, 5)]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 7, 1000, 2**20, 2**31 - 1]),
    st.sampled_from(["l2", None]),
)
def test_hashed_counts_are_those_of_scikit_learn(texts, analyzer, pattern, ngram_range, signed, binary, width, norm):
    theirs = HashingVectorizer(
        analyzer=analyzer,
        token_pattern=pattern if analyzer == "word" else None,
        ngram_range=ngram_range,
        alternate_sign=signed,
        binary=binary,
        n_features=width,
        norm=norm,
    )
    ours = plain(
        analyzer=analyzer,
        token_pattern=pattern,
        ngram_range=ngram_range,
        alternate_sign=signed,
        tf="binary" if binary else "count",
        n_features=width,
        norm=norm,
    )
    if texts:
        assert same(ours.transform(texts), theirs.transform(texts))


def test_the_lowest_hash_has_a_column_too():
    keys = np.empty(3, np.uint64)
    place(np.array([2**31, 5, 2**32 - 5], np.uint32), np.array([0, 3]), 1000, True, keys)
    sign = 1 << 31
    assert keys.tolist() == [sign | 2**31 % 1000, 5, sign | 5]


@given(st.lists(any_text, min_size=1, max_size=6), st.sampled_from(["word", "char_wb"]), st.integers(1, 3))
def test_vocabulary_and_counts_are_those_of_scikit_learn(texts, analyzer, min_df):
    theirs = CountVectorizer(analyzer=analyzer, ngram_range=(1, 2), min_df=min_df)
    ours = plain(columns="vocabulary", analyzer=analyzer, ngram_range=(1, 2), min_df=min_df)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(ValueError, match=r"the vocabulary is empty: .* none of them in min_df="):
            ours.fit_transform(texts)
        return
    got = ours.fit_transform(texts)
    expected.sort_indices()
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert ours.vocabulary_ == theirs.vocabulary_
    assert same(got, expected)
    assert same(ours.transform(texts), expected)
    assert same(clone(ours).fit(texts).transform(texts), expected)


def test_of_too_many_columns_the_most_frequent_ones_stay():
    ours = plain(columns="vocabulary", max_features=3, token_pattern=r"\w+").fit(["b a a", "c b a", "d c e"])
    assert ours.vocabulary_ == {"a": 0, "b": 1, "c": 2}
    assert ours.fit_transform(["b a a", "c b a", "d c e"]).toarray().tolist() == [[2, 1, 0], [1, 1, 1], [0, 0, 1]]


@given(st.lists(st.text(alphabet="abcd ", max_size=12), min_size=1), st.integers(1, 3), st.integers(1, 6))
def test_of_equally_frequent_ones_the_first_in_order_stay(texts, min_df, most):
    words = [text.split() for text in texts]
    counts, df = Counter(w for text in words for w in text), Counter(w for text in words for w in set(text))
    ranked = sorted((-count, word) for word, count in counts.items() if df[word] >= min_df)
    expected = sorted(word for _, word in ranked[:most])
    ours = plain(columns="vocabulary", max_features=most, min_df=min_df, token_pattern=r"\S+").partial_fit(texts)
    if expected:
        assert ours.get_feature_names_out().tolist() == expected
    else:
        with pytest.raises(ValueError, match="the vocabulary is empty"):
            ours.transform(texts)


@pytest.mark.parametrize("columns", ["vocabulary", "hashed"])
@pytest.mark.parametrize("norm", ["l2", None])
@pytest.mark.parametrize("tf", ["sublinear", "count", "binary"])
def test_tf_idf_is_that_of_scikit_learn(columns, norm, tf):
    theirs = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=tf == "sublinear", binary=tf == "binary", norm=norm)
    ours = plain(columns=columns, ngram_range=(1, 2), tf=tf, idf=True, norm=norm)
    expected = theirs.fit_transform(CORPUS)
    for got in (ours.fit_transform(CORPUS), ours.fit(CORPUS).transform(CORPUS)):
        names = ours.get_feature_names_out()
        found = {(i, names[j]): v for i, j, v in zip(*sp.find(got), strict=True)}
        wanted = {(i, theirs.get_feature_names_out()[j]): v for i, j, v in zip(*sp.find(expected), strict=True)}
        assert found == pytest.approx(wanted, rel=1e-14)
    if columns == "vocabulary":
        assert ours.idf_ == pytest.approx(theirs.idf_, rel=1e-15)
        more = ["free win", "new words"]
        assert ours.transform(more).toarray() == pytest.approx(theirs.transform(more).toarray(), rel=1e-14)


def test_signed_counts_are_weighed_by_their_size():
    signed = plain(alternate_sign=True, tf="sublinear", n_features=4).transform(CORPUS)
    counts = plain(alternate_sign=True, n_features=4).transform(CORPUS)
    sizes = np.abs(counts.data)
    expected = np.where(sizes > 0, np.sign(counts.data) * (1 + np.log(np.maximum(sizes, 1))), 0)
    assert np.array_equal(signed.data, expected)


COLUMNS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda texts: (text for text in texts),
    "U": np.asarray,
    "object": lambda texts: np.asarray(texts, dtype=object),
    "strided": lambda texts: np.asarray([text for text in texts for _ in range(2)], dtype=object)[::2],
    "column": lambda texts: np.asarray(texts, dtype=object)[:, None],
    "T": lambda texts: np.asarray(texts, dtype=np.dtypes.StringDType()),
    "bytes": lambda texts: [text.encode() for text in texts],
    "S": lambda texts: np.asarray([text.encode() for text in texts]),
    "pandas": pd.Series,
    "pandas object": lambda texts: pd.Series(texts, dtype=object),
    "pandas string": lambda texts: pd.Series(texts, dtype="string[pyarrow]"),
    "pandas python": lambda texts: pd.Series(texts, dtype="string[python]"),
    "category": lambda texts: pd.Series(texts, dtype="category"),
    "frame": lambda texts: pd.DataFrame({"text": texts}),
    "index": pd.Index,
    "polars": pl.Series,
    "polars cat": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "polars frame": lambda texts: pl.DataFrame({"text": texts}),
    "arrow": pa.array,
    "large": lambda texts: pa.array(texts, pa.large_string()),
    "view": lambda texts: pa.array(texts, pa.string_view()),
    "binary": lambda texts: pa.array([text.encode() for text in texts], pa.binary()),
    "binary view": lambda texts: pa.array([text.encode() for text in texts], pa.binary_view()),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "slice": lambda texts: pa.array(["before", *texts, "after"]).slice(1, len(texts)),
    "chunked": lambda texts: pa.chunked_array([texts[:2], [], texts[2:]], pa.string()),
    "table": lambda texts: pa.table({"text": texts}),
}


@pytest.mark.parametrize("form", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_any_kind_give_the_same_features(form):
    expected = TextFeatures().fit_transform(CORPUS)
    assert same(TextFeatures().fit_transform(form(CORPUS)), expected)
    assert same(TextFeatures().fit(CORPUS).transform(form(CORPUS)), expected)


MISSING = {
    "None": [None, "a b", None],
    "NaN": [float("nan"), "a b", np.nan],
    "object": np.array([np.nan, "a b", None], object),
    "pandas": pd.Series([None, "a b", None]),
    "pandas object": pd.Series([np.nan, "a b", pd.NA], dtype=object),
    "category": pd.Series([None, "a b", None], dtype="category"),
    "polars": pl.Series([None, "a b", None]),
    "arrow": pa.array([None, "a b", None]),
    "dictionary": pa.array([None, "a b", None]).dictionary_encode(),
}


@pytest.mark.parametrize("column", MISSING.values(), ids=MISSING)
def test_what_is_missing_is_an_empty_text(column):
    assert same(TextFeatures().fit_transform(column), TextFeatures().fit_transform(["", "a b", ""]))


def test_missing_values_of_which_the_bytes_are_there_are_empty_too():
    offsets, data = pa.py_buffer(np.array([0, 2, 4], np.int32)), pa.py_buffer(b"abcd")
    column = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), offsets, data])
    assert column.to_pylist() == [None, "cd"]
    assert grams(column) == [[], ["cd"]]


def test_empty_columns_and_columns_of_nothing():
    assert TextFeatures(idf=False).transform([]).shape == (0, 2**20)
    assert TextFeatures().fit([]).transform([]).shape == (0, 2**20)
    assert TextFeatures(idf=False).transform(pa.nulls(3)).nnz == 0
    assert TextFeatures(idf=False).transform(pa.array([], pa.string())).shape[0] == 0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one text", "X is one str; .* put it in a list"),
        (b"one text", "X is one bytes"),
        (["a", 3], r"X\[1\] is 3, a int: text features need strings"),
        (["a", "b", ["c"]], r"X\[2\] is \['c'\], a list"),
        (np.array(["a", 2.5], object), r"X\[1\] is 2.5, a float"),
        (np.arange(3), "X holds int64, not text"),
        (pd.Series([1.5, 2.5]), "X holds double, not text"),
        (pl.Series([1, 2]), "X holds int64, not text"),
        (pa.array([1, 2]), "X holds int64, not text"),
        (pa.array([["a"]]), "X holds list<.*>, not text"),
        (pd.Series([1, 2], dtype="category"), "X holds int64, not text"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), r"X has shape \(1, 2\); text features need one column"),
        (np.array([["a", "b"]]), r"X has shape \(1, 2\)"),
        (sp.csr_matrix((2, 3)), r"X has shape \(2, 3\)"),
        (7, "X is a int"),
        ({"a": 1}, "X is a dict"),
        (None, "X is a NoneType"),
    ],
)
def test_what_is_no_text_is_named(X, message):
    for act in (TextFeatures().fit, TextFeatures(idf=False).transform):
        with pytest.raises(ValueError, match=message):
            act(X)


def test_a_broken_arrow_array_is_refused():
    for bounds in ([0, 9, 2], [0, 3, 1, 4], [0, -5, 2]):
        offsets = pa.py_buffer(np.array(bounds, np.int32))
        broken = pa.Array.from_buffers(pa.string(), len(bounds) - 1, [None, offsets, pa.py_buffer(b"abcd")])
        with pytest.raises(ValueError, match="the Arrow array X is broken"):
            TextFeatures(idf=False).transform(broken)


def test_a_text_too_long_is_named(monkeypatch):
    monkeypatch.setattr(arrow_text, "LONGEST", 10)
    with pytest.raises(ValueError, match="text 1 of X has 11 bytes; 10 are the most"):
        TextFeatures(idf=False).transform(["a" * 10, "b" * 11])


def test_names_of_hashed_columns():
    features = TextFeatures().fit(CORPUS)
    X = features.transform(["free entry"])
    assert {tuple(features.names_of(j)) for j in X.indices} == {("free",), ("entry",), ("free entry",)}
    assert not any(features.has_unnamed(j) for j in X.indices)
    unseen = features.transform(["unheard"]).indices[0]
    assert features.names_of(unseen) == []
    names = features.get_feature_names_out()
    assert names[unseen] == f"column {unseen}"
    assert sorted(names[X.indices]) == ["entry", "free", "free entry"]
    with pytest.raises(IndexError, match="there is no column -1: there are 1048576"):
        features.names_of(-1)


@given(st.lists(any_text, min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 12), st.booleans())
def test_names_tell_collisions_and_what_was_not_kept(texts, width, limit, split):
    features = plain(n_features=width, keep_names=limit, token_pattern=r"\w+")
    for batch in [texts[:1], texts[1:]] if split else [texts]:
        features.partial_fit(batch)
    column = {
        w: plain(n_features=width, token_pattern=r"\w+").transform([w]).indices[0]
        for t in grams(texts, token_pattern=r"\w+")
        for w in t
    }
    kept = list(column)[:limit]
    for j in range(width):
        assert features.names_of(j) == [w for w in kept if column[w] == j]
        assert features.has_unnamed(j) == (limit > 0 and any(column[w] == j for w in list(column)[limit:]))
    names = features.get_feature_names_out()
    shown = [" | ".join(features.names_of(j) + ["…"] * features.has_unnamed(j)) or f"column {j}" for j in range(width)]
    assert names.tolist() == shown


def test_real_text_is_that_of_scikit_learn(data_folder):
    import gzip

    with gzip.open(data_folder / "sms_spam" / "SMSSpamCollection.gz", "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n").split("\t", 1)[1] for line in file]
    assert any(not text.isascii() for text in texts)
    assert same(plain(alternate_sign=True, norm="l2").transform(texts), HashingVectorizer().transform(texts))
    ours = plain(columns="vocabulary", token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2)).fit_transform(texts)
    theirs = CountVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2)).fit_transform(texts)
    theirs.sort_indices()
    assert same(ours, theirs)
    counted = Counter(gram for text in grams(texts, token_pattern=r"\w+") for gram in text)
    assert counted == Counter(word for text in texts for word in re.findall(r"\w+", text.lower()))
