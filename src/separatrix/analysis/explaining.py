"""Explains a score as a sum over the features, and as a sum over the training mistakes that made the weights (L2 2 and 5).

    score = b + Σ_j w_j·x_j          and, since w is a sum of mistakes,          score = Σ_m f_m·c_m·⟨x̃, x̃_m⟩

The correction of mistake m is c_m, with the sign of its class; f_m is 1, or for averaged weights the fraction of the
averaged steps that came after it. For K classes the score is that of one class, or the lead of one over another, by default
of the winner over the runner-up; then w is the difference of their weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from separatrix.analysis.explanation import BIAS, Cause, Explanation, Part, Term
from separatrix.data.errors import did_you_mean
from separatrix.engine.ledger import Ledger
from separatrix.engine.parameters import NotFittedError
from separatrix.engine.pipelines import parts_of
from separatrix.engine.rows import Array, Floats, Ints, Rows

_BLOCK_BYTES = 1 << 25
UNSEEN = "(unseen; the weight is of others with its hash)"


class LinearClassifier(Protocol):
    """A fitted classifier whose scores are linear in the features: one for two classes, one for each class for more."""

    n_features_in_: int
    classes_: Array
    coef_: Floats
    intercept_: Floats

    def read_rows(self, X: Any, reset: bool = False) -> Rows:
        """Return X as rows, its width and names checked against those of the fit."""
        ...


class FeaturizedClassifier(Protocol):
    """A classifier with the featurizer before it, such as a `Model`; `features` is None if it reads rows as they are."""

    estimator: Any
    features: Any


class Lead(NamedTuple):
    """Which score is explained: that of the class `of`, or what it is ahead of the class `against`, by their numbers."""

    of: int
    against: int | None

    def taken(self, values: Array) -> Any:
        """Return what belongs to this score of values by class; of two classes there is one value, that of the second."""
        if len(values) == 1:
            return values[0] if self.of == 1 else -values[0]
        return values[self.of] if self.against is None else values[self.of] - values[self.against]


def explain(
    model: LinearClassifier | FeaturizedClassifier,
    x: Any,
    *,
    of: Any = None,
    against: Any = None,
    features: Any = None,
    X: Any = None,
    n: int = 5,
) -> Explanation:
    """Explain the score that a linear classifier gives to one example.

    Parameters
    ----------
    model : a fitted linear classifier, a `Model`, or scikit-learn's `Pipeline` of our featurizer and our classifier
    x : one example: a row, also `frame.iloc[i]`, a one-row table or matrix, a dict of named values (those left out are 0),
        or, with a featurizer, one of its inputs, such as a text
    of : the class whose score is explained; by default, for two classes the second one, and for K classes the predicted one
        against the runner-up
    against : the class whose score is subtracted; by default, none if `of` is given
    features : the fitted featurizer before the classifier; a `Model` has its own
    X : the training examples, if the ledger has no rows (it has them with `record=True`)
    n : how many mistakes to list

    Examples
    --------
    The spam filter of L2, learned from three weighted examples: w = {BIAS: −3, free: 4, money: 2}.

    >>> import pandas as pd
    >>> from separatrix import Perceptron, explain
    >>> X = pd.DataFrame({"free": [1, 0, 0], "money": [0, 0, 1]})
    >>> filter = Perceptron(order="cyclic", max_iter=1, record=True)
    >>> filter = filter.fit(X, ["SPAM", "HAM", "SPAM"], sample_weight=[4, 9, 2])
    >>> explain(filter, {"free": 1, "money": 1})
    SPAM: the score is 3
    <BLANKLINE>
     feature   value   weight   value × weight
     ─────────────────────────────────────────
     free          1        4                4
     BIAS          1       -3               -3
     money         1        2                2
    <BLANKLINE>
     score                                   3
    <BLANKLINE>
    the 3 of 3 mistakes that contributed most, examples counted among the rows trained on, from 0:
      -9  example 1 at step 2 (HAM raised, SPAM lowered)
      +8  example 0 at step 1 (SPAM raised, HAM lowered)
      +4  example 2 at step 3 (SPAM raised, HAM lowered)
    all of them together: 3
    """
    estimator, features = linear_parts(model, features)
    if features is not None or hasattr(estimator, "feature_names_in_"):
        x = _by_name(x)
    if features is not None:
        x = _input_of(features, x)
    rows, name_of = _one_row(estimator, x, features)
    coef, intercept = estimator.coef_, estimator.intercept_
    scores = rows.scores(coef, intercept)[0]
    winner, second = _first_two(estimator, scores)
    labels = estimator.classes_.tolist()
    lead = lead_of(labels, winner, second, of, against)
    w, b, score = lead.taken(coef), float(lead.taken(intercept)), float(lead.taken(scores))
    columns, values = _entries(rows)
    products = (w[columns] * values).tolist()
    entries = zip(columns.tolist(), values.tolist(), w[columns].tolist(), products, strict=True)
    terms = [Term(name_of(j), value, weight, product) for j, value, weight, product in entries]
    bias = b if b or getattr(estimator, "fit_intercept", True) else None
    if bias is not None:
        terms.append(Term(BIAS, 1.0, b, b))
    terms.sort(key=lambda term: -abs(term.product))
    by = by_columns(features, _values_of(x), columns, products, bias) if hasattr(features, "sums_by_column") else None
    explanation = Explanation(
        labels[winner],
        score,
        ranked_scores(labels, scores),
        terms,
        math.fsum(term.product for term in terms),
        columns=by,
        of=labels[lead.of],
        against=None if lead.against is None else labels[lead.against],
        threshold=getattr(estimator, "threshold_", None) if len(labels) == 2 else None,
    )
    ledger = getattr(estimator, "ledger_", None)
    if (why := _no_causes(estimator, ledger, X)) or ledger is None:
        return replace(explanation, no_causes=why)
    parts = contributions(ledger, rows, X, lead)
    start = 0.0 if ledger.start is None else float(lead.taken(rows.scores(*ledger.start)[0]))
    largest = np.argsort(-np.abs(parts), kind="stable")[: max(0, n)]
    causes = [_cause(ledger, m, float(parts[m])) for m in largest.tolist()]
    caused = math.fsum([start, *parts.tolist()])
    return replace(explanation, causes=causes, caused=caused, start=start, n_mistakes=len(ledger))


def linear_parts(model: Any, features: Any = None) -> tuple[Any, Any]:
    """Return the fitted classifier of a model and its featurizer, or None; raise if it is not fitted, or not linear."""
    estimator, own_features = parts_of(model)
    features = own_features if features is None else features
    if not hasattr(estimator, "classes_"):
        error = getattr(estimator, "not_fitted_error", NotFittedError)
        raise error(f"this {type(estimator).__name__} is not fitted yet: call fit first")
    if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_") or getattr(estimator, "stores_rows", False):
        instead = ": its own explain(sequence, token) shows those of a token" if hasattr(estimator, "predict_single") else ""
        raise ValueError(
            f"a {type(estimator).__name__} does not decide by one sum over the features, so it has no terms to show{instead}"
        )
    return estimator, features


def lead_of(labels: list[Any], winner: int, second: int, of: Any = None, against: Any = None) -> Lead:
    """Return which score is explained, given the numbers of the predicted class and of the runner-up."""
    first, other = (None if label is None else _number(labels, label) for label in (of, against))
    if len(labels) == 2:
        first = (1 if other is None else 1 - other) if first is None else first
        other = 1 - first if other is None else other
    elif first is None:
        first, other = winner, second if other is None else other
    if first == other:
        raise ValueError(f"{labels[first]!r} cannot be explained against itself: name two different classes")
    return Lead(first, None if len(labels) == 2 else other)


def _number(labels: list[Any], label: Any) -> int:
    if label in labels:
        return labels.index(label)
    if isinstance(label, str) and label in (written := [*map(str, labels)]):
        return written.index(label)
    listed = ", ".join(map(str, labels[:10])) + (" …" if len(labels) > 10 else "")
    raise ValueError(f"there is no class {label!r}; the classes are {listed}{did_you_mean(label, labels)}")


def ranked_scores(labels: list[Any], scores: Floats) -> dict[Any, float]:
    """Return the scores by class, the highest first; of two classes that of the second."""
    if len(scores) == 1:
        return {labels[1]: float(scores[0])}
    return {labels[k]: float(scores[k]) for k in np.argsort(-scores, kind="stable").tolist()}


def feature_namer(estimator: Any, features: Any, X: Any = None, online: bool = False) -> Callable[[int], str]:
    """Return a function that names a feature; a hashed one by the values of the rows X, the only ones that are meant.

    Where a value of X is not among the names that the featurizer learned, its weight is that of others with the same hash,
    and its name says so, unless the classifier learned more `online`.
    """
    if features is None:
        names = getattr(estimator, "feature_names_in_", None)
        return lambda j: f"x{j}" if names is None else str(names[j])
    if not hasattr(features, "names_of"):
        names = features.get_feature_names_out()
        return lambda j: str(names[j])
    of_rows = {} if X is None else features.names_in(X)

    def name(j: int) -> str:
        learned = features.names_of(j) if features.is_fitted() else []
        if j not in of_rows:
            return " | ".join(learned) or f"column {j}"
        is_complete = learned and not online and not features.has_unnamed(j)
        return " | ".join(f"{each} {UNSEEN}" if is_complete and each not in learned else each for each in of_rows[j])

    return name


def matrix_of(features: Any, X: Any) -> Any:
    """Return the features of X as a matrix, whatever scikit-learn's `set_output` says."""
    return features.matrix(X) if hasattr(features, "matrix") else features.transform(X)


def by_columns(
    features: Any, value: Callable[[str], Any], numbers: Ints, products: list[float], bias: float | None
) -> list[Part]:
    """Return the score by the columns of a table, given the products of some features, by number."""
    parts = [Part(name, value(name), part) for name, part in features.sums_by_column(numbers, products).items()]
    return sorted(parts if bias is None else [*parts, Part(BIAS, None, bias)], key=lambda part: -abs(part.product))


def _values_of(x: Any) -> Callable[[str], Any]:
    """Return a function that reads a value of a row of a table, as text if Python has no type for it."""
    from separatrix.features.columns.arrow_columns import frame_of

    table = frame_of(x).table

    def value(name: str) -> Any:
        scalar = table.column(name)[0]
        try:
            return scalar.as_py()
        except (ValueError, OverflowError):
            return scalar.cast("string").as_py()

    return value


def _listed(x: dict[str, Any]) -> dict[str, Any]:
    """Return a row as a table; where all values are lists, they are columns, and else one of them is a set."""
    are_columns = all(np.ndim(value) for value in x.values())
    return {name: value if are_columns else [value] for name, value in x.items()}


def _by_name(x: Any) -> Any:
    """Return a row of a data frame, a pandas series with the names of the columns, as a dict; anything else as it is."""
    if getattr(x, "ndim", None) != 1 or not hasattr(x, "iloc") or not all(isinstance(name, str) for name in x.index):
        return x
    if not x.index.is_unique:
        raise ValueError(f"two values of x are called {x.index[x.index.duplicated()][0]!r}: rename one")
    # A series of mixed columns holds NaN where a column of texts has a gap.
    return {name: None if x.dtype == object and value != value else value for name, value in x.items()}


def _input_of(features: Any, x: Any) -> Any:
    """Return an example as what a featurizer takes: a table of one row, or a list of one text."""
    if isinstance(x, dict):
        return _listed(x)
    x = [x] if isinstance(x, str | bytes) else x
    return features.as_table(x) if hasattr(features, "as_table") else x


def _one_row(estimator: LinearClassifier, x: Any, features: Any) -> tuple[Rows, Callable[[int], str]]:
    """Return the example as one row, and a function that names its columns."""
    if features is not None:
        return _checked(Rows(matrix_of(features, x)), estimator), feature_namer(estimator, features, x)
    names, name_of = getattr(estimator, "feature_names_in_", None), feature_namer(estimator, None)
    if isinstance(x, dict):
        if names is None:
            raise ValueError("x has names, but the classifier was trained without names: give the values in order")
        unknown = [name for name in x if name not in names.tolist()]
        if unknown:
            raise ValueError(f"x names {unknown[0]!r}, which is not among the features")
        row = np.array([[float(x.get(name, 0.0)) for name in names.tolist()]])
        return _checked(Rows(row), estimator), name_of
    if getattr(x, "ndim", None) == 1 or (isinstance(x, list | tuple) and not (x and np.ndim(x[0]))):
        row = np.asarray(x).reshape(1, -1)
        named = _checked(Rows(row if row.dtype.kind == "f" else row.astype(np.float64)), estimator)
    else:
        named = _checked(estimator.read_rows(x), estimator)
    return named, name_of


def _checked(rows: Rows, estimator: LinearClassifier) -> Rows:
    if rows.n != 1:
        raise ValueError(f"x must be one example, but it has {rows.n} rows")
    if rows.d != estimator.n_features_in_:
        raise ValueError(f"x has {rows.d} features, but the classifier was trained on {estimator.n_features_in_}")
    rows.survey()
    return rows


def _first_two(estimator: Any, scores: Floats) -> tuple[int, int]:
    """Return the predicted class and the runner-up: the other class, or the highest of the others."""
    winner = int(estimator.decide(scores[None], len(estimator.classes_))[0])
    if len(scores) == 1:
        return winner, 1 - winner
    return winner, int(np.argmax(np.where(np.arange(len(scores)) == winner, -np.inf, scores)))


def _entries(rows: Rows) -> tuple[Ints, Floats]:
    row = rows.source
    if rows.sparse:
        columns, values = row.indices.astype(np.int64), row.data.astype(np.float64)
    else:
        columns, values = np.arange(rows.d), np.asarray(row[0], dtype=np.float64)
    nonzero = np.flatnonzero(values)
    return columns[nonzero], values[nonzero]


def _no_causes(estimator: Any, ledger: Ledger | None, X: Any) -> str:
    if ledger is None:
        return "this classifier does not learn from mistakes"
    if hasattr(estimator, "run_") and not estimator.run_.resumable:
        return "the model was saved with resume=False; train with record=True, and save without resume=False, to see them"
    if ledger.absent:
        why = "training on shards only counts them" if ledger.limit == 0 else "the model was saved without its ledger"
        return f"{why}; train with record=True, and save the ledger, to see them"
    if ledger.stored is None and X is None:
        return "their rows were not stored; train with record=True, or pass the rows as X="
    return ""


def contributions(ledger: Ledger, x: Rows, X: Any, lead: Lead) -> Floats:
    """Return the contribution of each mistake to a score of one row x."""
    rows, numbers = ledger.mistaken_rows(X)
    K = 1 if len(ledger.classes) <= 2 else len(ledger.classes)
    up, down = ledger.up.astype(np.int64), ledger.down.astype(np.int64)
    if K == 1:
        raised, lowered = (up == lead.of).astype(float), (up != lead.of).astype(float)
    else:
        raised, lowered = ((codes == lead.of).astype(float) - (codes == lead.against) for codes in (up, down))
    scale = ledger.correction.copy() if ledger.correction.size else np.ones(len(ledger))
    if ledger.kept is not None:
        scale[ledger.kept :] = 0.0
    elapsed = ledger.steps - ledger.average_after
    if elapsed > 0:
        scale *= 1.0 - np.maximum(0.0, ledger.step.astype(np.float64) - 1.0 - ledger.average_after) / elapsed
    row = _dense(x)
    bias = np.array([float(ledger.bias)])
    if not ledger.rule.spread:
        along = rows.scores(row[None], bias)[:, 0][numbers.astype(np.int64)]
        return np.asarray(scale * (raised - lowered) * along)
    parts, state = np.empty(len(ledger)), ledger.state(rows.sparse, None)
    block = max(1, _BLOCK_BYTES // (16 * (ledger.n_features + 1)))
    extended = np.append(row, 1.0)
    for begin in range(0, len(ledger), block):
        part = slice(begin, min(begin + block, len(ledger)))
        high, low = (along @ extended for along in ledger.directions(state, rows, numbers, part))
        parts[part] = scale[part] * (raised[part] * high - lowered[part] * low)
    return parts


def _dense(x: Rows) -> Array:
    row = x.source.toarray()[0] if sp.issparse(x.source) else x.source[0]
    return np.asarray(row, dtype=np.float64)


def _cause(ledger: Ledger, m: int, contribution: float) -> Cause:
    names = [*ledger.classes.tolist(), None]
    correction = float(ledger.correction[m]) if ledger.correction.size else 1.0
    pair = names[ledger.up[m]], names[ledger.down[m]]
    return Cause(int(ledger.step[m]), int(ledger.example[m]), *pair, correction, contribution)
