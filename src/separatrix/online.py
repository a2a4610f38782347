"""Learning from a stream: the same presentations, one by one or in batches (L2 6 "ideal for online algorithms", L4 2)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from separatrix.calibration import takes_streams
from separatrix.inputs import check_newcomers, declared_classes, read_rows
from separatrix.labels import encode_as, labels_of, newcomers
from separatrix.learner import LinearLearner
from separatrix.ledger import NEVER
from separatrix.orders import Visits
from separatrix.rows import NO_ORDER, frozen
from separatrix.training import Problem


class OnlineLearner(LinearLearner):
    """A linear learner that can go on learning from a stream."""

    @takes_streams  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Present the rows of X once, in their order, and go on from what was learned before.

        One row at a time or in batches of any size: the weights come out the same, bit for bit. A class that `classes` did
        not declare is added when its first example comes and starts from zero weights.
        """
        first = not hasattr(self, "_run")
        if first:
            self._validate_params()
        else:
            self._check_unchanged(self._run)
        if self.class_weight == "balanced":
            raise ValueError('class_weight="balanced" needs all labels at once; give a dict to partial_fit')
        y = labels_of(X, y, type(self).__name__)
        rows = read_rows(self, X, reset=first)
        declared = None if classes is None else declared_classes(classes)
        run = self._new_run(y[:1].copy() if declared is None else declared, rows.d) if first else self._run
        strangers = newcomers(run.classes, y)
        if declared is not None:
            encode_as(declared, y)
            strangers = [(0, label) for _, label in newcomers(run.classes, declared)]
        weight = frozen(self._weight(sample_weight, y))
        radius_squared = rows.survey(weight, self._names())
        check_newcomers(run, [label for _, label in strangers])
        before = len(run.ledger)
        per_pass = [] if first else self.mistakes_per_pass_
        if first or not run.streaming:
            if run.ledger.average_after == NEVER:
                run.average_from_here()
            run.streaming = True
            run.ledger.begin_pass()
            per_pass = [*per_pass, 0]
        run.radius_squared = max(run.radius_squared, radius_squared)
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
            if run.keeps_rows:
                run.ledger.keep_rows(rows, offset, before)
            run.rows_seen = offset + rows.n
            per_pass = [*per_pass[:-1], per_pass[-1] + len(run.ledger) - before]
            self._publish(run, per_pass)
            self.converged_ = False
            self.cycle_ = None
        return self
