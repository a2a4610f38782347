"""The figures of a training: the model file stores some, and the command prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from separatrix import __version__
from separatrix.analysis.evaluating.evaluation import Evaluation
from separatrix.data.atomic import is_regular
from separatrix.data.errors import counted
from separatrix.data.reading import Source
from separatrix.engine.rows import Ints
from separatrix.engine.rules import RULES
from separatrix.files.ingest import TrainingBlocks
from separatrix.files.out_of_core import counts_by_class
from separatrix.learners.linear_base import LinearLearner
from separatrix.training.held_out import evaluation_lines
from separatrix.training.tuning.selection import selection_lines

ENOUGH_TERMS, ENOUGH_ROWS = 1 << 24, 2000
"""The training error is counted on as many rows as have so many terms in their scores, but on so many rows at least."""
FRACTION = re.compile(r"[-+]?\d*[.,]\d+")
SORTED_ROWS = "the rows are sorted by label, and order='cyclic' presents them so: leave it out, or shuffle the rows"
FEW_ROWS = 10
"""A class of fewer rows may well be predicted nowhere."""
RARE = 0.5
"""A class is rare that has less than this part of the rows that it would have if all had as many."""
NOTABLE_SECONDS = 0.5
"""So much time for compiling is mentioned beside the times that it is a part of."""
NOISE = 2.0
"""By so many standard deviations an accuracy must exceed that of a guess."""


def facts_of(source: Source, gathered: TrainingBlocks) -> dict[str, Any]:
    """Return what a model file stores about the rows that it was trained on."""
    blocks = gathered.blocks
    facts = {
        "format": source.format,
        "rows": blocks.n,
        "features": blocks.d,
        "classes": dict(zip(map(str, gathered.classes.tolist()), blocks.class_counts().tolist(), strict=True)),
        "skipped": source.skipped,
        "label": source.label,
        "version": __version__,
    }
    if source.delimiter is not None:
        facts["delimiter"] = source.delimiter
    if gathered.unlabelled:
        facts["unlabelled"] = gathered.unlabelled
    return facts


def summarise(
    source: Source,
    gathered: TrainingBlocks,
    learner: LinearLearner,
    evaluation: Evaluation | None,
    *,
    data_hash: str,
    settings: dict[str, Any],
    seconds_reading: float,
    seconds_training: float,
    seconds_compiling: float,
) -> Summary:
    """Return the figures of a training; the model file stores those below "facts"."""
    blocks, held_out = gathered.blocks, gathered.held_out
    facts = facts_of(source, gathered) | {"data": data_hash, "settings": settings}
    summary = Summary(
        facts=facts,
        data=source.name,
        rows=blocks.n,
        held_out=0 if held_out is None else held_out.n,
        features=blocks.d,
        classes=facts["classes"],
        skipped=source.skipped,
        unlabelled=gathered.unlabelled,
        notes=gathered.notes,
        problems=source.problems[:3],
        spilled_bytes=blocks.spilled,
        columns=[] if gathered.features is None else gathered.features.describe().splitlines(),
        **learner_figures(learner, blocks.n),
        seconds_reading=round(seconds_reading, 3),
        seconds_training=round(seconds_training, 3),
        seconds_compiling=round(seconds_compiling, 3),
    )
    if hasattr(learner, "slope_"):
        summary["calibrated_on"] = "rows left out in turn" if held_out is None else "the held-out rows"
    if hasattr(learner, "C_"):
        summary["C"] = learner.C_
    unknown = 0
    if evaluation is None:
        K = len(gathered.classes)
        terms = blocks.entries / blocks.n * (K if K > 2 else 1)
        enough_rows = max(ENOUGH_ROWS, int(ENOUGH_TERMS / max(1.0, terms)))
        counts, right = counts_by_class(blocks.sample(enough_rows), K, lambda rows: learner.decide(learner.scores(rows), K))
        summary |= {"training_error": 1 - int(right.sum()) / int(counts.sum()), "training_error_rows": int(counts.sum())}
    else:
        counts, right = evaluation.confusion.sum(axis=1), np.diag(evaluation.confusion)
        unknown = int(evaluation.of_unknown.sum())
        summary |= {"held_out_accuracy": evaluation.accuracy, "evaluation": evaluation.to_dict() | {"errors": []}}
    sorted_rows = learner.order == "cyclic" and not learner.converged_ and blocks.in_runs()
    summary["warnings"] = warnings_about(right, counts, gathered.classes.tolist(), learner, sorted_rows, unknown)
    return summary


def written_model(path: Path) -> dict[str, Any]:
    """Return where the model was written, and the size of the file; a FIFO or a device has none."""
    return {"model": str(path)} | ({"bytes": path.stat().st_size} if is_regular(path) else {})


def warnings_about(
    right: Ints, counts: Ints, classes: list[Any], learner: LinearLearner, sorted_rows: bool = False, unknown: int = 0
) -> list[str]:
    """Return what a user should know before trusting a model that gets so many rows of each class right.

    `counts` are the rows of each class that the model was evaluated on; `sorted_rows`: the rows that it was trained on came
    sorted by label; `unknown`: how many more rows there were, with labels of no class, which count as wrong.
    """
    warnings = []
    n, largest = int(counts.sum()), int(np.argmax(counts))
    if len(classes) > 1 and n and (learner.class_weight is not None or learner.threshold_ is not None):
        warnings += _no_better_than_guessing(right, counts)
    elif len(classes) > 1 and n and int(right.sum()) <= counts[largest]:
        rows = n + unknown
        warnings.append(
            f"the model is no better than always predicting {classes[largest]} (accuracy {right.sum() / rows:.4f}, where "
            f"{counts[largest] / rows:.4f} of the rows have that label)"
        )
    missed = [k for k in np.flatnonzero((right == 0) & (counts >= FEW_ROWS)).tolist() if k != largest]
    if missed:
        named = ", ".join(f"{classes[k]} ({counts[k]:,} rows)" for k in missed[:3]) + (" …" if len(missed) > 3 else "")
        rare = RARE * n / max(1, int(np.count_nonzero(counts)))
        helps = learner.class_weight is None and not sorted_rows and any(counts[k] < rare for k in missed)
        advice = "; class_weight='balanced' gives rare classes more weight" if helps else ""
        warnings.append(f"no row of {named} is predicted as such{advice}")
    return [*warnings, SORTED_ROWS] if sorted_rows else warnings


def _no_better_than_guessing(right: Ints, counts: Ints) -> list[str]:
    """Return a warning where weighted classes are told apart no better than by chance, with a margin for noise."""
    present = counts > 0
    n, hits = counts[present], right[present]
    recall = float((hits / n).mean())
    smoothed = (hits + 1) / (n + 2)  # a recall of 0 or 1 in a few rows is not certain either
    deviation = float(np.sqrt((smoothed * (1 - smoothed) / n).sum())) / len(n)
    if len(n) < 2 or recall > 1 / len(n) + NOISE * deviation:
        return []
    chance = ", and the difference may be chance" if recall > 1 / len(n) else ""
    return [
        f"the model is no better than a guess (balanced accuracy, the mean of the classes' recalls, {recall:.4f}; a guess "
        f"has {1 / len(n):.4f}{chance})"
    ]


def learner_figures(learner: LinearLearner, n: int) -> dict[str, Any]:
    """Return what a learner trained on n rows says of its training."""
    figures: dict[str, Any] = {
        "learner": describe(learner),
        "passes": learner.n_iter_,
        "converged": bool(learner.converged_),
        "mistakes_per_pass": list(map(int, learner.mistakes_per_pass_)),
    }
    if hasattr(learner, "progressive_errors_"):
        figures["progressive_error"] = learner.progressive_errors_ / max(1, n)
    if hasattr(learner, "validation_scores_"):
        accuracies = learner.validation_scores_
        figures["held_out_accuracies"] = accuracies
        figures["held_out_accuracy"] = max(accuracies) if learner.early_stopping else accuracies[-1]
    return figures


def describe(learner: LinearLearner) -> str:
    """Return the learner with its main settings in one line."""
    rule = RULES[learner.rule]
    settings: dict[str, Any] = {"rule": learner.rule}
    if rule.has_C:
        settings["C"] = getattr(learner, "C_", learner.C)
    if rule.asks == "margin":
        settings["margin"] = learner.margin
    settings |= {"order": learner.order, "passes": learner.max_iter}
    if getattr(learner, "average_from", 1) > 1:
        settings["average_from"] = learner.average_from
    if learner.class_weight is not None:
        settings["class_weight"] = learner.class_weight
    settings |= {"bias": learner.fit_intercept, "seed": learner.random_state}
    return f"{learner.public_name()}({', '.join(f'{name}={value}' for name, value in settings.items())})"


def _doubt_about(classes: dict[str, int]) -> str:
    """Return why these classes, with their numbers of rows, may be the values of something else than a label; "" if not."""
    if 2 * sum(count == 1 for count in classes.values()) > len(classes) > 2:
        return "most classes occur once"
    if len(classes) > 10 and 2 * sum(bool(FRACTION.fullmatch(name)) for name in classes) > len(classes):
        return "most classes are fractions"
    if len(classes) > 30 and 10 * len(classes) > sum(classes.values()):
        return f"there are {len(classes):,} classes"
    return ""


class Summary(dict[str, Any]):
    """The figures by name; as text, what the command `train` prints, with parameters of Python where that has options."""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def doubt(self) -> str:
        """Return a question whether the label column has labels, where its values do not look like that; else ""."""
        label, doubt = self["facts"].get("label"), _doubt_about(self["classes"])
        question = "are these labels?" if label is None else f"is {label} the label column? label= names another one"
        return doubt and f"{doubt}: {question}"

    def lines(
        self, strong: Callable[[str], str] = str, alarm: Callable[[str], str] = str, remedy: Callable[[str], str] = str
    ) -> Iterator[str]:
        """Yield the figures for a person.

        `strong` and `alarm` highlight words; `remedy` puts the advice of a note into the words of whoever reads it.
        """
        classes = self["classes"]
        counts = ", ".join(f"{name} {count:,}" for name, count in list(classes.items())[:6])
        counts += " …" if len(classes) > 6 else ""
        shards = f"{counted(self['shards'], 'shard')}, " if "shards" in self else ""
        rows = f"{shards}{counted(self['rows'], 'row')}, {counted(len(classes), 'class')}"
        yield f"{strong(self['data'])}: {rows} ({counts})"
        if self.get("dealt"):
            yield "  the shards held different classes: rows were dealt anew among all of them"
        if doubt := self.doubt():
            yield remedy(f"  {doubt}")
        if self["skipped"]:
            yield f"  skipped {counted(self['skipped'], 'line')}, the first: {remedy(self['problems'][0])}"
        yield from (f"  {remedy(note)}" for note in self["notes"])
        yield from (f"  {remedy(line) if line.startswith('note: ') else line}" for line in self["columns"])
        yield f"  {counted(self['features'], 'feature')}; {self['learner']}"
        if "resumed" in self:
            yield f"  resumed from {self['resumed']['from']}, after {counted(self['resumed']['passes'], 'pass')}"
        passes = counted(self["passes"], "pass") + (", converged" if self["converged"] else "")
        reading = f"read in {self['seconds_reading']:.2f} s, " if "seconds_reading" in self else "read and "
        compiling = self.get("seconds_compiling", 0.0)
        first = "" if compiling < NOTABLE_SECONDS else f" ({compiling:.1f} s of this was compiling, only the first time)"
        yield f"  {reading}trained in {self['seconds_training']:.2f} s: {passes}{first}"
        yield from self._evaluated(strong)
        yield from selection_lines(self, strong, remedy)
        yield from (f"  {alarm('warning')}: {remedy(warning)}" for warning in self.get("warnings", ()))
        if "model" in self:
            yield f"  written to {self['model']}" + (f" ({self['bytes']:,} bytes)" if "bytes" in self else "")
            if "float32_changed" in self:
                yield f"  float32 changes {self['float32_changed']:,} of {counted(self['rows'], 'training prediction')}"
        else:
            yield remedy("  not written: name a file with output=")
        if "report" in self:
            yield f"  report written to {self['report']}"

    def _evaluated(self, strong: Callable[[str], str]) -> Iterator[str]:
        if "mistakes_by_shard" in self:
            yield f"  mistakes by shard in the last pass: {', '.join(map(str, self['mistakes_by_shard'][-1][:16]))}"
            if self["bound"]:
                yield f"  {self['bound']}"
        if "asked" in self:
            labels = f"{self['asked']:,} of {self['rows']:,} labels ({100 * self['asked_share']:.1f} %)"
            budget = "" if self["ask_budget"] is None else f", at most {self['ask_budget']:,}"
            yield f"  asked for {strong(labels)}, each with probability b/(b + |margin|), b = {self['ask']:g}{budget}"
        if "progressive_error" in self:
            which = "all rows, asked for or not, each before it was learned" if "asked" in self else None
            which = which or "first pass, each example before it was learned"
            yield f"  progressive error {self['progressive_error']:.4f} ({which})"
        if "training_error" in self:
            some = self.get("training_error_rows", self["rows"])
            which = "the same rows" if some == self["rows"] else f"{some:,} of the rows"
            yield f"  training error {self['training_error']:.4f} ({which}, after training)"
        if "calibrated_on" in self:
            yield f"  probabilities calibrated on the scores of {self['calibrated_on']}"
        if "held_out_accuracy" in self:
            accuracy = strong(f"{self['held_out_accuracy']:.4f}")
            yield f"  held-out accuracy {accuracy} on {counted(self['held_out'], 'row')}"
        if "evaluation" in self:
            yield from (f"  {line}" for line in evaluation_lines(self["evaluation"]))
