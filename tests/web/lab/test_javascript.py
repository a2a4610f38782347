"""The JavaScript is as well kept as the Python: unit tests with node's runner, and types checked by TypeScript."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from separatrix.data.errors import DataError
from separatrix.data.in_memory import read_source
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


CSV_TEXTS = [
    "1,2,a\n3,4,b\n",
    "x,y,k\r\n1,2,a\r\n3,4,b\r\n",
    "1,2,a\r3,4,b\r",
    "\ufeff1,5;2,25;a\n3,0;4;b\n",
    "1;2;a\n3;4;b",
    "1\t2\ta\n3\t4\tb\n",
    "1 2 a\n3  4 b\n",
    '1 2 "a, b"\n\n3 4 "c ""d"""\n',
    '"x","y","k"\n1,2,"a, b"\n3,4,"c ""d"""\n',
    "x,y,k,\n1,2,a,\n3,4,b,\n5,6,,\n",
    "1,,a\n3,4,b\n",
    "NA,NA,a\n3,4,b\n",
    "1,2,\n3,4,b\n5,6,a\n",
    "\n\n# a comment\n\nx,y,k\n1,2,a\n3,oops,b\n",
    "#x,y,k\n1,2,a\n3,4,b\n",
    "1,2,1\n3,4,-1\n",
    "1,2,1.0\n3,4,-1.0\n",
    "1,2,01\n3,4,02\n",
    "1,2,+1\n3,4,-1\n5,6,+1\n",
    "1,2,-0\n3,4,+1\n5,6,1\n7,8,0\n",
    "1,2,+01\n3,4,1\n",
    "1,2,+1\n3,4,one\n",
    "1e3,-2.5E-2,a\n.5,+4,b\n",
    "1,red,a\n3,blue,b\n",
    "0x10,2,a\n3,4,b\n",
    '"1,000",2,a\n3,4,b\n',
    "\u22121,2,a\n3,4,b\n",
    "x,2018,k\n1,2,a\n3,4,b\n",
    ",y,k\n1,2,a\n3,4,b\n",
    "a,,a,a_2,k\n1,2,3,4,x\n3,4,5,6,y\n",
    "größe,höhe,art\n1,2,é\n3,4,ü\n",
    "2020-01-01,1,a\n2020-01-02,2,b\n",
]
READ = """import { readFileSync } from "node:fs";
import { readCsv } from "./lab/engine/csv.js";
const read = (text) => {
  try { const { X, labels, features } = readCsv(text, "p.csv"); return [X, labels, features]; }
  catch (problem) { return problem.message; }
};
console.log(JSON.stringify(JSON.parse(readFileSync("texts.json", "utf8")).map(read)));"""


def test_a_csv_is_read_in_the_browser_as_python_reads_it(tmp_path):
    shutil.copytree(LAB, tmp_path / "lab")
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    (tmp_path / "texts.json").write_text(json.dumps(CSV_TEXTS))
    (tmp_path / "read.mjs").write_text(READ)
    done = subprocess.run([tool("node"), "read.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    for text, mine in zip(CSV_TEXTS, json.loads(done.stdout), strict=True):
        try:
            examples = read_source("p.csv", content=text.encode())
        except DataError as problem:
            assert mine == str(problem).partition(";")[0], text
        else:
            names = None if examples.feature_names is None else list(examples.feature_names)
            assert mine == [np.asarray(examples.X).tolist(), np.asarray(examples.y).tolist(), names], text


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
