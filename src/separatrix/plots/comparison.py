"""The models of a comparison side by side, coloured by view: generative, discriminative, … (L1 1, L2 9 and 11)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from matplotlib.lines import Line2D

from separatrix.analysis.comparison import VIEWS, Comparison, Row
from separatrix.plots.drawing import colour, ink, legend, literal, marker, open_canvas


class ComparisonDisplay:
    """The cross-validated accuracy of each model with its spread, coloured by view, and that of guessing the largest class.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    rows : the models, the most accurate first; baseline : the accuracy of guessing.
    points_ : the accuracies, one for each model that ran; baseline_ : the line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> from separatrix.plots import ComparisonDisplay
    >>> comparison = compare(*load_iris(return_X_y=True), models=["LDA", "decision tree"], curves=False)
    >>> display = ComparisonDisplay.from_comparison(comparison)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['LDA', 'decision tree']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, rows: list[Row], baseline: float) -> None:
        if not rows:
            raise ValueError("the comparison has no models")
        self.rows, self.baseline = rows, baseline

    @classmethod
    def from_comparison(cls, comparison: Comparison, *, ax: Any = None, show_legend: bool = True) -> Self:
        """Draw the result of `compare`.

        Parameters
        ----------
        comparison : the result of `compare`
        ax, show_legend : as in `BoundaryDisplay`
        """
        if not isinstance(comparison, Comparison):
            raise TypeError(f"from_comparison takes the result of compare(X, y), not {type(comparison).__name__}")
        return cls(rows=comparison.rows, baseline=comparison.baseline).plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            ax = canvas.ax
            self.ax_, self.figure_ = ax, ax.figure
            if canvas.own:
                self.figure_.set_size_inches(8.5, max(2.0, 0.28 * len(self.rows) + 1.0))
            present = [row.view for row in self.rows]
            views = [view for view in dict.fromkeys((*VIEWS, *present)) if view in present]
            self.points_ = []
            for place, row in enumerate(self.rows):
                k = views.index(row.view)
                if row.accuracy is None:
                    ax.text(
                        0.02, place, row.outcome, transform=ax.get_yaxis_transform(), va="center", style="italic", alpha=0.7
                    )
                    continue
                self.points_.append(
                    ax.errorbar(
                        *(row.accuracy, place),
                        xerr=row.spread or 0.0,
                        fmt=marker(k),
                        color=colour(k),
                        mec=ink(),
                        mew=0.6,
                        ms=7,
                        ecolor=ink(),
                        elinewidth=1.0,
                        capsize=2.5,
                    )
                )
            low, high = ax.dataLim.intervalx if self.points_ else (self.baseline, self.baseline)
            is_far = self.baseline < low - 2.0 * (high - low)
            label = f"guessing: {self.baseline:.3f}" + (" (left of the axes)" if is_far else "")
            self.baseline_ = ax.axvline(self.baseline, color=ink(), ls=":", lw=1.2, label=label)
            if is_far:
                ax.set_xlim(low - 0.1 * (high - low), high + 0.1 * (high - low))
            ax.set_yticks(np.arange(len(self.rows)), [literal(row.model) for row in self.rows])
            ax.set_ylim(len(self.rows) - 0.4, -0.6)
            ax.grid(axis="x", alpha=0.25, lw=0.6)
            ax.set_xlabel("accuracy ± deviation of the folds")
            if show_legend:
                marks = [
                    Line2D([], [], ls="", marker=marker(k), color=colour(k), mec=ink(), mew=0.6, ms=7, label=literal(view))
                    for k, view in enumerate(views)
                ]
                self.legend_ = legend(canvas, [*marks, self.baseline_])
        return self
