"""Taggers on shards: one shard as by `fit`, several by mixing, with tags and features that only some shards have."""

import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix import SequencePerceptron, evaluate_sequences, load, read_conll
from separatrix.cli import app
from separatrix.cluster import bounds, fit
from separatrix.cluster.local import Local
from separatrix.data.errors import DataError
from support.kill_workers import losing_workers
from support.tagged_shards import COLOURS, THINGS, same_weights, sentences, write, written_shards

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("rule", ["perceptron", "pa1"])
def test_one_shard_is_trained_as_by_fit_to_the_same_bits(rule):
    X, y = sentences(0)
    settings = {"rule": rule, "random_state": 3, "max_iter": 4, "C": 0.1}
    alone = SequencePerceptron(**settings).fit(X, y)
    (mixed,) = (fit(SequencePerceptron(**settings), [(X, y), ([], [])]).estimator,)
    assert same_weights(alone, mixed)
    assert mixed.mistakes_per_pass_ == alone.mistakes_per_pass_
    for averaged in (False, True):
        assert same_weights(alone.set_params(averaged=averaged), mixed.set_params(averaged=averaged))


def test_a_pass_over_shards_is_the_mean_of_passes_over_each():
    parts = [sentences(seed, 7) for seed in (1, 2)]
    tagger = SequencePerceptron(order="cyclic", max_iter=1, averaged=False)
    mixed = fit(tagger, parts, mix="uniform").estimator
    features = mixed.features_
    alone = [SequencePerceptron(order="cyclic", max_iter=1, averaged=False).fit(X, y) for X, y in parts]
    links = [model.weights()[1] for model in alone]
    assert np.array_equal(mixed.weights()[1], (links[0] + links[1]) / 2)
    expected = np.zeros_like(mixed.weights()[0])
    for model in alone:
        places = {key: place for place, key in enumerate(features._keys[: features.n].tolist())}
        rows = [places[key] for key in model.features_._keys[: model.features_.n].tolist()]
        expected[rows] += model.weights()[0] / 2
    assert np.array_equal(mixed.weights()[0], expected)


def test_the_average_is_over_every_presentation_on_any_shard():
    """Two shards that are the same move as one does, so their average after a pass is that of one."""
    X, y = sentences(4, 8)
    settings = {"order": "cyclic", "max_iter": 1}
    alone, mixed = SequencePerceptron(**settings).fit(X, y), fit(SequencePerceptron(**settings), [(X, y), (X, y)]).estimator
    for ours, theirs in zip(mixed.weights(), alone.weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_features_are_numbered_as_those_of_one_file():
    parts = [sentences(seed, 5) for seed in range(3)]
    whole = [[each for part in parts for each in part[side]] for side in (0, 1)]
    mixed = fit(SequencePerceptron(max_iter=1), parts).estimator
    one = SequencePerceptron(max_iter=1).fit(*whole)
    assert np.array_equal(mixed.features_._keys[: mixed.features_.n], one.features_._keys[: one.features_.n])


@pytest.mark.parametrize("mix", ["features", "uniform", "mistakes"])
def test_tags_and_words_of_one_shard_only_are_learned(mix):
    X, y = sentences(1)
    late = [["Ada", "went", "to", "Rome"]] * 20, [["B-person", "O", "O", "B-place"]] * 20
    tagger = SequencePerceptron(random_state=0, max_iter=20, averaged=False)
    mixed = fit(tagger, [(X, y), late, sentences(2)], mix=mix).estimator
    assert mixed.classes_.tolist() == ["B-person", "B-place", "B-thing", "I-thing", "O"]
    assert mixed.predict([late[0][0], X[0]]) == [late[1][0], y[0]]
    assert mixed.converged_


def test_the_bound_of_mixing_holds_where_a_pass_was_clean():
    model = fit(SequencePerceptron(random_state=0, max_iter=50), [sentences(seed) for seed in range(4)])
    bound = bounds(model)
    assert model.estimator.converged_ and bound.holds and 0 < bound.counted <= bound.bound < np.inf
    assert bound.margin == model.facts["margin"] > 0
    assert "no bound" in bounds(fit(SequencePerceptron(rule="pa1", random_state=0), [sentences(0), sentences(1)])).theorem


@pytest.mark.parametrize("kind", ["attributes", "numbers", "hashed"])
def test_every_kind_of_token_can_be_mixed(kind):
    parts = [sentences(seed, 20) for seed in range(2)]
    settings = {"n_features": 512} if kind == "hashed" else {}
    if kind == "attributes":
        parts = [([[{"word": word} for word in words] for words in X], y) for X, y in parts]
    if kind == "numbers":
        words = ["the", "and", *COLOURS, *THINGS]
        parts = [([np.eye(len(words))[[words.index(w) for w in sentence]] for sentence in X], y) for X, y in parts]
    mixed = fit(SequencePerceptron(random_state=0, **settings), parts).estimator
    assert evaluate_sequences(parts[0][1], mixed.predict(parts[0][0])).f1 > 0.9


def test_held_out_shards_stop_training_and_go_back_to_the_best_pass():
    noisy = [sentences(seed, 30) for seed in range(4)]
    random = np.random.default_rng(0)
    noisy = [(X, [list(random.permutation(tags)) if random.random() < 0.5 else tags for tags in y]) for X, y in noisy]
    tagger = SequencePerceptron(random_state=1, max_iter=30, early_stopping=True, n_iter_no_change=2)
    model = fit(tagger, noisy, held_out=[sentences(9, 10)])
    scores = tagger.validation_scores_
    assert len(scores) < 30 and tagger.n_iter_ == 1 + int(np.argmax(scores))
    assert tagger.shard_mistakes_.shape == (tagger.n_iter_, 4) and tagger.n_mistakes_ == tagger.shard_mistakes_.sum()
    assert model.evaluation.accuracy == pytest.approx(max(scores))


def test_processes_give_the_same_bits_though_some_die_and_the_command_writes_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]))
    files = written_shards(tmp_path)
    here = fit(SequencePerceptron(rule="pa1", random_state=0), files)
    (died := tmp_path / "died").mkdir()
    workers = losing_workers(Local(2), died, 5)
    try:
        local = fit(SequencePerceptron(rule="pa1", random_state=0), files, engine=workers)
    finally:
        workers.close()
    assert len(list(died.iterdir())) == 5
    assert same_weights(here.estimator, local.estimator)
    held_out = write(tmp_path / "held-out.conll", *sentences(8, 10))
    output = str(tmp_path / "tagger.sepx")
    result = CliRunner().invoke(
        app, ["train", files, "--sequence", "--engine", "local:1", "--validate", held_out, "-o", output]
    )
    assert result.exit_code == 0, result.output
    assert "61 sequences of 303 tokens in 4 shards, 10 sequences held out, 4 tags" in result.output
    assert same_weights(load(output).estimator, here.estimator)
    assert load(output).estimator.predict(read_conll(held_out)[0])[0] == sentences(8, 10)[1][0]


def test_what_shards_cannot_do_is_said_in_one_line(tmp_path):
    X, y = sentences(0, 3)
    with pytest.raises(ValueError, match="record=True stores the tokens"):
        fit(SequencePerceptron(record=True), [(X, y)])
    with pytest.raises(ValueError, match="label= is not for sequences"):
        fit(SequencePerceptron(), [(X, y)], label="tag")
    with pytest.raises(DataError, match=r"part 1 has tokens of dicts .*, and part 0 has strings"):
        fit(SequencePerceptron(), [(X, y), ([[{"a": 1}]], [["O"]])])
    with pytest.raises(DataError, match="strings, and those of others numbers"):
        fit(SequencePerceptron(), [(X, y), ([["a"]], [[1]])])
    with pytest.raises(DataError, match="there is no token in it, nor in any other"):
        fit(SequencePerceptron(), [([], []), ([[]], [[]])])
    with pytest.raises(DataError, match=r"part 1: token y\[0\]\[0\] has 'I-thing' at the start"):
        fit(SequencePerceptron(scheme="bio"), [(X, y), ([["a"]], [["I-thing"]])])
    one, two = write(tmp_path / "one.conll", X, y), tmp_path / "two.conll"
    two.write_text("a b O\n")
    with pytest.raises(DataError, match=r"two.conll has tokens of .* 2 columns, and .*one.conll has .* 1 column"):
        fit(SequencePerceptron(), [one, str(two)])
    tagger = fit(SequencePerceptron(random_state=0), [(X, y), (X, y)]).estimator
    with pytest.raises(ValueError, match="mistakes were not kept"):
        tagger.replay(X)
    assert tagger.partial_fit([["new", "word"]], [["O", "B-late"]]).classes_.tolist() == [
        "B-late",
        "B-thing",
        "I-thing",
        "O",
    ]
