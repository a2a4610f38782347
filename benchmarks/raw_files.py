"""From raw files to accuracy: one command each, the same defaults for all.

    python -m benchmarks.raw_files [--write]

Each row is a whole `separatrix train` in a process of its own, start-up included; the time is the best of several. Where
the data have a test file, `separatrix evaluate` judges the model on it; else a fraction is held out, for ten seeds.
`--write` puts the table into docs/command-line.md. Auto MPG has no classes of its own: a car is good that goes farther than
the median.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.datasets import DATA, auto_mpg
from benchmarks.pages import put

SEPARATRIX = [sys.executable, "-m", "separatrix"]
SEEDS = 10


def run(*arguments):
    """Run a verb; return (seconds, what it said as JSON)."""
    begin = time.perf_counter()
    done = subprocess.run([*SEPARATRIX, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.perf_counter() - begin, json.loads(done.stdout)


def held_out(path, *options):
    """Return (rows, seconds, accuracy in words) of a fraction held out, for ten seeds."""
    runs = [run("train", path, *options, "--seed", seed) for seed in range(SEEDS)]
    scores = [told["held_out_accuracy"] for _, told in runs]
    rows = runs[0][1]["rows"] + runs[0][1]["held_out"]
    said = f"{statistics.mean(scores):.4f}, mean of {SEEDS} seeds ({min(scores):.4f} at worst)"
    return rows, min(seconds for seconds, _ in runs), said


def tested(folder, path, test, *options):
    """Return (rows, seconds, accuracy in words) on a test file."""
    model = folder / "m.sepx"
    runs = [run("train", path, *options, "-o", model) for _ in range(3)]
    _, judged = run("evaluate", model, test)
    unknown = sum(judged["unknown_labels"].values())
    said = f"{judged['accuracy']:.4f} on `{test.name}`"
    if unknown:
        said += f", where {unknown:,} rows have labels never met"
    return runs[0][1]["rows"], min(seconds for seconds, _ in runs), said


def cars(folder):
    """Write Auto MPG as CSV, with a label in place of how far a car goes."""
    columns, labels = auto_mpg()
    path = folder / "auto.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "label"])
        writer.writerows(zip(*columns.values(), labels, strict=True))
    return path


def table(folder):
    """Yield the rows of the table."""
    text, adult, kdd = (DATA / name for name in ("20newsgroups", "adult", "kddcup99"))
    spam = DATA / "sms_spam" / "SMSSpamCollection.gz"
    found = held_out(spam, "--label", 0, "--holdout", 0.2)
    yield "sms_spam, raw TSV", f"train {spam.name} --label 0 --holdout 0.2", *found
    path = text / "20newsgroups-train.tab.gz"
    found = tested(folder, path, text / "20newsgroups-test.tab.gz", "--label", "Category")
    yield "20 newsgroups, raw text", f"train {path.name} --label Category", *found
    path = adult / "adult-train.csv.gz"
    found = tested(folder, path, adult / "adult-test.csv.gz")
    yield "Adult, CSV without a header", f"train {path.name}", *found
    path = cars(folder)
    yield "Auto MPG, good or bad by the median", f"train {path.name} --holdout 0.25", *held_out(path, "--holdout", 0.25)
    path = kdd / "kddcup.data_10_percent.gz"
    found = tested(folder, path, kdd / "corrected.gz")
    yield "KDD Cup 99, 10 %", f"train {path.name}", *found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/command-line.md")
    chosen = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"the real data sets are not at {DATA}; set SEPARATRIX_DATA")
    lines = ["| data | command | rows | accuracy | seconds |", "|---|---|---|---|---|"]
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as name:
        for data, command, rows, seconds, accuracy in table(Path(name)):
            lines.append(f"| {data} | `{command}` | {rows:,} | {accuracy} | {seconds:.1f} |")
            print(lines[-1], flush=True)
    if chosen.write:
        put("docs/command-line.md", "benchmarks.raw_files", "\n".join(lines))


if __name__ == "__main__":
    main()
