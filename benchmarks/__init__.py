"""Benchmarks: every figure is a ratio measured side by side in one run, best of several repeats.

Commands that are measured find the package compiled to bytecode, as an installed one is, also where Python was told to write
none: otherwise it compiles our modules anew in each process, and those of the peers, which were installed, not at all.
"""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
