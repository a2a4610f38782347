"""Malformed certificates and files: one line of error, status 2, by the command line and the standalone checker."""

import json

import pytest
from click.testing import CliRunner

from separatrix.cli import app
from support.standalone_checker import standalone


def command(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deep"),
        pytest.param('{"format": "separatrix certificate 1"}', id="empty"),
        pytest.param("null", id="null"),
        pytest.param("{", id="broken"),
        pytest.param('{"format": ' + "9" * 5000 + "}", id="long number"),
    ],
)
def test_a_malformed_certificate_is_one_line_and_status_2(text, tmp_path):
    path, data = tmp_path / "c.json", tmp_path / "data.csv"
    path.write_text(text)
    data.write_text("1,1,a\n2,3,b\n")
    result = command("check", path, data)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1, result.stderr
    status, said = standalone(path, data)
    assert status == 2 and said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.parametrize("cell", ["9" * 200_000, "1e999999999", "9" * 400, "x" * 200_000])
def test_a_cell_that_is_no_number_is_one_line_and_status_2(cell, tmp_path):
    path, data = tmp_path / "c.json", tmp_path / "data.csv"
    data.write_text("1,1,a\n2,3,b\n5,1,a\n")
    assert command("certify", data, "-o", path).exit_code in (0, 1)
    data.write_text(f"1,1,a\n2,{cell},b\n5,1,a\n")
    assert command("check", path, data).exit_code == 2
    status, said = standalone(path, data)
    assert status in (1, 2) and said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"feature_names": "ab"}, id="names in one string"),
        pytest.param({"feature_names": {"a": 0, "b": 1}}, id="names in an object"),
        pytest.param({"equations": ""}, id="equations in a string"),
        pytest.param({"equations": None}, id="no equations"),
        pytest.param({"features": 2.0}, id="a count with a point"),
        pytest.param(
            {"witness": {"rows": [False, True], "rivals": [1, 0], "weights": ["1/2", "1/2"]}}, id="rows that are true"
        ),
        pytest.param(
            {"witness": {"rows": [0, 1], "rivals": [True, 0], "weights": ["1/2", "1/2"]}}, id="a rival that is true"
        ),
    ],
)
def test_both_checkers_refuse_values_of_another_type(change, tmp_path):
    path, data = tmp_path / "c.json", tmp_path / "data.csv"
    data.write_text("1,1,0\n1,1,1\n")
    assert command("certify", data, "-o", path).exit_code == 1 and standalone(path, data)[0] == 0
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert command("check", path, data).exit_code == 2
    assert standalone(path, data)[0] in (1, 2)
