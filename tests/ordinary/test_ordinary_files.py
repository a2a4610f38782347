"""Ordinary, messy files on the command line: those of `traps.py` and those made here, with what a person should see."""

import re
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from ordinary.traps import TRAPS
from separatrix.cli import app

FILES = Path(__file__).parent / "files"
PYTHON_ADVICE = re.compile(
    r"\b(roles|types|quote|on_error|label|n_features|missing_label|encoding)=|Traceback|np\.|pyarrow|dtype"
)
SINGULAR = re.compile(r"\b1 (rows|lines|classes|passes|examples|features|columns|files|shards|mistakes|predictions)\b")


def run(*arguments, status=0, stdin=None):
    """Run a command; return what it prints, of which some things must never be part."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert done.exit_code == status, done.output + repr(done.exception)
    for wrong in (PYTHON_ADVICE, SINGULAR):
        assert wrong.search(done.output) is None, done.output
    assert status == 0 or done.stderr.count("\n") == 1, done.stderr
    return done.output


def accuracy_in(output):
    return float(re.search(r"held-out accuracy ([\d.]+)", output)[1])


def classes_in(output):
    counts = re.search(r"\d+ class(?:es)? \((.*)\)", output)[1]
    return tuple(part.rsplit(" ", 1)[0] for part in counts.split(", "))


def roles_in(output):
    lines = output.splitlines()
    header = next(i for i, line in enumerate(lines) if line.split() == ["column", "role", "features", "missing"])
    at = lines[header].index("role")
    table = lines[header + 1 :]
    end = next(
        i for i, line in enumerate(table) if line.startswith(("  note:", "  warning:")) or re.search(r" features?; ", line)
    )
    return {line[:at].strip(): line[at:].split()[0] for line in table[:end]}


@pytest.mark.parametrize("trap", TRAPS, ids=[trap.title for trap in TRAPS])
def test_a_trap(trap):
    options = shlex.split(trap.options)
    if trap.accuracy is None:
        output = run("train", FILES / trap.file, *options, status=2)
    else:
        output = run("train", FILES / trap.file, *options, "--holdout", 0.3, "--quiet")
        assert accuracy_in(output) >= trap.accuracy, output
        roles = roles_in(output) if trap.roles else {}
        assert {name: roles.get(name) for name in trap.roles} == trap.roles, output
        assert not trap.classes or classes_in(output) == trap.classes, output
    for part in trap.says:
        assert part in output, output
    for part in trap.never:
        assert part not in output, output


def test_each_file_is_a_trap():
    assert {path.name for path in FILES.iterdir()} <= {trap.file for trap in TRAPS}
    assert all(path.stat().st_size < 20_000 for path in FILES.iterdir())


# Files that need more rows, and other verbs.


def customers(n, seed=0, share=0.5):
    """Return the rows of n customers, of whom a share churned."""
    draw = np.random.default_rng(seed)
    churned = draw.random(n) < share
    visits = np.clip(draw.normal(np.where(churned, 14, 26), 5).round(), 0, 40).astype(int)
    age, plan = draw.integers(18, 80, n), draw.choice(["basic", "plus", "pro"], n)
    return [f"{a},{v},{p},{'yes' if y else 'no'}" for a, v, p, y in zip(age, visits, plan, churned, strict=True)]


def write(path, rows, header="age,visits,plan,churned"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def recall_in(output, name):
    return float(next(line.split()[2] for line in output.splitlines() if line.split()[:1] == [name]))


@pytest.mark.parametrize("options", [(), ("--memory", "256K")], ids=["in memory", "on disk"])
@pytest.mark.parametrize("order", ["sorted", "reversed", "shuffled"])
def test_the_order_of_the_rows_does_not_matter(tmp_path, order, options):
    rows = customers(20_000)
    if order != "shuffled":
        rows.sort(key=lambda row: row.rsplit(",", 1)[1], reverse=order == "reversed")
    model = tmp_path / "model.sepx"
    run("train", write(tmp_path / "rows.csv", rows), "-o", model, "--quiet", *options)
    output = run("evaluate", model, write(tmp_path / "test.csv", customers(5000, seed=1)))
    assert float(re.search(r"accuracy ([\d.]+)", output)[1]) > 0.87, output
    assert min(recall_in(output, "yes"), recall_in(output, "no")) > 0.85, output


@pytest.mark.parametrize("options", [(), ("--memory", "256K")], ids=["in memory", "on disk"])
def test_a_rare_class_at_the_end_is_learned(tmp_path, options):
    draw = np.random.default_rng(0)
    rows = sorted(customers(20_000), key=lambda row: row.rsplit(",", 1)[1])
    rows += [f"{draw.integers(18, 80)},{draw.integers(60, 90)},pro,zealous" for _ in range(400)]
    model = tmp_path / "model.sepx"
    path = write(tmp_path / "rows.csv", rows)
    run("train", path, "-o", model, "--quiet", *options)
    output = run("evaluate", model, path)
    assert min(recall_in(output, name) for name in ("no", "yes", "zealous")) > 0.85, output


def test_labels_that_come_in_runs_through_a_pipe_are_noticed(tmp_path):
    rows = sorted(customers(20_000), key=lambda row: row.rsplit(",", 1)[1])
    path = write(tmp_path / "rows.csv", rows)
    output = run("train", "-", "--quiet", "--memory", "256K", "-o", tmp_path / "m.sepx", stdin=path.read_bytes())
    evaluation = run("evaluate", tmp_path / "m.sepx", path)
    good = min(recall_in(evaluation, "yes"), recall_in(evaluation, "no")) > 0.85
    assert good or "shuffle" in output, output + evaluation


def test_a_table_through_a_pipe():
    output = run("train", "-", "--holdout", 0.3, stdin=(FILES / "bars.csv").read_bytes())
    assert accuracy_in(output) >= 0.8 and roles_in(output)["plan"] == "category"


def test_a_word_among_numbers_that_comes_late(tmp_path):
    rows = customers(80_000)
    rows[-1] = rows[-1].replace(",", ",unknown,", 1).replace(",unknown," + rows[-1].split(",")[1], ",unknown", 1)
    path = write(tmp_path / "rows.csv", rows)
    assert path.stat().st_size > 1 << 20 and ",unknown," in path.read_text()[-80:]
    output = run("train", path, "--holdout", 0.1, "--passes", 1, "--quiet")
    assert accuracy_in(output) > 0.87 and classes_in(output) == ("no", "yes"), output


def test_a_rare_class_is_found_with_balanced_weights(tmp_path):
    path = write(tmp_path / "rows.csv", customers(20_000, share=0.01))
    recalls = []
    for options in ((), ("--class-weight", "balanced")):
        run("train", path, *options, "-o", tmp_path / "model.sepx", "--quiet")
        evaluation = run("evaluate", tmp_path / "model.sepx", write(tmp_path / "test.csv", customers(20_000, 1, 0.01)))
        recalls.append(recall_in(evaluation, "yes"))
    assert recalls[0] < 0.5 < recalls[1], recalls


def test_a_list_in_a_parquet_column(tmp_path):
    draw = np.random.default_rng(0)
    tags = [[*draw.choice(["new", "old", "red"], 2, replace=False), *(["slow"] if k % 2 else [])] for k in range(100)]
    table = pa.table({"visits": draw.integers(0, 40, 100), "tags": tags, "late": ["no", "yes"] * 50})
    pq.write_table(table, tmp_path / "lists.parquet")
    output = run("train", tmp_path / "lists.parquet", "--holdout", 0.3)
    assert accuracy_in(output) > 0.9 and roles_in(output) == {"visits": "number", "tags": "set"}, output


def test_a_structure_in_a_parquet_column(tmp_path):
    visits = [int(row.split(",")[1]) for row in customers(100)]
    late = ["yes" if v < 20 else "no" for v in visits]
    pq.write_table(pa.table({"visits": visits, "place": [{"x": 1.0, "y": 2.0}] * 100, "late": late}), tmp_path / "p.parquet")
    output = run("train", tmp_path / "p.parquet", status=2)
    assert "column 'place' holds struct" in output and "--drop place" in output
    output = run("train", tmp_path / "p.parquet", "--drop", "place", "--holdout", 0.3)
    assert accuracy_in(output) > 0.85


def test_a_spreadsheet_is_named(tmp_path):
    path = tmp_path / "book.xlsx"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
    assert "save it as CSV" in run("train", path, status=2)


# A model and other files than it was trained on.


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("ordinary") / "model.sepx"
    run("train", FILES / "crlf_line_ends.csv", "-o", path, "--quiet")
    return path


def test_columns_in_another_order(model):
    output = run("evaluate", model, FILES / "utf_8_mark.csv")
    assert float(re.search(r"accuracy ([\d.]+)", output)[1]) > 0.8


@pytest.mark.parametrize("verb", ["evaluate", "predict", "explain"])
def test_a_column_that_is_not_there(model, tmp_path, verb):
    lines = (FILES / "crlf_line_ends.csv").read_text().splitlines()
    path = write(tmp_path / "renamed.csv", lines[1:], header="age,visit,plan,churned")
    output = run(verb, model, path, status=2)
    assert "there is no column 'visits'" in output and "did you mean 'visit'?" in output and "--drop visits" in output


def test_a_label_column_that_is_not_there(model, tmp_path):
    lines = (FILES / "crlf_line_ends.csv").read_text().splitlines()
    path = write(tmp_path / "renamed.csv", lines[1:], header="age,visits,plan,Churned")
    output = run("evaluate", model, path, status=2)
    assert "there is no column 'churned'" in output and "did you mean 'Churned'?" in output


def test_missing_labels_in_a_test_file(model):
    output = run("evaluate", model, FILES / "missing_labels.csv")
    assert "108 rows" in output and "12 rows without a label" in output


def test_predictions_of_rows_without_labels(model, tmp_path):
    for name in ("missing_labels.csv", "no_labels.csv"):
        path = FILES / name
        output = run("predict", model, path, "-o", tmp_path / "predictions.csv")
        n = len(path.read_text().splitlines()) - 1
        assert f"{n} predictions" in output
        assert len((tmp_path / "predictions.csv").read_text().splitlines()) == n + 1


@pytest.mark.parametrize("verb", ["evaluate", "predict", "explain"])
def test_short_rows_in_a_test_file(model, tmp_path, verb):
    output = run(verb, model, FILES / "short_rows.csv", status=2)
    assert "line 41: 3 columns" in output and "--on-error skip" in output
    to_file = ("-o", tmp_path / "predictions.csv") if verb == "predict" else ()
    output = run(verb, model, FILES / "short_rows.csv", "--on-error", "skip", *to_file)
    assert verb == "explain" or "2 lines" in output


def test_another_encoding_than_in_training(tmp_path):
    run("train", FILES / "utf_16_le.csv", "-o", tmp_path / "model.sepx", "--quiet")
    output = run("evaluate", tmp_path / "model.sepx", FILES / "latin_1.csv")
    assert float(re.search(r"accuracy ([\d.]+)", output)[1]) > 0.85
