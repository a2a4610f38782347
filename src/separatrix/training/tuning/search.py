"""The search for a recipe: rule, C, passes, averaging and features, by the accuracy on rows that a model never saw.

A stage tries one way of making features, which in each fold are learned and computed once; all C's of a rule learn side by
side (`side_by_side.py`). After each fold the machines that are behind the best by more than chance are dropped, and with
many rows also the worse half. Which candidates are tried, and in which order, depends on the data and the seed alone: a
larger budget adds candidates, and changes none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.engine.rows import Array, Floats, Rows
from separatrix.engine.rules import RULES
from separatrix.learners.auto_c import grid_for
from separatrix.training.tuning.candidates import Candidate, Changes, Machine, Stage, candidates_of, stages
from separatrix.training.tuning.examples import Examples
from separatrix.training.tuning.folds import Pipeline, fold_numbers, splits
from separatrix.training.tuning.side_by_side import TestRows

BEHIND = 2.5
"""A machine is dropped that is behind the best by more than so many standard errors of the difference."""
FEW_ROWS, REPEATS = 2000, 3
"""Fewer rows are divided into folds several times, since a single division would choose by chance."""
DIGITS = 9
"""Measures are compared to so many digits: sums of the same rows in another order differ in the last ones."""
FEWEST = 2
"""So many machines of a stage stay at least where the worse half is dropped."""

Make = Callable[[Mapping[str, Any]], Pipeline]
"""Return the pipeline of the user's options with some changes."""


@dataclass
class Outcome:
    """How the candidates of a machine do on the test rows of the splits so far.

    Attributes
    ----------
    keys : the passes, and the start of the average, of each candidate
    bits : which rows are got right, packed: an array (candidates, bytes) for each split
    by_fold : what they are worth, by the fold of the first division: an array (candidates, folds) for each split
    """

    keys: list[tuple[int, int]]
    bits: list[Array] = field(default_factory=list)
    by_fold: list[Floats] = field(default_factory=list)

    def total(self, splits: int) -> Floats:
        """Return what the rows that each candidate gets right in the first splits are worth."""
        total: Floats = np.sum(self.by_fold[:splits], axis=(0, 2))
        return total


@dataclass
class Tuned:
    """What a search has found.

    Attributes
    ----------
    best, default : the chosen recipe, and the one that the options describe
    figure, default_figure : their measures on rows that their models never saw, over all splits
    without_fold : the measure in each fold where the recipe is chosen by the rows of the other folds alone; empty where
        the budget did not suffice for all folds
    candidates, splits : how many recipes were compared, and on how many pairs of training and test rows
    complete : whether the search came to its end within the budget
    """

    best: Candidate
    default: Candidate
    figure: float
    default_figure: float
    without_fold: list[float]
    candidates: int
    splits: int
    seconds: float
    complete: bool


class Search:
    """A search under way.

    Parameters
    ----------
    make : returns the pipeline of a recipe
    default : the recipe that the options describe, which is evaluated first
    budget : seconds; the default recipe is evaluated in one fold whatever they are
    balanced : whether all classes are worth the same, however many rows they have
    fixed : options that stay as they are
    report : called with the share of the budget that is spent, the number of candidates, and the best measure so far
    """

    def __init__(
        self,
        examples: Examples,
        make: Make,
        default: Candidate,
        *,
        n_folds: int,
        seed: int,
        budget: float,
        balanced: bool = False,
        fixed: frozenset[str] = frozenset(),
        report: Callable[[float, int, float], None] = lambda spent, candidates, best: None,
    ) -> None:
        self.examples, self.make, self.default, self.fixed, self.report = examples, make, default, fixed, report
        self.began, self.budget, self.n_folds = time.monotonic(), budget, n_folds
        repeats = REPEATS if examples.n < FEW_ROWS else 1
        divisions = [fold_numbers(examples.codes, n_folds, seed + repeat) for repeat in range(repeats)]
        self.splits = [split for folds in divisions for split in splits(folds, n_folds)]
        self.fold = divisions[0]
        counts = np.bincount(examples.codes, minlength=len(examples.classes))
        equal = np.full(examples.n, 1.0 / examples.n)
        self.worth: Floats = (1.0 / (np.count_nonzero(counts) * counts[examples.codes]) if balanced else equal) / repeats
        self.outcomes: dict[Machine, Outcome] = {}
        self.default_machine: Machine | None = None
        self.candidates = 0
        self._is_late = False

    @property
    def is_late(self) -> bool:
        """Whether the budget is spent; once it is, it stays so."""
        self._is_late = self._is_late or time.monotonic() - self.began > self.budget
        return self._is_late

    # What the plan asks.

    def roles(self) -> set[str]:
        """Return the roles of the columns; none for numbers, which are taken as they are."""
        features = self.examples.learned(self.make({}).features(), self.splits[0].train)
        return set() if features is None else set(features.roles_.values())

    def width(self, changes: Changes) -> int:
        """Return how many features there are."""
        features = self.examples.learned(self.make(dict(changes)).features(), self.splits[0].train)
        return int(self.examples.matrix.shape[1] if features is None else features.n_features_out_)

    def best(self) -> Candidate:
        """Return the candidate that is best so far; of equals the default, or the one that was tried first."""
        choices = self._choices()
        return choices.candidate(choices.best(choices.by_fold.sum(axis=1)))

    # A stage.

    def run(self, stage: Stage) -> None:
        """Try a stage. What one that is not finished in time has tried does not count.

        Of the first stage the splits that were finished count, or what was tried of its first split, which is the default
        recipe at least.
        """
        first, before = not self.outcomes, dict(self.outcomes)
        racing: list[Machine] = []
        for number in range(len(self.splits)):
            if not self._in_split(stage, number, racing, first):
                if first:
                    self.splits = self.splits[: max(1, number)]
                    self.outcomes = {m: of for m, of in self.outcomes.items() if len(of.bits) >= len(self.splits)}
                else:
                    self.outcomes = before
                return
            racing[:] = self._race(racing, number + 1)

    def _in_split(self, stage: Stage, number: int, racing: list[Machine], first: bool) -> bool:
        """Train the machines that are still racing on a split; return whether all were, in time."""
        if self.is_late and not (first and number == 0):
            return False
        examples, split = self.examples, self.splits[number]
        features = examples.learned(self.make(dict(stage.features)).features(), split.train)
        X = examples.features(features)
        if number == 0:
            racing[:] = self._machines(stage, X[split.train])
        worth = np.zeros((len(split.test), self.n_folds))
        worth[np.arange(len(split.test)), self.fold[split.test]] = self.worth[split.test]
        to_do = len(racing)
        for rule in dict.fromkeys(machine.rule for machine in racing):
            Cs = [machine.C for machine in racing if machine.rule == rule]
            learner = self.make({**dict(stage.features), "rule": rule, "passes": stage.most, "average_from": 1}).learner()
            keys = candidates_of(self.default, stage.most, self.fixed, learner.averages)
            for group, right in TestRows(examples, X, split, learner).trained(Cs, stage.most, keys):
                for C, mine in zip(group, right, strict=True):
                    outcome = self._outcome(Machine(stage.features, rule, C, stage.most), keys)
                    outcome.bits.append(np.packbits(mine, axis=1))
                    outcome.by_fold.append(mine @ worth)
                to_do -= len(group)
                self._report()
                if to_do and self.is_late:
                    return False
        return True

    def _outcome(self, machine: Machine, keys: list[tuple[int, int]]) -> Outcome:
        if machine not in self.outcomes:
            self.outcomes[machine] = Outcome(keys)
            self.candidates += len(keys)
        return self.outcomes[machine]

    def _report(self) -> None:
        splits = max(len(outcome.bits) for outcome in self.outcomes.values())
        leader, at = self._leader(splits)
        spent = (time.monotonic() - self.began) / self.budget if self.budget else 1.0
        self.report(min(1.0, spent), self.candidates, float(leader.total(splits)[at]) / self._covered(splits))

    def _machines(self, stage: Stage, X: Any) -> list[Machine]:
        """Return the machines of a stage, that of the default recipe first."""
        machines = []
        for rule, Cs in stage.rules.items():
            bias = self.make({"rule": rule}).learner().fit_intercept
            values = [1.0] if not RULES[rule].has_C else grid_for(Rows(X), bias) if Cs is None else Cs
            if self.default_machine is None:
                values = [self.default.C, *(C for C in values if C != self.default.C)]
                self.default_machine = Machine(stage.features, rule, self.default.C, stage.most)
            machines += [Machine(stage.features, rule, C, stage.most) for C in values]
        return [machine for machine in machines if machine not in self.outcomes]

    def _race(self, racing: list[Machine], splits: int) -> list[Machine]:
        """Return the machines that stay: not behind by more than chance, and with many rows the better half."""
        leader, at = self._leader(splits)
        best_of = {machine: float(self.outcomes[machine].total(splits).max()) for machine in racing}
        places = sorted(racing, key=lambda machine: -best_of[machine])
        if self.examples.n >= FEW_ROWS:
            places = places[: max(FEWEST, -(-len(places) // 2))]
        stay = {machine for machine in places if not self._is_behind(self.outcomes[machine], leader, at, splits)}
        return [machine for machine in racing if machine in stay or machine == self.default_machine]

    def _is_behind(self, outcome: Outcome, leader: Outcome, at: int, splits: int) -> bool:
        """Tell whether the best candidate of a machine is behind the leader's by more than chance, on the same rows."""
        k, ahead, variance = int(np.argmax(outcome.total(splits))), 0.0, 0.0
        for number in range(splits):
            rows = self.splits[number].test
            theirs = np.unpackbits(leader.bits[number][at], count=len(rows))
            ours = np.unpackbits(outcome.bits[number][k], count=len(rows))
            difference = (theirs.astype(np.float64) - ours) * self.worth[rows]
            ahead, variance = ahead + float(difference.sum()), variance + float((difference**2).sum())
        return bool(ahead > BEHIND * variance**0.5)

    def _leader(self, splits: int) -> tuple[Outcome, int]:
        """Return the best candidate on the first splits, of those that have them: its outcome and its number there."""
        outcomes = [outcome for outcome in self.outcomes.values() if len(outcome.bits) >= splits]
        best = max(outcomes, key=lambda outcome: float(outcome.total(splits).max()))
        return best, int(np.argmax(best.total(splits)))

    # The choice.

    def _covered(self, splits: int) -> float:
        """Return what all rows of the first splits are worth."""
        return float(sum(self.worth[split.test].sum() for split in self.splits[:splits]))

    def _choices(self) -> _Choices:
        splits = len(self.splits)
        there = [(machine, of) for machine, of in self.outcomes.items() if len(of.bits) >= splits]
        assert self.default_machine is not None
        keys = [(machine, *key) for machine, of in there for key in of.keys]
        ours = keys.index((self.default_machine, self.default.passes, self.default.average_from))
        return _Choices(keys, np.concatenate([np.sum(of.by_fold[:splits], axis=0) for _, of in there]), ours)

    def result(self) -> Tuned:
        """Return the choice with its figures."""
        choices, covered = self._choices(), self._covered(len(self.splits))
        total = choices.by_fold.sum(axis=1)
        without = []
        if len(self.splits) >= self.n_folds:
            tested = np.concatenate([split.test for split in self.splits])
            worth = np.bincount(self.fold[tested], self.worth[tested], self.n_folds)
            chosen = [choices.best(total - choices.by_fold[:, fold]) for fold in range(self.n_folds)]
            without = [float(choices.by_fold[k, fold] / worth[fold]) for fold, k in enumerate(chosen)]
        best = choices.best(total)
        return Tuned(
            choices.candidate(best),
            self.default,
            round(float(total[best]) / covered, DIGITS),
            round(float(total[choices.default]) / covered, DIGITS),
            without,
            self.candidates,
            len(self.splits),
            time.monotonic() - self.began,
            not self.is_late,
        )


@dataclass
class _Choices:
    """The candidates that were tried on all splits, and what each gets right by fold."""

    keys: list[tuple[Machine, int, int]]
    by_fold: Floats
    default: int

    def best(self, measure: Floats) -> int:
        """Return the candidate with the highest measure; of equals the default, or the first."""
        rounded = np.round(measure, DIGITS)
        return self.default if rounded[self.default] == rounded.max() else int(np.argmax(rounded))

    def candidate(self, k: int) -> Candidate:
        """Return candidate k as a recipe."""
        (features, rule, C, _), passes, start = self.keys[k]
        return Candidate(features, rule, C, passes, start)


def tune(search: Search) -> Tuned:
    """Search to the end, or until the budget is spent."""
    for stage in stages(search):
        search.run(stage)
        if search.is_late:
            break
    return search.result()
