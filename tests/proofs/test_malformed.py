"""Malformed certificates and files: one line of error, status 2, by the command line and the standalone checker."""

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
