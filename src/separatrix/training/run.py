"""The plan of a training: from a source to a model and its file, with checkpoints."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from separatrix.data.atomic import check_place
from separatrix.data.errors import DataError
from separatrix.data.labels import words_kept
from separatrix.data.reading import Source, open_source
from separatrix.data.streams import FileDigests, digest_of
from separatrix.engine.rules import STREAMING
from separatrix.files.asking import AskingPass
from separatrix.files.ingest import TrainingBlocks, read_blocks
from separatrix.files.out_of_core import TrainingState, begin, resume
from separatrix.learners.forgetting import Forgetting
from separatrix.learners.linear_base import LinearLearner
from separatrix.modelfile.archive import load, save
from separatrix.modelfile.model import Model
from separatrix.training.asking import asking_figures, asking_of, asking_options
from separatrix.training.held_out import (
    check_classes,
    check_evaluation,
    evaluate_held_out,
    held_out_name,
    with_values,
)
from separatrix.training.options import TrainOptions, size_of
from separatrix.training.parts import features_for, learner_of
from separatrix.training.progress import Progress
from separatrix.training.summary import summarise, written_model
from separatrix.training.tuning.selection import check_selection, is_wanted, select


class Training:
    """One run: `run` trains once. A `plain` one makes a model that needs no scikit-learn.

    `digests` are the hashes of the files, where somebody has begun to compute them.
    """

    def __init__(
        self,
        options: TrainOptions,
        progress: Progress | None = None,
        plain: bool = False,
        digests: FileDigests | None = None,
    ) -> None:
        self.options = options = asking_options(options)
        self.plain, self._digests = plain, digests
        self.progress = progress or Progress()
        self.saved = False
        """Whether a checkpoint was written, or resumed from."""
        self.stopping = False
        """Whether to stop after the current block, with a checkpoint."""
        self._last_saved = time.monotonic()
        self._figures: dict[str, Any] = {}
        if options.early_stopping and not options.holdout and options.validate is None:
            raise DataError("early_stopping=True needs held-out examples: use holdout=0.1 or validate=")
        if options.holdout and options.validate is not None:
            raise DataError("holdout= cannot be combined with validate=")
        if options.checkpoint is not None and options.learner not in STREAMING:
            raise DataError(f"checkpoint= supports the learners {' and '.join(STREAMING)}, not {options.learner}")
        if options.output is None and (options.float32 or not options.resume):
            wanted = "float32=True" if options.float32 else "resume=False"
            raise DataError(f"{wanted} is about the model file: name one with output=")
        if not options.resume and options.learner == "voted":
            raise DataError("a voted perceptron predicts with its mistakes, which resume=False leaves out: choose one")
        if not options.resume and options.record:
            raise DataError("record=True stores rows of mistakes, which resume=False leaves out: choose one")
        if options.float32 and options.engine is not None:
            raise DataError("float32=True counts changed predictions of training rows, which only workers have with engine=")
        check_evaluation(options)
        check_selection(options)
        for path in (options.output, options.checkpoint, options.report):
            if path is not None:  # a checkpoint is read again, and so is a model whose rounded weights are tried
                check_place(path, path is options.checkpoint or (path is options.output and options.float32))

    def run(self) -> Model:
        """Train, write the model if it is to be written, and return it with its summary."""
        began = time.perf_counter()
        if self.options.sequence:
            from separatrix.training.sequences import train_sequences

            return train_sequences(self.options, self.progress)
        if self.options.engine is None:
            model = self._run(began)
        else:
            from separatrix.training.sharded import train_on_shards

            model = train_on_shards(self.options, self.plain, self.progress)
        model.summary["seconds"] = round(time.perf_counter() - began, 3)
        return model

    def _run(self, began: float) -> Model:
        source = self.open(self.options.data, self.options.label)
        data_hash = DataHash(source, digest_of if self._digests is None else self._digests.of)
        if not is_wanted(self.options):
            return self._train_on(source, data_hash, began)
        with nullcontext() if source.rereadable else source.kept():
            selection = select(self.options, source, self.progress)
            self.options = selection.options
            model = self._train_on(source, data_hash, time.perf_counter())
        model.summary |= selection.figures
        model.cross_validation = selection.cross_validation
        return model

    def _train_on(self, source: Source, data_hash: DataHash, began: float) -> Model:
        from separatrix.kernels.compiling import seconds_compiling

        options, compiled = self.options, seconds_compiling()
        validation = None if options.validate is None else self.open(options.validate, source.label, {})
        rereadable = (validation or source).rereadable
        gathered = self.gather(source, validation)
        try:
            read = time.perf_counter()
            check_classes(options, gathered.classes)
            learner = self.train(gathered, data_hash)
            trained, compiled = time.perf_counter(), seconds_compiling() - compiled
            evaluation = None
            if gathered.held_out is not None:
                name = held_out_name(source, validation, gathered.held_out)
                evaluation = evaluate_held_out(options, learner, gathered.held_out, name)
            # The held-out rows are at hand here, and closed below.
            summary = summarise(
                source,
                gathered,
                learner,
                evaluation,
                data_hash=data_hash.value(),
                settings=options.settings(),
                seconds_reading=read - began,
                seconds_training=trained - read,
                seconds_compiling=compiled,
            )
            summary |= self._figures
            features: Any = gathered.features
            if features is not None and not self.plain:
                from separatrix.estimators.featurizers import TableFeatures

                features = TableFeatures.like(features)
            model = Model(learner, features, summary["facts"])
            model.summary, model.evaluation = summary, evaluation
            if evaluation is not None and options.report is not None:
                if rereadable:
                    model.evaluation = with_values(evaluation, options, source, validation)
                summary["evaluation"]["errors"] = model.evaluation.to_dict()["errors"]
                model.evaluation.report(options.report, model=model)
                summary["report"] = str(options.report)
            if options.output is not None:
                save(model, options.output, resume=options.resume, float32=options.float32)
                summary |= written_model(options.output)
                if options.float32:
                    summary["float32_changed"] = _changed_predictions(learner, load(options.output, plain=True), gathered)
            if options.checkpoint is not None:
                options.checkpoint.unlink(missing_ok=True)
        finally:
            gathered.close()
        return model

    def gather(self, source: Source, validation: Source | None, **reading: Any) -> TrainingBlocks:
        """Read the rows into blocks, by default with features that are learned from them."""
        options = self.options
        how = {"features": features_for(options, source)} | reading
        return read_blocks(
            source,
            memory=size_of(options.memory),
            fraction=options.holdout,
            seed=options.seed,
            validation=validation,
            missing_label=options.missing_label,
            mixed=options.order != "cyclic",
            report=self.progress.rows_read,
            **how,
        )

    def open(self, data: Any, label: str | None, expected: dict[str, str] | None = None) -> Source:
        """Open the data, or those that are held out."""
        options = self.options
        words, unused = words_kept(options.missing_label), options.drop or ()
        if hasattr(data, "source"):  # data in memory
            if reading := options.reading():
                raise DataError(f"{next(iter(reading))}= is about files, and the data are in memory")
            source: Source = data.source(label, label_words=words, unused=set(unused), expected=expected)
            return source
        return open_source(data, label=label, expected=expected, label_words=words, unused=unused, **options.reading())

    @contextmanager
    def passes(self) -> Iterator[None]:
        """Surround the passes; a subclass may let them be interrupted with `stopping`."""
        yield

    def train(self, gathered: TrainingBlocks, data_hash: DataHash) -> Any:
        """Return a learner that is trained on the rows."""
        learner = learner_of(self.options, self.plain)
        if self.options.learner not in STREAMING:
            return fit_whole(learner, gathered)
        state = self._resumed(gathered, data_hash, learner) or begin(
            learner, gathered.blocks, gathered.classes, gathered.held_out
        )

        def after_block(state: TrainingState, rows: int) -> None:
            self.progress.rows_trained(state, rows, gathered.blocks.n)
            self._save_state(learner, gathered, data_hash, state)
            if self.stopping:
                raise KeyboardInterrupt

        self.progress.begin_training(learner.max_iter, gathered.blocks.n)
        asking, asked = asking_of(self.options), None
        if asking is not None:
            asked = AskingPass(asking, learner, gathered.blocks, gathered.held_out, state, after_block)
        with self.passes():
            learner = resume(learner, gathered.blocks, gathered.held_out, state, after_block=after_block, passes=asked)
        if asked is not None:
            self._figures |= asking_figures(asked, gathered.blocks.n)
        return learner

    # Checkpoints.

    def _save_state(
        self, learner: LinearLearner, gathered: TrainingBlocks, data_hash: DataHash, state: TrainingState
    ) -> None:
        options = self.options
        due = self.stopping or time.monotonic() - self._last_saved >= options.checkpoint_every
        if options.checkpoint is None or not due:
            return
        facts = {
            "checkpoint": state.facts(),
            "settings": options.settings(),
            "data": data_hash.value(),
            "layout": gathered.blocks.layout(),
        }
        learner.publish(state.run, state.facts()["per_pass"])
        save(learner, options.checkpoint, features=gathered.features, facts=facts, arrays=state.arrays())
        self.saved, self._last_saved = True, time.monotonic()

    def _resumed(self, gathered: TrainingBlocks, data_hash: DataHash, learner: LinearLearner) -> TrainingState | None:
        path = self.options.checkpoint
        if path is None or not path.exists():
            return None
        checkpoint = load(path, plain=True)
        if "checkpoint" not in checkpoint.facts:
            raise DataError(f"{path} is a model, not a checkpoint; name another file")
        if checkpoint.facts["settings"] != self.options.settings() or checkpoint.facts["data"] != data_hash.value():
            raise DataError(f"{path} belongs to other data or other settings; delete it, or name another file")
        # The first checkpoints had no layout; of rows that were one block they can be resumed.
        layout = checkpoint.facts.get("layout", "memory" if gathered.blocks.was_one_block() else "")
        if layout != gathered.blocks.layout():
            why = "another value of memory=" if layout else "an earlier version, which mixed the rows otherwise"
            raise DataError(f"{path} was written with {why}; delete it, or name another file")
        learner.n_features_in_ = gathered.blocks.d
        self.saved = True
        state = TrainingState.resumed(checkpoint.estimator.run_, checkpoint.facts["checkpoint"], checkpoint.arrays)
        self._figures["resumed"] = {"from": str(path), "passes": state.history.passes}
        return state


def fit_whole(learner: LinearLearner, gathered: TrainingBlocks, without: Forgetting | None = None) -> LinearLearner:
    """Fit a learner that needs all examples at once, perhaps on what is left of those of an earlier training."""
    if gathered.blocks.spilled:
        raise DataError(f"{learner.public_name()} needs all examples in memory: increase memory=, or use another learner=")
    X, y = gathered.blocks.whole(gathered.classes)
    validation = {}
    if gathered.held_out is not None:
        X_val, y_val = gathered.held_out.whole(gathered.classes)
        validation = {"X_val": X_val, "y_val": y_val}
    learner.fit_without(without, X, y, **validation)
    if gathered.held_out is not None and (unknown := sum(gathered.held_out.unknown_labels().values())):
        # Held-out examples of no class count as wrong.
        share = 1 - unknown / gathered.held_out.n
        learner.validation_scores_ = [share * score for score in learner.validation_scores_]
    return learner


def _changed_predictions(learner: LinearLearner, model: Model, gathered: TrainingBlocks) -> int:
    """Count the training rows that a model file predicts otherwise than the learner it was made of."""
    K, stored = len(gathered.classes), model.estimator
    codes = ([each.decide(each.scores(block.rows), K) for each in (learner, stored)] for block in gathered.blocks)
    return sum(int(np.count_nonzero(before != after)) for before, after in codes)


class DataHash:
    """The hash of the data, computed in a thread while they are being read."""

    def __init__(self, source: Source, digest_of: Callable[[Any], bytes] = digest_of) -> None:
        self._source, self._digest_of, self._hash, self._thread = source, digest_of, "", None
        self._error: DataError | None = None
        if source.rereadable:
            self._thread = threading.Thread(target=self._compute, daemon=True)
            self._thread.start()

    def _compute(self) -> None:
        try:
            self._hash = self._source.fingerprint(self._digest_of)
        except DataError as error:  # the file is gone; whoever asks for the hash is told
            self._error = error

    def value(self) -> str:
        """Return the hash, once all data have been read for it."""
        if self._thread is not None:
            self._thread.join()
        elif not self._hash:
            self._compute()
        if self._error is not None:
            raise self._error
        return self._hash
