"""What all plots share: colours and shapes of classes, axes, legends, and text that matplotlib takes literally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from separatrix.engine.labels import Codes
from separatrix.engine.rows import Floats
from separatrix.estimators.notebook import COLOURS

MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", "*", ">", "p")
"""Eleven shapes and eight colours: the first 88 classes all look different."""
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "++", "---")
LONGEST = 24
MANY = 2_000
SMALL = 3.0
"""Axes narrower than this many inches get a smaller legend."""


class Canvas(NamedTuple):
    """Axes to draw on, and whether their figure was created for this plot."""

    ax: Any
    own: bool


@contextmanager
def open_canvas(ax: Any) -> Iterator[Canvas]:
    """Yield the caller's axes, or those of a new figure, which is closed if drawing fails."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
            raise TypeError(f"ax takes one matplotlib Axes, not {type(ax).__name__}")
        yield Canvas(ax, False)
        return
    from matplotlib import pyplot

    figure, new_ax = pyplot.subplots(layout="compressed")
    try:
        yield Canvas(new_ax, True)
        figure.draw_without_rendering()  # computes the layout, which depends on the ticks
    except BaseException:
        pyplot.close(figure)
        raise


def ink() -> Any:
    """Return the text colour of the current style: dark on light, light on dark."""
    return mpl.rcParams["text.color"]


def _mixed(colour_1: Any, colour_2: Any) -> Any:
    """Return the colour halfway between two: an outline that shows light points on white and dark ones on black."""
    from matplotlib.colors import to_rgb

    return tuple(np.mean([to_rgb(colour_1), to_rgb(colour_2)], axis=0))


def colour(k: int) -> str:
    """Return the colour of class k."""
    return COLOURS[k % len(COLOURS)]


def marker(k: int) -> str:
    """Return the shape of class k."""
    return MARKERS[k % len(MARKERS)]


def hatch(k: int) -> str:
    """Return the pattern of class k."""
    return HATCHES[k % len(HATCHES)]


def literal(name: object, longest: int = LONGEST) -> str:
    """Return a name as text to draw: on one line, shortened, with dollar signs escaped."""
    text = " ".join(str(name).split())
    if len(text) > longest:
        text = text[: longest - 1].rstrip() + "…"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def short_number(value: float) -> str:
    """Return a number with three significant digits, or all digits of a whole number below 10,000."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e4 else f"{value:.3g}"


def scatter_classes(ax: Any, points: Floats, codes: Codes, names: Sequence[str], alpha: float = 0.9) -> list[Any]:
    """Draw points with a colour and a shape for each class; the more points, the smaller they are."""
    size = float(np.clip(36.0 * np.sqrt(150.0 / max(1, len(points))), 5.0, 40.0))
    collections = []
    for k, name in enumerate(names):
        here = points[codes == k]
        collections.append(
            ax.scatter(
                *here.T,
                s=size,
                c=colour(k),
                marker=marker(k),
                edgecolors=[_mixed(colour(k), ink())],
                linewidths=0.6 if len(points) <= MANY else 0.2,
                alpha=alpha if len(points) <= MANY else 0.6 * alpha,
                rasterized=len(points) > MANY,
                label=name,
                zorder=3,
            )
        )
    return collections


def legend(canvas: Canvas, handles: Sequence[Any], loc: str = "best") -> Any:
    """Draw the legend: beside the axes in a figure of our own, inside the axes of the caller."""
    labels = [handle.get_label() for handle in handles]
    if canvas.own:
        drawn = canvas.ax.figure.legend(handles, labels, frameon=False, loc="outside right upper")
    else:
        inches = canvas.ax.get_window_extent().width / canvas.ax.figure.dpi
        size, gap = ("small", 0.4) if inches >= SMALL else ("x-small", 0.2)
        drawn = canvas.ax.legend(handles, labels, framealpha=0.7, loc=loc, fontsize=size, labelspacing=gap, borderpad=gap)
    for handle in drawn.legend_handles:
        if hasattr(handle, "set_sizes"):  # the same size however small the points are
            handle.set(sizes=[36.0], alpha=1.0)
    return drawn


def write_beside(ax: Any, text: str, point: Floats) -> Any:
    """Write a short text beside a point, with an outline that keeps it readable."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=ax.get_facecolor())]
    place = {"xytext": (5, 4), "textcoords": "offset points", "zorder": 6, "annotation_clip": True}
    return ax.annotate(text, point, path_effects=halo, **place)
