"""A recipe: the validated settings of the lab's controls, and the experiment that they describe."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from separatrix.data.built_in import NAMES
from separatrix.data.errors import DataError
from separatrix.data.in_memory import Examples, read_source
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rules import RULES, TIES
from separatrix.estimators.kernel_perceptron import KernelPerceptron
from separatrix.estimators.linear import PassiveAggressive
from separatrix.features import DiscMap, PolynomialMap, RandomFourier
from separatrix.web.lab.experiment import Experiment, FeatureMap, plain_names
from separatrix.web.lab.menus import KERNELS, LEARNERS, MAPS, ORDERS
from separatrix.web.lab.points import drawn_points, random_set

MOST_ROWS = 20_000
MOST_KERNEL_ROWS = 2_000
MOST_OPEN_ENDED = 2_000
MOST_LITERAL = 300
"""At most so many examples are written out in the generated program."""
NO_TEXT = re.compile(r"\ABZh|[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""The first bytes of a compressed file, or a control character that no CSV file contains."""


def _one_of(names: Iterable[str]) -> AfterValidator:
    """Return a validator that accepts only the given names."""
    allowed = tuple(names)

    def check(name: str) -> str:
        if name not in allowed:
            raise ValueError(f"{name!r} is not one of {', '.join(allowed)}")
        return name

    return AfterValidator(check)


class Recipe(BaseModel):
    """The settings of the controls, one field for each."""

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
    learner: Annotated[str, _one_of(LEARNERS)] = "perceptron"
    rule: Annotated[str, _one_of(RULES)] = "perceptron"
    C: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    margin: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    tie: Annotated[str, _one_of(TIES)] | None = None
    order: Annotated[str, _one_of(ORDERS)] = "cyclic"
    bias: bool | None = None
    passes: Annotated[int, Field(ge=0, le=1_000)] = 0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    holdout: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    map: Annotated[str, _one_of(MAPS)] = "none"
    components: Annotated[int, Field(ge=2, le=200)] = 50
    kernel: Annotated[str, _one_of(KERNELS)] = "rbf"
    degree: Annotated[int, Field(ge=1, le=8)] = 2
    gamma: Annotated[float, Field(gt=0, le=1e6)] = 1.0

    def experiment(self) -> Experiment:
        """Return the examples and the learner; raises DataError or ValueError if the settings do not fit together."""
        examples, code = self._examples()
        X, y = np.asarray(examples.X, np.float64), examples.y
        if len(X) > MOST_ROWS:
            raise DataError(f"{examples.name} has {len(X):,} examples: the lab supports at most {MOST_ROWS:,}")
        names = tuple(examples.feature_names or plain_names(X.shape[1]))
        source = {"features": list(names), "classes": self._all_classes(examples)}
        if self.columns:
            if max(self.columns) >= X.shape[1]:
                raise DataError(f"{examples.name} has {X.shape[1]} features: there is no feature number {max(self.columns)}")
            X, names = X[:, self.columns], tuple(names[j] for j in self.columns)
            code.append(f"X = X[:, {self.columns}]")
        if len(np.unique(y)) < 2:
            what = "a point" if self.data == "points" else "an example"
            raise DataError(f"a boundary needs two classes: add {what} of another class")
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
        """Return the classes of the data, before `positive` reduces them to one against the rest."""
        y = examples.y
        if self.positive:
            content = self.csv.encode() if self.data == "csv" else None
            y = read_source(self.file if self.data == "csv" else self.data, content=content).y
        return [str(label) for label in np.unique(y).tolist()][:40]

    def _examples(self) -> tuple[Examples, list[str]]:
        """Return the examples, and the Python code that makes them."""
        if self.data == "points":
            if not self.points:
                raise DataError("there are no points yet: draw some")
            X, y = drawn_points(self.points)
            return Examples("drawn points", X, y), _literal(X, y)
        if self.data == "random":
            X, y = random_set(self.n, self.classes, self.gap, self.noise, self.seed)
            call = f"n={self.n}, classes={self.classes}, gap={self.gap}, noise={self.noise}, seed={self.seed}"
            code = ["from separatrix.web.lab.points import random_set", f"X, y = random_set({call})"]
            return Examples(f"{self.n} random points", X, y), code
        read = "from separatrix.data.in_memory import read_source"
        positive = self.positive or None
        arguments = f", positive={positive!r}" if positive else ""
        if self.data == "csv":
            if NO_TEXT.search(self.csv):
                raise DataError(f"{self.file} is not text: the lab reads CSV files")
            examples = read_source(self.file, positive=positive, content=self.csv.encode())
            if len(examples.y) <= MOST_LITERAL:
                return examples, _literal(np.asarray(examples.X, np.float64), examples.y)
            return examples, [read, f"source = read_source({self.file!r}{arguments})", "X, y = source.X, source.y"]
        if self.data.removeprefix("lecture:") not in EXAMPLES and self.data not in NAMES:
            raise DataError(f"there is no data set called {self.data!r}")
        code = [read, f"source = read_source({self.data!r}{arguments})", "X, y = source.X, source.y"]
        return read_source(self.data, positive=positive), code

    def _learner(self, tie: str, bias: bool, n: int) -> Any:
        passes = self.passes or None
        if passes is None and n > MOST_OPEN_ENDED:
            raise DataError(f'"until convergence" supports at most {MOST_OPEN_ENDED:,} examples: choose a number of passes')
        common: dict[str, Any] = {"tie": tie, "fit_intercept": bias, "max_iter": passes, "random_state": self.seed}
        if self.learner == "passive-aggressive":
            loss = "squared_hinge" if self.rule == "pa2" else "hinge"
            return PassiveAggressive(C=self.C, loss=loss, shuffle=self.order != "cyclic", tol=None, **common)
        common["order"] = self.order
        if self.learner == "kernel":
            if n > MOST_KERNEL_ROWS:
                raise DataError(f"the lab supports kernels for at most {MOST_KERNEL_ROWS:,} examples; there are {n:,}")
            return KernelPerceptron(
                kernel=self.kernel, degree=self.degree, gamma=self.gamma, coef0=1.0, predict_with="last", **common
            )
        return LEARNERS[self.learner].estimator(rule=self.rule, C=self.C, margin=self.margin, **common)

    def _map(self) -> FeatureMap | None:
        if self.learner == "kernel" or self.map == "none":
            return None
        if self.map == "disc":
            return DiscMap()
        if self.map == "fourier":
            return RandomFourier(n_components=self.components, gamma=self.gamma, random_state=self.seed)
        return PolynomialMap(degree=int(self.map[-1]), include_bias=False)

    def _split(self, X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        """Split as the generated program does; scikit-learn is imported only for this."""
        from sklearn.model_selection import train_test_split

        try:
            parts = train_test_split(X, y, test_size=self.holdout, random_state=self.seed, stratify=y)
        except ValueError:
            raise DataError(f"holding out {self.holdout:.0%} leaves a class without examples: hold out less") from None
        X, X_val, y, y_val = parts
        return X, X_val, y, y_val


def _literal(X: Any, y: Any) -> list[str]:
    """Return Python code with all numbers of X and y."""
    rows = ", ".join(str(row) for row in X.tolist())
    return ["import numpy as np", f"X = np.array([{rows}], dtype=float)", f"y = np.array({y.tolist()!r})"]
