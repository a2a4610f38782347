"""The histogram of the signed margins of the examples (L1 9, L4 6)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator

from separatrix.engine.labels import encode, encode_as, labels_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats, as_rows
from separatrix.plots.drawing import colour, hatch, ink, legend, open_canvas, short_number
from separatrix.plots.fitted_classifier import codes_of, leads_of, linear_weights, scores_of

DISTANCE = "signed distance to the boundary"
SCORE = "score of the true class"
LEAD = "lead of the true class over its best rival"


class MarginDisplay:
    """A histogram of margins: how far the examples are on the right or, with a negative margin, on the wrong side.

    For a linear classifier of two classes the margin is the distance to the boundary, y(⟨w,x⟩ + b)/‖w‖. Without w (votes,
    kernels) it is the score itself, and for K classes the lead of the true class over the highest of the others.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    margins : the margin of each example; kind : what is measured, the label of the axis.
    wrong_, right_ : the bars below and above 0; least_ : the line at the smallest margin, or None if examples are wrong.

    Examples
    --------
    >>> from separatrix.plots import MarginDisplay
    >>> display = MarginDisplay.from_predictions([1, -1, -1, 1], [4.0, -2.0, -3.0, -1.0])
    >>> display.margins
    array([ 4.,  2.,  3., -1.])
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, margins: Any, kind: str = SCORE) -> None:
        self.margins: Floats = np.asarray(margins, dtype=np.float64).reshape(-1)
        self.kind = kind
        if not self.margins.size or not np.isfinite(self.margins).all():
            raise ValueError("the margins must be finite numbers, at least one")

    @classmethod
    def from_estimator(
        cls, estimator: Classifier, X: Any, y: Any, *, bins: int | None = None, ax: Any = None, show_legend: bool = True
    ) -> Self:
        """Draw the margins of examples under a fitted classifier.

        Parameters
        ----------
        estimator : a fitted classifier, or a pipeline, search or `Model` that ends in one
        X, y : examples and labels
        bins : the number of bins; None chooses it by the number of examples
        ax, show_legend : as in `BoundaryDisplay`
        """
        classes, codes = codes_of(estimator, X, y, cls.__name__)
        if not hasattr(estimator, "decision_function"):
            raise TypeError(f"{type(estimator).__name__} has no decision_function, so it has no margins")
        scores = scores_of(estimator, X)
        margins, kind = leads_of(scores)[np.arange(len(codes)), codes], SCORE if len(classes) == 2 else LEAD
        if len(classes) == 2 and hasattr(estimator, "coef_"):
            weights = linear_weights(estimator, as_rows(X).source, scores)
            if weights is not None and np.any(weights.coef):
                margins, kind = margins / float(np.linalg.norm(weights.coef)), DISTANCE
        return cls(margins=margins, kind=kind).plot(ax, bins=bins, show_legend=show_legend)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores: Any,
        *,
        classes: Any = None,
        bins: int | None = None,
        ax: Any = None,
        show_legend: bool = True,
    ) -> Self:
        """Draw the margins of given scores: one per row for two classes, else one per class in the order of `classes`."""
        table = np.asarray(scores, dtype=np.float64)
        labels = labels_of(table, y_true, cls.__name__)
        class_labels: Array = encode(labels)[0] if classes is None else np.asarray(classes)
        table = table.reshape(len(table), -1)
        if table.shape[1] != (1 if len(class_labels) <= 2 else len(class_labels)):
            raise ValueError(f"there are {len(class_labels)} classes, but the scores have {table.shape[1]} columns")
        if len(class_labels) < 2:
            raise ValueError("y_true has only 1 class: pass both with classes=[…]")
        codes = encode_as(class_labels, labels)
        margins = leads_of(table)[np.arange(len(codes)), codes]
        kind = SCORE if len(class_labels) == 2 else LEAD
        return cls(margins=margins, kind=kind).plot(ax, bins=bins, show_legend=show_legend)

    def plot(self, ax: Any = None, *, bins: int | None = None, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            ax = canvas.ax
            self.ax_, self.figure_ = ax, ax.figure
            wrong = self.margins <= 0.0
            edges = _edges(self.margins, bins)
            style = {"edgecolor": ax.get_facecolor(), "lw": 0.4}
            *_, self.wrong_ = ax.hist(self.margins[wrong], edges, color=colour(2), hatch=hatch(1), **style)
            *_, self.right_ = ax.hist(self.margins[~wrong], edges, color=colour(0), **style)
            for bars, name, among in ((self.wrong_, "wrong", wrong), (self.right_, "right", ~wrong)):
                bars.patches[0].set_label(f"{name}: {int(among.sum()):,}")
            ax.axvline(0.0, color=ink(), lw=1.4)
            handles, self.least_ = [self.right_.patches[0]], None
            if wrong.any():
                handles.insert(0, self.wrong_.patches[0])
            else:
                least = float(self.margins.min())
                self.least_ = ax.axvline(least, color=ink(), lw=1.2, ls="--", label=f"smallest: {short_number(least)}")
                handles.append(self.least_)
            ax.set(xlabel=self.kind, ylabel="examples")
            ax.yaxis.set_major_locator(MaxNLocator(integer=True))
            if show_legend:
                self.legend_ = legend(canvas, handles)
        return self


def _edges(margins: Floats, bins: int | None) -> Floats:
    """Return the edges of the bins; 0 is one of them, so that no bin holds both right and wrong examples."""
    low, high = min(float(margins.min()), 0.0), max(float(margins.max()), 0.0)
    if low == high:
        return np.array([-1.0, 0.0, 1.0])
    width = (high - low) / (bins or int(np.clip(2.0 * np.sqrt(len(margins)), 8, 60)))
    return width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
