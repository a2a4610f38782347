"""The decision boundary among the examples, with w and the margin (L1 2, L2 3, L4 6 and 8)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from separatrix.engine.labels import Codes, encode_as
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats, as_rows
from separatrix.engine.weights import Weights
from separatrix.estimators.max_margin import MaxMarginClassifier
from separatrix.plots.drawing import (
    MANY,
    colour,
    ink,
    legend,
    literal,
    open_canvas,
    scatter_classes,
    short_number,
    write_beside,
)
from separatrix.plots.fitted_classifier import codes_of, has_features, leads_of, linear_weights, names_of, scores_of
from separatrix.plots.plane import Plane, Window, label_axes, plane_of, window_of

RESOLUTION = 200
MOST_VALUES = 1 << 30
"""The most values (grid points × features) on which a nonlinear boundary is evaluated."""
_VALUES_AT_ONCE = 1 << 22
_ARROW_LENGTH = 0.16
"""As a fraction of the window."""


class BoundaryDisplay:
    """The regions in which a classifier predicts each class, with the examples, w and the margin.

    For a linear classifier of two classes the boundary is drawn as a line, with the direction of w (its length has no
    meaning here) and, if w classifies every example correctly, the band of its margin. The band of a `MaxMarginClassifier`
    is its own margin, with examples inside the band if the margin is soft. Votes, kernels, pipelines and K classes have
    boundaries that are not a single line: they are evaluated on a grid. Any scikit-learn classifier works.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    points_ : the examples, one collection per class; wrong_ : rings around misclassified examples, or None.
    regions_ : the regions of the classes; boundary_ : the line, or the contours between the regions.
    arrow_, band_ : w and the margin, or None.
    plane : the plane of the axes; weights : of a linear classifier, in coordinates (u, v); margin : half the band's width.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.plots import BoundaryDisplay
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> display = BoundaryDisplay.from_estimator(Perceptron(order="cyclic", fit_intercept=False).fit(X, y), X, y)
    >>> display.weights.coef, round(display.margin * 10**0.5, 9)
    (array([[ 1., -3.]]), 2.0)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        plane: Plane,
        points: Floats,
        codes: Codes,
        classes: Array,
        wrong: Array,
        window: Window,
        grid: tuple[Floats, Floats],
        leads: Floats,
        weights: Weights | None = None,
        margin: float | None = None,
    ) -> None:
        self.plane, self.window, self.grid, self.leads = plane, window, grid, leads
        self.points, self.codes, self.classes, self.wrong = points, codes, classes, wrong
        self.weights, self.margin = weights, margin

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Any,
        y: Any,
        *,
        feature_names: Any = None,
        resolution: int = RESOLUTION,
        ax: Any = None,
        show_legend: bool = True,
    ) -> Self:
        """Draw the boundary of a fitted classifier with examples.

        Parameters
        ----------
        estimator : a fitted classifier, or a pipeline or search that ends in one
        X, y : examples and labels. Two features are the axes themselves; more are projected on w and the main direction
            orthogonal to it, as the axis labels say.
        feature_names : for the axis labels; by default those of the fit, or x0, x1
        resolution : grid points per side
        ax : matplotlib axes to draw on; None: a new figure
        show_legend : whether to draw the legend
        """
        classes, codes = codes_of(estimator, X, y, cls.__name__)
        if not has_features(estimator):
            raise ValueError("a precomputed kernel has no features, so its boundary cannot be drawn")
        scores = scores_of(estimator, X)
        rows = as_rows(X).source
        weights = linear_weights(estimator, rows, scores)
        plane = plane_of(rows, weights, names_of(estimator, rows.shape[1], feature_names))
        points = plane.coordinates(rows)
        window = window_of(points)
        grid = window.grid(resolution)
        seen = None if weights is None else plane.seen(weights)
        uv = np.stack(np.meshgrid(*grid), axis=-1).reshape(-1, 2)
        if seen is not None:
            grid_scores = uv @ seen.coef.T + seen.intercept
        else:
            grid_scores = _evaluate_on_grid(scores_of, estimator, X, plane, uv)
        grid_leads = leads_of(grid_scores)
        tied = np.flatnonzero(grid_leads.max(axis=1) <= 0.0)
        if tied.size:  # a tie belongs to the class that is predicted there
            labels = _evaluate_on_grid(lambda model, part: model.predict(part), estimator, X, plane, uv[tied])
            grid_leads[tied, encode_as(classes, labels)] = 1e-9 * (float(np.abs(grid_leads).max()) or 1.0)
        has_line = weights is not None and len(weights.coef) == 1 and np.any(weights.coef)
        leads = leads_of(scores)
        return cls(
            plane=plane,
            points=points,
            codes=codes,
            classes=classes,
            wrong=_misclassified(estimator, X, classes, codes),
            window=window,
            grid=grid,
            leads=grid_leads.T.reshape(len(classes), resolution, resolution),
            weights=seen if has_line else None,
            margin=_margin(estimator, weights, leads, codes) if has_line and weights is not None else None,
        ).plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            self.ax_, self.figure_ = canvas.ax, canvas.ax.figure
            self.regions_ = [self._region(k) for k in range(len(self.classes))]
            self.points_ = scatter_classes(
                canvas.ax, self.points, self.codes, [literal(name) for name in self.classes.tolist()]
            )
            self.wrong_ = self._rings()
            self.arrow_: Any = None
            self.band_: Any = None
            handles = [handle for handle in [*self.points_, self.wrong_] if handle is not None]
            if self.weights is not None:
                handles += self._line()
            else:
                self.boundary_ = self._contours()
                handles.append(Line2D([], [], color=ink(), lw=1.6, label="boundary"))
            self.window.show(canvas.ax)
            label_axes(canvas.ax, self.plane)
            if show_legend:
                self.legend_ = legend(canvas, handles, "best" if len(self.points) <= 500 else "upper right")
        return self

    def _region(self, k: int) -> Any:
        """Draw the region of class k; return None if it has none in the window."""
        lead = self.leads[k]
        if not lead.max() > 0.0:
            return None
        return self.ax_.contourf(
            *self.grid, lead, levels=[0.0, np.inf], colors=[colour(k)], alpha=0.16, zorder=0, extend="neither"
        )

    def _contours(self) -> list[Any]:
        """Draw the contours between the regions; two classes have the same one."""
        leads = self.leads[1:] if len(self.leads) == 2 else self.leads
        return [
            self.ax_.contour(*self.grid, lead, levels=[0.0], colors=[ink()], linewidths=1.6, linestyles="solid", zorder=2)
            for lead in leads
            if lead.min() < 0.0 < lead.max()
        ]

    def _rings(self) -> Any:
        if not self.wrong.any():
            return None
        size = 3.0 * float(self.points_[0].get_sizes()[0])
        many = len(self.points) > MANY
        ring = {"facecolors": "none", "edgecolors": ink(), "linewidths": 0.3 if many else 0.9, "rasterized": many}
        label = f"wrong: {int(self.wrong.sum()):,} of {len(self.wrong):,}"
        return self.ax_.scatter(*self.points[self.wrong].T, s=size, label=label, zorder=4, **ring)

    def _line(self) -> list[Any]:
        """Draw the boundary as a line, with the band around it and the arrow w; return the artists for the legend."""
        assert self.weights is not None
        length = float(np.linalg.norm(self.weights.coef))
        normal, foot = self.weights.coef[0] / length, self.window.foot(self.weights)
        ends = self.window.line(self.weights)
        assert ends is not None
        (self.boundary_,) = self.ax_.plot(
            *ends.T, color=ink(), lw=1.8, label="boundary", zorder=2, scalex=False, scaley=False
        )
        handles = [self.boundary_]
        if self.margin is not None:
            corners = np.concatenate([ends + self.margin * normal, ends[::-1] - self.margin * normal])
            self.band_ = Polygon(
                corners, facecolor=to_rgba(ink(), 0.07), edgecolor=ink(), lw=0.9, ls=(0, (5, 4)), zorder=1,
                label=f"margin {short_number(self.margin)}",
            )  # fmt: skip
            self.ax_.add_patch(self.band_)
            handles.append(self.band_)
        step = _ARROW_LENGTH / float(np.linalg.norm(normal / self.window.span))
        style = {"arrowstyle": "-|>", "lw": 1.6, "color": ink(), "mutation_scale": 13, "shrinkA": 0, "shrinkB": 0}
        self.arrow_ = self.ax_.annotate("", xy=foot + step * normal, xytext=foot, arrowprops=style, zorder=5)
        write_beside(self.ax_, "$w$", foot + step * normal)
        return handles


def _misclassified(estimator: Classifier, X: Any, classes: Array, codes: Codes) -> Array:
    wrong: Array = np.asarray(estimator.predict(X)) != classes[codes]
    return wrong


def _margin(estimator: Classifier, weights: Weights, leads: Floats, codes: Codes) -> float | None:
    """Return half the width of the band: the margin of the classifier, or that of w if it makes no mistake, else None."""
    length = float(np.linalg.norm(weights.coef))
    if isinstance(estimator, MaxMarginClassifier):
        return 1.0 / length
    least = float(leads[np.arange(len(codes)), codes].min()) / length
    return least if least > 0.0 else None


def _evaluate_on_grid(
    function: Callable[[Any, Any], Array], estimator: Classifier, X: Any, plane: Plane, uv: Floats
) -> Array:
    """Return function(estimator, examples) at the points of a grid, called on pieces of bounded size."""
    d = plane.axes.shape[1]
    if len(uv) * d > MOST_VALUES:
        raise ValueError(
            f"this boundary is not a hyperplane and must be evaluated on a grid, but {len(uv):,} examples of {d:,} features "
            "are too many: select or combine features first, or lower the resolution"
        )
    step = max(1, _VALUES_AT_ONCE // d)
    parts = np.split(uv, range(step, len(uv), step))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return np.concatenate([function(estimator, _like(X, plane.points(part))) for part in parts])


def _like(X: Any, points: Floats) -> Any:
    """Return examples as a pandas data frame if X is one, since a pipeline may select columns by name."""
    return type(X)(points, columns=X.columns) if hasattr(X, "iloc") and hasattr(X, "columns") else points
