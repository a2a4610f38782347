"""The kernel perceptron: the perceptron in the space of a kernel, four ways of predicting from one training (L4 2 and 8)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from separatrix.engine.labels import Codes
from separatrix.engine.loop import train
from separatrix.engine.parameters import Constraint, choices, function, none, number, whole
from separatrix.engine.parcel import MOST, Parcel, State, StateError, flag, word
from separatrix.engine.parcel import whole as whole_of
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Floats, Ints, Rows, feature_names_of
from separatrix.engine.rules import tie_code
from separatrix.engine.stopping import Cycle, History, reasons, why_not_converged
from separatrix.engine.user_warnings import warn_user
from separatrix.estimators.base import ErrorDrivenEstimator
from separatrix.learners.classifier import ErrorDrivenClassifier
from separatrix.learners.inputs import HeldOut, schema_kept, warn_if_sorted
from separatrix.learners.linear_base import LinearLearner
from separatrix.learners.progress import passes_bar
from separatrix.solvers.dual import DualPasses, DualRun
from separatrix.solvers.dual_ledger import NOT_RECORDED, Dropped, DualLedger
from separatrix.solvers.dual_votes import ON_THE_WAY, PREDICTIONS, Voters
from separatrix.solvers.kernel_matrix import Kernel, variance
from separatrix.solvers.projectron import ProjectedRun

OUTGROWN = "the scores outgrew float64: scale the features or the weights down, or lower the degree"


class KernelPerceptron(ErrorDrivenEstimator, ErrorDrivenClassifier):
    """The perceptron in the space of a kernel: its weights are sums of mistakes, so it needs only k(x, z).

    Scores are kept up to date, so that an example visited again meets only the mistakes made since: the cost of training is
    examples × mistakes, not their square. float32 features are multiplied in float32, everything is added in float64.

    Parameters
    ----------
    kernel : "linear" ⟨x,z⟩, "poly" (γ⟨x,z⟩ + coef0)^degree, "rbf" exp(−γ‖x − z‖²), "precomputed" (X is then k between rows
        and training rows), or a function of two matrices that returns k for all pairs of their rows.
    degree, gamma, coef0 : of the kernel; gamma "scale" is 1/(n_features · variance of X), "auto" is 1/n_features.
    predict_with : "last" weights; "averaged" over the examples presented; "voted" by all weights, each with its survival
        count, a score of 0 abstaining; "random": for each row one of them, drawn by survival count. `decision_function` is
        voted the share of the votes, from −1 to 1 for two classes, and at random the score by the weights drawn. All four
        follow from one training: `set_params(predict_with=…)` needs no new fit.
    budget : the examples stored at most. Where the store is full, a mistake corrects by its projection onto what is stored
        (the Projectron of Orabona, Keshet and Caputo 2008); `dropped_` says what that lost.
    cache_mb : memory for products with examples mistaken before, in megabytes; changes the speed and nothing else.
    fit_intercept : learn a bias, by adding 1 to the kernel: the augmented (φ(x), 1) of the linear learners.
    max_iter : passes at most; None: until a pass without a mistake, or a cycle of the scores (cyclic order), or 10,000.
    tie, multi_class, order, early_stopping, validation_fraction, n_iter_no_change, class_weight, random_state, verbose,
    record : as in `Perceptron`; `record=True` stores the score of each mistake and, under a budget, its projection, which
        voted and random predictions then need.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    support_, support_vectors_ : the mistaken examples that are stored: their row numbers, and their rows.
    dual_coef_, intercept_ : scores are k(x, support) · dual_coef_ + intercept_; averaged where the prediction is, else last.
    n_iter_, mistakes_per_pass_, n_mistakes_, n_seen_ : passes made, mistakes in each, in all, examples presented.
    converged_ : whether the last pass was without a mistake.
    cycle_ : `Cycle(start, period)` in passes when the scores at the start of a pass came back (cyclic order), or None.
    ledger_ : the mistakes, in order; `ledger_.at(k)` has the coefficient of each training example after k of them.
    dropped_ : the mistakes that the budget did not store, and how much of each was lost.
    gamma_ : the γ used.

    Examples
    --------
    XOR: no line separates it, a polynomial of degree 2 does.

    >>> from separatrix import KernelPerceptron
    >>> X, y = [[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]
    >>> model = KernelPerceptron(kernel="poly", degree=2, gamma=1, order="cyclic", fit_intercept=False).fit(X, y)
    >>> model.mistakes_per_pass_, model.support_, model.dual_coef_
    ([2, 0], array([0, 1]), array([[ 1.  , -0.875]]))
    >>> model.set_params(predict_with="last").dual_coef_, model.predict(X)
    (array([[ 1., -1.]]), array([ 1, -1, -1,  1]))
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        **LinearLearner.constraints,
        "kernel": choices("linear", "poly", "rbf", "precomputed") | function,
        "degree": whole(0),
        "gamma": choices("scale", "auto") | number(0),
        "coef0": number(closed="neither"),
        "predict_with": choices(*PREDICTIONS),
        "budget": whole(1) | none,
        "cache_mb": number(0),
    }

    def __init__(
        self,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        predict_with: str = "averaged",
        budget: int | None = None,
        cache_mb: float = 200,
        tie: str = "mistake",
        multi_class: str = "joint",
        order: str = "shuffle",
        fit_intercept: bool = True,
        max_iter: int | None = 20,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        record: bool = False,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.predict_with = predict_with
        self.budget = budget
        self.cache_mb = cache_mb
        self.tie = tie
        self.multi_class = multi_class
        self.order = order
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.record = record

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Make passes over X until one is without a mistake, or `max_iter`.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_examples, n_features); precomputed: (n_examples, n_examples)
        y : labels
        sample_weight : weight of each example; it scales the correction, and 0 means "do not present"
        X_val, y_val : the caller's own held-out examples, scored after each pass into `validation_scores_`; with
            `early_stopping=True` they take the place of a held-out fraction of X
        """
        self.check_parameters()
        with schema_kept(self):
            y, classes, problem, held_out = self.read_problem(X, y, sample_weight, X_val, y_val)
            run = self._new_run(problem, classes)
            history = self._train(run, held_out)
        self._publish(run, history)
        self._voters = run.voters()
        if held_out is not None:
            self.validation_scores_ = history.scores
        elif hasattr(self, "validation_scores_"):
            del self.validation_scores_
        if self.order == "cyclic" and not self.converged_:
            warn_if_sorted(problem.codes, self)
        return self

    def _new_run(self, problem: Problem, classes: Array) -> DualRun | ProjectedRun:
        rows, seed = problem.rows, self.seed()
        radius_squared = rows.survey(names=feature_names_of(self))
        if self.kernel == "precomputed" and rows.n != rows.d:
            raise ValueError(f"a precomputed kernel of the training rows must be square, but X has shape {(rows.n, rows.d)}")
        if self.budget is not None and self.predict_with in ON_THE_WAY and not self.record:
            raise ValueError(f"predict_with={self.predict_with!r} needs the weights after every mistake: {NOT_RECORDED}")
        kernel = Kernel(self.kernel, self._gamma(rows), self.coef0, self.degree, self.fit_intercept)
        kernel.choose_precision(rows, radius_squared if self.budget is None else np.inf)
        tie = tie_code(self.tie, len(classes), self.multi_class)
        ledger = DualLedger(classes, rows.n, kernel, tie=tie, scored=self.record, budget=self.budget)
        joint = len(classes) > 2 and self.multi_class == "joint"
        if self.budget is not None:
            return ProjectedRun(kernel, problem, ledger, joint, self.budget, seed)
        return DualRun(kernel, problem, ledger, joint, self.cache_mb, seed)

    def _gamma(self, rows: Rows) -> float:
        if self.gamma == "auto":
            return 1.0 / rows.d
        if self.gamma == "scale":
            spread = 0.0 if self.kernel == "precomputed" else variance(rows)
            return 1.0 / (rows.d * spread) if spread > 0.0 else 1.0
        return float(self.gamma)

    def _train(self, run: DualRun | ProjectedRun, held_out: HeldOut | None) -> History:
        accuracy = None
        if held_out is not None:
            accuracy = partial(self._accuracy, run, held_out.examples(), held_out.codes)
        passes = DualPasses(run, self.order, accuracy)
        ends = reasons(
            order=self.order,
            max_iter=self.max_iter,
            patience=self.n_iter_no_change,
            early_stopping=self.early_stopping,
            repeats=self.budget is None,
        )
        with passes_bar(self.verbose, self.max_iter, type(self).__name__) as progress:
            history = train(passes, ends, after_pass=lambda history: progress(*history.news()), outgrown=OUTGROWN)
        why = why_not_converged(history, rule="perceptron", kernel=True) if self.max_iter is None else None
        if why is not None:
            warn_user(why, ConvergenceWarning)
        return history

    def _accuracy(self, run: DualRun | ProjectedRun, rows: Rows, codes: Codes) -> float:
        scores = run.voters().scores(rows, self.predict_with, run.seed)
        return float(np.mean(self.decide(scores, len(run.ledger.classes)) == codes))

    def _publish(self, run: DualRun | ProjectedRun, history: History) -> None:
        per_pass = history.mistakes
        self._joint, self._draw = run.joint, run.seed
        self.classes_ = run.ledger.classes
        self.threshold_ = None
        self.ledger_: DualLedger = run.ledger
        self.gamma_ = run.kernel.form[1]
        self.mistakes_per_pass_ = per_pass
        self.n_mistakes_ = sum(per_pass)
        self.n_iter_ = len(per_pass)
        self.n_seen_ = run.presented
        self.converged_: bool = history.ended == "clean" and run.ledger.cut is None
        self.cycle_: Cycle | None = history.cycle

    # Saving: the mistakes, and the rows of the examples on which they were made.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put a fitted learner into a parcel."""
        if not parcel.ledger:
            raise StateError("a KernelPerceptron predicts with its mistakes: the ledger cannot be left out")
        ledger, kernel = self.ledger_, self.ledger_.kernel.pack()
        state = super().pack(parcel, at)
        for name in ("mistakes_per_pass_", "validation_scores_"):
            if hasattr(self, name):
                parcel.put(f"{at}.{name}", np.array(getattr(self, name)))
        ledger.pack_budget(parcel, at)
        return {
            **state,
            **self._pack_end(),
            **kernel,
            "n": int(ledger.n_features),
            "tie": int(ledger.tie),
            "joint": bool(self._joint),
            "budget": ledger.budget,
            "seed": int(self._draw),
            "seen": int(self.n_seen_),
            "rows": self._voters.pack(parcel, at),
            "ledger": ledger.pack(parcel, f"{at}.ledger", True),
        }

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the learner that a parcel holds."""
        model = super().unpack(state, parcel, at)
        kernel = Kernel.unpack(state)
        budget = None if state["budget"] is None else whole_of(state, "budget", 1)
        scored, n = flag(state["ledger"], "scored"), whole_of(state, "n", 1)
        ledger = DualLedger(model.classes_, n, kernel, tie=whole_of(state, "tie", 0, 2), scored=scored, budget=budget)
        ledger.unpack(state["ledger"], parcel, f"{at}.ledger")
        if ledger.absent or (len(ledger) and int(ledger.example.max()) >= n):
            raise StateError("its mistakes are missing, or refer to examples that do not exist")
        ledger.unpack_budget(parcel, at)
        model._joint, model._draw = flag(state, "joint"), whole_of(state, "seed", 0, 1 << 128)
        form = "none" if kernel.precomputed else word(state, "rows", ("dense", "csr"))
        model._voters = Voters.unpack(ledger, model._joint, form, model.n_features_in_, parcel, at)
        model.ledger_, model.gamma_, model.n_seen_ = ledger, kernel.form[1], whole_of(state, "seen")
        model.mistakes_per_pass_ = parcel.take(f"{at}.mistakes_per_pass_", "i8", (-1,), low=0, high=MOST).tolist()
        model.n_mistakes_, model.n_iter_ = sum(model.mistakes_per_pass_), len(model.mistakes_per_pass_)
        model._unpack_end(state)
        if f"{at}.validation_scores_" in parcel.arrays:
            model.validation_scores_ = parcel.take(f"{at}.validation_scores_", "f8", (-1,)).tolist()
        return model

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        return hasattr(self, "_voters")

    def after(self, step: int) -> Self:
        """Return this learner as it was after the first `step` examples presented, without training again.

        Under a budget it takes `record=True`.
        """
        self._check_fitted()
        if not 1 <= step <= self.ledger_.steps:
            raise ValueError(f"step must be between 1 and the {self.ledger_.steps} examples presented, got {step}")
        then = copy.copy(self)
        then.ledger_ = ledger = self.ledger_.until(step)
        then._voters = Voters(ledger, self._joint, self._voters.rows, self._voters.support)
        counts = np.diff([mistakes for _, mistakes in ledger.pass_starts], append=len(ledger))
        then.mistakes_per_pass_ = counts.tolist()
        then.n_mistakes_, then.n_iter_, then.n_seen_ = len(ledger), len(counts), step
        then.converged_ = self.converged_ and step == self.ledger_.steps
        return then

    def _mistaken(self) -> tuple[Array, Array] | None:
        """Return the stored examples, and which of them each mistake was made on; under a budget not all are stored."""
        rows = self._voters.rows
        if rows is None or rows.sparse or self.budget is not None:
            return None
        return rows.source, np.searchsorted(self.support_, self.ledger_.example)

    # Output.

    @property
    def dropped_(self) -> Dropped:
        """The mistakes that the budget did not store, and how much of each was lost."""
        return self._fitted("dropped_").ledger_.dropped

    @property
    def support_(self) -> Ints:
        """The row numbers of the mistaken examples that are stored."""
        return self._fitted("support_")._voters.support

    @property
    def support_vectors_(self) -> Any:
        """Their rows; of a precomputed kernel there are none."""
        rows = self._fitted("support_vectors_")._voters.rows
        return np.empty((0, 0)) if rows is None else rows.source

    @property
    def dual_coef_(self) -> Floats:
        """Their coefficients, (1, n_support) for two classes, (n_classes, n_support) for more."""
        return self._fitted("dual_coef_")._voters.coefficients(self.predict_with)

    @property
    def intercept_(self) -> Floats:
        """The bias of each output: the sum of the coefficients; zero with `fit_intercept=False`."""
        bias: Floats = self.dual_coef_.sum(axis=1) * float(self.ledger_.bias)
        return bias

    def _fitted(self, name: str) -> Self:
        if not hasattr(self, "_voters"):
            raise AttributeError(f"this {type(self).__name__} has no {name} before it is fitted")
        return self

    def scores(self, rows: Rows) -> Floats:
        """Return the scores of the rows, a column for each output."""
        self.check_parameters()
        rows.survey(names=feature_names_of(self))
        scores = self._voters.scores(rows, self.predict_with, self._draw)
        if not np.isfinite(scores).all():
            raise ValueError("the scores outgrew float64: scale the features of X as those of the training rows were")
        return scores

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
