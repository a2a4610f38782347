"""What `separatrix train` does: from a source to a model file, with checkpoints."""

from __future__ import annotations

import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from separatrix.cli.progress_bars import TrainingProgress
from separatrix.cli.summary import summarise
from separatrix.cli.verbs.train import TrainOptions
from separatrix.data.errors import DataError
from separatrix.data.labels import words_kept
from separatrix.data.reading import Source, open_source
from separatrix.engine.rules import STREAMING
from separatrix.files.ingest import TrainingBlocks, read_blocks, roles_for
from separatrix.files.out_of_core import TrainingState, begin, resume
from separatrix.learners import linear
from separatrix.learners.linear_base import LinearLearner
from separatrix.modelfile.archive import load, save

if TYPE_CHECKING:
    from separatrix.features.table import TableFeaturizer


def parse_size(text: str) -> int:
    """Return a size such as 512M or 2G in bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]?", text.strip())
    if not match:
        raise DataError(f'--memory: "{text}" is not a size; use for example 512M or 2G')
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def parse_c(text: str) -> float | str:
    """Return C as a number, or "auto"."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise DataError(f'-C: "{text}" is neither a number nor auto') from None


class Training:
    """One run of `separatrix train`."""

    def __init__(self, options: TrainOptions) -> None:
        self.options = options
        self.saved = False
        self._stop = False
        self._last_saved = time.monotonic()
        if (options.early_stopping or options.calibrate) and not (options.holdout or options.validate):
            raise DataError("--early-stopping and --calibrate need held-out examples: use --holdout 0.1 or --validate FILE")
        if options.holdout and options.validate:
            raise DataError("--holdout cannot be combined with --validate")
        if options.checkpoint is not None and options.learner not in STREAMING:
            raise DataError(f"--checkpoint supports the learners {' and '.join(STREAMING)}, not {options.learner}")
        for path in (options.output, options.checkpoint):
            if path is not None and not path.absolute().parent.is_dir():
                raise DataError(f"{path}: the folder {path.absolute().parent} does not exist")

    def run(self) -> dict[str, Any] | None:
        """Train, write the model, and return the summary; None if the run was interrupted."""
        options, began = self.options, time.perf_counter()
        if options.engine is not None:
            from separatrix.cli.sharded import train_on_shards

            return train_on_shards(options, self._learner())
        source = self._open(options.data, options.label)
        validation = None if options.validate is None else self._open(options.validate, source.label, {})
        with TrainingProgress(options.quiet or options.as_json) as progress:
            data_hash = _DataHash(source)
            features = self._features(source)
            gathered = read_blocks(
                source,
                features,
                memory=parse_size(options.memory),
                fraction=options.holdout,
                seed=options.seed,
                validation=validation,
                missing_label=options.missing_label,
                mixed=options.order != "cyclic",
                report=progress.rows_read,
            )
            try:
                read = time.perf_counter()
                learner = self._train(gathered, data_hash, progress)
                trained = time.perf_counter()
                summary = summarise(
                    source,
                    gathered,
                    learner,
                    data_hash=data_hash.value(),
                    settings=options.settings(),
                    seconds_reading=read - began,
                    seconds_training=trained - read,
                )
                if options.output is not None:
                    save(learner, options.output, features=gathered.features, facts=summary["facts"])
                    summary["model"] = str(options.output)
                    summary["bytes"] = options.output.stat().st_size
                if options.checkpoint is not None:
                    options.checkpoint.unlink(missing_ok=True)
            finally:
                gathered.close()
        summary["seconds"] = round(time.perf_counter() - began, 3)
        return summary

    def _open(self, data: str, label: str | None, expected: dict[str, str] | None = None) -> Source:
        options = self.options
        settings: dict[str, Any] = {"label_words": words_kept(options.missing_label), "unused": options.drop or ()}
        return open_source(data, label=label, expected=expected, **settings, **options.reading())

    def _features(self, source: Source) -> TableFeaturizer | None:
        options = self.options
        if source.kind == "rows":
            if options.roles() or options.numbers:
                raise DataError(f"{source.name}: {source.format} data have no columns that could have a role")
            return None
        from separatrix.features.table import TableFeaturizer
        from separatrix.features.text import TextFeaturizer

        assert source.schema is not None
        names = [name for name in source.schema.names if name != source.label]
        roles = roles_for(source.name, source.schema.names, names, options.roles())
        return TableFeaturizer(
            roles=roles, numbers=options.numbers or "bins", text=TextFeaturizer(n_features=1 << options.bits)
        )

    def _learner(self) -> Any:
        options = self.options
        if options.average_from > 1 and options.learner != "averaged":
            raise DataError(f"--average-from supports the learner averaged, not {options.learner}")
        if options.average_from > options.passes:
            raise DataError(f"--average-from {options.average_from} is after the last of {options.passes} passes")
        averaging: dict[str, Any] = {"average_from": options.average_from} if options.learner == "averaged" else {}
        learner_class = getattr(linear, f"{options.learner.capitalize()}Learner")
        return learner_class(
            rule=options.rule,
            **averaging,
            C=parse_c(options.C),
            margin=options.margin,
            tie=options.tie,
            multi_class=options.multi_class,
            order=options.order,
            fit_intercept=options.bias,
            max_iter=options.passes,
            early_stopping=options.early_stopping,
            n_iter_no_change=options.patience,
            class_weight=options.class_weight,
            calibrate="sigmoid" if options.calibrate else None,
            random_state=options.seed,
            record=options.record,
        )

    def _train(self, gathered: TrainingBlocks, data_hash: _DataHash, progress: TrainingProgress) -> Any:
        learner = self._learner()
        if self.options.learner not in STREAMING:
            return _fit_whole(learner, gathered)
        state = self._resumed(gathered, data_hash, learner) or begin(
            learner, gathered.blocks, gathered.classes, gathered.held_out
        )
        # An interrupt is noted and acted on between two blocks, where a checkpoint can be written.
        handler = signal.getsignal(signal.SIGINT)
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread:
            signal.signal(signal.SIGINT, self._request_stop)

        def after_block(state: TrainingState, rows: int) -> None:
            progress.rows_trained(state, rows, gathered.blocks.n)
            self._save_state(learner, gathered, data_hash, state)
            if self._stop:
                raise KeyboardInterrupt

        progress.begin_training(learner.max_iter, gathered.blocks.n)
        try:
            return resume(learner, gathered.blocks, gathered.held_out, state, after_block=after_block)
        finally:
            if in_main_thread:
                signal.signal(signal.SIGINT, handler)

    def _request_stop(self, number: int, frame: Any) -> None:
        self._stop = True

    # Checkpoints.

    def _save_state(
        self, learner: LinearLearner, gathered: TrainingBlocks, data_hash: _DataHash, state: TrainingState
    ) -> None:
        options = self.options
        due = self._stop or time.monotonic() - self._last_saved >= options.checkpoint_every
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

    def _resumed(self, gathered: TrainingBlocks, data_hash: _DataHash, learner: LinearLearner) -> TrainingState | None:
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
            why = "another --memory" if layout else "an earlier version, which mixed the rows otherwise"
            raise DataError(f"{path} was written with {why}; delete it, or name another file")
        learner.n_features_in_ = gathered.blocks.d
        self.saved = True
        return TrainingState.resumed(checkpoint.estimator.run_, checkpoint.facts["checkpoint"], checkpoint.arrays)


def _fit_whole(learner: LinearLearner, gathered: TrainingBlocks) -> LinearLearner:
    """Fit a learner that needs all examples at once."""
    if gathered.blocks.spilled:
        raise DataError(f"{learner.public_name()} needs all examples in memory: increase --memory, or use another --learner")
    X, y = gathered.blocks.whole(gathered.classes)
    validation = {}
    if gathered.held_out is not None:
        X_val, y_val = gathered.held_out.whole(gathered.classes)
        validation = {"X_val": X_val, "y_val": y_val}
    learner.fit(X, y, **validation)
    if gathered.held_out is not None and (unknown := sum(gathered.held_out.unknown_labels().values())):
        # Held-out examples of no class count as wrong.
        share = 1 - unknown / gathered.held_out.n
        learner.validation_scores_ = [share * score for score in learner.validation_scores_]
    return learner


class _DataHash:
    """The hash of the data, computed in a thread while they are being read."""

    def __init__(self, source: Source) -> None:
        self._source, self._hash, self._thread = source, "", None
        self._error: DataError | None = None
        if source.rereadable:
            self._thread = threading.Thread(target=self._compute, daemon=True)
            self._thread.start()

    def _compute(self) -> None:
        try:
            self._hash = self._source.fingerprint()
        except DataError as error:  # the file is gone; whoever asks for the hash is told
            self._error = error

    def value(self) -> str:
        if self._thread is not None:
            self._thread.join()
        elif not self._hash:
            self._compute()
        if self._error is not None:
            raise self._error
        return self._hash
