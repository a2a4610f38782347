"""Columns of tokens, CoNLL files, and what templates make of them."""

import gzip
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import SequencePerceptron, read_conll, train
from separatrix.data.errors import DataError
from separatrix.sequences.templates import TemplateFeatures, default_templates, parse_template, shape
from separatrix.sequences.tokens import Sentences, distinct

SENTENCES = [[("Ärger", "N"), ("im", "P"), ("Büro-12", "N")], [], [("a", "D")]]
TAGS = [["B-x", "O", "B-x"], [], ["O"]]


def by_hand(template, sentence, t):
    """What a template's parts are worth at token t, in plain Python; the mark says how far outside a place is."""
    worth = []
    for piece in template.split("|") if template != "bias" else ():
        name, n, offset = re.fullmatch(r"([a-z]+)(\d*)\[(-?\d+)\]", piece).groups()
        at = t + int(offset)
        if not 0 <= at < len(sentence):
            worth.append((at if at < 0 else at - len(sentence) + 1, at < 0))
            continue
        token = sentence[at]
        value = token[{"pos": 1, "col": int(n or 0)}.get(name, 0)]
        views = {
            "lower": value.lower(),
            "prefix": value[: int(n or 1)],
            "suffix": value[-int(n or 1) :],
            "shape": shape(value),
            "brief": shape(value, True),
        }
        worth.append((name, views.get(name, value)))
    return (template, tuple(worth))


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=6)


@given(st.lists(st.lists(st.tuples(words, st.sampled_from(["N", "V"])), max_size=5), min_size=1, max_size=4))
def test_features_are_equal_where_their_parts_are(sentences):
    templates = [*default_templates(2), "suffix2[-1]|shape[2]", "col1[0]|prefix9[1]"]
    features = TemplateFeatures(templates)
    encoded = features.encode(sentences, True)
    expected = [by_hand(text, s, t) for s in sentences for t in range(len(s)) for text in templates]
    number_of = {}
    numbers = [number_of.setdefault(each, len(number_of)) for each in expected]
    assert encoded.indices.tolist() == numbers
    assert features.n == len(number_of)
    again = features.encode(sentences, False)
    assert np.array_equal(again.indices, encoded.indices)
    assert np.array_equal(again.starts, encoded.starts)


def test_lower_case_is_that_of_python():
    for word in ("ÄÖ", "ǅ", "STRASSE", "Ωσ"):
        features = TemplateFeatures(["lower[0]"])
        features.encode([[word]], True)
        assert features.encode([[word.lower()]], False).indices.tolist() == [0]


def test_unknown_features_are_left_out_and_late_ones_get_new_numbers():
    features = TemplateFeatures(["word[0]", "word[-1]"])
    first = features.encode([["a", "b"]], True)
    assert first.indices.tolist() == [0, 1, 2, 3]
    assert features.encode([["b", "zzz"]], False).indices.tolist() == [2, 1]
    assert features.encode([["zzz"]], True).indices.tolist() == [4, 1]
    assert features.names_of([["b", "zzz"]], 0, 1) == ["word[0]=zzz"]
    assert features.names_of([["b", "zzz"]], 0, 0) == ["word[0]=b", "word[-1]=<start-1>"]


def test_hashed_features_need_no_vocabulary_and_are_below_their_number():
    model = SequencePerceptron(n_features=64, random_state=0).fit(SENTENCES, TAGS)
    assert model.n_features_in_ == 64
    assert model.encode(SENTENCES).indices.max() < 64
    assert model.predict(SENTENCES) == TAGS


def test_threads_and_blocks_change_nothing():
    rng = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(300)]
    X = [[vocabulary[k] for k in rng.integers(300, size=rng.integers(0, 60))] for _ in range(1200)]
    y = [["even" if int(word[1:]) % 2 == 0 else "odd" for word in sequence] for sequence in X]
    model = SequencePerceptron(max_iter=1, random_state=0, templates=["word[0]", "word[-1]|word[0]"]).fit(X, y)
    whole = TemplateFeatures(["word[0]", "word[-1]|word[0]"])
    pieces = TemplateFeatures(["word[0]", "word[-1]|word[0]"])
    everything = whole.encode(X, True)
    assert int(everything.starts[-1]) > 2 * (1 << 14)
    one_by_one = [pieces.encode(X[i : i + 100], True).indices for i in range(0, 1200, 100)]
    assert np.array_equal(np.concatenate(one_by_one), everything.indices)
    predicted = model.predict(X)
    assert model.set_params(n_jobs=3).predict(X) == predicted
    assert [model.predict_single(sequence) for sequence in X[:50]] == predicted[:50]


def test_lists_tuples_and_files_give_the_same_model():
    pairs = [list(zip(*pair, strict=True)) for pair in zip(SENTENCES, TAGS, strict=True)]
    text = "\n\n".join("\n".join(f"{word}\t{pos}\t{tag}" for (word, pos), tag in pair) for pair in pairs if pair)
    from_file, tags = read_conll(io.BytesIO(gzip.compress(text.encode())))
    assert list(from_file) == [SENTENCES[0], SENTENCES[2]]
    assert tags == [TAGS[0], TAGS[2]]
    assert list(tags[1:]) == [TAGS[2]] and list(from_file[1:]) == [SENTENCES[2]]
    file_model = SequencePerceptron(random_state=0, order="cyclic").fit(from_file, tags)
    list_model = SequencePerceptron(random_state=0, order="cyclic").fit([SENTENCES[0], SENTENCES[2]], [TAGS[0], TAGS[2]])
    assert all(map(np.array_equal, file_model.weights(), list_model.weights()))
    assert file_model.predict(SENTENCES) == TAGS


def test_distinct_strings_are_numbered_as_they_come():
    values = distinct(Sentences.of([["b", "a"], ["b", "", "a longer one", "c"]]).columns[0])
    assert values.value_of.tolist() == [0, 1, 0, 2, 3, 4]
    assert values.strings().to_pylist() == ["b", "a", "", "a longer one", "c"]


@pytest.mark.parametrize(
    ("text", "sequences"),
    [
        (b"a O\nb O\n\n\nc O\n", [["a", "b"], ["c"]]),
        (b"\n\na O\r\n \r\nb O", [["a"], ["b"]]),
        (b"a   O \n\tb\tO\n", None),
        (b"\xef\xbb\xbfa\tO\nb c\tO\n", [["a", "b c"]]),
        (b"# # O\n-DOCSTART- -X- O\n", [[("#", "#"), ("-DOCSTART-", "-X-")]]),
        (b" a \t N \tO \nb\tN\tO\n \tN\tO\n", [[("a", "N"), ("b", "N"), (" ", "N")]]),
        ("a\u00a0b N O\u00a0\nc N O\n".encode(), [[("a\u00a0b", "N"), ("c", "N")]]),
        (b"# text = a\n# sent_id = 1\na N O\n\n# newdoc\n# N O\nb = O\n", [[("a", "N")], [("#", "N"), ("b", "=")]]),
        (b"# text\ta\na\tN\tO\n\n# NN\tN\tO\n", [[("a", "N")], [("# NN", "N")]]),
        (b"-DOCSTART- -X-\n\na N O\n", [[("a", "N")]]),
        (b"a\x0bb N O\nc\x0c N O\n", [[("a\x0bb", "N"), ("c\x0c", "N")]]),
    ],
)
def test_lines_as_they_are_found(text, sequences):
    if sequences is None:
        X, _ = read_conll(io.BytesIO(b"a   O \n b  O\n"))
        assert list(X) == [[("a",), ("b",)]]
        return
    X, y = read_conll(io.BytesIO(text))
    assert {tag for tags in y for tag in tags} == {"O"}
    assert list(X) == [[token if isinstance(token, tuple) else (token,) for token in each] for each in sequences]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a N O\nb O\n", r"line 2 has 2 columns, and the lines before it have 3"),
        (b"a N O\n\nb N O x\n", r"line 3 has 4 columns"),
        (b"a\tN\tO\nb\t\tO\n", r"line 2: column 2 is empty"),
        (b"\n \n", "has no token"),
        (b"", "has no token"),
        (b"# text = a\n# sent_id = 1\n", "has no token"),
        (b"PK\x03\x04 a O\n", "this is a zip archive"),
        (b"PAR1 a O\n", "this is parquet, and not a text"),
        (b"a\nb\n", "has only one column"),
        (b"a\tN\tO\nb\tN\t \n", "line 2: column 3 is empty"),
        (b"a N O\n# text = b\nc N O\n", "line 2 has 4 columns"),
        (b"a N O\n\n#b O\n", "line 3 has 2 columns"),
        (b"a\tN\tO\nb N O\n", "line 2 has 1 column, and the lines before it have 3.*separated by tabs"),
    ],
)
def test_malformed_columns_are_named_with_their_line(text, message):
    with pytest.raises(DataError, match=message):
        read_conll(io.BytesIO(text))


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (["word"], r"the part 'word': write a view and a place"),
        (["wrd[0]"], r"the unknown view 'wrd'.*did you mean"),
        (["suffix[0]"], r"the unknown view 'suffix'"),
        (["pos[0]"], r"needs column 1, counted from 0, and the tokens have only one column"),
        (["word[500]"], "500 tokens away"),
        (["word[0]", "word[0]"], r"repeated: \['word\[0\]'\]"),
        ([], "must be a list of strings such as 'word\\[0\\]', and it is empty"),
        ([7], "and 7 is none"),
    ],
)
def test_a_wrong_template_is_named(templates, message):
    with pytest.raises(ValueError, match=message):
        SequencePerceptron(templates=templates).fit([["a"]], [["x"]])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([["a", ("b", "c")]], TypeError, r"X\[0\]\[1\] is \('b', 'c'\), and the first token is a string"),
        ([[("a", "b")], [("c",)]], TypeError, r"X\[1\]\[0\] is \('c',\), and the first token is a tuple of 2 strings"),
        ([["a", None]], TypeError, r"X\[0\]\[1\] is None"),
        ([["a", "\ud800"]], ValueError, r"X\[0\]\[1\] .* no valid Unicode text"),
    ],
)
def test_a_token_unlike_the_first_is_named(X, error, message):
    with pytest.raises(error, match=message):
        SequencePerceptron().fit(X, [["x"] * len(sequence) for sequence in X])


def test_the_number_of_columns_stays():
    model = SequencePerceptron().fit(SENTENCES, TAGS)
    with pytest.raises(ValueError, match="the tokens have 1 columns, but the model was trained on 2"):
        model.predict([["a"]])
    assert model.predict([[], []]) == [[], []]
    assert [len(parse_template(text, 2)) for text in ("bias", "word[0]|pos[1]")] == [0, 2]


def test_a_document_mark_without_columns_is_taken_for_an_empty_line(tmp_path):
    path = tmp_path / "documents.conll"
    path.write_bytes(b"\xef\xbb\xbf-DOCSTART-\r\n\r\na x O \r\nb x B-y\r\n-DOCSTART-\r\n1 x O\r\n")
    X, y = read_conll(path)
    assert [*X] == [[("a", "x"), ("b", "x")], [("1", "x")]] and [*y] == [["O", "B-y"], ["O"]]
    path.write_text("-DOCSTART- -X- O\n\na x O\n")
    assert [*read_conll(path)[1]] == [["O"], ["O"]]
    path.write_text("a x O\n-DOCSTARTS y\n")
    with pytest.raises(DataError, match="line 2 has 2 columns, and the lines before it have 3"):
        read_conll(path)
    path.write_text("-DOCSTART-\n")
    with pytest.raises(DataError, match="has no token"):
        read_conll(path)


def test_text_that_is_not_utf_8_is_read_with_a_warning_or_as_it_is_named():
    text = "é X\nb Y\n"
    with pytest.warns(UserWarning, match="the text is not UTF-8: read as windows-1252"):
        assert read_conll(io.BytesIO(text.encode("latin-1")))[0][0] == [("é",), ("b",)]
    assert read_conll(io.BytesIO("щ X\n".encode("cp1251")), encoding="windows-1251")[0][0] == [("щ",)]
    late = b"a X\n\n" * 300_000 + b"b\xff Y\xff\0\n"
    X, y = read_conll(io.BytesIO(late))
    assert (X[-1], y[-1]) == ([("b\ufffd",)], ["Y\ufffd"])


def test_a_tag_that_the_scheme_forbids_is_named_by_its_line(tmp_path):
    path = tmp_path / "wrong.conll"
    path.write_text("\na O\nb O\n\nc B-x\nd I-y\n")
    for settings in ({}, {"engine": "local:1"}):
        with pytest.raises(DataError, match=r"^\S*wrong.conll, line 6, has 'I-y' after 'B-x', which scheme='bio' forbids"):
            train(str(path), sequence=True, scheme="bio", **settings)


def test_tags_may_be_strings_of_numpy_beside_those_of_python():
    model = SequencePerceptron(max_iter=1).fit([["a", "b"]], [[np.str_("x"), "y"]])
    assert model.classes_.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match="all of one kind; they are int, str"):
        SequencePerceptron().fit([["a", "b"]], [[np.str_("x"), 1]])


def test_a_wide_first_line_takes_no_memory_for_the_others():
    text = b" ".join([b"w"] * 200_000) + b"\n" + b"a b O\n" * 200_000
    with pytest.raises(DataError, match="line 2 has 3 columns, and the lines before it have 200000"):
        read_conll(io.BytesIO(text))
    X, y = read_conll(io.BytesIO(b"a b\n" * 3 + b"\nc d"))  # no token is longer than it has to be
    assert [list(X), list(y)] == [[[("a",)] * 3, [("c",)]], [["b"] * 3, ["d"]]]
