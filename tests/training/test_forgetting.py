"""`forget`: on arrays, data frames and files of every format, its receipt and the check, and what it refuses."""

import errno
import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file

from separatrix import (
    AveragedPerceptron,
    Model,
    Perceptron,
    TextFeatures,
    VotedPerceptron,
    forget,
    load,
    save,
    trace,
    train,
)
from separatrix.cli import app
from separatrix.engine.orders import Gaps, sequence
from separatrix.modelfile.archive import learned_checksum
from separatrix.training.forgetting.checking import fault_of
from separatrix.training.forgetting.receipt import Receipt

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RNG = np.random.default_rng(4)
N = 60
X = RNG.integers(-4, 5, size=(N, 4)).astype(float)
Y = np.where(X @ [1, -2, 1, 0.5] + RNG.normal(size=N) > 0, "up", "down")
FRAME = pd.DataFrame({"size": np.round(X[:, 0] + 5, 2), "colour": RNG.choice(["red", "green", "blue"], N), "note": "a b"})
FRAME["note"] = [f"word{i % 7} and word{i % 5}" for i in range(N)]
FRAME["kind"] = Y
LEFT = FRAME.drop([4, 30]).reset_index(drop=True)


def run(*arguments, status=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 or not done.stderr else done.stderr


def same_learning(one, other):
    """Tell whether two models have learned the same, whatever order their files say they had."""
    then, now = (model.estimator for model in (one, other))
    weights = np.array_equal(then.coef_, now.coef_) and np.array_equal(then.intercept_, now.intercept_)
    columns = ("step", "example", "up", "down", "correction", "score")
    ledgers = all(np.array_equal(getattr(then.ledger_, c), getattr(now.ledger_, c)) for c in columns)
    states = [None if model.features is None else model.features.get_state() for model in (one, other)]
    features = states[0] == states[1] if states[0] is None else _equal_states(*states)
    return weights and ledgers and features and then.mistakes_per_pass_ == now.mistakes_per_pass_


def _equal_states(one, other):
    return one[0] == other[0] and all(np.array_equal(one[1][name], other[1][name]) for name in one[1])


# Arrays.


def test_an_example_without_a_mistake_is_forgotten_without_a_presentation():
    model = Perceptron(random_state=0).fit(X, Y)
    right = np.setdiff1d(np.arange(N), model.ledger_.example)[0]
    after, receipt = forget(model, right, X, Y)
    assert np.array_equal(after.coef_, model.coef_) and receipt["replay"]["presented"] == 0
    assert after.n_seen_ == model.n_seen_ - model.n_iter_ and receipt["changed"] == {"mistakes": 0, "weights": (0, 5)}


def test_of_an_example_with_mistakes_only_what_comes_after_the_first_is_presented_again():
    model = AveragedPerceptron(random_state=0, max_iter=4).fit(X, Y)
    ledger = model.ledger_
    for m in (0, len(ledger) // 2):
        i = int(ledger.example[m])
        first = int(np.flatnonzero(ledger.example == i)[0])
        _, receipt = forget(model, i, X, Y)
        assert receipt["replay"]["first_mistake"] == first
        times_before = sum(int(s) <= int(ledger.step[first]) for s in _steps_of(model, i))
        skipped = int(ledger.step[first]) - times_before
        assert receipt["replay"]["steps"] - receipt["replay"]["presented"] == skipped


def _steps_of(model, i):
    orders = [sequence("shuffle", N, model.run_.seed, p, Gaps(np.empty(0, np.int64), 1)) for p in range(model.n_iter_)]
    return 1 + np.flatnonzero(np.concatenate(orders) == i)


def test_the_ledger_of_a_model_that_has_forgotten_counts_the_remaining_rows():
    model = AveragedPerceptron(random_state=0, record=True).fit(X, Y)
    after, _ = forget(model, [3, 17], X, Y)
    rest, labels = np.delete(X, [3, 17], axis=0), np.delete(Y, [3, 17])
    assert after.ledger_.verify(rest, labels) and after.ledger_.stored.n == len(np.unique(after.ledger_.example))
    assert np.array_equal(after.ledger_.weights().coef, after.coef_)
    steps = trace(Perceptron(random_state=0).fit(X, Y), X, Y)
    forgotten, _ = forget(steps.model, [3, 17], X, Y)
    assert [row["example"] for row in trace(forgotten, rest, labels).mistakes] == forgotten.ledger_.example.tolist()


def test_a_model_that_has_forgotten_is_saved_and_forgets_on(tmp_path):
    model = VotedPerceptron(random_state=0, max_iter=3).fit(sp.csr_matrix(X), Y)
    once, _ = forget(model, [5, 9], sp.csr_matrix(X), Y)
    save(once, tmp_path / "m.sepx")
    rest, labels = sp.csr_matrix(np.delete(X, [5, 9], axis=0)), np.delete(Y, [5, 9])
    twice, receipt = forget(load(tmp_path / "m.sepx"), 5, rest, labels)  # once row 6
    both, _ = forget(model, [5, 6, 9], sp.csr_matrix(X), Y)
    assert learned_checksum(twice) == learned_checksum(both) and receipt["order"]["forgotten"] == [5, 6, 9]


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"class_weight": "balanced"}, "the weights of the classes have changed"),
        ({"early_stopping": True}, "other examples are held out"),
        ({}, "a class has no example left"),
    ],
)
def test_training_starts_again_where_what_was_fitted_changes(parameters, why):
    labels = np.append(Y[:-1], "sideways") if not parameters else Y
    model = AveragedPerceptron(random_state=0, **parameters).fit(X, labels)
    after, receipt = forget(model, 0 if parameters else N - 1, X, labels)
    assert receipt["replay"] | {"first_mistake": None} == {
        "from_beginning": True,
        "why": why,
        "first_mistake": None,
        "presented": after.n_seen_,
        "steps": after.n_seen_,
    }
    assert set(after.classes_) == {"up", "down"}


def test_a_threshold_that_somebody_has_set_stays():
    model = Perceptron(random_state=0).fit(X, Y)
    model.threshold_ = 0.75
    assert forget(model, 0, X, Y).model.threshold_ == 0.75


# Data frames.


def test_a_model_of_a_data_frame_equals_one_trained_without_the_rows():
    for settings in ({}, {"calibrate": True}, {"learner": "voted"}, {"C": "auto"}, {"class_weight": "balanced"}):
        model = train(FRAME, label="kind", order="cyclic", passes=3, **settings)
        after, receipt = forget(model, [4, 30], FRAME)
        assert same_learning(after, train(LEFT, label="kind", order="cyclic", passes=3, **settings))
        assert fault_of(receipt, LEFT) is None and after.facts["rows"] == 58


def test_held_out_rows_stay_held_out_and_one_of_them_can_be_forgotten():
    model = train(FRAME, label="kind", holdout=0.3, early_stopping=True, optimize="f1")
    for i in range(6):
        rest = FRAME.drop([i]).reset_index(drop=True)
        after, receipt = forget(model, i, FRAME)
        assert fault_of(receipt, rest) is None
        rows = after.summary["rows"], after.summary["held_out"]
        assert sum(rows) == 59 and rows[0] in (model.summary["rows"], model.summary["rows"] - 1)
        again, receipt = forget(after, 10, rest)
        assert fault_of(receipt, rest.drop([10]).reset_index(drop=True)) is None
        assert again.facts["forgotten"] == sorted([i, 11])


def test_models_that_were_fitted_forget_with_their_features():
    labels = FRAME["kind"].tolist()
    table, texts = FRAME.drop(columns="kind"), FRAME["note"].tolist()
    for model, data in ((Model(), table), (Model(Perceptron(random_state=0), TextFeatures(n_features=512)), texts)):
        fitted = model.fit(data, labels)
        after, receipt = forget(fitted, [4, 30], data, labels)
        rest = data.drop([4, 30]) if hasattr(data, "drop") else [text for i, text in enumerate(data) if i not in (4, 30)]
        assert fault_of(receipt, rest, [label for i, label in enumerate(labels) if i not in (4, 30)], model=after) is None
        assert type(after.features) is type(fitted.features)


# Files and the command line.


def write_files(folder):
    """Write the same table, or the same rows, in every format; return the files by format."""
    FRAME.to_csv(folder / "d.csv", index=False)
    FRAME.to_csv(folder / "d.tsv", index=False, sep="\t")
    (folder / "d.csv.gz").write_bytes(gzip.compress((folder / "d.csv").read_bytes()))
    FRAME.assign(colour=[f"{c},\nor so" for c in FRAME.colour]).to_csv(folder / "quoted.csv", index=False)
    FRAME.to_json(folder / "d.jsonl", orient="records", lines=True)
    pq.write_table(pa.Table.from_pandas(FRAME), folder / "d.parquet")
    codes = (Y == "up").astype(int)
    dump_svmlight_file(X, codes, str(folder / "d.svm"))
    np.savez(folder / "dense.npz", X=X, y=codes)
    sparse = sp.csr_matrix(X)
    parts = {name: getattr(sparse, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(folder / "sparse.npz", **parts, format="csr", y=codes)
    return "d.csv d.tsv d.csv.gz quoted.csv d.jsonl d.parquet d.svm dense.npz sparse.npz".split()


def test_files_of_every_format_are_forgotten_from(tmp_path):
    for name in write_files(tmp_path):
        left, model, receipt = (
            tmp_path / f"left-{name.removesuffix('.gz')}",
            tmp_path / "m.sepx",
            tmp_path / "m.receipt.json",
        )
        run("train", tmp_path / name, "--order", "cyclic", "--passes", 3, "-o", model, "--record")
        run("forget", model, tmp_path / name, "--rows", "5,31", "--remaining", left)
        run("train", left, "--order", "cyclic", "--passes", 3, "-o", tmp_path / "plain.sepx", "--record")
        assert same_learning(load(model), load(tmp_path / "plain.sepx")), name
        assert run("check", receipt, "--data", left).startswith("VALID: training on")
        assert "NOT VALID" in run("check", receipt, tmp_path / name, status=1)
        assert load(model).facts["data"] == load(tmp_path / "plain.sepx").facts["data"]
        run("forget", model, left, "--rows", 1)


def test_nothing_of_a_row_is_left_in_the_model_file_and_the_receipt(tmp_path):
    data, model = tmp_path / "d.csv", tmp_path / "m.sepx"
    frame = FRAME.copy()
    frame.loc[7, ["colour", "note"]] = "ultramarine", "zyzzyva and quokka"
    frame.loc[7, "size"] = 777.125
    frame.to_csv(data, index=False)
    settings = ["--text", "note", "--record", "--holdout", 0.2, "--seed", 1]
    run("train", data, "-o", model, *settings)
    secrets = (b"ultramarine", b"zyzzyva", b"quokka")
    assert any(secret in model.read_bytes() for secret in secrets)
    run("forget", model, data, "--rows", 8)
    for file in (model, tmp_path / "m.receipt.json"):
        content = file.read_bytes()
        assert not any(secret in content for secret in secrets)
        assert b"777.125" not in content and np.float64(777.125).tobytes() not in content


def test_the_command_says_what_it_did_and_refuses_in_one_line(tmp_path):
    FRAME.to_csv(tmp_path / "d.csv", index=False)
    data, model = tmp_path / "d.csv", tmp_path / "m.sepx"
    run("train", data, "-o", model)
    before = model.read_bytes()
    out = run("forget", model, data, "--rows", "5, 31", "-o", tmp_path / "n.sepx", "--key", tmp_path / "key")
    assert out.startswith("forgot 2 rows of 60: 5, 31\n") and model.read_bytes() == before
    receipt = json.loads((tmp_path / "n.receipt.json").read_text())
    assert receipt["removed"]["rows"] == [5, 31] and receipt["removed"]["counted_from"] == 1
    assert receipt["after"]["model"] == load(tmp_path / "n.sepx").sha256
    key = bytes.fromhex((tmp_path / "key").read_text())
    assert Receipt(receipt).holds(key, FRAME.iloc[4].to_dict()) and Receipt(receipt).was_before(key, load(model))
    FRAME.iloc[1:].to_csv(tmp_path / "other.csv", index=False)
    refusals = {
        ("--rows", "61"): "there is no row 61: the data have 60 rows, counted from 1",
        ("--rows", "0"): "there is no row 0: rows count from 1",
        ("--rows", "two"): "'two' is not a row number; use for example 17,23",
        ("--rows", "9" * 20): f"there is no row {'9' * 20}\n",
        ("--rows", "5", "--remaining", tmp_path / "no" / "left.csv"): "no",
        ("--rows", "5", "--remaining", data): "is both DATA and --remaining: name another file with --remaining",
        ("--rows", "5", "-o", tmp_path / "." / "d.csv"): "is both DATA and -o",
        ("--rows", "5", "--receipt", model): "is both -o and --receipt",
        ("--rows", "5", "--key", tmp_path / "m.receipt.json"): "is both --receipt and --key",
        ("--rows", ",".join(str(i + 1) for i in np.flatnonzero(Y == "up"))): "d.csv without the rows: a boundary needs two",
    }
    for options, message in refusals.items():
        error = run("forget", model, data, *options, status=2)
        assert message in error and error.count("\n") == 1, error
    assert "the checksums differ" in run("forget", model, tmp_path / "other.csv", "--rows", 1, status=2)
    run("train", data, "-o", tmp_path / "small.sepx", "--no-resume")
    assert "resume" in run("forget", tmp_path / "small.sepx", data, "--rows", 1, status=2)
    run("train", data, "-o", tmp_path / "asked.sepx", "--ask", "1")
    assert "was trained with --ask" in run("forget", tmp_path / "asked.sepx", data, "--rows", 1, status=2)
    bare = Perceptron(random_state=0).fit(X, Y)
    save(bare, tmp_path / "bare.sepx")
    assert "does not say how it was trained" in run("forget", tmp_path / "bare.sepx", data, "--rows", 1, status=2)
    assert "once" in run("check", tmp_path / "n.receipt.json", status=2)
    assert model.read_bytes() == before and len(data.read_text().splitlines()) == 61


def test_the_model_is_replaced_once_there_is_a_receipt(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "d.csv", index=False)
    run("train", tmp_path / "d.csv", "-o", tmp_path / "m.sepx")
    before = (tmp_path / "m.sepx").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "m.receipt.json")

    monkeypatch.setattr(Receipt, "to_json", full)
    error = run("forget", tmp_path / "m.sepx", tmp_path / "d.csv", "--rows", 5, status=74)
    assert "No space left" in error and error.count("\n") == 1
    assert (tmp_path / "m.sepx").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"d.csv", "m.sepx"}


def test_held_out_data_are_named_again(tmp_path):
    FRAME.to_csv(tmp_path / "d.csv", index=False)
    LEFT.iloc[:20].to_csv(tmp_path / "v.csv", index=False)
    data, held_out, model = tmp_path / "d.csv", tmp_path / "v.csv", tmp_path / "m.sepx"
    run("train", data, "--validate", held_out, "--early-stopping", "-o", model)
    assert "--validate" in run("forget", model, data, "--rows", 2, status=2)
    run("forget", model, data, "--rows", 2, "--validate", held_out, "--remaining", tmp_path / "left.csv")
    assert "VALID" in run("check", tmp_path / "m.receipt.json", tmp_path / "left.csv", "--validate", held_out)
