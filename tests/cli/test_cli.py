"""The command line, as a person meets it."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import separatrix
from separatrix import cli
from separatrix.cli import app, verbs

RUNNER = CliRunner()
VERBS = list(app.commands)


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
import atexit, gc, threading
from separatrix.__main__ import main
atexit.register(print, "last")
ended = threading.Event()
threading.Thread(target=lambda: (ended.wait(), print("thread"))).start()
try:
    main()
finally:
    print("collecting" if gc.isenabled() and gc.get_freeze_count() == 0 else "not collecting")
    ended.set()
"""


@pytest.mark.parametrize(("argument", "status", "first"), [("--version", 0, ["separatrix"]), ("nothing", 2, [])])
def test_the_interpreter_ends_as_any_other(argument, status, first):
    done = subprocess.run([sys.executable, "-c", LEAVING, argument], capture_output=True, text=True)
    printed = [line.split(" 0.")[0] for line in done.stdout.splitlines()]
    assert (done.returncode, printed) == (status, [*first, "collecting", "thread", "last"]), done.stderr
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


def test_verbs_are_listed_in_order_with_their_help():
    listing = RUNNER.invoke(app, ["--help"]).output.split("Commands:")[1]
    lines = [line.split(maxsplit=1) for line in listing.strip().splitlines()]
    assert [name for name, _ in lines] == VERBS
    for name, sentence in lines:
        shown = RUNNER.invoke(app, [name, "--help"]).output
        assert sentence in shown, name


@pytest.mark.parametrize(
    ("arguments", "completed"),
    [
        ("tra", ["trace", "train"]),
        ("train --ea", ["--early-stopping"]),
        ("serve --read", ["--read-token", "--read-token-file"]),
        ("train --check", ["--checkpoint", "--checkpoint-every"]),
        ("train --rule pa", ["pa", "pa1", "pa2"]),
        ("train iris --class-weight b", ["balanced"]),
        ("train --rule wrong --order s", ["shuffle"]),
        ("export model.sepx --to s", ["sklearn", "sql"]),
        ("train --format s", ["svmlight"]),
        ("train messa", ["messa"]),
        ("train iris --validate messa", ["messa"]),
    ],
)
def test_shells_complete_verbs_and_options(arguments, completed):
    environment = {"_SEPARATRIX_COMPLETE": "bash_complete", "COMP_WORDS": f"separatrix {arguments}"}
    environment["COMP_CWORD"] = str(len(arguments.split()))
    code = "from separatrix.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment)
    kinds, words = zip(*(line.split(",") for line in done.stdout.splitlines()), strict=True)
    assert list(words) == completed, done.stderr
    assert not done.stderr
    assert set(kinds) == {"file" if completed == ["messa"] else "plain"}  # the shell itself completes files


GREET = '''"""Say hello."""

from typing import Annotated

from separatrix.data.options import Argument, Option


def greet(
    names: Annotated[list[str], Argument(help="Whom to greet.")],
    times: Annotated[int, Option("-n", "--times", help="How often.", min=1)] = 1,
    loud: Annotated[bool | None, Option("--loud/--quiet", help="How.")] = None,
) -> int:
    print("hello", *names, times, loud)
    return 7
'''


def test_a_file_is_a_verb(tmp_path, monkeypatch):
    (tmp_path / "greet.py").write_text(GREET)
    (tmp_path / "train.py").write_text('"""Train."""\n')
    monkeypatch.setattr(cli, "VERBS", tmp_path)
    monkeypatch.setattr(verbs, "__path__", [str(tmp_path)])
    group = cli.VerbGroup(name="separatrix")
    listing = RUNNER.invoke(group, ["--help"]).output.split("Commands:")[1]
    assert listing.split() == ["train", "Train.", "greet", "Say", "hello."]
    try:
        for arguments, printed in ((["you"], "you 1 None"), (["you", "all", "-n", "3", "--quiet"], "you all 3 False")):
            done = RUNNER.invoke(group, ["greet", *arguments])
            assert (done.exit_code, done.output) == (7, f"hello {printed}\n")
        assert RUNNER.invoke(group, ["greet", "you", "-n", "0"]).exit_code == 2
        assert RUNNER.invoke(group, ["greet"]).exit_code == 2
        assert "NAMES  Whom to greet." in RUNNER.invoke(group, ["greet", "--help"]).output
    finally:
        del sys.modules["separatrix.cli.verbs.greet"]


def test_the_completion_script_can_be_printed():
    assert "bash_complete" in RUNNER.invoke(app, ["--show-completion", "bash"]).output
