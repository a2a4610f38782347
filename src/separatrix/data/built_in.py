"""Data by name: the lectures' worked examples (`lecture:L4.1`) and the small sets that come with scikit-learn (`iris`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.data.batches import Options, RowBatch
from separatrix.data.errors import DataError, Origin
from separatrix.data.lectures import EXAMPLES

NAMES = ("iris", "wine", "digits", "breast_cancer", "wdbc")


def is_known(name: str) -> bool:
    """Tell whether a name stands for built-in data; a file of the same name comes first."""
    return name.startswith("lecture:") or (name in NAMES and not Path(name).exists())


class BuiltInReader:
    """Built-in data, as a reader gives them; with what a lecture says of its example."""

    kind = "rows"

    def __init__(self, name: str, options: Options) -> None:
        if options.label is not None:
            raise DataError(f"{name} is built in and has its own labels: there is no column {options.label!r} to choose")
        self.name = name
        self.bias, self.tie = True, "mistake"
        self.X: Any
        self.y: Any
        self.feature_names: tuple[str, ...] | None
        if name.startswith("lecture:"):
            self._take_example()
        else:
            self._take_set()
        self.width = self.X.shape[1]

    def _take_example(self) -> None:
        example = EXAMPLES.get(self.name.removeprefix("lecture:"))
        if example is None:
            raise DataError(f"{self.name}: no such example; there are {', '.join(f'lecture:{known}' for known in EXAMPLES)}")
        self.X, self.y, self.feature_names = example.X, example.y, example.feature_names or None
        self.bias, self.tie = example.bias, example.tie

    def _take_set(self) -> None:
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{'breast_cancer' if self.name == 'wdbc' else self.name}")()
        self.X, self.y = bunch.data, bunch.target_names[bunch.target]
        self.feature_names = tuple(str(title) for title in bunch.feature_names)

    def batches(self, stream: object) -> Iterator[RowBatch]:
        """Yield all of it."""
        yield RowBatch(self.X, self.y, Origin(self.name, 1, "row"))

    def digest(self) -> bytes:
        """Return a hash of the data."""
        return hashlib.sha256(np.ascontiguousarray(self.X).tobytes() + repr(self.y.tolist()).encode()).digest()
