"""What a run of suites is told as: tables on a terminal, JSON, and the page docs/benchmarks.md with its pictures."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import subprocess
import textwrap
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchmarks.harness import ABSENT, MET, NEGATIVE, SUITES, Line, Outcome, Row
from benchmarks.pages import put

FORMAT = 1
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas")
PEERS = ("vowpalwabbit", "liblinear-official", "river", "starlette", "uvicorn", "dask", "pyspark")
LARGEST = 150_000
WIDTH = 120
OPENING, OVERVIEW = "opening", "overview"
HEADLINES = (
    ("passes", "fit on dense rows, shuffled", "64 float32, shuffled", "", "scikit-learn"),
    ("passes", "fit on sparse rows, shuffled", "47,000, shuffled", "", "scikit-learn"),
    ("parsing", "reading svmlight, one core", "svmlight", "one core", "load_svmlight_file"),
    ("text", "texts to hashed words", "hash words, signed", "", "HashingVectorizer"),
    ("end-to-end", "file to model, whole command", "whole command", "pa1", "Vowpal Wabbit"),
    ("certificates", "separable or not, with a proof", "agaricus", "", "LP"),
    ("serving", "learning over HTTP, saved to disk first", "durable", "", "the same lines"),
    ("sequences", "file to a tagger, same features", "to a model, the same", "", "crfsuite"),
    ("kernel", "MNIST, polynomial kernel", "degree 4", "", "SVC"),
    ("cluster", "a Spark session, to MLlib's accuracy", "MLlib", "", "MLlib"),
)
"""What opens the page: suite, the job in words, and what the line says it did, of ours, beside whom."""
ON_THE_FRONT = 7
"""So many of them, the first, are on the README, too."""
COLOURS = {MET: "green", ABSENT: "yellow", **dict.fromkeys(NEGATIVE, "bold red")}


def show(lines: Sequence[Line], title: str = "", console: Console | None = None) -> None:
    """Print lines of one kind as a table."""
    kind = lines[0]
    made = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    shown = [k for k, name in enumerate(kind.columns) if name not in kind.aside]
    for k in shown:
        made.add_column(kind.columns[k], no_wrap=k > 0, ratio=1 if k == 0 else None)
    for line in lines:
        cells: list[Any] = [Text(cell.strip("*")) for cell in line.cells()]
        cells[-1].stylize(COLOURS.get(line.verdict, ""))
        cells[0] = Group(cells[0], *(Padding(Text(below, "dim"), (0, 0, 0, 2)) for below in line.below()))
        made.add_row(*(cells[k] for k in shown))
    (console or Console()).print(made)


def markdown(lines: Sequence[Line]) -> str:
    """The same table as Markdown; what does not hold is bold."""
    table = [lines[0].columns, ["---"] * len(lines[0].columns)]
    for line in lines:
        *cells, verdict = (cell.replace("|", "\\|") for cell in line.cells())
        table.append([*cells, f"**{verdict}**" if verdict in NEGATIVE else verdict])
    return "\n".join("| " + " | ".join(row) + " |" for row in table)


def facts(root: Path, quick: bool) -> dict[str, Any]:
    """The machine, the versions, the date and the commit."""
    return {
        "date": date.today().isoformat(),
        "commit": commit(root),
        "quick": quick,
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
            "system": f"{platform.system()} {platform.machine()}",
        },
        "python": platform.python_version(),
        "versions": {name: version for name in (*PACKAGES, *PEERS) if (version := version_of(name))},
    }


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def processor() -> str:
    """The processor's name as Linux tells it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def commit(root: Path) -> str:
    """The commit of the checkout, with a plus where files were changed since; empty where there is no git."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", "src", "benchmarks") else "")
    except OSError:
        return ""


def document(outcomes: Sequence[Outcome], about: dict[str, Any]) -> dict[str, Any]:
    """Everything, as JSON keeps it."""
    suites = {
        outcome.suite: {"seconds": round(outcome.seconds, 1), "rows": [line.document() for line in outcome.lines]}
        for outcome in outcomes
    }
    return {"format": FORMAT, **about, "suites": suites}


def save(outcomes: Sequence[Outcome], about: dict[str, Any], path: Path) -> None:
    path.write_text(
        json.dumps(document(outcomes, about), indent=1, ensure_ascii=False, default=float) + "\n", encoding="utf-8"
    )


def tally(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many lines have each verdict that is one."""
    verdicts = [line.verdict for outcome in outcomes for line in outcome.lines]
    return {word: verdicts.count(word) for word in (MET, *sorted(NEGATIVE), ABSENT) if word in verdicts}


def page(outcomes: Sequence[Outcome], about: dict[str, Any], pictures: dict[str, list[tuple[str, str]]]) -> str:
    """The page; `pictures` are, for each suite and what opens the page, files of docs/images and what they show."""

    def shown(suite: str) -> list[str]:
        return [f"![{what}](images/{name})" for name, what in pictures.get(suite, [])]

    parts = ["# Benchmarks", *shown(OPENING), "\n".join(map(sentence, headlines(outcomes))), method(outcomes, about)]
    if pictures.get(OVERVIEW):
        parts += ["## Every ratio that has a floor", *shown(OVERVIEW)]
    for outcome in outcomes:
        parts.append(f"## {SUITES[outcome.suite][1]}")
        about_suite = getattr(outcome.module, "ABOUT", "")
        parts += [about_suite] if about_suite else []
        parts += shown(outcome.suite)
        parts += [markdown(lines) for lines in outcome.tables()]
    return "\n\n".join(parts) + "\n"


def method(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """How and where it was measured, in a box."""
    machine, counted = about["machine"], tally(outcomes)
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    paragraphs = (
        "Each line is measured side by side in one run: ours and theirs take turns, after a warm-up, and BLAS has one "
        "thread. Commands find their modules compiled to bytecode, as those of an installed package are. Times are best · "
        "median · worst of the repeats. **ratio** is the best time of the peer divided by ours, with the smallest and the "
        "largest ratio of a round in brackets. **floor** is what we promise. **quality** says "
        "whether the result is as good as the peer's. A learner whose result depends on the order of the rows is judged by "
        "its mean over several orders. A difference within twice its standard error, where that is shown, counts as equal.",
        "A floor that was not reached is MISSED; one that was reached with a worse result is WORSE. In this run: "
        + ", ".join(f"{number} {word}" for word, number in counted.items())
        + ".",
        f"`separatrix bench{' --quick' if about['quick'] else ''} --write` wrote this page on {about['date']}, at commit "
        f"{about['commit'] or 'unknown'}, in {sum(outcome.seconds for outcome in outcomes) / 60:.0f} minutes. The machine: "
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, load {machine['load']} when it began. The "
        f"versions: Python {about['python']}, {versions}.",
    )
    title = '<p class="admonition-title">How this is measured</p>'
    return "\n\n".join(['<div class="admonition note" markdown>', title, *map(wrapped, paragraphs), "</div>"])


def wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False, break_long_words=False))


def sentence(job_and_line: tuple[str, Row]) -> str:
    """What a reader remembers of a line."""
    job, line = job_and_line
    if line.ratio is None:
        return f"- {ABSENT}: {job}, beside {line.peer}"
    result = in_short(line)
    return f"- **{line.ratio:.1f} ×** the speed of {line.peer}: {job}" + (f" ({result})" if result else "")


def in_short(line: Row) -> str:
    """The result of a line without its standard error."""
    return re.sub(r" \(difference ± [\d.]+\)", "", line.quality.says) if line.quality else line.note


def headlines(outcomes: Sequence[Outcome]) -> list[tuple[str, Row]]:
    """Each job of HEADLINES in words with its line; a job that has none is a line that says so."""
    by_suite = {outcome.suite: outcome.lines for outcome in outcomes}
    jobs = []
    for suite, job, what, ours, peer in HEADLINES:
        lines = (line for line in by_suite.get(suite, ()) if isinstance(line, Row) and line.ratio)
        chosen = (line for line in lines if what in line.what and ours in line.ours and peer in line.peer)
        jobs.append((job, next(chosen, Row.missing(job, peer, f"the suite {suite} gave no such line"))))
    return jobs


def front(outcomes: Sequence[Outcome], about: dict[str, Any]) -> str:
    """The table for the README: the first lines of the page, whatever they say."""
    machine = about["machine"]
    about_run = (
        f"Measured on {about['date']} by `separatrix bench --write`, {machine['processor']}, {machine['cores']} cores. Each "
        "ratio is their time divided by ours, side by side in one run; below 1 they are quicker. "
        "[All lines, misses included](docs/benchmarks.md)"
    )
    parts = [wrapped(about_run), ""]
    parts += ["| job | beside | times faster | the result |", "|---|---|---|---|"]
    for job, line in headlines(outcomes)[:ON_THE_FRONT]:
        ratio = ABSENT if line.ratio is None else f"{line.ratio:.1f}"
        result = re.sub(r", means of \d+ seeds", "", in_short(line))  # no line of the README is wider than WIDTH
        parts.append(f"| {job} | {line.peer} | {ratio} | {result} |")
    return "\n".join(parts)


def write(outcomes: Sequence[Outcome], about: dict[str, Any], root: Path) -> list[Path]:
    """Write the page, its pictures and, of a full run, the tables of other pages; return what was written.

    Without matplotlib the page has no pictures.
    """
    folder = root / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, list[tuple[str, str]]] = {}
    if importlib.util.find_spec("matplotlib"):
        from benchmarks.charts import opening, ratios

        pictures[OPENING] = opening(headlines(outcomes), folder)
        pictures[OVERVIEW] = ratios(outcomes, folder)
        for outcome in outcomes:
            draw = getattr(outcome.module, "charts", None)
            pictures[outcome.suite] = draw(outcome.lines, folder) if draw else []
    written = [folder / name for found in pictures.values() for name, _ in found]
    for path in written:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes, more than {LARGEST:,}")
    text = root / "docs" / "benchmarks.md"
    text.write_text(page(outcomes, about, pictures), encoding="utf-8")
    for outcome in outcomes if not about["quick"] else ():
        make = getattr(outcome.module, "tables", None)
        written += [put(*table, root) for table in (make(outcome.lines) if make else ())]
    return [text, *written, put("README.md", "separatrix bench", front(outcomes, about), root)]


def verdict_of(outcomes: Sequence[Outcome]) -> int:
    """The exit status: 1 where a floor was missed or a suite failed."""
    return int(any(line.verdict in NEGATIVE for outcome in outcomes for line in outcome.lines))
