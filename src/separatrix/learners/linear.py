"""The linear learners without scikit-learn: one perceptron, and the ways of using what it went through.

All present examples, correct on mistakes and write them into a ledger (L1 5, L2 4–5, L3 5, L4 2). They differ in the weights
they predict with: the last, the average, the votes of all, or the best survivor (L2 9, L4 8, L1 3). `estimators.linear` has
the same learners as scikit-learn estimators, under their public names and with their parameters explained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from separatrix.engine.ledger import NEVER
from separatrix.engine.memory_passes import Watcher
from separatrix.engine.parameters import Constraint, boolean, choices, none, number, whole
from separatrix.engine.parcel import Parcel, State
from separatrix.engine.pocket import Pocket
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Array, Floats, Rows, feature_names_of
from separatrix.engine.run import Run
from separatrix.engine.stopping import History
from separatrix.engine.votes import Ballot
from separatrix.engine.weights import Flat, Weights
from separatrix.learners.inputs import HeldOut
from separatrix.learners.linear_base import LinearLearner
from separatrix.learners.online import OnlineLearner


class LastLearner(OnlineLearner):
    """The perceptron predicting with its last weights."""

    saved_as = "Perceptron"


class AveragedLearner(OnlineLearner):
    """The perceptron predicting with the mean of its weights after each example."""

    saved_as = "AveragedPerceptron"
    averages = True
    constraints: ClassVar[Mapping[str, Constraint]] = {**LinearLearner.constraints, "average_from": whole(1)}

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


class VotedLearner(OnlineLearner):
    """The perceptron predicting by the votes of all its weight vectors, each with its survival count."""

    saved_as = "VotedPerceptron"
    stores_rows = True

    def held_out_scores(self, run: Run, problem: Problem, held_out: HeldOut) -> Callable[[], Floats]:
        """Return a function that counts the votes on the held-out examples, continuing after those counted before."""
        ballot = Ballot(run.ledger, run.joint, held_out.examples())
        return lambda: ballot.count(problem.rows, run.ledger.example)

    def scores(self, rows: Rows) -> Floats:
        """Return the share of the votes, a column for each output."""
        rows.survey(names=feature_names_of(self))
        ballot = Ballot(self.ledger_, self.run_.joint, rows)
        return ballot.count(*self.ledger_.mistaken_rows())


class PocketLearner(LinearLearner):
    """The perceptron predicting with the best of its weight vectors: those with the fewest training mistakes."""

    saved_as = "PocketPerceptron"
    pocket_mistakes_: float

    def _watcher(self, run: Run, problem: Problem) -> Watcher:
        return Pocket(run, problem, tries_last=not self.early_stopping)

    def _train(self, run: Run, problem: Problem, held_out: HeldOut | None) -> History:
        history = super()._train(run, problem, held_out)
        run.used = run.ledger.at(run.ledger.kept or 0, problem.rows.source)
        flat = Flat(run.last.K, run.last.d, problem.rows.sparse, run.used)
        self.pocket_mistakes_ = run.training_mistakes(problem, flat, decided=True)
        return history


class PassiveAggressiveLearner(OnlineLearner):
    """Passive-aggressive learning with the parameters and the weights of scikit-learn's `PassiveAggressiveClassifier`."""

    saved_as = "PassiveAggressive"
    margin = 1.0
    constraints: ClassVar[Mapping[str, Constraint]] = {
        **{k: v for k, v in LinearLearner.constraints.items() if k not in ("rule", "order", "margin")},
        "tol": number(0) | none,
        "shuffle": boolean,
        "loss": choices("hinge", "squared_hinge"),
        "n_jobs": whole() | none,
        "average": whole(0) | boolean,
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
    def averages(self) -> bool:  # type: ignore[override]
        """Whether predictions are made with the mean of the weights."""
        return bool(self.average)

    @property
    def average_from(self) -> int:  # type: ignore[override]
        """The pass at which the average begins; never, where `average` names an example."""
        return 1 if self.average is True else NEVER

    def _begun(self, run: Run) -> dict[str, Any]:
        begun = super()._begun(run)
        rule = begun.pop("rule")
        return begun | {"loss": "hinge" if rule == "pa1" else "squared_hinge"}

    @classmethod
    def unpack(cls, state: State, parcel: Parcel, at: str) -> Self:
        """Return the learner that a parcel holds."""
        model = super().unpack(state, parcel, at)
        for run in model.runs():
            run.heaviest = np.empty(0)
        return model

    def new_run(self, classes: Array, d: int, C: float | str, start: Weights | None = None) -> Run:
        """Return a run whose average begins where `average` says."""
        run = super().new_run(classes, d, C, start)
        run.heaviest = np.empty(0)  # weights multiply the step as they are
        if self.average and self.average is not True:
            run.ledger.average_after = int(self.average) - 1
        return run
