"""`pip install separatrix`, without extras: every verb works or names the extra that it needs."""

import contextlib
import json
import re
import subprocess
import sys
from importlib import metadata

import pytest

PROGRAM = """
import json, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None  # to import it fails, as where it is not installed
from separatrix.cli import app
for arguments, status in json.loads(sys.argv[2]):
    try:
        app(arguments)
    except SystemExit as end:
        assert (end.code or 0) == status, (arguments, end.code)
"""
MESSAGES = "id,kind,message,price\n" + "".join(
    f"{i},{'spam' if i % 3 == 0 else 'ham'},{'free money' if i % 3 == 0 else 'see you'} {i},{i % 7}\n" for i in range(40)
)
EXTRAS = [
    ("serve", "store", "--text", "pip install 'separatrix[web]'"),
    ("lab", "pip install 'separatrix[web]'"),
    ("backup", "store", "store.zip", "pip install 'separatrix[web]'"),
    ("restore", "store.zip", "store", "pip install 'separatrix[web]'"),
    ("export", "m.sepx", "--to", "onnx", "-o", "m.onnx", "pip install 'separatrix[onnx]'"),
    ("check", "receipt.json", ".", "pip install 'separatrix[web]'"),
]


def packages_of_extras():
    """The top-level modules that are installed here, and that a plain installation does not bring."""
    wanted, queue = set(), ["separatrix"]
    while queue:
        name = queue.pop().lower().replace("_", "-")
        if name not in wanted:
            wanted.add(name)
            with contextlib.suppress(metadata.PackageNotFoundError):  # needed on another Python or system
                needs = metadata.requires(name) or []
                queue += [re.match(r"[\w.-]+", need)[0] for need in needs if "extra ==" not in need]
    modules = metadata.packages_distributions()
    return sorted(
        name
        for name, distributions in modules.items()
        if wanted.isdisjoint(distribution.lower().replace("_", "-") for distribution in distributions)
    )


def run_plainly(folder, *runs):
    """Run commands in a process that finds only what a plain installation has; return what it wrote to standard error."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(packages_of_extras()), json.dumps(runs)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "table.csv").write_text(MESSAGES)
    (tmp_path / "numbers.csv").write_text("a,b,y\n1,2,u\n2,1,v\n2,4,u\n5,1,v\n")
    receipt = {"receipt": "separatrix serve forget", "removed": {"examples": [1]}}
    (tmp_path / "receipt.json").write_text(json.dumps(receipt))
    return tmp_path


def test_packages_of_extras_are_found():
    extras = packages_of_extras()
    assert {"orjson", "starlette", "uvicorn", "pandas", "matplotlib", "onnx"} <= set(extras)
    assert not {"numpy", "sklearn", "pyarrow", "rich", "joblib", "separatrix"} & set(extras)


def test_verbs_that_need_no_extra(folder):
    error = run_plainly(
        folder,
        (["certify", "iris", "--positive", "setosa", "-o", "proof.json"], 0),
        (["check", "proof.json", "iris", "--positive", "setosa"], 0),
        (["train", "table.csv", "--label", "kind", "--record", "-o", "m.sepx"], 0),
        (["evaluate", "m.sepx", "table.csv"], 0),
        (["predict", "m.sepx", "table.csv"], 0),
        (["explain", "m.sepx", "table.csv", "--row", "3"], 0),
        (["info", "m.sepx"], 0),
        (["certify", "table.csv", "--label", "kind", "--model", "m.sepx", "-o", "proof.json"], 0),
        (["check", "proof.json", "table.csv", "--label", "kind", "--model", "m.sepx"], 0),
        (["train", "numbers.csv", "-o", "n.sepx"], 0),
        (["forget", "n.sepx", "numbers.csv", "--rows", "2", "--receipt", "r.json", "--remaining", "rest.csv"], 0),
        (["check", "r.json", "rest.csv"], 0),
        (["export", "n.sepx", "--to", "sql"], 0),
        (["trace", "numbers.csv", "--html", "trace.html"], 0),
    )
    assert "Traceback" not in error


def test_verbs_that_need_an_extra_name_it(folder):
    run_plainly(folder, (["train", "numbers.csv", "-o", "m.sepx"], 0))
    for *arguments, remedy in EXTRAS:
        error = run_plainly(folder, (arguments, 2))
        assert remedy in error and error.count("\n") == 1, error
