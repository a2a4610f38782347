"""The pictures of docs/benchmarks.md. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import EngFormatter, FuncFormatter

from benchmarks.harness import MET, Outcome, Row

STYLE = {
    "svg.hashsalt": "separatrix",
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
}
OURS = ("#b2182b", "#ef6548", "#fdae61")
PEERS = ("#08519c", "#4292c6", "#006d2c", "#74c476", "#54278f", "#8c6bb1", "#636363", "#a6761d")
MARKERS = "sDv^<>Px"


def saved(figure: Any, folder: Path, name: str, what: str) -> list[tuple[str, str]]:
    figure.savefig(folder / name, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    return [(name, what)]


def time_to_accuracy(curves: Sequence[Any], folder: Path) -> list[tuple[str, str]]:
    """Four panels: test accuracy against seconds of training, ours in warm colours."""
    sets = list(dict.fromkeys(curve.data for curve in curves))
    if not sets:
        return []
    ours = dict.fromkeys(curve.learner.name for curve in curves if curve.learner.ours)
    peers = dict.fromkeys(curve.learner.name for curve in curves if not curve.learner.ours)
    looks = {name: {"color": OURS[k % 3], "lw": 2.4, "marker": "o", "zorder": 3} for k, name in enumerate(ours)}
    for name, colour, marker in zip(peers, PEERS, MARKERS, strict=False):
        looks[name] = {"color": colour, "lw": 1.1, "marker": marker}
    with plt.rc_context(STYLE):
        rows = (len(sets) + 1) // 2
        figure, axes = plt.subplots(rows, 2, figsize=(10, 3.6 * rows + 1), squeeze=False)
        for axis, data in zip(axes.flat, sets, strict=False):
            mine = [curve for curve in curves if curve.data == data]
            for curve in mine:
                points = sorted(curve.points, key=lambda point: point.seconds)
                seconds, accuracy = [p.seconds for p in points], [p.accuracy for p in points]
                axis.plot(seconds, accuracy, ms=4, label=curve.learner.name, **looks[curve.learner.name])
            top, mark = max(point.accuracy for curve in mine for point in curve.points), mine[0].mark
            axis.axhline(mark, color="#333333", lw=0.8, ls=":")
            room = min(0.08, max(0.02, 2.5 * (1 - mark)))
            axis.set(title=data, xscale="log", ylim=(mark - room, top + room / 12))
            axis.minorticks_off()
        for axis in axes[-1]:
            axis.set_xlabel("seconds of training")
        for axis in axes[:, 0]:
            axis.set_ylabel("test accuracy")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
        figure.tight_layout(rect=(0, 0.09 if rows > 1 else 0.16, 1, 1))
        what = "Test accuracy against seconds of training on four data sets; the dotted line is the mark"
        return saved(figure, folder, "time-to-accuracy.svg", what)


def growth(lines: Sequence[Any], folder: Path) -> list[tuple[str, str]]:
    """A small panel for each cost, in logarithms: what was measured, the fitted line and the expected slope."""
    if not lines:
        return []
    with plt.rc_context(STYLE | {"font.size": 8, "axes.titlesize": 8.5}):
        rows = (len(lines) + 3) // 4
        figure, axes = plt.subplots(rows, 4, figsize=(11, 2.3 * rows), squeeze=False)
        for axis, line in zip(axes.flat, lines, strict=False):
            sizes, costs = np.array(line.sizes), np.array(line.costs)
            half = len(sizes) // 2
            middle = np.exp(np.log(sizes[half:]).mean()), np.exp(np.log(costs[half:]).mean())
            axis.plot(sizes, costs, "o", color=OURS[0], ms=4)
            for slope, style in ((line.expected, {"color": "#888888", "ls": "--"}), (line.exponent, {"color": OURS[0]})):
                shown = sizes if style.get("ls") else sizes[half:]
                axis.plot(shown, middle[1] * (shown / middle[0]) ** slope, lw=1.1, **style)
            axis.set(
                xscale="log", yscale="log", title=f"{line.cost} ~ {line.against}^{line.exponent:.2f} ({line.expected:g})"
            )
            axis.set_xlabel(line.of, fontsize=7, color="#555555")
            axis.minorticks_off()
            axis.set_xticks(sizes[[0, -1]])
            axis.set_yticks(costs[[0, -1]] if costs.max() > 1.5 * costs.min() else costs[:1])
            axis.xaxis.set_major_formatter(EngFormatter(places=0, sep=""))
            axis.yaxis.set_major_formatter(EngFormatter("s" if line.cost == "time" else "B", places=0))
            if line.expected == 0:
                axis.set_ylim(costs.min() / 10, costs.max() * 10)
        for axis in axes.flat[len(lines) :]:
            axis.set_visible(False)
        figure.tight_layout()
        return saved(
            figure, folder, "growth.svg", "How cost grows: fitted exponents, the expected ones in brackets and dashed"
        )


def opening(jobs: Sequence[tuple[str, Row]], folder: Path) -> list[tuple[str, str]]:
    """A bar for each job that opens the page: how many times faster we are than the peer beside it."""
    jobs = [(job, row) for job, row in jobs if row.ratio]
    if not jobs:
        return []
    with plt.rc_context(STYLE | {"font.size": 10}):
        figure, axis = plt.subplots(figsize=(9, 0.42 * len(jobs) + 1))
        for k, (_, row) in enumerate(jobs):
            good = row.ratio >= 1 and (row.quality is None or row.quality.holds)
            axis.barh(k, row.ratio - 1, left=1, color="#4292c6" if good else "#fc9272", height=0.6, zorder=2)
            end = {"xytext": (4, 0), "textcoords": "offset points", "va": "center", "weight": "bold"}
            axis.annotate(f"{row.ratio:.1f} ×", (max(row.ratio, 1), k), **end)
        axis.axvline(1, color="black", lw=1, zorder=3)
        axis.set_yticks(range(len(jobs)), [f"{job}\nbeside {row.peer}" for job, row in jobs], fontsize=8)
        axis.set(
            xscale="log", ylim=(len(jobs) - 0.4, -0.6), xlabel="times as fast as the peer; red: slower, or a worse result"
        )
        axis.set_xlim(min(0.9, *(0.9 * row.ratio for _, row in jobs)), 1.5 * max(row.ratio for _, row in jobs))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.grid(axis="y", visible=False)
        figure.tight_layout()
        return saved(figure, folder, "headlines.svg", "Ten jobs, and how many times faster they are than a well-known peer")


def ratios(outcomes: Sequence[Outcome], folder: Path) -> list[tuple[str, str]]:
    """Every ratio that has a floor: the best over the best, the range of the rounds, and the floor as a tick.

    Red where the floor or the quality is not reached.
    """
    rows = [
        (outcome.suite, line)
        for outcome in outcomes
        for line in outcome.lines
        if isinstance(line, Row) and line.ratio is not None and line.floor is not None
    ]
    if not rows:
        return []
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(10, 0.27 * len(rows) + 1.1))
        for k, (_, row) in enumerate(rows):
            axis.barh(k, row.ratio, color="#4292c6" if row.verdict == MET else "#fc9272", height=0.62, zorder=2)
            axis.plot([min(row.ratios), max(row.ratios)], [k, k], color="#08306b", lw=1.2, zorder=3)
            axis.plot([row.floor] * 2, [k - 0.4, k + 0.4], color="black", lw=1.6, zorder=4)
            axis.annotate(f" {row.ratio:.3g}", (max(*row.ratios, row.ratio), k), va="center", fontsize=7.5)
        axis.set_yticks(range(len(rows)), [f"{row.what} · {row.peer}" for _, row in rows], fontsize=7.5)
        axis.set(
            xscale="log",
            xlabel="peer's time over ours; the black tick is the floor, red is a miss",
            ylim=(len(rows) - 0.4, -0.6),
        )
        axis.grid(axis="y", visible=False)
        figure.tight_layout()
        return saved(figure, folder, "ratios.svg", "Ratios with their floors")
