"""What the linear learners share: parameters, input, passes, scores (L1 2 and 5, L2 4–5, L3 4–5, L4 2, L5 2–3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from separatrix.engine.hooks import hook
from separatrix.engine.inputs import HeldOut, names_of, schema_kept
from separatrix.engine.labels import Codes
from separatrix.engine.ledger import Ledger
from separatrix.engine.orders import ORDERS
from separatrix.engine.progress import passes_bar
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Rows
from separatrix.engine.rules import RULES, TIES, Rule
from separatrix.engine.run import Cycle, Outcome, Problem, Run, Watcher, train
from separatrix.engine.weights import Weights, n_outputs
from separatrix.estimators.base import ErrorDrivenClassifier
from separatrix.learners.calibration import Calibrated, cross_fitted_slope, find_slope

if TYPE_CHECKING:
    from separatrix.analysis.bounds import Bounds
    from separatrix.learners.auto_c import Choice


MOST_MATRIX_BYTES = 1 << 31


class LinearLearner(Calibrated, ErrorDrivenClassifier):
    """What the linear learners share: the parameters, the passes, the ledger, and scores ⟨w,x⟩ + b."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rule": [StrOptions(set(RULES))],
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "margin": [Interval(Real, 0, None, closed="left")],
        "tie": [StrOptions(set(TIES))],
        "multi_class": [StrOptions({"joint", "ovr"})],
        "order": [StrOptions(set(ORDERS))],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "calibrate": [StrOptions({"sigmoid"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "record": ["boolean"],
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
        class_weight: Any = None,
        calibrate: str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        record: bool = False,
    ) -> None:
        self.rule = rule
        self.C = C
        self.margin = margin
        self.tie = tie
        self.multi_class = multi_class
        self.order = order
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.record = record

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Make passes over X until one is without a mistake, or `max_iter`.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_examples, n_features); one of Dask is trained on where it lies, in
            shards (docs/scaling.md)
        y : labels
        sample_weight : weight of each example; it scales the correction, or C where the rule has one; 0: do not present
        X_val, y_val : the caller's own held-out examples, scored after each pass into `validation_scores_`; with
            `early_stopping=True` they take the place of a held-out fraction of X
        """
        self._validate_params()
        if hasattr(X, "__dask_graph__"):
            hook("fit_on_cluster")(self, X, y, sample_weight, X_val, y_val)
            return self
        with schema_kept(self):
            y, classes, problem, held_out = self._examples(X, y, sample_weight, X_val, y_val)
            rows = problem.rows
            radius_squared = rows.survey(problem.weight, names_of(self))
            start, seed = self._start(classes, rows.d) if self.warm_start else None, self._seed()
            choice = self._choose(classes, problem, held_out, start, seed) if self.C == "auto" else None
            run = self._new_run(classes, rows.d, self.C if choice is None else choice.C, start)
            run.radius_squared = radius_squared
            run.left_out, run.order, run.seed = np.flatnonzero(problem.weight == 0.0), self.order, seed
            run.ledger.weighted = bool(np.any((problem.weight != 0.0) & (problem.weight != 1.0)))
            outcome = self._train(run, problem, held_out)
            slope = None if self.calibrate is None else self._slope(run, problem, held_out, sample_weight, y)
        if run.keeps_rows:
            run.ledger.keep_rows(rows, 0, 0)
        run.rows_seen = rows.n
        self._publish(run, outcome.mistakes_per_pass)
        self.converged_: bool = outcome.converged and run.ledger.cut is None
        self.cycle_: Cycle | None = outcome.cycle
        self._tell(
            validation_scores_=None if held_out is None else outcome.validation_scores,
            slope_=slope,
            C_=None if choice is None else choice.C,
            C_scores_=None if choice is None else choice.accuracy,
            _runs=None,
        )
        return self

    def _tell(self, **found: Any) -> None:
        """Set the attributes that a fit has found; one that is None is not there, not even from the fit before."""
        for name, value in found.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def _slope(self, run: Run, problem: Problem, held_out: HeldOut | None, sample_weight: Any, y: Array) -> float:
        """Return the slope of the probabilities, found on the caller's held-out examples or by cross-fitting."""
        if held_out is not None and held_out.rows is not problem.rows:
            return find_slope(self._held_out_scores(run, problem, held_out)(), held_out.codes, NO_WEIGHT)
        if run.ledger.start is not None:
            raise ValueError("after a warm start every example of X has been seen: calibrate needs X_val and y_val")
        weight = self._weight(sample_weight, y, run.classes)
        return cross_fitted_slope(self, run.rule.C, problem.rows, problem.codes, weight, run.seed)

    def _train(self, run: Run, problem: Problem, held_out: HeldOut | None) -> Outcome:
        run.last.lay(problem.rows.sparse)
        watcher = self._watcher(run, problem)
        accuracy = None
        if held_out is not None:
            scores = self._held_out_scores(run, problem, held_out)
            accuracy = partial(self._accuracy, scores, held_out.codes, len(run.classes))
        with passes_bar(self.verbose, self.max_iter, type(self).__name__) as progress:
            return train(
                run,
                problem,
                order=run.order,
                seed=run.seed,
                max_iter=self.max_iter,
                average_from=getattr(self, "average_from", 1),
                early_stopping=self.early_stopping,
                patience=self.n_iter_no_change,
                tol=getattr(self, "tol", None),
                held_out_score=accuracy,
                watcher=watcher,
                verdict=partial(self._verdict, run, problem),
                progress=progress,
            )

    def _verdict(self, run: Run, problem: Problem, seconds: float) -> str:
        """Ask for a proof that the presented examples can, or cannot, all be got right."""
        shown = problem.taken(np.flatnonzero(problem.weight)) if problem.weight.size else problem
        if len(np.unique(shown.codes)) < len(run.classes):
            return "undecided"  # a class of which no example is presented: the certificate is about classes with examples
        targets = [shown.codes]
        if len(run.classes) > 2 and not run.joint:
            targets = [(shown.codes == k).astype(np.int32) for k in range(len(run.classes))]
        K = len(run.classes) if run.joint else 2
        prove = hook("prove")
        verdicts = {prove(shown.rows, codes, K, run.bias, False, seconds / len(targets)).verdict for codes in targets}
        return next(v for v in ("inseparable", "touching", "undecided", "separable") if v in verdicts)

    def _accuracy(self, scores: Callable[[], Floats], codes: Codes, n_classes: int) -> float:
        return float(np.mean(self._decide(scores(), n_classes) == codes))

    # What the kinds of learners do differently.

    _averages = _stores_rows = False

    def _watcher(self, run: Run, problem: Problem) -> Watcher | None:
        return None

    def _held_out_scores(self, run: Run, problem: Problem, held_out: HeldOut) -> Callable[[], Floats]:
        """Return a function that scores the held-out examples with the weights that would be used now."""
        return lambda: held_out.rows.scores(*run.weights(), held_out.which)

    # State.

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return hasattr(self, "_run")

    def _choose(
        self, classes: Array, problem: Problem, held_out: HeldOut | None, start: Weights | None, seed: int
    ) -> Choice:
        """Return the C of a grid that does best on held-out examples."""
        from separatrix.learners.auto_c import choose

        self._check_choosable()
        template = self._new_run(classes, problem.rows.d, 1.0, start)
        template.seed = seed
        return choose(
            *(template, problem, held_out),
            order=self.order,
            max_iter=self.max_iter,
            fraction=self.validation_fraction,
            decide=partial(self._decide, n_classes=len(classes)),
        )

    def _check_choosable(self) -> None:
        if not RULES[self.rule].has_C:
            with_C = ", ".join(name for name, entry in RULES.items() if entry.has_C)
            raise ValueError(f'C="auto" chooses for rules that have a C ({with_C}), but rule={self.rule!r}')

    def _new_run(self, classes: Array, d: int, C: float | str, start: Weights | None = None) -> Run:
        side, outputs = d + 1, n_outputs(len(classes))
        if RULES[self.rule].spread == "full" and 8 * outputs * side**2 > MOST_MATRIX_BYTES:
            raise ValueError(
                f'rule="{self.rule}" keeps a matrix of {side:,} × {side:,} for each of {outputs} outputs, '
                f"{8 * outputs * side**2 / 1e9:,.1f} GB: it is for few features; "
                'rule="arow" keeps a variance for each weight'
            )
        return Run(
            classes,
            d,
            bias=self.fit_intercept,
            tie=self.tie,
            multi_class=self.multi_class,
            average=self._averages,
            scored=self.record,
            rule=Rule(self.rule, float(self.margin), float(C)),
            keeps_rows=self.record or self._stores_rows,
            start=start,
        )

    def _start(self, classes: Array, n_features: int) -> Weights | None:
        if not hasattr(self, "_run"):
            return None
        if not np.array_equal(classes, self.classes_) or self._run.last.d != n_features:
            raise ValueError("warm_start=True needs the same classes and features as the fit before")
        self._check_unchanged(self._run)
        return self._run.last.weights()

    def _check_unchanged(self, run: Run) -> None:
        """Raise where a parameter that the weights depend on was changed since the run began."""
        for name, value in self._begun(run).items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} was {value!r} when learning began and cannot change on the way: fit anew")

    def _begun(self, run: Run) -> dict[str, Any]:
        """Return the parameters that the weights depend on, as they were when the run began."""
        begun = {"fit_intercept": run.bias, "tie": run.tie, "multi_class": run.multi_class, **run.rule._asdict()}
        begun["rule"] = begun.pop("name")
        begun["C"] = self.C if self.C == "auto" and hasattr(self, "C_") else begun["C"]
        return begun

    def _publish(self, run: Run, per_pass: list[int]) -> None:
        self._run, run.per_pass = run, per_pass
        self.classes_ = run.classes
        self.ledger_: Ledger = run.ledger
        self.mistakes_per_pass_ = list(per_pass)
        self.n_mistakes_ = sum(per_pass)
        self.n_errors_ = run.errors
        self.n_iter_ = len(per_pass)
        self.n_seen_ = run.ledger.steps + run.steps_dropped
        self.radius_ = float(np.sqrt(run.radius_squared + run.bias))

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
        return self._linear_scores(rows, *self._run.weights())

    def predict(self, X: Any) -> Array:
        """Return the predicted labels; a score of exactly 0 goes as `tie` says ("mistake": to `classes_[0]`)."""
        if hasattr(X, "__dask_graph__"):
            check_is_fitted(self)
            labels: Array = hook("predict_on_cluster")(self, X)
            return labels
        return super().predict(X)

    def bounds(self, X: Any, y: Any, certificate: Any = None) -> Bounds:
        """Return mistakes made beside mistakes possible on the training data; a certificate spares finding the margin."""
        check_is_fitted(self)
        bounds: Bounds = hook("report_bounds")(self, X, y, certificate)
        return bounds
