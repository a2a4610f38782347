"""The mistake bounds: each theorem with its conditions, and which of them apply to a run (L1 10, L2 7–8, L3 6, L4 6, L5 4).

With a bias everything is in the space of x̃ = (x, 1). R is the largest ‖x̃‖, γ = min y⟨w*,x̃⟩ for some w* of length 1.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from math import inf, log, sqrt
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from separatrix.analysis.best_separator import best_separator
from separatrix.analysis.freund_schapire import smallest_shortfall
from separatrix.engine.labels import Codes, as_labels, encode_as
from separatrix.engine.ledger import Ledger
from separatrix.engine.rows import Floats, Rows, as_rows
from separatrix.learners.linear_base import LinearLearner

NONE = "none"


# The theorems.


def perceptron_bound(radius: float, gamma: float) -> float:
    """R²/γ²: mistakes of the perceptron rule from w = 0, unit weights, any order and passes, separable by a margin γ.

    For examples with weights s it bounds (Σs)²/Σs², where both sums are over the mistakes (Novikoff 1962).
    """
    return (radius / _positive(gamma)) ** 2


def joint_bound(radius: float, gamma: float) -> float:
    """2R²/γ²: the same for K classes jointly, γ being the smallest lead of the true class for ‖W*‖ = 1."""
    return 2.0 * perceptron_bound(radius, gamma)


def margin_rule_bound(radius: float, gamma: float, beta: float) -> float:
    """(R² + 2β)/γ²: updates of the rule that updates wherever y·score ≤ β, under the conditions of the perceptron rule."""
    return (radius**2 + 2.0 * beta) / _positive(gamma) ** 2


def freund_schapire_bound(radius: float, gamma: float, shortfall: float, passes: int = 1) -> float:
    """((R + √T·D)/γ)²: mistakes in T passes over any data, each example once a pass; perceptron rule, w = 0, unit weights.

    D² = Σ max(0, γ − y⟨u,x̃⟩)² for any u of length 1 and any γ > 0 (Freund and Schapire 1999). K classes jointly: √2·R in
    place of R, the lead in place of y⟨u,x̃⟩.
    """
    return ((radius + sqrt(passes) * shortfall) / _positive(gamma)) ** 2


def passive_aggressive_bound(radius: float, length: float) -> float:
    """R²‖u‖²: sum of squared losses of the PA rule, for any u without hinge loss (u = w*/γ); it also bounds the mistakes."""
    return (radius * length) ** 2


def pa1_bound(radius: float, length: float, loss: float, C: float) -> float:
    """max(R², 1/C)·(‖u‖² + 2C·Σℓ(u)): mistakes of PA-I, one pass, any u (Crammer and others 2006)."""
    return max(radius**2, 1.0 / C) * (length**2 + 2.0 * C * loss)


def pa2_bound(radius: float, length: float, squared_loss: float, C: float) -> float:
    """(R² + 1/2C)·(‖u‖² + 2C·Σℓ(u)²): the sum of squared losses of PA-II, one pass, any u (Crammer and others 2006)."""
    return (radius**2 + 0.5 / C) * (length**2 + 2.0 * C * squared_loss)


def generalisation_bound(mistakes: int, n: int, delta: float = 0.05) -> float:
    """M/n + √(2 ln(1/δ)/n): with probability 1 − δ at least the mean risk of the weights before each step of one pass.

    The examples must be drawn independently; M is the number of mistakes in the pass (Cesa-Bianchi, Conconi, Gentile 2004).
    """
    if n < 1 or not 0.0 < delta < 1.0:
        raise ValueError(f"the bound needs n ≥ 1 examples and 0 < δ < 1, got n={n}, δ={delta}")
    return mistakes / n + sqrt(2.0 * log(1.0 / delta) / n)


def asking_bound(radius: float, gamma: float, b: float, loss: float = 0.0) -> float:
    """(1 + R²/2b)·L/γ + (2b + R²)²/(8bγ²): expected errors of the perceptron rule that asks for labels, one pass, w = 0.

    A label is asked for with probability b/(b + |margin|) under the weights that learn, and only then learned from; errors
    on examples that were not asked for count, too. L ≥ Σ max(0, γ − y⟨u,x̃⟩) for any u of length 1 and any γ > 0; L = 0 where
    γ is a margin of the data, and b = R²/2 then gives R²/γ². K classes jointly: √2·R in place of R, and the lead in place of
    the margin (Cesa-Bianchi, Gentile, Zaniboni 2006).
    """
    if not b > 0.0:
        raise ValueError(f"b must be above 0, got {b}")
    square = radius**2
    return (1.0 + square / (2.0 * b)) * loss / _positive(gamma) + (2.0 * b + square) ** 2 / (8.0 * b * gamma**2)


def mixing_bound(radius: float, gamma: float) -> float:
    """R²/γ²: Σ over passes and shards of (mixing weight × mistakes) under iterative parameter mixing, separable data.

    With uniform weights it bounds the mean mistakes per shard (McDonald, Hall, Mann 2010).
    """
    return perceptron_bound(radius, gamma)


def _positive(gamma: float) -> float:
    if not gamma > 0.0:
        raise ValueError(f"a margin must be above 0, got {gamma}")
    return gamma


def effective_mistakes(weights: Floats) -> float:
    """Return (Σs)²/Σs² of the weights of the mistakes: their number where all are equal."""
    return float(weights.sum() ** 2 / (weights @ weights)) if weights.size else 0.0


# The report.


@dataclass(frozen=True)
class Bound:
    """A theorem that applies to the run: the quantity that it bounds, its value in the run, and the bound."""

    theorem: str
    quantity: str
    made: float
    possible: float

    @property
    def holds(self) -> bool:
        """Whether the value is within the bound, as it must be."""
        return self.made <= self.possible * (1.0 + 1e-9)


@dataclass(frozen=True)
class Bounds:
    """Mistakes made beside mistakes possible. `applying` are the theorems that apply to the run, smallest bound first.

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> Perceptron(order="cyclic", fit_intercept=False).fit(X, y).bounds(X, y)
    3 mistakes in 2 passes; R = 4, γ = 0.784465
      Freund–Schapire (R‖v‖ + ‖hinge‖)², 2 passes: mistakes 3 ≤ 8
      radius–margin bound R²/γ²: mistakes 3 ≤ 26
    """

    mistakes: int
    passes: int
    radius: float
    gamma: float | None
    applying: list[Bound] = field(default_factory=list)
    why_none: str = ""
    risk: float | None = None
    delta: float = 0.05

    @property
    def theorem(self) -> str:
        """The name of the theorem with the smallest bound, or "none"."""
        return self.applying[0].theorem if self.applying else NONE

    @property
    def bound(self) -> float:
        """The smallest bound; infinity where no theorem applies."""
        return self.applying[0].possible if self.applying else inf

    @property
    def holds(self) -> bool:
        """Whether the run is within every bound that applies."""
        return all(bound.holds for bound in self.applying)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, as JSON has them."""
        bound = self.bound if self.applying else None
        return {"theorem": self.theorem, "bound": bound, "holds": self.holds} | asdict(self)

    def __repr__(self) -> str:
        margin = "no margin: not separable, or no separator found" if self.gamma is None else f"γ = {self.gamma:.6g}"
        passes = "1 pass" if self.passes == 1 else f"{self.passes} passes"
        lines = [f"{self.mistakes:,} mistakes in {passes}; R = {self.radius:.6g}, {margin}"]
        for bound in self.applying:
            lines.append(f"  {bound.theorem}: {bound.quantity} {bound.made:,.6g} ≤ {bound.possible:,.6g}")
        if not self.applying:
            lines.append(f"  no theorem bounds this run: {self.why_none}")
        if self.risk is not None:
            lines.append(
                f"  one pass over independent examples: mean risk ≤ {self.risk:.4f} with probability {1 - self.delta:.0%} "
                "(Cesa-Bianchi, Conconi, Gentile)"
            )
        return "\n".join(lines)


class _ProblemBounds(NamedTuple):
    """The margin of one two-class (or joint) problem, and the bounds that apply to it, by the name of the theorem."""

    gamma: float | None
    possible: list[tuple[str, float]]


def report(
    model: LinearLearner, X: Any, y: Any, certificate: Any = None, delta: float = 0.05, time_limit: float | None = None
) -> Bounds:
    """Return the bounds that apply to a fitted linear learner on its training data; `estimator.bounds` calls this."""
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, not {time_limit!r}")
    deadline = inf if time_limit is None else time.monotonic() + time_limit
    rows, labels = as_rows(X), as_labels(np.asarray(y))
    ledger: Ledger = model.ledger_
    if not ledger.verify(X, labels):
        raise ValueError(
            "X and y are not the data of the fit: the ledger's mistakes do not match them (for a stream, give all of it)"
        )
    codes = encode_as(model.classes_, labels)
    if certificate is not None and not (certificate.proof.bias == ledger.bias and certificate.verify(X, y)):
        raise ValueError("the certificate does not hold for these data, or not for this fit_intercept")
    left_out = model.run_.left_out
    if isinstance(model.class_weight, dict):  # rows of a class of weight 0 are not presented
        weightless = [k for k, label in enumerate(model.classes_.tolist()) if model.class_weight.get(label) == 0]
        left_out = np.union1d(left_out, np.flatnonzero(np.isin(codes, weightless)))
    if left_out.size:
        presented = np.setdiff1d(np.arange(rows.n), left_out)
        rows, codes, certificate = rows.take(presented), codes[presented], None
    rows = _without_empty_columns(rows)
    radius = float(np.sqrt(rows.survey() + ledger.bias))
    passes = len(model.mistakes_per_pass_)
    ovr = len(model.classes_) > 2 and not model.run_.joint
    problems = [codes] if not ovr else [(codes == k).astype(np.int32) for k in range(len(model.classes_))]
    n_classes = 2 if ovr else len(model.classes_)
    fits = certificate is not None and not ovr
    why = _why_none(model)
    applying: list[Bound] = []
    gammas: list[float | None] = [None]
    if not why:
        usable = certificate if fits else None
        settings = (n_classes, radius, passes, usable)
        bounds = []
        for number, problem in enumerate(problems):  # each may take its share of the time that is left
            share = deadline if deadline == inf else (deadline - time.monotonic()) / (len(problems) - number)
            until = deadline if deadline == inf else time.monotonic() + share
            bounds.append(_problem_bounds(model, rows, problem, *settings, until))
        gammas = [bound.gamma for bound in bounds]
        applying = _applying(model, X, bounds, ovr)
        why = "" if applying else _WHY_NOT_SEPARABLE[ledger.rule.entry.theorem == "perceptron"]
        if why and time.monotonic() > deadline:
            why = "no separator was found within the time limit"
    gamma = None if None in gammas else min(g for g in gammas if g is not None)
    risk = None
    is_one_pass = passes == 1 and not ovr and model.run_.order != "random"
    presented_all = model.n_seen_ >= rows.n  # a training that asks for labels leaves rows out, and not at random
    if is_one_pass and presented_all and ledger.start is None and not hasattr(model, "C_"):
        risk = generalisation_bound(model.n_errors_, max(1, model.n_seen_), delta)
    return Bounds(model.n_mistakes_, passes, radius, gamma, applying, why, risk, delta)


def _without_empty_columns(rows: Rows) -> Rows:
    """Return sparse rows without columns that are 0 in all of them: the best w is 0 there, and would be as wide."""
    if not rows.sparse:
        return rows
    used = np.zeros(rows.d, bool)
    used[rows.source.indices] = True
    if used.all() or not used.any():
        return rows
    place = np.cumsum(used) - 1
    source = rows.source
    return Rows(sp.csr_matrix((source.data, place[source.indices], source.indptr), (rows.n, int(used.sum()))))


_WHY_NOT_SEPARABLE = {
    True: "the data are not separable, and examples have weights or were drawn with replacement",
    False: "the data are not separable, or each class is learned against the rest",
}


def _why_none(model: LinearLearner) -> str:
    ledger: Ledger = model.ledger_
    if not ledger.rule.entry.theorem:
        return f"none is known for rule={ledger.rule.name!r} that can be evaluated on the data"
    if ledger.rule.entry.theorem != "perceptron" and ledger.weighted:
        return f"none is known for rule={ledger.rule.name!r} with example weights"
    if ledger.rule.entry.theorem != "perceptron" and ledger.grown:
        return f"none is known for rule={ledger.rule.name!r} and classes that were first met in the middle of the stream"
    if ledger.start is not None:
        return "training did not start from zero weights"
    return ""


def _problem_bounds(
    model: LinearLearner,
    rows: Rows,
    codes: Codes,
    n_classes: int,
    radius: float,
    passes: int,
    certificate: Any,
    deadline: float,
) -> _ProblemBounds:
    """Return the margin of a problem, and (name, bound) of each theorem for unit weights."""
    separator, rule, bias = None, model.ledger_.rule, model.ledger_.bias
    theorem = rule.entry.theorem
    if certificate is None:
        begun = time.monotonic()  # half of the time: where there is none, the other bounds need the rest
        half = begun + (deadline - begun) / 2
        separator = best_separator(rows, codes, n_classes, bias=bias, deadline=half)
        gamma = None if separator is None else separator.gamma
    else:
        gamma = float(certificate.margin[0]) if certificate.verdict == "separable" else None
    joint = n_classes > 2
    R = radius * (sqrt(2.0) if joint else 1.0)
    possible: list[tuple[str, float]] = []
    if gamma is not None and theorem == "perceptron":
        name = "radius–margin bound 2R²/γ², K classes jointly" if joint else "radius–margin bound R²/γ²"
        possible.append((name, perceptron_bound(R, gamma)))
    elif gamma is not None and theorem == "margin":
        possible.append(("margin rule (R²+2β)/γ²", margin_rule_bound(R, gamma, rule.margin)))
    elif gamma is not None and theorem == "pa":
        possible.append(("passive-aggressive R²/γ²", passive_aggressive_bound(R, 1.0 / gamma)))
    elif gamma is not None and theorem == "pa1":
        possible.append(("PA-I max(R², 1/C)/γ²", pa1_bound(R, 1.0 / gamma, 0.0, rule.C)))
    elif gamma is not None and theorem == "pa2":
        possible.append(("PA-II (R² + 1/2C)/γ²", pa2_bound(R, 1.0 / gamma, 0.0, rule.C)))
    if theorem == "perceptron" and model.run_.order != "random":
        v = smallest_shortfall(rows, codes, n_classes, R, passes, bias=bias, separator=separator, deadline=deadline)
        count = "one pass" if passes == 1 else f"{passes} passes"
        possible.append((f"Freund–Schapire (R‖v‖ + ‖hinge‖)², {count}", v.bound))
    return _ProblemBounds(gamma, possible)


def _applying(model: LinearLearner, X: Any, problems: list[_ProblemBounds], ovr: bool) -> list[Bound]:
    """Return the bounds beside what the run did; one-vs-rest adds up the bounds of its K problems."""
    ledger: Ledger = model.ledger_
    theorem = ledger.rule.entry.theorem
    weighted = ledger.correction.size > 0 and np.ptp(ledger.correction) > 0.0
    if ovr:
        best = [min((bound for _, bound in problem.possible), default=inf) for problem in problems]
        if weighted or theorem != "perceptron" or inf in best:
            return []
        return [Bound("one against the rest: the K bounds together", "mistakes", model.n_mistakes_, sum(best))]
    bounds = problems[0].possible
    if theorem in ("pa", "pa2"):
        return [Bound(name, "Σℓ²", _squared_losses(model, X), bound) for name, bound in bounds]
    if theorem == "pa1":
        return [Bound(name, "errors", model.n_errors_, bound) for name, bound in bounds]
    if weighted:
        effective = effective_mistakes(ledger.correction)
        return [
            Bound(f"{name}, weighted", "(Σs)²/Σs²", effective, bound)
            for name, bound in bounds
            if not name.startswith("Freund")
        ]
    what = "updates" if theorem == "margin" else "mistakes"
    return sorted((Bound(name, what, model.n_mistakes_, bound) for name, bound in bounds), key=lambda b: b.possible)


def _squared_losses(model: LinearLearner, X: Any) -> float:
    """Return Σℓ² of a PA or PA-II run from its ledger: a correction is ℓ/q or ℓ/(q + 1/2C), q = ‖x̃‖², jointly 2‖x̃‖²."""
    ledger: Ledger = model.ledger_
    rows, numbers = ledger.mistaken_rows(X)
    norms = rows.squared_norms()[np.asarray(numbers, np.int64)] + ledger.bias
    correction = ledger.correction if ledger.correction.size else np.ones(len(ledger))
    slack = 0.5 / ledger.rule.C if ledger.rule.entry.theorem == "pa2" else 0.0
    return float(np.sum((correction * (norms * (2.0 if model.run_.joint else 1.0) + slack)) ** 2))
