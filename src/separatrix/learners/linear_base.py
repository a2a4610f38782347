"""What the linear learners share: parameters, training, scores, state (L1 2 and 5, L2 4–5, L3 4–5, L4 2, L5 2–3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from separatrix.engine.hooks import hook
from separatrix.engine.labels import Codes
from separatrix.engine.ledger import Ledger
from separatrix.engine.loop import train
from separatrix.engine.memory_passes import MemoryPasses, Watcher
from separatrix.engine.parameters import Constraint, boolean, choices, instance_of, none, number, seed, verbosity, whole
from separatrix.engine.parcel import MOST, Parcel, State, StateError, word
from separatrix.engine.parcel import number as number_of
from separatrix.engine.parcel import whole as whole_number
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Floats, Rows, feature_names_of
from separatrix.engine.rules import MIXES, MULTI_CLASS, ORDERS, RULES, TIES, Rule
from separatrix.engine.run import Run
from separatrix.engine.stopping import Cycle, History, Reason, reasons, why_not_converged
from separatrix.engine.user_warnings import warn_user
from separatrix.engine.weights import Weights, n_outputs
from separatrix.learners.auto_c import Choice, choose
from separatrix.learners.calibration import Calibrated, slope_of
from separatrix.learners.classifier import ErrorDrivenClassifier
from separatrix.learners.forgetting import Forgetting, trained
from separatrix.learners.inputs import HeldOut, schema_kept, warn_if_sorted
from separatrix.learners.progress import passes_bar

_NUMBERS = ("slope_", "C_", "pocket_mistakes_")
"""Attributes of some fits that are numbers, as a model file stores them."""
MOST_MATRIX_BYTES = 1 << 31
"""What the matrices of "arow-full" may take."""


class NotConvergedWarning(UserWarning):
    """Training until convergence ended without a clean pass."""


class LinearLearner(Calibrated, ErrorDrivenClassifier):
    """What the linear learners share: the parameters, the passes, the ledger, and scores ⟨w,x⟩ + b."""

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "rule": choices(*RULES),
        "C": number(0, closed="neither") | choices("auto"),
        "margin": number(0),
        "tie": choices(*TIES),
        "multi_class": choices(*MULTI_CLASS),
        "order": choices(*ORDERS),
        "fit_intercept": boolean,
        "max_iter": whole(1) | none,
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, closed="neither"),
        "n_iter_no_change": whole(1),
        "class_weight": instance_of(dict) | choices("balanced") | none,
        "calibrate": choices("sigmoid") | none,
        "warm_start": boolean,
        "random_state": seed,
        "verbose": verbosity,
        "record": boolean,
    }
    averages: bool = False
    """Whether predictions are made with the mean of the weights."""
    stores_rows: bool = False
    """Whether predictions need the rows of the mistakes."""
    average_from: int = 1
    tol: float | None = None
    _runs: list[Run]
    C_scores_: dict[float, float]
    validation_scores_: list[float]
    shard_mistakes_: Array
    training_error_: float
    training_recalls_: Array
    mix_: str

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
        X : array, CSR matrix or data frame of shape (n_examples, n_features)
        y : labels
        sample_weight : weight of each example, which multiplies its correction; 0: do not present
        X_val, y_val : the caller's own held-out examples, scored after each pass into `validation_scores_`; with
            `early_stopping=True` they take the place of a held-out fraction of X
        """
        return self.fit_without(None, X, y, sample_weight, X_val, y_val)

    def fit_without(
        self, without: Forgetting | None, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """The same; X may be what is left of the data of an earlier fit, whose order and seed are kept."""
        self.check_parameters()
        with schema_kept(self):
            y, classes, problem, held_out = self.read_problem(X, y, sample_weight, X_val, y_val)
            rows = problem.rows
            radius_squared = rows.survey(problem.weight, feature_names_of(self))
            start = self.start_weights(classes, rows.d) if self.warm_start else None
            seed = self.seed() if without is None else without.seed
            choice = self.choose_c(classes, problem, held_out, start, seed) if self.C == "auto" else None

            def begin() -> Run:
                run = self.new_run(classes, rows.d, self.C if choice is None else choice.C, start)
                run.radius_squared = radius_squared
                run.left_out, run.order, run.seed = np.flatnonzero(problem.weight == 0.0), self.order, seed
                run.ledger.weighted = bool(np.any((problem.weight != 0.0) & (problem.weight != 1.0)))
                return run

            run, history = trained(begin, lambda run: self._train(run, problem, held_out), problem, without)
            slope = None if self.calibrate is None else slope_of(self, run, problem, held_out, sample_weight, y)
        if run.keeps_rows:
            run.ledger.keep_rows(rows, 0, 0)
        run.rows_seen = rows.n
        self.publish(
            *(run, history.mistakes, history),
            validation_scores_=None if held_out is None else history.scores,
            slope_=slope,
            threshold_=None,
            C_=None if choice is None else choice.C,
            C_scores_=None if choice is None else choice.accuracy,
            _runs=None,
        )
        self.warn_unless_converged(history)
        if self.order == "cyclic" and not self.converged_:
            warn_if_sorted(problem.codes, self)
        return self

    # Training.

    def _train(self, run: Run, problem: Problem, held_out: HeldOut | None) -> History:
        accuracy = None
        if held_out is not None:
            scores = self.held_out_scores(run, problem, held_out)
            accuracy = partial(self._accuracy, scores, held_out.codes, len(run.classes))
        passes = MemoryPasses(
            *(run, problem),
            average_from=self.average_from,
            accuracy=accuracy,
            prove=partial(self.prove, run, problem),
            watcher=self._watcher(run, problem),
        )
        with passes_bar(self.verbose, self.max_iter, self.public_name()) as progress:
            return train(passes, self.reasons(run), after_pass=lambda history: progress(*history.news()))

    def reasons(self, run: Run) -> list[Reason]:
        """Return the reasons to end a training that the parameters mean."""
        return reasons(
            order=self.order,
            max_iter=self.max_iter,
            patience=self.n_iter_no_change,
            early_stopping=self.early_stopping,
            tol=self.tol,
            repeats=not run.rule.spread,
            ends_on_separable=run.rule.entry.ends,
        )

    def warn_unless_converged(self, history: History, category: type[Warning] = NotConvergedWarning) -> None:
        """Warn where training was to go on until convergence and ended without a clean pass."""
        if self.max_iter is not None:
            return
        why = why_not_converged(history, rule=self.rule, ends_on_separable=RULES[self.rule].ends)
        if why is not None:
            warn_user(why, category)

    def prove(self, run: Run, problem: Problem, seconds: float) -> str:
        """Return what can be proven about the presented examples in so many seconds: can all be got right?"""
        presented = problem.taken(np.flatnonzero(problem.weight)) if problem.weight.size else problem
        if len(np.unique(presented.codes)) < len(run.classes):
            return "undecided"  # a class without a presented example: a certificate is about classes with examples
        targets = [presented.codes]
        if len(run.classes) > 2 and not run.joint:
            targets = [(presented.codes == k).astype(np.int32) for k in range(len(run.classes))]
        K, certify = len(run.classes) if run.joint else 2, hook("prove")
        verdicts = {certify(presented.rows, codes, K, run.bias, False, seconds / len(targets)).verdict for codes in targets}
        return next(v for v in ("inseparable", "touching", "undecided", "separable") if v in verdicts)

    def _accuracy(self, scores: Callable[[], Floats], codes: Codes, n_classes: int) -> float:
        return float(np.mean(self.decide(scores(), n_classes) == codes))

    # What the kinds of learners do differently.

    def _watcher(self, run: Run, problem: Problem) -> Watcher | None:
        return None

    def held_out_scores(self, run: Run, problem: Problem, held_out: HeldOut) -> Callable[[], Floats]:
        """Return a function that scores the held-out examples with the weights that would be used now."""
        return lambda: held_out.rows.scores(*run.weights(), held_out.which)

    # State.

    def is_fitted(self) -> bool:
        """Tell whether there is anything to predict with."""
        return hasattr(self, "run_")

    def choose_c(
        self, classes: Array, problem: Problem, held_out: HeldOut | None, start: Weights | None, seed: int
    ) -> Choice:
        """Return the C of a grid that does best on held-out examples."""
        self.check_choosable()
        template = self.new_run(classes, problem.rows.d, 1.0, start)
        template.seed = seed
        return choose(
            *(template, problem, held_out),
            order=self.order,
            max_iter=self.max_iter,
            fraction=self.validation_fraction,
            decide=partial(self.decide, n_classes=len(classes)),
        )

    def check_choosable(self) -> None:
        """Raise where the rule has no C to choose."""
        if not RULES[self.rule].has_C:
            names = ", ".join(name for name, rule in RULES.items() if rule.has_C)
            raise ValueError(f'C="auto" chooses for rules that have a C ({names}), but rule={self.rule!r}')

    def new_run(self, classes: Array, d: int, C: float | str, start: Weights | None = None) -> Run:
        """Return a run that has learned nothing yet."""
        side, outputs = d + 1, n_outputs(len(classes))
        if RULES[self.rule].spread == "full" and 8 * outputs * side**2 > MOST_MATRIX_BYTES:
            raise ValueError(
                f'rule="arow-full" keeps a matrix of {side:,} × {side:,} for each of {outputs} outputs, '
                f"{8 * outputs * side**2 / 1e9:,.1f} GB: it is for few features; "
                'rule="arow" keeps a variance for each weight'
            )
        return Run(
            classes,
            d,
            bias=self.fit_intercept,
            tie=self.tie,
            multi_class=self.multi_class,
            average=self.averages,
            scored=self.record,
            rule=Rule(self.rule, float(self.margin), float(C)),
            keeps_rows=self.record or self.stores_rows,
            start=start,
        )

    def start_weights(self, classes: Array, n_features: int) -> Weights | None:
        """Return the last weights of the fit before, for a warm start; None before the first fit."""
        if not hasattr(self, "run_"):
            return None
        self._check_unchanged(self.run_, "in a warm start; set warm_start=False, or leave it as it was")
        if not np.array_equal(classes, self.classes_) or self.run_.last.d != n_features:
            raise ValueError("warm_start=True needs the same classes and features as the fit before; set warm_start=False")
        return self.run_.last.weights()

    def _check_unchanged(self, run: Run, when: str = "between calls of partial_fit; call fit() again") -> None:
        """Raise where a parameter that the weights depend on was changed since the run began."""
        run.check_resumable()
        for name, value in self._begun(run).items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} was {value!r} when learning began and cannot change {when}")

    def _begun(self, run: Run) -> dict[str, Any]:
        """Return the parameters that the weights depend on, as they were when the run began."""
        begun = {"fit_intercept": run.bias, "tie": run.tie, "multi_class": run.multi_class, **run.rule._asdict()}
        begun["rule"] = begun.pop("name")
        begun["C"] = self.C if self.C == "auto" and hasattr(self, "C_") else begun["C"]
        return begun

    def publish(self, run: Run, mistakes_per_pass: list[int], history: History | None = None, **attributes: Any) -> None:
        """Set the fitted attributes that follow from a run.

        Parameters
        ----------
        history : how training ended; None while it goes on
        attributes : others to set, or to remove where they are None, so that nothing is left of the fit before
        """
        self.run_, run.per_pass = run, mistakes_per_pass
        self.classes_ = run.classes
        self.ledger_: Ledger = run.ledger
        self.mistakes_per_pass_ = list(mistakes_per_pass)
        self.n_mistakes_ = sum(mistakes_per_pass)
        self.n_errors_ = run.errors
        self.n_iter_ = len(mistakes_per_pass)
        self.n_seen_ = run.ledger.steps + run.steps_dropped
        self.radius_ = float(np.sqrt(run.radius_squared + run.bias))
        self.converged_: bool = history is not None and history.ended == "clean" and run.ledger.cut is None
        self.cycle_: Cycle | None = None if history is None else history.cycle
        for name, value in attributes.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    # Saving.

    def pack(self, parcel: Parcel, at: str) -> State:
        """Put a fitted learner into a parcel: its run, or one for each C that a stream still tries."""
        if not parcel.ledger and self.stores_rows:
            raise StateError(f"a {self.public_name()} predicts with its mistakes: the ledger cannot be left out")
        state = super().pack(parcel, at) | self._pack_end()
        state["numbers"] = {name: float(getattr(self, name)) for name in _NUMBERS if hasattr(self, name)}
        if hasattr(self, "C_scores_"):
            parcel.put(f"{at}.C_scores", np.array([*self.C_scores_.items()], dtype=np.float64).reshape(-1, 2))
        if hasattr(self, "validation_scores_"):
            parcel.put(f"{at}.validation_scores", np.array(self.validation_scores_, dtype=np.float64))
        if hasattr(self, "shard_mistakes_"):
            parcel.put(f"{at}.shard_mistakes", self.shard_mistakes_)
            state["mix"] = self.mix_
        runs = self.runs() if parcel.resume else [self.run_]
        state["chosen"] = next(i for i, run in enumerate(runs) if run is self.run_)
        state["runs"] = [run.pack(parcel, f"{at}.run{i}") for i, run in enumerate(runs)]
        return state

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the learner that a parcel holds."""
        model = super().unpack(state, parcel, at)
        d = model.n_features_in_
        runs = [Run.unpack(model.classes_, d, one, parcel, f"{at}.run{i}") for i, one in enumerate(state["runs"])]
        run = runs[whole_number(state, "chosen", 0, len(runs) - 1)]
        if model.stores_rows and (run.ledger.stored is None or run.ledger.absent):
            raise StateError("the mistakes that it predicts with are missing")
        model.publish(run, run.per_pass)
        if len(runs) > 1:
            model._runs = runs
        model._unpack_end(state)
        for name in _NUMBERS:
            if name in state["numbers"]:
                setattr(model, name, number_of(state["numbers"], name))
        if f"{at}.C_scores" in parcel.arrays:
            model.C_scores_ = dict(parcel.take(f"{at}.C_scores", "f8", (-1, 2)).tolist())
        if f"{at}.validation_scores" in parcel.arrays:
            model.validation_scores_ = parcel.take(f"{at}.validation_scores", "f8", (-1,)).tolist()
        if f"{at}.shard_mistakes" in parcel.arrays:
            model.shard_mistakes_ = parcel.take(f"{at}.shard_mistakes", "i8", (-1, -1), low=0, high=MOST)
            model.mix_ = word(state, "mix", MIXES)
        return model

    def runs(self) -> list[Run]:
        """Return the run that training continues, or all where a stream still tries several C's."""
        return self._runs if any(run is self.run_ for run in getattr(self, "_runs", ())) else [self.run_]

    # Output.

    @property
    def coef_(self) -> Floats:
        """The weights used: (1, n_features) for two classes, (n_classes, n_features) for more."""
        if not hasattr(self, "run_"):
            raise AttributeError(f"this {self.public_name()} has no coef_ before it is fitted")
        return self.run_.weights().coef

    @property
    def intercept_(self) -> Floats:
        """The bias of each output; zero with `fit_intercept=False`."""
        if not hasattr(self, "run_"):
            raise AttributeError(f"this {self.public_name()} has no intercept_ before it is fitted")
        return self.run_.weights().intercept

    def scores(self, rows: Rows) -> Floats:
        """Return the scores of the rows, a column for each output."""
        return self._linear_scores(rows, *self.run_.weights())
