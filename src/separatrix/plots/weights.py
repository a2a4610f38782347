"""The largest weights, by the name of their feature (L2 2 and 5)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from matplotlib.patches import Patch
from sklearn.pipeline import Pipeline

from separatrix.analysis.explanation import BIAS
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Floats
from separatrix.modelfile.model import Model
from separatrix.plots.drawing import colour, hatch, ink, legend, literal, open_canvas
from separatrix.plots.fitted_classifier import classifier_of, names_of

SHOWN = 20


class WeightsDisplay:
    """The largest weights of a linear classifier, one bar for each feature.

    Two classes have one weight vector: positive weights count for `classes_[1]`, negative ones for `classes_[0]`. For K
    classes, the weights of one class are drawn, minus their mean over the classes, since only differences matter.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    names, weights : of the bars, the largest first; towards : the classes that negative and positive weights count for.
    bars_ : the bars.

    Examples
    --------
    >>> from separatrix.plots import WeightsDisplay
    >>> display = WeightsDisplay(names=["free", "you", "win"], weights=[2.0, -1.5, 1.0], towards=("ham", "spam")).plot()
    >>> [tick.get_text() for tick in display.ax_.get_yticklabels()]
    ['free', 'you', 'win']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, names: Any, weights: Any, towards: tuple[Any, Any] = ("negative", "positive")) -> None:
        self.names = [str(name) for name in names]
        self.weights: Floats = np.asarray(weights, dtype=np.float64).reshape(-1)
        self.towards = towards
        if len(self.names) != len(self.weights) or not self.names:
            raise ValueError(f"there are {len(self.names)} names for {len(self.weights)} weights: each weight needs one")

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        *,
        label: Any = None,
        shown: int = SHOWN,
        feature_names: Any = None,
        ax: Any = None,
        show_legend: bool = True,
    ) -> Self:
        """Draw the largest weights of a fitted linear classifier.

        Parameters
        ----------
        estimator : a fitted linear classifier, or a pipeline, search or `Model` that ends in one
        label : for K classes, the class whose weights are drawn; by default the first
        shown : the number of weights; the bias is one of them if it is large enough
        feature_names : by default those of the fit, or of the steps before the classifier
        ax, show_legend : as in `BoundaryDisplay`
        """
        classifier = classifier_of(estimator)
        if not hasattr(classifier, "coef_"):
            raise TypeError(f"{type(classifier).__name__} has no coef_, so it has no weights to draw")
        if shown < 1:
            raise ValueError(f"shown must be at least 1, got {shown}")
        coef, intercept = np.asarray(classifier.coef_), np.atleast_1d(classifier.intercept_)
        classes = classifier.classes_.tolist()
        if label is not None and label not in classes:
            raise ValueError(f"{label!r} is not among the classes {classes[:5]}")
        if len(coef) == 1:
            sign = -1.0 if label is not None and label == classes[0] else 1.0
            w, b, towards = sign * coef[0], sign * float(intercept[0]), (classes[0], classes[1])[:: int(sign)]
        else:
            k = 0 if label is None else classes.index(label)
            w, b = coef[k] - coef.mean(axis=0), float(intercept[k] - intercept.mean())
            towards = ("the others", classes[k])
        largest = np.argsort(-np.abs(w), kind="stable")[:shown]
        largest = largest[w[largest] != 0.0] if np.any(w) else largest
        names = names_of(classifier, len(w), _names_before(estimator) if feature_names is None else feature_names)
        pairs = [(float(w[j]), names[j]) for j in largest] + ([(b, BIAS)] if b != 0.0 else [])
        pairs = sorted(pairs, key=lambda pair: -abs(pair[0]))[:shown]
        display = cls(
            names=[name for _, name in pairs], weights=[weight for weight, _ in pairs], towards=(towards[0], towards[1])
        )
        return display.plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            ax = canvas.ax
            self.ax_, self.figure_ = ax, ax.figure
            if canvas.own:
                self.figure_.set_figheight(max(2.0, 0.26 * len(self.names) + 1.0))
            positive = self.weights > 0.0
            self.bars_ = ax.barh(
                np.arange(len(self.names)),
                self.weights,
                color=[colour(int(up)) for up in positive],
                hatch=["" if up else hatch(1) for up in positive],
                edgecolor=ax.get_facecolor(),
                lw=0.4,
            )
            ax.set_yticks(np.arange(len(self.names)), [literal(name, 40) for name in self.names])
            ax.invert_yaxis()
            ax.axvline(0.0, color=ink(), lw=1.0)
            ax.set_xlabel("weight")
            ax.margins(y=0.02)
            if show_legend:
                handles = [
                    Patch(
                        fc=colour(int(up)), hatch="" if up else hatch(1), ec=ax.get_facecolor(), label=f"for {literal(name)}"
                    )
                    for up, name in zip((True, False), self.towards[::-1], strict=True)
                    if np.any(positive == up)
                ]
                self.legend_ = legend(canvas, handles)
        return self


def _names_before(estimator: Classifier) -> Any:
    """Return the feature names from the steps before a classifier, or None."""
    last = getattr(estimator, "best_estimator_", estimator)
    if isinstance(last, Model):
        return None if last.features is None else last.features.get_feature_names_out()
    if isinstance(last, Pipeline) and len(last) > 1:
        return last[:-1].get_feature_names_out()
    return None
