"""The linear learners: one perceptron, the four ways of using what it went through, and the passive-aggressive relative.

All present examples, correct on mistakes and write them into a ledger (L1 5, L2 4–5, L3 5, L4 2). They differ in the weights
they predict with: the last, the average, the votes of all, or the best survivor (L2 9, L4 8, L1 3).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from separatrix.engine.inputs import HeldOut, names_of
from separatrix.engine.ledger import NEVER
from separatrix.engine.rows import Array, Floats, Rows
from separatrix.engine.run import Outcome, Problem, Run, Watcher
from separatrix.engine.survivors import Ballot, Pocket
from separatrix.engine.weights import Flat, Weights
from separatrix.estimators.linear_base import LinearLearner
from separatrix.estimators.online import OnlineLearner


class Perceptron(OnlineLearner):
    """The perceptron of the lectures, predicting with its last weights.

    Parameters
    ----------
    rule : what is a mistake, and how large its correction. "perceptron": w ← w + yx where the sign is wrong; "margin": the
        same wherever y·score ≤ `margin`; "pa", "pa1", "pa2": passive-aggressive, as much of yx as brings the margin to 1, or
        less of it; "arow", "arow-full": along Σx, with a variance for each weight or the whole matrix Σ (for few features).
    C : how aggressive "pa1" and "pa2" are; "arow" takes r = 1/C. "auto": a grid of C's is tried in one read of the data, the
        best on held-out examples is kept as `C_` (`C_scores_` has the others), and training goes on with it.
    margin : of the margin rule.
    tie : what a score of 0 means. "mistake" (L4): wrong for either label; "+1" (L1, L5): `classes_[1]`; "-1" (L2), the
        same as "first": `classes_[0]`, and for K classes the first of the tied ones.
    multi_class : "joint" (L2: raise the true class, lower the rival) or "ovr" (one against the rest).
    order : "shuffle" (a new memory-friendly one each pass), "permutation" (uniform), "cyclic", or "random" (draws with
        replacement, L5).
    fit_intercept : learn a bias, by augmenting x with a 1.
    max_iter : passes at most; None: until a pass without a mistake, or a cycle of the weights (cyclic order), or a proof
        that the data are not separable, which is looked for as the passes double; 10,000 passes where nothing is proven.
    early_stopping, validation_fraction, n_iter_no_change : hold out a fraction of each class, stop when its accuracy has
        not risen for so many passes, and go back to the best one.
    class_weight : dict, "balanced" or None; scales the corrections (in rules that have a C, it scales C).
    calibrate : "sigmoid": `predict_proba`, whose most probable class is always the predicted one. Calibrated on X_val where
        given, else on each example's score by a learner trained on the other folds, at the cost of five more fits.
    warm_start : start `fit` from the last weights of the fit before.
    random_state : int, RandomState or None, for the order and the held-out examples.
    verbose : 1 shows a progress bar.
    record : also store the score and the row of each mistake in the ledger.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    n_iter_, mistakes_per_pass_, n_mistakes_, n_seen_ : passes made, mistakes in each, in all, examples presented. Every
        correction is a mistake, with a margin to keep also one of a right answer.
    n_errors_ : examples that the weights would have given another class when they were presented.
    converged_ : whether the last pass was without a mistake.
    cycle_ : `Cycle(start, period)` in passes when the weights at the start of a pass came back (cyclic order), or None.
    ledger_ : the mistakes, in order.
    radius_ : the largest ‖x‖ presented (of (x, 1) with a bias).
    slope_ : with `calibrate`, how fast the probabilities rise with the score.

    Examples
    --------
    Example 1 of L4: three mistakes, then a clean pass.

    >>> from separatrix import Perceptron
    >>> X = [[4, 0], [1, 1], [0, 1], [-2, -2]]
    >>> y = [1, -1, -1, 1]
    >>> p = Perceptron(order="cyclic", fit_intercept=False).fit(X, y)
    >>> p.coef_, p.mistakes_per_pass_, p.converged_
    (array([[ 1., -3.]]), [3, 0], True)
    >>> [p.ledger_.at(k, X).coef.tolist() for k in range(4)]
    [[[0.0, 0.0]], [[4.0, 0.0]], [[3.0, -1.0]], [[1.0, -3.0]]]
    """


class AveragedPerceptron(OnlineLearner):
    """The perceptron predicting with the mean of its weights after each example (L2 9, L4 8).

    Parameters are those of `Perceptron`, and `average_from`: the pass, counted from 1, at which the average begins. Before
    that, and where training ends earlier, the last weights are used. A stream is averaged from its beginning.

    Examples
    --------
    >>> from separatrix import AveragedPerceptron
    >>> X = [[4, 0], [1, 1], [0, 1], [-2, -2]]
    >>> p = AveragedPerceptron(order="cyclic", fit_intercept=False, max_iter=1).fit(X, [1, -1, -1, 1])
    >>> p.coef_ * p.n_seen_
    array([[11., -5.]])
    """

    _averages = True
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LinearLearner._parameter_constraints,
        "average_from": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        rule: str = "perceptron",
        C: float | str = 1.0,
        margin: float = 1.0,
        tie: str = "mistake",
        multi_class: str = "joint",
        order: str = "shuffle",
        fit_intercept: bool = True,
        max_iter: int | None = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        average_from: int = 1,
        class_weight: Any = None,
        calibrate: str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        record: bool = False,
    ) -> None:
        super().__init__(
            rule=rule,
            C=C,
            margin=margin,
            tie=tie,
            multi_class=multi_class,
            order=order,
            fit_intercept=fit_intercept,
            max_iter=max_iter,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            class_weight=class_weight,
            calibrate=calibrate,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
            record=record,
        )
        self.average_from = average_from


class VotedPerceptron(OnlineLearner):
    """The perceptron predicting by the votes of all its weight vectors, each with its survival count (L4 8).

    No weight vector but the last is ever built: an example is scored against the mistakes' rows, and running sums give the
    score of each voter. A voter with a score of 0 (K classes: a tie for the highest) abstains. `decision_function` is the
    share of the votes, from −1 to 1 for two classes; `coef_` is the last voter.

    Parameters are those of `Perceptron`.

    Examples
    --------
    >>> from separatrix import VotedPerceptron
    >>> X = [[4, 0], [1, 1], [0, 1], [-2, -2]]
    >>> p = VotedPerceptron(order="cyclic", fit_intercept=False, max_iter=1).fit(X, [1, -1, -1, 1])
    >>> p.decision_function([[1, 2], [1, -1]]).tolist()
    [0.5, 1.0]
    """

    _stores_rows = True

    def _held_out_scores(self, run: Run, problem: Problem, held_out: HeldOut) -> Callable[[], Floats]:
        ballot = Ballot(run.ledger, run.joint, held_out.examples())
        return lambda: ballot.count(problem.rows, run.ledger.example)

    def _scores(self, rows: Rows) -> Floats:
        rows.survey(names=names_of(self))
        ballot = Ballot(self.ledger_, self._run.joint, rows)
        return ballot.count(*self.ledger_.mistaken_rows())


class PocketPerceptron(LinearLearner):
    """The perceptron predicting with the best of its weight vectors (the pocket): those with the fewest training mistakes.

    After each pass the ten weight vectors of it that survived longest are tried on all training examples, and at the end
    the last one; each replaces the pocketed one only when it makes fewer mistakes. The pocket needs the whole training set,
    hence has no `partial_fit`.
    `pocket_mistakes_` is the number of training mistakes (by weight, where examples have weights) of `coef_`.

    Parameters are those of `Perceptron`.

    Examples
    --------
    XOR cannot be separated; with a bias one mistake is the best there is.

    >>> from separatrix import PocketPerceptron
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
    >>> PocketPerceptron(random_state=0).fit(X, y).score(X, y)
    0.75
    """

    def _watcher(self, run: Run, problem: Problem) -> Watcher:
        return Pocket(run, problem)

    def _train(self, run: Run, problem: Problem, held_out: HeldOut | None) -> Outcome:
        outcome = super()._train(run, problem, held_out)
        run.used = run.ledger.at(run.ledger.kept or 0, problem.rows.source)
        flat = Flat(run.last.K, run.last.d, problem.rows.sparse, run.used)
        self.pocket_mistakes_ = run.training_mistakes(problem, flat, decided=True)
        return outcome


class PassiveAggressive(OnlineLearner):
    """Passive-aggressive learning with the parameter names of scikit-learn's `PassiveAggressiveClassifier` (Crammer 2006).

    On each example whose margin is under 1, as much of it is added as brings the margin to 1, but no more than C
    (`loss="hinge"`, PA-I), or less the larger the step (`loss="squared_hinge"`, PA-II). The other learners do the same with
    `rule="pa1"` and `rule="pa2"`; `AveragedPerceptron(rule="pa1")` is what we recommend.
    docs/coming-from/scikit-learn.md lists the differences from scikit-learn.

    Parameters
    ----------
    C, fit_intercept, max_iter, early_stopping, validation_fraction, n_iter_no_change, random_state, verbose, warm_start,
    class_weight : as in `Perceptron`; also `C="auto"`.
    tol : stop when the mean loss of a pass has not fallen by `tol` for `n_iter_no_change` passes; None: never for that.
    shuffle : a new order each pass; False: in the order of the rows.
    loss : "hinge" (PA-I) or "squared_hinge" (PA-II).
    n_jobs : accepted and not needed: the classes learn jointly, in one thread.
    average : True: predict with the mean of the weights; a number: the mean from that example on.
    tie, multi_class, calibrate, record : as in `Perceptron`.

    Examples
    --------
    >>> from separatrix import PassiveAggressive
    >>> X = [[4, 0], [1, 1], [0, 1], [-2, -2]]
    >>> PassiveAggressive(fit_intercept=False, random_state=0).fit(X, [1, -1, -1, 1]).predict(X).tolist()
    [1, -1, -1, 1]
    """

    margin = 1.0
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{k: v for k, v in LinearLearner._parameter_constraints.items() if k not in ("rule", "order", "margin")},
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "n_jobs": [Integral, None],
        "average": [Interval(Integral, 0, None, closed="left"), "boolean"],
    }

    def __init__(
        self,
        *,
        C: float | str = 1.0,
        fit_intercept: bool = True,
        max_iter: int | None = 1000,
        tol: float | None = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        verbose: int = 0,
        loss: str = "hinge",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        class_weight: Any = None,
        average: bool | int = False,
        tie: str = "mistake",
        multi_class: str = "joint",
        calibrate: str | None = None,
        record: bool = False,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.verbose = verbose
        self.loss = loss
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.average = average
        self.tie = tie
        self.multi_class = multi_class
        self.calibrate = calibrate
        self.record = record

    @property
    def rule(self) -> str:  # type: ignore[override]
        """The rule that goes with the loss."""
        return "pa1" if self.loss == "hinge" else "pa2"

    @property
    def order(self) -> str:  # type: ignore[override]
        """The order of a pass."""
        return "shuffle" if self.shuffle else "cyclic"

    @property
    def _averages(self) -> bool:  # type: ignore[override]
        return bool(self.average)

    @property
    def average_from(self) -> int:
        """The pass at which the average begins; never, where it is told by the example."""
        return 1 if self.average is True else NEVER

    def _begun(self, run: Run) -> dict[str, Any]:
        begun = super()._begun(run)
        rule = begun.pop("rule")
        return begun | {"loss": "hinge" if rule == "pa1" else "squared_hinge"}

    def _new_run(self, classes: Array, d: int, C: float | str, start: Weights | None = None) -> Run:
        run = super()._new_run(classes, d, C, start)
        if self.average and self.average is not True:
            run.ledger.average_after = int(self.average) - 1
        return run
