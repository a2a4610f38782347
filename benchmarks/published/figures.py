"""A published figure or ordering, beside ours."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from statistics import fmean, variance
from typing import Any, ClassVar

from benchmarks.harness import MET, MISSED, Outcome
from benchmarks.report import show

EQUAL = "equal"
"""The verdict on an ordering of two means that are no farther apart than twice the standard error of their difference."""


@dataclass(frozen=True)
class Figure:
    """What was published, where, how it was measured, and what we measure.

    `holds` is None where there is no figure, and where an ordering is neither confirmed nor refuted (`equal`).
    """

    columns: ClassVar = ("figure", "source", "protocol", "published", "ours", "verdict")
    aside: ClassVar = frozenset({"source", "protocol", "published", "ours"})

    figure: str
    source: str
    protocol: str
    published: str
    ours: str
    holds: bool | None
    equal: bool = False

    @classmethod
    def ordering(
        cls, figure: str, source: str, protocol: str, names: tuple[str, str], above: Sequence[float], below: Sequence[float]
    ) -> "Figure":
        """Compare two learners, the first of which was published as the better one, by their accuracies seed by seed."""
        ahead = [a - b for a, b in zip(above, below, strict=True)]
        error = sqrt(variance(ahead) / len(ahead))
        equal = abs(fmean(ahead)) <= 2 * error
        ours = f"{names[0]} {fmean(above):.4f}, {names[1]} {fmean(below):.4f} (difference ± {error:.4f})"
        protocol = f"{protocol}, mean of {len(ahead)} seeds"
        holds = None if equal else fmean(ahead) > 0
        return cls(figure, source, protocol, f"{names[0]} above {names[1]}", ours, holds, equal)

    @property
    def verdict(self) -> str:
        if self.equal:
            return EQUAL
        return "–" if self.holds is None else MET if self.holds else MISSED

    def cells(self) -> tuple[str, ...]:
        return self.figure, self.source, self.protocol, self.published, self.ours, self.verdict

    def below(self) -> list[str]:
        return [f"{self.source}: {self.protocol}", f"published: {self.published}", f"ours: {self.ours}"]

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def main(rows: Callable[[bool], Iterable[Any]]) -> None:
    """Print the rows of a script."""
    for lines in Outcome("published", lines=list(rows("--quick" in sys.argv))).tables():
        show(lines)
