"""Data by name: the lectures' worked examples (`lecture:L4.1`), iris, and the small data sets that scikit-learn ships.

Iris is `iris.csv` beside this module, value for value what `sklearn.datasets.load_iris` returns, so that no command needs
scikit-learn for it. The other names are loaded from scikit-learn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.batches import Options, RowBatch
from separatrix.data.errors import DataError, Origin, did_you_mean
from separatrix.data.lectures import EXAMPLES

LOADERS = {"wine": "load_wine", "digits": "load_digits", "breast_cancer": "load_breast_cancer", "wdbc": "load_breast_cancer"}
NAMES = ("iris", *LOADERS)


def is_known(name: str) -> bool:
    """Tell whether a name stands for built-in data; a file of the same name comes first."""
    return name.startswith("lecture:") or (name in NAMES and not Path(name).exists())


def iris() -> tuple[NDArray[np.float64], NDArray[np.str_], tuple[str, ...]]:
    """Return iris: 150 flowers with four measurements each, their species, and the names of the measurements."""
    header, *lines = Path(__file__).with_name("iris.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines]
    X = np.array([[float(cell) for cell in row[:-1]] for row in rows])
    return X, np.array([row[-1] for row in rows]), tuple(header.split(",")[:-1])


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
        elif name == "iris":
            self.X, self.y, self.feature_names = iris()
        else:
            self._take_set()
        self.width = self.X.shape[1]

    def _take_example(self) -> None:
        example = EXAMPLES.get(self.name.removeprefix("lecture:"))
        if example is None:
            examples = [f"lecture:{each}" for each in EXAMPLES]
            raise DataError(
                f"{self.name}: no such example; there are {', '.join(examples)}{did_you_mean(self.name, examples)}"
            )
        self.X, self.y, self.feature_names = example.X, example.y, example.feature_names or None
        self.bias, self.tie = example.bias, example.tie

    def _take_set(self) -> None:
        try:
            from sklearn import datasets
        except ImportError:
            raise DataError(f"{self.name} comes with scikit-learn, which is not installed; iris is built in") from None
        bunch = getattr(datasets, LOADERS[self.name])()
        self.X, self.y = bunch.data, bunch.target_names[bunch.target]
        self.feature_names = tuple(str(title) for title in bunch.feature_names)

    def batches(self, stream: object) -> Iterator[RowBatch]:
        """Yield all of it."""
        yield RowBatch(self.X, self.y, Origin(self.name, 1, "row"))

    def digest(self) -> bytes:
        """Return a hash of the data."""
        return hashlib.sha256(np.ascontiguousarray(self.X).tobytes() + repr(self.y.tolist()).encode()).digest()
