"""Exit statuses: an unexpected error, an output that cannot be written and an interrupt are never taken for an answer."""

import io
import json
import os
import resource
import subprocess
import sys

import pytest
from click.testing import CliRunner

from separatrix import __main__
from separatrix.cli import app
from separatrix.cli.narrow_encodings import _spelled
from support.special_files import device

RUNNER = CliRunner()
XOR = "a,b,kind\n0,0,x\n1,1,x\n0,1,y\n1,0,y\n"
AND = "a,b,kind\n" + "0,0,x\n1,1,y\n0,1,x\n1,0,x\n" * 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("statuses")
    (folder / "xor.csv").write_text(XOR)
    (folder / "and.csv").write_text(AND)
    for arguments in (("train", "and.csv", "-o", "and.sepx"), ("certify", "and.csv", "-o", "and.json")):
        done = RUNNER.invoke(app, [str(folder / a) if "." in a else a for a in arguments])
        assert done.exit_code == 0, done.output
    return folder


# A fault of the program.


@pytest.mark.parametrize("debug", [(), ("before",), ("after",)])
def test_an_unexpected_error_is_one_line_and_status_70(folder, monkeypatch, debug):
    def broken(*_, **__):
        raise KeyError("no such\nthing")

    monkeypatch.setattr("separatrix.proofs.certificate.certify", broken)
    monkeypatch.setattr("separatrix.proofs.certificate.Certificate.fault", broken)
    verbs = [["certify", str(folder / "xor.csv")], ["check", str(folder / "and.json"), str(folder / "xor.csv")]]
    for verb in verbs:
        arguments = ["--debug", *verb] if "before" in debug else [*verb, "--debug"] if debug else verb
        done = RUNNER.invoke(app, arguments)
        assert done.exit_code == 70 and not done.stdout
        *traceback, line = done.stderr.splitlines()
        assert line.startswith(f"separatrix {verb[0]}: internal error, please report it: KeyError: 'no such\\nthing'")
        assert line.endswith("; --debug shows where") != bool(debug)
        assert bool(traceback) == bool(debug) and ("in broken" in done.stderr) == bool(debug)


def test_debug_is_documented():
    assert "--debug" in RUNNER.invoke(app, ["--help"]).output
    assert "--debug" not in RUNNER.invoke(app, ["certify", "--help"]).output
    assert "--debug" in RUNNER.invoke(app, ["train", "--help-all"]).output


def test_too_little_memory_is_said(folder, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError("Unable to allocate 16.0 GiB for an array")

    monkeypatch.setattr("separatrix.proofs.certificate.certify", greedy)
    done = RUNNER.invoke(app, ["certify", str(folder / "xor.csv")])
    line = "separatrix certify: there is not enough memory: Unable to allocate 16.0 GiB for an array\n"
    assert (done.exit_code, done.stderr) == (70, line)


def test_an_interrupt_is_no_answer(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("separatrix.proofs.certificate.certify", interrupted)
    done = RUNNER.invoke(app, ["certify", str(folder / "xor.csv")])
    assert (done.exit_code, done.stderr) == (130, "separatrix certify: interrupted\n")


# Output that cannot be written.

WRITERS = [
    ("train", "and.csv", "-o", "out.sepx"),
    ("train", "and.csv", "--holdout", "0.5", "--report", "out.html"),
    ("train", "and.csv", "--folds", "2", "--oof", "out.csv"),
    ("predict", "and.sepx", "and.csv", "-o", "out.csv"),
    ("predict", "and.sepx", "and.csv", "-o", "out.parquet"),
    ("evaluate", "and.sepx", "and.csv", "--report", "out.html"),
    ("certify", "and.csv", "-o", "out.json"),
    ("trace", "and.csv", "--html", "out.html"),
    ("export", "and.sepx", "--to", "sql", "-o", "out.sql"),
    ("export", "and.sepx", "--to", "sklearn", "-o", "out.pickle"),
]


@pytest.mark.parametrize("arguments", WRITERS, ids=lambda arguments: f"{arguments[0]}-{arguments[-1]}")
def test_a_full_disk_is_status_74_and_leaves_the_old_file(folder, tmp_path, arguments):
    *rest, name = arguments
    out = tmp_path / name
    out.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        done = RUNNER.invoke(app, [*(str(folder / a) if a.endswith(("csv", "sepx")) else a for a in rest), str(out)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.exit_code == 74, done.output
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"separatrix {arguments[0]}: {out} could not be written: ") and "File too large" in line
    assert out.read_text() == "old" and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("arguments", WRITERS, ids=lambda arguments: f"{arguments[0]}-{arguments[-1]}")
def test_a_folder_that_is_not_there_is_named_before_the_work(folder, tmp_path, monkeypatch, arguments):
    def opened(*_, **__):
        raise AssertionError("the data were read first")

    for name in ("cli.model_rows.open_source", "data.in_memory.open_source", "training.run.open_source"):
        monkeypatch.setattr(f"separatrix.{name}", opened)
    monkeypatch.setattr("separatrix.modelfile.archive._read", opened)
    *rest, name = arguments
    out = tmp_path / "nowhere" / name
    done = RUNNER.invoke(app, [*(str(folder / a) if a.endswith(("csv", "sepx")) else a for a in rest), str(out)])
    assert done.exit_code == 2 and f"{out}: the folder {out.parent} does not exist" in done.stderr


def run(*arguments, **settings):
    command = [sys.executable, "-m", "separatrix", *map(str, arguments)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, **settings)


def test_a_full_standard_output_is_status_74(folder, tmp_path):
    with open(device(tmp_path / "full", 7), "wb") as full:
        done = run("certify", folder / "xor.csv", stdout=full)
    line = "separatrix certify: standard output or a temporary file could not be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (74, line)


def test_an_answer_stays_the_status_when_nobody_reads_it(folder):
    reader, writer = os.pipe()
    os.close(reader)
    done = run("certify", folder / "xor.csv", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


# Narrow encodings.


def printed(monkeypatch, encoding, *arguments):
    """What the program writes to a standard output of this encoding, and its status."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    monkeypatch.setattr(sys, "argv", ["separatrix", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    sys.stdout.flush()
    return written.getvalue(), ended.value.code


@pytest.mark.parametrize("encoding", ["cp1252", "cp1251"])
def test_what_an_encoding_lacks_is_written_in_ascii(folder, tmp_path, monkeypatch, encoding):
    text, status = printed(monkeypatch, encoding, "certify", folder / "and.csv")
    squared = "²" if encoding == "cp1252" else "2"  # which cp1251 lacks, as it lacks ö and ß
    assert status == 0 and f"at most R{squared}/gamma{squared} <= " in text.decode(encoding)
    text, status = printed(monkeypatch, encoding, "trace", "lecture:L4.1")
    assert status == 0 and "<w,w*> >= k" in text.decode(encoding)
    (tmp_path / "t.csv").write_text("größe,kind\n1,é\n2,→😀\n1,é\n2,→😀\n", encoding="utf-8")
    text, status = printed(monkeypatch, encoding, "train", tmp_path / "t.csv", "--json", "-q")
    assert status == 0 and json.loads(text.decode(encoding))["classes"] == {"é": 2, "→😀": 2}
    text, status = printed(monkeypatch, encoding, "train", tmp_path / "t.csv", "-q")
    name = "größe" if encoding == "cp1252" else "gr\\u00f6\\u00dfe"
    assert status == 0 and name in text.decode(encoding) and "->\\ud83d\\ude00 2" in text.decode(encoding)


def test_utf8_is_written_as_it_is(folder, monkeypatch):
    text, status = printed(monkeypatch, "utf-8", "certify", folder / "and.csv")
    assert status == 0 and "≤ γ ≤" in text.decode()
    assert (_spelled("₁"), _spelled("²"), _spelled("é"), _spelled("−")) == ("1", "2", "\\u00e9", "-")
