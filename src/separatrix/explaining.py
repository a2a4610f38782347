"""Why this score? As a sum over the features, and as a sum over the training mistakes that made the weights (L2 2 and 5).

    score = b + Σ_j w_j·x_j          and, since w is a sum of mistakes,          score = Σ_m f_m·c_m·⟨x̃, x̃_m⟩

Mistake m corrected by c_m, with the sign of its class; f_m is 1, or for averaged weights the part of the average that came
after it. For K classes the score is the lead of the winner over the runner-up, and w the difference of their weights.
"""

from __future__ import annotations

import io
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from separatrix.inputs import read_rows
from separatrix.ledger import Ledger
from separatrix.rows import Array, Floats, Ints, Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

BIAS = "BIAS"
SHOWN = 20
WIDTH = 40
"""How much of a value is shown."""
_BLOCK_BYTES = 1 << 25


class Term(NamedTuple):
    """One feature's part of the score: product = weight · value."""

    name: str
    value: float
    weight: float
    product: float


class Part(NamedTuple):
    """One column's part of the score, the sum of its terms; `value` is what the row has there."""

    column: str
    value: Any
    product: float


class Cause(NamedTuple):
    """One training mistake's part of the score; `up` and `down` are the classes that it raised and lowered."""

    step: int
    example: int
    up: Any
    down: Any
    correction: float
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """A score and the terms that it is the sum of.

    `score` is what `decision_function` returns (two classes: for the second of them, which `scores` names), or the winner's
    score less the runner-up's (K classes; `scores` has both). `terms` are in order of their size, the bias among them. Each
    product is rounded once, and so is their sum, `total` (by `math.fsum`); the score adds up in the order that is quickest,
    so the two agree to 2ε·(n + 2)·Σ|w·x| for n terms (K classes: of both), and exactly where everything is a whole number
    below 2⁵³. Of a table `columns` has the same sum by columns, the largest part first: a number that is cut into bins, or a
    text, has many terms.

    `causes` are the mistakes that contributed most, largest first, and `caused` is the sum over all of them (with `start`,
    the score of the weights that learning began with): the same score again, but for rounding; there were `n_mistakes`. All
    three are None where the mistakes are not at hand, and `no_causes` says why.

    Examples
    --------
    >>> from separatrix import Perceptron, explain
    >>> told = explain(Perceptron(order="cyclic").fit([[0, 1], [2, 0]], ["no", "yes"]), [1, 1])
    >>> told.prediction, told.score, [(term.name, term.product) for term in told.terms]
    ('yes', 1.0, [('x0', 2.0), ('x1', -1.0), ('BIAS', 0.0)])
    """

    prediction: Any
    score: float
    scores: dict[Any, float]
    terms: list[Term]
    total: float
    causes: list[Cause] | None = None
    caused: float | None = None
    start: float = 0.0
    n_mistakes: int | None = None
    no_causes: str = ""
    columns: list[Part] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON has them."""
        told = asdict(self)
        told["scores"] = [{"class": label, "score": score} for label, score in self.scores.items()]
        told["terms"] = [term._asdict() for term in self.terms]
        told["columns"] = None if self.columns is None else [part._asdict() for part in self.columns]
        told["causes"] = None if self.causes is None else [cause._asdict() for cause in self.causes]
        return told

    def table(self, most: int = SHOWN) -> Table:
        """Return the terms as a table; those beyond `most` are summed in one line."""
        rows = [(term.name, *(f"{number:.6g}" for number in term[1:])) for term in self.terms[:most]]
        heads = ("feature", "value", "weight", "value × weight")
        return self._table(heads, rows, [term.product for term in self.terms[most:]])

    def table_of_columns(self, most: int = SHOWN) -> Table | None:
        """Return the sum by columns as a table; None where there are no columns, or about a term each."""
        if self.columns is None or len(self.columns) >= len(self.terms):
            return None
        rows = [(part.column, _short(part.value), f"{part.product:.6g}") for part in self.columns[:most]]
        return self._table(("column", "value", "its part"), rows, [part.product for part in self.columns[most:]])

    def _table(self, heads: Sequence[str], rows: Sequence[tuple[str, ...]], rest: list[float]) -> Table:
        from rich import box
        from rich.table import Table

        table, blank = Table(box=box.SIMPLE_HEAD, pad_edge=False), [""] * (len(heads) - 2)
        for k, head in enumerate(heads):
            table.add_column(head, justify="left" if k == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        if rest:
            table.add_row(f"… {len(rest):,} more", *blank, f"{math.fsum(rest):.6g}")
        table.add_section()
        table.add_row("score" if len(self.scores) < 2 else "lead", *blank, f"{self.score:.6g}")
        return table

    def verdict(self) -> str:
        """Return the decision in a sentence."""
        if len(self.scores) < 2:
            (scored,) = self.scores or (self.prediction,)
            whose = "" if scored == self.prediction else f" of {scored}"
            return f"{self.prediction}: the score{whose} is {self.score:.6g}"
        (winner, high), (second, low) = self.scores.items()
        return f"{winner}: {high:.6g}, against {low:.6g} for {second}"

    def because(self) -> str:
        """Return the mistakes that contributed most, a line each, or why there are none."""
        if self.causes is None or self.caused is None:
            return f"which mistakes made it cannot be told: {self.no_causes}"
        lines = [f"the {len(self.causes)} of {self.n_mistakes:,} mistakes that contributed most, examples counted from 0:"]
        for cause in self.causes:
            raised = f"{cause.up} raised" if cause.up is not None else ""
            lowered = f"{cause.down} lowered" if cause.down is not None else ""
            moved = ", ".join(part for part in (raised, lowered) if part)
            lines.append(f"  {cause.contribution:+.6g}  example {cause.example} at step {cause.step:,} ({moved})")
        began = f", {self.start:.6g} of it from the weights that it began with" if self.start else ""
        return "\n".join([*lines, f"all of them together: {self.caused:.6g}{began}"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(self.verdict())
        yield from filter(None, (self.table_of_columns(), self.table()))
        yield Text(self.because())

    def text(self, most: int = SHOWN) -> str:
        """Return all of it as text, with `most` terms at most."""
        from rich.console import Console

        out = io.StringIO()
        tables = filter(None, (self.table_of_columns(most), self.table(most)))
        Console(file=out, width=120, color_system=None, markup=False, highlight=False).print(
            self.verdict(), *tables, self.because(), sep="\n"
        )
        written = "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())
        return written.replace("\n\n\n", "\n\n")

    def __repr__(self) -> str:
        return self.text()


def explain(model: Any, x: Any, *, features: Any = None, X: Any = None, n: int = 5) -> Explanation:
    """Return why a linear classifier gives one example the score it does.

    Parameters
    ----------
    model : a fitted linear classifier, or a `Model`
    x : one example: a row, a one-row table or matrix, a dict of named values (what it does not name is 0), or, with a
        featurizer, what that takes one of, such as a text
    features : the fitted featurizer before the classifier; that of a `Model` is known
    X : the training examples, where the ledger does not hold the rows of the mistakes (`record=True` makes it)
    n : how many of the mistakes to name

    Examples
    --------
    The spam filter of L2, learned from three weighed examples: w = {BIAS: −3, free: 4, money: 2}.

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
    the 3 of 3 mistakes that contributed most, examples counted from 0:
      -9  example 1 at step 2 (HAM raised, SPAM lowered)
      +8  example 0 at step 1 (SPAM raised, HAM lowered)
      +4  example 2 at step 3 (SPAM raised, HAM lowered)
    all of them together: 3
    """
    estimator = getattr(model, "estimator", model)
    features = getattr(model, "features", None) if features is None else features
    check_is_fitted(estimator)
    if not hasattr(estimator, "coef_") or getattr(estimator, "_stores_rows", False):
        raise ValueError(
            f"a {type(estimator).__name__} does not decide by one sum over the features, so there are no terms to show"
        )
    rows, names = _one_row(estimator, x, features)
    coef, intercept = estimator.coef_, estimator.intercept_
    scores = rows.scores(coef, intercept)[0]
    winner, second = _first_two(estimator, scores)
    labels = estimator.classes_.tolist()
    if len(scores) == 1:
        w, b, score, shown = coef[0], float(intercept[0]), float(scores[0]), {labels[1]: float(scores[0])}
    else:
        w, b = coef[winner] - coef[second], float(intercept[winner] - intercept[second])
        score = float(scores[winner] - scores[second])
        shown = {labels[k]: float(scores[k]) for k in (winner, second)}
    columns, values = _entries(rows)
    products = (w[columns] * values).tolist()
    told = zip(columns.tolist(), values.tolist(), w[columns].tolist(), products, strict=True)
    terms = [Term(names(j), value, weight, product) for j, value, weight, product in told]
    bias = b if b or getattr(estimator, "fit_intercept", True) else None
    if bias is not None:
        terms.append(Term(BIAS, 1.0, b, b))
    terms.sort(key=lambda term: -abs(term.product))
    given = (labels[winner], score, shown, terms, math.fsum(term.product for term in terms))
    by = by_columns(features, _row_of(x), columns, products, bias) if hasattr(features, "sums_by_column") else None
    ledger = getattr(estimator, "ledger_", None)
    why = _no_causes(ledger, X)
    if ledger is None or why:
        return Explanation(*given, no_causes=why, columns=by)
    parts = contributions(ledger, rows, X, winner, second)
    start = 0.0
    if ledger.start is not None:
        begun = rows.scores(*ledger.start)[0]
        start = float(begun[0] if len(begun) == 1 else begun[winner] - begun[second])
    largest = np.argsort(-np.abs(parts), kind="stable")[: max(0, n)]
    causes = [_cause(ledger, m, float(parts[m])) for m in largest.tolist()]
    return Explanation(*given, causes, math.fsum([start, *parts.tolist()]), start, len(ledger), columns=by)


def by_columns(features: Any, row: dict[str, Any], numbers: Ints, products: list[float], bias: float | None) -> list[Part]:
    """Return the sum by the columns of a table, of a row of which some features, by number, have products."""
    parts = [Part(name, row.get(name), part) for name, part in features.sums_by_column(numbers, products).items()]
    return sorted(parts if bias is None else [*parts, Part(BIAS, None, bias)], key=lambda part: -abs(part.product))


def _row_of(x: Any) -> dict[str, Any]:
    from separatrix.frames import frame_of

    row: dict[str, Any] = frame_of(_listed(x) if isinstance(x, dict) else x).table.to_pylist()[0]
    return row


def _listed(x: dict[str, Any]) -> dict[str, Any]:
    return {name: value if np.ndim(value) else [value] for name, value in x.items()}


def _short(value: Any) -> str:
    written = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return written if len(written) <= WIDTH else written[: WIDTH - 1] + "…"


def _one_row(estimator: Any, x: Any, features: Any) -> tuple[Rows, Any]:
    """Return the example as one row, and the function that names its columns."""
    names = getattr(estimator, "feature_names_in_", None)
    if features is not None:
        if isinstance(x, dict):
            x = _listed(x)
        read = features.transform([x] if isinstance(x, str | bytes) else x)
        if hasattr(features, "names_of"):
            return _checked(Rows(read), estimator), lambda j: " | ".join(features.names_of(j)) or f"column {j}"
        names = features.get_feature_names_out()
        return _checked(Rows(read), estimator), lambda j: str(names[j])
    if isinstance(x, dict):
        if names is None:
            raise ValueError("x has names, and the classifier was trained without any: give the values in their order")
        strangers = [name for name in x if name not in names.tolist()]
        if strangers:
            raise ValueError(f"x names {strangers[0]!r}, which is not among the features")
        row = np.array([[float(x.get(name, 0.0)) for name in names.tolist()]])
        return _checked(Rows(row), estimator), lambda j: str(names[j])
    if getattr(x, "ndim", None) == 1 or (isinstance(x, list | tuple) and not (x and np.ndim(x[0]))):
        row = np.asarray(x).reshape(1, -1)
        named = _checked(Rows(row if row.dtype.kind == "f" else row.astype(np.float64)), estimator)
    else:
        named = _checked(read_rows(estimator, x), estimator)
    return named, lambda j: f"x{j}" if names is None else str(names[j])


def _checked(rows: Rows, estimator: Any) -> Rows:
    if rows.n != 1:
        raise ValueError(f"one example is explained at a time, and x has {rows.n}")
    if rows.d != estimator.n_features_in_:
        raise ValueError(f"x has {rows.d} features, and the classifier was trained on {estimator.n_features_in_}")
    rows.survey()
    return rows


def _first_two(estimator: Any, scores: Floats) -> tuple[int, int]:
    """Return the class that is predicted, and the other one, or the highest of the others."""
    if len(scores) == 1:
        plus = scores[0] >= 0 if getattr(estimator, "tie", "") == "+1" else scores[0] > 0
        return int(plus), 1 - int(plus)
    winner = int(np.argmax(scores))
    return winner, int(np.argmax(np.where(np.arange(len(scores)) == winner, -np.inf, scores)))


def _entries(rows: Rows) -> tuple[Ints, Floats]:
    row = rows.source
    if rows.sparse:
        columns, values = row.indices.astype(np.int64), row.data.astype(np.float64)
    else:
        columns, values = np.arange(rows.d), np.asarray(row[0], dtype=np.float64)
    held = np.flatnonzero(values)
    return columns[held], values[held]


def _no_causes(ledger: Ledger | None, X: Any) -> str:
    if ledger is None:
        return "this classifier does not learn from mistakes"
    if ledger.absent:
        return "the model was saved without its ledger"
    if ledger.stored is None and X is None:
        return "their rows were not stored; train with record=True (--record), or give X"
    return ""


def contributions(ledger: Ledger, x: Rows, X: Any, winner: int, second: int) -> Floats:
    """Return each mistake's part of the score of one row x (K classes: of the lead of one class over another)."""
    rows, numbers = ledger.mistaken_rows(X)
    K = 1 if len(ledger.classes) <= 2 else len(ledger.classes)
    up, down = ledger.up.astype(np.int64), ledger.down.astype(np.int64)
    if K == 1:
        raised, lowered = np.where(up == 1, 1.0, 0.0), np.where(up == 1, 0.0, 1.0)
    else:
        raised = (up == winner).astype(float) - (up == second)
        lowered = (down == winner).astype(float) - (down == second)
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
