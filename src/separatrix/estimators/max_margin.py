"""The margin of a given w, and the separator of largest margin (L4 6 and 9, L2 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from separatrix.engine.labels import Codes, as_labels, encode
from separatrix.engine.parameters import Constraint, boolean, choices, instance_of, none, number, seed, whole
from separatrix.engine.parcel import MOST, Parcel, State
from separatrix.engine.parcel import number as number_of
from separatrix.engine.parcel import whole as whole_of
from separatrix.engine.rows import Array, Floats, Ints, Rows, as_rows, feature_names_of
from separatrix.engine.rules import MULTI_CLASS
from separatrix.engine.user_warnings import warn_user
from separatrix.engine.weights import Weights, n_outputs
from separatrix.estimators.base import Estimator
from separatrix.estimators.notebook import number as shown_number
from separatrix.learners.classifier import PlainClassifier, random_generator
from separatrix.learners.inputs import example_weight, schema_kept, weight_by_class
from separatrix.solvers.hard_margin import solve_margin
from separatrix.solvers.soft_margin import ABSENT, AUGMENTED, FREE, MarginProblem, Solution


def margin(w: Any, X: Any, y: Any, *, b: float = 0.0, signed: bool = True) -> float:
    """Return the margin of the hyperplane ⟨w,x⟩ + b = 0 on labelled examples (L4 6).

    Parameters
    ----------
    w : the weights
    X, y : examples and labels of two classes; the second in sorted order is +1. One class alone must be +1, −1, 0 or 1.
    b : the bias
    signed : True: min y(⟨w,x⟩ + b)/‖w‖, negative for a w that errs. False: min |⟨w,x⟩ + b|/‖w‖, the distance to the nearest
        example, right or wrong.

    Examples
    --------
    On the example of L4 item 6, w = (1, 0) is 0.01 away from the nearest point, and wrong about another.

    >>> from separatrix import margin
    >>> X, y = [[1, -1], [-1, -1], [0.01, 0], [-1, 0]], [1, 1, 1, -1]
    >>> margin([1, 0], X, y, signed=False), margin([1, 0], X, y)
    (0.01, -1.0)
    """
    rows = as_rows(X)
    rows.survey()
    w = np.asarray(w, dtype=np.float64).reshape(-1)
    if w.shape != (rows.d,):
        raise ValueError(f"w has {w.size} weights, but X has {rows.d} features")
    length = float(np.linalg.norm(w))
    if not 0.0 < length < np.inf:
        raise ValueError("w has no direction: its length must be finite and above 0")
    scores = rows.scores(w[None], np.array([b]))[:, 0]
    sides = _sides(y)
    if len(scores) != len(sides):
        raise ValueError(f"X and y have inconsistent numbers of samples: [{len(scores)}, {len(sides)}]")
    distances = sides * scores if signed else np.abs(scores)
    return float(distances.min()) / length


def _sides(y: Any) -> Floats:
    """Return ±1 for labels of two classes in any form."""
    y = as_labels(y)
    classes, codes = encode(y)
    if len(classes) > 2:
        raise ValueError(f"the margin of one w is for two classes, but y has {len(classes)}")
    if len(classes) == 1:
        if classes[0] not in (-1, 0, 1):
            raise ValueError(f"y has only 1 class, {classes.tolist()[0]!r}, which could be either side: use +1 or −1")
        return np.full(len(y), 1.0 if classes[0] == 1 else -1.0)
    return np.where(codes == 1, 1.0, -1.0)


class MaxMarginClassifier(Estimator, PlainClassifier):
    """The separator of largest margin, hard or soft, with the proof of how close to it the weights are (L2 10, L4 9).

    Minimises ½‖w‖² + C·Σ max(0, 1 − y(⟨w,x⟩ + b)); for K > 2 classes jointly ½‖W‖² + C·Σ max(0, 1 − lead of the true class).
    Without `C` every example must be right by a lead of 1, and data that cannot be separated are refused. Dual coordinate
    descent, or least squares on the support vectors; either way it ends with the duality gap, computed from
    scratch from the data and `dual_coef_`.

    Parameters
    ----------
    C : what a violation costs; None or infinity: a hard margin.
    multi_class : "joint" (one problem for K classes) or "ovr" (one against the rest).
    fit_intercept : True: a bias that costs nothing. "augmented": the bias is the weight of one more feature, a 1, and costs
        what a weight costs (L3 5, and what LIBLINEAR does). False: none.
    tol : the duality gap to reach, as a part of the objective.
    max_iter : passes of the descent at most.
    class_weight : dict, "balanced" or None; scales `C`.
    random_state : int, RandomState or None, for the order of the steps.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    n_iter_ : passes of the descent; 0 where least squares sufficed.
    objective_, dual_gap_ : the objective reached, and by how much it is above the best there is, at most.
    margin_ : 1/‖w‖, from the boundary to the edge of the street; the margin of the data where it is hard ("augmented":
        of the augmented data, 1/‖(w,b)‖; "ovr": one a class).
    support_, dual_coef_ : the support vectors, and their multipliers α·y (K classes: one for each class).

    Examples
    --------
    Example 1 of L4: the best separator through the origin is (1, −5), its margin 4/√26.

    >>> from separatrix import MaxMarginClassifier
    >>> X, y = [[4, 0], [1, 1], [0, 1], [-2, -2]], [1, -1, -1, 1]
    >>> model = MaxMarginClassifier(C=None, fit_intercept=False).fit(X, y)
    >>> (model.coef_ * 4).round(9), round(model.margin_ * 26**0.5, 9), model.support_
    (array([[ 1., -5.]]), 4.0, array([0, 1]))
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "C": number(0, closed="right") | none,
        "multi_class": choices(*MULTI_CLASS),
        "fit_intercept": boolean | choices("augmented"),
        "tol": number(0, closed="neither"),
        "max_iter": whole(1),
        "class_weight": instance_of(dict) | choices("balanced") | none,
        "random_state": seed,
    }

    def __init__(
        self,
        *,
        C: float | None = 1.0,
        multi_class: str = "joint",
        fit_intercept: bool | str = True,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the separator of largest margin.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_examples, n_features)
        y : labels
        sample_weight : scales `C` for each example; 0 leaves it out
        """
        self.check_parameters()
        with schema_kept(self):
            rows, y, self.classes_, codes = self._read_examples(X, y)
            rows.survey(names=feature_names_of(self))
            cost = self._costs(sample_weight, y)
            which = np.flatnonzero(cost)
            if not which.size:
                raise ValueError("every sample_weight is zero: nothing is left to learn from")
            if which.size < rows.n:
                rows, codes, cost = rows.take(which), codes[which], cost[which]
            draw = int(random_generator(self.random_state).randint(np.iinfo(np.int32).max))
            solutions = self._solutions(rows, codes, cost, draw)
        self._publish(solutions, which)
        self.threshold_ = None
        return self

    def _costs(self, sample_weight: Any, y: Array) -> Floats:
        weight = example_weight(sample_weight, len(y))
        cost = weight if weight.size else np.ones(len(y))
        if self.class_weight is not None:
            cost = cost * weight_by_class(self.class_weight, y, self.classes_)
        C = np.inf if self.C is None else float(self.C)
        costs: Floats = np.where(cost > 0.0, C, 0.0) if C == np.inf else C * cost
        return costs

    def _solutions(self, rows: Rows, codes: Codes, cost: Floats, seed: int) -> list[Solution]:
        bias = {True: FREE, False: ABSENT, "augmented": AUGMENTED}[self.fit_intercept]
        K = len(self.classes_)
        if K == 2 or self.multi_class == "joint":
            return [self._solved(MarginProblem(rows, codes, K, cost, bias), seed)]
        problem = MarginProblem(rows, codes, 2, cost, bias)
        return [self._solved(problem.relabelled((codes == k).astype(np.int32)), seed) for k in range(K)]

    def _solved(self, problem: MarginProblem, seed: int) -> Solution:
        solution = solve_margin(problem, self.tol, self.max_iter, seed)
        if solution.relative_gap > self.tol:
            warn_user(
                f"the duality gap is {solution.relative_gap:.1e} of the objective after {solution.passes:,} passes, above "
                f"tol={self.tol:g}: scale the features, or raise max_iter or tol",
                ConvergenceWarning,
            )
        return solution._replace(alpha=solution.alpha * problem.sign) if problem.K == 1 else solution

    def _publish(self, solutions: list[Solution], which: Ints) -> None:
        self.coef_: Floats = np.vstack([s.weights.coef for s in solutions])
        self.intercept_: Floats = np.concatenate([s.weights.intercept for s in solutions])
        self.n_iter_ = max(s.passes for s in solutions)
        self.objective_ = sum(s.primal for s in solutions)
        self.dual_gap_ = sum(s.gap for s in solutions)
        alpha = np.hstack([s.alpha.reshape(len(which), -1) for s in solutions])
        support = np.flatnonzero(np.any(alpha != 0.0, axis=1))
        self.support_: Ints = which[support]
        self.dual_coef_: Floats = alpha[support].T.copy()
        lengths = [np.sqrt(2.0 * s.primal) if self.C in (None, np.inf) else self._length(s.weights) for s in solutions]
        margins = [1.0 / float(length) if length > 0.0 else np.inf for length in lengths]
        self.margin_: float | Floats = margins[0] if len(margins) == 1 else np.array(margins)

    def _length(self, weights: Weights) -> float:
        squared = float(np.sum(weights.coef**2))
        return float(np.sqrt(squared + float(np.sum(weights.intercept**2)) * (self.fit_intercept == "augmented")))

    def _facts(self) -> list[tuple[str, str]]:
        margins = ", ".join(shown_number(float(width)) for width in np.atleast_1d(self.margin_))
        support = f"{len(self.support_):,}"
        return [
            ("margin", margins),
            ("support vectors", support),
            ("duality gap", shown_number(self.dual_gap_)),
            *super()._facts(),
        ]

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put a fitted classifier into a parcel."""
        state = super().pack(parcel, at)
        Weights(self.coef_, self.intercept_).pack(parcel, at)
        parcel.put(f"{at}.support", self.support_)
        parcel.put(f"{at}.dual_coef", self.dual_coef_)
        state["found"] = {name: float(getattr(self, name)) for name in ("objective_", "dual_gap_")}
        return state | {"n_iter": int(self.n_iter_), "margin": parcel.put_value("margin", self.margin_)}

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the classifier that a parcel holds."""
        model = super().unpack(state, parcel, at)
        K = n_outputs(len(model.classes_))
        model.coef_, model.intercept_ = Weights.unpack(parcel, at, K, model.n_features_in_)
        model.support_ = parcel.take(f"{at}.support", "i8", (-1,), low=0, high=MOST)
        model.dual_coef_ = parcel.take(f"{at}.dual_coef", "f8", (-1, len(model.support_)))
        model.objective_, model.dual_gap_ = (number_of(state["found"], name) for name in ("objective_", "dual_gap_"))
        model.n_iter_ = whole_of(state, "n_iter")
        margin = parcel.take_value("margin", state["margin"])
        model.margin_ = np.array(margin, dtype=np.float64) if isinstance(margin, list) else float(margin)
        return model

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        return hasattr(self, "coef_")

    def scores(self, rows: Rows) -> Floats:
        """Return the scores of the rows, a column for each output."""
        return self._linear_scores(rows, self.coef_, self.intercept_)
