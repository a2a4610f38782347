"""The command line, as a person meets it."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import separatrix
from separatrix.cli import app

RUNNER = CliRunner()


def test_the_demo_steps_through_l4_with_its_proof_and_trains_on_real_data():
    done = RUNNER.invoke(app, ["demo"], env={"COLUMNS": "80"})
    assert done.exit_code == 0
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "1 0 (4, 0) 1 0 mistake 1 (4, 0) 16 ≤ 16 0.7845 ≥ 0.7845" in lines
    assert "1 1 (1, 1) -1 4 mistake 2 (3, −1) 10 ≤ 32 1.569 ≥ 1.569" in lines
    assert "1 3 (−2, −2) 1 −4 mistake 3 (1, −3) 10 ≤ 48 3.138 ≥ 2.353" in lines
    text = " ".join(done.output.split())
    assert "a perceptron makes at most 26 mistakes on these examples. Here it made 3." in text
    assert "witness: 1/4 × row 0, 1/4 × row 1, 1/4 × row 2, 1/4 × row 3: Σλyx̃ is exactly 0" in text
    assert max(len(line) for line in done.output.splitlines()) <= 80
    accuracies = {line.split()[0]: float(line.split("%")[0].split()[-1]) for line in lines if "Perceptron the " in line}
    assert accuracies.keys() == {"Perceptron", "AveragedPerceptron", "VotedPerceptron", "PocketPerceptron"}
    assert min(accuracies.values()) > 90


def test_version_and_help():
    assert RUNNER.invoke(app, ["--version"]).output.strip() == f"separatrix {separatrix.__version__}"
    module = subprocess.run([sys.executable, "-m", "separatrix", "--version"], capture_output=True, text=True, check=True)
    assert module.stdout.strip() == f"separatrix {separatrix.__version__}"
    assert "demo" in RUNNER.invoke(app, ["--help"]).output
    assert RUNNER.invoke(app, ["dem"]).exit_code == 2


LEAVING = """
import atexit, sys, threading, time
from separatrix.__main__ import main
atexit.register(print, "last")
if sys.argv.pop() == "busy":
    threading.Thread(target=lambda: (time.sleep(0.5), print("thread"))).start()
try:
    main()
finally:
    print("taken apart")
"""


@pytest.mark.parametrize(
    ("arguments", "status", "printed"),
    [
        (["--version", "idle"], 0, ["separatrix", "last"]),
        (["--version", "busy"], 0, ["separatrix", "taken", "thread", "last"]),
        (["nothing", "idle"], 2, ["last"]),
    ],
)
def test_the_program_leaves_at_once_where_nothing_else_runs(arguments, status, printed):
    done = subprocess.run([sys.executable, "-c", LEAVING, *arguments], capture_output=True, text=True)
    assert (done.returncode, [line.split()[0] for line in done.stdout.splitlines()]) == (status, printed), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="closes descriptors in a shell")
@pytest.mark.parametrize(("command", "status"), [("--version >&-", 0), ("--version 2>&-", 0), ("nothing 2>&-", 2)])
def test_closed_outputs_change_no_status(command, status):
    done = subprocess.run(f"{sys.executable} -m separatrix {command}", shell=True, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


def test_a_profiler_sees_the_end():
    command = [sys.executable, "-m", "cProfile", "-m", "separatrix", "--version"]
    assert "function calls" in subprocess.run(command, capture_output=True, text=True).stdout


def test_a_reader_who_has_left_is_no_traceback():
    writing = subprocess.Popen(
        [sys.executable, "-m", "separatrix", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    writing.stdout.close()
    assert "Traceback" not in writing.stderr.read() and writing.wait() != 0
    writing.stderr.close()


def test_help_imports_nothing_heavy():
    code = "import sys, separatrix.cli; print([m for m in ('numba', 'sklearn', 'numpy', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_what_no_verb_needs_waits_until_it_is_used():
    code = """
import sys
from importlib.util import _LazyModule
from separatrix.cli import app
try:
    app(["train", "iris", "--quiet"])
except SystemExit as end:
    assert end.code == 0
assert not {"sklearn.linear_model", "matplotlib"} & sys.modules.keys()
assert type(sys.modules["scipy.stats"]) is _LazyModule
import scipy.stats
assert abs(scipy.stats.norm.cdf(0) - 0.5) < 1e-12
assert type(sys.modules["scipy.stats"]) is not _LazyModule
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
