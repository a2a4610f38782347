"""Outputs that are no regular files are written into, and inputs that cannot be read again are read once."""

import io
import json
import os
import stat
import threading

import numpy as np
import pytest
from click.testing import CliRunner

from separatrix import Perceptron, load, save
from separatrix.cli import app
from separatrix.data.atomic import check_place, replacing
from separatrix.data.errors import DataError, OutputError
from separatrix.data.reading import open_source
from support.special_files import device, drained, fed

RUNNER = CliRunner()
ROWS = 30_000  # several batches, and more than a pipe holds
TABLE = "a,b,kind\n" + "".join(f"{i * 5 % 97},{i % 89 + 0.5},{'xy'[i * 5 % 97 > 40]}\n" for i in range(ROWS))


def call(*arguments, status=0):
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == status, done.output
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("special")
    (folder / "table.csv").write_text(TABLE)
    (folder / "small.csv").write_text("".join(TABLE.splitlines(True)[:41]))
    call("train", folder / "table.csv", "--passes", 2, "-o", folder / "model.sepx")
    return folder


# Outputs.


def outputs(folder, target):
    """Every way to write a file, with one that the name `target` is given to."""
    small, model = folder / "small.csv", folder / "model.sepx"
    return [
        ("train", small, "-o", target),
        ("train", small, "--holdout", 0.5, "--report", target),
        ("predict", model, small, "-o", target),
        ("evaluate", model, small, "--report", target),
        ("certify", small, "-o", target),
        ("trace", small, "--html", target),
        ("export", model, "--to", "sql", "-o", target),
        ("train", small, "--folds", 2, "--oof", target),
    ]


@pytest.mark.parametrize("k", range(8))
def test_a_device_stays_a_device(table, tmp_path, k):
    node = device(tmp_path / "null.csv", 3)
    arguments = outputs(table, node)[k]
    before = os.stat(node)
    done = RUNNER.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code in ((0, 1, 3) if arguments[0] == "certify" else (0,)), done.output
    after = os.stat(node)
    assert stat.S_ISCHR(after.st_mode) and (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)
    assert os.listdir(tmp_path) == ["null.csv"]


def test_a_link_to_a_device_leads_to_it(tmp_path):
    node = device(tmp_path / "null", 3)
    (tmp_path / "link.sepx").symlink_to(node)
    save(Perceptron().fit([[0.0], [1.0]], [0, 1]), tmp_path / "link.sepx")
    assert stat.S_ISCHR(os.lstat(node).st_mode) and (tmp_path / "link.sepx").is_symlink()


@pytest.mark.parametrize("k", range(8))
def test_a_fifo_gets_what_a_file_would_get(table, tmp_path, k):
    folder = tmp_path / "pipe"
    folder.mkdir()
    written, expected = folder / "out.csv", tmp_path / "out.csv"
    with drained(written) as parts:
        piped = RUNNER.invoke(app, [str(argument) for argument in outputs(table, written)[k]])
    plain = RUNNER.invoke(app, [str(argument) for argument in outputs(table, expected)[k]])
    assert piped.exit_code == plain.exit_code < 2, piped.output
    assert parts == [expected.read_bytes()] and stat.S_ISFIFO(written.stat().st_mode)
    assert os.listdir(folder) == ["out.csv"]


def test_a_fifo_whose_reader_leaves_is_an_output_that_failed(tmp_path):
    os.mkfifo(tmp_path / "out.sepx")
    reader = os.open(tmp_path / "out.sepx", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(OutputError, match="Broken pipe"), replacing(tmp_path / "out.sepx") as name:
        with open(name, "wb") as file:
            file.write(bytes(1 << 20))  # more than the pipe holds: the writer waits for its reader
        threading.Timer(0.2, os.close, [reader]).start()


def test_what_must_be_read_again_is_a_regular_file(table, tmp_path):
    os.mkfifo(tmp_path / "c.sepx")
    for option in (("--checkpoint",), ("--float32", "-o")):
        line = call("train", table / "small.csv", *option, tmp_path / "c.sepx", status=2)
        assert "c.sepx is not a regular file" in line
    with pytest.raises(DataError, match="is a folder"):
        check_place(tmp_path)


# Inputs.


def test_a_table_from_a_fifo_has_all_rows(table, tmp_path):
    plain = json.loads(call("train", table / "table.csv", "--passes", 2, "--json", "-o", tmp_path / "plain.sepx"))
    with fed(tmp_path / "data", TABLE.encode()) as fifo:
        piped = json.loads(call("train", fifo, "--passes", 2, "--json", "-o", tmp_path / "piped.sepx"))
    assert piped["rows"] == plain["rows"] == ROWS and piped["classes"] == plain["classes"]
    assert load(tmp_path / "piped.sepx").facts["data"] == load(tmp_path / "plain.sepx").facts["data"]
    assert (tmp_path / "piped.sepx").read_bytes() == (tmp_path / "plain.sepx").read_bytes()
    with fed(tmp_path / "again", TABLE.encode()) as fifo:
        lines = call("predict", table / "model.sepx", fifo).splitlines()
    assert lines == call("predict", table / "model.sepx", table / "table.csv").splitlines() and len(lines) == ROWS + 1


def test_every_verb_reads_a_fifo_once(table, tmp_path):
    small, model = (table / "small.csv").read_bytes(), table / "model.sepx"
    call("certify", table / "small.csv", "--drop", "b", "-o", tmp_path / "proof.json")
    verbs = [
        ("evaluate", model, "DATA", "--json"),
        ("explain", model, "DATA", "--row", 3),
        ("certify", "DATA", "--drop", "b"),
        ("check", tmp_path / "proof.json", "DATA", "--drop", "b"),
        ("trace", "DATA", "--passes", 2),
        ("compare", "DATA", "--models", "perceptron", "--folds", 2, "--json"),
        ("train", "DATA", "--validate", table / "small.csv"),
        ("train", table / "small.csv", "--validate", "DATA"),
        ("train", "DATA", "--folds", 2),
    ]
    for arguments in verbs:
        plain = RUNNER.invoke(app, [str(table / "small.csv") if a == "DATA" else str(a) for a in arguments])
        with fed(tmp_path / "data", small) as fifo:
            piped = RUNNER.invoke(app, [str(fifo) if a == "DATA" else str(a) for a in arguments])
        fifo.unlink()
        assert piped.exit_code == plain.exit_code < 2, (arguments, piped.output)
        names = fifo, table / "small.csv"
        assert _without_times(piped.stdout, names) == _without_times(plain.stdout, names), arguments


def _without_times(text, names):
    """The lines that do not hold a measured time, with one name for the data."""
    for name in names:
        text = text.replace(str(name), "DATA").replace(name.name, "DATA")
    lines = text.splitlines()
    if lines and lines[0].startswith("{"):
        lines = json.dumps({k: v for k, v in json.loads(lines[0]).items() if "rows" in k or "accuracy" in k}).splitlines()
    return [line for line in lines if " s" not in line and "seconds" not in line]


def test_other_formats_from_a_fifo(tmp_path):
    import pyarrow as pa
    from pyarrow.parquet import write_table

    rng = np.random.default_rng(0)
    columns = pa.table({"x": rng.normal(size=3000), "y": rng.normal(size=3000), "kind": ["a", "b", "c"] * 1000})
    write_table(columns, tmp_path / "t.parquet")
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, columns.schema) as writer:
        writer.write_table(columns)
    np.savez(tmp_path / "t.npz", X=rng.normal(size=(3000, 4)), y=np.arange(3000) % 3)
    (tmp_path / "t.svm").write_text("".join(f"{i % 2} 1:{i} 2:0.5\n" for i in range(3000)))
    (tmp_path / "t.jsonl").write_text("".join(f'{{"v": {i}, "kind": "{"ab"[i % 2]}"}}\n' for i in range(3000)))
    for path in sorted(tmp_path.glob("t.*")):
        with fed(tmp_path / "data", path.read_bytes()) as fifo:
            source = open_source(str(fifo))
            assert not source.rereadable and sum(map(len, source)) == 3000
            fingerprint = source.fingerprint()
        fifo.unlink()
        plain = open_source(path)
        assert plain.rereadable and fingerprint == plain.fingerprint()


def test_a_model_and_a_certificate_from_a_fifo(table, tmp_path):
    small = table / "small.csv"
    with fed(tmp_path / "model", (table / "model.sepx").read_bytes()) as fifo:
        assert call("predict", fifo, small) == call("predict", table / "model.sepx", small)
    for weights in ((), ("--weights", 2)):
        (tmp_path / "model").unlink()
        with fed(tmp_path / "model", (table / "model.sepx").read_bytes()) as fifo:
            expected = call("info", table / "model.sepx", *weights).replace(str(table / "model.sepx"), str(fifo))
            assert call("info", fifo, *weights) == expected


def test_a_pipe_beside_files_or_as_a_shard_is_refused(table, tmp_path):
    (tmp_path / "0.csv").write_text("a,k\n1,x\n2,y\n")
    os.mkfifo(tmp_path / "1.csv")
    pattern = str(tmp_path / "*.csv")
    assert "1.csv can be read only once, and not beside files" in call("train", pattern, status=2)
    assert "1.csv can be read only once" in call("train", tmp_path / "1.csv", "--engine", "local:1", status=2)
    with pytest.raises(DataError, match="standard input can be read only once"):
        open_source(["-", str(tmp_path / "0.csv")])
    unseekable = io.BytesIO(b"a,k\n1,x\n2,y\n")
    unseekable.seekable = lambda: False
    source = open_source(unseekable)
    assert sum(map(len, source)) == 2 and len(source.fingerprint()) == 64
