"""Points of the plane with labels: random sets with a chosen margin and noise, and points drawn by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.rows import Floats

HALF = 5.0
"""Random points lie in the square [−HALF, HALF]²."""
TRIES = 400


def random_set(n: int, classes: int = 2, gap: float = 0.5, noise: float = 0.0, seed: int = 0) -> tuple[Floats, Any]:
    """Return n points farther than `gap` from the true boundary, and their labels; a share `noise` of the labels is wrong.

    Two classes, −1 and 1, lie on the two sides of a line; each of more classes A, B, C … in a sector of the plane.

    Examples
    --------
    >>> X, y = random_set(4, gap=1.0, seed=0)
    >>> X.shape, y.tolist()
    ((4, 2), [1, -1, -1, -1])
    """
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.0, 2.0 * np.pi)
    angles = turn + 2.0 * np.pi * np.arange(classes) / classes
    W, b = np.column_stack([np.cos(angles), np.sin(angles)]), rng.uniform(-1.0, 1.0)
    accepted: list[Floats] = []
    n_accepted = 0
    for _ in range(TRIES):
        points = np.round(rng.uniform(-HALF, HALF, (max(n, 64), 2)), 3)
        scores = points @ W.T if classes > 2 else (points @ W[0] + b)[:, None] * np.array([[-1.0, 1.0]])
        ordered = np.sort(scores, axis=1)
        away = (ordered[:, -1] - ordered[:, -2]) / (2.0 if classes == 2 else np.linalg.norm(W[0] - W[1]))
        accepted.append(np.column_stack([points, np.argmax(scores, axis=1)])[away > gap])
        n_accepted += len(accepted[-1])
        if n_accepted >= n:
            break
    else:
        raise ValueError(f"a margin of {gap:g} leaves no room for {n} points: choose a smaller margin")
    chosen = np.concatenate(accepted)[:n]
    codes = chosen[:, 2].astype(np.int64)
    flipped = rng.random(n) < noise
    codes[flipped] = (codes[flipped] + rng.integers(1, classes, size=int(flipped.sum()))) % classes
    if len(np.unique(codes)) < 2:
        codes[0] = 1 - min(int(codes[0]), 1)
    names = np.array([-1, 1]) if classes == 2 else np.array([chr(ord("A") + k) for k in range(classes)])
    return chosen[:, :2].copy(), names[codes]


def drawn_points(points: list[tuple[float, float, str]]) -> tuple[Floats, Any]:
    """Return points drawn by hand as X and y."""
    X = np.array([[x, y] for x, y, _ in points], np.float64).reshape(len(points), 2)
    return X, as_labels([label for *_, label in points])


def as_labels(texts: list[str]) -> Any:
    """Return labels as integers if all of them are written as integers, else as strings."""
    try:
        numbers = [int(text) for text in texts]
    except ValueError:
        return np.array(texts)
    return np.array(numbers if [str(number) for number in numbers] == texts else texts)
