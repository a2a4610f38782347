"""Files that are sorted by class train as well as shuffled ones: in memory, with little memory, and on shards.

    python -m benchmarks.sorted_files [--seeds 10] [--data adult …] [--modes memory 8M shards] [--kdd-rows N] [--write]

The training rows of each data set are written three times: sorted by class, in the reverse order, and shuffled. Every order
is trained as `separatrix train` does it: from one file, from one file with `--memory 8M`, and from four files, each with a
quarter of the rows, with `--engine local:4`; `separatrix evaluate` tests the model. An accuracy is the mean over seeds (of
the training; sms_spam, which has no test file, is also divided anew by each seed). The model does not depend on the number
of worker processes: on a busy machine, `--processes 1` costs less. `--write` puts the table into docs/scaling.md.
"""

import argparse
import gzip
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from click.testing import CliRunner

from benchmarks.datasets import DATA, mnist, news_texts, spam_texts
from benchmarks.pages import put
from separatrix.cli import app

SHARDS = 4
ORDERS = ("sorted", "reversed", "shuffled")
MODES = {"memory": [], "8M": ["--memory", "8M"], "shards": ["--engine", f"local:{SHARDS}"]}
"""The options of each way of training."""
TITLES = {"memory": "in memory", "8M": "`--memory 8M`", "shards": f"{SHARDS} shards"}


class Lines(NamedTuple):
    """The training rows of a data set as lines of a file, with their labels, and how to train and test on them."""

    lines: list[str]
    labels: Any
    test: Path
    header: str = ""
    options: tuple[str, ...] = ()


def adult(folder: Path, seed: int) -> Lines:
    """Adult: CSV without a header, the label last."""
    return _table(DATA / "adult" / "adult-train.csv.gz", DATA / "adult" / "adult-test.csv.gz")


def kdd(folder: Path, seed: int, rows: int | None = None) -> Lines:
    """KDD Cup 99: CSV without a header, the label last; some classes are in the test file only."""
    folder = DATA / "kddcup99"
    whole = _table(folder / "kddcup.data_10_percent.gz", folder / "corrected.gz")
    if rows is None:
        return whole
    chosen = np.sort(np.random.default_rng(0).permutation(len(whole.lines))[:rows])
    return whole._replace(lines=[whole.lines[k] for k in chosen.tolist()], labels=whole.labels[chosen])


def _table(train: Path, test: Path) -> Lines:
    with gzip.open(train, "rt") as file:
        lines = [line for line in file.read().split("\n") if line.strip()]
    return Lines(lines, np.array([line.rsplit(",", 1)[1] for line in lines]), test)


def newsgroups(folder: Path, seed: int) -> Lines:
    """20 newsgroups: a text for each label, with a tab between them."""
    train, test = news_texts()
    return _texts(folder, train, test)


def sms_spam(folder: Path, seed: int) -> Lines:
    """Short messages; a fifth of them, drawn with the seed, is the test file."""
    labels, texts = spam_texts()
    order = np.random.default_rng([1, seed]).permutation(len(labels))
    held_out, rest = order[: len(order) // 5], order[len(order) // 5 :]
    train, test = ((labels[rows], [texts[k] for k in rows.tolist()]) for rows in (rest, held_out))
    return _texts(folder, train, test)


def _texts(folder: Path, train: tuple[Any, list[str]], test: tuple[Any, list[str]]) -> Lines:
    lines, test_lines = ([f"{label}\t{text}" for label, text in zip(*part, strict=True)] for part in (train, test))
    path = folder / "test.tsv"
    path.write_text("\n".join(["label\ttext", *test_lines]) + "\n", encoding="utf-8")
    return Lines(lines, train[0], path, "label\ttext", ("--label", "label"))


def digits(folder: Path, seed: int) -> Lines:
    """MNIST as svmlight: a line of 784 numbers for each digit."""
    X, y, X_test, y_test = mnist()
    path = folder / "test.svm"
    path.write_text("\n".join(_svmlight(X_test, y_test)) + "\n")
    return Lines(list(_svmlight(X, y)), y, path)


def _svmlight(X: Any, y: Any) -> Iterator[str]:
    for row, label in zip(X, y.tolist(), strict=True):
        where = np.flatnonzero(row)
        yield f"{label} " + " ".join(f"{k}:{value:.4g}" for k, value in zip((where + 1).tolist(), row[where], strict=True))


DATASETS: dict[str, tuple[str, Callable[..., Lines]]] = {
    "adult": ("Adult", adult),
    "newsgroups": ("20 newsgroups", newsgroups),
    "sms_spam": ("sms_spam", sms_spam),
    "kdd": ("KDD Cup 99, 10 %", kdd),
    "mnist": ("MNIST", digits),
}


def write(folder: Path, data: Lines, order: str, seed: int) -> None:
    """Write the training rows in some order: once whole, and once in a file for each shard."""
    rows = np.argsort(data.labels, kind="stable")
    if order == "reversed":
        rows = rows[::-1]
    elif order == "shuffled":
        rows = np.random.default_rng(seed).permutation(len(rows))
    parts = {"whole": rows} | {f"part-{k}": part for k, part in enumerate(np.array_split(rows, SHARDS))}
    for name, chosen in parts.items():
        lines = [data.header] * bool(data.header) + [data.lines[k] for k in chosen.tolist()]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(*arguments: Any) -> dict[str, Any]:
    """Run a verb in this process; return its JSON."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    if result.exit_code:
        raise SystemExit(f"{arguments}: {result.output}")
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def accuracy(folder: Path, data: Lines, mode: str, seed: int) -> float:
    """Return the test accuracy of a model trained in some way."""
    source, model = folder / ("part-*" if mode == "shards" else "whole"), folder / "model.sepx"
    run("train", source, *data.options, *MODES[mode], "--seed", seed, "-o", model)
    return float(run("evaluate", model, data.test)["accuracy"])


def rows_of(name: str, load: Callable[..., Lines], modes: list[str], seeds: int) -> Iterator[list[str]]:
    """Yield a row of the table for each way of training."""
    accuracies: dict[tuple[str, str], list[float]] = {(mode, order): [] for mode in modes for order in ORDERS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for order in ORDERS:
            data: Lines | None = None
            for seed in range(seeds):
                if data is None or name == "sms_spam":
                    data = load(folder, seed)
                    write(folder, data, order, seed)
                for mode in modes:
                    accuracies[mode, order].append(accuracy(folder, data, mode, seed))
    for mode in modes:
        means = [statistics.mean(accuracies[mode, order]) for order in ORDERS]
        difference = 100 * (max(means) - min(means))
        yield [TITLES[mode], *(f"{mean:.4f}" for mean in means), f"{difference:.2f}"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--kdd-rows", type=int, help="train on so many rows of KDD, drawn at random")
    parser.add_argument("--processes", type=int, default=SHARDS, help="so many worker processes for the four shards")
    parser.add_argument("--write", action="store_true", help="write docs/scaling.md")
    chosen = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"the real data sets are not at {DATA}; set SEPARATRIX_DATA")
    MODES["shards"] = ["--engine", f"local:{chosen.processes}"]
    lines = ["| data | trained | sorted | reversed | shuffled | largest difference, points |", "|---|---|---|---|---|---|"]
    print("\n".join(lines))
    for name in chosen.data:
        title, load = DATASETS[name]
        if name == "kdd" and chosen.kdd_rows:
            title += f", {chosen.kdd_rows:,} rows"

            def load(folder: Path, seed: int) -> Lines:
                return kdd(folder, seed, chosen.kdd_rows)

        begin = time.perf_counter()
        for row in rows_of(name, load, chosen.modes, chosen.seeds):
            lines.append(f"| {title} | {' | '.join(row)} |")
            print(lines[-1], flush=True)
        print(f"  {time.perf_counter() - begin:.0f} s", flush=True)
    lines.append(f"\nMeans over {chosen.seeds} seeds.")
    if chosen.write:
        put("docs/scaling.md", "benchmarks.sorted_files", "\n".join(lines))


if __name__ == "__main__":
    main()
