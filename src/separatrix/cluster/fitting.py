"""`fit` trains an estimator on shards with an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from separatrix.cluster.dealing import (
    READABLE,
    UNLIKE,
    UnlikeShardsWarning,
    grouped,
    held_out_shards,
    is_file,
    new_shards,
    shards_differ,
)
from separatrix.cluster.engine_choice import engine_of
from separatrix.cluster.engines import Engine, Work
from separatrix.cluster.mistake_bound import margin_of
from separatrix.cluster.mixing import Listeners, Mixture, first_pass_on_reading
from separatrix.cluster.results import FirstPass
from separatrix.cluster.shards import CollectionSource, ShardReader, TextColumnsError, new_training_id
from separatrix.cluster.summaries import Summaries, check_alike, class_counts, classes_of, fingerprint, notes_on_labels
from separatrix.cluster.tagging.fitting import check_tagger, fit_tagger
from separatrix.cluster.work import DetectFormat, FindStrayQuotes, LearnColumns, SummarizeShard
from separatrix.data.errors import DataError
from separatrix.data.labels import words_kept
from separatrix.data.reading import untitled_delimiter
from separatrix.engine.rules import MIXES, RULES
from separatrix.engine.user_warnings import warn_user
from separatrix.estimators.featurizers import TableFeatures
from separatrix.features.table import TableFeaturizer
from separatrix.files.out_of_core import TrainingState
from separatrix.learners.linear_base import LinearLearner
from separatrix.learners.online import OnlineLearner
from separatrix.learners.progress import passes_bar
from separatrix.modelfile.archive import load, save
from separatrix.modelfile.model import Model
from separatrix.sequences.perceptron import SequencePerceptron


def fit(
    estimator: OnlineLearner | SequencePerceptron,
    shards: Any,
    y: Any = None,
    *,
    engine: Any = None,
    label: str | int | None = None,
    features: TableFeaturizer | None = None,
    held_out: Any = None,
    holdout: float = 0.0,
    mix: str = "features",
    checkpoint: str | os.PathLike[str] | None = None,
    reading: dict[str, Any] | None = None,
    working: Callable[[str, int, int], None] | None = None,
) -> Model:
    """Train an estimator on shards by iterative parameter mixing; return a model with the fitted estimator.

    Shards are to be samples of the whole. If they hold different classes (a file sorted by class, and then cut), rows are
    dealt anew among them: `facts["dealt"]` of the model says so. Where that is impossible there is an `UnlikeShardsWarning`.

    Parameters
    ----------
    estimator : Perceptron, AveragedPerceptron, PassiveAggressive, or SequencePerceptron, whose files are in CoNLL format
    shards : a pattern of files or a list of patterns, read by the workers; a list of (X, y); or a collection of the engine:
        a Dask array, data frame, bag or list of delayed values, or a Spark data frame
    y : the labels of a collection of numbers; without y, `label` names the label column of a table
    engine : None (in this process), "local:N", "dask://HOST:PORT", "spark://HOST:PORT", a Dask client or a Spark session
    label : the label column of tables
    features : a `TableFeatures` for the columns of tables, fitted here; with default settings if not given
    held_out : shards that are not trained on, but scored after each pass
    holdout : a fraction of the shards to hold out instead, drawn with the seed; with `early_stopping=True`, the default is
        `validation_fraction`
    mix : how weights are averaged: "features" averages each feature over the shards in which it occurs, "uniform" over all
        shards, and "mistakes" weights each shard by its share of the mistakes
    checkpoint : a file to which the state is written after each pass, and from which the same call resumes
    reading : options of `open_source` for files, and missing_label, as --missing-label of the command line
    working : called with (what is being done, shards done, shards in total)

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.cluster import bounds, fit
    >>> shards = [([[4, 0], [1, 1]], [1, -1]), ([[0, 1], [-2, -2]], [-1, 1])]
    >>> model = fit(Perceptron(order="cyclic", fit_intercept=False), shards)
    >>> model.estimator.coef_, model.estimator.shard_mistakes_.tolist(), model.estimator.converged_
    (array([[ 1.5, -3. ]]), [[2, 1], [1, 1], [2, 0], [0, 0]], True)
    >>> bounds(model)
    7 mistakes in 4 passes; R = 4, γ = 0.447214
      iterative parameter mixing R²/γ², 2 shards: Σμ·mistakes 3.5 ≤ 80
    """
    if isinstance(estimator, SequencePerceptron):
        check_tagger(estimator, label=label, features=features, checkpoint=checkpoint, reading=reading)
    else:
        _check(estimator)
    if mix not in MIXES:
        raise ValueError(f"mix={mix!r} is not one of {', '.join(MIXES)}")
    used_engine = engine_of(engine)
    try:
        if isinstance(estimator, SequencePerceptron):
            return fit_tagger(estimator, used_engine, (shards, y), held_out, holdout, mix, working)
        fitting = _Fit(estimator, used_engine, label, features, mix, checkpoint, reading, working)
        return fitting.run(shards, y, held_out, holdout)
    finally:
        if used_engine is not engine:
            used_engine.close()


def fit_here(estimator: OnlineLearner, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> None:
    """Fit an estimator on a Dask collection, on the cluster of the current client: `estimator.fit(X, y)`."""
    if sample_weight is not None:
        raise ValueError("fit on a Dask collection works without sample_weight only: use class_weight, or leave rows out")
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        raise ValueError("X is a Dask collection, but there is no cluster: create a dask.distributed.Client first") from None
    fit(estimator, X, y, engine=client, held_out=None if X_val is None else (X_val, y_val))


def _check(estimator: LinearLearner) -> None:
    name = type(estimator).__name__
    if not isinstance(estimator, OnlineLearner) or estimator.stores_rows:
        reason = "predicts with its mistakes" if getattr(estimator, "stores_rows", False) else "needs all examples at once"
        raise ValueError(f"{name} {reason}: on shards train Perceptron, AveragedPerceptron or PassiveAggressive")
    estimator.check_parameters()
    if estimator.record:
        raise ValueError("record=True stores the rows of the mistakes, but the driver holds no data: use record=False")
    if RULES[estimator.rule].spread == "full":
        raise ValueError(f'rule="{estimator.rule}" has a matrix for each output, which cannot be mixed: use rule="arow"')


class _Fit:
    """One call of `fit`."""

    def __init__(
        self,
        estimator: OnlineLearner,
        engine: Engine,
        label: str | int | None,
        features: TableFeaturizer | None,
        mix: str,
        checkpoint: str | os.PathLike[str] | None,
        reading: dict[str, Any] | None,
        working: Callable[[str, int, int], None] | None,
    ) -> None:
        self.estimator, self.engine, self.mix = estimator, engine, mix
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.training_ids: list[str] = []
        options = dict(reading or {})
        missing_label = options.pop("missing_label", "skip")
        if words := words_kept(missing_label):
            options["label_words"] = words
        self.reader = ShardReader(label=label, options=options, missing_label=missing_label)
        self.roles: ShardReader | None = None
        """The reader before it has learned any columns; None if there is nothing to learn."""
        self.deal_seed: int | None = None
        """The seed with which rows were dealt anew among the shards; None if they were not."""
        self.warning: str | None = None
        self.first_pass: FirstPass | None = None
        self.seed: int | None = None
        """What the first pass has changed, and its seed, where it was made as the shards were read."""
        self.text_columns: dict[str, str] = {}
        """The columns that turned out to be text in some shard, with the finding."""
        self.features_of_caller = features
        self.features: TableFeaturizer | None = None
        self.working: Callable[[str, int, int], None] = working or (lambda doing, done, total: None)

    def run(self, shards: Any, y: Any, held_out: Any, holdout: float) -> Model:
        train = self.engine.add_shards(shards, y)
        if not train:
            raise DataError("there are no shards to learn from")
        checkpoint = _load(self.checkpoint)
        held_out_numbers = []
        if held_out is not None:
            held_out_numbers = self.engine.add_shards(*held_out if isinstance(held_out, tuple) else (held_out,))
        fraction = holdout or self.estimator.early_stopping * self.estimator.validation_fraction
        self.drawn: list[int] = []
        if not held_out_numbers and fraction:
            train, held_out_numbers = held_out_shards(train, fraction, self.estimator.seed())
            self.drawn = held_out_numbers
        if self.estimator.calibrate is not None and not held_out_numbers:
            raise ValueError("calibrated probabilities need held-out shards")
        try:
            self.file_summaries = summaries = self._read(train, held_out_numbers, y is not None, checkpoint)
            check_alike(summaries, self.engine.names)
            summaries = self._deal(train, summaries, checkpoint)
            classes = classes_of([summaries[number] for number in train])
            trained, held_out_too = ([summaries[number] for number in of] for of in (train, held_out_numbers))
            self.notes = notes_on_labels(trained, held_out_too, classes)
            if self.reader.features is not None:
                d = self.reader.features.n_features_out_
                summaries = {number: summary._replace(d=d) for number, summary in summaries.items()}
            data = (self.engine, self.reader, self.estimator, classes, summaries, train, held_out_numbers, self.mix)
            mixture = Mixture(*data, after_pass=self._save, seed=self.seed)
            if self.deal_seed is None and self.first_pass is not None and self.first_pass.classes == classes.tolist():
                mixture.first_pass = self.first_pass.result
            return self._train(mixture, checkpoint)
        finally:
            for training_id in self.training_ids:
                self.engine.forget(training_id)

    def _reduce(self, doing: str, work: Work, numbers: list[int]) -> Any:
        return self.engine.reduce(work, numbers, lambda done: self.working(doing, done, len(numbers)))

    def _read(self, train: list[int], held_out: list[int], pairs: bool, checkpoint: Model | None) -> Summaries:
        """Detect the format, learn the columns, and read every shard; again where a column turns out to be text."""
        unread, fitted = self.reader, None if checkpoint is None else checkpoint.features
        assert fitted is None or isinstance(fitted, TableFeaturizer)
        self.text_columns = {} if checkpoint is None else checkpoint.facts.get("text_columns", {})
        while True:
            types = (unread.options.get("types") or {}) | dict.fromkeys(self.text_columns, "text")
            options = unread.options | ({"types": types} if types else {})
            self.reader = self._noted(replace(unread, training_id=new_training_id(), options=options))
            try:
                if pairs:
                    self.reader.format = CollectionSource.format
                else:
                    self._detect_format(train, fitted)
                return self._summarize([*train, *held_out], train=train if checkpoint is None else [])
            except TextColumnsError as finding:
                self.text_columns = self.text_columns | dict.fromkeys(finding.names, str(finding))

    def _summarize(self, numbers: list[int], doing: str = "reading", train: Sequence[int] = ()) -> Summaries:
        """Read shards, and make the first pass over those of `train` where that needs nothing from the others."""
        first_pass = first_pass_on_reading(self.estimator, self.reader, len(train), self.mix)
        self.seed = None if first_pass is None else first_pass.seed
        read = self._reduce(doing, SummarizeShard(self.reader, first_pass, frozenset(train)), numbers)
        self.first_pass = read.first_pass
        return {number: read.summaries[number] for number in numbers}

    def _detect_format(self, train: list[int], fitted: TableFeaturizer | None) -> None:
        """Detect how to read the shards, and learn the columns of tables unless fitted features are given."""
        features: TableFeaturizer = self.features_of_caller or TableFeatures()
        self.reader.features = (fitted or features).plain()
        work = DetectFormat(self.reader, learn=fitted is None)
        reader = self.engine.reduce(work, train[:1]).reader or self.engine.reduce(work, train).reader
        if reader is None:
            raise DataError(f"{self.engine.names[train[0]]}: there is no example in it, nor in any other shard")
        if reader.trusts_quotes and self.engine.reduce(FindStrayQuotes(reader), train).values[0]:
            self.reader.options["quote"] = ""
            reader = self.engine.reduce(work, train[:1]).reader or self.engine.reduce(work, train).reader
            assert reader is not None
        self.reader = reader
        if self.reader.features is None:
            return
        if fitted is None:
            self.features, self.roles = features, self.reader
            self._learn_columns(train)
        else:
            self._set_features(fitted)

    def _learn_columns(self, numbers: list[int], *dealt: Any) -> None:
        assert self.features is not None and self.roles is not None and self.roles.features is not None
        learned = self._reduce("learning the columns", LearnColumns(self.roles, *dealt), numbers)
        self.features.roles = self.roles.features.roles
        self._set_features(self.features.adopt(learned.schema))

    def _set_features(self, fitted: TableFeaturizer) -> None:
        self.features, self.reader = fitted, self.reader.with_features(fitted)

    # Dealing.

    def _deal(self, train: list[int], summaries: Summaries, checkpoint: Model | None) -> Summaries:
        """Deal rows anew among the shards if their classes differ; return the summaries of the shards to train with."""
        numbers = sorted([*train, *self.drawn])
        filled = [summaries[number] for number in numbers]
        counts = class_counts(filled, classes_of(filled))
        if checkpoint is not None:
            self.deal_seed = checkpoint.facts.get("dealt")
        elif shards_differ(counts):
            self.deal_seed = self.estimator.seed()
        if self.deal_seed is None:
            return summaries
        undealt = self.reader
        try:
            groups = [[numbers[place] for place in group] for group in grouped(counts)]
            dealt = self._summarize_dealt(train, groups, self.deal_seed, learn=checkpoint is None)
        except DataError as error:
            if checkpoint is not None:
                raise
            if undealt.features is not self.reader.features:
                self._learn_columns(train)
            files = all(is_file(self.engine.chunks[number]) for number in numbers)
            self.warning = UNLIKE.format(error=error, remedy=READABLE if files else "")
            self.deal_seed, self.reader = None, undealt
            warn_user(self.warning, UnlikeShardsWarning)
            return summaries
        # What describes a file stays at its number; what describes rows is that of the new shard.
        return {
            number: dealt[number]._replace(digest=summary.digest, names=summary.names) if number in dealt else summary
            for number, summary in summaries.items()
        }

    def _summarize_dealt(self, train: list[int], groups: list[list[int]], seed: int, learn: bool) -> Summaries:
        """Make the new shards, and return their summaries."""
        numbers = sorted(number for group in groups for number in group)
        if self.drawn and self.roles is not None and learn:  # the columns are to be learned from rows that are not held out
            deal = new_shards(self.engine, self.reader, groups, seed).deal
            self._learn_columns(numbers, deal, train)
            self.reader = self._noted(replace(self.reader, training_id=new_training_id()))
            self._summarize(numbers)
        old = self.reader
        self.reader = self._noted(new_shards(self.engine, old, groups, seed))
        dealt = self._summarize(numbers, "dealing rows anew")
        if all(is_file(self.engine.chunks[number]) for number in numbers):
            self.engine.forget(old.training_id)
        return dealt

    def _noted(self, reader: ShardReader) -> ShardReader:
        """Note the folder of a reader, to be deleted at the end."""
        self.training_ids.append(reader.training_id)
        return reader

    def _train(self, mixture: Mixture, checkpoint: Model | None) -> Model:
        estimator = self.estimator
        self.settings = {"parameters": repr(sorted(estimator.get_params(deep=False).items())), "mix": self.mix}
        self.data = fingerprint([summary.digest for summary in mixture.summaries.values()])
        self.sizes = [summary.n for summary in mixture.summaries.values()]
        with passes_bar(estimator.verbose, estimator.max_iter, type(estimator).__name__) as progress:
            mixture.listeners = Listeners(progress, self.working)
            if checkpoint is None:
                start = estimator.start_weights(mixture.classes, mixture.d) if estimator.warm_start else None
                mixture.begin(start)
            else:
                self._resume(mixture, checkpoint)
            mixture.resume()
        mixture.publish()
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
        return Model(estimator, self.features, self._facts(mixture))

    def _facts(self, mixture: Mixture) -> dict[str, Any]:
        summaries = [mixture.summaries[number] for number in mixture.train]
        drawn = self.drawn if self.deal_seed is not None else []
        files = [self.file_summaries[number] for number in sorted([*mixture.train, *drawn])]
        unlabelled = sum(summary.unlabelled for summary in files)
        described = [*files, *(self.file_summaries[number] for number in mixture.held_out if number not in drawn)]
        notes = [*self.text_columns.values(), *self.notes, *(note for summary in described for note in summary.notes)]
        counts = class_counts(summaries, mixture.classes).sum(axis=0).tolist()
        return {
            "data": self.data,
            "format": self.reader.format,
            "rows": sum(summary.n for summary in summaries),
            "held_out": sum(mixture.summaries[number].n for number in mixture.held_out),
            "features": mixture.d,
            "classes": dict(zip(map(str, mixture.classes.tolist()), counts, strict=True)),
            "skipped": sum(summary.skipped for summary in files),
            "label": self.reader.label,
            "shards": len(mixture.train),
            "mix": self.mix,
            "margin": margin_of(mixture),
            "problems": [problem for summary in files for problem in summary.problems][:3],
            **({} if (delimiter := untitled_delimiter(self.reader.file_reader)) is None else {"delimiter": delimiter}),
            **({"notes": [*dict.fromkeys(notes)][:10]} if notes else {}),
            **({"unlabelled": unlabelled} if unlabelled else {}),
            **({} if self.deal_seed is None else {"dealt": True}),
            **({"sorted_rows": True} if mixture.presents_sorted_rows() else {}),
            **({} if self.warning is None else {"unlike_shards": self.warning}),
        }

    # Checkpoints.

    def _save(self, mixture: Mixture) -> None:
        if self.checkpoint is None:
            return
        run, estimator = mixture.settle(), self.estimator
        state = TrainingState(run, mixture.history, 0, None, 0.0, mixture.errors, mixture.C_scores, mixture.digests)
        progress = state.facts() | {"mistakes": mixture.mistakes, "converged": mixture.history.ended == "clean"}
        estimator.n_features_in_ = mixture.d
        estimator.publish(run, mixture.history.mistakes)
        facts: dict[str, Any] = {"checkpoint": progress, "settings": self.settings, "data": self.data, "sizes": self.sizes}
        facts |= {} if self.deal_seed is None else {"dealt": self.deal_seed}
        facts |= {"text_columns": self.text_columns} if self.text_columns else {}
        save(estimator, self.checkpoint, features=self.features, facts=facts, arrays=state.arrays())

    def _resume(self, mixture: Mixture, checkpoint: Model) -> None:
        facts = checkpoint.facts
        if (facts["settings"], facts["data"], facts["sizes"]) != (self.settings, self.data, self.sizes):
            raise DataError(f"{self.checkpoint} belongs to other data or other settings: delete it, or choose another file")
        progress = facts["checkpoint"]
        state = TrainingState.resumed(checkpoint.estimator.run_, progress, checkpoint.arrays)
        if state.ended and "reason" not in progress and progress["converged"]:
            state.history.ended = "clean"
        mixture.adopt(state.run)
        mixture.mistakes, mixture.history, mixture.digests = progress["mistakes"], state.history, state.digests
        mixture.errors, mixture.C_scores = state.errors, state.C_scores


def _load(path: Path | None) -> Model | None:
    checkpoint = load(path) if path is not None and path.exists() else None
    if checkpoint is not None and "checkpoint" not in checkpoint.facts:
        raise DataError(f"{path} is a model, not a checkpoint of a training on shards: choose another file")
    return checkpoint
