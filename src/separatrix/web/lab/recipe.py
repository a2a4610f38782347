"""A recipe: everything that the controls of the lab say, checked, and made into examples and a learner."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from sklearn.model_selection import train_test_split

from separatrix.data.built_in import NAMES
from separatrix.data.errors import DataError
from separatrix.data.in_memory import Examples, read_source
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rules import RULES, TIES
from separatrix.estimators.kernel_perceptron import KernelPerceptron
from separatrix.estimators.linear import AveragedPerceptron, PassiveAggressive, Perceptron, PocketPerceptron, VotedPerceptron
from separatrix.features import DiscMap, PolynomialMap, RandomFourier
from separatrix.web.lab.experiment import Experiment, Map, plain_names
from separatrix.web.lab.points import drawn, random_set

LEARNERS: dict[str, Any] = {
    "perceptron": Perceptron,
    "averaged": AveragedPerceptron,
    "voted": VotedPerceptron,
    "pocket": PocketPerceptron,
    "passive-aggressive": PassiveAggressive,
    "kernel": KernelPerceptron,
}
MOST_ROWS = 20_000
MOST_KERNEL_ROWS = 2_000
MOST_OPEN_ENDED = 2_000
MOST_LITERAL = 300
"""So many examples at most are written out in the Python snippet."""
NO_TEXT = re.compile(r"\ABZh|[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""The beginning of a compressed file, or a character that no table of text has."""


class Recipe(BaseModel):
    """What the lab is asked to run."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    data: Annotated[str, Field(max_length=80)] = "lecture:L4.1"
    points: Annotated[list[tuple[float, float, Annotated[str, Field(max_length=40)]]], Field(max_length=2_000)] = []
    csv: str = ""
    file: Annotated[str, Field(max_length=200)] = "pasted.csv"
    positive: Annotated[str, Field(max_length=200)] = ""
    columns: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=2)] = []
    n: Annotated[int, Field(ge=2, le=MOST_ROWS)] = 60
    classes: Annotated[int, Field(ge=2, le=6)] = 2
    gap: Annotated[float, Field(ge=0, le=5)] = 0.5
    noise: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    learner: Literal["perceptron", "averaged", "voted", "pocket", "passive-aggressive", "kernel"] = "perceptron"
    rule: Literal[tuple(RULES)] = "perceptron"  # type: ignore[valid-type]
    C: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    margin: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    tie: Literal[tuple(TIES)] | None = None  # type: ignore[valid-type]
    order: Literal["cyclic", "shuffle", "permutation", "random"] = "cyclic"
    bias: bool | None = None
    passes: Annotated[int, Field(ge=0, le=1_000)] = 0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    holdout: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    map: Literal["none", "disc", "products2", "products3", "fourier"] = "none"
    components: Annotated[int, Field(ge=2, le=200)] = 50
    kernel: Literal["linear", "poly", "rbf"] = "rbf"
    degree: Annotated[int, Field(ge=1, le=8)] = 2
    gamma: Annotated[float, Field(gt=0, le=1e6)] = 1.0

    def setup(self) -> Experiment:
        """Return the examples and the learner; raises DataError or ValueError where there is no such thing."""
        examples, code = self._examples()
        X, y = np.asarray(examples.X, np.float64), examples.y
        if len(X) > MOST_ROWS:
            raise DataError(f"{examples.name} has {len(X):,} examples: the lab takes {MOST_ROWS:,} at most")
        names = tuple(examples.feature_names or plain_names(X.shape[1]))
        source = {"features": list(names), "classes": self._all_classes(examples)}
        if self.columns:
            if max(self.columns) >= X.shape[1]:
                raise DataError(f"{examples.name} has {X.shape[1]} features: there is no number {max(self.columns)}")
            X, names = X[:, self.columns], tuple(names[j] for j in self.columns)
            code.append(f"X = X[:, {self.columns}]")
        if len(np.unique(y)) < 2:
            raise DataError("a boundary needs two classes: add a point of another class")
        bias = examples.bias if self.bias is None else self.bias
        tie = self.tie or examples.tie
        if len(np.unique(y)) > 2 and tie == "+1":
            tie = "mistake"
        model = self._learner(tie, bias, len(X))
        phi = self._map()
        held_out = None
        if self.holdout:
            X, X_val, y, y_val = self._split(X, y)
            held_out = X_val, y_val
            code += [
                "from sklearn.model_selection import train_test_split",
                f"parts = train_test_split(X, y, test_size={self.holdout}, random_state={self.seed}, stratify=y)",
                "X, X_val, y, y_val = parts",
            ]
        resolved = self.model_dump() | {"bias": bias, "tie": tie}
        return Experiment(examples.name, X, y, names, model, tuple(code), phi, held_out, resolved, source)

    def _all_classes(self, examples: Examples) -> list[str]:
        """Return the classes before one was set against the rest."""
        y = examples.y
        if self.positive:
            content = self.csv.encode() if self.data == "csv" else None
            y = read_source(self.file if self.data == "csv" else self.data, content=content).y
        return [str(label) for label in np.unique(y).tolist()][:40]

    def _examples(self) -> tuple[Examples, list[str]]:
        if self.data == "points":
            if not self.points:
                raise DataError("there are no points yet: draw some")
            X, y = drawn(self.points)
            return Examples("drawn points", X, y), _literal(X, y)
        if self.data == "random":
            X, y = random_set(self.n, self.classes, self.gap, self.noise, self.seed)
            call = f"n={self.n}, classes={self.classes}, gap={self.gap:g}, noise={self.noise:g}, seed={self.seed}"
            made = ["from separatrix.web.lab.points import random_set", f"X, y = random_set({call})"]
            return Examples(f"{self.n} random points", X, y), made
        read = "from separatrix.data.in_memory import read_source"
        positive = self.positive or None
        more = f", positive={positive!r}" if positive else ""
        if self.data == "csv":
            if NO_TEXT.search(self.csv):
                raise DataError(f"{self.file} is not text: the lab reads CSV")
            found = read_source(self.file, positive=positive, content=self.csv.encode())
            if len(found.y) <= MOST_LITERAL:
                return found, _literal(np.asarray(found.X, np.float64), found.y)
            return found, [read, f"source = read_source({self.file!r}{more})", "X, y = source.X, source.y"]
        if self.data.removeprefix("lecture:") not in EXAMPLES and self.data not in NAMES:
            raise DataError(f"there are no data called {self.data!r}")
        made = [read, f"source = read_source({self.data!r}{more})", "X, y = source.X, source.y"]
        return read_source(self.data, positive=positive), made

    def _learner(self, tie: str, bias: bool, n: int) -> Any:
        passes = self.passes or None
        if passes is None and n > MOST_OPEN_ENDED:
            raise DataError(f"until it ends is for {MOST_OPEN_ENDED:,} examples at most: choose a number of passes")
        common: dict[str, Any] = {"tie": tie, "fit_intercept": bias, "max_iter": passes, "random_state": self.seed}
        if self.learner == "passive-aggressive":
            loss = "squared_hinge" if self.rule == "pa2" else "hinge"
            return PassiveAggressive(C=self.C, loss=loss, shuffle=self.order != "cyclic", tol=None, **common)
        common["order"] = self.order
        if self.learner == "kernel":
            if n > MOST_KERNEL_ROWS:
                raise DataError(f"a kernel is for {MOST_KERNEL_ROWS:,} examples at most in the lab; there are {n:,}")
            return KernelPerceptron(
                kernel=self.kernel, degree=self.degree, gamma=self.gamma, coef0=1.0, predict_with="last", **common
            )
        return LEARNERS[self.learner](rule=self.rule, C=self.C, margin=self.margin, **common)

    def _map(self) -> Map | None:
        if self.learner == "kernel" or self.map == "none":
            return None
        if self.map == "disc":
            return DiscMap()
        if self.map == "fourier":
            return RandomFourier(n_components=self.components, gamma=self.gamma, random_state=self.seed)
        return PolynomialMap(degree=int(self.map[-1]), include_bias=False)

    def _split(self, X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        try:
            parts = train_test_split(X, y, test_size=self.holdout, random_state=self.seed, stratify=y)
        except ValueError:
            raise DataError(f"holding out {self.holdout:.0%} leaves a class without an example: hold out less") from None
        X, X_val, y, y_val = parts
        return X, X_val, y, y_val


def _literal(X: Any, y: Any) -> list[str]:
    rows = ", ".join("[" + ", ".join(f"{value:.17g}" for value in row) + "]" for row in X)
    return ["import numpy as np", f"X = np.array([{rows}], dtype=float)", f"y = np.array({y.tolist()!r})"]
