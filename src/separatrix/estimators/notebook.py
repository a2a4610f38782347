"""How fits, certificates and traces look in a notebook: a small table, and a picture of two features (L2 3).

Plain HTML and SVG: no script, nothing fetched, every name and label escaped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.engine.protocols import Classifier

Array = NDArray[Any]

COLOURS = ("#1F5FA8", "#EBA52A", "#CB3B50", "#2FA58F", "#F6EA8F", "#35155E", "#A3D7F4", "#66430F")
"""Distinct in every common kind of colour vision, and in lightness, so that they differ in a grey print too."""
SHAPES = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
    "M0-4L3.8 3H-3.8z",
    "M-3-3h6v6h-6z",
    "M0-4.2L4.2 0L0 4.2L-4.2 0z",
)
MOST_POINTS = 500
NAMED = 8
_CELLS = (96, 72)
_CELL = 2.5
_ROOM = 0.08


def number(value: float) -> str:
    """Return a number with six significant digits and a typographic minus sign."""
    return f"{value:.6g}".replace("-", "−")


def facts_table(facts: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values."""
    style = 'style="text-align:left;vertical-align:top;padding:1px 12px 1px 0"'
    lines = (
        f'<tr><th scope="row" {style}>{escape(name)}</th><td {style}>{escape(value)}</td></tr>' for name, value in facts
    )
    return f'<table style="border-collapse:collapse">{"".join(lines)}</table>'


def cells_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a head."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line('th', heads)}{''.join(line('td', row) for row in rows)}</table>"


def beside(*parts: str) -> str:
    """Return parts next to each other, those that are not empty."""
    columns = "".join(f"<div>{part}</div>" for part in parts if part)
    return f'<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start;margin:8px 0">{columns}</div>'


def picture(model: Classifier, points: Array, codes: Array, caption: str) -> str:
    """Return an SVG of points by class, on the areas that a classifier gives each class; "" where that cannot be drawn."""
    classes = model.classes_.tolist()
    if not 0 < len(points) <= MOST_POINTS or points.shape[1] != 2 or len(classes) > len(COLOURS):
        return ""
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, float((high - low).max()) or 1.0)
    low, span = low - _ROOM * span, (1.0 + 2.0 * _ROOM) * span
    across, down = (np.arange(n) + 0.5 for n in _CELLS)
    u, v = low[0] + across / _CELLS[0] * span[0], low[1] + span[1] - down / _CELLS[1] * span[1]
    grid = np.stack(np.meshgrid(u, v), axis=-1).reshape(-1, 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decided = model.predict(grid).reshape(_CELLS[1], _CELLS[0])
    except ValueError:
        return ""  # a parameter was changed since the fit: a display does not raise
    drawn = [_area(decided == label, COLOURS[k]) for k, label in enumerate(classes)]
    places = (points - low) / span * [1.0, -1.0] + [0.0, 1.0]
    for (x, y), k in zip(places * np.array(_CELLS) * _CELL, codes.tolist(), strict=True):
        drawn.append(f'<path d="{_shape(k)}" transform="translate({x:.1f} {y:.1f})" fill="{COLOURS[k]}"/>')
    size = f"{_CELLS[0] * _CELL:g} {_CELLS[1] * _CELL:g}"
    box = f'viewBox="0 0 {size}" width="240" height="180" role="img" aria-label="{escape(caption)}"'
    svg = f'<svg {box} stroke="currentColor" stroke-width="0.5">{"".join(drawn)}</svg>'
    names = " ".join(
        f'<svg viewBox="-5 -5 10 10" width="10" height="10"><path d="{_shape(k)}" fill="{COLOURS[k]}"/></svg> '
        f"{escape(str(name))}"
        for k, name in enumerate(classes)
    )
    return f"{svg}<div><small>{escape(caption)}<br>{names}</small></div>"


def _shape(k: int) -> str:
    return SHAPES[k % len(SHAPES)]


def _area(inside: Array, colour: str) -> str:
    """Return the cells of an area, row by row, as one path."""
    strokes = []
    for row, cells in enumerate(inside):
        edges = np.flatnonzero(np.diff(cells.astype(np.int8), prepend=0, append=0))
        for begin, end in edges.reshape(-1, 2).tolist():
            width = (end - begin) * _CELL
            strokes.append(f"M{begin * _CELL:g} {row * _CELL:g}h{width:g}v{_CELL:g}h{-width:g}z")
    return f'<path d="{"".join(strokes)}" fill="{colour}" fill-opacity="0.2" stroke="none"/>' if strokes else ""


def some(values: Sequence[Any]) -> str:
    """Return the first few of some values, and how many there are."""
    return ", ".join(str(value) for value in values[:NAMED]) + (f", … {len(values):,} in all" if len(values) > NAMED else "")


class ShowsItsFit:
    """An estimator that shows in a notebook, below scikit-learn's diagram, a table of its fit and a picture if it can."""

    classes_: Array

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """Return what makes the HTML; a notebook finds no such attribute where scikit-learn is set to show text."""
        from sklearn import get_config  # the command line shows tables without scikit-learn

        if get_config()["display"] != "diagram":
            raise AttributeError("scikit-learn is set to show text")
        return self._as_html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        html = getattr(self, "_repr_html_", None)
        return {"text/plain": repr(self)} | ({"text/html": html()} if html else {})

    def _as_html(self) -> str:
        from sklearn.utils import estimator_html_repr

        diagram: str = estimator_html_repr(self)
        return diagram + beside(facts_table(self._facts()), self._picture()) if hasattr(self, "classes_") else diagram

    def _facts(self) -> list[tuple[str, str]]:
        """Return what there is to say of the fit."""
        return [("classes", some(self.classes_.tolist())), *self._largest_weights()]

    def _largest_weights(self) -> list[tuple[str, str]]:
        """Return the weights of two classes by name, the largest first."""
        coef = getattr(self, "coef_", None)
        if coef is None or len(coef) != 1:
            return []
        names = getattr(self, "feature_names_in_", None)
        order = np.argsort(-np.abs(coef[0]), kind="stable")
        weights = [f"{f'x{j}' if names is None else names[j]} {number(coef[0, j])}" for j in order[:NAMED].tolist()]
        more = f", … {len(order):,} in all" if len(order) > NAMED else ""
        bias = number(float(getattr(self, "intercept_", [0.0])[0]))
        return [("largest weights", ", ".join(weights) + more), ("bias", bias)]

    def _picture(self) -> str:
        return ""
