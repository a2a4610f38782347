"""The linear learners: one perceptron, and the four ways of using what it went through.

All present examples, correct on mistakes and write them into a ledger (L1 5, L2 4–5, L3 5, L4 2). They differ in the weights
they predict with: the last, the average, the votes of all, or the best survivor (L2 9, L4 8, L1 3).
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from separatrix.inputs import HeldOut
from separatrix.learner import LinearLearner
from separatrix.online import OnlineLearner
from separatrix.rows import Floats, Rows
from separatrix.survivors import Ballot, Pocket
from separatrix.training import Outcome, Problem, Run, Watcher
from separatrix.weights import Flat


class Perceptron(OnlineLearner):
    """The perceptron of the lectures, predicting with its last weights.

    Parameters
    ----------
    rule : "perceptron", the update w ← w + yx on a mistake.
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
    class_weight : dict, "balanced" or None; scales the corrections.
    calibrate : "sigmoid": `predict_proba`, whose most probable class is always the predicted one. Calibrated on X_val where
        given, else on each example's score by a learner trained on the other folds, at the cost of five more fits.
    warm_start : start `fit` from the last weights of the fit before.
    random_state : int, RandomState or None, for the order and the held-out examples.
    verbose : 1 shows a progress bar.
    record : also store the score and the row of each mistake in the ledger.

    Attributes
    ----------
    coef_, intercept_, classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    n_iter_, mistakes_per_pass_, n_mistakes_, n_seen_ : passes made, mistakes in each, in all, examples presented.
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
        rows.survey(names=self._names())
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
