"""Suites of rows: every speed is a ratio measured side by side in this run, with the quality beside it.

A suite is a module of this folder with a function `rows(quick: bool) -> Iterator[Line]`. `Row` is the usual line; `Line` is
what any line has. A suite may also have `ABOUT`, a paragraph for the page; `charts(lines, folder)`, which draws pictures
and returns their names with what they show; and `tables(lines)`, which yields what a full run writes into other pages: the
path, the mark there, and the text. What a suite lacks (its module, a peer, the data) is a row that says so; a suite that
fails is a row that says how, and the others go on.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import fmean, variance
from typing import Any, ClassVar, Protocol

from threadpoolctl import threadpool_limits

from benchmarks.timing import Times

SUITES = {
    "passes": ("engine", "A pass costs what reading the data costs"),
    "parsing": ("parsing", "Reading files"),
    "text": ("text", "Texts to features"),
    "end-to-end": ("end_to_end", "From a file to a model"),
    "commands": ("raw_files", "Whole commands on raw files"),
    "record": ("record", "A large sparse set, from files to a model"),
    "startup": ("startup", "Starting a command"),
    "certificates": ("certificates", "Proofs of separability"),
    "separation": ("separation_battery", "Separation in logistic regression"),
    "kernel": ("kernel", "The kernel perceptron"),
    "serving": ("serving", "The server"),
    "cluster": ("cluster", "Beyond one machine"),
    "curves": ("curves", "Time to accuracy"),
    "growth": ("growth", "How cost grows"),
    "published": ("published", "Published figures"),
    "tuning": ("tuning", "Tuning beside a grid search"),
    "sequences": ("sequences", "Tagging sequences"),
    "forgetting": ("forgetting", "Forgetting rows"),
    "asking": ("asking", "Asking for labels"),
}
UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6))
MET, MISSED, WORSE, FAILED, ABSENT, QUICKLY = "met", "MISSED", "WORSE", "FAILED", "not run", "missed (quick)"
NEGATIVE = frozenset({MISSED, WORSE, FAILED})


class Line(Protocol):
    """A row of some table."""

    columns: ClassVar[tuple[str, ...]]
    aside: ClassVar[frozenset[str]]  # columns for which a terminal has no room

    @property
    def verdict(self) -> str:
        """Whether it holds, in a word; one of NEGATIVE where it does not."""

    def cells(self) -> tuple[str, ...]:
        """What is shown, a text for each column."""

    def below(self) -> list[str]:
        """What a terminal shows below the first cell, in place of the columns aside."""

    def document(self) -> dict[str, Any]:
        """What JSON keeps."""


@dataclass(frozen=True)
class Quality:
    """Whether what was gained in speed was paid for: how good the result is beside the peer's."""

    says: str
    holds: bool

    @classmethod
    def compared(
        cls, what: str, ours: float, theirs: float, *, higher: bool = True, slack: float = 0.0, error: float = 0.0
    ) -> Quality:
        """Compare two figures; equal is a difference within `slack`, or within twice its standard error."""
        ahead, within = ours - theirs if higher else theirs - ours, max(slack, 2 * error)
        word = "better" if ahead > within else "equal" if ahead >= -within else "worse"
        spread = f" (difference ± {error:.4f})" if error else ""
        return cls(f"{what} {ours:.4f} beside {theirs:.4f}{spread}: {word}", ahead >= -within)

    @classmethod
    def of_seeds(cls, what: str, ours: Sequence[float], theirs: Sequence[float], *, slack: float = 0.0) -> Quality:
        """Compare the means of two learners over as many seeds, with the standard error of their difference."""
        n, error = len(ours), sqrt((variance(ours) + variance(theirs)) / len(ours))
        return cls.compared(f"{what}, means of {n} seeds", fmean(ours), fmean(theirs), slack=slack, error=error)

    @classmethod
    def of_shares(cls, what: str, ours: float, theirs: float, n: int, *, higher: bool = True) -> Quality:
        """Compare two shares of n test rows: accuracies, or errors with `higher=False`, as of independent samples."""
        error = sqrt((ours * (1 - ours) + theirs * (1 - theirs)) / n)
        return cls.compared(what, ours, theirs, higher=higher, error=error)


def duration(*seconds: float) -> str:
    """Times in the unit that suits the first of them."""
    unit, scale = next(((unit, scale) for unit, scale in UNITS if seconds[0] * scale >= 1), UNITS[-1])
    return (
        " · ".join(f"{time * scale:.0f}" if time * scale >= 100 else f"{time * scale:.3g}" for time in seconds) + f" {unit}"
    )


def spread(times: Times | None) -> str:
    return "" if times is None else duration(times.best, times.median, times.worst)


@dataclass(frozen=True)
class Row:
    """One thing done by us and by a peer, in turn; or, with `value`, a figure of ours that has a bound.

    Floors are promised for the full sizes: a quick run shows them and holds nobody to them (`promised`).
    """

    columns: ClassVar = (
        "what",
        "ours",
        "best · median · worst",
        "beside",
        "its times",
        "ratio",
        "floor",
        "quality",
        "verdict",
    )

    aside: ClassVar = frozenset({"ours", "best · median · worst", "beside", "its times", "quality"})

    what: str
    ours: str = ""
    peer: str = ""
    our_times: Times | None = None
    their_times: Times | None = None
    floor: float | None = None
    quality: Quality | None = None
    value: float | None = None
    unit: str = ""
    at_most: float | None = None
    note: str = ""
    trouble: str = ""
    promised: bool = True

    @classmethod
    def missing(cls, what: str, peer: str, why: str) -> Row:
        """Say what could not be run, and why."""
        return cls(what, peer=peer, note=why, trouble=ABSENT)

    @property
    def ratio(self) -> float | None:
        """The peer's best time over ours."""
        if self.our_times is None or self.their_times is None:
            return None
        return self.their_times.best / self.our_times.best

    @property
    def ratios(self) -> list[float]:
        """The ratio of each round."""
        if self.our_times is None or self.their_times is None:
            return []
        return [theirs / ours for ours, theirs in zip(self.our_times.wall, self.their_times.wall, strict=False)]

    @property
    def verdict(self) -> str:
        if self.trouble:
            return self.trouble
        judged = self.value if self.value is not None else self.ratio
        low = judged is not None and self.floor is not None and judged < self.floor
        if low or (judged is not None and self.at_most is not None and judged > self.at_most):
            return MISSED if self.promised else QUICKLY
        if self.quality is not None and not self.quality.holds:
            return WORSE if self.floor is not None and self.promised else "worse"
        return MET if self.floor is not None or self.at_most is not None else "–"

    def cells(self) -> tuple[str, ...]:
        figure = bound = ""
        if self.value is not None:
            figure = f"{self.value:.3g} {self.unit}".rstrip()
        elif self.ratio is not None:
            figure = f"{self.ratio:.3g}"
            if len(self.ratios) > 1:
                figure += f" ({min(self.ratios):.3g}–{max(self.ratios):.3g})"
        if self.floor is not None:
            bound = f"≥ {self.floor:.3g}"
        elif self.at_most is not None:
            bound = f"≤ {self.at_most:.3g}"
        times = spread(self.our_times), self.peer, spread(self.their_times)
        return (self.what, self.ours, *times, figure, bound, "; ".join(self.said()), self.verdict)

    def said(self) -> list[str]:
        return [part for part in (self.quality.says if self.quality else "", self.note) if part]

    def below(self) -> list[str]:
        sides = [f"{name} {spread(t)}".strip() for name, t in ((self.ours, self.our_times), (self.peer, self.their_times))]
        return [*(f"{mark}{side}" for mark, side in zip(("", "beside "), sides, strict=True) if side), *self.said()]

    def document(self) -> dict[str, Any]:
        seconds = {
            name: None if times is None else {"wall": times.wall, "cpu": times.cpu}
            for name, times in (("our_seconds", self.our_times), ("their_seconds", self.their_times))
        }
        return {
            "what": self.what,
            "ours": self.ours,
            "peer": self.peer,
            **seconds,
            "ratio": self.ratio,
            "value": self.value,
            "unit": self.unit,
            "floor": self.floor,
            "at_most": self.at_most,
            "quality": None if self.quality is None else {"says": self.quality.says, "holds": self.quality.holds},
            "note": self.note,
            "verdict": self.verdict,
        }


@dataclass
class Outcome:
    """What a suite gave, line by line while it runs."""

    suite: str
    module: Any = None
    lines: list[Line] = field(default_factory=list)
    seconds: float = 0.0

    def tables(self) -> Iterator[list[Line]]:
        """The lines, those with the same columns together, in the order of first sight."""
        kinds: dict[tuple[str, ...], list[Line]] = {}
        for line in self.lines:
            kinds.setdefault(line.columns, []).append(line)
        yield from kinds.values()


def installed(name: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(name) is not None


def lines_of(outcome: Outcome, quick: bool, package: str) -> Iterator[Line]:
    """Run a suite; what it lacks, and how it fails, is its last line."""
    name = f"{package}.{SUITES[outcome.suite][0]}"
    try:
        outcome.module = importlib.import_module(name)
        with threadpool_limits(1):
            for line in outcome.module.rows(quick):
                yield replace(line, promised=False) if quick and hasattr(line, "promised") else line
    except ModuleNotFoundError as problem:
        here = problem.name == name
        why = f"{name.replace('.', '/')}.py is not in this checkout" if here else f"{problem.name} is not installed"
        yield Row.missing(f"suite {outcome.suite}", "", why)
    except FileNotFoundError as problem:
        yield Row.missing(f"suite {outcome.suite}", "", f"{problem.filename} is not there")
    except Exception as problem:
        yield Row(f"suite {outcome.suite}", note=f"{type(problem).__name__}: {problem}", trouble=FAILED)


def run(suites: Sequence[str], quick: bool, package: str = "benchmarks") -> Iterator[tuple[Outcome, Line | None]]:
    """Run suites one after another; yield each line as it comes, and None where a suite begins and where it ends."""
    for suite in suites:
        outcome, begin = Outcome(suite), time.perf_counter()
        yield outcome, None
        for line in lines_of(outcome, quick, package):
            outcome.lines.append(line)
            yield outcome, line
        outcome.seconds = time.perf_counter() - begin
        yield outcome, None
