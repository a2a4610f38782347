"""What it costs to forget a row: the share of rows that made no mistake, and the cost of the others beside retraining.

    OMP_NUM_THREADS=1 python -m benchmarks.forgetting [a9a newsgroups mnist] [--write]
    python -m benchmarks.forgetting --server 100000 [--write]

Each learner is fitted once. Then single rows are forgotten, receipt included, in turn with training without the row from
the beginning, in the same order: rows that made no mistake, and random ones that made some. The features are given, and are
not fitted from the rows. What a set gave is kept in build/forgetting.json; `--write` puts the table into docs/forgetting.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson

from benchmarks import datasets
from benchmarks.datasets import absent
from benchmarks.harness import Row
from benchmarks.pages import ROOT, put
from benchmarks.timing import Times, in_turns
from separatrix import AveragedPerceptron, Perceptron, forget
from separatrix.training.forgetting.refitting import Fit, fit_left, order_from
from separatrix.web.server.reading.request_reader import Limits
from separatrix.web.server.storage import snapshots
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.writing.writer import Writer

ABOUT = (
    "A learner is fitted once. Then one row is forgotten, receipt included, in turn with training without the row from the "
    "beginning, in the same order. A row that made no mistake is the cheap case, so its share of the rows is shown first. "
    "[Forgetting](forgetting.md) has more rows of each kind."
)
RESULTS = ROOT / "build" / "forgetting.json"
TITLES = {"a9a": "a9a", "newsgroups": "20 newsgroups", "mnist": "MNIST"}
LEARNERS = {
    "averaged, pa1 (the default of train)": AveragedPerceptron(rule="pa1", max_iter=10, random_state=0),
    "averaged, perceptron": AveragedPerceptron(max_iter=10, random_state=0),
    "last, perceptron": Perceptron(max_iter=10, random_state=0),
}
SAMPLE = {"a9a": 20, "newsgroups": 5, "mnist": 3}
"""So many rows with mistakes are forgotten one by one."""


def costs(name: str, title: str) -> dict[str, Any]:
    """Return the figures of a data set and a learner."""
    X, y, *_ = getattr(datasets, name)()
    model = LEARNERS[title].fit(X, y)
    n, rng = X.shape[0], np.random.default_rng(0)
    mistaken = np.unique(model.ledger_.example)
    right = np.setdiff1d(np.arange(n), mistaken)
    figures: dict[str, Any] = {"rows": n, "mistakes": model.n_mistakes_, "steps": model.n_seen_, "free": len(right) / n}
    for kind, rows in (("without", right), ("with", mistaken)):
        figures[kind] = None
        if rows.size:
            chosen = rng.choice(rows, size=min(len(rows), SAMPLE[name] if kind == "with" else 2), replace=False)
            figures[kind] = [one_row(model, Fit(X, y, {}), int(row)) for row in chosen]
    return figures


def one_row(model: Any, fit: Fit, row: int) -> dict[str, Any]:
    """Return the seconds of forgetting a row, those of training without it, and the share of presentations made again."""
    _, receipt = forget(model, row, fit.X, fit.y)
    order, gone = order_from(receipt["order"]), np.array([row])
    tasks = (lambda: forget(model, row, fit.X, fit.y), lambda: fit_left(model, order, fit.without(gone)))
    (ours, theirs), _ = in_turns(*tasks, repeats=2)
    presented = receipt["replay"]["presented"] / receipt["replay"]["steps"]
    return {"ours": [ours.wall, ours.cpu], "theirs": [theirs.wall, theirs.cpu], "presented": presented}


def on_the_server(n: int) -> dict[str, Any]:
    """Return the seconds of learning n examples of a9a in requests of 100, and of forgetting one of them on the server."""
    X, y, *_ = datasets.a9a()
    X = X[np.arange(n) % X.shape[0]]
    labels = [int(label) for label in np.asarray(y)[np.arange(n) % len(y)]]
    figures: dict[str, Any] = {"n": n, "forgotten": {}}
    with TemporaryDirectory() as folder:
        store = CommitStore(Path(folder) / "store")
        snapshots.begin(store, None, {"learner": "averaged", "rule": "pa1", "C": 1.0, "text": False, "bits": 18})
        writer = Writer(store, Limits(), keep_all=True)
        writer.start()
        begun = time.perf_counter()
        for begin in range(0, n, 100):
            some = X[begin : begin + 100]
            parts = zip(np.split(some.indices, some.indptr[1:-1]), np.split(some.data, some.indptr[1:-1]), strict=True)
            features = [{str(j): v for j, v in zip(row.tolist(), data.tolist(), strict=True)} for row, data in parts]
            examples = [{"features": x, "label": label} for x, label in zip(features, labels[begin:], strict=False)]
            writer.submit(None, None, b"\n".join(map(orjson.dumps, examples))).result()
        figures["learning"] = time.perf_counter() - begun
        for number in (n, n // 2, 1):  # each later than the next, so that none is skipped by another
            begun = time.perf_counter()
            reply = orjson.loads(writer.forget([number]).result())
            replay = reply["receipt"]["replay"]
            figures["forgotten"][number] = time.perf_counter() - begun, replay["seconds"], replay["presented"]
        writer.close()
    return figures


def server_table(figures: dict[str, Any]) -> str:
    """Return the figures of the server as a table."""
    head = f"| example, of {figures['n']:,} | learned again | replay | in all | of learning all {figures['n']:,} |"
    lines = [head, "|---" * 5 + "|"]
    for number, (whole, replay, presented) in figures["forgotten"].items():
        share = f"{whole / figures['learning']:.2f}"
        lines.append(f"| {int(number):,} | {presented:,} | {replay:.2f} s | {whole:.2f} s | {share} |")
    return "\n".join(lines)


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each data set, learner, and kind of row."""
    if absent():
        yield Row.missing("forgetting a row", "training without it", absent())
        return
    for name in ("a9a",) if quick else TITLES:
        for title in LEARNERS:
            figures = costs(name, title)
            yield Row(f"{TITLES[name]}, {title}: rows without a mistake", value=100 * figures["free"], unit="%")
            for kind in ("without", "with"):
                for one in (figures[kind] or [])[:1]:
                    note = f"{100 * one['presented']:.1f} % of the presentations made again"
                    what = f"{TITLES[name]}, {title}: a row {kind} mistakes"
                    times = Times(*one["ours"]), Times(*one["theirs"])
                    yield Row(what, "forget", "training without it", *times, note=note)


def share(measured: list[dict[str, Any]]) -> str:
    """Return the median and the range of the time of forgetting over that of training."""
    ratios = sorted(min(one["ours"][0]) / min(one["theirs"][0]) for one in measured)
    return f"{np.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def table(results: dict[str, Any]) -> str:
    """Return the figures as a table."""
    head = (
        "| data | learner | rows | mistakes | rows that made none | time of forgetting one of these, of retraining | "
        "presentations made again for one of the others | time of that, of retraining |"
    )
    lines = [head, "|---" * 8 + "|"]
    for name in TITLES:
        for title in LEARNERS:
            if (figures := results.get(f"{name}, {title}")) is None:
                continue
            again = np.array([one["presented"] for one in figures["with"]])
            presented = f"median {np.median(again):.2f}, mean {again.mean():.2f}"
            free = "–" if figures["without"] is None else share(figures["without"])
            cells = TITLES[name], title, f"{figures['rows']:,}", f"{figures['mistakes']:,}", f"{100 * figures['free']:.1f} %"
            lines.append(f"| {' | '.join([*cells, free, presented, share(figures['with'])])} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--learner", type=int, action="append")
    parser.add_argument("--server", type=int, metavar="N", help="Measure the server, with N examples, instead.")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.server:
        text = server_table(on_the_server(arguments.server))
        print(text)
        if arguments.write:
            put("docs/forgetting.md", "forgetting on the server", text)
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in arguments.names:
        for k, title in enumerate(LEARNERS):
            if arguments.learner is None or k in arguments.learner:
                results[f"{name}, {title}"] = costs(name, title)
                RESULTS.parent.mkdir(exist_ok=True)
                RESULTS.write_text(json.dumps(results))
    print(table(results))
    if arguments.write:
        put("docs/forgetting.md", "forgetting", table(results))


if __name__ == "__main__":
    main()
