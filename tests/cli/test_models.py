"""train, predict, evaluate, explain and info: the verbs together, their refusals, and runs that are killed."""

import gzip
import json
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file, load_digits, load_iris

from separatrix import AveragedPerceptron, Perceptron, VotedPerceptron, load, load_svmlight
from separatrix.cli import app
from support.scale import counts

RUNNER = CliRunner()


def call(*arguments, status=0):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """Texts in which two words decide, a number and a category."""
    path, rng = tmp_path_factory.mktemp("data") / "messages.csv", random.Random(0)
    words = "see you at noon tomorrow the meeting is in room four please bring your own pen and paper".split()
    lines = ["label,message,length,from"]
    for i in range(400):
        spam = i % 3 == 0
        some = rng.sample(words, 6) + (["free", "money"] if spam else ["lunch", "friend"])
        rng.shuffle(some)
        lines.append(f"{'spam' if spam else 'ham'},{' '.join(some)},{rng.randrange(100)},{rng.choice(['shop', 'home'])}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_from_a_file_to_a_model_to_predictions(messages, tmp_path):
    model = tmp_path / "spam.sepx"
    told = json.loads(call("train", messages, "--label", "label", "-o", model, "--holdout", 0.2, "--calibrate", "--json"))
    assert told["held_out_accuracy"] > 0.95 and told["rows"] + told["held_out"] == 400
    assert told["classes"].keys() == {"ham", "spam"} and told["progressive_error"] < 0.45
    roles = " ".join(told["columns"])
    assert "message" in roles and "text" in roles and "category" in roles and "number" in roles
    judged = json.loads(call("evaluate", model, messages, "--json"))
    assert judged["accuracy"] > 0.95 and judged["rows"] == 400 and 0 < judged["log_loss"] < 0.4
    assert np.sum(judged["confusion"]["matrix"]) == 400 and judged["classes"]["spam"]["recall"] > 0.9
    for ending in ("csv", "jsonl", "parquet"):
        call("predict", model, messages, "-o", tmp_path / f"out.{ending}", "--scores")
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert len(lines) == 400 and lines == table
    assert {"prediction", "margin", "score of spam", "probability of spam", "probability of ham"} == set(lines[0])
    assert all((row["prediction"] == "spam") == (row["score of spam"] > 0) for row in lines)
    assert (tmp_path / "out.csv").read_text().splitlines()[0].startswith('"prediction","margin"')
    shown = call("evaluate", model, messages)
    assert "accuracy" in shown and "precision" in shown and "log loss" in shown
    told = json.loads(call("info", model, "--json"))
    assert told["learner"] == "AveragedPerceptron" and told["trained_on"]["rows"] < 400
    assert len(told["trained_on"]["data"]) == 64 and told["trained_on"]["label"] == "label"
    assert "AveragedPerceptron, 2 classes" in call("info", model)
    without = tmp_path / "unlabelled.csv"
    without.write_text("\n".join(line.split(",", 1)[1] for line in messages.read_text().splitlines()) + "\n")
    assert call("predict", model, without).splitlines() == call("predict", model, messages).splitlines()


def test_explain_gives_the_terms_and_the_mistakes(messages, tmp_path):
    model = tmp_path / "spam.sepx"
    call("train", messages, "--label", "label", "--drop", "length", "--drop", "from", "--record", "-o", model)
    told = json.loads(call("explain", model, messages, "--row", 1, "--json"))
    assert told["prediction"] == told["label"] == "spam"
    named = {term["name"] for term in told["terms"]}
    assert {"BIAS", "free", "money"} <= named
    assert sum(term["product"] for term in told["terms"]) == pytest.approx(told["score"])
    assert told["caused"] == pytest.approx(told["score"]) and len(told["causes"]) == 10
    shown = call("explain", model, messages, "--row", 2)
    assert "messages.csv, line 3, labelled ham" in shown and "mistakes that contributed most" in shown
    assert call("explain", model, messages, "--top", 2).count(" at step ") == 2
    assert "… 3 more" in call("explain", model, messages, "--top", len(named) - 3)
    assert "there is no row 401" in call("explain", model, messages, "--row", 401, status=2)


def test_explain_the_score_of_a_class_and_list_the_largest_weights(messages, tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    lines = [",".join([*map(str, row), name]) for row, name in zip(X.tolist(), names.tolist(), strict=True)]
    (tmp_path / "iris.csv").write_text("\n".join(["a,b,c,d,kind", *lines]) + "\n")
    model = tmp_path / "iris.sepx"
    call("train", tmp_path / "iris.csv", "-o", model, "--passes", 3)
    explain = ("explain", model, tmp_path / "iris.csv", "--row", 120)
    told = json.loads(call(*explain, "--class", "setosa", "--json"))
    scores = {each["class"]: each["score"] for each in told["scores"]}
    assert scores.keys() == set(names) and list(scores.values()) == sorted(scores.values(), reverse=True)
    assert (told["of"], told["against"], told["score"]) == ("setosa", None, scores["setosa"])
    lead = json.loads(call(*explain, "--class", "setosa", "--against", "virginica", "--json"))
    assert lead["score"] == scores["setosa"] - scores["virginica"] == pytest.approx(lead["total"])
    assert "that of setosa, the 3rd of 3, is" in call(*explain, "--class", "setosa")
    assert "train with --record" in call(*explain)
    assert "did you mean 'setosa'?" in call(*explain, "--class", "setossa", status=2)
    listed = json.loads(call("info", model, "--weights", 4, "--json"))["weights"]
    assert [each["class"] for each in listed["classes"]] == sorted(set(names))
    assert all(len(each["weights"]) == 4 for each in listed["classes"])
    assert {part["column"] for part in listed["columns"]} == {"a", "b", "c", "d"}
    assert "setosa" in call("info", model, "--weights", 4) and "importance" not in call("info", model)
    spam = tmp_path / "spam.sepx"
    call("train", messages, "--label", "label", "--drop", "length", "--drop", "from", "-o", spam)
    weights = json.loads(call("info", spam, "--weights", 4, "--json"))["weights"]["classes"][0]["weights"]
    assert {weight["name"] for weight in weights} == {"free", "money", "lunch", "friend"}


def test_the_spam_slide_from_a_file(tmp_path):
    data = tmp_path / "slide.jsonl"
    data.write_text('{"free": 1, "money": 1, "label": "SPAM"}\n{"free": 0, "money": 0, "label": "HAM"}\n')
    settings = ("--rule", "perceptron", "--learner", "last", "--order", "cyclic", "--numbers", "none", "--passes", 30)
    call("train", data, "--label", "label", *settings, "-o", tmp_path / "slide.sepx")
    model = load(tmp_path / "slide.sepx")
    model.estimator.run_.last.W[:] = [4.0, 2.0]
    model.estimator.run_.last.b[:] = -3.0
    model.estimator.run_.used = None
    from separatrix import save

    save(model, tmp_path / "slide.sepx")
    told = json.loads(call("explain", tmp_path / "slide.sepx", data, "--json"))
    products = {term["name"]: term["product"] for term in told["terms"]}
    assert products == {"BIAS": -3.0, "free": 4.0, "money": 2.0} and told["score"] == 3.0 and told["prediction"] == "SPAM"


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "digits.svm"
    X, y = load_digits(return_X_y=True)
    dump_svmlight_file(X / 16, y, str(path), zero_based=False)
    return path


@pytest.mark.parametrize("learner", ["averaged", "last", "voted", "pocket"])
def test_the_model_is_that_of_fit_on_the_same_rows(digits, tmp_path, learner):
    model = tmp_path / "digits.sepx"
    call("train", digits, "--learner", learner, "--rule", "perceptron", "--passes", 3, "--seed", 4, "-o", model)
    X, y = load_svmlight(str(digits))
    kind = {"averaged": AveragedPerceptron, "last": Perceptron, "voted": VotedPerceptron}.get(learner)
    estimator = load(model).estimator
    assert estimator.classes_.tolist() == list(range(10))
    if kind is not None:
        expected = kind(rule="perceptron", max_iter=3, random_state=4).fit(X, y.astype(int))
        assert np.array_equal(expected.coef_, estimator.coef_)
        assert np.array_equal(expected.predict(X), estimator.predict(X))
    assert json.loads(call("evaluate", model, digits, "--json"))["accuracy"] > 0.9


def test_the_same_training_gives_the_same_bytes_whatever_the_memory(digits, tmp_path):
    for name, memory in (("rich", "1G"), ("poor", "1k"), ("again", "1G")):
        call("train", digits, "--memory", memory, "--order", "cyclic", "--passes", 2, "-o", tmp_path / f"{name}.sepx")
    assert (tmp_path / "rich.sepx").read_bytes() == (tmp_path / "again.sepx").read_bytes()
    assert np.array_equal(load(tmp_path / "rich.sepx").estimator.coef_, load(tmp_path / "poor.sepx").estimator.coef_)


def test_a_pipe_is_as_good_as_a_file(messages, tmp_path):
    text = messages.read_bytes()
    command = [sys.executable, "-m", "separatrix"]
    for name, data in (("file", str(messages)), ("pipe", "-")):
        given = {"input": text} if data == "-" else {}
        output = str(tmp_path / f"{name}.sepx")
        subprocess.run([*command, "train", data, "--label", "label", "-o", output], check=True, capture_output=True, **given)
    assert (tmp_path / "file.sepx").read_bytes() == (tmp_path / "pipe.sepx").read_bytes()


def test_shards_and_a_validation_file(messages, tmp_path):
    header, *lines = messages.read_text().splitlines()
    for k in range(3):
        with gzip.open(tmp_path / f"part-{k}.csv.gz", "wt") as file:
            file.write("\n".join([header, *lines[k * 100 : (k + 1) * 100]]) + "\n")
    (tmp_path / "held.csv").write_text("\n".join([header, *lines[300:], "never met,hello,1,home"]) + "\n")
    told = json.loads(
        call(
            *("train", tmp_path / "part-*.csv.gz", "--label", "label", "--validate", tmp_path / "held.csv"),
            *("--early-stopping", "--patience", 2, "--passes", 30, "--json"),
        )
    )
    assert told["rows"] == 300 and told["held_out"] == 101 and told["classes"].keys() == {"ham", "spam"}
    assert 0.9 < told["held_out_accuracy"] <= 100 / 101


def test_a_wrong_column_of_labels_is_noticed(messages, tmp_path):
    model, numbered = tmp_path / "m.sepx", tmp_path / "numbered.csv"
    header, *lines = messages.read_text().splitlines()
    numbered.write_text("\n".join([header + ",id", *(f"{line},k{i}" for i, line in enumerate(lines))]) + "\n")
    assert "most classes occur once: is id the label column? --label" in call("train", numbered, "--drop", "message")
    assert "occur once" not in call("train", messages, "--label", "label", "-o", model)
    refused = call("evaluate", model, numbered, "--label", "id", status=2)
    assert "400 rows" in refused and "k0, k1, k2 …; is 'id' the label column?" in refused


# What cannot be used.


def text_file(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


GOOD = "a,b,y\n1,x,u\n2,z,v\n3,x,u\n4,z,v\n"


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        (None, [], "no such file"),
        ("", [], "is empty"),
        ("a,b,y\n", [], "there is no example in it"),
        ("a,b,y\n1,x,u\n2,z,u\n", [], "only 1 class: 'u'"),
        ("a,b,y\n1,x,u\n2,z,\n", ["--missing-label", "raise"], "line 3: the label is missing"),
        ("a,b,y\n1,x,u\n2,z\n", [], "line 3"),
        (GOOD, ["--label", "w"], "there is no column 'w'"),
        (GOOD, ["--text", "w"], "there is no column 'w'; the columns are a, b"),
        (GOOD, ["--rule", "adaline"], "rule"),
        (GOOD, ["--learner", "best"], "--learner: 'best' is not one of averaged, last, voted or pocket"),
        (GOOD, ["-C", "big"], "-C big is neither a number nor auto"),
        (GOOD, ["--memory", "much"], "--memory much is not a size"),
        (GOOD, ["--early-stopping"], "--early-stopping needs held-out examples: use --holdout 0.1 or --validate"),
        (GOOD, ["-o", "/no/such/folder/m.sepx"], "/no/such/folder does not exist"),
        (
            GOOD,
            ["--learner", "voted", "--checkpoint", "c"],
            "--checkpoint supports the learners averaged and last, not voted",
        ),
        ("1 3:1 2:1\n-1 1:1\n", ["--format", "svmlight"], "line 1"),
        ("1 0:1 2:1\n-1 1:1 9999999999:1\n", ["--format", "svmlight"], "line 2"),
    ],
)
def test_train_refuses_what_it_cannot_use_in_one_line(tmp_path, text, options, complaint):
    path = tmp_path / "missing.csv" if text is None else text_file(tmp_path, text)
    before = set(tmp_path.iterdir())
    said = call("train", path, *options, status=2)
    assert complaint in said and len(said.strip().splitlines()) == 1 and said.startswith("separatrix train: ")
    assert set(tmp_path.iterdir()) == before


def test_other_verbs_refuse_in_one_line(messages, tmp_path):
    model = tmp_path / "m.sepx"
    call("train", messages, "--label", "label", "-o", model)
    narrow = text_file(tmp_path, "label,message,from\nham,hello,home\n")
    said = call("predict", model, narrow, "--header", status=2)
    assert "length" in said and len(said.strip().splitlines()) == 1
    assert "a table of columns" in call("predict", model, text_file(tmp_path, "1 1:1\n-1 2:1\n", "x.svm"), status=2)
    assert "end in .csv" in call("predict", model, messages, "-o", tmp_path / "out.txt", status=2)
    (tmp_path / "cut.sepx").write_bytes(model.read_bytes()[:2000])
    for verb in (("predict", messages), ("evaluate", messages), ("explain", messages), ("info",)):
        said = call(verb[0], tmp_path / "cut.sepx", *verb[1:], status=2)
        assert "cut.sepx" in said and len(said.strip().splitlines()) == 1
        assert "no.sepx" in call(verb[0], tmp_path / "no.sepx", *verb[1:], status=2)
    truncated = tmp_path / "data.csv.gz"
    truncated.write_bytes(gzip.compress(messages.read_bytes())[:-40])
    assert "data.csv.gz" in call("evaluate", model, truncated, status=2)
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_lines_that_cannot_be_read_can_be_skipped(messages, tmp_path):
    lines = messages.read_text().splitlines()
    lines.insert(50, "ham,too,many,fields,here,by,far")
    path = text_file(tmp_path, "\n".join(lines) + "\n")
    assert "line 51" in call("train", path, "--label", "label", status=2)
    told = json.loads(call("train", path, "--label", "label", "--on-error", "skip", "--json"))
    assert told["skipped"] == 1 and told["rows"] == 400
    assert "skipped 1 line" in call("train", path, "--label", "label", "--on-error", "skip")


# Runs that are ended.

PROGRAM = [sys.executable, "-c", "from separatrix.__main__ import main; main()"]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """A training of some seconds, and its model."""
    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 30)).astype(np.float32)
    y = (X @ rng.normal(size=30) + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    np.savez(folder / "data.npz", X=X, y=y)
    command = [*PROGRAM, "train", str(folder / "data.npz"), "--rule", "arow", "--passes", "150", "--holdout", "0.1"]
    command += ["--early-stopping", "--patience", "150", "--quiet"]
    subprocess.run([*command, "-o", str(folder / "whole.sepx")], check=True, capture_output=True)
    return folder, command


def written(path):
    """When a file was last written; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None


@pytest.mark.crash
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("wanted", counts(slow=3, soak=20))
def test_a_run_killed_again_and_again_ends_with_the_same_bytes(long_run, wanted):
    folder, command = long_run
    checkpoint, output = folder / "run.ckpt", folder / "killed.sepx"
    command = [*command, "-o", str(output), "--checkpoint", str(checkpoint), "--checkpoint-every", "0"]
    rng, kills, resumed = random.Random(1), 0, 0
    while kills < wanted:
        before = written(checkpoint)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        began = time.monotonic()
        while process.poll() is None and written(checkpoint) == before and time.monotonic() - began < 120:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.5))  # in the middle of a pass, or of writing
        if process.poll() is None:
            process.kill()
            kills, resumed = kills + 1, resumed + (before is not None)
        elif process.returncode == 0:
            assert output.read_bytes() == (folder / "whole.sepx").read_bytes()
        process.communicate()
        assert process.returncode in (0, -signal.SIGKILL)
    assert resumed
    subprocess.run(command, check=True, capture_output=True)
    assert output.read_bytes() == (folder / "whole.sepx").read_bytes()
    assert not checkpoint.exists()
    assert not [path.name for path in folder.iterdir() if path.name.endswith(".part")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_ctrl_c_leaves_a_checkpoint_to_resume_from(long_run):
    folder, command = long_run
    checkpoint, output = folder / "interrupted.ckpt", folder / "interrupted.sepx"
    command = [*command, "-o", str(output), "--checkpoint", str(checkpoint), "--checkpoint-every", "0"]
    reset = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    stoppable = [command[0], "-c", reset + command[2], *command[3:]]
    process = subprocess.Popen(stoppable, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    began = time.monotonic()
    while not checkpoint.exists() and time.monotonic() - began < 120:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert f"resume from {checkpoint}".encode() in said and not output.exists()
    summary = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.search(f"^  resumed from {re.escape(str(checkpoint))}, after \\d+ pass(es)?$", summary, re.M), summary
    assert output.read_bytes() == (folder / "whole.sepx").read_bytes()


def test_a_checkpoint_of_another_run_is_refused(digits, messages, tmp_path):
    checkpoint = tmp_path / "c.ckpt"
    call("train", digits, "-o", checkpoint)
    said = call("train", digits, "--checkpoint", checkpoint, status=2)
    assert "is a model, not a checkpoint" in said


MEMORY = """
import resource, sys
from separatrix.cli import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures resident memory")
def test_memory_hardly_grows_with_the_file(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(2)} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(rng.normal(size=25), 1)) for _ in range(20_000)
    ]
    peaks = []
    for times in (1, 10):
        path = tmp_path / f"data{times}.svm"
        with open(path, "w") as file:
            for _ in range(times):
                file.write("\n".join(lines) + "\n")
        command = [sys.executable, "-c", MEMORY, "train", str(path), "--memory", "16M", "--passes", "2", "--quiet"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout.splitlines()[-1]))
    assert peaks[1] < 1.2 * peaks[0]
