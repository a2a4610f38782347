"""A published figure or ordering, beside ours."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from benchmarks.harness import MET, MISSED, Outcome
from benchmarks.report import show


@dataclass(frozen=True)
class Figure:
    """What was published, where, how it was measured, and what we measure; `holds` is None where there is no figure."""

    columns: ClassVar = ("figure", "source", "protocol", "published", "ours", "verdict")
    aside: ClassVar = frozenset({"source", "protocol", "published", "ours"})

    figure: str
    source: str
    protocol: str
    published: str
    ours: str
    holds: bool | None

    @property
    def verdict(self) -> str:
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
