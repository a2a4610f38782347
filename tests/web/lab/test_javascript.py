"""The JavaScript is as well kept as the Python: unit tests with node's runner, and types checked by TypeScript."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.documents import ROOT

LAB = ROOT / "src" / "separatrix" / "web" / "static" / "lab"
REQUIRED = os.environ.get("SEPARATRIX_BROWSER") == "required"


def tool(name):
    found = shutil.which(name) or next((str(p) for p in (ROOT / "node_modules" / ".bin").glob(name)), None)
    if found is None:
        (pytest.fail if REQUIRED else pytest.skip)(f"{name} is not installed")
    return found


def test_the_units_pass(tmp_path):
    shutil.copytree(LAB, tmp_path / "lab")
    shutil.copytree(Path(__file__).parent / "javascript", tmp_path / "tests")
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    tests = sorted(str(file) for file in (tmp_path / "tests").glob("*.mjs"))
    done = subprocess.run([tool("node"), "--test", *tests], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "# fail 0" in done.stdout or "ℹ fail 0" in done.stdout


@pytest.mark.slow
def test_the_types_are_right():
    config = json.loads((ROOT / "tsconfig.json").read_text())["compilerOptions"]
    assert config["strict"] and not any(name in config for name in ("noImplicitAny", "strictNullChecks"))
    done = subprocess.run([tool("tsc"), "-p", str(ROOT / "tsconfig.json")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:]


def test_a_module_has_a_head_and_a_size_that_can_be_read():
    for file in LAB.rglob("*.js"):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("// ") and len(lines) <= 400, file.name
