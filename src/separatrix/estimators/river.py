"""Our online learners in River: one example at a time, a dict of named features (L2 6 "ideal for online algorithms")."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import numpy as np

from separatrix.engine.orders import Visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_ORDER, NO_WEIGHT, BareRows, Floats, Ints, frozen
from separatrix.engine.run import Run
from separatrix.engine.votes import Ballot
from separatrix.kernels.learning import rows as kernels
from separatrix.learners.inputs import LabelRuns
from separatrix.learners.online import OnlineLearner

try:
    from river.base import Classifier
except ImportError:
    Classifier = object

_ROOM = 64
_ONE_VISIT = [Visits(NO_ORDER, 0, 1)]


def one_row(d: int, columns: Ints, values: Floats) -> BareRows:
    """Return one sparse row, without the checks of `Rows`: River calls this ten thousand times a second."""
    return BareRows(d, values, columns, np.array([0, len(columns)]))


class RiverClassifier(Classifier):  # type: ignore[misc]
    """One of our online learners as a River classifier; `learner.to_river()` makes it.

    Features are known by their names and get a place when they are first met. Numbers and truth values count as they are; a
    string is a feature of its own, `name=value`, with the value 1. Classes are added when they are first met. Before
    anything was learned the prediction is None, as River has it. Scores of a stream are not calibrated: there are no
    probabilities.
    """

    def __init__(self, learner: OnlineLearner) -> None:
        self.learner = learner
        self._index: dict[Any, int] = {}
        self._runs: list[Run] = []
        self._labels: list[Any] = []
        self._label_runs = LabelRuns()
        if hasattr(learner, "run_"):  # continues with a copy
            names = getattr(learner, "feature_names_in_", np.arange(learner.n_features_in_))
            self._index = {name: j for j, name in enumerate(names.tolist())}
            self._runs = deepcopy(learner.runs())
            self._labels = self._runs[0].classes.tolist()

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Present one example, of weight w."""
        columns, values = self._entries(x, grow=True)
        square = sum(value * value for value in values.tolist())
        if not math.isfinite(square):
            raise ValueError(f"x contains NaN, infinity or a number too large to score: {x!r:.100}")
        if not self._runs:
            first = one_row(max(_ROOM, len(self._index)), columns, values)
            self._runs = self.learner.new_runs(first, np.asarray([y]))
            self._labels = self._runs[0].classes.tolist()
        width = self._runs[0].last.d
        if len(self._index) > width:
            width = max(2 * width, len(self._index))
        if y not in self._labels:
            for run in self._runs:
                run.add_class(y)
            self._labels = self._runs[0].classes.tolist()
        row = one_row(width, columns, values)
        worth = w * (self.learner.class_weight or {}).get(y, 1.0)
        if not 0.0 <= worth < math.inf:
            raise ValueError(f"the weight of an example must be finite and not negative, got {worth}")
        codes = frozen(np.array([self._labels.index(y)], dtype=np.int32))
        problem = Problem(row, codes, NO_WEIGHT if worth == 1.0 else frozen(np.array([worth])))
        for run in self._runs:
            self._present(run, problem, square if worth else 0.0)
        self._label_runs.watch_one(y)

    def _present(self, run: Run, problem: Problem, square: float) -> None:
        if run.last.d < problem.rows.d:
            run.resize(problem.rows.d)
        run.stream()
        before, offset = len(run.ledger), run.rows_seen
        run.radius_squared = max(run.radius_squared, square)
        run.ledger.weighted = run.ledger.weighted or bool(problem.weight.size)
        mistakes = run.present(problem, _ONE_VISIT, offset)
        if run.keeps_rows:
            run.ledger.keep_rows(problem.rows, offset, before)
        run.rows_seen = offset + 1
        run.per_pass[-1] += mistakes

    def predict_one(self, x: dict[Any, Any], **_: Any) -> Any:
        """Return the predicted label; None before anything was learned."""
        if not self._runs:
            return None
        scores = self._scores(x)
        return self._labels[int(self.learner.decide(scores, len(self._labels))[0])]

    def decision_function_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Return the score of each class; for two classes that of the second, and its opposite."""
        if not self._runs:
            return {}
        scores = self._scores(x)[0].tolist()
        return dict(zip(self._labels, scores if len(scores) > 1 else [-scores[0], scores[0]], strict=False))

    def _scores(self, x: dict[Any, Any]) -> Floats:
        """Return the scores by the weights in use; of averaged ones only those that the row needs are computed."""
        run = self._best()
        columns, values = self._entries(x, grow=False)
        if self.learner.stores_rows:
            ballot = Ballot(run.ledger, run.joint, one_row(run.last.d, columns, values))
            return ballot.count(*run.ledger.mistaken_rows())
        run.last.lay(True)
        K, parts, d = run.last.K, one_row(run.last.d, columns, values).parts, run.last.d
        W, b = run.last.W, run.last.b
        elapsed = run.ledger.steps - run.ledger.average_after
        if elapsed > 0:
            run.late.lay(True)
            W = (elapsed * W.reshape(-1, K)[columns] - run.late.W.reshape(-1, K)[columns]) / elapsed
            b = (elapsed * b - run.late.b) / elapsed
            d = len(columns)
            parts = one_row(d, np.arange(d), values).parts
        out = np.empty(K)
        kernels.score_rows(parts, d, NO_ORDER, 0, 1, frozen(W.reshape(-1)), frozen(b), K, np.empty(K), out)
        return out.reshape(1, K)

    def _best(self) -> Run:
        return self._runs[0] if len(self._runs) == 1 else min(self._runs, key=lambda run: run.errors)

    def _entries(self, x: dict[Any, Any], grow: bool) -> tuple[Ints, Floats]:
        """Return the columns and values of x; names never met get a column, or are left out."""
        index, columns, values = self._index, [], []
        for name, value in x.items():
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            j = index.get(name)
            if j is None:
                if not grow:
                    continue
                j = index[name] = len(index)
            columns.append(j)
            try:
                values.append(float(value))
            except (TypeError, ValueError):
                raise ValueError(
                    f"feature {name!r} is {value!r:.60}: it must be a number, a truth value or a string"
                ) from None
        return np.array(columns, dtype=np.int64), np.array(values, dtype=np.float64)

    def fitted(self) -> OnlineLearner:
        """Return what was learned as the learner itself, its features in the order in which they were first met."""
        if not self._runs:
            raise ValueError("nothing was learned yet")
        model, runs = deepcopy(self.learner), deepcopy(self._runs)
        for run in runs:
            run.resize(len(self._index))
        model.n_features_in_ = len(self._index)
        if all(isinstance(name, str) for name in self._index):
            model.feature_names_in_ = np.array(list(self._index), dtype=object)
        model.publish_best(runs)
        return model


def classifier_of(learner: OnlineLearner) -> RiverClassifier:
    """Return a River classifier that learns as `learner` does, and continues from what it has learned."""
    if Classifier is object:
        raise ImportError("to_river needs the package river: pip install 'separatrix[river]'")
    if hasattr(learner, "run_"):
        learner.run_.check_resumable()
    if learner.calibrate is not None:
        raise ValueError("a stream has no held-out scores: set calibrate=None")
    if learner.class_weight == "balanced":
        raise ValueError('class_weight="balanced" needs all labels at once; give a dict')
    learner.check_parameters()
    return RiverClassifier(deepcopy(learner))
