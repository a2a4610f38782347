"""What `separatrix train` says about identifiers and columns that alone predict the label: it names options."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from separatrix.cli import app
from support.passengers import passengers


def train(*arguments) -> str:
    result = CliRunner().invoke(app, ["train", *map(str, arguments), "-q"])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def files(tmp_path):
    table, survived = passengers(0)
    table["rescued by"] = np.where(survived == "yes", "boat", "-")
    table["survived"] = survived
    table.to_csv(tmp_path / "plain.csv", index=False)
    table.sample(frac=1, random_state=0).to_csv(tmp_path / "shuffled.csv", index=False)
    ordered = table.drop(columns="rescued by").sort_values("survived").assign(PassengerId=np.arange(len(table)))
    ordered.to_csv(tmp_path / "ordered.csv")  # with the row number of pandas, in a column without a title
    return tmp_path


@pytest.mark.parametrize("name", ["plain.csv", "shuffled.csv", "ordered.csv"])
@pytest.mark.parametrize("holdout", [[], ["--holdout", 0.3]])
def test_identifiers_are_left_out_and_the_note_names_the_option_that_keeps_them(files, name, holdout):
    output = train(files / name, *holdout)
    assert "PassengerId  dropped" in output
    notes = [line for line in output.splitlines() if "looks like an identifier" in line]
    assert notes[-1].endswith(": left out; keep it with --number PassengerId")
    assert len(notes) == 1 + (name == "ordered.csv")
    assert ": left out; keep it with --categorical Ticket" in output
    assert "roles=" not in output


def test_a_column_that_alone_predicts_the_label_is_asked_about(files):
    question = (
        "note: column 'rescued by' alone predicts the label (accuracy 1.000 on 891 training rows): is it known at "
        "prediction time? If not, leave it out with --drop 'rescued by'"
    )
    output = train(files / "plain.csv", "-o", files / "model.sepx")
    assert output.count("alone predicts the label") == 1
    assert question in output
    described = CliRunner().invoke(app, ["info", str(files / "model.sepx")]).output
    assert question in described
    assert question in json.loads(train(files / "plain.csv", "--json"))["columns"]
    assert "alone predicts" not in train(files / "plain.csv", "--drop", "rescued by")


def test_only_training_rows_are_asked(files):
    summary = json.loads(train(files / "plain.csv", "--json", "--holdout", 0.3))
    assert any(f"on {summary['rows']} training rows" in line for line in summary["columns"])


def test_an_identifier_that_is_kept_is_asked_about_where_the_file_is_sorted_by_label(files):
    output = train(files / "ordered.csv", "--number", "PassengerId")
    assert "column 'PassengerId' alone predicts the label" in output
    assert "column 'c0' looks like an identifier" in output


def numbered_rows(draw, number_of):
    """Return a CSV file of 200 rows, whose numbers `number_of` writes."""
    values = draw.normal(size=200)
    rows = [f"{number_of(k)},{x:.3f},{'yes' if x > 0 else 'no'}" for k, x in enumerate(values)]
    return "\n".join(["id,x,y", *rows, ""])


@pytest.mark.parametrize(
    "number_of",
    [lambda k: f"A{k}", lambda k: "inf", lambda k: "" if k % 2 else k, lambda k: "A" if k > 150 else k],
    ids=["text", "infinite", "half missing", "text late"],
)
def test_a_column_that_was_left_out_may_hold_anything(tmp_path, number_of):
    draw = np.random.default_rng(0)
    (tmp_path / "numbers.csv").write_text(numbered_rows(draw, int))
    (tmp_path / "other.csv").write_text(numbered_rows(draw, number_of))
    (tmp_path / "without.csv").write_text(
        "".join(line.partition(",")[2] + "\n" for line in (tmp_path / "other.csv").read_text().splitlines())
    )
    assert "id      dropped" in train(tmp_path / "numbers.csv", "-o", tmp_path / "m.sepx")
    replies = []
    for name in ("other.csv", "without.csv"):
        for verb in ("evaluate", "predict", "explain"):
            reply = CliRunner().invoke(app, [verb, str(tmp_path / "m.sepx"), str(tmp_path / name)])
            assert reply.exit_code == 0, reply.output
            assert "id" not in reply.output
            replies.append(reply.output.replace(name, ""))
    assert replies[:2] == replies[3:5]
    for engine in ([], ["--engine", "local:1", "--label", "y"]):
        output = train(tmp_path / "numbers.csv", "--validate", tmp_path / "other.csv", *engine)
        assert float(re.search(r"held-out accuracy ([\d.]+)", output)[1]) > 0.9


def test_a_column_to_drop_may_hold_anything(tmp_path):
    (tmp_path / "t.csv").write_text(numbered_rows(np.random.default_rng(0), lambda k: "inf" if k else 10**25))
    assert "x       number" in train(tmp_path / "t.csv", "--drop", "id")
    reply = CliRunner().invoke(app, ["certify", str(tmp_path / "t.csv"), "--drop", "id"])
    assert reply.exit_code == 0 and "is separable" in reply.output


@pytest.mark.parametrize("header", [True, False])
def test_proofs_keep_an_identifier_and_say_so(tmp_path, header):
    lines = numbered_rows(np.random.default_rng(0), int).splitlines()
    (tmp_path / "t.csv").write_text("\n".join(lines if header else lines[1:]) + "\n")
    name = "id" if header else "c0"
    for verb in ("certify", "trace"):
        done = CliRunner().invoke(app, [verb, str(tmp_path / "t.csv"), *(["--passes", "1"] if verb == "trace" else [])])
        assert f"note: column '{name}' looks like an identifier" in done.stderr
        assert f"kept; leave it out with --drop {name}\n" in done.stderr
        without = CliRunner().invoke(app, [verb, str(tmp_path / "t.csv"), "--drop", name])
        assert without.exit_code == 0 and "looks like" not in without.output


def test_the_row_number_that_pandas_puts_last_is_neither_label_nor_feature(tmp_path):
    draw = np.random.default_rng(0)
    x = draw.normal(size=300)
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0, "yes", "no")}).sample(frac=1, random_state=0)
    frame.to_parquet(tmp_path / "t.parquet")
    output = train(tmp_path / "t.parquet", "--holdout", 0.3)
    assert "2 classes (no " in output and "__index_level_0__  dropped" in output
    assert float(re.search(r"held-out accuracy ([\d.]+)", output)[1]) > 0.9
