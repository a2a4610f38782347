"""The convergence proof as a plot: ‖w‖² between k²γ² and kR², which cross at the mistake bound (L1 10, L2 7, L4 6)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from separatrix.analysis.best_separator import best_separator, flattened
from separatrix.analysis.tracing import Trace
from separatrix.engine.labels import encode_as, labels_of
from separatrix.engine.protocols import Classifier
from separatrix.engine.rows import Floats, Ints, as_rows
from separatrix.learners.linear_base import LinearLearner
from separatrix.plots.drawing import colour, ink, legend, open_canvas, short_number
from separatrix.plots.fitted_classifier import classifier_of
from separatrix.plots.path import weights_after

SHOWN = 400
FEW = 60
"""Up to this bound both axes are linear; beyond it they are logarithmic."""


class ProofDisplay:
    """‖w‖² after each mistake, between the two lines of the proof, up to the bound where they cross.

    k²γ² ≤ ‖w‖² ≤ kR² is impossible for k > R²/γ², so there are at most R²/γ² mistakes (for K classes jointly, 2R² replaces
    R²). The number of mistakes made is marked beside the bound. Without a separator there is only the upper line.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    k, norm2 : numbers of mistakes, and ‖w‖² after each; R2, gamma : R² and γ; mistakes, bound : the number made, and R²/γ².
    norm_, upper_, lower_, made_, bound_ : the artists; lower_ and bound_ are None without a separator.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.plots import ProofDisplay
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> display = ProofDisplay.from_estimator(Perceptron(order="cyclic", fit_intercept=False).fit(X, y), X, y)
    >>> display.norm2, display.mistakes, round(display.bound)
    (array([16., 10., 10.]), 3, 26)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(display.figure_)
    """

    def __init__(
        self, *, k: Ints, norm2: Floats, R2: float, gamma: float | None, mistakes: int, joint: bool = False
    ) -> None:
        self.k, self.norm2, self.R2, self.gamma, self.mistakes = k, norm2, R2, gamma, mistakes
        self.joint = joint

    @property
    def bound(self) -> float | None:
        """R²/γ², if there is a separator."""
        return None if self.gamma is None else self.R2 / self.gamma**2

    @classmethod
    def from_estimator(
        cls, estimator: Classifier, X: Any, y: Any, *, certificate: Any = None, ax: Any = None, show_legend: bool = True
    ) -> Self:
        """Draw the proof with the numbers of a fitted linear learner, read from its ledger.

        Parameters
        ----------
        estimator : a linear learner fitted on X, y with the perceptron rule, from zero, without sample weights
        X, y : its training data, for R and γ
        certificate : from `certify(X, y)`; its proven margin is γ. By default the best separator is computed.
        ax, show_legend : as in `BoundaryDisplay`
        """
        model = _check_theorem_applies(estimator)
        labels = labels_of(X, y, cls.__name__)
        rows = as_rows(X)
        if not model.ledger_.verify(X, labels):
            raise ValueError("X and y are not the data of the fit: a mistake in the ledger is not a mistake on them")
        K = len(model.classes_)
        if certificate is not None:
            if not (certificate.proof.bias == model.fit_intercept and certificate.verify(X, y)):
                raise ValueError("the certificate does not hold for these data, or has another fit_intercept")
            gamma = None if certificate.mistake_bound is None else certificate.margin[0]
        else:
            presented = np.setdiff1d(np.arange(rows.n), model.run_.left_out)
            codes = encode_as(model.classes_, labels)[presented]
            separator = best_separator(rows.take(presented), codes, K, bias=model.fit_intercept)
            gamma = None if separator is None else separator.gamma
        total = len(model.ledger_)
        k = (
            np.unique(np.round(np.linspace(1, total, min(SHOWN, total))).astype(np.int64))
            if total
            else np.empty(0, np.int64)
        )
        norm2 = np.array([float(np.sum(flattened(w) ** 2)) for w in weights_after(model.ledger_, X, k)])
        R2 = model.radius_**2 * (2.0 if K > 2 else 1.0)
        return cls(k=k, norm2=norm2, R2=R2, gamma=gamma, mistakes=total, joint=K > 2).plot(ax, show_legend=show_legend)

    @classmethod
    def from_trace(cls, trace: Trace, *, ax: Any = None, show_legend: bool = True) -> Self:
        """Draw the proof from a trace."""
        _check_theorem_applies(trace.model)
        mistakes = trace.mistakes
        k = np.array([row["k"] for row in mistakes], np.int64)
        norm2 = np.array([row["norm2"] for row in mistakes])
        joint = len(trace.model.classes_) > 2
        display = cls(k=k, norm2=norm2, R2=trace.R2, gamma=trace.gamma, mistakes=len(mistakes), joint=joint)
        return display.plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw on these axes, or in a new figure."""
        with open_canvas(ax) as canvas:
            ax = canvas.ax
            self.ax_, self.figure_ = ax, ax.figure
            end = max(1.15 * max(self.bound or 0.0, float(self.mistakes)), 2.0)
            logarithmic, twice = end > FEW and self.gamma is not None, "2" if self.joint else ""
            ks = np.geomspace(1.0, end, 200) if logarithmic else np.linspace(0.0, end, 200)
            (self.upper_,) = ax.plot(ks, self.R2 * ks, color=colour(0), ls="--", lw=1.6, label=f"${twice}kR^2$, at most")
            (self.norm_,) = ax.plot(
                *(self.k, np.where(self.norm2 > 0.0, self.norm2, np.nan) if logarithmic else self.norm2),
                color=ink(),
                lw=1.4,
                marker="o" if len(self.k) <= FEW else "",
                ms=4,
                label=r"$\|w\|^2$ after $k$ mistakes",
                zorder=4,
            )
            handles = [self.upper_, self.norm_]
            self.lower_, self.bound_ = None, None
            if self.gamma is not None and self.bound is not None:
                low = (self.gamma * ks) ** 2
                (self.lower_,) = ax.plot(ks, low, color=colour(2), ls="-.", lw=1.6, label=r"$k^2\gamma^2$, at least")
                ax.fill_between(ks, low, self.R2 * ks, where=low <= self.R2 * ks, color=colour(0), alpha=0.08, lw=0)
                bound = f"bound ${twice}R^2/\\gamma^2$ = {short_number(np.floor(self.bound * (1 + 1e-9)))}"
                self.bound_ = ax.axvline(self.bound, color=ink(), ls=":", lw=1.4, label=bound)
                handles += [self.lower_, self.bound_]
            label = f"{self.mistakes:,} mistake{'' if self.mistakes == 1 else 's'} made"
            self.made_ = ax.axvline(
                max(self.mistakes, 1) if logarithmic else self.mistakes, color=ink(), lw=0.8, label=label
            )
            if logarithmic:
                ax.set(xscale="log", yscale="log", xlim=(1.0, end))
            else:
                ax.set(xlim=(0.0, end), ylim=(0.0, None))
            ax.set(
                xlabel="mistakes $k$",
                ylabel=r"$\|w\|^2$" if self.gamma is not None else "$\\|w\\|^2$ (no separator, no $\\gamma$)",
            )
            if show_legend:
                self.legend_ = legend(canvas, [*handles, self.made_])
        return self


def _check_theorem_applies(estimator: Classifier) -> LinearLearner:
    """Return the learner if the theorem applies to it, else raise."""
    model = classifier_of(estimator)
    if not isinstance(model, LinearLearner) or model is not estimator:
        raise TypeError(f"the proof applies to linear learners; {type(estimator).__name__} is not one of them")
    ledger = model.ledger_
    if ledger.rule.entry.theorem != "perceptron" or ledger.start is not None or ledger.correction.size:
        raise ValueError("the proof applies to the perceptron rule, a start from zero and examples of weight 1")
    if len(model.classes_) > 2 and not ledger.joint:
        raise ValueError(
            'the proof applies to two classes or to K classes jointly, not to one-vs-rest: use multi_class="joint"'
        )
    return model
