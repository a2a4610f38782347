"""The plane of the picture: the two features themselves, (x, 1) for a single feature, or a projection of more."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.engine.rows import Floats
from separatrix.web.lab.experiment import Experiment


def plane(experiment: Experiment, last: Floats | None, n_classes: int) -> dict[str, Any]:
    """Return the origin and the two directions of the plane, the names of its axes, and a note if it is a projection.

    `last` are the final weights, if the learner has weights for the features themselves.
    """
    d = experiment.X.shape[1]
    names = list(experiment.features)
    is_linear = experiment.phi is None and last is not None
    if d == 2:
        return _described("features", [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], names)
    if d == 1:
        if is_linear and experiment.model.fit_intercept:
            return _described(
                "augmented", [0.0], [[1.0], [0.0]], [names[0], "constant 1"], "x̃ = (x, 1): the bias is the second weight."
            )
        return _described("features", [0.0], [[1.0], [0.0]], [names[0], ""])
    centre = experiment.X.mean(axis=0)
    directions = _weights_span(last, d, n_classes) if is_linear and last is not None else np.empty((0, d))
    across = _completed(directions, experiment.X - centre)
    axes, basis = _axis_names(len(directions))
    note = f"{d} features, projected onto {basis}. A boundary is drawn where it cuts this plane."
    return _described("projection", centre.tolist(), across.tolist(), axes, note)


def _described(kind: str, origin: Any, across: Any, axes: list[str], note: str = "") -> dict[str, Any]:
    return {"kind": kind, "origin": origin, "across": across, "axes": axes, "note": note}


def _weights_span(last: Floats, d: int, n_classes: int) -> Floats:
    """Return up to two orthonormal directions that span most of the final weights (less their mean)."""
    W = last.reshape(n_classes if n_classes > 2 else 1, -1)[:, :d]
    W = W - W.mean(axis=0) if len(W) > 1 else W
    _, sizes, directions = np.linalg.svd(W, full_matrices=False)
    main: Floats = directions[: int(np.sum(sizes[:2] > 1e-9 * max(float(sizes[0]), 1e-300)))]
    if len(W) == 1 and len(main):
        main = W / np.linalg.norm(W)
    return main


def _completed(directions: Floats, centred: Floats) -> Floats:
    """Return two orthonormal directions: the given ones, then principal directions of the rest of the data."""
    left = centred - centred @ directions.T @ directions
    _, _, main = np.linalg.svd(left, full_matrices=False)
    more = main - main @ directions.T @ directions
    basis, _ = np.linalg.qr(np.vstack([directions, more[: 2 - len(directions)]]).T)
    pair = basis.T[:2]
    signs = np.sign(np.sum(pair[: len(directions)] * directions, axis=1))  # QR may flip a direction
    pair[: len(directions)] *= signs[:, None]
    return np.asarray(pair)


def _axis_names(n_directions: int) -> tuple[list[str], str]:
    """Return the names of the axes and a phrase for the note, given how many directions come from the weights."""
    if n_directions == 0:
        return ["first principal direction", "second principal direction"], "their two principal directions"
    if n_directions == 1:
        return ["along w", "principal direction orthogonal to w"], "the last w and the principal direction orthogonal to it"
    return ["first direction of the weights", "second direction"], "the two principal directions of the last weights"
