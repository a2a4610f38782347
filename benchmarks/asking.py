"""How many labels a stream needs to come within 0.5 points of all labels: asked for where the model is unsure, or at random.

    python -m benchmarks.asking [--write]

One pass of the perceptron with averaged weights over random orders of a9a and sms_spam (words and pairs of words), judged on
the test set. With asking, B is lowered by a sixth each time; without, the first labels of the order are learned from, their
number raised by a fifth each time. Taken is the least number whose accuracy, the mean over the orders, is at most 0.5 points
below that of all labels. `--write` puts the table into docs/guides/streams.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import datasets
from benchmarks.datasets import absent
from benchmarks.harness import Row
from benchmarks.pages import put
from separatrix import train

ORDERS = 5
CLOSE = 0.005
TITLES = {"a9a": "a9a", "sms_spam": "sms_spam"}


class Needed(NamedTuple):
    """The labels that a way of choosing them needs, with the accuracy; `b` is that of asking."""

    labels: float
    accuracy: float
    b: float | None = None


class Needs(NamedTuple):
    """What a data set needs: all labels, those asked for, and those chosen at random."""

    name: str
    every: Needed
    asked: Needed
    random: Needed


def streams(name: str) -> list[tuple[Any, Any, Any, Any]]:
    """Return training rows in random orders, and the test rows."""
    X, y, X_test, y_test = datasets.a9a() if name == "a9a" else datasets.sms_spam(0)
    orders = (np.random.default_rng(seed).permutation(X.shape[0]) for seed in range(ORDERS))
    return [(X[order], np.asarray(y)[order], X_test, np.asarray(y_test)) for order in orders]


def mean_accuracy(orders: list[tuple[Any, Any, Any, Any]], n: int | None = None, b: float | None = None) -> Needed:
    """Return the mean of the labels learned from and of the accuracy; of the first n rows, or of those asked for."""
    labels, accuracies = [], []
    for seed, (X, y, X_test, y_test) in enumerate(orders):
        asking = {} if b is None else {"ask": b, "seed": seed}
        model = train(X[:n], label=y[:n], rule="perceptron", passes=1, order="cyclic", **asking)
        labels.append(model.summary["asked"] if b is not None else len(y[:n]))
        accuracies.append(float(np.mean(model.predict(X_test) == y_test)))
    return Needed(float(np.mean(labels)), float(np.mean(accuracies)), b)


def needs(name: str) -> Needs:
    """Return the figures of a data set."""
    orders = streams(name)
    every = mean_accuracy(orders)
    asked, b = every, 64.0
    while b > 1e-3:
        found = mean_accuracy(orders, b=b)
        if found.accuracy >= every.accuracy - CLOSE and found.labels < asked.labels:
            asked = found
        b /= 1.2
    n, random = 60.0, every
    while n < orders[0][0].shape[0]:
        random = mean_accuracy(orders, n=int(n))
        if random.accuracy >= every.accuracy - CLOSE:
            break
        n *= 1.2
    else:
        random = every
    return Needs(TITLES[name], every, asked, random)


def table(found: list[Needs]) -> str:
    """Return the figures as a table."""
    lines = ["| data | all labels | accuracy | asked for | accuracy | at random | accuracy |", "|---" * 7 + "|"]
    for one in found:
        asked = f"{one.asked.labels:,.0f} ({one.asked.labels / one.every.labels:.1%}), B = {one.asked.b or 0:.2g}"
        random = f"{one.random.labels:,.0f} ({one.random.labels / one.every.labels:.1%})"
        cells = [f"{one.every.labels:,.0f}", f"{one.every.accuracy:.4f}", asked, f"{one.asked.accuracy:.4f}"]
        lines.append(f"| {' | '.join([one.name, *cells, random, f'{one.random.accuracy:.4f}'])} |")
    return "\n".join(lines)


def rows(quick: bool) -> Iterator[Row]:
    """Yield a row for each data set."""
    if absent():
        yield Row.missing("labels needed", "labels at random", absent())
        return
    for name in ("sms_spam",) if quick else TITLES:
        found = needs(name)
        yield Row(f"{found.name}: labels asked for", value=100 * found.asked.labels / found.every.labels, unit="%")
        yield Row(f"{found.name}: labels at random", value=100 * found.random.labels / found.every.labels, unit="%")


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    text = table([needs(name) for name in TITLES])
    print(text)
    if parser.parse_args().write:
        put("docs/guides/streams.md", "labels needed", text)


if __name__ == "__main__":
    main()
