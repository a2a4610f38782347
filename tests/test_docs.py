"""The documents are true: every item of the lectures has a place, every example runs, every command exists."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import separatrix

ROOT = Path(__file__).parents[1]
ITEMS = {"L1": 10, "L2": 12, "L3": 6, "L4": 10, "L5": 4}
LINES = (ROOT / "docs" / "lectures.md").read_text().splitlines()
ROWS = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in LINES if re.match(r"\| L\d \d+ \|", line)]
MODULES = ["separatrix", *(m.name for m in pkgutil.walk_packages(separatrix.__path__, "separatrix."))]


def test_every_item_of_the_lectures_is_listed_once_and_in_order():
    assert [item for item, *_ in ROWS] == [f"{lecture} {k}" for lecture, n in ITEMS.items() for k in range(1, n + 1)]


@pytest.mark.parametrize(("item", "_what", "file", "name", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_each_target_exists(item, _what, file, name, test):
    if file == "*to come*":
        assert not test
        assert not name or name.strip("`") not in separatrix.__all__, f"{item} has come: say where it lives"
        return
    assert (ROOT / file.strip("`")).is_file()
    home, _, public = name.strip("`").rpartition(".")
    assert public in importlib.import_module(f"separatrix.{home}" if home else "separatrix").__all__
    path, function = test.strip("`").split("::")
    assert f"def {function}(" in (ROOT / path).read_text()


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0


def test_every_public_name_shows_an_example():
    for name in separatrix.__all__:
        thing = getattr(separatrix, name)
        if callable(thing) and name not in ("Ledger", "Trace"):
            assert ">>>" in inspect.getdoc(thing), name


def test_reference_is_short_and_imports_only_numpy():
    text = (ROOT / "src" / "separatrix" / "reference.py").read_text()
    assert len(text.splitlines()) < 300
    roots = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert roots - set(sys.stdlib_module_names) == {"numpy"}


def test_files_are_short_and_say_what_they_are():
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        lines = file.read_text().splitlines()
        assert len(lines) <= 400, file
        assert lines[0].removeprefix("r").startswith('"""'), file


def test_no_public_function_shares_its_name_with_a_module():
    assert not {m.name for m in pkgutil.iter_modules(separatrix.__path__)} & set(separatrix.__all__)


def test_ci_runs_the_test_command_of_the_readme():
    commands = re.findall(r"^pip install .*$", (ROOT / "README.md").read_text(), re.M)
    assert commands == ["pip install . && separatrix demo", "pip install '.[dev]' && python -m pytest"]
    run = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", run], check=False).returncode == 0
    assert "README.md" in run.read_text()
