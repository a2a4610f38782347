"""`separatrix bench`: the suites of the checkout's `benchmarks` folder, side by side with the peers that are installed."""

import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import separatrix
from separatrix.cli.refusal import refuse, refusing

NOWHERE = (
    "the benchmarks are in the project's repository, not in the installed package: run it in a checkout, "
    "after pip install '.[bench,plot]'"
)


def checkout() -> Path | None:
    """The folder that has `benchmarks`: the one this package is imported from, else the working directory."""
    folders = (Path(separatrix.__file__).parents[2], Path.cwd())
    return next((folder for folder in folders if (folder / "benchmarks" / "harness.py").is_file()), None)


def bench(suites: Sequence[str], quick: bool, json: Path | None, write: bool) -> int:
    """Run suites, all of them by default; return 1 where a floor is missed."""
    root = checkout()
    if root is None:
        refuse("bench", NOWHERE)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    harness: Any = importlib.import_module("benchmarks.harness")
    report: Any = importlib.import_module("benchmarks.report")
    for suite in suites:
        if suite not in harness.SUITES:
            refuse("bench", f"there is no suite {suite!r}; there are {', '.join(harness.SUITES)}")
    if suites and write:
        refuse("bench", "--write writes the whole page: leave out the names of suites")
    about = report.facts(root, quick)
    outcomes = shown(harness, report, suites or list(harness.SUITES), quick)
    console = Console()
    console.print(", ".join(f"{number} {word}" for word, number in report.tally(outcomes).items()) or "nothing was judged")
    with refusing("bench", "the report"):
        if json is not None:
            report.save(outcomes, about, json)
        for path in report.write(outcomes, about, root) if write else ():
            console.print(f"written: {path.relative_to(root)}", markup=False)
    return int(report.verdict_of(outcomes))


def shown(harness: Any, report: Any, suites: Sequence[str], quick: bool) -> list[Any]:
    """Run the suites; print each one's tables when it is done and, on stderr, what is under way."""
    console, progress, begin = Console(), Console(stderr=True), time.perf_counter()
    outcomes: list[Any] = []
    with progress.status("starting") as status:
        for outcome, line in harness.run(suites, quick):
            so_far = f"{time.perf_counter() - begin:.0f} s"
            if line is not None:
                status.update(f"{so_far} · {outcome.suite}: {len(outcome.lines)} lines, the last {line.cells()[0]}")
            elif not outcomes or outcomes[-1] is not outcome:
                outcomes.append(outcome)
                status.update(f"{so_far} · {outcome.suite}")
                if not progress.is_terminal:
                    progress.print(f"{so_far} · {outcome.suite}", markup=False)
            else:
                for lines in outcome.tables():
                    report.show(
                        lines, f"{harness.SUITES[outcome.suite][1]} ({outcome.suite}, {outcome.seconds:.0f} s)", console
                    )
    return outcomes
