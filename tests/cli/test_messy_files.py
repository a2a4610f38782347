"""What the verbs say of files with missing labels, other encodings, and lines that cannot be read."""

import gzip
import json

import pytest
from click.testing import CliRunner

from separatrix.cli import app


def run(*arguments, status=0, **options):
    result = CliRunner().invoke(app, list(map(str, arguments)), **options)
    assert result.exit_code == status, result.output + str(result.exception)
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


NO_LABEL = "without a label (empty, NA, ? or null)"
ROWS = [f"{i % 7},{i % 5},{'yes' if i % 7 > 2 else 'no'}\n" for i in range(60)]


def test_rows_without_a_label_are_counted_by_train_and_evaluate(folder):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2,\n3,4,NA\n5,6,?\n")
    printed = run("train", "data.csv", "-o", "model.sepx").stdout
    assert "  left out 3 rows without a label (empty, NA, ? or null), the first: data.csv, line 62\n" in printed
    assert "60 rows, 2 classes (no 27, yes 33)" in printed
    summary = json.loads(run("train", "data.csv", "--json").stdout)
    assert summary["unlabelled"] == summary["facts"]["unlabelled"] == 3 and summary["rows"] == 60
    printed = run("evaluate", "model.sepx", "data.csv").stdout
    assert "data.csv: 60 rows" in printed and f"left out 3 rows {NO_LABEL}, the first: data.csv, line 62" in printed
    evaluation = json.loads(run("evaluate", "model.sepx", "data.csv", "--json").stdout)
    assert evaluation["unlabelled"] == 3 and evaluation["rows"] == 60 and evaluation["unknown_labels"] == {}
    for verb in (["train", "data.csv"], ["evaluate", "model.sepx", "data.csv"]):
        assert "data.csv, line 62: the label is missing" in run(*verb, "--missing-label", "raise", status=2).stderr
    assert run("predict", "model.sepx", "data.csv").stdout.count("\n") == 64  # a row to predict needs no label


def test_tidy_files_say_nothing_of_missing_labels(folder):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS))
    summary = json.loads(run("train", "data.csv", "--json").stdout)
    assert summary["unlabelled"] == 0 and summary["notes"] == [] and "unlabelled" not in summary["facts"]


@pytest.mark.parametrize("verb", ["certify", "trace", "compare"])
def test_rows_without_a_label_are_told_by_verbs_that_hold_all_examples(folder, verb):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2,\n3,4,NA\n")
    models = ["--models", "perceptron"] if verb == "compare" else []
    result = CliRunner().invoke(app, [verb, "data.csv", *models])
    assert result.exit_code in (0, 1), result.output
    assert f"separatrix {verb}: note: left out 2 rows {NO_LABEL}, the first: data.csv, line 62" in result.stderr


def test_shards_leave_them_out_too(folder):
    for part in range(2):
        (folder / f"part-{part}.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2,\n" * part)
    printed = run("train", "part-*.csv", "--engine", "local:1").stdout
    assert "120 rows" in printed and f"left out 1 row {NO_LABEL}, the first: part-1.csv, line 62" in printed


def test_an_encoding_is_detected_noted_or_named(folder):
    text = "a,stadt,y\n" + "".join(f"{i % 7},{('Köln', 'Wien')[i % 2]},{'yes' if i % 7 > 2 else 'no'}\n" for i in range(60))
    (folder / "data.csv").write_bytes(text.encode("latin-1"))
    printed = run("train", "data.csv", "-o", "model.sepx").stdout
    assert "  data.csv: the text is not UTF-8: read as windows-1252; if that is wrong, name it with --encoding\n" in printed
    assert "not UTF-8" not in run("train", "data.csv", "--encoding", "latin-1").stdout
    noted = "separatrix predict: note: data.csv: the text is not UTF-8"
    assert noted in run("predict", "model.sepx", "data.csv").stderr
    assert "not UTF-8" in run("evaluate", "model.sepx", "data.csv").stdout
    problem = run("train", "data.csv", "--encoding", "utf-8", status=2).stderr
    assert "data.csv, line 2, column 2: byte 0xf6 is not utf-8; name the encoding with --encoding, or leave" in problem
    assert "offset 13 of the text" in problem


def test_every_verb_that_reads_can_leave_out_lines(folder):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS))
    run("train", "data.csv", "-o", "model.sepx")
    (folder / "torn.csv").write_text("a,b,y\n" + "".join(ROWS) + "1,2\n")
    verbs = (["train"], ["evaluate", "model.sepx"], ["predict", "model.sepx"], ["explain", "model.sepx", "--row", "99"])
    for verb in (*verbs, ["certify"], ["trace"]):
        problem = CliRunner().invoke(app, [*verb, "torn.csv"]).stderr
        assert "torn.csv, line 62: 2 columns where line 1 has 3; leave such lines out with --on-error skip" in problem
        kept = CliRunner().invoke(app, [*verb, "torn.csv", "--on-error", "skip"])
        assert "line 62" not in kept.stderr.replace("left out 1 line, the first: torn.csv, line 62", "")


def test_a_model_of_numbers_takes_words_as_missing(folder):
    (folder / "data.csv").write_text("a,b,y\n" + "".join(ROWS))
    run("train", "data.csv", "-o", "model.sepx")
    (folder / "new.csv").write_text("a,b\n1,2\nunknown,2\n3,1\n")
    result = run("predict", "model.sepx", "new.csv")
    assert result.stdout.count("\n") == 4
    assert (
        "column a: 1 value of 3 is not a number, the first 'unknown' at new.csv, line 3: taken as missing" in result.stderr
    )


@pytest.mark.parametrize("learner", ["averaged", "pocket"])
def test_held_out_labels_that_no_training_row_has_are_told_and_wrong(tmp_path, learner):
    rows = [f"{k % 10},{'ab'[k % 10 > 4]}" for k in range(100)]
    (tmp_path / "points.csv").write_text("\n".join(["x,kind", *rows]))
    (tmp_path / "other.csv").write_text("\n".join(["x,kind", *rows[:30], *["3,zoo"] * 10]))
    printed = run(
        "train", str(tmp_path / "points.csv"), "--validate", str(tmp_path / "other.csv"), "--learner", learner
    ).output
    assert "10 held-out rows have labels that no training row has, counted as wrong: zoo (10)" in printed
    assert "held-out accuracy 0.7500 on 40 rows" in printed


def numbered(path, one, zero, empty=0, n=300):
    """Write rows whose label, one or zero, depends on the first column; some have none."""
    rows = [f"{i % 10},{i % 7},{(one if i % 10 > 4 else zero) if i >= empty else ''}" for i in range(n)]
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize(
    ("learned", "evaluated"),
    [(("1", "0"), ("1.0", "0.0")), (("1.0", "0.0"), ("1", "0")), (("True", "False"), ("TRUE", "FALSE"))],
)
def test_labels_written_in_another_way_are_those_of_the_model(folder, learned, evaluated):
    numbered(folder / "train.csv", *learned, empty=30)
    numbered(folder / "test.csv", *evaluated)
    run("train", "train.csv", "-o", "model.sepx")
    evaluation = json.loads(run("evaluate", "model.sepx", "test.csv", "--json").stdout)
    assert evaluation["accuracy"] == 1.0 and evaluation["unknown_labels"] == {}
    labels, classes = (" and ".join(map(repr, pair[::-1])) for pair in (evaluated, learned))
    assert evaluation["notes"] == [f"the labels {labels} are taken for the classes {classes}"]
    for engine in ((), ("--engine", "local:1")):
        summary = json.loads(run("train", "train.csv", "--validate", "test.csv", "--json", *engine).stdout)
        assert summary["held_out_accuracy"] == 1.0
    summary = json.loads(run("train", "train.csv", "--validate", "test.csv", "--json").stdout)
    assert f"held-out rows: the labels {labels} are taken for the classes {classes}" in summary["notes"]


@pytest.mark.parametrize("engine", [(), ("--engine", "local:1")])
def test_files_with_1_and_with_1_0_have_the_same_classes(folder, engine):
    numbered(folder / "part-0.csv", "1", "0")
    numbered(folder / "part-1.csv", "1.0", "0.0", empty=30)
    result = run("train", "part-*.csv", "-o", "model.sepx", "--json", *engine)
    summary = json.loads(result.stdout)
    assert summary["classes"] == {"0": 285, "1": 285} and summary["training_error"] == 0.0
    assert "the labels '0' and '0.0', '1' and '1.0' are equal numbers: taken for one class" in summary["notes"]
    assert len(set(summary["notes"])) == len(summary["notes"])
    assert "\n1," in run("predict", "model.sepx", "part-1.csv").stdout


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ([f"{k % 40 if k < 150_000 else f'x{k % 40}'},{k % 40 > 19}" for k in range(160_000)], "column code: 10,000 values"),
        ([f"{k % 40},{k % 40 > 19 if k > 150_000 else int(k % 40 > 19)}" for k in range(160_000)], ""),
        ([f"caf\xe9 {k % 3},{k % 3}" for k in range(1000)], "the text is not UTF-8: read as windows-1252"),
    ],
    ids=["words", "labels", "encoding"],
)
def test_a_pipe_is_read_as_a_file_is(folder, rows, note, packed):
    data = packed("\n".join(["code,y", *rows, ""]).encode("latin-1"))
    (folder / "data").write_bytes(data)
    runs = (run("train", name, "--json", "-o", f"{name}.sepx", input=data) for name in ("data", "-"))
    file, pipe = (json.loads(result.stdout) for result in runs)
    assert note in " ".join(file["notes"])
    for summary in (file, pipe):
        summary["notes"] = [each.replace("standard input", "data") for each in summary["notes"]]
        for key in ("data", "model", "seconds", "seconds_reading", "seconds_training", "seconds_compiling"):
            del summary[key]
    assert pipe == file and (folder / "data.sepx").read_bytes() == (folder / "-.sepx").read_bytes()


def continents(folder, name="data.csv"):
    """Write a table whose labels are EU and NA, and in which NA is also a missing value."""
    rows = [f"{k % 10},{'NA' if k % 7 == 0 else 'x'},{'NA' if k % 10 > 4 else 'EU'}" for k in range(200)]
    (folder / name).write_text("\n".join(["a,b,continent", *rows, "1,x,", "2,x,"]) + "\n")


def test_labels_that_count_as_missing_are_told_where_one_class_is_left(folder):
    continents(folder)
    left_out = "left out 102 rows without a label (empty, NA, ? or null), the first: data.csv, line 7"
    error = run("train", "data.csv", status=2).stderr
    only = f"data.csv: a boundary needs two classes, but there is only 1 class: 'EU'; {left_out}"
    assert error == f"separatrix train: {only}; if NA or such a word is a label, keep it with --missing-label keep\n"
    assert run("certify", "data.csv", "--drop", "b", status=2).stderr == f"separatrix certify: {only}\n"
    assert "only 1 class: 'EU'; left out" in run("train", "data.csv", "--learner", "voted", status=2).stderr


@pytest.mark.parametrize("engine", [(), ("--engine", "local:1")])
def test_words_for_a_missing_label_can_be_kept(folder, engine):
    continents(folder)
    summary = json.loads(run("train", "data.csv", "--missing-label", "keep", "--json", "-o", "model.sepx", *engine).stdout)
    assert summary["classes"] == {"EU": 100, "NA": 100} and summary["unlabelled"] == 2 and summary["training_error"] == 0.0
    assert any(line.split() == ["b", "category", "2", "29"] for line in summary["columns"])  # NA is missing elsewhere
    assert "left out 2 rows without a label (empty), the first: data.csv, line 202" in summary["notes"]
    evaluation = json.loads(run("evaluate", "model.sepx", "data.csv", "--json").stdout)
    assert evaluation["accuracy"] == 1.0 and evaluation["rows"] == 200 and evaluation["unlabelled"] == 2
    assert evaluation["notes"] == [
        "left out 2 rows without a label (empty, ? or null), the first: data.csv, line 202",
        "the model was trained on these rows, so the figures are optimistic: evaluate rows that it has not seen",
    ]
    assert run("predict", "model.sepx", "data.csv").stdout.count('"NA"') == 100


def test_all_words_for_a_missing_label_can_be_kept(folder):
    words = ["NA", "nan", "?", "null", "None", "N/A"]
    rows = [f"{k % 6}, {words[k % 6]} " for k in range(120)]
    (folder / "data.csv").write_text("\n".join(["a,y", *rows, "7,"]) + "\n")
    summary = json.loads(run("train", "data.csv", "--missing-label", "keep", "--json", "-o", "model.sepx").stdout)
    assert summary["classes"] == dict.fromkeys(sorted(words), 20) and summary["unlabelled"] == 1
    assert json.loads(run("evaluate", "model.sepx", "data.csv", "--json").stdout)["accuracy"] == 1.0
