"""From raw files to accuracy: one command each, the same defaults for all.

    python -m benchmarks.raw_files [--write]

Each row is a whole `separatrix train` in a process of its own, start-up included; the time is the best of several. Where
the data have a test file, `separatrix evaluate` judges the model on it; else a fraction is held out, for ten seeds. Auto MPG
has no classes of its own: a car is good that goes farther than the median. `--write` puts a table into
docs/command-line.md, and so does `separatrix bench --write`, whose suite "commands" this is.
"""

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.datasets import DATA, absent, auto_mpg
from benchmarks.end_to_end import start_of_numba
from benchmarks.harness import Row
from benchmarks.pages import put
from benchmarks.report import show
from benchmarks.timing import Times

SEPARATRIX = [sys.executable, "-m", "separatrix"]
SEEDS = 10
ABOUT = (
    "`separatrix train` on raw files, each a process of its own, start-up included, with one set of defaults. The figure is "
    "the accuracy on a test file, or on held-out rows as the mean over seeds. What remains of a time beyond the start of "
    "Numba, a program of its own that calls one empty kernel, is all that work on the package can gain."
)


class Command(NamedTuple):
    """What a command did: its accuracy, and how that was found."""

    data: str
    command: str
    rows: int
    times: Times
    accuracy: float
    how: str
    floor: float


def run(*arguments):
    """Run a verb; return (wall seconds, processor seconds, what it said as JSON)."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*SEPARATRIX, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - begin, used, json.loads(done.stdout)


def held_out(data, path, options, floor, seeds):
    """Train with a fraction held out, for some seeds."""
    wall, used, summaries = zip(*(run("train", path, *options, "--seed", seed) for seed in range(seeds)), strict=True)
    scores = [summary["held_out_accuracy"] for summary in summaries]
    rows = summaries[0]["rows"] + summaries[0]["held_out"]
    how = f"mean of {seeds} seeds ({min(scores):.4f} at worst)"
    command = " ".join(map(str, ("train", path.name, *options)))
    return Command(data, command, rows, Times(list(wall), list(used)), statistics.mean(scores), how, floor)


def tested(data, folder, path, test, options, floor, repeats):
    """Train, and evaluate on a test file."""
    model = folder / "m.sepx"
    wall, used, summaries = zip(*(run("train", path, *options, "-o", model) for _ in range(repeats)), strict=True)
    *_, judged = run("evaluate", model, test)
    unknown = sum(judged["unknown_labels"].values())
    how = f"on `{test.name}`" + (f", where {unknown:,} rows have labels never met" if unknown else "")
    command, times = " ".join(map(str, ("train", path.name, *options))), Times(list(wall), list(used))
    return Command(data, command, summaries[0]["rows"], times, judged["accuracy"], how, floor)


def cars(folder):
    """Write Auto MPG as CSV, with a label in place of how far a car goes."""
    columns, labels = auto_mpg()
    path = folder / "auto.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "label"])
        writer.writerows(zip(*columns.values(), labels, strict=True))
    return path


def commands(folder, quick=False):
    """Yield what each command did; a quick run leaves out the large files."""
    text, adult, kdd = (DATA / name for name in ("20newsgroups", "adult", "kddcup99"))
    seeds, repeats = (2, 1) if quick else (SEEDS, 3)
    spam = DATA / "sms_spam" / "SMSSpamCollection.gz"
    yield held_out("sms_spam, raw TSV", spam, ("--label", 0, "--holdout", 0.2), 0.985, seeds)
    of_cars = "Auto MPG, good or bad by the median"
    yield held_out(of_cars, cars(folder), ("--holdout", 0.25), 0.9, seeds)
    if quick:
        return
    files = text / "20newsgroups-train.tab.gz", text / "20newsgroups-test.tab.gz"
    yield tested("20 newsgroups, raw text", folder, *files, ("--label", "Category"), 0.85, repeats)
    files = adult / "adult-train.csv.gz", adult / "adult-test.csv.gz"
    yield tested("Adult, CSV without a header", folder, *files, (), 0.865, repeats)
    files = kdd / "kddcup.data_10_percent.gz", kdd / "corrected.gz"
    yield tested("KDD Cup 99, 10 %", folder, *files, (), 0.915, repeats)


def rows(quick):
    """The suite "commands"."""
    if absent():
        yield Row.missing("raw files to accuracy", "", absent())
        return
    with tempfile.TemporaryDirectory() as name:
        start = start_of_numba(Path(name), 3)
        for done in commands(Path(name), quick):
            what, ours = f"{done.data}, {done.rows:,} rows", f"separatrix {done.command}"
            note = f"{done.how}; the start of Numba alone takes {start:.2f} s"
            yield Row(what, ours, our_times=done.times, value=done.accuracy, unit="accuracy", floor=done.floor, note=note)


def tables(lines):
    """The table of docs/command-line.md: its page, its mark there, and its text; nothing where a command did not run."""
    if all(line.value is not None for line in lines):
        text = ["| data | command | accuracy | seconds |", "|---|---|---|---|"]
        for line in lines:
            how = line.note.partition("; ")[0]
            accuracy = f"{line.value:.4f}{' ' if how.startswith('on') else ', '}{how}"
            command = line.ours.removeprefix("separatrix ")
            text.append(f"| {line.what} | `{command}` | {accuracy} | {line.our_times.best:.1f} |")
        yield "docs/command-line.md", "benchmarks.raw_files", "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/command-line.md")
    chosen = parser.parse_args()
    lines = list(rows(False))
    show(lines)
    for page in tables(lines) if chosen.write else ():
        put(*page)


if __name__ == "__main__":
    main()
