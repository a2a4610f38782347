"""What each column of a table adds to the scores: the features and their weights as one term a column.

A linear score over the features of a table is a sum over its columns: age adds the weights of the bins that it exceeds, job
adds that of its category. The exports write these terms, each in its own language, and never the features.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Floats
from separatrix.exporting.linear_decision import LinearDecision
from separatrix.features.columns.categories import UNIT, BooleanColumn, CategoryColumn, SetColumn
from separatrix.features.columns.numbers import NumberColumn
from separatrix.features.columns.texts import TextColumn
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer

LARGEST = float(np.finfo(np.float64).max)
MISSING_WORDS = ("nan", "None", "<NA>")
"""What NaN, None and pandas' NA become where a column is made text, as onnxruntime and NumPy do."""
_WHOLE = r"-?(0|[1-9][0-9]*)"


class Cut(NamedTuple):
    """A place where a number goes from one bin to the next: x > `at`, or x ≥ `at` where it is `closed`."""

    at: float
    closed: bool


class Bins(NamedTuple):
    """A number adds `weights[k]` where it passes k of the `cuts`, and `missing` where it is missing or infinite."""

    name: str
    cuts: list[Cut]
    weights: Floats
    missing: Floats

    @property
    def bounds(self) -> Floats:
        """Numbers in ascending order. By how many of them a value is not ≤ bound, it has its row of `table`."""
        inner = [float(np.nextafter(cut.at, -np.inf)) if cut.closed else cut.at for cut in self.cuts]
        return np.array([-np.inf, *inner, LARGEST])

    @property
    def table(self) -> Floats:
        """The rows that `bounds` lead to: missing where the value is −∞, the bins, missing where it is ∞ or NaN."""
        return np.vstack([self.missing, self.weights, self.missing])


class Line(NamedTuple):
    """A number x adds `weights`·(x − `shift`)·`scale`, and `missing` where it is missing or infinite."""

    name: str
    shift: float
    scale: float
    weights: Floats
    missing: Floats


class Truth(NamedTuple):
    """A truth value adds `weights` where it is true, and `missing` where it is missing."""

    name: str
    weights: Floats
    missing: Floats

    @property
    def bins(self) -> Bins:
        """The same for truth values that are written as 1 and 0."""
        return Bins(self.name, [Cut(0.5, False)], np.vstack([np.zeros_like(self.weights), self.weights]), self.missing)


class Choice(NamedTuple):
    """A category adds `weights[k]` where it is one of `spellings[k]`, and `missing` where it is missing.

    With `spelled`, the values may be no text, and are compared as the text that they are written as.
    """

    name: str
    spellings: list[list[str]]
    weights: Floats
    missing: Floats
    spelled: bool


class Items(NamedTuple):
    """A set adds `weights[k]` where `values[k]` is among its items, and `missing` where it is missing."""

    name: str
    delimiter: str
    values: list[str]
    weights: Floats
    missing: Floats


class Words(NamedTuple):
    """A text adds the sum of `weights[k]` times its k-th feature, and nothing (`missing`) where it is missing."""

    name: str
    features: TextFeaturizer
    weights: Floats
    missing: Floats


Term = Bins | Line | Truth | Choice | Items | Words


def column_terms(decision: LinearDecision, target: str, takes: tuple[type, ...]) -> list[Term]:
    """Return a term for each column; raise for the first one that the target, of the terms that it takes, cannot express."""
    features = decision.features
    if isinstance(features, TextFeaturizer):
        raise ValueError(f"the model reads texts, whose features {target} cannot compute: export to scikit-learn instead")
    if not isinstance(features, TableFeaturizer):
        raise ValueError(f"the features of a {type(features).__name__} cannot be exported: export model.estimator")
    schema, weights = features.schema, decision.coef.T
    if schema.width != len(weights):
        raise ValueError(f"the classifier has {len(weights)} weights a class, but the table has {schema.width} features")
    terms = []
    for name, column in schema.parts.items():
        remedy = f"train without it, roles={{{name!r}: 'drop'}}"
        if what := _not_expressed(features, name, column):
            raise ValueError(
                f"column {name!r} holds {what}, which {target} cannot compute: replace it by plain numbers or categories "
                f"before training, or {remedy}"
            )
        weights_of_column = weights[schema.bases[name] : schema.bases[name] + column.width]
        term = _term(column, weights_of_column, bool(schema.spelled.get(name)))
        if not isinstance(term, takes):
            what = "texts" if isinstance(term, Words) else "sets"
            raise ValueError(
                f"column {name!r} holds {what}, which {target} cannot compute: export to scikit-learn instead, or {remedy}"
            )
        if column.width:
            terms.append(term)
    return terms


def _not_expressed(features: TableFeaturizer, name: str, column: Any) -> str:
    """Return what a column holds that no export expresses, or nothing."""
    if isinstance(column, NumberColumn):
        if features.schema.is_in_notation(name):
            return "numbers written as text (such as 1.234,5 or $9)"
        return "numbers scaled in float32" if column.numbers != "bins" and np.dtype(features.dtype).itemsize < 8 else ""
    if isinstance(column, CategoryColumn):
        if column.others is not None:
            return f"more than {column.most:,} {'items' if isinstance(column, SetColumn) else 'categories'}, hashed"
        if isinstance(column, SetColumn) and column.delimiter == UNIT:
            return "lists"
        if any(_decoded(value) is None for value in column.values.to_pylist()):
            return "categories that are not UTF-8"
        return ""
    return "" if isinstance(column, BooleanColumn | TextColumn) else "dates"


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _term(column: Any, part: Floats, spelled: bool) -> Term:
    """Return the term of a column with the weights of its features, a row each."""
    nothing = np.zeros(part.shape[1])
    if isinstance(column, TextColumn):
        return Words(column.name, column.features, part * column.scale, nothing)
    n_values = 1 if isinstance(column, BooleanColumn) else column.n_values
    values, missing = part[:n_values], part[n_values] if len(part) > n_values else nothing
    if isinstance(column, NumberColumn):
        if column.numbers != "bins":
            return Line(column.name, column.shift, column.scale, values.sum(axis=0), missing)
        return Bins(column.name, _cuts(column), _bin_weights(column, values), missing)
    if isinstance(column, BooleanColumn):
        return Truth(column.name, values.sum(axis=0), missing)
    words = [value.decode() for value in column.values.to_pylist()]
    if isinstance(column, SetColumn):
        return Items(column.name, column.delimiter, words, values, missing)
    return Choice(column.name, _spellings(words, spelled), values, missing, spelled)


def _cuts(column: NumberColumn) -> list[Cut]:
    """Return where the bins of a column end: those below 0 exclude their upper end, those above 0 their lower end."""
    above, below = column.thresholds[: column.n_above].tolist(), column.thresholds[column.n_above :].tolist()
    return [*(Cut(-t, True) for t in reversed(below)), *(Cut(t, False) for t in above)]


def _bin_weights(column: NumberColumn, values: Floats) -> Floats:
    """Return what a value of each bin adds; between the bins below and above 0, nothing."""
    above, below = values[: column.n_above], values[column.n_above :]
    if column.thermometer:
        above, below = np.cumsum(above, axis=0), np.cumsum(below, axis=0)
    return np.vstack([below[::-1], np.zeros((1, values.shape[1])), above])


def _spellings(words: list[str], spelled: bool) -> list[list[str]]:
    """Return how each category may be written: true also as Python does, numbers taken for text also as databases do."""
    known, spellings = set(words), []
    for word in words:
        other = word
        if word in ("true", "false"):
            other = word.capitalize()
        elif spelled and re.fullmatch(_WHOLE, word):
            other = f"{word}.0"
        spellings.append([word] if other in known else [word, other])
    return spellings
