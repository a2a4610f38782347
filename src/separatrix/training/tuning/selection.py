"""What comes before the training on all rows: cross-validation (`folds=`), and the search for a recipe (`tune=True`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from separatrix.data.errors import DataError, counted
from separatrix.data.reading import Source
from separatrix.engine.rules import RULES, STREAMING, in_words
from separatrix.training.options import TrainOptions, number_or_auto, size_of
from separatrix.training.parts import features_for, learner_of
from separatrix.training.progress import Progress
from separatrix.training.tuning.candidates import TUNABLE, Candidate
from separatrix.training.tuning.examples import read_examples
from separatrix.training.tuning.folds import CrossValidation, Pipeline, check_folds, cross_validate
from separatrix.training.tuning.oof import check_ending, write_out_of_fold
from separatrix.training.tuning.repeating import repeated
from separatrix.training.tuning.search import Search, Tuned, tune

FOLDS = 5
SHOWN = ("balanced_accuracy", "macro_f1", "roc_auc", "log_loss")
"""The figures that are printed beside the accuracy."""


@dataclass
class Selection:
    """The options to train with, the out-of-fold predictions of their recipe, and the figures of both for a summary."""

    options: TrainOptions
    cross_validation: CrossValidation
    figures: dict[str, Any]


def is_wanted(options: TrainOptions) -> bool:
    """Tell whether the options ask for folds or for a search."""
    return options.folds is not None or options.tune


def check_selection(options: TrainOptions) -> None:
    """Raise for options that cannot be combined."""
    if options.oof is not None:
        if not is_wanted(options):
            raise DataError("oof= needs folds: use folds=5, or tune=True")
        check_ending(options.oof)
    if options.budget != TrainOptions.budget and not options.tune:
        raise DataError("budget= is the time for a search: use tune=True")
    if not is_wanted(options):
        return
    what = "tune=True" if options.tune else "folds="
    if options.engine is not None:
        raise DataError(f"{what} cannot be combined with engine=: all rows must be in memory")
    if not options.tune:
        return
    if options.learner not in STREAMING:
        raise DataError(f"tune=True supports the learners {in_words(STREAMING)}, not {options.learner}")
    for name in ("early_stopping", "checkpoint"):
        if getattr(options, name):
            why = "it chooses the number of passes" if name == "early_stopping" else "only the training itself is resumed"
            raise DataError(f"tune=True cannot be combined with {name}=: {why}")
    if options.C == "auto":
        raise DataError("tune=True cannot be combined with C='auto': it searches C")


def select(options: TrainOptions, source: Source, progress: Progress) -> Selection:
    """Search if that is asked for, and cross-validate the recipe that is to be trained."""
    n_folds = options.folds or FOLDS
    examples = read_examples(
        source,
        memory=size_of(options.memory),
        fraction=options.holdout,
        seed=options.seed,
        missing_label=options.missing_label,
        report=progress.rows_read,
    )
    check_folds(examples, n_folds)  # before a search of minutes
    lean = replace(options, record=False)  # the folds' models are not kept
    figures: dict[str, Any] = {}
    if options.tune:
        check_folds(examples, n_folds)
        search = Search(
            examples,
            lambda changes: _pipeline(replace(lean, **changes), source),
            _recipe_of(options),
            n_folds=n_folds,
            seed=options.seed,
            budget=options.budget,
            balanced=_is_balanced(options),
            fixed=frozenset(_fixed(options)),
            report=progress.searched,
        )
        tuned = tune(search)
        chosen = _changed_settings(tuned)
        options, lean = replace(options, **chosen), replace(lean, **chosen)
        figures["tuning"] = _figures_of(tuned, options, chosen)
    validation = cross_validate(
        examples,
        _pipeline(lean, source),
        n_folds,
        options.seed,
        report=lambda fold: progress.folds_done(fold + 1, n_folds),
    )
    if options.optimize is not None:
        validation.notes.append("the folds predict without the threshold that optimize= chooses on the held-out rows")
    figures["folds"] = {"folds": n_folds, "rows": examples.n, **validation.figures(), "notes": validation.notes}
    if options.oof is not None:
        write_out_of_fold(validation, options.oof)
        figures["folds"]["oof"] = str(options.oof)
    return Selection(replace(options, tune=False), validation, figures)


def _pipeline(options: TrainOptions, source: Source) -> Pipeline:
    """Return how the parts of a model are made; a learner that stops early holds out the fraction of the final training."""

    def learner() -> Any:
        made = learner_of(options, plain=True)
        made.validation_fraction = options.holdout or made.validation_fraction
        return made

    return Pipeline(lambda: features_for(options, source), learner)


# A search.


def _recipe_of(options: TrainOptions) -> Candidate:
    """Return the recipe that the options describe."""
    C = float(number_or_auto(options.C)) if RULES[options.rule].has_C else 1.0
    return Candidate((), options.rule, C, options.passes, options.average_from)


def _is_balanced(options: TrainOptions) -> bool:
    """Tell whether all classes count the same, however many rows they have."""
    return "balanced" in (options.class_weight, options.optimize)


def _fixed(options: TrainOptions) -> Iterator[str]:
    """Yield the options that a search would change but for a value other than the default."""
    for field in fields(options):
        if field.name in TUNABLE and getattr(options, field.name) != field.default:
            yield field.name


def _changed_settings(tuned: Tuned) -> dict[str, Any]:
    """Return the options that the chosen recipe changes."""
    default = tuned.default.settings()
    return {name: value for name, value in tuned.best.settings().items() if default.get(name) != value}


def _figures_of(tuned: Tuned, options: TrainOptions, chosen: Mapping[str, Any]) -> dict[str, Any]:
    without = tuned.without_fold
    return {
        "chosen": dict(chosen),
        "figure": tuned.figure,
        "default_figure": tuned.default_figure,
        "measure": "balanced accuracy" if _is_balanced(options) else "accuracy",
        "without_fold": without,
        "without_fold_mean": sum(without) / len(without) if without else None,
        "candidates": tuned.candidates,
        "splits": tuned.splits,
        "complete": tuned.complete,
        "seconds": round(tuned.seconds, 3),
        "budget": options.budget,
        "repeat": repeated(options),
    }


# What a summary shows.


def selection_lines(summary: Mapping[str, Any], strong: Callable[[str], str], remedy: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines of a summary about folds and a search."""
    if "tuning" in summary:
        yield from map(remedy, _tuning_lines(summary["tuning"]))
        yield f"  to repeat: {summary['tuning']['repeat']}"
    if "folds" in summary:
        folds = summary["folds"]
        accuracy = folds["accuracy"]
        figure = strong(f"{accuracy['mean']:.4f} ± {accuracy['deviation']:.4f}")
        yield f"  out-of-fold accuracy {figure} (mean ± standard deviation of {folds['folds']} folds)"
        others = [
            f"{name.replace('_', ' ').replace('roc auc', 'ROC AUC').replace(' f1', ' F1')} "
            f"{folds[name]['mean']:.4f} ± {folds[name]['deviation']:.4f}"
            for name in SHOWN
            if folds.get(name)
        ]
        for begin in range(0, len(others), 2):
            yield f"    {', '.join(others[begin : begin + 2])}"
        yield from (f"    {remedy(note)}" for note in folds["notes"])
        if "oof" in folds:
            yield f"    out-of-fold predictions written to {folds['oof']}"


def _shown(name: str, value: Any) -> str:
    """Return the value of an option as Python has it."""
    return str(value) if name == "C" else repr(value)


def _tuning_lines(tuning: Mapping[str, Any]) -> Iterator[str]:
    done = "the search is complete" if tuning["complete"] else f"the budget of {tuning['budget']:g} s is spent"
    compared = f"tried {counted(tuning['candidates'], 'recipe')} on {counted(tuning['splits'], 'split')}"
    yield f"  {compared} in {tuning['seconds']:.1f} s ({done})"
    if not tuning["chosen"]:
        yield f"  the recipe without tuning is the best of them: {tuning['measure']} {tuning['figure']:.4f}"
        return
    beside = f"{tuning['measure']} {tuning['figure']:.4f}, without tuning {tuning['default_figure']:.4f}"
    yield f"  best: {', '.join(f'{name}={_shown(name, value)}' for name, value in tuning['chosen'].items())} ({beside})"
    if tuning["without_fold_mean"] is not None:
        honest = f"{tuning['without_fold_mean']:.4f}"
        yield f"    the best of many is a little optimistic: chosen without the fold that is predicted, {honest}"
    else:
        yield "    the best of many is a little optimistic; the budget did not suffice for all folds"
