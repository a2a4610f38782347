"""The recipe of `train` made again on the data without the forgotten rows: columns, features, learner, held-out figures."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from separatrix.data.atomic import replacing
from separatrix.data.encodings import AUTO
from separatrix.data.errors import DataError
from separatrix.data.reading import Source
from separatrix.data.without_rows import find_rows, write_without
from separatrix.engine.orders import Gaps
from separatrix.engine.parcel import Parcel
from separatrix.engine.presenting import Problem
from separatrix.engine.rows import Ints, Rows
from separatrix.engine.rules import STREAMING
from separatrix.engine.run import Run
from separatrix.engine.stopping import History
from separatrix.files.ingest import TrainingBlocks
from separatrix.files.out_of_core import TrainingState, begin, resume, weighted
from separatrix.learners.forgetting import Forgetting, trained
from separatrix.learners.linear_base import LinearLearner
from separatrix.modelfile.model import Model
from separatrix.training.forgetting.refitting import order_from
from separatrix.training.forgetting.rows import ANY_NUMBER, TRAIN_AGAIN, check_count, left, row_numbers
from separatrix.training.memory import InMemory, is_in_memory
from separatrix.training.options import TrainOptions
from separatrix.training.parts import learner_of
from separatrix.training.run import DataHash, Training, fit_whole

WHOLE = ("VotedPerceptron", "PocketPerceptron")
"""The learners that are fitted on all rows at once."""
Plan = Callable[[LinearLearner, TrainingBlocks], Forgetting]
"""Returns the order to train a new learner in, and what the earlier training has to say, given the rows that are left."""


class Retraining(Training):
    """A training on what is left of the rows, in the order of the earlier one."""

    def __init__(self, options: TrainOptions, plan: Plan, forgotten: Ints, plain: bool) -> None:
        super().__init__(options, plain=plain)
        self.plan, self.forgotten = plan, forgotten

    def gather(self, source: Source, validation: Source | None, **reading: Any) -> TrainingBlocks:
        """Read the rows; they are held out as if the forgotten ones were still there."""
        gathered = super().gather(source, validation, **{"forgotten": self.forgotten} | reading)
        if gathered.blocks.spilled:
            gathered.close()
            raise DataError(f"{source.name}: the rows do not fit in memory, where forgetting needs all of them at once")
        return gathered

    def train(self, gathered: TrainingBlocks, data_hash: DataHash) -> Any:
        """Return a learner that is trained in the earlier order."""
        learner = learner_of(self.options, self.plain)
        forgetting = self.plan(learner, gathered)
        if self.options.learner not in STREAMING:
            return fit_whole(learner, gathered, forgetting)
        blocks, states = gathered.blocks, list[TrainingState]()

        def begin_run() -> Run:
            states.append(begin(learner, blocks, gathered.classes, gathered.held_out))
            return states[-1].run

        def make_passes(run: Run) -> History:
            resume(learner, blocks, gathered.held_out, states[-1])
            return states[-1].history

        trained(begin_run, make_passes, problem_of(learner, gathered), forgetting)
        return learner


def problem_of(learner: LinearLearner, gathered: TrainingBlocks) -> Problem:
    """Return what a learner with these parameters is trained on."""
    if learner.saved_as in WHOLE:
        return learner.unfitted(early_stopping=False).read_problem(*gathered.blocks.whole(gathered.classes))[2]
    return weighted(learner, gathered.classes, gathered.blocks.read(0), gathered.blocks)  # type: ignore[arg-type]


def are_same(one: Rows, other: Rows) -> bool:
    """Tell whether rows are the same, bit for bit."""
    if one.sparse != other.sparse or (one.n, one.d) != (other.n, other.d):
        return False
    if not one.sparse:
        return np.array_equal(one.source, other.source)
    names = ("data", "indices", "indptr")
    return all(np.array_equal(getattr(one.source, name), getattr(other.source, name)) for name in names)


OTHER_FEATURES = "the features were fitted again without the rows, and have changed"


class Earlier:
    """What a model was trained on, read as it was then: the rows to forget are still there."""

    def __init__(self, model: Model, data: Any, label: Any, validate: Any, plain: bool) -> None:
        self.model, self.facts, self.plain = model, model.facts, plain
        if "data" not in self.facts or "settings" not in self.facts:
            raise DataError("the model has no checksum of what it was trained on, and cannot forget rows; train it again")
        if (b := self.facts["settings"].get("ask")) is not None:
            why = "which labels it asked for depends on all rows before"
            raise DataError(f"the model was trained with ask={b:g}, and cannot forget rows: {why}; {TRAIN_AGAIN}")
        self.given = data, label
        self.gaps = Gaps(np.array(self.facts.get("forgotten", ()), np.int64), 1)
        self.options = options_of(self.facts["settings"], data, label, validate, model.estimator.class_weight)
        reading = Training(self.options, plain=True)
        self.source = reading.open(self.options.data, self.options.label)
        if not self.source.rereadable:
            raise DataError(f"{self.source.name} can be read only once, and forgetting reads it twice; put it into a file")
        if self.source.fingerprint() != self.facts["data"]:
            raise DataError(f"{self.source.name} is not what the model was trained on: the checksums differ")
        if hasattr(model.estimator, "validation_scores_") and not self.options.holdout and validate is None:
            raise DataError("the model was trained with validate=: name the held-out data again")

    def without(self, rows: Any, first: int, keep: Path | None = None) -> Retrained:
        """Train on what is left after these rows, counted from `first`; copy the remaining file to `keep`."""
        n, found = find_rows(self.source, row_numbers(rows, ANY_NUMBER, first))
        numbers = row_numbers(rows, n, first)
        with self._remaining(numbers, found, keep) as options:
            retraining = Retraining(options, NO_PLAN, self.gaps.joined(numbers).numbers, self.plain)
            before = retraining.gather(self.source, self._validation(), **self._reading(), forgotten=self.gaps.numbers)
            try:
                plan = _EarlierPlan(self.model.estimator, before, numbers)
                retraining.plan = plan
                model = retraining.run()
            finally:
                before.close()
        model.facts["forgotten"] = retraining.forgotten.tolist()
        model.summary["data"] = self.source.name
        assert plan.forgetting is not None
        return Retrained(model, plan.forgetting, numbers, [row.content for row in found])

    def _validation(self) -> Source | None:
        validate = self.options.validate
        return None if validate is None else Training(self.options, plain=True).open(validate, self.source.label, {})

    def _reading(self) -> dict[str, Any]:
        features = self.model.features
        return {"features": None if features is None else features.plain(), "learned": True, "numbered": True}

    @contextmanager
    def _remaining(self, numbers: Ints, found: list[Any], keep: Path | None) -> Iterator[TrainOptions]:
        """Give the options with what is left of the data."""
        data, label = self.given
        if is_in_memory(data, label):
            if keep is not None:
                raise DataError("the data are in memory, and what remains of them is not written to a file")
            names_column = label is None or isinstance(label, str | int)
            rest = left(data, numbers), label if names_column else left(label, numbers)
            settings, validate = self.facts["settings"], self.options.validate
            yield options_of(settings, *rest, validate, self.options.class_weight)
            return
        with tempfile.TemporaryDirectory(prefix="separatrix-") as folder:
            encoding = self.options.encoding or AUTO
            paths = write_without(self.source, found, Path(folder), encoding)
            if keep is not None and len(paths) > 1:
                raise DataError(f"the data are {len(paths)} files, and what remains of them cannot be written to one")
            if keep is not None:
                with replacing(keep) as temporary:
                    shutil.copyfile(paths[0], temporary)
            try:
                yield replace(self.options, data=paths)  # type: ignore[arg-type]
            except DataError as error:
                message = str(error)
                for path, name in zip(paths, self.source.files, strict=True):
                    message = message.replace(path, f"{name} without the rows")
                raise DataError(message) from None


class Retrained(NamedTuple):
    """The model without the rows, how it was trained, and which rows these were, from 0, with their contents."""

    model: Model
    forgetting: Forgetting
    rows: Ints
    contents: list[Any]


class _EarlierPlan:
    """The order of an earlier training, of which some rows are forgotten, and its ledger."""

    def __init__(self, earlier: LinearLearner, before: TrainingBlocks, rows: Ints) -> None:
        assert before.trained is not None
        check_count(earlier, before.blocks.n)
        self.earlier, self.before = earlier, before
        self.forgotten = np.flatnonzero(np.isin(before.trained, rows))
        self.forgetting: Forgetting | None = None

    def __call__(self, learner: LinearLearner, gathered: TrainingBlocks) -> Forgetting:
        """Return the order, and the ledger where the features of what is left are the same."""
        problem = problem_of(learner, self.before)
        kept = np.delete(np.arange(problem.rows.n), self.forgotten)
        same = are_same(problem.rows.take(kept), Rows(gathered.blocks.together()))
        self.forgetting = Forgetting.of(self.earlier, problem, self.forgotten, "" if same else OTHER_FEATURES)
        return self.forgetting


def NO_PLAN(learner: LinearLearner, gathered: TrainingBlocks) -> Forgetting:  # noqa: N802
    """Stand for a plan that is not made yet."""
    raise AssertionError


def options_of(settings: dict[str, Any], data: Any, label: Any, validate: Any, class_weight: Any) -> TrainOptions:
    """Return the options of an earlier training, for these data."""
    settings = {name: value for name, value in settings.items() if name != "class_weight"}
    if is_in_memory(data, label):
        data = InMemory(data, settings.get("label") if label is None else label)
        settings |= {"label": data.label}
    if validate is not None and is_in_memory(validate):
        pair = isinstance(validate, tuple) and len(validate) == 2
        validate = InMemory(*validate) if pair else InMemory(validate, settings.get("label"))
    try:
        return TrainOptions(data, validate=validate, class_weight=class_weight, **settings)
    except TypeError:
        raise DataError("the model was trained with options that this version does not have; train it again") from None


def retrained(receipt: dict[str, Any], data: Any, label: Any = None, validate: Any = None) -> Model:
    """Return the model that training on the remaining data gives, in the order of a receipt."""
    training, order = receipt["training"], receipt["order"]
    class_weight = Parcel().take_value("class_weight", training["parameters"]["class_weight"])
    options = options_of(training["settings"], data, label, validate, class_weight)
    expected = int(receipt["after"]["rows"])

    def plan(learner: LinearLearner, gathered: TrainingBlocks) -> Forgetting:
        if gathered.blocks.n != expected:
            raise OtherRowsError(f"there are {gathered.blocks.n:,} rows to train on, and the receipt says {expected:,}")
        return order_from(order)

    rows = np.array(order["rows_forgotten"], np.int64)
    return Retraining(options, plan, rows, plain=True).run()


class OtherRowsError(DataError):
    """The remaining data are not those of a receipt."""
