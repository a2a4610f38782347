"""What matters overall in a linear model: its largest weights by name, and how much each column of a table can change.

A weight alone says how much a feature counts where it is 1. Features that are 0 or 1, tf-idf or scaled alike can be compared
by it. Given rows X, the importance is |w_j|·σ_j instead, the standard deviation of the feature's part of the score, which
takes into account how large a feature is and how often it occurs. For K classes only differences between the classes decide,
so the importance is that of the weight minus its mean over the classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from separatrix.analysis.explaining import feature_namer, linear_parts, matrix_of
from separatrix.analysis.explanation import BIAS, SHARED, lined_table, printed_text
from separatrix.engine.rows import Floats

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

NAMES = 2
"""The most names of a hashed feature that are listed; single words, which occur more often than their n-grams, first."""
_SIZE = "the size of the weight"
_SPREAD = "the standard deviation, over the {} rows given, of its part of the score"


class Importance(NamedTuple):
    """A feature and its weight in the score of one class, `label`."""

    label: Any
    name: str
    weight: float
    importance: float


class ColumnImportance(NamedTuple):
    """A column of a table, and how much its part of a score varies; None if that cannot be told without rows."""

    column: str
    importance: float | None


@dataclass(frozen=True)
class Importances:
    """The largest weights of a linear model by the names of their features.

    `by_class` has those of each class, the most important first; for two classes there is one list, that of the second
    class: negative weights count for the first. `bias` has the biases. `columns` are those of a table. `measure` and
    `measure_of_columns` say in words what the importances are. Iteration yields all weights, the most important first.

    Examples
    --------
    >>> from separatrix import Model, Perceptron, TextFeatures
    >>> features = TextFeatures(ngram_range=(1, 1), idf=False, norm=None)
    >>> texts, labels = ["free money", "see you", "free entry"], ["spam", "ham", "spam"]
    >>> model = Model(Perceptron(order="cyclic"), features).fit(texts, labels)
    >>> [(each.name, each.weight) for each in model.importances(3)]
    [('money', 1.0), ('you', -1.0), ('free', 1.0)]
    """

    by_class: dict[Any, list[Importance]]
    bias: dict[Any, float]
    measure: str
    columns: list[ColumnImportance] | None = None
    measure_of_columns: str = ""
    negative: Any = None
    """The class that negative weights count for, if there are two classes."""

    def __iter__(self) -> Iterator[Importance]:
        listed = [each for weights in self.by_class.values() for each in weights]
        return iter(sorted(listed, key=lambda each: -each.importance))

    def __len__(self) -> int:
        return sum(map(len, self.by_class.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON has them."""
        classes = [
            {
                "class": label,
                "bias": self.bias[label],
                "weights": [{"name": each.name, "weight": each.weight, "importance": each.importance} for each in weights],
            }
            for label, weights in self.by_class.items()
        ]
        document: dict[str, Any] = {"importance": self.measure, "classes": classes}
        if self.columns is not None:
            columns = [part._asdict() for part in self.columns]
            document |= {"columns": columns, "importance_of_columns": self.measure_of_columns}
        return document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        if self.columns is not None and len(self.columns) > 1:
            parts = [(part.column, "" if part.importance is None else f"{part.importance:.4g}") for part in self.columns]
            yield lined_table(("column", "importance"), parts)
            yield Text(f"importance of a column: {self.measure_of_columns}\n")
        if len(self.by_class) == 1:
            ((label, weights),) = self.by_class.items()
            rows = [(each.name, f"{each.weight:+.4g}", f"{each.importance:.4g}") for each in weights]
            if self.bias[label]:
                rows.append((BIAS, f"{self.bias[label]:+.4g}", ""))
            yield lined_table((f"feature (+ for {label}, - for {self.negative})", "weight", "importance"), rows)
        else:
            listed = {
                label: ", ".join(f"{each.name} {each.weight:+.3g}" for each in weights)
                for label, weights in self.by_class.items()
            }
            lists = [(str(label), words) for label, words in listed.items()]
            yield lined_table(("class", "weights in its score, the most important first"), lists, numbers=0)
        yield Text(f"importance: {self.measure}")
        if any(" | " in each.name for each in self):
            yield Text(f"{SHARED}")

    def text(self, width: int = 120) -> str:
        """Return all of it as text."""
        return printed_text(self, width=width)

    def __repr__(self) -> str:
        return self.text()


def importances(model: Any, n: int = 20, X: Any = None, *, features: Any = None) -> Importances:
    """Return the n largest weights of a linear model, of each class if there are more than two.

    Parameters
    ----------
    model : a fitted linear classifier, or a `Model`
    n : how many weights to list
    X : rows, texts or a table, by which to measure how large features are and how often they occur
    features : the fitted featurizer before the classifier; a `Model` has its own
    """
    if n < 1:
        raise ValueError(f"n is {n}: at least 1 weight must be listed")
    estimator, features = linear_parts(model, features)
    labels = estimator.classes_.tolist()
    coef, intercept = np.asarray(estimator.coef_, np.float64), np.asarray(estimator.intercept_, np.float64)
    deciding = coef if len(coef) == 1 else coef - coef.mean(axis=0)
    rows = None if X is None else _rows(estimator, features, X)
    sizes = np.abs(deciding) if rows is None else np.abs(deciding) * _deviations(rows)
    name_of = short_namer(estimator, features)
    by_class = {}
    for k, label in enumerate(labels[1:] if len(coef) == 1 else labels):
        largest = _largest(sizes[k], n)
        by_class[label] = [Importance(label, name_of(j), float(coef[k, j]), float(sizes[k, j])) for j in largest]
    columns, measure_of_columns = None, ""
    if hasattr(features, "column_spans"):
        if rows is None:
            spreads = features.spreads(deciding)
            measure_of_columns = "the largest less the smallest part of the score that its values can have"
            if None in spreads.values():
                measure_of_columns += "; that of texts, sets and scaled numbers cannot be told, or only given rows as X="
        else:
            parts = {name: rows[:, span] @ deciding[:, span].T for name, span in features.column_spans().items()}
            spreads = {name: float(np.std(part, axis=0).max()) for name, part in parts.items()}
            measure_of_columns = _SPREAD.format(f"{rows.shape[0]:,}")
        if len(coef) > 1:
            measure_of_columns += ", of the class for which that is largest"
        listed = [ColumnImportance(name, spread) for name, spread in spreads.items()]
        columns = sorted(listed, key=lambda part: math.inf if part.importance is None else -part.importance)
    bias = dict(zip(by_class, intercept.tolist(), strict=True))
    negative = labels[0] if len(coef) == 1 else None
    return Importances(by_class, bias, _measure(features, rows, len(coef) > 1), columns, measure_of_columns, negative)


def short_namer(estimator: Any, features: Any) -> Callable[[int], str]:
    """Return a function that names a feature, a hashed one by a few of the values that share it."""
    if not hasattr(features, "names_of"):
        return feature_namer(estimator, features)

    def name(j: int) -> str:
        names = sorted(features.names_of(j), key=lambda name: name.count(" "))
        more = len(names) > NAMES or (names and features.has_unnamed(j))
        return " | ".join([*names[:NAMES], *["…"] * bool(more)]) or f"column {j}"

    return name


def _measure(features: Any, rows: Any, several: bool) -> str:
    less = " minus its mean over the classes" if several else ""
    if rows is not None:
        return _SPREAD.format(f"{rows.shape[0]:,}") + (f", by the weight{less}" if less else "")
    numbers = getattr(features, "numbers", "none")
    plain = features is None or (hasattr(features, "numbers") and numbers == "none")
    if plain:
        return f"{_SIZE}{less}; features of different scales cannot be compared by it, or only given rows as X="
    return f"{_SIZE}{less}"


def _rows(estimator: Any, features: Any, X: Any) -> Any:
    if features is not None:
        return sp.csr_matrix(matrix_of(features, X))
    source = estimator.read_rows(X).source
    return sp.csr_matrix(source) if sp.issparse(source) else np.asarray(source)


def _deviations(rows: Any) -> Floats:
    """Return the standard deviation of each feature."""
    if not sp.issparse(rows):
        spread: Floats = np.std(rows, axis=0, dtype=np.float64)
        return spread
    n, d = rows.shape
    totals, squares = (
        np.bincount(rows.indices, values.astype(np.float64), minlength=d) for values in (rows.data, rows.data**2)
    )
    deviations: Floats = np.sqrt(np.maximum(0.0, squares / n - (totals / n) ** 2))
    return deviations


def _largest(sizes: Floats, n: int) -> list[int]:
    """Return the places of the n largest sizes above 0, the first of equal ones first."""
    places = np.flatnonzero(sizes > 0.0)
    if len(places) > n:
        least = np.partition(sizes[places], len(places) - n)[len(places) - n]
        places = places[sizes[places] >= least]
    order: list[int] = places[np.argsort(-sizes[places], kind="stable")][:n].tolist()
    return order
