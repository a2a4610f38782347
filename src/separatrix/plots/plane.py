"""The plane in which examples are drawn: two features, or w and the main direction orthogonal to it (L2 3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from separatrix.engine.rows import Floats
from separatrix.engine.weights import Weights
from separatrix.plots.drawing import literal

SAMPLE = 1_000
"""The main direction is computed from at most this many examples, evenly spaced."""
PADDING = 0.08
"""On each side, as a fraction of the width."""
SQUARE = 4.0
"""If one side of the window is at most this many times the other, both have the same scale: right angles look right."""


class Plane(NamedTuple):
    """The points origin + u·axes[0] + v·axes[1]; `exact` if an example has the same scores as its projection."""

    origin: Floats
    axes: Floats
    labels: tuple[str, str]
    exact: bool

    def coordinates(self, X: Any) -> Floats:
        """Return (u, v) of the projection of each row."""
        return np.asarray(X @ self.axes.T)

    def points(self, uv: Floats) -> Floats:
        """Return the points of the plane at (u, v) as examples."""
        return np.asarray(self.origin + uv @ self.axes)

    def seen(self, weights: Weights) -> Weights:
        """Return the weights in the coordinates of the plane: for (u, v) instead of x."""
        return Weights(weights.coef @ self.axes.T, weights.intercept + weights.coef @ self.origin)


class Window(NamedTuple):
    """The part of the plane that is shown, and whether both axes have the same scale."""

    low: Floats
    high: Floats
    square: bool

    @property
    def span(self) -> Floats:
        """Width and height."""
        return np.asarray(self.high - self.low)

    def foot(self, weights: Weights) -> Floats:
        """Return the point with ⟨w,x⟩ + b = 0 that is nearest to the middle."""
        w, b = weights.coef[0], float(weights.intercept[0])
        middle = (self.low + self.high) / 2
        return np.asarray(middle - (float(middle @ w) + b) / float(w @ w) * w)

    def line(self, weights: Weights) -> Floats | None:
        """Return two points of the line ⟨w,x⟩ + b = 0, far outside the window; None if w is 0 in the plane."""
        w = weights.coef[0]
        length = float(np.linalg.norm(w))
        if length == 0.0:
            return None
        foot = self.foot(weights)
        tangent = 2.0 * float(np.linalg.norm(self.span)) * np.array([-w[1], w[0]]) / length
        return np.stack([foot - tangent, foot + tangent])

    def grid(self, resolution: int) -> tuple[Floats, Floats]:
        """Return the coordinates of a grid with `resolution` points per side.

        They have few binary digits, so that the scores of a learner of whole numbers are exact, and a voter with a score of
        0 really abstains. They are shifted a little, off the lines on which whole numbers give a score of 0.
        """
        digit = 2.0 ** np.floor(np.log2(self.span.min()) - 20)
        steps = np.linspace(0.0, 1.0, resolution)
        u, v = (np.round((low + steps * side) / digit) for low, side in zip(self.low, self.span, strict=True))
        return (u + 3.0) * digit, (v + 7.0) * digit

    def show(self, ax: Any) -> None:
        """Set the limits of axes to this window."""
        ax.set(xlim=(self.low[0], self.high[0]), ylim=(self.low[1], self.high[1]))
        if self.square:
            ax.set_aspect("equal", adjustable="box")


def label_axes(ax: Any, plane: Plane) -> None:
    """Label the axes; a single feature has no second axis."""
    ax.set(xlabel=plane.labels[0], ylabel=plane.labels[1])
    if not np.any(plane.axes[1]):
        ax.set_yticks([])


def plane_of(X: Any, weights: Weights | None, names: list[str]) -> Plane:
    """Return the plane of one or two features; for more, the plane of w and the main direction orthogonal to it.

    For K weight vectors it is the plane of the two main directions of their differences, which is exact for three linear
    classes. Without weights it is the plane of the two main directions of the examples.
    """
    d = X.shape[1]
    if d == 1:
        return Plane(np.zeros(1), np.array([[1.0], [0.0]]), (literal(names[0]), ""), True)
    if d == 2:
        return Plane(np.zeros(2), np.eye(2), (literal(names[0]), literal(names[1])), True)
    axes, labels, exact = _axes(X, weights)
    no_single_w = weights is None or len(weights.coef) > 1
    while len(axes) < 2:
        direction, share = _main_direction(X, axes)
        beside = "orthogonal to " + ("it" if no_single_w else "$w$") if labels else "of the examples"
        labels.append(f"main direction {beside}\n({share:.0%} of the variance{' left' if labels else ''})")
        axes = np.vstack([axes, direction])
    if not exact:
        labels[0] += "\nregions: those of the plane through the mean"
    mean = np.asarray(X.mean(axis=0)).reshape(-1)
    return Plane(mean - (mean @ axes.T) @ axes, axes, (labels[0], labels[1]), exact)


def _axes(X: Any, weights: Weights | None) -> tuple[Floats, list[str], bool]:
    """Return the axes from the weights, their labels, and whether the scores depend on these coordinates only."""
    no_axes = np.empty((0, X.shape[1]))
    if weights is None:
        return no_axes, [], False
    coef = weights.coef if len(weights.coef) == 1 else weights.coef - weights.coef.mean(axis=0)
    _, lengths, directions = np.linalg.svd(coef, full_matrices=False)
    rank = int(np.sum(lengths > 1e-12 * max(lengths[0], np.finfo(float).tiny)))
    if not lengths[0] > 0.0:
        return no_axes, [], False
    if len(weights.coef) == 1:
        return coef / lengths[0], [rf"projection of {X.shape[1]:,} features on $w$, $\langle w, x\rangle/\|w\|$"], True
    labels = [f"{place} main direction of the {len(coef)} weight vectors" for place in ("1st", "2nd")][:rank]
    return directions[: min(rank, 2)], labels, rank <= 2


def _main_direction(X: Any, others: Floats) -> tuple[Floats, float]:
    """Return the direction orthogonal to `others` in which the examples vary most, and its share of the variance there."""
    sample = X[:: max(1, -(-X.shape[0] // SAMPLE))]
    if not sp.issparse(sample):
        sample = sample - sample.mean(axis=0)
    beside = np.asarray(sample @ others.T)
    gram = np.asarray((sample @ sample.T).todense() if sp.issparse(sample) else sample @ sample.T)
    centred = np.eye(len(gram)) - 1.0 / len(gram)
    beside, gram = centred @ beside, centred @ gram @ centred
    gram -= beside @ beside.T
    values, vectors = np.linalg.eigh(gram)
    total, most = float(np.trace(gram)), float(values[-1])
    direction = np.asarray(sample.T @ (centred @ vectors[:, -1])).reshape(-1)
    direction -= (direction @ others.T) @ others
    if most <= 1e-12 * max(float(np.abs(beside).max(initial=0.0)) ** 2, 1.0) or not np.any(direction):
        direction, most, total = np.zeros(X.shape[1]), 0.0, 1.0  # no variance is left: any orthogonal direction will do
        direction[int(np.argmin(np.abs(others).sum(axis=0)))] = 1.0
        direction -= (direction @ others.T) @ others
    direction *= np.sign(direction[int(np.argmax(np.abs(direction)))])
    return direction / np.linalg.norm(direction), most / total


def window_of(uv: Floats) -> Window:
    """Return a window around some points, with padding."""
    low, high = uv.min(axis=0), uv.max(axis=0)
    span = high - low
    span = np.where(span > 0.0, span, float(span.max()) or float(np.abs(uv).max()) or 1.0)
    centre = (low + high) / 2
    square = bool(span.max() <= SQUARE * span.min())
    if square:
        span = np.maximum(span, 0.75 * span.max())
    half = span * (0.5 + PADDING)
    return Window(centre - half, centre + half, square)
