"""What the linear learners share: parameters, input, passes, scores (L1 2 and 5, L2 4–5, L3 4–5, L4 2, L5 2–3)."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_random_state, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from separatrix.labels import Codes, encode, encode_as, newcomers, plain, with_newcomer
from separatrix.ledger import Ledger
from separatrix.orders import ORDERS, Visits
from separatrix.progress import passes_bar
from separatrix.rows import NO_ORDER, NO_WEIGHT, Array, Floats, Ints, Rows, frozen
from separatrix.rules import RULES, TIES, tie_code
from separatrix.survivors import Ballot, Pocket
from separatrix.training import Cycle, Problem, Run, train
from separatrix.weights import Flat, Weights

if TYPE_CHECKING:
    from separatrix.bounds import Bounds


class HeldOut(NamedTuple):
    """Examples kept out of training: some rows (none named: all) and their classes."""

    rows: Rows
    which: Ints
    codes: Codes

    def examples(self) -> Rows:
        """Return the rows themselves."""
        return self.rows.take(self.which) if self.which.size else self.rows


def example_weight(sample_weight: Any, n: int) -> Floats:
    """Return the weight of each of n examples, or an empty array where all are 1; raise for what cannot be a weight."""
    if sample_weight is None:
        return NO_WEIGHT
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}, but there are {n} examples: it must be ({n},)")
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0.0)))
    if wrong.size:
        raise ValueError(
            f"sample_weight[{wrong[0]}] is {weight[wrong[0]]}: a weight must be finite, and negative values have no meaning"
        )
    return weight


def check_newcomers(run: Run, labels: list[Any]) -> None:
    """Raise before anything is learned if the run could not take these classes one after the other."""
    classes = run.classes
    for label in labels:
        classes, _ = with_newcomer(classes, label)
    tie_code(run.tie, len(classes), run.multi_class)


class LinearLearner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the linear learners share: the parameters, the passes, the ledger, and scores ⟨w,x⟩ + b."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rule": [StrOptions(set(RULES))],
        "tie": [StrOptions(set(TIES))],
        "multi_class": [StrOptions({"joint", "ovr"})],
        "order": [StrOptions(set(ORDERS))],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "record": ["boolean"],
    }
    _average = False
    _keeps_rows = False

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
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        record: bool = False,
    ) -> None:
        self.rule = rule
        self.tie = tie
        self.multi_class = multi_class
        self.order = order
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.record = record

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Make passes over X until one is without a mistake, or `max_iter`.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_examples, n_features)
        y : labels
        sample_weight : weight of each example; it scales the correction, and 0 means "do not present"
        X_val, y_val : the caller's own held-out examples, scored after each pass into `validation_scores_`; with
            `early_stopping=True` they take the place of a held-out fraction of X
        """
        self._validate_params()
        rows, y = self._rows_and_labels(X, y, reset=True)
        classes, codes = encode(y)
        if len(classes) < 2:
            raise ValueError(f"a boundary needs two classes, but y has only 1 class: {classes.tolist()}")
        weight = self._weight(sample_weight, rows, y, classes, codes)
        held_out = self._held_out(X_val, y_val, rows, classes, codes, weight)
        if held_out is not None and held_out.rows is rows:
            weight = np.ones(rows.n) if not weight.size else weight
            weight[held_out.which] = 0.0
        if rows.n and weight.size and not np.any(weight):
            raise ValueError("every sample_weight is zero: nothing is left to learn from")
        problem = Problem(rows, frozen(codes), frozen(weight))
        radius = rows.survey(problem.weight, self._names())

        run = self._new_run(classes, rows.d, self._start(classes) if self.warm_start else None)
        run.last.lay(rows.sparse)
        run.seed, run.left_out = (seed := self._seed()), np.flatnonzero(problem.weight == 0.0)
        pocket = Pocket(run, problem) if self._pockets else None
        ballot = Ballot(run.ledger, run.joint, held_out.examples()) if held_out is not None and self._votes else None

        def held_out_accuracy(judge: HeldOut) -> float:
            if ballot is not None:
                scores = ballot.count(rows, run.ledger.example)
            else:
                scores = judge.rows.scores(*(pocket.best if pocket is not None else run.weights()), judge.which)
            return float(np.mean(self._decide(scores, len(classes)) == judge.codes))

        with passes_bar(self.verbose, self.max_iter, type(self).__name__) as progress:
            outcome = train(
                run,
                problem,
                order=self.order,
                seed=seed,
                max_iter=self.max_iter,
                average_from=getattr(self, "average_from", 1),
                patience=self.n_iter_no_change if self.early_stopping else None,
                held_out_score=None if held_out is None else partial(held_out_accuracy, held_out),
                watcher=pocket,
                progress=progress,
            )
        if pocket is not None and not self.early_stopping:
            pocket.finish(run, problem)
        if self.record or self._keeps_rows:
            run.ledger.keep_rows(rows, 0, 0)
        run.rows_seen = rows.n
        self._publish(run, radius, outcome.mistakes_per_pass)
        self.converged_: bool = outcome.converged and run.ledger.cut is None
        self.cycle_: Cycle | None = outcome.cycle
        if held_out is not None:
            self.validation_scores_ = outcome.validation_scores
        if pocket is not None:
            run.used = run.ledger.at(run.ledger.kept or 0, rows.source)
            self.pocket_mistakes_ = run.training_mistakes(problem, Flat(run.last.K, rows.d, rows.sparse, run.used))
        return self

    # What a kind of learner is.

    _votes = False
    _pockets = False

    def _new_run(self, classes: Array, d: int, start: Weights | None = None) -> Run:
        return Run(
            classes,
            d,
            bias=self.fit_intercept,
            tie=self.tie,
            multi_class=self.multi_class,
            average=self._average,
            scored=self.record,
            start=start,
        )

    def _start(self, classes: Array) -> Weights | None:
        if not hasattr(self, "_run"):
            return None
        if not np.array_equal(classes, self.classes_) or self._run.last.d != self.n_features_in_:
            raise ValueError("warm_start=True needs the same classes and features as the fit before")
        return self._run.last.weights()

    def _publish(self, run: Run, radius_squared: float, per_pass: list[int]) -> None:
        self._run = run
        self.classes_ = run.classes
        self.ledger_: Ledger = run.ledger
        self.mistakes_per_pass_ = per_pass
        self.n_mistakes_ = sum(per_pass)
        self.n_iter_ = len(per_pass)
        self.n_seen_ = run.ledger.steps + run.steps_dropped
        self.radius_ = float(np.sqrt(radius_squared + self.fit_intercept))

    def _seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    # Input.

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _rows(self, X: Any, reset: bool = False) -> Rows:
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        return Rows(X)

    def _rows_and_labels(self, X: Any, y: Any, reset: bool) -> tuple[Rows, Array]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = plain(column_or_1d(np.asarray(y), warn=True))
        check_consistent_length(X, y)
        rows = self._rows(X, reset)
        if y.dtype.kind not in "biuU":  # whole numbers and strings are labels; anything else has to be looked at
            assert_all_finite(y, input_name="y")
            check_classification_targets(y)
        return rows, y

    def _weight(self, sample_weight: Any, rows: Rows, y: Array, classes: Array, codes: Codes) -> Floats:
        weight = example_weight(sample_weight, rows.n)
        if self.class_weight is None:
            return weight
        factors: Floats = compute_class_weight(self.class_weight, classes=classes, y=y)[codes]
        return factors * weight if weight.size else factors

    def _held_out(self, X_val: Any, y_val: Any, rows: Rows, classes: Array, codes: Codes, weight: Floats) -> HeldOut | None:
        """Return the caller's held-out examples, or a held-out fraction of each class, or None."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val go together: one of them is missing")
        if X_val is not None:
            labels = plain(column_or_1d(np.asarray(y_val), warn=True))
            check_consistent_length(X_val, labels)
            validation = self._rows(X_val)
            validation.survey(names=self._names())
            return HeldOut(validation, NO_ORDER, encode_as(classes, labels))
        if not self.early_stopping:
            return None
        rng = check_random_state(self.random_state)
        chosen: list[Ints] = []
        for k in range(len(classes)):
            members = rng.permutation(np.flatnonzero((codes == k) & (weight != 0.0 if weight.size else True)))
            chosen.append(members[: max(0, min(round(self.validation_fraction * len(members)), len(members) - 1))])
        which = np.sort(np.concatenate(chosen))
        if not which.size:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} of {len(codes)} examples leaves none to hold out: "
                "give more examples, a larger fraction, or X_val and y_val"
            )
        return HeldOut(rows, frozen(which), codes[which])

    # Output.

    @property
    def coef_(self) -> Floats:
        """The weights used: (1, n_features) for two classes, (n_classes, n_features) for more."""
        if not hasattr(self, "_run"):
            raise AttributeError(f"this {type(self).__name__} has no coef_ before it is fitted")
        return self._run.weights().coef

    @property
    def intercept_(self) -> Floats:
        """The bias of each output; zero with `fit_intercept=False`."""
        if not hasattr(self, "_run"):
            raise AttributeError(f"this {type(self).__name__} has no intercept_ before it is fitted")
        return self._run.weights().intercept

    def _scores(self, rows: Rows) -> Floats:
        if rows.sparse:
            rows.survey(names=self._names())
        scores = rows.scores(*self._run.weights())
        if not np.isfinite(scores).all():
            rows.survey(names=self._names())
        return scores

    def _decide(self, scores: Floats, n_classes: int) -> Ints:
        if n_classes > 2:
            winners: Ints = np.argmax(scores, axis=1)
            return winners
        positive = scores[:, 0] >= 0 if self.tie == "+1" else scores[:, 0] > 0
        return positive.astype(np.int64)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores: one a row for two classes (positive: `classes_[1]`), one a class for more."""
        check_is_fitted(self)
        scores = self._scores(self._rows(X))
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> Array:
        """Return the predicted labels; a score of exactly 0 goes as `tie` says ("mistake": to `classes_[0]`)."""
        check_is_fitted(self)
        scores = self._scores(self._rows(X))
        labels: Array = self.classes_[self._decide(scores, len(self.classes_))]
        return labels

    def bounds(self, X: Any, y: Any, certificate: Any = None) -> Bounds:
        """Return mistakes made beside mistakes possible on the training data; a certificate spares finding the margin."""
        from separatrix.bounds import report

        check_is_fitted(self)
        return report(self, X, y, certificate)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the learner takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OnlineLearner(LinearLearner):
    """A linear learner that can go on learning from a stream."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Present the rows of X once, in their order, and go on from what was learned before.

        One row at a time or in batches of any size: the weights come out the same, bit for bit. A class that `classes` did
        not declare is added when its first example comes and starts from zero weights.
        """
        first = not hasattr(self, "_run")
        if first:
            self._validate_params()
        if self.class_weight == "balanced":
            raise ValueError('class_weight="balanced" needs all labels at once; give a dict to partial_fit')
        rows, y = self._rows_and_labels(X, y, reset=first)
        declared = None if classes is None else encode(plain(np.asarray(classes)))[0]
        run = self._new_run(y[:1] if declared is None else declared, rows.d) if first else self._run
        strangers = newcomers(run.classes, y)
        if declared is not None:
            encode_as(declared, y)
            strangers = [(0, label) for _, label in newcomers(run.classes, declared)]
        weight = frozen(self._stream_weight(sample_weight, rows, y))
        radius = rows.survey(weight, self._names())
        check_newcomers(run, [label for _, label in strangers])
        before = len(run.ledger)
        per_pass = [] if first else self.mistakes_per_pass_
        if first or not run.streaming:
            run.streaming = True
            run.average_from_here() if first else None
            run.ledger.begin_pass()
            per_pass = [*per_pass, 0]
        offset = run.rows_seen
        try:
            for (begin, label), (end, _) in zip([(0, None), *strangers], [*strangers, (rows.n, None)], strict=True):
                if label is not None:
                    run.add_class(label)
                codes = np.zeros(rows.n, np.int32)
                codes[begin:end] = encode_as(run.classes, y[begin:end])
                problem = Problem(rows, frozen(codes), weight)
                for at in range(begin, end, rows.block):
                    run.present(problem, [Visits(NO_ORDER, at, min(at + rows.block, end))], offset)
        finally:
            if self.record or self._keeps_rows:
                run.ledger.keep_rows(rows, offset, before)
            run.rows_seen = offset + rows.n
            known = 0.0 if first else self.radius_**2 - self.fit_intercept
            per_pass = [*per_pass[:-1], per_pass[-1] + len(run.ledger) - before]
            self._publish(run, max(radius, known), per_pass)
            self.converged_ = False
            self.cycle_ = None
        return self

    def _stream_weight(self, sample_weight: Any, rows: Rows, y: Array) -> Floats:
        weight = example_weight(sample_weight, rows.n)
        if self.class_weight is None:
            return weight
        factors = np.ones(rows.n)
        for label, factor in self.class_weight.items():
            factors[y == label] = factor
        return factors * weight if weight.size else factors
