"""Entities as conlleval counts them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from separatrix import evaluate_sequences
from separatrix.sequences.schemes import first_forbidden, forbidden_transitions


def chunks(tags):
    """Entities by a walk over the tags: one is open or not; where it ends is decided token by token."""
    found, begin, kind = [], None, None
    for t, tag in enumerate([*tags, "O"]):
        letter, _, this = tag.partition("-")
        previous = tags[t - 1].partition("-")[0] if t else "O"
        if begin is not None and (letter in "OBS" or this != kind or previous in "ES"):
            found.append((begin, t, kind))
            begin = None
        if begin is None and letter != "O":
            begin, kind = t, this
    return found


TAGS = ["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "xy")]
pairs = st.lists(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=8), min_size=1, max_size=4)


@given(pairs)
def test_entities_are_those_of_a_walk_over_the_tags(sequences):
    true, predicted = ([[pair[i] for pair in sequence] for sequence in sequences] for i in (0, 1))
    spans = [{(i, *chunk) for i, tags in enumerate(y) for chunk in chunks(tags)} for y in (true, predicted)]
    figures = evaluate_sequences([*true, ["B-x"]], [*predicted, ["B-x"]])
    expected = len(spans[0]) + 1, len(spans[1]) + 1, len(spans[0] & spans[1]) + 1
    assert tuple(figures.entities) == expected
    for kind, of in figures.by_type.items():
        both = [{span for span in each if span[3] == kind} for each in spans]
        more = kind == "x"
        assert tuple(of) == (len(both[0]) + more, len(both[1]) + more, len(both[0] & both[1]) + more)
    wrong = sum(a != b for sequence in sequences for a, b in sequence)
    assert sum(each.tokens for each in evaluate_sequences(true, predicted, confusions=99).confusions) == wrong


def counts_of_a_single_walk(y_true, y_pred):
    """How conlleval counts: token by token along both paths, with an entity open while it may still be right."""

    def ends(before, kind_before, after, kind):
        return (
            before in ("E", "S")
            or (before in ("B", "I") and after in ("B", "S", "O"))
            or (before != "O" and kind_before != kind)
        )

    def begins(before, kind_before, after, kind):
        return (
            after in ("B", "S")
            or (before in ("E", "S", "O") and after in ("E", "I"))
            or (after != "O" and kind_before != kind)
        )

    counts, is_open, last = [0, 0, 0], False, [("O", ""), ("O", "")]
    for true, predicted in zip(y_true, y_pred, strict=True):
        for pair in [*zip(true, predicted, strict=True), ("O", "O")]:
            here = [tuple((f"{tag}-").split("-", 2)[:2]) for tag in pair]
            ended, begun = ([law(*a, *b) for a, b in zip(last, here, strict=True)] for law in (ends, begins))
            if is_open and all(ended) and last[0][1] == last[1][1]:
                counts[2], is_open = counts[2] + 1, False
            elif is_open and (ended[0] != ended[1] or here[0][1] != here[1][1]):
                is_open = False
            is_open |= all(begun) and here[0][1] == here[1][1]
            counts[0], counts[1] = counts[0] + begun[0], counts[1] + begun[1]
            last = here
    return tuple(counts)


@given(pairs)
def test_entities_are_counted_as_by_a_single_walk_over_both_paths(sequences):
    y_true, y_pred = ([[pair[k] for pair in sequence] for sequence in sequences] for k in (0, 1))
    figures = evaluate_sequences([*y_true, ["B-x"]], [*y_pred, ["O"]])
    assert figures.entities == counts_of_a_single_walk([*y_true, ["B-x"]], [*y_pred, ["O"]])


def test_figures_worked_by_hand():
    true = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "B-NP"], []]
    predicted = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "I-NP"], []]
    figures = evaluate_sequences(true, predicted)
    assert tuple(figures.entities) == (4, 3, 1)
    assert (figures.entities.precision, figures.entities.recall, figures.f1) == (1 / 3, 1 / 4, 2 / 7)
    assert tuple(figures.by_type["VP"]) == (1, 0, 0)
    assert figures.by_type["VP"].precision == 0.0
    assert (figures.sequences, figures.tokens, figures.accuracy, figures.exact) == (3, 6, 1 - 2 / 6, 1 - 2 / 3)
    assert [tuple(each) for each in figures.confusions] == [("B-NP", "I-NP", 1), ("B-VP", "B-NP", 1)]
    assert json.loads(figures.to_json())["entities"]["f1"] == 2 / 7
    assert "NP         0.3333  0.3333  0.3333        3        3        1" in str(figures)


def test_iob1_and_iobes_tags():
    assert tuple(evaluate_sequences([["I-x", "I-x", "B-x", "O", "I-x"]], [["B-x", "I-x", "B-x", "O", "B-x"]]).entities) == (
        3,
        3,
        3,
    )
    assert tuple(evaluate_sequences([["S-x", "S-x", "B-x", "E-x"]], [["B-x", "B-x", "B-x", "I-x"]]).entities) == (3, 3, 3)


def test_tags_that_mark_no_entities_get_figures_each():
    figures = evaluate_sequences([["noun", "verb"]], [["noun", "noun"]])
    assert figures.entities is None and figures.f1 is None
    assert tuple(figures.by_type["noun"]) == (1, 2, 1)
    assert "entity" not in str(figures)
    assert evaluate_sequences([], []).accuracy == 1.0


def test_where_all_tags_are_o_there_is_no_entity():
    figures = evaluate_sequences([["O", "O"]], [["O", "O"]])
    assert (figures.f1, figures.entities, figures.by_type, figures.accuracy) == (0.0, (0, 0, 0), {}, 1.0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (iter([["B-x"]]), "y_true is a list_iterator: it must be a list"),
        (["O"], r"y_true\[0\] is the string 'O'"),
        ([1], r"y_true\[0\] is 1: it must be a list"),
    ],
)
def test_what_is_no_list_of_lists_is_refused(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        evaluate_sequences(y, [["O"]])


@pytest.mark.parametrize(
    ("true", "predicted", "kinds"), [([[1]], [["1"]], "int, str"), ([["O"]], [[None]], "NoneType, str")]
)
def test_tags_of_two_kinds_are_refused(true, predicted, kinds):
    with pytest.raises(ValueError, match=f"all of one kind; they are {kinds}"):
        evaluate_sequences(true, predicted)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="y_true has 1 sequences and y_pred has 2"):
        evaluate_sequences([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match=r"y_pred\[0\] has 2 tags for 1 tokens"):
        evaluate_sequences([["O"]], [["O", "O"]])


def test_forbidden_transitions():
    classes = np.array(["B-x", "I-x", "I-y", "O"])
    matrix = forbidden_transitions(classes, "bio").reshape(5, 5)
    assert matrix[:, 1].tolist() == [0, 0, 1, 1, 1]
    assert matrix[:, 2].tolist() == [1, 1, 0, 1, 1]
    assert not matrix[:, [0, 3, 4]].any()
    assert first_forbidden(np.array([0, 1, 3, 1]), np.array([0, 2, 4]), matrix.reshape(-1), 4) == (1, 1)
    assert first_forbidden(np.array([1, 1]), np.array([0, 0, 2]), matrix.reshape(-1), 4) == (1, 0)
    assert first_forbidden(np.array([0, 1]), np.array([0, 2]), matrix.reshape(-1), 4) is None
