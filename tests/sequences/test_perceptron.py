"""Input, late tags and features, weights, early stopping, and messages about what is wrong."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

from separatrix import SequencePerceptron
from separatrix.sequences.attributes import attributes_of

X = [
    [{"word": "the"}, {"word": "dog"}, {"word": "barks"}],
    [{"word": "a"}, {"word": "cat"}, {"word": "sleeps"}],
    [{"word": "the"}, {"word": "cat"}, {"word": "barks"}],
    [{"word": "barks"}],
    [],
]
Y = [["D", "N", "V"], ["D", "N", "V"], ["D", "N", "V"], ["V"], []]


def fitted(**settings):
    return SequencePerceptron(**{"random_state": 0} | settings).fit(X, Y)


def test_attributes_have_the_names_of_python_crfsuite():
    token = {"a": "b", "n": 2, "f": np.float64(1.5), "t": True, "F": False, "l": ["x", "y"], "d": {"u": "v", "w": 0.5}}
    expected = {"a:b": 1.0, "n": 2.0, "f": 1.5, "t": 1.0, "F": 0.0, "l:x": 1.0, "l:y": 1.0, "d:u:v": 1.0, "d:w": 0.5}
    assert dict(attributes_of(token)) == expected
    assert list(attributes_of(["walk", "shop"])) == [("walk", 1.0), ("shop", 1.0)]
    assert list(attributes_of({b"a": b"b", "l": [b"x"]})) == [("a:b", 1.0), ("l:x", 1.0)]


def test_the_parts_of_an_encoding_agree_with_the_generator():
    token = {"a": "b", "n": 2, "t": True, "l": ["x"], "d": {"u": "v"}}
    model = SequencePerceptron().fit([[token, ["a:b", "other"]]], [["p", "q"]])
    assert model.features_.names() == [*(name for name, _ in attributes_of(token)), "other"]
    encoded = model.encode([[token, ["a:b", "unknown"]]])
    assert encoded.data.tolist() == [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    assert encoded.indices.tolist() == [0, 1, 2, 3, 4, 0]


def test_it_learns_and_predicts_lists_of_tags():
    model = fitted()
    assert model.predict(X) == Y
    assert model.predict([]) == []
    assert model.predict_single([{"word": "a"}, {"word": "dog"}, {"word": "sleeps"}]) == ["D", "N", "V"]
    assert model.score(X, Y) == 1.0
    assert model.converged_
    assert model.mistakes_per_pass_[-1] == 0
    assert model.coef_.shape == (3, model.n_features_in_)
    assert model.transitions_.shape == (3, 3)
    assert model.start_.argmax() == 0
    assert sum(model.mistakes_per_pass_) == model.n_mistakes_ == len(model.ledger_)


def test_weights_are_shown_by_name_as_sklearn_crfsuite_does():
    model = fitted()
    links, states = model.transition_features_, model.state_features_
    assert links["D", "N"] == model.transitions_[0, 1] > 0
    assert len(links) == np.count_nonzero(model.transitions_)
    model.transitions_[:] = 7.0  # a copy
    assert model.transition_features_ == links
    assert len(states) == np.count_nonzero(model.coef_) > 3
    names, tags = model.features_.names(), model.classes_.tolist()
    assert all(model.coef_[tags.index(tag), names.index(name)] == weight for (name, tag), weight in states.items())
    with pytest.raises(AttributeError, match="stored without names"):
        SequencePerceptron().fit([["a"]], [["x"]]).state_features_  # noqa: B018


def test_tokens_without_features_leave_transitions_to_the_average():
    X, y = [[{}, {}], [{}]], [["x", "y"], ["y"]]
    model = SequencePerceptron(order="cyclic", max_iter=3).fit(X, y)
    assert model.n_features_in_ == 0 and len(model.ledger_)
    assert all(map(np.array_equal, model.replay(X), model.weights()))


def test_a_series_of_sequences_is_read_by_place():
    table = pd.DataFrame({"X": X[:3], "y": Y[:3]}, index=[7, 5, 0])
    model = SequencePerceptron(random_state=0, record=True).fit(table["X"], table["y"])
    assert model.predict(table["X"]) == Y[:3]
    assert str(model.trace(table["X"], 1)) == str(model.trace(X[:3], 1))


def test_unknown_words_are_tagged_by_the_transitions():
    assert fitted().predict([[{"word": "le"}, {"word": "chien"}, {"word": "aboie"}]]) == [["D", "N", "V"]]


def test_a_fitted_tagger_has_the_last_weights_and_their_mean():
    model, last = (
        SequencePerceptron(order="cyclic", max_iter=1, averaged=averaged).fit([[["a"]], [["b"]]], [["x"], ["y"]])
        for averaged in (True, False)
    )
    mean = model.weights()
    assert not np.array_equal(mean[0], last.weights()[0])
    assert all(map(np.array_equal, model.set_params(averaged=False).weights(), last.weights()))
    assert all(map(np.array_equal, model.set_params(averaged=True).weights(), mean))


def test_late_tags_and_features():
    model = SequencePerceptron(averaged=False)
    model.partial_fit(X[:1], [["D", "N", "V"]])
    model.partial_fit([[{"word": "big"}, {"word": "dog"}]], [["A", "N"]])
    assert model.classes_.tolist() == ["A", "D", "N", "V"]
    assert model.n_features_in_ == 4
    for _ in range(5):
        model.partial_fit([[{"word": "big"}, {"word": "dog"}], *X[:1]], [["A", "N"], ["D", "N", "V"]])
    assert model.predict([[{"word": "big"}, {"word": "dog"}]]) == [["A", "N"]]
    assert {tag for mistake in model.ledger_ for tag in mistake.true} <= {"A", "D", "N", "V"}
    everything = [*X[:1], [{"word": "big"}, {"word": "dog"}], *[[{"word": "big"}, {"word": "dog"}], X[0]] * 5]
    assert all(map(np.array_equal, model.replay(everything), model.weights()))


def test_a_late_tag_keeps_what_was_learned():
    model = SequencePerceptron().partial_fit(X, Y)
    before = model.weights()
    model.partial_fit([], [], classes=["D", "M", "N", "V"])
    W, T = model.weights()
    assert model.classes_.tolist() == ["D", "M", "N", "V"]
    assert np.array_equal(np.delete(W, 1, axis=1), before[0])
    assert np.array_equal(np.delete(np.delete(T, 1, axis=0), 1, axis=1), before[1])
    assert not W[:, 1].any()


def test_a_refused_call_of_partial_fit_changes_no_tag_and_no_weight():
    model = SequencePerceptron(scheme="bio", random_state=0).fit([[["a"], ["b"]]], [["B-x", "O"]])
    before, classes = model.weights(), model.classes_.tolist()
    with pytest.raises(ValueError, match="forbids"):
        model.partial_fit([[["new"]]], [["I-late"]])
    assert model.classes_.tolist() == classes
    assert model.predict([[["new"], ["a"]], [["a"], ["b"]]])[1] == ["B-x", "O"]
    assert np.array_equal(model.weights()[0][: len(before[0])], before[0])
    assert not model.weights()[0][len(before[0]) :].any()


def test_one_tag_and_tokens_without_features():
    model = SequencePerceptron().fit([[{}], [{}, {}]], [["x"], ["x", "x"]])
    assert model.converged_ and model.predict([[{}, {"a": 1}], []]) == [["x", "x"], []]


def test_arrays_of_strings_are_sequences_too():
    X, y = [["a", "b"], ["c", "d"]], [["O", "B"], ["O", "O"]]
    model = SequencePerceptron(random_state=0).fit(X, y)
    for kind in (None, object):
        other = SequencePerceptron(random_state=0).fit(np.array(X, kind), np.array(y))
        assert all(np.array_equal(a, b) for a, b in zip(model.weights(), other.weights(), strict=True))


class Miscounted(list):
    def __len__(self):
        return super().__len__() + 1


def test_a_sequence_that_miscounts_its_tokens_is_refused():
    with pytest.raises(TypeError, match=r"another number of tokens than its len\(\)"):
        SequencePerceptron().fit([Miscounted(["a"]), ["b"]], [["x", "y"], ["x"]])


@pytest.mark.parametrize("kind", [np.ndarray.tolist, pd.DataFrame, sp.coo_matrix, sp.csr_array])
def test_rows_of_numbers_are_traced_and_explained_in_every_form(kind):
    rows = np.array([[1.0, 0.0], [0.0, 2.0]])
    expected, model = (SequencePerceptron(random_state=0, record=True).fit([X], [["x", "y"]]) for X in (rows, kind(rows)))
    assert str(model.trace([kind(rows)], 1)) == str(expected.trace([rows], 1))
    assert str(model.explain(kind(rows), 1)) == str(expected.explain(rows, 1))


def test_sets_of_attributes_are_read_in_the_order_of_the_alphabet():
    names = [f"n{i}" for i in range(50)]
    assert [name for name, _ in attributes_of({"in": set(names)})] == sorted(f"in:{name}" for name in names)


def test_dicts_that_are_nested_too_deeply_are_named():
    token = "x"
    for _ in range(3000):
        token = {"a": token}
    with pytest.raises(ValueError, match=r"X\[0\]\[0\]: the dicts in it are nested too deeply"):
        SequencePerceptron().fit([[token]], [["x"]])


def test_iob2_is_another_name_of_bio():
    pairs, tags = [[["a"], ["b"]], [["c"]]], [["B-x", "I-x"], ["O"]]
    one, other = (SequencePerceptron(scheme=scheme, random_state=0).fit(pairs, tags) for scheme in ("bio", "iob2"))
    assert np.array_equal(one.run_.forbidden, other.run_.forbidden)
    with pytest.raises(ValueError, match="'E-x' is none of scheme='iob2'"):
        other.partial_fit([[["a"]]], [["E-x"]])


def test_whole_numbers_are_tags_too():
    model = SequencePerceptron(random_state=0).fit(X, [[len(tag) + 10 * (tag == "N") for tag in tags] for tags in Y])
    assert model.predict(X[:1]) == [[1, 11, 1]]


def test_where_the_scheme_allows_no_path_it_is_set_aside():
    pairs = [[["a"], ["b"]], [["c"], ["d"]]]
    model = SequencePerceptron(scheme="iobes", random_state=0).fit(pairs, [["B-x", "E-x"], ["B-y", "E-y"]])
    assert model.predict([[["c"]], *pairs]) == [["B-y"], ["B-x", "E-x"], ["B-y", "E-y"]]


def test_a_weight_of_zero_is_not_presented():
    model = SequencePerceptron(order="cyclic", max_iter=1).fit(X, Y, sample_weight=[0, 1, 0, 0, 0])
    assert model.ledger_.steps == 1
    assert {mistake.sequence for mistake in model.ledger_} == {1}


def test_early_stopping_goes_back_to_the_best_pass():
    rng = np.random.default_rng(0)
    noisy = [[{"w": str(rng.integers(5))} for _ in range(6)] for _ in range(60)]
    tags = [[str(rng.integers(2)) if rng.random() < 0.3 else token["w"] for token in sequence] for sequence in noisy]
    model = SequencePerceptron(early_stopping=True, max_iter=30, n_iter_no_change=2, random_state=0, record=True)
    model.fit(noisy, tags)
    best = int(np.argmax(model.validation_scores_)) + 1
    assert model.n_iter_ == best < len(model.validation_scores_) < 30
    assert all(map(np.array_equal, model.replay(noisy), model.weights()))
    assert model.ledger_.steps == best * 54
    given = SequencePerceptron(max_iter=2, random_state=0).fit(noisy[:50], tags[:50], X_val=noisy[50:], y_val=tags[50:])
    assert given.validation_scores_[-1] == given.score(noisy[50:], tags[50:])


def test_a_held_out_tag_that_was_never_seen_is_a_wrong_one():
    model = SequencePerceptron(max_iter=1).fit(X, Y, X_val=[[{"word": "dog"}]], y_val=[["unseen"]])
    assert model.validation_scores_ == [0.0]


def test_scikit_learn_can_clone_and_cross_validate_it():
    model = clone(SequencePerceptron(max_iter=7, random_state=3))
    assert model.get_params()["max_iter"] == 7
    assert repr(model) == "SequencePerceptron(max_iter=7, random_state=3)"
    scores = cross_val_score(model, X[:3] * 4, Y[:3] * 4, cv=2)
    assert scores.tolist() == [1.0, 1.0]
    for n in (3, 4):  # paths of one length, and of several
        predicted = cross_val_predict(model, X[:n] * 4, Y[:n] * 4, cv=2)
        assert predicted.shape == (4 * n,) and predicted.tolist() == Y[:n] * 4
    search = GridSearchCV(model, {"rule": ["perceptron", "pa1"]}, cv=2).fit(X[:4] * 4, Y[:4] * 4)
    assert search.predict(X) == Y


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (
            lambda: SequencePerceptron().fit(["the dog"], [["D", "N"]]),
            TypeError,
            r"X\[0\] is a string: split it into tokens",
        ),
        (lambda: SequencePerceptron().fit([{"a": 1}], [["D"]]), TypeError, r"X\[0\] is a dict"),
        (lambda: SequencePerceptron().fit([[1.5]], [["D"]]), TypeError, r"X\[0\]\[0\] is 1.5, a float"),
        (lambda: SequencePerceptron().fit(X, Y[:3]), ValueError, "X has 5 sequences and y has 3"),
        (lambda: SequencePerceptron().fit(X[:1], [["D", "N"]]), ValueError, r"y\[0\] has 2 tags for 3 tokens"),
        (lambda: SequencePerceptron().fit(X[:1], ["DNV"]), ValueError, r"y\[0\] is the string 'DNV'"),
        (lambda: SequencePerceptron().fit(X[:1], [["D", "N", 3]]), ValueError, "all of one kind; they are int, str"),
        (lambda: SequencePerceptron().fit([[]], [[]]), ValueError, "X has no token"),
        (lambda: SequencePerceptron().fit([[{"a": None}]], [["D"]]), TypeError, r"X\[0\]\[0\]: the attribute 'a' is None"),
        (lambda: SequencePerceptron().fit([[{"a": np.nan}]], [["D"]]), ValueError, r"X\[0\]\[0\]: the attribute 'a' is nan"),
        (lambda: SequencePerceptron().fit([[{1: "a"}]], [["D"]]), TypeError, "names must be strings"),
        (
            lambda: SequencePerceptron().fit([[{"a": b"\xff"}]], [["D"]]),
            ValueError,
            r"X\[0\]\[0\]: 'utf-8' codec can't decode",
        ),
        (lambda: SequencePerceptron().fit([[{"a": 10**400}]], [["D"]]), ValueError, r"X\[0\]\[0\]: int too large"),
        (lambda: SequencePerceptron().fit(X, Y, X, Y), ValueError, "by their names: the third argument is sample_weight"),
        (lambda: SequencePerceptron().predict(X), ValueError, "is not fitted yet"),
        (lambda: fitted().predict([np.ones((2, 3))]), ValueError, "was trained on dicts or lists of attributes"),
        (lambda: fitted().replay(X[:1]), ValueError, "the ledger has mistakes on sequence"),
        (lambda: fitted().replay(), ValueError, "fit with record=True"),
        (lambda: SequencePerceptron(rule="pa").fit(X, Y), ValueError, "'rule' parameter of SequencePerceptron"),
        (
            lambda: SequencePerceptron(scheme="bio").fit([[["a"], ["b"]]], [["O", "I-x"]]),
            ValueError,
            r"token y\[0\]\[1\] has 'I-x' after 'O', which scheme='bio' forbids",
        ),
        (
            lambda: SequencePerceptron(scheme="bio").fit([[["a"], ["b"]]], [["B-x", "E-x"]]),
            ValueError,
            "the tag 'E-x' is none of scheme='bio': use scheme='iobes'",
        ),
        (
            lambda: SequencePerceptron(scheme="iobes").fit([[["a"], ["b"]]], [["B-x", "I-x"]]),
            ValueError,
            r"token y\[0\]\[1\] has 'I-x' at the end",
        ),
        (lambda: SequencePerceptron().fit([[{"a": 1}, "b"]], [["D", "N"]]), TypeError, r"X\[0\]\[1\]: 'b' is a str"),
        (lambda: SequencePerceptron().fit(iter(X), Y), TypeError, "and this can be read only once"),
        (lambda: SequencePerceptron().fit([iter(X[0])], Y[:1]), TypeError, r"X\[0\] is a list_iterator"),
        (lambda: SequencePerceptron(n_features=9).fit(X, Y), ValueError, "n_features is for tokens that are strings"),
        (lambda: fitted().set_params(rule="pa1").partial_fit(X, Y), ValueError, "cannot change between calls"),
        (lambda: fitted(early_stopping=True, validation_fraction=0.01), ValueError, "leaves none to hold out"),
        (lambda: SequencePerceptron().fit(X, Y, sample_weight=np.zeros(5)), ValueError, "every sample_weight is zero"),
        (lambda: SequencePerceptron().fit(None, Y), TypeError, "X is a NoneType: it must be a list of sequences$"),
        (lambda: SequencePerceptron().fit([{"a", "b"}], [["x", "y"]]), TypeError, r"X\[0\] is a set, .* no order"),
        (
            lambda: SequencePerceptron().fit([pd.DataFrame({"a": ["x", "y"]})], [["D", "N"]]),
            ValueError,
            r"X\[0\] is an array of \w+ of shape \(2, 1\): rows of numbers are expected",
        ),
        (lambda: SequencePerceptron().fit([[[1.0, 2.0], [3.0]]], [["D", "N"]]), ValueError, r"X\[0\] has rows of different"),
        (lambda: SequencePerceptron().fit(X[:1], [[("D",)] * 3]), ValueError, "all of one kind; they are tuple"),
        (lambda: SequencePerceptron().fit(X[:1], [[["D"]] * 3]), ValueError, "all of one kind; they are list"),
        (lambda: SequencePerceptron().fit(X[:1], [["D", "N", "D\0"]]), ValueError, "ends with a zero byte"),
        (lambda: SequencePerceptron().fit(X[3:4], [[1]], [1e101]), ValueError, r"a sample_weight is 1e\+101, beyond"),
        (lambda: SequencePerceptron().partial_fit([[{"a": 1e200}]], [["D"]]), ValueError, r"a value of X is 1e\+200"),
        (lambda: SequencePerceptron().partial_fit(X, Y, classes=[1, 2]), ValueError, r"classes is \[1, 2\]: it must be"),
        (lambda: SequencePerceptron().partial_fit(X, Y, classes="DNV"), ValueError, "classes is 'DNV': it must be"),
        (lambda: SequencePerceptron().fit(X, Y, X_val=[], y_val=[]), ValueError, "X_val has no token, and X has dicts"),
        (lambda: SequencePerceptron().fit(X, Y, X_val=[["a"]], y_val=[["D"]]), ValueError, "X_val has strings or tuples"),
        (
            lambda: SequencePerceptron().fit(X[:1], pa.array(Y[:1])),
            ValueError,
            "strings or whole numbers; they are StringScalar",
        ),
        (lambda: fitted().predict_single(X), TypeError, r"X\[0\]\[0\] is \[\{'.*, a list: a token is a string"),
        (lambda: fitted().bounds(X[:1], [["D", "N", "late"]]), ValueError, r"never met: \['late'\]"),
    ],
)
def test_what_is_wrong_is_named(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()
