"""The pictures of a report, as inline SVG: no script, colours from the page's style, every name escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from separatrix.engine.rows import Floats

WIDTH, HEIGHT = 360.0, 288.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 12.0, 42.0
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Chart:
    """A frame with two axes, in whose coordinates shapes are drawn."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float], x_label: str, y_label: str) -> None:
        self.x, self.y, self.labels = x, y, (x_label, y_label)
        self.shapes: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point is in the picture."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def line(self, points: Iterable[Sequence[float]], style: str) -> None:
        """Draw a line through points."""
        places = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        self.shapes.append(f'<polyline class="{style}" points="{places}"/>')

    def dot(self, x: float, y: float, style: str, radius: float = 4.5) -> None:
        """Draw a dot."""
        cx, cy = self.at(x, y)
        self.shapes.append(f'<circle class="{style}" cx="{cx:.1f}" cy="{cy:.1f}" r="{radius:.1f}"/>')

    def bar(self, x: tuple[float, float], y: tuple[float, float], style: str) -> None:
        """Draw a bar."""
        (left, low), (right, high) = self.at(x[0], y[0]), self.at(x[1], y[1])
        size = f'width="{max(0.5, right - left - 1):.1f}" height="{abs(low - high):.1f}"'
        self.shapes.append(f'<rect class="{style}" x="{left:.1f}" y="{min(low, high):.1f}" {size}/>')

    def svg(
        self,
        description: str,
        x_ticks: Sequence[float] = TICKS,
        y_ticks: Sequence[float] = TICKS,
        counts: bool = False,
    ) -> str:
        """Return the picture; its description is read to those who do not see it. Counts below the axis have no sign."""
        drawn = []
        for tick in x_ticks:
            x, y = self.at(tick, self.y[0])
            drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{y:.1f}"/>')
            drawn.append(f'<text x="{x:.1f}" y="{y + 15:.1f}" text-anchor="middle">{_number(tick)}</text>')
        for tick in y_ticks:
            x, y = self.at(self.x[0], tick)
            drawn.append(f'<line class="grid" x1="{x:.1f}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            drawn.append(
                f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{_number(abs(tick) if counts else tick)}</text>'
            )
        across, up = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        drawn.append(f'<text x="{across}" y="{HEIGHT - 6}" text-anchor="middle">{escape(self.labels[0])}</text>')
        turned = f'transform="rotate(-90 11 {up})"'
        drawn.append(f'<text x="11" y="{up}" text-anchor="middle" {turned}>{escape(self.labels[1])}</text>')
        inner = "".join([*drawn, *self.shapes])
        return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(description)}">{inner}</svg>'


def _number(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def ticks_between(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two ends, at most about so many."""
    step = 10.0 ** np.floor(np.log10((high - low) / most))
    for factor in (1.0, 2.0, 5.0, 10.0):
        if (high - low) / (factor * step) <= most:
            break
    first = np.ceil(low / (factor * step)) * factor * step
    return [round(float(tick), 12) + 0.0 for tick in np.arange(first, high + 1e-9 * factor * step, factor * step)]


def share_curve(
    points: Sequence[Sequence[float]], labels: tuple[str, str], here: tuple[float, float], chance: Floats
) -> str:
    """Return a curve of two shares between 0 and 1, with the present threshold as a dot, and what chance gives."""
    chart = Chart((0.0, 1.0), (0.0, 1.0), *labels)
    chart.line(chance.tolist(), "chance")
    chart.line(points, "curve")
    chart.dot(*here, "here")
    return chart.svg(f"{labels[1]} against {labels[0]}; at the threshold {here[1]:.3f} against {here[0]:.3f}")


def reliability(bins: Sequence[dict[str, float]], of: str) -> str:
    """Return observed against predicted shares; a dot's area is the number of its rows."""
    chart = Chart((0.0, 1.0), (0.0, 1.0), f"predicted probability of {of}", "observed share")
    chart.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    chart.line([(one["predicted"], one["observed"]) for one in bins], "curve")
    most = max(one["rows"] for one in bins)
    for one in bins:
        chart.dot(one["predicted"], one["observed"], "bin", 2.5 + 6.0 * float(np.sqrt(one["rows"] / most)))
    return chart.svg(f"observed share against predicted probability in {len(bins)} bins")


def score_histogram(groups: Sequence[Floats], x_label: str, threshold: float, bins: int = 40) -> str:
    """Return how often scores occur: of the first group below the axis, of the second above it."""
    both = np.concatenate(groups)
    low, high = (float(end) for end in np.quantile(both, [0.002, 0.998]))
    low, high = min(low, threshold), max(high, threshold)
    room = 0.05 * (high - low) or 1.0
    step = (high - low + 2.0 * room) / bins
    below, above = (int(np.ceil((end + room) / step)) for end in (threshold - low, high - threshold))
    edges = threshold + step * np.arange(-below, above + 1)  # so that no bar has rows of both sides
    low, high = float(edges[0]), float(edges[-1])
    counts = [np.histogram(np.clip(group, low, high), edges)[0] for group in groups]
    most = float(max(1, *(int(part.max()) for part in counts)))
    chart = Chart((low, high), (-most, most), x_label, "rows")
    for part, style, sign in zip(counts, ("first", "second"), (-1.0, 1.0), strict=True):
        for k, n in enumerate(part.tolist()):
            if n:
                chart.bar((float(edges[k]), float(edges[k + 1])), (0.0, sign * n), style)
    chart.line([(threshold, -most), (threshold, most)], "threshold")
    chart.line([(low, 0.0), (high, 0.0)], "axis")
    up = [tick for tick in ticks_between(0.0, most, 3) if tick == int(tick)]
    ticks = [*(-tick for tick in up[1:]), *up]
    return chart.svg("how many rows have which score", ticks_between(low, high), ticks, counts=True)


def interval_bar(low: float, value: float, high: float, baseline: float) -> str:
    """Return the accuracy with its interval, and the baseline, on a line from 0 to 1."""
    x = [round(300 * share, 1) for share in (low, value, high, baseline)]
    described = f"accuracy {value:.4f}, interval {low:.4f} to {high:.4f}, baseline {baseline:.4f}"
    return (
        f'<svg class="interval" viewBox="-6 0 312 34" role="img" aria-label="{described}">'
        '<line class="axis" x1="0" x2="300" y1="12" y2="12"/>'
        f'<line class="span" x1="{x[0]}" x2="{x[2]}" y1="12" y2="12"/><circle class="here" cx="{x[1]}" cy="12" r="5"/>'
        f'<line class="threshold" x1="{x[3]}" x2="{x[3]}" y1="3" y2="21"/>'
        '<text x="0" y="32">0</text><text x="300" y="32" text-anchor="end">1</text></svg>'
    )
