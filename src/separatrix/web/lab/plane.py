"""The plane of the picture: the two features themselves, (x, 1) of a single one, or a projection of many, said so."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.rows import Floats
from separatrix.web.lab.experiment import Experiment


def plane(setup: Experiment, last: Floats | None, n_classes: int) -> dict[str, Any]:
    """Return the origin and the two directions of the plane, the names of its axes, and a note where it hides something.

    `last` are the weights at the end, where there are any in the space of x.
    """
    d = setup.X.shape[1]
    names = list(setup.features)
    straight = setup.phi is None and last is not None
    if d == 2:
        return _along("features", [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], names)
    if d == 1:
        if straight and setup.model.fit_intercept:
            return _along("augmented", [0.0], [[1.0], [0.0]], [names[0], "1"], "x̃ = (x, 1): the bias is the second weight.")
        return _along("features", [0.0], [[1.0], [0.0]], [names[0], ""])
    centre = setup.X.mean(axis=0)
    directions = _weights_span(last, d, n_classes) if straight and last is not None else np.empty((0, d))
    found = _completed(directions, setup.X - centre)
    axes, how = _told(len(directions))
    note = f"{d} features, seen along {how}. A boundary is drawn where it cuts this plane."
    return _along("projection", centre.tolist(), found.tolist(), axes, note)


def _along(kind: str, origin: Any, across: Any, axes: list[str], note: str = "") -> dict[str, Any]:
    return {"kind": kind, "origin": origin, "across": across, "axes": axes, "note": note}


def _weights_span(last: Floats, d: int, n_classes: int) -> Floats:
    """Return up to two orthonormal directions in which the weights at the end tell the classes apart."""
    W = last.reshape(n_classes if n_classes > 2 else 1, -1)[:, :d]
    W = W - W.mean(axis=0) if len(W) > 1 else W
    _, sizes, directions = np.linalg.svd(W, full_matrices=False)
    kept: Floats = directions[: int(np.sum(sizes[:2] > 1e-9 * max(float(sizes[0]), 1e-300)))]
    if len(W) == 1 and len(kept):
        kept = W / np.linalg.norm(W)
    return kept


def _completed(directions: Floats, centred: Floats) -> Floats:
    """Return two directions: those given, then the main ones of what they leave."""
    left = centred - centred @ directions.T @ directions
    _, _, main = np.linalg.svd(left, full_matrices=False)
    more = main - main @ directions.T @ directions
    basis, _ = np.linalg.qr(np.vstack([directions, more[: 2 - len(directions)]]).T)
    whole = basis.T[:2]
    signs = np.sign(np.sum(whole[: len(directions)] * directions, axis=1))
    whole[: len(directions)] *= signs[:, None]
    return np.asarray(whole)


def _told(given: int) -> tuple[list[str], str]:
    if given == 0:
        return ["main direction", "second direction"], "their two main directions"
    if given == 1:
        return ["along w", "main direction across w"], "the last w and the main direction orthogonal to it"
    return ["first direction of the weights", "second direction"], "the two main directions of the classes' last weights"
