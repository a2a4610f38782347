"""The linear learners as scikit-learn estimators: `learners.linear` has the learning, `base` the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.exceptions import ConvergenceWarning

from separatrix.engine.hooks import hook
from separatrix.engine.rows import Array
from separatrix.engine.stopping import History
from separatrix.estimators.base import ErrorDrivenEstimator
from separatrix.estimators.river import classifier_of
from separatrix.learners.linear import (
    AveragedLearner,
    LastLearner,
    PassiveAggressiveLearner,
    PocketLearner,
    VotedLearner,
)

if TYPE_CHECKING:
    from separatrix.analysis.bounds import Bounds


class LinearEstimator(ErrorDrivenEstimator):
    """What the linear estimators add to their learners: Dask collections, and the mistake bounds."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Make passes over X until one is without a mistake, or `max_iter`.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_examples, n_features); a Dask collection is trained on where it is
            stored, in shards (docs/scaling.md)
        y : labels
        sample_weight : weight of each example, which multiplies its correction (in AROW, C); 0: do not present
        X_val, y_val : the caller's own held-out examples, scored after each pass into `validation_scores_`; with
            `early_stopping=True` they take the place of a held-out fraction of X
        """
        if hasattr(X, "__dask_graph__"):
            self.check_parameters()
            hook("fit_on_cluster")(self, X, y, sample_weight, X_val, y_val)
            return self
        fitted: Self = super().fit(X, y, sample_weight, X_val, y_val)
        return fitted

    def predict(self, X: Any) -> Array:
        """Return the predicted labels; a score of exactly 0 goes as `tie` says ("mistake": to `classes_[0]`)."""
        labels: Array
        if hasattr(X, "__dask_graph__"):
            self._check_fitted()
            labels = hook("predict_on_cluster")(self, X)
        else:
            labels = super().predict(X)
        return labels

    def bounds(self, X: Any, y: Any, certificate: Any = None, *, time_limit: float | None = None) -> Bounds:
        """Return mistakes made beside mistakes possible on the training data; a certificate spares finding the margin.

        After `time_limit` seconds the best margin and the best v found so far are used; the bounds hold, but may be larger.
        """
        self._check_fitted()
        bounds: Bounds = hook("report_bounds")(self, X, y, certificate, time_limit=time_limit)
        return bounds

    def warn_unless_converged(self, history: History, category: type[Warning] = ConvergenceWarning) -> None:
        """Warn, with scikit-learn's category, where training until convergence ended without a clean pass."""
        super().warn_unless_converged(history, category)


class StreamEstimator(LinearEstimator):
    """What the estimators with `partial_fit` add."""

    def to_river(self) -> Any:
        """Return a River classifier that learns as this learner does, and continues from what it has learned.

        It has `learn_one({"free": 1, "money": 1}, "spam")` and `predict_one`, and works with all of River's evaluation.
        Needs `separatrix[river]`.
        """
        return classifier_of(self)


class Perceptron(StreamEstimator, LastLearner):
    """The perceptron of the lectures, predicting with its last weights.

    Parameters
    ----------
    rule : what is a mistake, and how large its correction. "perceptron": w ← w + yx where the sign is wrong; "margin": the
        same wherever y·score ≤ `margin`; "pa", "pa1", "pa2": passive-aggressive, as much of yx as brings the margin to 1, or
        less of it; "arow", "arow-full": along Σx, with a variance for each weight or the whole matrix Σ (for few features).
    C : how aggressive "pa1" and "pa2" are; "arow" takes r = 1/C. "auto": a grid of C's is tried in one read of the data, the
        best on held-out examples is kept as `C_` (`C_scores_` has the others), and training continues with it.
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
    class_weight : dict, "balanced" or None; multiplies the corrections. "arow" multiplies C by it; "pa" and "pa2" divide
        weights by the largest presented so far, where that is above 1.
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


class AveragedPerceptron(StreamEstimator, AveragedLearner):
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


class VotedPerceptron(StreamEstimator, VotedLearner):
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


class PocketPerceptron(LinearEstimator, PocketLearner):
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


class PassiveAggressive(StreamEstimator, PassiveAggressiveLearner):
    """Passive-aggressive learning with the parameter names of scikit-learn's `PassiveAggressiveClassifier` (Crammer 2006).

    On each example whose margin is under 1, as much of it is added as brings the margin to 1, but no more than C
    (`loss="hinge"`, PA-I), or less the larger the step (`loss="squared_hinge"`, PA-II). The other learners do the same with
    `rule="pa1"` and `rule="pa2"`; `AveragedPerceptron(rule="pa1")` is what we recommend.
    docs/coming-from/scikit-learn.md lists the differences from scikit-learn.

    Parameters
    ----------
    C, fit_intercept, max_iter, early_stopping, validation_fraction, n_iter_no_change, random_state, verbose, warm_start,
    class_weight : as in `Perceptron`; also `C="auto"`. Weights multiply the step as they are, as scikit-learn's do: in PA-II
        with a large C and weights above 2, the scores may swing ever farther.
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
