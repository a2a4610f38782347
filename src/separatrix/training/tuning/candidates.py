"""What a search tries, and in which order: recipes, grouped by what is learned together.

The order is a plan: the default rule, then AROW, other features with the rule that did best, other rules with the features
that did best, and at last a finer grid and more passes. Each step depends on the outcome of those before, and on nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from separatrix.engine.rules import RULES

if TYPE_CHECKING:
    from separatrix.training.tuning.search import Search

Changes = tuple[tuple[str, Any], ...]
"""Options that differ from those that the user gave, with their values, sorted."""

TUNABLE = ("rule", "C", "passes", "average_from", "numbers", "bins", "ngrams", "char_ngrams", "tf", "idf")
"""The options that a search changes, unless the user did."""
OTHER_RULES = ("arow", "pa2", "perceptron", "arow-full")
MOST_FULL = 128
""""arow-full", which keeps a matrix, is tried with at most so many features."""
NUMBERS: tuple[dict[str, Any], ...] = ({"numbers": "standard"}, {"bins": 8}, {"bins": 16}, {"bins": 64})
TEXTS: tuple[dict[str, Any], ...] = (
    {"ngrams": "1"},
    {"char_ngrams": "3-5"},
    {"ngrams": "1-3"},
    {"tf": "binary"},
    {"idf": False},
)
EXCLUSIVE = ({"numbers", "bins"}, {"ngrams", "char_ngrams"})
"""Options of which a recipe changes one at most."""
STARTS = (1, 3, 9)
"""The passes in which an average may begin."""
PASSES, MORE_PASSES = 10, 40
LATER = (12, 15, 20, 25, 30, 40)
"""Beyond ten, not every number of passes is a candidate."""


class Candidate(NamedTuple):
    """A recipe."""

    features: Changes
    rule: str
    C: float
    passes: int
    average_from: int

    def settings(self) -> dict[str, Any]:
        """Return it as options of a training."""
        C = {"C": repr(self.C).removesuffix(".0")} if RULES[self.rule].has_C else {}
        return {
            **dict(self.features),
            "rule": self.rule,
            **C,
            "passes": self.passes,
            "average_from": self.average_from,
        }


class Machine(NamedTuple):
    """One C of a rule with some features, trained for `most` passes: its candidates are all numbers of passes up to that."""

    features: Changes
    rule: str
    C: float
    most: int


@dataclass(frozen=True)
class Stage:
    """What is tried with one reading of the features: rules with their C's (None: a grid), and the most passes."""

    features: Changes
    rules: dict[str, list[float] | None]
    most: int


def candidates_of(default: Candidate, most: int, fixed: frozenset[str], averages: bool) -> list[tuple[int, int]]:
    """Return the numbers of passes, and the starts of the average, of a machine's candidates."""
    numbers = [default.passes] if "passes" in fixed else [*range(1, min(most, PASSES) + 1), *LATER]
    starts = STARTS if averages and "average_from" not in fixed else (default.average_from,)
    pairs = [(number, start) for number in numbers for start in starts if start <= number <= most]
    ours = default.passes, default.average_from
    return pairs if ours in pairs or ours[0] > most else [*pairs, ours]


def stages(search: Search) -> Iterator[Stage]:
    """Yield the stages of a search; each is run before the next is asked for."""
    default, fixed = search.default, search.fixed
    most = default.passes if "passes" in fixed else max(PASSES, default.passes)
    Cs = [default.C] if "C" in fixed else None
    rules = [default.rule] if "rule" in fixed else list(dict.fromkeys([default.rule, *OTHER_RULES]))
    for rule in rules[:2]:
        yield Stage(default.features, {rule: Cs}, most)
    for change in _changes(search.roles(), fixed):
        best = search.best()
        yield Stage(_changed(best.features, change), {best.rule: Cs}, most)
    best = search.best()
    if best.features == default.features:
        rules = rules[2:]
    for rule in rules:
        if rule != best.rule and (rule != "arow-full" or search.width(best.features) <= MOST_FULL):
            yield Stage(best.features, {rule: Cs}, most)
    best = search.best()
    finer = [best.C * factor for factor in (1.0, 0.5, 2.0)] if Cs is None and RULES[best.rule].has_C else [best.C]
    if "passes" not in fixed:
        yield Stage(best.features, {best.rule: finer}, max(MORE_PASSES, default.passes))


def _changes(roles: set[str], fixed: frozenset[str]) -> list[dict[str, Any]]:
    """Return the changes of the features worth trying, by the roles of the columns; what the user fixed stays."""
    changes = [*(NUMBERS if roles & {"number", "date"} else ()), *(TEXTS if "text" in roles else ())]
    locked = fixed.union(*(group for group in EXCLUSIVE if fixed & group))
    return [change for change in changes if not locked & change.keys()]


def _changed(features: Changes, change: dict[str, Any]) -> Changes:
    """Return features with another change; of options that exclude each other the new one stays."""
    replaced = set().union(*(group for group in EXCLUSIVE if group & change.keys()))
    kept = {name: value for name, value in features if name not in replaced}
    return tuple(sorted((kept | change).items()))
