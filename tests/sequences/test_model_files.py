"""A tagger in a file: the same tags, the same weights, and it continues to learn as the unsaved one."""

import copy
import json
import os
import threading

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix import Model, SequencePerceptron, evaluate, explain, load, save, trace, train
from separatrix.cli import app
from separatrix.exporting import to_sql
from separatrix.modelfile.errors import ModelFileError

WORDS = [[("Rome", "N"), ("is", "V"), ("old", "A")], [("old", "A"), ("Rome", "N")], [("it", "P"), ("is", "V")]]
TAGS = [["B-x", "O", "O"], ["O", "B-x"], ["O", "O"]]
KINDS = {
    "columns": WORDS,
    "attributes": [[{"word": word, "pos": pos, "length": len(word)} for word, pos in words] for words in WORDS],
    "numbers": [np.array([[len(word), ord(pos)] for word, pos in words], float) for words in WORDS],
}
PAIRS = [list(zip(*both, strict=True)) for both in zip(WORDS, TAGS, strict=True)]
CONLL = "\n\n".join("\n".join(f"{word} {pos} {tag}" for (word, pos), tag in pairs) for pairs in PAIRS)


def call(*arguments, status=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result.output


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"rule": "pa1", "scheme": "bio", "averaged": False}])
def test_a_file_gives_the_same_tagger_back(tmp_path, kind, settings):
    X = KINDS[kind]
    model = SequencePerceptron(random_state=0, record=True, max_iter=3, **settings).fit(X, TAGS)
    save(model, tmp_path / "m.sepx")
    again = load(tmp_path / "m.sepx").estimator
    assert again.get_params() == model.get_params()
    assert again.predict(X) == model.predict(X)
    assert all(map(np.array_equal, again.weights(), model.weights()))
    assert list(again.ledger_) == list(model.ledger_)
    assert all(map(np.array_equal, again.replay(), model.weights()))
    assert (again.mistakes_per_pass_, again.converged_) == (model.mistakes_per_pass_, model.converged_)
    for learner in (model, again):
        late = copy.deepcopy(X[1:2])
        learner.partial_fit(late, [["B-late", "O"]])
    assert all(map(np.array_equal, again.weights(), model.weights()))
    save(again, tmp_path / "n.sepx")
    save(model, tmp_path / "o.sepx")
    assert (tmp_path / "n.sepx").read_bytes() == (tmp_path / "o.sepx").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_of_a_tagger_leaves_its_tokens_to_it(tmp_path, kind):
    X = KINDS[kind]
    model = Model(SequencePerceptron(random_state=0)).fit(X, TAGS)
    assert model.predict(X) == SequencePerceptron(random_state=0).fit(X, TAGS).predict(X)
    save(model, tmp_path / "m.sepx")
    assert load(tmp_path / "m.sepx").predict(X) == model.predict(X)


def test_hashed_features_in_a_file(tmp_path):
    model = SequencePerceptron(n_features=np.int64(50), random_state=0).fit(WORDS, TAGS)
    save(model, tmp_path / "m.sepx")
    again = load(tmp_path / "m.sepx")
    assert again.predict(WORDS) == model.predict(WORDS)
    assert again.score(WORDS, TAGS) == model.score(WORDS, TAGS)
    assert again.estimator.n_features_in_ == 50


def test_files_without_mistakes_and_without_what_learning_needs(tmp_path):
    model = SequencePerceptron(random_state=0, max_iter=3).fit(WORDS, TAGS)
    save(model, tmp_path / "m.sepx", ledger=False)
    again = load(tmp_path / "m.sepx").estimator
    assert again.n_mistakes_ == model.n_mistakes_ > len(again.ledger_) == 0
    with pytest.raises(ValueError, match="the mistakes were not kept"):
        again.replay(WORDS)
    with pytest.raises(ValueError, match="no mistake to show, since they were not kept"):
        again.trace(WORDS)
    assert all(map(np.array_equal, again.partial_fit(WORDS, TAGS).weights(), model.partial_fit(WORDS, TAGS).weights()))
    save(model, tmp_path / "small.sepx", resume=False)
    small = load(tmp_path / "small.sepx").estimator
    assert all(map(np.array_equal, small.weights(), model.weights()))
    with pytest.raises(ValueError, match="saved without what further learning needs"):
        small.partial_fit(WORDS, TAGS)
    with pytest.raises(ValueError, match="saved with the mean of the weights alone"):
        small.set_params(averaged=False).predict(WORDS)
    small.set_params(averaged=True)
    save(model, tmp_path / "f.sepx", float32=True)
    assert np.array_equal(load(tmp_path / "f.sepx").estimator.run_._T, model.run_._T.astype(np.float32))


@pytest.mark.parametrize("key", ["estimator.run.T", "estimator.run.ledger.true", "estimator.features.keys"])
def test_a_hostile_file_is_refused(tmp_path, key):
    from safetensors import safe_open
    from safetensors.numpy import save_file

    from separatrix.modelfile.archive import _canonical, _checksum

    save(SequencePerceptron(random_state=0, max_iter=2).fit(WORDS, TAGS), tmp_path / "m.sepx")
    with safe_open(tmp_path / "m.sepx", framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        body = json.loads(file.metadata()["separatrix"])["body"]
    arrays[key] = np.full(arrays[key].shape, 77, arrays[key].dtype) if key.endswith("true") else arrays[key][:-1]
    metadata = {"separatrix": _canonical({"body": body, "sha256": _checksum(_canonical(body), arrays)})}
    save_file(arrays, tmp_path / "bad.sepx", metadata)
    with pytest.raises(ModelFileError, match=r"bad\.sepx"):
        load(tmp_path / "bad.sepx")


def test_stored_sequences_that_do_not_fit_the_mistakes_are_refused(tmp_path):
    for spoil, message in (
        (lambda ledger: setattr(ledger, "stored_numbers", ledger.stored_numbers[::-1].copy()), "stored_numbers must rise"),
        (lambda ledger: setattr(ledger, "stored", ledger.stored.take([1, 0, 2])), "sequences of other lengths"),
    ):
        model = SequencePerceptron(random_state=0, record=True).fit(WORDS, TAGS)
        assert model.ledger_.stored_numbers.tolist() == [0, 1, 2]
        spoil(model.ledger_)
        with pytest.raises(ModelFileError, match=message):
            save(model, tmp_path / "m.sepx")


def test_a_file_holds_the_parameters_of_the_fit(tmp_path):
    model = SequencePerceptron(random_state=0, max_iter=1).fit(WORDS, [["I-x", "O", "I-x"], ["O", "I-x"], ["O", "B-x"]])
    tags = model.predict(WORDS)
    model.set_params(scheme="bio", rule="pa1", C=0.5)
    assert model.bounds(WORDS, [["I-x", "O", "I-x"], ["O", "I-x"], ["O", "B-x"]]).theorem.startswith("Collins")
    save(model, tmp_path / "m.sepx")
    again = load(tmp_path / "m.sepx").estimator
    assert (again.scheme, again.rule, again.C) == (None, "perceptron", 1.0)
    assert again.predict(WORDS) == tags == model.predict(WORDS)
    assert any("I-x" in path for path in tags)


def test_commands_train_predict_evaluate_and_inform(tmp_path):
    data, model = tmp_path / "a.conll", tmp_path / "m.sepx"
    data.write_text(CONLL + "\n")
    shown = call("train", data, "--sequence", "--rule", "perceptron", "-o", model)
    assert "3 sequences of 7 tokens, 2 tags" in shown
    assert (
        call("predict", model, data)
        == "\n\n".join("\n".join(f"{line} {line.split()[-1]}" for line in each.split("\n")) for each in CONLL.split("\n\n"))
        + "\n\n"
    )
    figures = json.loads(call("evaluate", model, data, "--json"))
    assert (figures["entities"]["f1"], figures["accuracy"]) == (1.0, 1.0)
    assert "entity  precision" in call("evaluate", model, data)
    assert "trained on 3 sequences of 7 tokens" in call("info", model)
    bare = tmp_path / "bare.conll"
    bare.write_text("Rome N\nis V\n")
    assert call("predict", model, bare, "-o", tmp_path / "out.conll") == f"2 tags written to {tmp_path / 'out.conll'}\n"
    assert (tmp_path / "out.conll").read_text() == "Rome N B-x\nis V O\n\n"
    same = train(data, sequence=True, rule="perceptron")
    assert all(map(np.array_equal, same.estimator.weights(), load(model).estimator.weights()))
    assert same.predict(WORDS) == TAGS


def test_comments_are_left_out_and_written_again(tmp_path):
    data, model = tmp_path / "a.conll", tmp_path / "m.sepx"
    data.write_text("# text = Rome is\nRome N B-x\nis V O\n\n# sent_id = 2\n# N O\n")
    assert "2 sequences of 3 tokens, 2 comments left out" in call("train", data, "--sequence", "-o", model)
    tagged = "# text = Rome is\nRome N B-x B-x\nis V O O\n\n# sent_id = 2\n# N O O\n\n"
    assert call("predict", model, data) == tagged


def test_the_encoding_of_a_file_is_noted_or_named(tmp_path):
    data, model, named = tmp_path / "a.conll", tmp_path / "m.sepx", ("--encoding", "windows-1251")
    data.write_bytes("щ X\nb Y\n".encode("cp1251"))
    assert "not UTF-8: read as windows-1252; if that is wrong, name it with --encoding" in call("train", data, "--sequence")
    assert "UTF-8" not in call("train", data, "--sequence", *named, "-o", model)
    assert call("predict", model, data, *named) == "щ X X\nb Y Y\n\n"
    assert "note: " in call("predict", model, data)
    assert json.loads(call("evaluate", model, data, *named, "--json"))["accuracy"] == 1.0
    assert "щ" in call("explain", model, data, *named) and "щ" in call("trace", data, "--sequence", *named)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_read_once_and_its_hash_is_kept(tmp_path):
    data, pipe = tmp_path / "a.conll", tmp_path / "pipe"
    data.write_text(CONLL)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(CONLL,), daemon=True)
    writer.start()
    of_pipe = train(str(pipe), sequence=True)
    writer.join(10)
    assert of_pipe.facts["data"] == train(str(data), sequence=True).facts["data"] != ""


def test_functions_for_classifiers_say_what_a_tagger_has_in_their_place():
    model = SequencePerceptron(random_state=0).fit(WORDS, TAGS)
    for wrong, message in (
        (lambda: explain(model, WORDS[0]), r"its own explain\(sequence, token\) shows"),
        (lambda: evaluate(Model(model), WORDS, TAGS), r"call evaluate_sequences\(y, model.predict\(X\)\)"),
        (lambda: trace(model, WORDS, TAGS), "SequencePerceptron is not one of them"),
        (lambda: to_sql(model), "SequencePerceptron is not a linear function of the features"),
        (lambda: train((WORDS, TAGS), sequence=True), "for data in memory call SequencePerceptron"),
        (lambda: train("a", sequence=True, validate=(WORDS, TAGS)), "for data in memory call SequencePerceptron"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            wrong()


def test_held_out_sequences_are_evaluated(tmp_path):
    data = tmp_path / "a.conll"
    data.write_text("\n\n".join([CONLL] * 10) + "\n")
    settings = ("--sequence", "--early-stopping", "--scheme", "bio", "--templates", "word[0], pos[0]", "--json")
    figures = json.loads(call("train", data, *settings, "--holdout", "0.2"))
    assert (figures["sequences"], figures["held_out"], figures["evaluation"]["entities"]["f1"]) == (24, 6, 1.0)
    assert json.loads(call("train", data, *settings, "--validate", data))["held_out"] == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "DATA", "--sequence", "--label", "x"), "--label cannot be combined with --sequence"),
        (("train", "DATA", "--sequence", "--rule", "arow"), "is not for sequences: use perceptron or pa1"),
        (("train", "DATA", "--sequence", "--learner", "voted"), "is not for sequences: use averaged or last"),
        (("train", "ONE", "--sequence"), "has only one column"),
        (("train", "BAD", "--sequence"), "line 2 has 2 columns, and the lines before it have 3"),
        (("train", "DATA", "--sequence", "--templates", "wrd[0]"), "unknown view 'wrd'"),
        (("predict", "MODEL", "ONE"), "has 1 column; the model needs 2, or 3 with a tag at the end"),
        (("predict", "MODEL", "DATA", "--scores"), "--scores is not for taggers of sequences"),
        (("evaluate", "MODEL", "ONE"), "the model needs 3, the tag last"),
        (("predict", "MODEL", "DATA", "--delimiter", ";"), "--delimiter is not for taggers of sequences"),
        (("evaluate", "MODEL", "DATA", "--on-error", "skip"), "--on-error is not for taggers of sequences"),
        (("evaluate", "MODEL", "DATA", "--json", "--curves"), "--curves is not for taggers of sequences"),
        (("explain", "MODEL", "DATA", "--class", "O"), "--class is not for taggers of sequences"),
        (("trace", "DATA", "--sequence", "--json"), "--format is not for taggers of sequences"),
        (("trace", "DATA", "--sequence", "--order", "random"), "--order random is not for taggers of sequences"),
        (("trace", "DATA", "--mistake", "1"), "--mistake is for --sequence"),
        (("train", "DATA", "--sequence", "--encoding", "latin1", "--engine", "local:1"), "convert the files to UTF-8"),
        (("export", "MODEL", "--to", "sql"), "it cannot be exported"),
        (("info", "MODEL", "--weights", "3"), "--weights is for classifiers"),
        (("serve", "STATE", "--model", "MODEL", "--keep-all"), "--keep-all is not for taggers of sequences"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, arguments, message):
    files = {name: tmp_path / name for name in ("DATA", "ONE", "BAD", "MODEL", "STATE")}
    files["DATA"].write_text(CONLL)
    files["ONE"].write_text("Rome\nis\n")
    files["BAD"].write_text("Rome N B-x\nis O\n")
    if "MODEL" in arguments:
        save(SequencePerceptron(random_state=0).fit(WORDS, TAGS), files["MODEL"])
    shown = call(*(files.get(each, each) for each in arguments), status=2)
    assert message in shown
    assert len(shown.splitlines()) == 1
