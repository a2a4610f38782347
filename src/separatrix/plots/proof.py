"""The picture of the proof: ‖w‖² between k²γ² and kR², which cross where mistakes must end (L1 10, L2 7, L4 6)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from separatrix.analysis.best_separator import best_separator, flattened
from separatrix.analysis.tracing import Trace
from separatrix.engine.labels import encode_as, labels_of
from separatrix.engine.rows import Floats, Ints, as_rows
from separatrix.learners.linear_base import LinearLearner
from separatrix.plots.drawing import canvas, colour, ink, legend, number
from separatrix.plots.path import weights_after
from separatrix.plots.readings import classifier_of

SHOWN = 400
FEW = 60
"""Up to this bound both axes are linear; beyond it they are logarithmic."""


class ProofDisplay:
    """‖w‖² after each mistake, between the two lines of the proof, up to the bound where they cross.

    k²γ² ≤ ‖w‖² ≤ kR² leaves no room beyond k = R²/γ², so there are at most so many mistakes (2R² in place of R² for K
    classes jointly). The mistakes made are marked beside the bound. Without a separator there is only the upper line.

    Attributes
    ----------
    ax_, figure_ : the axes and the figure.
    k, norm2 : the numbers of mistakes, and ‖w‖² after each; R2, gamma : of the two lines; mistakes, bound : made, possible.
    norm_, upper_, lower_, made_, bound_ : the artists; lower_ and bound_ are None without a separator.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.plots import ProofDisplay
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> shown = ProofDisplay.from_estimator(Perceptron(order="cyclic", fit_intercept=False).fit(X, y), X, y)
    >>> shown.norm2, shown.mistakes, round(shown.bound)
    (array([16., 10., 10.]), 3, 26)
    >>> import matplotlib.pyplot as plt
    >>> plt.close(shown.figure_)
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
        cls, estimator: Any, X: Any, y: Any, *, certificate: Any = None, ax: Any = None, show_legend: bool = True
    ) -> Self:
        """Draw the proof in the numbers of a fitted linear learner, read from its ledger.

        Parameters
        ----------
        estimator : a linear learner fitted on X, y with the perceptron rule, from zero, without sample weights
        X, y : its training data, for R and γ
        certificate : of `certify(X, y)`, whose proven margin is then γ; if not given, the best separator is looked for
        ax, show_legend : as in `BoundaryDisplay`
        """
        model = _of_the_theorem(estimator)
        labels = labels_of(X, y, cls.__name__)
        rows = as_rows(X)
        if not model.ledger_.verify(X, labels):
            raise ValueError("X and y are not the data of the fit: a mistake of the ledger is none on them")
        K = len(model.classes_)
        if certificate is not None:
            if not (certificate.proof.bias == model.fit_intercept and certificate.verify(X, y)):
                raise ValueError("the certificate does not hold for these data, or not for this fit_intercept")
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
        """Draw the proof of a run that was traced."""
        _of_the_theorem(trace.model)
        made = trace.mistakes
        k = np.array([row["k"] for row in made], np.int64)
        norm2 = np.array([row["norm2"] for row in made])
        joint = len(trace.model.classes_) > 2
        drawn = cls(k=k, norm2=norm2, R2=trace.R2, gamma=trace.gamma, mistakes=len(made), joint=joint)
        return drawn.plot(ax, show_legend=show_legend)

    def plot(self, ax: Any = None, *, show_legend: bool = True) -> Self:
        """Draw it again, on other axes."""
        with canvas(ax) as drawn:
            ax = drawn.ax
            self.ax_, self.figure_ = ax, ax.figure
            end = max(1.15 * max(self.bound or 0.0, float(self.mistakes)), 2.0)
            logarithmic, twice = end > FEW and self.gamma is not None, "2" if self.joint else ""
            at = np.geomspace(1.0, end, 200) if logarithmic else np.linspace(0.0, end, 200)
            (self.upper_,) = ax.plot(at, self.R2 * at, color=colour(0), ls="--", lw=1.6, label=f"${twice}kR^2$, at most")
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
                low = (self.gamma * at) ** 2
                (self.lower_,) = ax.plot(at, low, color=colour(2), ls="-.", lw=1.6, label=r"$k^2\gamma^2$, at least")
                ax.fill_between(at, low, self.R2 * at, where=low <= self.R2 * at, color=colour(0), alpha=0.08, lw=0)
                bound = f"bound ${twice}R^2/\\gamma^2$ = {number(np.floor(self.bound * (1 + 1e-9)))}"
                self.bound_ = ax.axvline(self.bound, color=ink(), ls=":", lw=1.4, label=bound)
                handles += [self.lower_, self.bound_]
            made = f"{self.mistakes:,} mistake{'' if self.mistakes == 1 else 's'} made"
            self.made_ = ax.axvline(max(self.mistakes, 1) if logarithmic else self.mistakes, color=ink(), lw=0.8, label=made)
            if logarithmic:
                ax.set(xscale="log", yscale="log", xlim=(1.0, end))
            else:
                ax.set(xlim=(0.0, end), ylim=(0.0, None))
            ax.set(
                xlabel="mistakes $k$",
                ylabel=r"$\|w\|^2$" if self.gamma is not None else "$\\|w\\|^2$ (no separator, no $\\gamma$)",
            )
            if show_legend:
                self.legend_ = legend(drawn, [*handles, self.made_])
        return self


def _of_the_theorem(estimator: Any) -> LinearLearner:
    """Return a learner of which the proof speaks, or raise."""
    model = classifier_of(estimator)
    if not isinstance(model, LinearLearner) or model is not estimator:
        raise TypeError(f"the proof is about the linear learners, and {type(estimator).__name__} is not one of them")
    ledger = model.ledger_
    if ledger.rule.entry.theorem != "perceptron" or ledger.start is not None or ledger.correction.size:
        raise ValueError("the two lines are about the perceptron rule, a start from zero and examples of weight 1")
    if len(model.classes_) > 2 and not ledger.joint:
        raise ValueError(
            'the proof is about two classes, or K jointly: one-vs-rest is K runs at once; use multi_class="joint"'
        )
    return model
