"""How data are read is said by the same options in every verb that reads."""

import pytest
from click.testing import CliRunner

from separatrix.cli import app
from separatrix.cli.options import ReadingOptions, TextOptions

RUNNER = CliRunner()
READING = ("--header", "--delimiter", "--quote", "--encoding", "--on-error")


def call(*arguments, status=0):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output + repr(done.exception)
    return done.output


def test_only_what_was_chosen_is_passed_on():
    assert ReadingOptions().reading() == TextOptions().reading() == {}
    chosen = ReadingOptions(form="csv", header=False, quote="", on_error="skip", zero_based=True)
    assert chosen.reading() == {"format": "csv", "header": False, "quote": "", "on_error": "skip", "zero_based": True}


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict", "explain", "certify", "check", "trace", "compare"])
def test_every_verb_has_them(verb):
    text = call(verb, "--help")
    assert all(option in text for option in READING), verb


def test_a_delimiter_and_quotes_of_ones_own(tmp_path):
    rows = "".join(f"{k}^'{'^' if k % 2 else ''}{k % 5}'^{'u' if k < 20 else 'v'}\n" for k in range(40))
    path = tmp_path / "data.txt"
    path.write_text("a^b^y\n" + rows)
    reading = ("--delimiter", "^", "--quote", "'")
    model, certificate = tmp_path / "model.sepx", tmp_path / "proof.json"
    assert "there is no column beside" in call("train", path, status=2)
    assert "40 rows, 2 classes (u 20, v 20)" in call("train", path, *reading, "--number", "a", "-o", model)
    assert "40 rows, accuracy" in call("evaluate", model, path, *reading)
    assert "40 predictions" in call("predict", model, path, *reading, "-o", tmp_path / "predictions.csv")
    assert "line 4" in call("explain", model, path, *reading, "--row", 3)
    written = call("certify", path, *reading, "--drop", "b", "-o", certificate)
    assert "--drop b --delimiter '^' --quote ''\"'\"''" in written
    assert "VALID" in call("check", certificate, path, *reading, "--drop", "b")
    assert "mistake" in call("trace", path, *reading, "--drop", "b", "--passes", 1)


def test_svmlight_that_counts_from_0(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 2:1\n-1 1:1\n" * 20)
    assert "40 rows, 2 classes (-1 20, 1 20)" in call("train", path)
    assert "  3 features" in call("train", path, "--zero-based")
    assert "  2 features" in call("train", path, "--one-based")
