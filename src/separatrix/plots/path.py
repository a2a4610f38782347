"""The boundary after each mistake (L1 6 and 7, L2 4, L4 3–5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from matplotlib.lines import Line2D

from separatrix.engine.labels import Codes
from separatrix.engine.ledger import Ledger
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Array, Floats, Ints, as_rows
from separatrix.engine.weights import Weights
from separatrix.learners.linear_base import LinearLearner
from separatrix.plots.drawing import colour, ink, legend, literal, open_canvas, scatter_classes, write_beside
from separatrix.plots.fitted_classifier import classifier_of, codes_of, names_of
from separatrix.plots.plane import Plane, Window, label_axes, plane_of, window_of

SHOWN = 12
NUMBERED = 15
"""Up to this many mistakes, the examples on which they were made are numbered."""


def weights_after(ledger: Ledger, X: Any, counts: Ints) -> Iterator[Weights]:
    """Yield the weights after each of these numbers of mistakes, which must rise, in one replay."""
    rows, numbers = ledger.mistaken_rows(X)
    state, done = ledger.state(rows.sparse, ledger.start), 0
    for k in counts.tolist():
        ledger.replay_into(state, rows, numbers, slice(done, k))
        done = k
        yield state.weights()


class PathDisplay:
    """The boundaries after some of the mistakes, older ones fainter, and the boundary in use, with the examples.

    They are read from the ledger of a linear learner of two classes; nothing is trained again. Few mistakes are numbered,
    beside the examples on which they were made.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    lines_ : the boundaries after `mistakes`[0], `mistakes`[1], … mistakes; boundary_ : the one in use.
    points_ : the examples, one collection per class; numbers_ : the texts beside mistaken examples.
    plane : the plane of the axes; path : the weights of each line in its coordinates (u, v); used : those in use.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.plots import PathDisplay
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> display = PathDisplay.from_estimator(Perceptron(order="cyclic", fit_intercept=False).fit(X, y), X, y)
    >>> [weights.coef[0].tolist() for weights in display.path]
    [[4.0, 0.0], [3.0, -1.0], [1.0, -3.0]]
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
        window: Window,
        mistakes: Ints,
        path: list[Weights],
        used: Weights,
        examples: Ints,
    ) -> None:
        self.plane, self.window, self.points, self.codes, self.classes = plane, window, points, codes, classes
        self.mistakes, self.path, self.used, self.examples = mistakes, path, used, examples

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Any,
        y: Any,
        *,
        shown: int = SHOWN,
        feature_names: Any = None,
        ax: Any = None,
        show_legend: bool = True,
    ) -> Self:
        """Draw the path of the boundary of a fitted linear learner.

        Parameters
        ----------
        estimator : a fitted linear learner of two classes, with its ledger
        X, y : its training data. More than two features are projected on w and the main direction orthogonal to it; a line
            is then the intersection of that boundary with the plane through the mean.
        shown : the most boundaries to draw, evenly spaced over the mistakes
        feature_names, ax, show_legend : as in `BoundaryDisplay`
        """
        learner = _learner_of(estimator)
        ledger = learner.ledger_
        classes, codes = codes_of(estimator, X, y, cls.__name__)
        if shown < 1:
            raise ValueError(f"shown must be at least 1, got {shown}")
        rows = as_rows(X).source
        if rows.shape[1] != ledger.n_features:
            raise ValueError(f"X has {rows.shape[1]} features, but the ledger has {ledger.n_features}")
        if ledger.total and len(codes) <= int(ledger.example.max(initial=0)):
            raise ValueError(f"X has {len(codes)} examples, but a mistake was made on row {int(ledger.example.max())}")
        if not ledger.total:
            raise ValueError("the ledger has no mistakes: the boundary never moved")
        used = Weights(learner.coef_, learner.intercept_)
        plane = plane_of(rows, used, names_of(estimator, rows.shape[1], feature_names))
        points = plane.coordinates(rows)
        counts = np.unique(np.round(np.linspace(1, len(ledger), min(shown, len(ledger)))).astype(np.int64))
        seen = [plane.seen(weights) for weights in weights_after(ledger, X, counts)]
        return cls(
            plane=plane,
            points=points,
            codes=codes,
            classes=classes,
            window=window_of(points),
            mistakes=counts,
            path=seen,
            used=plane.seen(used),
            examples=ledger.example.astype(np.int64),
        ).plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            self.ax_, self.figure_ = canvas.ax, canvas.ax.figure
            self.points_ = scatter_classes(
                canvas.ax, self.points, self.codes, [literal(name) for name in self.classes.tolist()]
            )
            ages = np.linspace(0.25, 0.8, len(self.path))
            self.lines_ = [
                self._line(weights, color=colour(2), alpha=age, lw=0.8 + age, label=f"after mistake {k:,}")
                for weights, age, k in zip(self.path, ages, self.mistakes.tolist(), strict=True)
            ]
            self.boundary_ = self._line(self.used, color=ink(), lw=2.0, label="boundary in use")
            self.numbers_ = self._numbers()
            self.window.show(canvas.ax)
            label_axes(canvas.ax, self.plane)
            if show_legend:
                ends = [line for line in (self.lines_[0], self.lines_[-1]) if line is not None]
                used = [] if self.boundary_ is None else [self.boundary_]
                self.legend_ = legend(canvas, [*self.points_, *dict.fromkeys(ends), *used])
        return self

    def _line(self, weights: Weights, **style: Any) -> Line2D | None:
        """Draw one boundary; return None for weights that are 0 in the plane."""
        ends = self.window.line(weights)
        if ends is None:
            return None
        (line,) = self.ax_.plot(*ends.T, scalex=False, scaley=False, zorder=2, **style)
        return line  # type: ignore[no-any-return]

    def _numbers(self) -> list[Any]:
        """Write beside each mistaken example the numbers of its mistakes."""
        if not 0 < len(self.examples) <= NUMBERED:
            return []
        mistakes_on: dict[int, list[str]] = {}
        for k, example in enumerate(self.examples.tolist(), 1):
            mistakes_on.setdefault(example, []).append(str(k))
        return [write_beside(self.ax_, ", ".join(ks), self.points[example]) for example, ks in mistakes_on.items()]


def _learner_of(estimator: Classifier) -> LinearLearner:
    """Return the linear learner of two classes that an estimator is; raise for anything else."""
    classifier = classifier_of(estimator)
    name = type(classifier).__name__
    if not hasattr(classifier, "ledger_"):
        raise TypeError(f"{name} keeps no ledger of mistakes, so its boundary has no path")
    if not isinstance(classifier, LinearLearner) or classifier is not estimator:
        raise TypeError(f"pass a linear learner itself; {type(estimator).__name__} is not one")
    if len(classifier.classes_) != 2:
        raise ValueError(f"the path can be drawn for two classes, but this {name} has {len(classifier.classes_)}")
    return classifier
