"""The weights that count most, by name (L2 2 and 5)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from matplotlib.patches import Patch
from sklearn.pipeline import Pipeline

from separatrix.analysis.explanation import BIAS
from separatrix.engine.rows import Floats
from separatrix.modelfile.model import Model
from separatrix.plots.drawing import canvas, colour, hatch, ink, legend, literal
from separatrix.plots.readings import classifier_of, names_of

SHOWN = 20


class WeightsDisplay:
    """The largest weights of a linear classifier, a bar each with the name of its feature.

    Two classes have one weight vector: positive weights speak for `classes_[1]`, negative ones for `classes_[0]`. Of K
    classes the weights of one are drawn, less their mean over the classes, for only differences decide.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    names, weights : what is drawn, the largest first; towards : the classes that negative and positive weights speak for.
    bars_ : the bars.

    Examples
    --------
    >>> from separatrix.plots import WeightsDisplay
    >>> shown = WeightsDisplay(names=["free", "you", "win"], weights=[2.0, -1.5, 1.0], towards=("ham", "spam")).plot()
    >>> [tick.get_text() for tick in shown.ax_.get_yticklabels()]
    ['free', 'you', 'win']
    >>> import matplotlib.pyplot as plt
    >>> plt.close(shown.figure_)
    """

    def __init__(self, *, names: Any, weights: Any, towards: tuple[Any, Any] = ("negative", "positive")) -> None:
        self.names = [str(name) for name in names]
        self.weights: Floats = np.asarray(weights, dtype=np.float64).reshape(-1)
        self.towards = towards
        if len(self.names) != len(self.weights) or not self.names:
            raise ValueError(f"there are {len(self.names)} names for {len(self.weights)} weights; each weight needs one")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
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
        label : of K classes, the one whose weights are drawn; the first if not given
        shown : how many weights, the bias among them if it is large enough
        feature_names : if not given, those of the fit or of the steps before the classifier
        ax, show_legend : as in `BoundaryDisplay`
        """
        classifier = classifier_of(estimator)
        if not hasattr(classifier, "coef_"):
            raise TypeError(f"{type(classifier).__name__} has no weights by feature: it has no coef_")
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
        which = np.argsort(-np.abs(w), kind="stable")[:shown]
        which = which[w[which] != 0.0] if np.any(w) else which
        names = names_of(classifier, len(w), _names_before(estimator) if feature_names is None else feature_names)
        told = [(float(w[j]), names[j]) for j in which] + ([(b, BIAS)] if b != 0.0 else [])
        told = sorted(told, key=lambda pair: -abs(pair[0]))[:shown]
        made = cls(
            names=[name for _, name in told], weights=[weight for weight, _ in told], towards=(towards[0], towards[1])
        )
        return made.plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw it again, on other axes."""
        with canvas(ax) as drawn:
            ax = drawn.ax
            self.ax_, self.figure_ = ax, ax.figure
            if drawn.own:
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
                self.legend_ = legend(drawn, handles)
        return self


def _names_before(estimator: Any) -> Any:
    """Return the names that the steps before a classifier give its features, or None."""
    last = getattr(estimator, "best_estimator_", estimator)
    if isinstance(last, Model):
        return None if last.features is None else last.features.get_feature_names_out()
    if isinstance(last, Pipeline) and len(last) > 1:
        return last[:-1].get_feature_names_out()
    return None
