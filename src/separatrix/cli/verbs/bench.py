"""Measure speed and quality beside other libraries.

The benchmarks are part of a checkout of the project. Exit status: 0 done, 1 a floor is missed, 2 bad input.
"""

import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import separatrix
from separatrix.cli.errors import errors_reported, fail
from separatrix.data.options import Argument, Option

NO_CHECKOUT = (
    "the benchmarks are in the project's repository, not in the installed package: run it in a checkout, "
    "after pip install '.[bench,plot]'"
)


def bench(
    suites: Annotated[list[str] | None, Argument(help="Suites to run; by default all.")] = None,
    quick: Annotated[bool, Option("--quick", help="Small sizes and few repeats: under three minutes.")] = False,
    json: Annotated[Path | None, Option(help="Also write every time and figure to this file.")] = None,
    write: Annotated[bool, Option("--write", help="Write docs/benchmarks.md and its pictures.")] = False,
) -> int:
    """Run the suites, print their tables, and return 1 where a floor is missed."""
    from rich.console import Console

    root = find_checkout()
    if root is None:
        fail("bench", NO_CHECKOUT)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    harness: Any = importlib.import_module("benchmarks.harness")
    report: Any = importlib.import_module("benchmarks.report")
    for suite in suites or []:
        if suite not in harness.SUITES:
            fail("bench", f"there is no suite {suite!r}; there are {', '.join(harness.SUITES)}")
    if suites and write:
        fail("bench", "--write writes the whole page, so it cannot be combined with names of suites")
    about = report.facts(root, quick)
    outcomes = run_suites(harness, report, suites or list(harness.SUITES), quick)
    console = Console()
    console.print(", ".join(f"{number} {word}" for word, number in report.tally(outcomes).items()) or "nothing was judged")
    with errors_reported("bench", "the report"):
        if json is not None:
            report.save(outcomes, about, json)
        for path in report.write(outcomes, about, root) if write else ():
            console.print(f"written: {path.relative_to(root)}", markup=False)
    return int(report.verdict_of(outcomes))


def find_checkout() -> Path | None:
    """Return the folder that has `benchmarks`: the one this package is imported from, or else the working directory."""
    folders = (Path(separatrix.__file__).parents[2], Path.cwd())
    return next((folder for folder in folders if (folder / "benchmarks" / "harness.py").is_file()), None)


def run_suites(harness: Any, report: Any, suites: Sequence[str], quick: bool) -> list[Any]:
    """Run the suites; print each one's tables when it is done and, on standard error, what is under way."""
    from rich.console import Console

    console, progress, begin = Console(), Console(stderr=True), time.perf_counter()
    outcomes: list[Any] = []
    with progress.status("starting") as status:
        for outcome, line in harness.run(suites, quick):
            elapsed = f"{time.perf_counter() - begin:.0f} s"
            if line is not None:
                status.update(f"{elapsed} · {outcome.suite}: {len(outcome.lines)} lines, the last {line.cells()[0]}")
            elif not outcomes or outcomes[-1] is not outcome:
                outcomes.append(outcome)
                status.update(f"{elapsed} · {outcome.suite}")
                if not progress.is_terminal:
                    progress.print(f"{elapsed} · {outcome.suite}", markup=False)
            else:
                for lines in outcome.tables():
                    title = f"{harness.SUITES[outcome.suite][1]} ({outcome.suite}, {outcome.seconds:.0f} s)"
                    report.show(lines, title, console)
    return outcomes
