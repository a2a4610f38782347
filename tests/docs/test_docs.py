"""The documents are true: every item of the lectures has a place, every example runs, every command exists."""

import doctest
import importlib
import inspect
import pkgutil
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import separatrix

ROOT = Path(__file__).parents[2]
ITEMS = {"L1": 10, "L2": 12, "L3": 6, "L4": 10, "L5": 4}
LINES = (ROOT / "docs" / "lectures.md").read_text().splitlines()
ROWS = [tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in LINES if re.match(r"\| L\d \d+ \|", line)]
MODULES = ["separatrix", *(m.name for m in pkgutil.walk_packages(separatrix.__path__, "separatrix."))]


def test_every_item_of_the_lectures_is_listed_once_and_in_order():
    assert [item for item, *_ in ROWS] == [f"{lecture} {k}" for lecture, n in ITEMS.items() for k in range(1, n + 1)]


@pytest.mark.parametrize(("item", "_what", "file", "name", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_each_target_exists(item, _what, file, name, test):
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


@pytest.mark.slow
def test_the_pictures_of_the_documents_are_made_by_their_code(tmp_path):
    command = [sys.executable, "-W", "error", ROOT / "tools" / "pictures.py", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
    made = {file.name for file in tmp_path.glob("*.png")}
    plots = (ROOT / "docs" / "plots.md").read_text()
    assert made >= set(re.findall(r"\(images/(\w+\.png)\)", plots)) and plots.count("```python") == plots.count("(images/")
    for page in [*(ROOT / "docs" / "tutorials").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]:
        assert set(re.findall(r"\(\.\./images/([\w-]+\.png)\)", page.read_text())) & made, f"{page} has no picture"
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "gallery").glob("*.md"))
    for name in (drawn := sorted(file.name for file in (tmp_path / "gallery").iterdir())):
        assert f"(../images/gallery/{name})" in pages
    assert drawn == sorted(file.name for file in (ROOT / "docs" / "images" / "gallery").iterdir())
    for name in [*made, *(f"gallery/{name}" for name in drawn)]:
        kept = ROOT / "docs" / "images" / name
        assert kept.stat().st_size < 150_000
        assert _size(kept) == _size(tmp_path / name), f"{name} is stale: python tools/pictures.py"


def _size(png):
    return struct.unpack(">II", png.read_bytes()[16:24])


def test_reference_is_short_and_imports_only_numpy():
    text = (ROOT / "src" / "separatrix" / "reference.py").read_text()
    assert len(text.splitlines()) < 300
    roots = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}
    assert roots - set(sys.stdlib_module_names) == {"numpy"}


def test_files_are_short_and_say_what_they_are():
    for file in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        if file.name == "seeded_runs.py":
            continue
        lines = file.read_text().splitlines()
        assert len(lines) <= 400, file
        assert lines[0].removeprefix("r").startswith('"""'), file


def test_no_public_function_shares_its_name_with_a_module():
    assert not {m.name for m in pkgutil.iter_modules(separatrix.__path__)} & set(separatrix.__all__)


def test_the_readme_is_short_and_moves():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 110
    assert not [line for line in lines if len(line) > 120]
    assert re.findall(r"!\[(.+)\]\(docs/images/lab\.gif\)", "\n".join(lines))


def test_ci_runs_the_test_command_of_the_readme():
    commands = re.findall(r"^pip install .*$", (ROOT / "README.md").read_text(), re.M)
    assert commands == ["pip install . && separatrix demo", "pip install '.[dev]' && python -m pytest"]
    run = ROOT / ".ci" / "run"
    assert subprocess.run(["bash", "-n", run], check=False).returncode == 0
    assert "README.md" in run.read_text()
