"""Learning from a stream: the same presentations, one by one or in batches (L2 6 "ideal for online algorithms", L4 2)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from separatrix.engine.labels import encode_as, newcomers
from separatrix.engine.orders import Visits
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import NO_ORDER, Array, Floats, Rows, feature_names_of, frozen
from separatrix.engine.run import Run
from separatrix.learners.auto_c import grid_for
from separatrix.learners.calibration import takes_streams
from separatrix.learners.inputs import LabelRuns, check_newcomers, declared_classes
from separatrix.learners.linear_base import LinearLearner


class OnlineLearner(LinearLearner):
    """A linear learner that can continue to learn from a stream."""

    _label_runs: LabelRuns | None = None

    @takes_streams
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Present the rows of X once, in their order, and continue from what was learned before.

        One row at a time or in batches of any size: the weights come out the same, bit for bit. A class that `classes` did
        not declare is added when its first example comes and starts from zero weights. With `C="auto"` every C of a grid
        learns from each batch, and the one with the fewest errors so far, each counted before it was learned from, is used.
        """
        first = not hasattr(self, "run_")
        if first:
            self.check_parameters()
        else:
            self._check_unchanged(self.run_)
        if self.class_weight == "balanced":
            raise ValueError('class_weight="balanced" needs all labels at once; give a dict to partial_fit')
        y = self._read_labels(X, y)
        rows = self.read_rows(X, reset=first)
        weight = frozen(self.example_weight(sample_weight, y))
        radius_squared = rows.survey(weight, feature_names_of(self))
        declared = None if classes is None else declared_classes(classes)
        runs = self.new_runs(rows, y[:1].copy() if declared is None else declared) if first else self.runs()
        strangers = newcomers(runs[0].classes, y)
        if declared is not None:
            encode_as(declared, y)
            strangers = [(0, label) for _, label in newcomers(runs[0].classes, declared)]
        check_newcomers(runs[0], [label for _, label in strangers])
        try:
            for run in runs:
                run.radius_squared = max(run.radius_squared, radius_squared)
                run.ledger.weighted = run.ledger.weighted or bool(np.any((weight != 0.0) & (weight != 1.0)))
                self._present(run, rows, y, weight, strangers)
        finally:
            self.publish_best(runs)
        if first or self._label_runs is None:
            self._label_runs = LabelRuns()
        self._label_runs.watch(y)
        return self

    def publish_best(self, runs: list[Run]) -> None:
        """Set the fitted attributes from a stream's run, or from the one with the fewest errors of several C's."""
        best = min(runs, key=lambda run: run.errors)
        self.publish(best, best.per_pass, slope_=None)
        if len(runs) > 1:
            self._runs = runs
            self.C_scores_ = {run.rule.C: 1.0 - run.errors / max(1, run.ledger.steps) for run in runs}
        if self.C == "auto":
            self.C_ = best.rule.C

    def new_runs(self, rows: Rows, classes: Array) -> list[Run]:
        """Return a run, or one for each C of a grid that fits the first example."""
        if self.C != "auto":
            return [self.new_run(classes, rows.d, self.C)]
        self.check_choosable()
        return [self.new_run(classes, rows.d, C) for C in grid_for(rows.take(np.arange(min(rows.n, 1))), self.fit_intercept)]

    def _present(self, run: Run, rows: Rows, y: Array, weight: Floats, strangers: list[tuple[int, Any]]) -> None:
        """Present the rows once, adding the classes that are first met."""
        first, mistakes, offset = len(run.ledger), run.ledger.total, run.rows_seen
        run.stream()
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
            if run.keeps_rows:
                run.ledger.keep_rows(rows, offset, first)
            run.rows_seen = offset + rows.n
            if weight.size and not weight.all():
                run.left_out = np.append(run.left_out, offset + np.flatnonzero(weight == 0.0))
            run.per_pass[-1] += run.ledger.total - mistakes  # of which the ledger may keep none
