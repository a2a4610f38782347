"""The model while it learns: its run, its classes in the order of their first example, and progressive validation.

`learn` presents examples and returns what happened as a `Commit`; `apply` brings an equal model to the same state from the
commit alone, bit for bit. This is how a restart recovers, how the model of a past moment is rebuilt, and how the copy that
predictions read catches up with the one that learns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np

from separatrix.engine.labels import with_newcomer
from separatrix.engine.presenting import Mistakes, Problem
from separatrix.engine.protocols import Featurizer
from separatrix.engine.rows import Array, BareRows, Floats, Ints, frozen
from separatrix.engine.rules import tie_code
from separatrix.engine.run import Run
from separatrix.kernels.learning import replays
from separatrix.learners.online import OnlineLearner
from separatrix.modelfile.model import Model
from separatrix.web.server.live import live_weights, until_right
from separatrix.web.server.live.class_table import ClassTable
from separatrix.web.server.live.commits import NO_POSITIONS, Commit, SparseRows
from separatrix.web.server.live.progressive_validation import ProgressiveValidation

_ROWS = 1 << 15
"""A kernel processes at most so many rows at a time, so that other threads get their turn."""
_WORK = 1 << 27
"""A kernel multiplies at most about so many weights at a time (0.1 s), so that learning can be stopped."""
_GATHERED = 1 << 21
"""At most about so many weights are gathered at a time to score with (16 MB)."""


class LearningStoppedError(Exception):
    """Learning was stopped on request; what was presented so far is to be discarded."""


class LiveModel:
    """A model that learns, predicts, and applies the commits of another copy."""

    def __init__(self, model: Model) -> None:
        """Resume from a model; its estimator may be untrained."""
        trained: OnlineLearner = model.estimator
        self.features: Featurizer | None = model.features
        self.learner = trained.unfitted()
        self.learner.threshold_ = trained.threshold_
        self._facts = {name: fact for name, fact in model.facts.items() if name != "server"}
        is_unnamed = hasattr(trained, "run_") and not hasattr(trained, "feature_names_in_")
        self._numbered = trained.n_features_in_ if is_unnamed else 0
        self.progressive = ProgressiveValidation()
        self.table = ClassTable()
        self.n_names = self.forgets = 0
        self.run: Run | None = None
        if hasattr(trained, "run_"):
            self._resume(trained.run_)
        elif self.features is not None:
            self.n_names = self.features.n_features_out_

    def _resume(self, run: Run) -> None:
        run.ledger.count_only()
        run.ledger.start = None  # what a warm start began with explains only recorded mistakes, and there are none
        run.keeps_rows = False
        for flat in (run.last, run.late):
            flat.lay(True)
        run.stream()
        self.run, self.n_names = run, run.last.d
        self.table = ClassTable(run.classes.tolist())

    @classmethod
    def resumed(cls, model: Model, facts: dict[str, Any]) -> LiveModel:
        """Return the live model of a snapshot, given what `facts` returned."""
        live_model = cls(model)
        if sorted(facts["classes"]) != sorted(live_model.classes):
            raise ValueError("the classes of the snapshot are not those of its model")
        live_model.table.renumber(facts["classes"])
        live_model.n_names, live_model.forgets = int(facts["names"]), int(facts.get("forgets", 0))
        live_model.progressive = ProgressiveValidation.resumed(facts["progressive"])
        return live_model

    def facts(self) -> dict[str, Any]:
        """Return what a snapshot records beside the model itself, among it how often the store had forgotten examples."""
        facts = {"classes": self.classes, "names": self.n_names, "progressive": self.progressive.state()}
        return facts | ({"forgets": self.forgets} if self.forgets else {})

    # Classes.

    @property
    def classes(self) -> list[Any]:
        """The classes by number: in the order of their first example."""
        return self.table.listed

    @property
    def labels(self) -> list[Any]:
        """The classes in the order of the scores, which is sorted."""
        return self.table.labels

    def check(self, labels: list[Any], n_classes: int) -> None:
        """Raise ValueError if labels of one kind cannot become classes, or `tie` does not allow so many classes."""
        if self.run is not None and labels:
            with_newcomer(self.run.classes[:1], labels[0])
            tie_code(self.run.tie, n_classes, self.run.multi_class)

    def renumber(self, classes: list[Any]) -> None:
        """Number the classes as another model does; classes that are missing here are added."""
        number = self.table.number
        for label in (missing := [label for label in classes if label not in number]):
            self._add_class(label, self.n_names, len(number) + len(missing))
        order = [number[label] for label in classes]
        counts = self.progressive
        counts.met, counts.missed, counts.watched = (
            [some[k] if k < len(some) else 0 for k in order] for some in (counts.met, counts.missed, counts.watched)
        )
        counts.last_class = order.index(counts.last_class) if counts.last_class >= 0 else -1
        self.table.renumber(classes)

    def _add_class(self, label: Any, names: int, classes: int) -> None:
        """Add a class, with room for so many names and classes: its weights are 0."""
        run = self.run
        if run is None:
            self.run = run = self.learner.new_run(np.array([label]), max(live_weights.LEAST_COLUMNS, names), self.learner.C)
            for flat in (run.last, run.late):
                flat.lay(True)
            run.stream()
        elif len(self.classes) == 1:
            run.add_class(label)
        else:  # of more than two classes, the table has the list, and the run's own is brought up to date in `model`
            ledger, run.used = run.ledger, None
            ledger.tie = tie_code(run.tie, len(self.classes) + 1, run.multi_class)
            ledger.joint, ledger.grown = run.multi_class == "joint", True
            if len(self.classes) == 2:
                for flat in (run.last, run.late):
                    flat.split()
            self._make_room(names, classes)
        self.table.add(label)

    def bytes_for(self, names: int, classes: int) -> int:
        """Return how much memory a server needs for this model with so many names and classes."""
        return live_weights.bytes_for(self.learner, self.run, names, classes)

    def _make_room(self, names: int, classes: int) -> None:
        """Let the weights have room for so many names and, where each class has its output, so many classes."""
        self.n_names = max(self.n_names, names)
        if self.run is not None:
            live_weights.make_room(self.run, self.n_names, classes)

    # Learning.

    def learn(
        self,
        block: SparseRows,
        labels: list[Any],
        names: list[str],
        sources: list[Any] | None,
        keep: bool,
        stopped: Callable[[], bool] = lambda: False,
        persistent: Ints = NO_POSITIONS,
    ) -> Commit:
        """Present the rows once, in order; `names` are the new features among them.

        Rows at the sorted positions `persistent` are corrected until they are judged right (until_right.py).
        Raises LearningStoppedError as soon as `stopped` returns True.
        """
        number, new_classes = self.table.number, self._first_examples(labels)
        n_classes, width = len(self.classes) + len(new_classes), self.n_names + len(names)
        if new_classes:
            number = number | {label: len(self.classes) + k for k, (_, label) in enumerate(new_classes)}
        numbers = np.fromiter(map(number.__getitem__, labels), np.int64, block.n)
        steps_before, is_error = self.steps, np.zeros(block.n, np.uint8)
        mistakes: list[tuple[Array, ...]] = []
        arrivals: list[tuple[int, Any]] = []
        codes, n_mistakes = np.zeros(block.n, np.int32), 0
        stuck: list[int] = []
        unresolved: list[int] = []
        self._make_room(width, n_classes)
        for (start, label), (end, _) in pairwise([(0, None), *new_classes, (block.n, None)]):
            if label is not None:
                arrivals.append((n_mistakes, label))
                self._add_class(label, width, n_classes)
            for first, last in self._portions(block, start, end, persistent):
                if stopped():
                    raise LearningStoppedError
                codes[first:last] = self.table.position_of[numbers[first:last]] if len(self.classes) > 1 else 0
                parts = self._present(block, codes, first, last, is_error)
                n_mistakes += sum(len(part[0]) for part in parts)
                mistakes.extend(parts)
                if last - 1 in persistent:
                    columns, is_right = until_right.corrections(self, block, last - 1, int(numbers[last - 1]))
                    mistakes.append(columns)
                    stuck += range(n_mistakes, n_mistakes + len(columns[0]))
                    n_mistakes += len(columns[0])
                    unresolved += [] if is_right else [last - 1]
        assert self.run is not None
        self.run.radius_squared = max(self.run.radius_squared, live_weights.squared_radius(block))
        mistakes = mistakes or [(*(np.empty(0, np.int64) for _ in range(4)), np.empty(0), np.empty(0))]
        step, row, up, down, correction, shrink = (np.concatenate(column) for column in zip(*mistakes, strict=True))
        if not self.run.rule.spread:
            shrink = np.empty(0)
        wrong = np.flatnonzero(is_error)
        commit = Commit(
            *(block.n, self.steps, self.run.tally.tolist(), float(self.run.radius_squared)),
            *(step, up, down),
            *(correction, shrink),
            block.take(row),
            *(wrong, numbers[wrong], np.bincount(numbers, minlength=len(self.classes))),
            names=names,
            arrivals=arrivals,
            sources=None if sources is None else [sources[r] for r in row.tolist()],
            changes=int(np.count_nonzero(np.diff(numbers))),
            ends=(int(numbers[0]), int(numbers[-1])) if block.n else (-1, -1),
            kept=block if keep else None,
            kept_class=numbers if keep else NO_POSITIONS,
            kept_sources=sources if keep else None,
            until_right=persistent,
            stuck=np.array(stuck, np.int64),
            unresolved=tuple(unresolved),
        )
        assert self.steps == steps_before + block.n
        self._count(commit)
        return commit

    def _first_examples(self, labels: list[Any]) -> list[tuple[int, Any]]:
        """Return the first example of each label that is no class yet, and the label, in their order."""
        unseen = set(labels) - self.table.number.keys()
        first: dict[Any, int] = {}
        if unseen:
            for i, label in enumerate(labels):
                if label in unseen:
                    first.setdefault(label, i)
        return [(i, label) for label, i in first.items()]

    def _portions(self, block: SparseRows, start: int, end: int, persistent: Ints) -> Iterator[tuple[int, int]]:
        """Yield parts of rows start…end, each so small that presenting it takes little time; `persistent` rows end one."""
        ends = iter([*(persistent[(persistent >= start) & (persistent < end)] + 1).tolist(), end])
        end = next(ends)
        while start < end:
            assert self.run is not None
            most = _WORK // self.run.last.K
            stop = int(np.searchsorted(block.indptr, block.indptr[start] + most, side="right")) - 1
            stop = min(max(stop, start + 1), start + max(1, most), end)
            yield start, stop
            start = stop
            if start == end:
                end = next(ends, end)

    def _present(self, block: SparseRows, codes: Array, start: int, end: int, is_error: Array) -> list[tuple[Array, ...]]:
        """Present rows whose classes exist already, by position; return the mistakes, with class numbers."""
        run, number_at = self.run, self.table.number_at
        assert run is not None
        parts: list[tuple[Array, ...]] = []

        def collect(mistakes: Mistakes) -> None:
            step, row, _, up, down, correction, _, shrink = (column.copy() for column in mistakes)
            parts.append((step, row, number_at[up], number_at[down], correction, shrink))

        problem = Problem(BareRows(run.last.d, *block.parts), frozen(codes))
        run.present_to(problem, start, end, collect, is_error[start:end], _ROWS, self.table.many)
        return parts

    # Applying the commits of another copy.

    def apply(self, commit: Commit) -> None:
        """Apply a commit: afterwards the state equals that of the model that learned it."""
        width, n_classes = self.n_names + len(commit.names), len(self.classes) + len(commit.arrivals)
        self._make_room(width, n_classes)
        for (begin, label), (end, _) in pairwise([(0, None), *commit.arrivals, (len(commit.step), None)]):
            if label is not None:
                self._add_class(label, width, n_classes)
            self._correct(commit, begin, end)
        run = self.run
        if run is None:  # every example so far was forgotten
            return
        run.ledger.steps, run.tally, run.radius_squared = commit.steps, np.array(commit.tally), commit.radius
        self._count(commit)

    def _correct(self, commit: Commit, begin: int, end: int) -> None:
        if begin == end:
            return
        assert self.run is not None
        averaged = np.maximum(0.0, commit.step[begin:end].astype(np.float64) - 1.0 - self.run.ledger.average_after)
        averaged[commit.stuck[(commit.stuck >= begin) & (commit.stuck < end)] - begin] = 0.0
        shrink = commit.shrink[begin:end] if commit.shrink.size else np.empty(0)
        sides = commit.up[begin:end], commit.down[begin:end]
        self.correct(commit.rows, np.arange(begin, end), *sides, commit.correction[begin:end], shrink, averaged)

    def correct(
        self, rows: SparseRows, which: Ints, up: Ints, down: Ints, correction: Floats, shrink: Floats, averaged: Floats
    ) -> None:
        """Apply corrections to some rows, in order; averaged[m] is how many steps had been averaged before correction m."""
        run = self.run
        assert run is not None
        run.used = None
        outputs = (frozen(self.table.outputs_of(side).astype(np.int32)) for side in (up, down))
        replays.resume(
            *(rows.parts, run.last.d, frozen(which), *outputs, frozen(correction)),
            *(frozen(shrink), frozen(averaged), (run.last.W, run.last.b), (run.late.W, run.late.b), run.last.sigma),
            *(run.last.K, run.bias, run.rule.spread == "full"),
        )

    def _count(self, commit: Commit) -> None:
        """Add a commit to the counters of the run and of progressive validation."""
        assert self.run is not None
        self.run.rows_seen += commit.n
        self.run.per_pass[-1] += commit.mistakes
        self.run.ledger.absent += commit.mistakes
        self.progressive.undone += commit.undoes is not None
        self.progressive.advance(commit.n, commit.mistakes, commit.wrong, commit.wrong_class, commit.met)
        self.progressive.watch(commit.met, commit.changes, *commit.ends)

    # Reading.

    @property
    def steps(self) -> int:
        """The number of steps of the run, including those of the training of the initial model."""
        return 0 if self.run is None else self.run.ledger.steps

    @property
    def width(self) -> int:
        """The number of columns that have weights."""
        return 0 if self.run is None else self.run.last.d

    def weights_of(self, columns: Ints, positions: Ints, last: bool = False) -> tuple[Floats, Floats]:
        """Return weights of some columns and classes, a row per column, and the biases; two classes have one output."""
        assert self.run is not None
        outputs = self.table.slots[positions] if len(self.labels) > 2 else None
        return live_weights.some_weights(self.run, columns, outputs, last=last)

    def scores(self, block: SparseRows, last: bool = False) -> Floats:
        """Return the scores of rows, one column per class, or one of two classes; `last`: of the weights that learn."""
        columns, positions = block.indices, np.arange(len(block.indices))
        if len(block.indices) > 2 * self.width:  # most columns are there, as of vectors
            columns, positions = np.arange(self.width), block.indices
        elif block.n > 1:
            columns, positions = np.unique(block.indices, return_inverse=True)
        return self.scores_at(columns, SparseRows(block.data, positions, block.indptr), last)

    def scores_at(self, columns: Ints, rows: SparseRows, last: bool = False) -> Floats:
        """Return the scores of rows whose indices are positions in `columns`."""
        assert self.run is not None
        if self.run.last.K * len(columns) <= _GATHERED:
            scores = live_weights.scored(rows, *live_weights.some_weights(self.run, columns, last=last))
            return scores[:, self.table.slots] if len(self.labels) > 2 else scores
        # Several classes at a time, but never one: the sum of a single output may be rounded otherwise.
        n = len(self.labels)
        portions = np.array_split(np.arange(n), min(max(1, n // 2), -(-n * len(columns) // _GATHERED)))
        return np.concatenate(
            [live_weights.scored(rows, *self.weights_of(columns, some, last)) for some in portions], axis=1
        )

    def decide(self, scores: Floats) -> list[Any]:
        """Return the predicted labels for some scores."""
        if len(self.labels) == 1:
            return self.labels * len(scores)
        return [self.labels[k] for k in self.learner.decide(scores, len(self.labels)).tolist()]

    def model(self, names: list[str] | None) -> Model:
        """Return a copy as a `Model` with one column per feature."""
        if self.run is None:
            raise ValueError("nothing was learned yet")
        learner: Any = deepcopy(self.learner)  # which may get feature names
        width = max(1, self.n_names)
        run = live_weights.compacted(self.run, self.table, width)
        learner.n_features_in_ = width
        learner.__dict__.pop("feature_names_in_", None)
        if names and len(names) != self._numbered:
            learner.feature_names_in_ = np.array(names, dtype=object)
        learner.publish(run, run.per_pass)
        return Model(learner, self.features, dict(self._facts))

    def state(self) -> list[Any]:
        """Return everything that learning depends on, as plain values."""
        if self.run is None:
            return [self.n_names, self.progressive.state()]
        run = self.model(None).estimator.run_
        arrays = [*run.last.weights(), *run.late.weights(), *run.last.spreads(), run.tally]
        counts = [run.rows_seen, run.ledger.total, run.ledger.average_after, run.radius_squared, *run.per_pass]
        return [
            *(array.tobytes() for array in arrays),
            *(self.steps, counts, self.classes, self.n_names, self.progressive.state()),
        ]
