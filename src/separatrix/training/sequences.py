"""`train --sequence`: from a CoNLL file to a tagger, its figures, and its file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from separatrix import __version__
from separatrix.data.errors import DataError, counted
from separatrix.data.streams import digest_of
from separatrix.modelfile.archive import save
from separatrix.modelfile.model import Model
from separatrix.sequences.conll import ConllFile
from separatrix.sequences.evaluation import evaluate_sequences
from separatrix.sequences.inputs import held_out_sequences
from separatrix.sequences.perceptron import ORDERS, RULES, SequencePerceptron
from separatrix.training.options import TrainOptions
from separatrix.training.summary import Summary

SUPPORTED = (
    *("data", "output", "sequence", "templates", "scheme", "learner", "rule", "C", "passes", "order", "seed", "holdout"),
    *("validate", "early_stopping", "patience", "record", "resume", "float32", "bits"),
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
        held_out = f", {counted(self['held_out'], 'sequence')} held out" if self["held_out"] else ""
        ended = "a pass without a mistake" if self["converged"] else f"{self['mistakes'][-1]:,} in the last pass"
        yield f"{self['data']}: {read}{held_out}, {counted(len(self['classes']), 'tag')}, {self['features']:,} features"
        yield f"{counted(self['passes'], 'pass')}, {sum(self['mistakes']):,} mistakes, {ended}; {self['seconds']:.2f} s"
        if self["evaluation"] is not None:
            figures = self["evaluation"]
            of_entities = "" if figures["entities"] is None else f", entities F1 {figures['entities']['f1']:.4f}"
            yield strong(f"held out: {figures['accuracy']:.4f} of the tags are right{of_entities}")
        if self["output"]:
            yield f"model written to {self['output']} ({self['bytes']:,} bytes)"


def train_sequences(options: TrainOptions) -> Model:
    """Train a tagger on a CoNLL file, whose last column has the tags."""
    check_options(options)
    began = time.perf_counter()
    file = _tagged(options.data)
    X, y = file.sentences(len(file.columns) - 1), file.tags()
    held_out = _held_out(options, file)
    chosen = None
    if options.holdout:
        chosen = held_out_sequences(len(X), options.holdout, np.empty(0), options.seed)
        rest = np.delete(np.arange(len(X)), chosen)
        held_out, (X, y) = (X.take(chosen), y.take(chosen)), (X.take(rest), y.take(rest))
    model = SequencePerceptron(
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
    validation = {} if held_out is None or not options.early_stopping else {"X_val": held_out[0], "y_val": held_out[1]}
    model.fit(X, y, **validation)
    evaluation = None if held_out is None else evaluate_sequences(held_out[1], model.predict(held_out[0]))
    counts = np.bincount(y.codes, minlength=len(y.names)).tolist()
    classes = {str(name): count for name, count in zip(y.names.tolist(), counts, strict=True) if count}
    facts = {
        "format": "conll",
        "sequences": len(X),
        "tokens": int(X.starts[-1]),
        "features": model.n_features_in_,
        "classes": classes,
        "data": digest_of(options.data).hex() if os.path.exists(options.data) else "",
        "version": __version__,
        "settings": {name: value for name, value in options.settings().items() if name in SUPPORTED},
    }
    trained = Model(model, None, facts)
    if options.output is not None:
        save(trained, options.output, resume=options.resume, float32=options.float32)
    trained.evaluation = evaluation
    trained.summary = SequenceSummary(
        facts=facts,
        data=file.name,
        sequences=len(X),
        tokens=facts["tokens"],
        held_out=0 if held_out is None else len(held_out[0]),
        features=model.n_features_in_,
        classes=classes,
        passes=model.n_iter_,
        mistakes=model.mistakes_per_pass_,
        converged=model.converged_,
        evaluation=None if evaluation is None else evaluation.to_dict(),
        output=None if options.output is None else str(options.output),
        bytes=0 if options.output is None else options.output.stat().st_size,
        seconds=round(time.perf_counter() - began, 3),
        **{"skipped": 0, "problems": [], "notes": [], "warnings": [], "columns": []},
    )
    return trained


DEFAULTS = {field.name: field.default for field in fields(TrainOptions)}


def check_options(options: TrainOptions) -> None:
    """Raise for an option that means nothing to a tagger."""
    if not isinstance(options.data, str):
        raise DataError("sequence=True reads a CoNLL file; for data in memory call SequencePerceptron().fit(X, y)")
    for name, default in DEFAULTS.items():
        if name not in SUPPORTED and getattr(options, name) != default:
            raise DataError(f"{name}= cannot be combined with sequence=True")
    for name, choices in (("rule", RULES), ("order", ORDERS), ("learner", ("averaged", "last"))):
        if getattr(options, name) not in choices:
            raise DataError(f"{name}={getattr(options, name)!r} is not for sequences: use {' or '.join(choices)}")


def _held_out(options: TrainOptions, file: ConllFile) -> Any:
    """Return the sequences and tags of the file of held-out data, or None."""
    if options.validate is None:
        return None
    other = _tagged(options.validate)
    if len(other.columns) != len(file.columns):
        raise DataError(f"{other.name} has {len(other.columns)} columns, and {file.name} has {len(file.columns)}")
    return other.sentences(len(file.columns) - 1), other.tags()


def _tagged(path: str) -> ConllFile:
    file = ConllFile(path)
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
