"""The projections of Fisher's discriminant by class: histograms for one direction, points for two (L2 11, L5 1)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator

from separatrix.engine.labels import Codes, encode, labels_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats
from separatrix.estimators.fisher import FisherDiscriminant
from separatrix.plots.drawing import (
    MANY,
    colour,
    hatch,
    ink,
    legend,
    literal,
    marker,
    open_canvas,
    scatter_classes,
    short_number,
)
from separatrix.plots.fitted_classifier import classifier_of, codes_of


class ProjectionDisplay:
    """The projections ⟨w,x⟩/‖w‖ of each class: histograms along one direction, points along the best two.

    Two classes have one direction, drawn with the mean of each class and the threshold. For more classes the two directions
    with the largest Fisher quotients are drawn, with the mean of each class as a large marker.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    projections : shape (rows, directions); codes, classes : the class of each row; threshold : for one direction, or None.
    bars_ or points_ : the histograms or the points, one per class; means_ : the artists of the means; threshold_ : the line.

    Examples
    --------
    >>> from separatrix import FisherDiscriminant
    >>> from separatrix.plots import ProjectionDisplay
    >>> X, y = [[0, 0], [2, 0], [1, 3], [4, 2], [6, 2], [5, 5]], [0, 0, 0, 1, 1, 1]
    >>> display = ProjectionDisplay.from_estimator(FisherDiscriminant().fit(X, y), X, y)
    >>> (display.projections[:, 0] * 37**0.5).round(9), round(display.threshold * 37**0.5, 9)
    (array([ 0., 12.,  9., 26., 38., 35.]), 20.0)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, projections: Any, codes: Codes, classes: Array, threshold: float | None = None) -> None:
        self.projections: Floats = np.asarray(projections, dtype=np.float64)
        self.projections = self.projections.reshape(len(self.projections), -1)
        self.codes, self.classes, self.threshold = codes, classes, threshold

    @classmethod
    def from_estimator(cls, estimator: Classifier, X: Any, y: Any, *, ax: Any = None, show_legend: bool = True) -> Self:
        """Draw the projections of a fitted Fisher discriminant.

        Parameters
        ----------
        estimator : a fitted `FisherDiscriminant`, or a pipeline or search that ends in one
        X, y : examples and labels
        ax, show_legend : as in `BoundaryDisplay`
        """
        fisher = classifier_of(estimator)
        if not isinstance(fisher, FisherDiscriminant):
            raise TypeError(f"projections need a FisherDiscriminant, not a {type(fisher).__name__}")
        classes, codes = codes_of(estimator, X, y, cls.__name__)
        threshold = None
        if len(classes) == 2 and np.any(fisher.coef_):
            threshold = -float(fisher.intercept_[0]) / float(np.linalg.norm(fisher.coef_))
        transformer: Any = estimator  # the discriminant, or the pipeline or search that ends in it
        display = cls(projections=transformer.transform(X), codes=codes, classes=classes, threshold=threshold)
        return display.plot(ax, show_legend=show_legend)

    @classmethod
    def from_predictions(cls, y_true: Any, projections: Any, *, ax: Any = None, show_legend: bool = True) -> Self:
        """Draw given projections, of shape (rows, directions), by class."""
        table = np.asarray(projections, dtype=np.float64)
        classes, codes = encode(labels_of(table, y_true, cls.__name__))
        return cls(projections=table, codes=codes, classes=classes).plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            self.ax_, self.figure_ = canvas.ax, canvas.ax.figure
            names = [literal(name) for name in self.classes.tolist()]
            handles = self._histograms(names) if self.projections.shape[1] == 1 else self._points(names)
            if show_legend:
                self.legend_ = legend(canvas, handles)
        return self

    def _means(self) -> Floats:
        return np.array([self.projections[self.codes == k].mean(axis=0) for k in np.unique(self.codes)])

    def _histograms(self, names: list[str]) -> list[Any]:
        values, ax = self.projections[:, 0], self.ax_
        edges = np.histogram_bin_edges(values, bins=int(np.clip(2.0 * np.sqrt(len(values)), 8, 60)))
        self.bars_ = [
            ax.hist(
                values[self.codes == k],
                edges,
                facecolor=colour(k),
                edgecolor=ink(),
                lw=0.5,
                alpha=0.65,
                hatch=hatch(k),
                histtype="stepfilled",
                label=name,
            )[2][0]
            for k, name in enumerate(names)
            if np.any(self.codes == k)
        ]
        self.means_ = [
            ax.plot(mean, 0.0, marker=marker(k), color=colour(k), mec=ink(), ms=10, clip_on=False, zorder=5)[0]
            for k, mean in zip(np.unique(self.codes), self._means()[:, 0], strict=True)
        ]
        self.threshold_ = None
        ax.set(xlabel=r"$\langle w, x\rangle/\|w\|$ (marks: class means)", ylabel="examples")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        if self.threshold is None:
            return self.bars_
        label = f"threshold {short_number(self.threshold)}"
        self.threshold_ = ax.axvline(self.threshold, color=ink(), lw=1.4, ls="--", label=label)
        return [*self.bars_, self.threshold_]

    def _points(self, names: list[str]) -> list[Any]:
        ax = self.ax_
        self.points_ = scatter_classes(ax, self.projections[:, :2], self.codes, names, alpha=0.8)
        self.means_ = [
            ax.plot(*mean[:2], marker=marker(k), color=colour(k), mec=ink(), mew=1.4, ms=11, zorder=5)[0]
            for k, mean in zip(np.unique(self.codes), self._means(), strict=True)
        ]
        ax.set(
            xlabel=r"1st direction, $\langle w_1, x\rangle/\|w_1\|$",
            ylabel=r"2nd direction, $\langle w_2, x\rangle/\|w_2\|$",
        )
        if len(self.projections) <= MANY:
            ax.margins(0.08)
        return self.points_
