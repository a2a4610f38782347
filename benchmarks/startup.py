"""What a command costs before it does anything: the processor time of small commands, beside one empty Numba kernel.

With SEPARATRIX_BASELINE set to the `src` folder of another checkout, each command is measured beside that checkout, too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Row
from benchmarks.timing import Times

ABOUT = (
    "Processor time (user and system) of whole processes with a warm compile cache, in turns. Training and predicting call "
    "kernels, so a program that imports Numba and calls one empty cached kernel is the lower limit of what they can cost; "
    "reading a model file needs no kernel."
)
HERE = str(Path(__file__).parents[1] / "src")
COMMANDS = {
    # command: (the least ratio to one empty kernel, the least ratio to the baseline)
    "train iris": (0.8, 1 / 0.65),
    "predict iris.sepx iris": (0.8, 1 / 0.65),
    "info iris.sepx": (2.0, 1 / 0.45),
    "--help": (6.0, 1.0),
}
KERNEL = """
import numpy as np
from numba import njit

@njit(cache=True)
def first(values):
    return values[0]

first(np.zeros(3))
"""

NEEDED = {
    "predict iris.sepx iris": (
        "click, safetensors.numpy, scipy.sparse, pyarrow.compute",
        "one empty kernel, with Click, safetensors, SciPy's sparse matrices and PyArrow imported",
    ),
}
"""What a command cannot do without besides a kernel: the modules, and how a note says so."""


def processor_seconds(arguments: list[str], source: str, folder: str) -> float:
    """Run Python in `folder` with the package of `source`; return the processor time of the process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": source}
    subprocess.run([sys.executable, *arguments], check=True, cwd=folder, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each command and each thing that it is measured beside."""
    baseline = os.environ.get("SEPARATRIX_BASELINE")
    with tempfile.TemporaryDirectory() as folder:
        for source in filter(None, (baseline, HERE)):  # fills the compile caches, too
            processor_seconds(["-m", "separatrix", "train", "iris", "-o", "iris.sepx"], source, folder)
        Path(folder, "kernel.py").write_text(KERNEL)
        processor_seconds(["kernel.py"], HERE, folder)
        for command, (of_kernel, of_baseline) in COMMANDS.items():
            program = ["-m", "separatrix", *command.split()]
            tasks = {"ours": (program, HERE), "one empty kernel": (["kernel.py"], HERE)}
            if baseline:
                tasks["the baseline"] = (program, baseline)
            modules, in_words = NEEDED.get(command, ("", ""))
            if modules:
                Path(folder, "needed.py").write_text(f"import {modules}\n{KERNEL}")
                processor_seconds(["needed.py"], HERE, folder)
                tasks["the limit"] = (["needed.py"], HERE)
            seconds: dict[str, list[float]] = {name: [] for name in tasks}
            for _ in range(3 if quick else 15):
                for name, (arguments, source) in tasks.items():
                    seconds[name].append(processor_seconds(arguments, source, folder))
            times = {name: Times(measured, measured) for name, measured in seconds.items()}
            name = f"separatrix {command}"
            peer, theirs = "Numba, one empty kernel", times["one empty kernel"]
            note = f"at the limit {theirs.best / times['the limit'].best:.2f}: {in_words}" if modules else ""
            yield Row(name, "", peer, times["ours"], theirs, of_kernel, note=note)
            if baseline:
                yield Row(name, "", "the baseline", times["ours"], times["the baseline"], of_baseline)


if __name__ == "__main__":
    for row in rows("--quick" in sys.argv):
        print(*row.cells(), sep=" | ")
