"""The worked examples of the lectures, each with the setting of its own lecture.

`EXAMPLES["L4.1"]` is Example 1 of L4; `docs/lectures.md` says what each of them shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LectureExample:
    """A worked example, with the lecture's meaning of a score of 0, a best separator if known, and whether it has a bias."""

    name: str
    title: str
    points: tuple[tuple[float, ...], ...]
    labels: tuple[Any, ...]
    tie: str = "mistake"
    feature_names: tuple[str, ...] = ()
    separator: tuple[float, ...] | None = None
    bias: bool = False

    @property
    def X(self) -> NDArray[np.float64]:  # noqa: N802
        """The points, a row each."""
        return np.asarray(self.points, np.float64)

    @property
    def y(self) -> NDArray[Any]:
        """The labels."""
        return np.asarray(self.labels)


EXAMPLES = {
    example.name: example
    for example in (
        LectureExample("L1.8", "separable only by touching", ((0, 1), (0, -1), (-1, 0.5)), (1, 1, -1), "+1"),
        LectureExample("L2.4", "two mistakes", ((3, 2), (-2, 2), (-2, -3)), (1, -1, 1), "-1", separator=(1, -1)),
        LectureExample("L4.1", "example 1", ((4, 0), (1, 1), (0, 1), (-2, -2)), (1, -1, -1, 1), separator=(1, -5)),
        LectureExample("L4.xor", "example 2, XOR", ((1, 1), (1, -1), (-1, 1), (-1, -1)), (1, -1, -1, 1)),
        LectureExample("L4.6", "the margin of w = (1, 0)", ((1, -1), (-1, -1), (0.01, 0), (-1, 0)), (1, 1, 1, -1)),
        LectureExample("L3.6", "two mistakes where 1/γ² is one", ((1,), (-1,)), (1, -1), separator=(1,), bias=True),
    )
}
