"""`separatrix train`: from a file to a model."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from separatrix.cli.meter import Meter
from separatrix.cli.refusal import refusing
from separatrix.cli.report import show, summarise
from separatrix.data.errors import DataError
from separatrix.data.reading import Source, open_source
from separatrix.estimators.linear import AveragedPerceptron, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.files.ingest import Gathered, gather, roles_for
from separatrix.files.out_of_core import State, begin, go_on
from separatrix.modelfile.model import load, save

if TYPE_CHECKING:
    from separatrix.features.table import TableFeatures

LEARNERS = {
    "averaged": AveragedPerceptron,
    "last": Perceptron,
    "voted": VotedPerceptron,
    "pocket": PocketPerceptron,
}
NOT_SETTINGS = (
    "data",
    "output",
    "validate",
    "memory",
    "checkpoint",
    "checkpoint_every",
    "as_json",
    "quiet",
    "engine",
    "mix",
)
"""Options that the model does not depend on, or that the data stand for."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    data: str
    label: str | None
    output: Path | None
    text: list[str] | None
    categorical: list[str] | None
    number: list[str] | None
    drop: list[str] | None
    numbers: str | None
    bits: int
    learner: str
    rule: str
    C: str
    margin: float
    passes: int
    average_from: int
    order: str
    tie: str
    bias: bool
    multi_class: str
    class_weight: str | None
    seed: int
    holdout: float
    validate: str | None
    early_stopping: bool
    patience: int
    calibrate: bool
    memory: str
    checkpoint: Path | None
    checkpoint_every: float
    record: bool
    engine: str | None
    mix: str
    form: str | None
    header: bool | None
    on_error: str
    as_json: bool
    quiet: bool

    def settings(self) -> dict[str, Any]:
        """Return what the model depends on, beside the data."""
        return {name: value for name, value in asdict(self).items() if name not in NOT_SETTINGS and value is not None}


def run(options: Options) -> int:
    """Train, report, write, and return the exit status."""
    with refusing("train", options.data):
        training = Training(options)
        try:
            summary = training.run()
        except KeyboardInterrupt:
            return _interrupted(options, training.saved)
        if summary is None:
            return _interrupted(options, training.saved)
    if options.as_json:
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        show(summary)
    return 0


def _interrupted(options: Options, saved: bool) -> int:
    if saved:
        typer.echo(f"separatrix train: interrupted; the same command goes on from {options.checkpoint}", err=True)
    else:
        typer.echo("separatrix train: interrupted; nothing was written", err=True)
    return 130


def bytes_of(text: str) -> int:
    """Return a size as 512M or 2G in bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]?", text.strip())
    if not found:
        raise DataError(f"--memory {text} is no size: write 512M or 2G")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2].lower() or " "))


def roles_of(options: Options) -> dict[str, str]:
    """Return the roles that columns were given, by name or number."""
    given = (("text", options.text), ("category", options.categorical), ("number", options.number), ("drop", options.drop))
    return {column: role for role, columns in given for column in columns or ()}


class Training:
    """One run of the verb."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.saved = False
        self._stop = False
        self._last_saved = time.monotonic()
        if options.learner not in LEARNERS:
            raise DataError(f"--learner {options.learner} is not one of {', '.join(LEARNERS)}")
        if (options.early_stopping or options.calibrate) and not (options.holdout or options.validate):
            raise DataError("--early-stopping and --calibrate need held-out examples: --holdout 0.1, or --validate FILE")
        if options.holdout and options.validate:
            raise DataError("--holdout and --validate both name held-out examples: choose one")
        self.streams = options.learner in ("averaged", "last")
        if options.checkpoint is not None and not self.streams:
            raise DataError(f"--checkpoint is for learners that can go on: averaged and last, not {options.learner}")
        for path in (options.output, options.checkpoint):
            if path is not None and not path.absolute().parent.is_dir():
                raise DataError(f"{path}: there is no folder {path.absolute().parent}")

    def run(self) -> dict[str, Any] | None:
        """Return the summary; None where it was interrupted."""
        options, began = self.options, time.perf_counter()
        if options.engine is not None:
            from separatrix.cli import clusters

            return clusters.train(options, self._learner(), roles_of(options), _plain(options.settings()))
        source = self._open(options.data, options.label)
        validation = None if options.validate is None else self._open(options.validate, source.label)
        with Meter(options.quiet or options.as_json) as meter:
            digest = _Digest(source)
            features = self._features(source)
            gathered = gather(
                source,
                features,
                memory=bytes_of(options.memory),
                fraction=options.holdout,
                seed=options.seed,
                validation=validation,
                told=meter.read,
            )
            try:
                read = time.perf_counter()
                learner = self._train(gathered, digest, meter)
                trained = time.perf_counter()
                if learner is None:
                    return None
                summary = summarise(
                    *(source, gathered, learner, digest.value(), _plain(options.settings()), trained - read, read - began)
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

    def _open(self, data: str, label: str | None) -> Source:
        options = self.options
        header: bool | str = "auto" if options.header is None else options.header
        return open_source(data, format=options.form, label=label, header=header, on_error=options.on_error)

    def _features(self, source: Source) -> TableFeatures | None:
        if source.kind == "rows":
            if roles_of(self.options) or self.options.numbers:
                raise DataError(f"{source.name}: {source.format} data have no columns to give a role to")
            return None
        from separatrix.features.table import TableFeatures
        from separatrix.features.text import TextFeatures

        assert source.schema is not None
        names = [name for name in source.schema.names if name != source.label]
        roles = roles_for(source.name, source.schema.names, names, roles_of(self.options))
        return TableFeatures(
            roles=roles, numbers=self.options.numbers or "bins", text=TextFeatures(n_features=1 << self.options.bits)
        )

    def _learner(self) -> Any:
        options = self.options
        if options.average_from > 1 and options.learner != "averaged":
            raise DataError(f"--average-from is for the averaged learner, not {options.learner}")
        if options.average_from > options.passes:
            raise DataError(f"--average-from {options.average_from} is after the last of {options.passes} passes")
        since: dict[str, Any] = {"average_from": options.average_from} if options.learner == "averaged" else {}
        return LEARNERS[options.learner](
            rule=options.rule,
            **since,
            C="auto" if options.C == "auto" else _number("-C", options.C),
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

    def _train(self, gathered: Gathered, digest: _Digest, meter: Meter) -> Any:
        learner = self._learner()
        if not self.streams:
            return _fit_whole(learner, gathered)
        state = self._resumed(gathered, digest, learner) or begin(
            learner, gathered.blocks, gathered.classes, gathered.held_out
        )
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._ask_to_stop)

        def after_block(state: State, rows: int) -> None:
            meter.trained(state, rows, gathered.blocks.n)
            self._save_state(learner, gathered, digest, state)
            if self._stop:
                raise KeyboardInterrupt

        meter.begin(learner.max_iter, gathered.blocks.n)
        try:
            return go_on(learner, gathered.blocks, gathered.held_out, state, after_block=after_block)
        finally:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, before)

    def _ask_to_stop(self, number: int, frame: Any) -> None:
        self._stop = True

    # Checkpoints.

    def _save_state(self, learner: Any, gathered: Gathered, digest: _Digest, state: State) -> None:
        options = self.options
        due = self._stop or time.monotonic() - self._last_saved >= options.checkpoint_every
        if options.checkpoint is None or not due:
            return
        facts = {"checkpoint": state.told(), "settings": _plain(options.settings()), "data": digest.value()}
        learner._publish(state.run, list(state.per_pass))
        learner.converged_, learner.cycle_ = False, None
        save(learner, options.checkpoint, features=gathered.features, facts=facts, arrays=state.arrays())
        self.saved, self._last_saved = True, time.monotonic()

    def _resumed(self, gathered: Gathered, digest: _Digest, learner: Any) -> State | None:
        path = self.options.checkpoint
        if path is None or not path.exists():
            return None
        kept = load(path)
        if "checkpoint" not in kept.facts:
            raise DataError(f"{path} is a model, not a checkpoint: name another file")
        if kept.facts["settings"] != _plain(self.options.settings()) or kept.facts["data"] != digest.value():
            raise DataError(f"{path} belongs to other data or other settings: delete it, or name another file")
        learner.n_features_in_ = gathered.blocks.d
        self.saved = True
        return State.resumed(kept.estimator._run, kept.facts["checkpoint"], kept.arrays)


def _fit_whole(learner: Any, gathered: Gathered) -> Any:
    """Fit a learner that needs all examples at once."""
    if gathered.blocks.spilled:
        raise DataError(f"{type(learner).__name__} needs all examples in memory: give more --memory, or another --learner")
    X, y = gathered.blocks.whole(gathered.classes)
    held = {}
    if gathered.held_out is not None:
        X_val, y_val = gathered.held_out.whole(gathered.classes)
        held = {"X_val": X_val, "y_val": y_val}
    return learner.fit(X, y, **held)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{name} {text} is no number") from None


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    return made


class _Digest:
    """The hash of the data, taken in a thread while they are being read."""

    def __init__(self, source: Source) -> None:
        self._source, self._found, self._thread = source, "", None
        if source.rereadable:
            self._thread = threading.Thread(target=self._take, daemon=True)
            self._thread.start()

    def _take(self) -> None:
        self._found = self._source.fingerprint()

    def value(self) -> str:
        if self._thread is not None:
            self._thread.join()
        elif not self._found:
            self._take()
        return self._found
