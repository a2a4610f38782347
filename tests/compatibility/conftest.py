"""The marker `recorded_processor`: a test that compares last bits runs in a process that compiles for one kind of processor.

Kernels are compiled for the processor at hand, and each kind adds up a sum of real numbers in vector lanes of its own. What
is compared was recorded with code for any x86-64 with AVX2.
"""

import os
import platform
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

COMPILER = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "", "OPENBLAS_CORETYPE": "Haswell"}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a marked test in a process of its own, once."""
    if pyfuncitem.get_closest_marker("recorded_processor") is None or COMPILER.items() <= os.environ.items():
        return None
    if platform.machine() not in ("x86_64", "AMD64") or not get_host_cpu_features().get("avx2"):
        pytest.skip("last bits were recorded on x86-64 with AVX2")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "", pyfuncitem.nodeid]
    run = subprocess.run(
        command, env=os.environ | COMPILER, cwd=pyfuncitem.config.rootpath, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return True
