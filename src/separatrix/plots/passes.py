"""Training and held-out accuracy after each pass, and the pass that is chosen (L2 9)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from matplotlib.ticker import MaxNLocator
from sklearn.base import clone

from separatrix.engine.labels import encode, labels_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import NO_WEIGHT, Array, as_rows
from separatrix.learners.classifier import ErrorDrivenClassifier
from separatrix.plots.drawing import colour, ink, legend, open_canvas


class PassesDisplay:
    """Training and held-out accuracy of the weights after each pass, with the pass whose weights early stopping restores.

    Without early stopping the chosen pass is the last; the best one can be read off the curve.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    training, held_out : the accuracies after each pass; chosen : the pass whose weights are used, counted from 1.
    training_, held_out_, chosen_ : the artists.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import Perceptron
    >>> from separatrix.plots import PassesDisplay
    >>> learner = Perceptron(random_state=0, early_stopping=True, n_iter_no_change=3)
    >>> display = PassesDisplay.from_estimator(learner, *load_iris(return_X_y=True))
    >>> len(display.training) == len(display.held_out), int(display.held_out.argmax()) + 1 == display.chosen
    (True, True)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(self, *, training: Any, held_out: Any, chosen: int) -> None:
        self.training, self.held_out = (np.asarray(values, dtype=np.float64) for values in (training, held_out))
        self.chosen = int(chosen)
        if self.training.shape != self.held_out.shape or self.training.ndim != 1 or not self.training.size:
            raise ValueError("training and held_out must have the same number of accuracies, one per pass, and at least one")
        if not 1 <= self.chosen <= len(self.training):
            raise ValueError(f"chosen must be a pass from 1 to {len(self.training)}, got {chosen}")

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: Any,
        y: Any,
        *,
        X_val: Any = None,
        y_val: Any = None,
        ax: Any = None,
        show_legend: bool = True,
    ) -> Self:
        """Train clones of a learner and draw their accuracy after each pass; the learner itself is not changed.

        If `random_state` is a number, the clones are bit for bit what the learner itself becomes in `fit`.

        Parameters
        ----------
        estimator : a learner that makes passes, fitted or not
        X, y : training data
        X_val, y_val : held-out examples; if not given, `validation_fraction` of each class of X, as early stopping does
        ax, show_legend : as in `BoundaryDisplay`
        """
        if not isinstance(estimator, ErrorDrivenClassifier):
            raise TypeError(f"only learners that make passes have this curve; {type(estimator).__name__} does not")
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: one of them is missing")
        labels = labels_of(X, y, cls.__name__)
        learner = clone(estimator).set_params(random_state=estimator.seed())
        if "calibrate" in learner.get_params():
            learner.set_params(calibrate=None)
        weight, trained = np.ones(len(labels)), np.arange(len(labels))
        if X_val is None:
            classes, codes = encode(labels)
            stopping = clone(learner).set_params(early_stopping=True)
            which = stopping.held_out_fraction(as_rows(X), len(classes), codes, NO_WEIGHT).which
            X_val, y_val, weight[which] = _rows_of(X, which), labels[which], 0.0
            trained = np.setdiff1d(trained, which)
        fitted = clone(learner).fit(X, labels, weight, X_val, y_val)
        same_passes = {"early_stopping": False, "max_iter": fitted.n_iter_, "tol": None}
        same_passes = {name: value for name, value in same_passes.items() if name in learner.get_params()}
        # Trained once more with the training examples as the held-out ones: its scores are training accuracies.
        scored = learner.set_params(**same_passes).fit(X, labels, weight, _rows_of(X, trained), labels[trained])
        cut = fitted.ledger_.cut
        chosen = fitted.n_iter_ if cut is None else cut.pass_number
        training = scored.validation_scores_
        return cls(training=training, held_out=fitted.validation_scores_, chosen=chosen).plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            ax = canvas.ax
            self.ax_, self.figure_ = ax, ax.figure
            passes: Array = np.arange(1, len(self.training) + 1)
            few = len(passes) <= 60
            (self.training_,) = ax.plot(
                *(passes, self.training), color=colour(0), ls="--", marker="o" if few else "", ms=4, label="training"
            )
            (self.held_out_,) = ax.plot(
                *(passes, self.held_out), color=colour(2), marker="s" if few else "", ms=4, label="held out"
            )
            best = float(self.held_out[self.chosen - 1])
            self.chosen_ = ax.scatter(
                *([self.chosen], [best]),
                s=150,
                facecolors="none",
                edgecolors=ink(),
                linewidths=1.6,
                zorder=5,
                label=f"used: pass {self.chosen:,}, {best:.3f}",
            )
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set(xlabel="pass", ylabel="accuracy")
            ax.grid(axis="y", alpha=0.25, lw=0.6)
            if show_legend:
                self.legend_ = legend(canvas, [self.training_, self.held_out_, self.chosen_])
        return self


def _rows_of(X: Any, which: Array) -> Any:
    """Return some rows of X in a container of the same kind."""
    if hasattr(X, "iloc"):
        return X.iloc[which]
    if hasattr(X, "to_batches"):  # an Arrow table
        return X.take(which)
    if sp.issparse(X):
        return X.tocsr()[which]
    return [X[row] for row in which] if isinstance(X, list | tuple) else X[which]
