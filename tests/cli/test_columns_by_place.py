"""Models of files without a header know columns by their places: a file must have as many, with the label or without it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix.cli import app
from separatrix.data.dialects.layouts import Layout


def run(*arguments, status=0, **options):
    result = CliRunner().invoke(app, list(map(str, arguments)), **options)
    assert result.exit_code == status, result.output + str(result.exception)
    return result


def predicted(model, text, *options):
    lines = run("predict", model, "-", *options, input=text).stdout.splitlines()
    return [line.split(",")[0].strip('"') for line in lines[1:]]


@pytest.fixture(scope="module")
def amounts(tmp_path_factory):
    """A model of rows such as "no,5.00,3,10000": label, amount, noise and number, of which the amount tells the label."""
    draw, folder = np.random.default_rng(3), tmp_path_factory.mktemp("amounts")
    amounts, noise = draw.random(400) * 1000, draw.integers(0, 50, 400)
    rows = [f"{'yes' if a > 500 else 'no'},{a:.2f},{noise[k]},{10_000 + k}\n" for k, a in enumerate(amounts)]
    (folder / "rows.csv").write_text("".join(rows))
    run("train", folder / "rows.csv", "--label", 0, "-o", folder / "model.sepx")
    return folder


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """A model of lines such as "spam<TAB>win cash"."""
    draw, folder = np.random.default_rng(4), tmp_path_factory.mktemp("messages")
    words = {"ham": ["lunch", "home", "see", "later"], "spam": ["win", "free", "cash", "prize"]}
    rows = [f"{label}\t{' '.join(draw.choice(words[label], 5))}\n" for label in draw.choice(["ham", "spam"], 300)]
    (folder / "rows.tsv").write_text("".join(rows))
    run("train", folder / "rows.tsv", "--label", 0, "-o", folder / "model.sepx")
    return folder


UNLABELLED = "900.5,3,20001\n5.5,45,20002\n800,7,20003\n"
LABELLED = "no,900.5,3,20001\nno,5.5,45,20002\nyes,800,7,20003\n"


def test_a_file_without_the_label_has_the_other_columns_in_their_order(amounts):
    for text in (UNLABELLED, LABELLED, UNLABELLED.replace(",", ";")):
        assert predicted(amounts / "model.sepx", text) == ["yes", "no", "yes"]
    assert predicted(amounts / "model.sepx", UNLABELLED.splitlines()[0]) == ["yes"]  # one row is a row, not a header


@pytest.mark.parametrize("text", ["900.5,3\n5.5,4\n", "1,no,900.5,3,20001\n2,no,5.5,45,20002\n", "900.5\n5.5\n"])
def test_another_number_of_columns_is_refused(amounts, text):
    n = len(text.splitlines()[0].split(","))
    error = run("predict", amounts / "model.sepx", "-", input=text, status=2).stderr
    columns = "1 column" if n == 1 else f"{n} columns"
    where = f"standard input, line 1: {columns} where the model was trained on 4, by their places, the label among them"
    remedy = "give it the same columns in the same order, or name the delimiter with --delimiter"
    assert error == f"separatrix predict: {where}, or 3 without it; {remedy}\n"


def test_evaluate_needs_all_columns_and_takes_the_label_at_another_place(amounts):
    error = run("evaluate", amounts / "model.sepx", "-", input=UNLABELLED, status=2).stderr
    assert "3 columns where the model was trained on 4, by their places, the label among them; give it" in error
    at_the_end = "".join(f"{line.partition(',')[2]},{line.partition(',')[0]}\n" for line in LABELLED.splitlines())
    for text, options in ((LABELLED, ()), (at_the_end, ("--label", "3")), (at_the_end, ("--label", "-1"))):
        evaluation = json.loads(run("evaluate", amounts / "model.sepx", "-", *options, "--json", input=text).stdout)
        assert evaluation["confusion"]["matrix"] == [[1, 1], [0, 1]]


def test_a_header_is_passed_over_and_told(amounts):
    result = run("predict", amounts / "model.sepx", "-", input="amount,noise,number\n" + UNLABELLED)
    assert result.stdout.count("\n") == 4 and "standard input, line 1: taken for a header; the columns" in result.stderr
    assert predicted(amounts / "model.sepx", "unknown,3,20001\n" + UNLABELLED)[1:] == ["yes", "no", "yes"]  # a row
    by_name = "c3,c2,c1\n20001,3,900.5\n20002,3,5.5\n"
    assert predicted(amounts / "model.sepx", by_name) == ["yes", "no"]


def test_texts_are_cut_as_in_training(messages):
    model = messages / "model.sepx"
    for text in ("win free cash, prize\nsee you home, later\n", "win cash\nsee you\n", "ham\twin cash\nham\tsee you\n"):
        assert predicted(model, text) == ["spam", "ham"]
    assert predicted(model, "win cash\n") == ["spam"]
    note = "note: standard input: read with tabs between the columns, as the model was trained; --delimiter names another"
    assert note in run("predict", model, "-", input="win cash, prize\nsee you, later\n").stderr
    assert run("predict", model, "-", input="win cash\n").stderr == ""
    evaluation = run("evaluate", model, "-", "--json", input="spam,win cash\nham,see you\n").stdout
    assert json.loads(evaluation)["accuracy"] == 1.0  # the label must be there, so commas delimit


def test_a_model_of_an_earlier_version_has_no_delimiter(amounts):
    layout = Layout.of(["c0", "c2"], "c1")
    assert layout.names_of(3, False) == layout.names_of(3, True) == ("c0", "c1", "c2")
    assert layout.names_of(2, False) == ("c0", "c2") and layout.names_of(2, True) is None
    assert Layout.of(["c1", "c3"], "c0") is None and Layout.of(["c0"], None) is None and Layout.of([], "c0") is None


def test_shards_know_the_delimiter_too(messages, tmp_path):
    run("train", messages / "rows.tsv", "--label", 0, "--engine", "local:1", "-o", tmp_path / "model.sepx", "-q")
    assert predicted(tmp_path / "model.sepx", "win cash, prize\nsee you, later\n") == ["spam", "ham"]


def test_the_last_column_of_a_file_without_the_label_is_read_as_learned(tmp_path):
    rows = "".join(f"{'yes' if k % 10 > 4 else 'no'},{k % 7},{k % 10}\n" for k in range(200))
    (tmp_path / "rows.csv").write_text("label,noise,amount\n" + rows)
    run("train", tmp_path / "rows.csv", "--label", "label", "-o", tmp_path / "model.sepx")
    result = run("predict", tmp_path / "model.sepx", "-", input="noise,amount\n1,9\n1,unknown\n1,1\n")
    assert result.stdout.count("\n") == 4
    assert "column amount: 1 value of 3 is not a number, the first 'unknown' at standard input, line 3" in result.stderr
