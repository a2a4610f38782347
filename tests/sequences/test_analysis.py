"""Bounds that hold on every run, explanations that add up, and the trace of one mistake."""

from fractions import Fraction
from itertools import repeat

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from separatrix import SequencePerceptron, load, reference_sequences, save
from separatrix.cli import app
from separatrix.sequences.explaining import contributions

WORDS = [
    [("Rome", "N"), ("is", "V"), ("old", "A")],
    [("old", "A"), ("Rome", "N")],
    [("it", "P"), ("is", "V"), ("Rome", "N")],
]
TAGS = [["B-x", "O", "O"], ["O", "B-x"], ["O", "O", "B-x"]]


@st.composite
def sequences(draw, separable):
    """Integer tokens, tagged by planted weights with a margin, or at random."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = [2, *draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))]
    X = [rng.integers(-2, 3, (n, 4)).astype(float) for n in lengths]
    if not separable:
        return X, [rng.integers(0, 2, n).tolist() for n in lengths[:-1]] + [[0] * (lengths[-1] - 1) + [1]]
    planted = rng.integers(-3, 4, 2 * 4 + 9).astype(float)
    return X, [list(reference_sequences.best_path(planted, x, 2)) for x in X]


def both_weights(model):
    for averaged in (False, True):
        W, T = model.run_.weights(averaged).dense()
        yield [Fraction(float(number)) for number in np.concatenate([W.T.reshape(-1), T.reshape(-1)])]


def exact_margin(X, y, w):
    """The smallest lead of a true path over all others, and the squared length of the weights, as fractions."""

    def score(x, path):
        features = reference_sequences.path_features(x, path, 2)
        return sum(w[j] * Fraction(float(features[j])) for j in np.flatnonzero(features))

    leads = [
        score(x, tuple(tags))
        - max(score(x, path) for path in reference_sequences.all_paths(len(x), 2) if path != tuple(tags))
        for x, tags in zip(X, y, strict=True)
    ]
    return min(leads), sum(number * number for number in w)


@given(sequences(separable=True))
def test_the_bound_of_separable_sequences_holds_with_a_margin_certified_exactly(problem):
    X, y = problem
    if len({tag for tags in y for tag in tags}) < 2:
        return
    model = SequencePerceptron(order="cyclic", max_iter=200, averaged=False).fit(X, y)
    bounds = model.bounds(X, y)
    assert bounds.holds
    if not model.converged_:  # planted paths may tie
        return
    differences = [
        reference_sequences.path_features(X[m.sequence], m.true, 2)
        - reference_sequences.path_features(X[m.sequence], m.predicted, 2)
        for m in model.ledger_
    ]
    radius2 = max((Fraction(float(d @ d)) for d in differences), default=Fraction(0))
    squares = [
        (gamma, square) for gamma, square in map(exact_margin, repeat(X), repeat(y), both_weights(model)) if gamma > 0
    ]
    for gamma, square in squares:
        assert len(model.ledger_) * gamma**2 <= radius2 * square  # Collins's theorem 1, in exact numbers
    best = max((float(gamma) / float(square) ** 0.5 for gamma, square in squares), default=0.0)
    if best > 1e-9 and len(model.ledger_):  # a margin that rounding could have made is not claimed
        assert best * (1 - 1e-6) <= bounds.margin <= best
        assert bounds.radius == float(radius2) ** 0.5
        assert bounds.theorem.startswith("Collins's first")


@given(sequences(separable=False), st.integers(1, 5), st.booleans())
def test_a_bound_holds_on_every_run(problem, passes, weighted):
    X, y = problem
    weight = np.arange(1.0, len(X) + 1) if weighted else None
    model = SequencePerceptron(random_state=0, max_iter=passes).fit(X, y, sample_weight=weight)
    bounds = model.bounds(X, y)
    assert bounds.holds
    assert bounds.mistakes == len(model.ledger_)


def test_what_is_said_of_bounds():
    model = SequencePerceptron(random_state=0).fit(WORDS, TAGS)
    bounds = model.bounds(WORDS, TAGS)
    assert "separable" in str(bounds) and "R = " in str(bounds)
    assert bounds.to_dict()["bound"] >= bounds.mistakes
    assert SequencePerceptron(rule="pa1", random_state=0).fit(WORDS, TAGS).bounds(WORDS, TAGS).to_dict()["bound"] is None
    with pytest.raises(ValueError, match="tags that the model never met"):
        model.bounds(WORDS[:1], [["B-new", "O", "O"]])


def test_other_sequences_than_those_of_the_training_are_refused(tmp_path):
    model = SequencePerceptron(random_state=0).fit(WORDS, TAGS)
    others, other_tags = [sentence[::-1] for sentence in WORDS], [tags[::-1] for tags in TAGS]
    for ask in (
        lambda: model.bounds(others, TAGS),
        lambda: model.trace(others),
        lambda: model.explain(WORDS[0], 0, X=others),
    ):
        with pytest.raises(ValueError, match="X does not have the sequences of the training: the ledger's corrections"):
            ask()
    with pytest.raises(ValueError, match="y does not have the tags of the training"):
        model.bounds(WORDS, other_tags)
    model.partial_fit(others, other_tags)
    bounds = model.bounds(WORDS + others, TAGS + other_tags)
    assert bounds.holds
    save(model, tmp_path / "m.sepx", float32=True)
    assert load(tmp_path / "m.sepx").estimator.bounds(WORDS + others, TAGS + other_tags).mistakes == bounds.mistakes


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("rule", ["perceptron", "pa1"])
def test_terms_and_mistakes_add_up_to_the_lead(averaged, rule):
    model = SequencePerceptron(rule=rule, averaged=averaged, random_state=0, record=True, max_iter=4).fit(WORDS, TAGS)
    for sentence in WORDS:
        for t in range(len(sentence)):
            explanation = model.explain(sentence, t, n=999)
            assert explanation.tag == model.predict_single(sentence)[t] != explanation.against
            assert np.isclose(sum(term.product for term in explanation.terms), explanation.lead, atol=1e-9)
            assert np.isclose(sum(cause.contribution for cause in explanation.causes), explanation.lead, atol=1e-9)
            assert {term.name for term in explanation.terms} >= {"bias", f"word[0]={sentence[t][0]}"}
            assert explanation == model.explain(sentence, t, n=999, X=WORDS)
    assert contributions(model, None, (np.array([0]), np.ones(1)), (0, 1, 2, 2)).shape == (len(model.ledger_),)
    shown = str(model.explain(WORDS[0], 0, n=5))
    assert shown.startswith("token 0: B-x, ahead of O by") and "the mistakes behind it:" in shown
    assert model.explain(WORDS[0], -1).token == 2


def test_explanations_of_attributes_and_what_is_wrong_with_a_question():
    X = [[{"w": "a", "n": 2}, {"w": "b"}]]
    model = SequencePerceptron(random_state=0).fit(X, [["x", "y"]])
    explanation = model.explain(X[0], 0)
    assert {term.name for term in explanation.terms} == {"w:a", "n", "after the start", "before y"}
    assert explanation.causes == [] and explanation.to_dict()["terms"][0]["name"]
    for wrong, message in (({"token": 2}, "there is no token 2"), ({"token": 0, "against": "z"}, "not among the tags")):
        with pytest.raises(ValueError, match=message):
            model.explain(X[0], **wrong)
    with pytest.raises(ValueError, match="itself: name another"):
        model.explain(X[0], 0, against=model.predict(X)[0][0])


def test_a_trace_shows_the_trellis_both_paths_and_every_change():
    model = SequencePerceptron(order="cyclic", max_iter=5).fit(WORDS, TAGS)
    for number, mistake in enumerate(model.ledger_, 1):
        trace = model.trace(WORDS, number)
        assert trace.mistake == mistake
        before, after = (model.replay(WORDS, mistakes=n) for n in (number - 1, number))
        moved = sum(((new - old) ** 2).sum() for old, new in zip(before, after, strict=True))
        assert sum(change.amount**2 for change in trace.changes) == moved
        best = trace.trellis[-1] + before[1][:-1, -1]
        code = {tag: k for k, tag in enumerate(trace.tags)}
        assert best.max() == best[code[mistake.predicted[-1]]]
    assert model.trace(WORDS).number == len(model.ledger_)
    shown, page = str(model.trace(WORDS, 1)), model.trace(WORDS, 1).to_html()
    assert "raised:" in shown and "lowered:" in shown and "word[0]=is for O" in shown
    assert max(map(len, shown.splitlines()[2:])) <= 90
    assert page.count("<tr>") > len(WORDS[0]) and 'class="true"' in page and "<script" not in page
    with pytest.raises(ValueError, match="there is no mistake 99"):
        model.trace(WORDS, 99)


def test_commands_explain_and_trace(tmp_path):
    pairs = [zip(*both, strict=True) for both in zip(WORDS, TAGS, strict=True)]
    data, model = tmp_path / "a.conll", tmp_path / "m.sepx"
    data.write_text("\n\n".join("\n".join(f"{word} {pos} {tag}" for (word, pos), tag in each) for each in pairs) + "\n")

    def call(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        return result.exit_code, result.output

    assert call("train", data, "--sequence", "--record", "-o", model)[0] == 0
    status, shown = call("explain", model, data, "--row", "2", "--token", "2", "--top", "3")
    assert status == 0 and "token 2: B-x, ahead of O by" in shown and "the mistakes behind it:" in shown
    status, shown = call("explain", model, data, "--row", "2")
    assert status == 0 and shown.splitlines()[0] == "sequence 2: old Rome"
    assert "Rome" in shown and "B-x" in shown
    assert call("explain", model, data, "--row", "9")[0] == 2
    (tmp_path / "long.conll").write_text("".join(f"w{i} N\n" for i in range(1, 101)))
    status, shown = call("explain", model, tmp_path / "long.conll", "--token", "60")
    assert status == 0 and shown.startswith("sequence 1: … w30 w31 ") and shown.splitlines()[0].endswith(" w89 w90 …")
    status, shown = call("trace", data, "--sequence", "--mistake", "1")
    assert status == 0 and shown.startswith("mistake 1: pass 1, step 1, sequence 1;")
    status, shown = call("trace", data, "--sequence", "--html", tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    assert status == 0 and page.startswith("<!doctype html>") and "prefers-color-scheme:dark" in page
    number = call("trace", data, "--sequence")[1].split("sequence ")[1].split(";")[0]
    assert f"sequence {number}. The true path leads" in page
