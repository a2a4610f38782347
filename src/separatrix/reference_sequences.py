"""Tagging of sequences in plain NumPy (Collins 2002): the true path is raised, the predicted one lowered.

The prediction is the best of all paths, which are enumerated: slow, and the oracle of the tests, as `reference.py` is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np

from separatrix.reference import Array, Run, presented


@dataclass
class PathMistake:
    """One mistake: at which step (from 1), on which sequence, the true and the predicted path, by how much, at what lead."""

    step: int
    sequence: int
    true: tuple[int, ...]
    predicted: tuple[int, ...]
    correction: float
    lead: float


def path_features(x: Array, path: Sequence[int], K: int) -> Array:
    """φ(x, y), flat: what each tag emits, then how often one tag follows another; K is the start and the end."""
    emitted, follows = np.zeros((K, x.shape[1])), np.zeros((K + 1, K + 1))
    stations = [K, *path, K] if len(path) else []
    for token, tag in zip(x, path, strict=True):
        emitted[tag] += token
    for before, after in pairwise(stations):
        follows[before, after] += 1
    return np.concatenate([emitted.ravel(), follows.ravel()])


def all_paths(n: int, K: int, forbidden: Any = None) -> list[tuple[int, ...]]:
    """Every allowed path of n tags; `forbidden` is a matrix like the transitions. The last tags change slowest."""
    paths = [path[::-1] for path in product(range(K), repeat=n)]
    if forbidden is None or not n:
        return paths
    return [p for p in paths if not any(forbidden[a, b] for a, b in zip((K, *p), (*p, K), strict=True))]


def best_path(w: Array, x: Array, K: int, forbidden: Any = None, truth: Sequence[int] | None = None) -> tuple[int, ...]:
    """The path with the highest score, the first of equals; with a truth, each wrong tag adds 1 to the score."""
    paths = all_paths(len(x), K, forbidden)
    wrong = [0 if truth is None else sum(a != b for a, b in zip(path, truth, strict=True)) for path in paths]
    scores = [float(w @ path_features(x, path, K)) + cost for path, cost in zip(paths, wrong, strict=True)]
    return paths[int(np.argmax(scores))]


def sequence_perceptron(
    X: Sequence[Array],
    y: Sequence[Sequence[int]],
    K: int,
    order: Iterable[int],
    weight: Sequence[float] | None = None,
    rule: str = "perceptron",
    C: float = 1.0,
    forbidden: Any = None,
) -> Run:
    """On a mistake w ← w + φ(x, y) − φ(x, ẑ); pa1 looks for the path that is wrong by the largest hinge loss."""
    run = Run([np.zeros(K * X[0].shape[1] + (K + 1) ** 2)])
    for step, i, c in presented(order, weight, rule):
        w, truth = run.last, tuple(y[i])
        predicted = best_path(w, X[i], K, forbidden, truth if rule == "pa1" else None)
        difference = path_features(X[i], truth, K) - path_features(X[i], predicted, K)
        lead = float(w @ difference)
        if rule == "pa1":
            loss = sum(a != b for a, b in zip(truth, predicted, strict=True)) - lead
            square = float(difference @ difference)
            c = 0.0 if loss <= 0 or square == 0.0 else c * min(C, loss / square)
        if predicted != truth and c:
            w = w + c * difference
            run.mistakes.append(PathMistake(step, i, truth, predicted, c, lead))
        run.weights.append(w)
    return run
