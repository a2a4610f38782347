"""The n-th call that opens, writes, syncs, renames, maps or grows fails, n = 1, 2, …: what was acknowledged is stored.

`support/fault_runner.py` has the promises that it checks after each failure: acknowledged is stored once, also after a kill
at that moment; refused is not stored; the threads are alive, and learning goes on when the failure is gone.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[3] / "support"
SEAMS = {"open", "write", "fsync", "rename", "mmap", "growth"}


@pytest.mark.crash
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs a C compiler, and LD_PRELOAD")
@pytest.mark.parametrize("stride", [pytest.param(10, id="quick"), pytest.param(1, id="soak", marks=pytest.mark.soak)])
def test_every_call_that_fails_leaves_the_promises_kept(tmp_path, stride):
    library = tmp_path / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, SUPPORT / "faults.c", "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    (tmp_path / "stores").mkdir()
    done = subprocess.run(
        [sys.executable, SUPPORT / "fault_runner.py", library, tmp_path / "stores", str(stride)],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    print(done.stdout)
    assert {result["seam"] for result in results} == SEAMS
    assert {result["seam"]: result["wrong"] for result in results if result["wrong"]} == {}
    for result in results:
        assert result["calls"] >= 1 and result["cases"] >= result["calls"] // stride, result
