"""How data are read is said by the same options in every verb that reads."""

import re

import pytest
from click.testing import CliRunner

from separatrix.cli import app, load_verb
from separatrix.cli.commands import VerbOption
from separatrix.data.options import ReadingOptions, TextOptions

RUNNER = CliRunner()
VERBS = list(app.commands)
READING = ("--header", "--delimiter", "--quote", "--encoding", "--on-error")


def call(*arguments, status=0, **settings):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments], **settings)
    assert done.exit_code == status, done.output + repr(done.exception)
    return done.output


def test_only_what_was_chosen_is_passed_on():
    assert ReadingOptions().reading() == TextOptions().reading() == {}
    chosen = ReadingOptions(form="csv", header=False, quote="", on_error="skip", zero_based=True)
    assert chosen.reading() == {"format": "csv", "header": False, "quote": "", "on_error": "skip", "zero_based": True}


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict", "explain", "certify", "check", "trace", "compare"])
def test_every_verb_has_them(verb):
    text = call(verb, "--help-all")
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


# Groups, choices and rare options.


def sections(text):
    """Return the lines of a help text by heading."""
    parts = re.split(r"^(\w+):$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_shows_every_option_once_within_80_columns(verb):
    command = load_verb(verb)
    options = [each for each in command.params if isinstance(each, VerbOption)]
    for flag in ("--help", "--help-all"):
        text = call(verb, flag, terminal_width=80)
        assert max(map(len, text.splitlines())) <= 80
        for option in options:
            shown = not option.declaration.rare or flag == "--help-all"
            rows = re.findall(rf"^  (?:-\w, )?{re.escape(option.opts[-1])}[ ,]", text, re.M)
            rows += re.findall(rf"^  (?:-\w, )?{re.escape(option.opts[-1])}$", text, re.M)
            assert len(rows) == shown, (option.opts, rows)


def test_options_stand_under_the_heading_of_their_group():
    shown, everything = sections(call("train", "--help")), sections(call("train", "--help-all"))
    assert "--label COLUMN" in shown["Data"] and "--categorical COLUMN" in shown["Features"]
    assert "-o, --output FILE" in shown["Running"] and "--help-all" in shown["Running"]
    assert "--format" not in shown["Data"] and "--format WORD" in everything["Data"]
    rare = load_verb("train").rare
    assert call("train", "--help").endswith(f"\n--help-all shows {len(rare)} more options.\n")
    assert "more option" not in call("train", "--help-all")


def test_choices_are_listed_with_what_they_mean():
    text = " ".join(call("train", "--help-all").split())
    assert "without a label: skip (leave it out), raise or keep (words such as NA are labels). [default: skip]" in text
    assert "Input format: svmlight, csv, tsv, jsonl, parquet, arrow or npz; detected from the content by default." in text


def test_a_wrong_choice_is_one_line_that_names_the_nearest():
    expected = "separatrix train: --on-error: 'skp' is not raise or skip; did you mean 'skip'?\n"
    assert call("train", "iris", "--on-error", "skp", status=2) == expected
    assert "'xls' is not one of svmlight, csv," in call("predict", "a", "b", "--format", "xls", status=2)
    expected = "separatrix train: --class-weight: 'even' is no choice; the only one is balanced\n"
    assert call("train", "iris", "--class-weight", "even", status=2) == expected


@pytest.mark.parametrize("verb", ["train", "compare", "trace"])
def test_a_seed_that_no_generator_takes_is_refused(verb):
    assert "18446744073709551616 is not in the range 0<=x<=4294967295" in call(verb, "iris", "--seed", 1 << 64, status=2)


def test_other_names_and_capital_letters_are_accepted(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1 2:1\n-1 1:1\n" * 20)
    for name in ("svmlight", "libsvm", "SVMLight"):
        assert "40 rows, 2 classes" in call("train", path, "--format", name)
