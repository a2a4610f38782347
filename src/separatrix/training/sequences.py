"""`train --sequence`: from a CoNLL file to a tagger, its figures, and its file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from math import inf
from typing import Any

import numpy as np

from separatrix import __version__
from separatrix.data.encodings import AUTO
from separatrix.data.errors import DataError, counted
from separatrix.data.streams import digest_of
from separatrix.engine.hooks import hook
from separatrix.modelfile.archive import save
from separatrix.modelfile.model import Model
from separatrix.sequences.conll import ConllFile
from separatrix.sequences.evaluation import evaluate_sequences
from separatrix.sequences.inputs import Tags, held_out_sequences
from separatrix.sequences.perceptron import ORDERS, RULES, SequencePerceptron
from separatrix.training.options import TrainOptions
from separatrix.training.progress import Progress
from separatrix.training.summary import Summary

SUPPORTED = (
    *("data", "output", "sequence", "templates", "scheme", "learner", "rule", "C", "passes", "order", "seed", "holdout"),
    *("validate", "early_stopping", "patience", "record", "resume", "float32", "bits", "engine", "mix", "encoding"),
)
"""The options of `train` that a tagger has, too."""


class SequenceSummary(Summary):
    """The figures of a tagger's training."""

    def lines(
        self,
        strong: Callable[[str], str] = str,
        alarm: Callable[[str], str] = str,
        worded: Callable[[str], str] = str,
    ) -> Iterator[str]:
        """Yield the figures as lines of text."""
        read = f"{counted(self['sequences'], 'sequence')} of {counted(self['tokens'], 'token')}"
        read += f" in {counted(self['shards'], 'shard')}" if self["shards"] else ""
        read += f", {counted(self['comments'], 'comment')} left out" if self["comments"] else ""
        held_out = f", {counted(self['held_out'], 'sequence')} held out" if self["held_out"] else ""
        ended = "a pass without a mistake" if self["converged"] else f"{self['mistakes'][-1]:,} in the last pass"
        yield from (worded(note) for note in self["notes"])
        yield f"{self['data']}: {read}{held_out}, {counted(len(self['classes']), 'tag')}, {self['features']:,} features"
        yield f"{counted(self['passes'], 'pass')}, {sum(self['mistakes']):,} mistakes, {ended}; {self['seconds']:.2f} s"
        if self["evaluation"] is not None:
            figures = self["evaluation"]
            of_entities = "" if figures["entities"] is None else f", entities F1 {figures['entities']['f1']:.4f}"
            yield strong(f"held out: {figures['accuracy']:.4f} of the tags are right{of_entities}")
        if self["bound"]:
            yield self["bound"]
        if self["output"]:
            yield f"model written to {self['output']} ({self['bytes']:,} bytes)"


def train_sequences(options: TrainOptions, progress: Progress) -> Model:
    """Train a tagger on a CoNLL file, or with an engine on several, whose last column has the tags."""
    check_options(options)
    began = time.perf_counter()
    trained, notes = _trained(options) if options.engine is None else (_trained_on_shards(options, progress), [])
    facts, tagger = trained.facts, trained.estimator
    facts |= {
        "version": __version__,
        "settings": {name: value for name, value in options.settings().items() if name in SUPPORTED},
    }
    evaluation = trained.evaluation
    if options.output is not None:
        save(trained, options.output, resume=options.resume, float32=options.float32)
    theorem = None if options.engine is None else hook("bounds_on_shards")(trained)
    trained.summary = SequenceSummary(
        facts=facts,
        data="standard input" if options.data == "-" else str(options.data),
        **{name: facts[name] for name in ("sequences", "tokens", "features", "classes")},
        shards=facts.get("shards"),
        comments=facts.get("comments", 0),
        held_out=0 if evaluation is None else evaluation.sequences,
        passes=tagger.n_iter_,
        mistakes=tagger.mistakes_per_pass_,
        converged=tagger.converged_,
        bound=None
        if theorem is None or theorem.bound == inf
        else f"{theorem.theorem}; {theorem.counted:.1f} ≤ {theorem.bound:.1f}",
        evaluation=None if evaluation is None else evaluation.to_dict(),
        output=None if options.output is None else str(options.output),
        bytes=0 if options.output is None else options.output.stat().st_size,
        seconds=round(time.perf_counter() - began, 3),
        notes=notes,
        **{"skipped": 0, "problems": [], "warnings": [], "columns": []},
    )
    return trained


def _tagger(options: TrainOptions) -> SequencePerceptron:
    return SequencePerceptron(
        rule=options.rule,
        C=_number(options.C),
        averaged=options.learner == "averaged",
        scheme=options.scheme,
        templates=_templates(options.templates),
        n_features=None if options.bits == DEFAULTS["bits"] else 1 << options.bits,
        order=options.order,
        max_iter=options.passes,
        early_stopping=options.early_stopping,
        n_iter_no_change=options.patience,
        random_state=options.seed,
        record=options.record,
    )


def _trained_on_shards(options: TrainOptions, progress: Progress) -> Model:
    """Train on shards, a file each."""
    model: Model = hook("fit_on_shards")(
        *(_tagger(options), options.data),
        engine=options.engine,
        held_out=options.validate,
        holdout=options.holdout,
        mix=options.mix,
        working=progress.shards_done,
    )
    return model


def _trained(options: TrainOptions) -> tuple[Model, list[str]]:
    """Train on one file in this process; return the model, and notes on how files were read."""
    file = _tagged(options.data, options)
    notes = list(file.notes)
    X, y = file.sentences(len(file.columns) - 1), file.tags()
    held_out, model = _held_out(options, file, notes), _tagger(options)
    model.check_scheme(Tags(y.names, y.codes), y.starts, y.names, file.place)
    if options.holdout:
        chosen = held_out_sequences(len(X), options.holdout, np.empty(0), options.seed)
        rest = np.delete(np.arange(len(X)), chosen)
        held_out, (X, y) = (X.take(chosen), y.take(chosen)), (X.take(rest), y.take(rest))
    validation = {} if held_out is None or not options.early_stopping else {"X_val": held_out[0], "y_val": held_out[1]}
    model.fit(X, y, **validation)
    counts = np.bincount(y.codes, minlength=len(y.names)).tolist()
    facts = {
        "format": "conll",
        "sequences": len(X),
        "tokens": int(X.starts[-1]),
        "features": model.n_features_in_,
        "classes": {str(name): count for name, count in zip(y.names.tolist(), counts, strict=True) if count},
        "data": (file.digest or digest_of(file.name)).hex(),
    }
    if file.comments:
        facts["comments"] = file.comments
    trained = Model(model, None, facts)
    trained.evaluation = None if held_out is None else evaluate_sequences(held_out[1], model.predict(held_out[0]))
    return trained, notes


DEFAULTS = {field.name: field.default for field in fields(TrainOptions)}


def check_options(options: TrainOptions) -> None:
    """Raise for an option that means nothing to a tagger."""
    for name, default in DEFAULTS.items():
        if name not in SUPPORTED and getattr(options, name) != default:
            raise DataError(f"{name}= cannot be combined with sequence=True")
    if options.engine is not None and options.encoding is not None:
        raise DataError("encoding= cannot be combined with engine= and sequence=True: convert the files to UTF-8")
    for name, choices in (("rule", RULES), ("order", ORDERS), ("learner", ("averaged", "last"))):
        if getattr(options, name) not in choices:
            raise DataError(f"{name}={getattr(options, name)!r} is not for sequences: use {' or '.join(choices)}")


def _held_out(options: TrainOptions, file: ConllFile, notes: list[str]) -> Any:
    """Return the sequences and tags of the file of held-out data, or None; add to the notes."""
    if options.validate is None:
        return None
    other = _tagged(options.validate, options)
    notes += other.notes
    if len(other.columns) != len(file.columns):
        raise DataError(f"{other.name} has {len(other.columns)} columns, and {file.name} has {len(file.columns)}")
    return other.sentences(len(file.columns) - 1), other.tags()


def _tagged(path: str, options: TrainOptions) -> ConllFile:
    file = ConllFile(path, options.encoding or AUTO)
    if len(file.columns) < 2:
        raise DataError(f"{file.name} has only one column: a tagger learns from two or more, the tag last")
    return file


def _templates(texts: list[str] | None) -> str | list[str]:
    return "default" if not texts else [piece.strip() for text in texts for piece in text.split(",") if piece.strip()]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"C={text!r} is not a number, as sequences need one") from None
