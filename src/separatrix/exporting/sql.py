"""A fitted linear classifier as a SQL expression or query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from separatrix.engine.protocols import Classifier
from separatrix.exporting.column_terms import LARGEST, Bins, Choice, Line, Term, Truth, column_terms
from separatrix.exporting.linear_decision import LinearDecision, linear_decision
from separatrix.features.columns.arrow_columns import TRUE

CLOSING_QUOTES = {'"': '"', "`": "`", "[": "]"}
_STEEPEST = "700"
"""exp of more, and of less than its negative, is out of range in some databases."""
_ALIAS = "t"
"""The name of the table within a query."""

Quoting = Callable[[str], str]


def to_sql(
    model: Classifier,
    *,
    columns: Sequence[str] | None = None,
    expressions: Sequence[str] | None = None,
    table: str | None = None,
    scores: bool = False,
    probabilities: bool = False,
    quote: str = '"',
) -> str:
    """Return a SQL expression for the predicted label of a row, or a query over a table.

    The SQL of a `Model` with `TableFeatures` reads the columns of the raw table: NULL, NaN and infinity are missing values,
    and a category that was not learned from adds nothing. Without a featurizer the columns are the features, and the label
    is NULL where one with a nonzero weight is NULL. It runs on SQLite, DuckDB and PostgreSQL.

    Parameters
    ----------
    columns : the column of each feature; by default the names that the classifier was trained with
    expressions : instead of columns, SQL for each feature, such as CASE WHEN job = 'cook' THEN 1 ELSE 0 END
    table : return a query over this table, "people" or "schema.people", with all its columns and the column "prediction"
    scores : add the scores to the query
    probabilities : add the scores and the probabilities of a calibrated classifier to the query
    quote : how names are quoted: '"' (the standard), "`" or "["

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.exporting import to_sql
    >>> model = Perceptron(order="cyclic", max_iter=1).fit([[1, 0], [0, 0], [0, 1]], ["spam", "ham", "spam"], [4, 9, 2])
    >>> print(to_sql(model, columns=["free", "money"]))
    CASE WHEN -3.0 + (4.0 * "free" + 2.0 * "money") > 0 THEN 'spam'
         WHEN -3.0 + (4.0 * "free" + 2.0 * "money") <= 0 THEN 'ham' END
    """
    decision = linear_decision(model)
    if table is None and (scores or probabilities):
        raise ValueError("scores and probabilities are columns of a query: name the table, table='people'")
    if probabilities and decision.slope is None:
        raise ValueError("the model has no probabilities: train it with calibrate=True")

    def quoted(name: str) -> str:
        return _quoted(name, quote)

    def column(name: str) -> str:  # SQLite takes an unknown name in quotes for a string, unless it has a table's name
        return quoted(name) if table is None else f"{_ALIAS}.{quoted(name)}"

    if decision.features is None:
        columns = decision.names if columns is None else columns
        texts, may_be_null = _scores_of_features(decision, columns, expressions, column), True
    elif columns is not None or expressions is not None:
        raise ValueError("a model with a featurizer reads the columns of its table: columns and expressions must be None")
    else:
        texts, may_be_null = _scores_of_columns(decision, column), False
        columns = decision.features.feature_names_in_.tolist()
    if table is None:
        return _label(decision, texts, may_be_null)
    return _query(decision, texts, may_be_null, table, columns or (), scores, probabilities, quoted)


def _label(decision: LinearDecision, scores: list[str], may_be_null: bool) -> str:
    """Return the label as an expression; for K classes it is a scalar subquery, so that each score is written once."""
    if len(scores) == 1:
        return _leader(decision, scores, may_be_null)
    names = [f"score_{k}" for k in range(len(scores))]
    inner = ", ".join(f"{score} AS {name}" for score, name in zip(scores, names, strict=True))
    return f"(SELECT {_leader(decision, names, may_be_null)} FROM (SELECT {inner}) AS scores)"


def _leader(decision: LinearDecision, scores: list[str], may_be_null: bool) -> str:
    """Return the label of the highest of some scores."""
    labels = [_literal(label) for label in decision.classes.tolist()]
    if len(scores) == 1:
        above, below = (">=", "<") if decision.tie_is_positive else (">", "<=")
        threshold = _number(decision.threshold) if decision.threshold else "0"
        otherwise = f"WHEN {scores[0]} {below} {threshold} THEN {labels[0]}" if may_be_null else f"ELSE {labels[0]}"
        return f"CASE WHEN {scores[0]} {above} {threshold} THEN {labels[1]} {otherwise} END"
    cases = []
    for k, label in enumerate(labels):  # as argmax does: the first class whose score no other exceeds
        leads = " AND ".join(f"{scores[k]} >= {score}" for j, score in enumerate(scores) if j != k)
        cases.append(f"WHEN {leads} THEN {label}")
    return f"CASE {' '.join(cases)} END"


def _query(
    decision: LinearDecision,
    texts: list[str],
    may_be_null: bool,
    table: str,
    columns: Iterable[str],
    with_scores: bool,
    with_probabilities: bool,
    quoted: Quoting,
) -> str:
    source = f"{'.'.join(quoted(part) for part in table.split('.'))} AS {_ALIAS}"
    labels = decision.classes.tolist()
    results = ["prediction"]
    if with_scores or with_probabilities:
        results += _names("score", labels if len(texts) > 1 else labels[1:])
    if with_probabilities:
        results += _names("probability", labels)
    folded = {name.casefold() for name in results}
    if taken := [name for name in columns if name.casefold() in folded]:
        raise ValueError(f"column {taken[0]!r} has the name of a column of the query: rename it before training")
    if len(results) == 1:
        return f"SELECT *,\n{_label(decision, texts, may_be_null)} AS {quoted('prediction')}\nFROM {source}"
    scores = [quoted(name) for name in results[1 : 1 + len(texts)]]
    outer = [f"{_leader(decision, scores, may_be_null)} AS {quoted('prediction')}"]
    if with_probabilities:
        shares = _probabilities(decision, scores)
        outer += [f"{text} AS {quoted(name)}" for text, name in zip(shares, results[1 + len(texts) :], strict=True)]
    inner = [f"{text} AS {name}" for text, name in zip(texts, scores, strict=True)]
    query, subquery = (",\n".join(["SELECT *", *columns]) for columns in (outer, inner))
    return f"{query}\nFROM (\n{subquery}\nFROM {source}\n) AS scored"


def _names(what: str, labels: list[Any]) -> list[str]:
    """Return a column's name for each class; names that differ by their case alone, which SQL confuses, are numbered."""
    names = [f"{what} of {label}" for label in labels]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"{what} {k} of {label}" for k, label in enumerate(labels)]
    return names


def _probabilities(decision: LinearDecision, scores: list[str]) -> list[str]:
    """Return 1 / Σ_j exp(a·(s_j − s_k)) for each class k, where the first of two classes has the score 0."""
    if len(scores) == 1:
        z = f"{_number(float(decision.slope or 0.0))} * {scores[0]}"
        return [f"1e0 / (1e0 + {_exponential(z)})", f"1e0 / (1e0 + {_exponential(f'-({z})')})"]
    slope = _number(float(decision.slope or 0.0))
    shares = []
    for k, own in enumerate(scores):
        powers = [_exponential(f"{slope} * ({other} - {own})") for j, other in enumerate(scores) if j != k]
        shares.append(f"1e0 / (1e0 + {_summed(powers)})")
    return shares


def _exponential(z: str) -> str:
    return f"EXP(CASE WHEN {z} > {_STEEPEST} THEN {_STEEPEST} WHEN {z} < -{_STEEPEST} THEN -{_STEEPEST} ELSE {z} END)"


# Scores over features.


def _scores_of_features(
    decision: LinearDecision, columns: Sequence[str] | None, expressions: Sequence[str] | None, quoted: Quoting
) -> list[str]:
    coef, intercept = decision.coef, decision.intercept
    if expressions is not None:
        expressions = [f"({text})" for text in expressions]
    elif columns is None:
        raise ValueError("the classifier was trained without feature names: pass columns, one name for each feature")
    else:
        expressions = [quoted(name) for name in columns]
    if len(expressions) != coef.shape[1]:
        raise ValueError(f"there are {len(expressions)} columns, but the classifier has {coef.shape[1]} features")
    scores = []
    for w, b in zip(coef.tolist(), intercept.tolist(), strict=True):
        terms = [f"{weight!r} * {text}" for weight, text in zip(w, expressions, strict=True) if weight]
        total = _summed(terms) if terms else repr(b)
        scores.append(f"{b!r} + {total}" if b and terms else total)
    return scores


def _summed(terms: list[str], between: str = " + ") -> str:
    """Return the sum as a tree: databases limit how deep an expression may be."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_summed(terms[:half], between)}{between}{_summed(terms[half:], between)})"


# Scores over the columns of a table.


def _scores_of_columns(decision: LinearDecision, quoted: Quoting) -> list[str]:
    terms = column_terms(decision, "SQL", (Bins, Line, Truth, Choice))
    scores = []
    for k, b in enumerate(decision.intercept.tolist()):
        texts = [_of_term(term, k, quoted(term.name)) for term in terms if _counts(term, k)]
        scores.append(_summed([_number(b), *texts], "\n+ "))
    return scores


def _counts(term: Term, k: int) -> bool:
    """Tell whether a term adds anything to the score of class k."""
    return bool(term.weights[..., k].any() or term.missing[k])


def _of_term(term: Term, k: int, name: str) -> str:
    if isinstance(term, Choice):
        return _of_category(term, k, name)
    if isinstance(term, Truth):
        words = ", ".join(_text(word) for word in TRUE)
        is_true = f"LOWER(TRIM(CAST({name} AS VARCHAR))) IN ({words})"
        return _cases([(f"{name} IS NULL", term.missing[k]), (is_true, term.weights[k])], 0.0)
    # The cast lets SQLite compare numbers in a column of text as numbers.
    x, missing = f"CAST({name} AS DOUBLE PRECISION)", float(term.missing[k])
    if isinstance(term, Line):
        value = x if not term.shift else f"({x} - {_number(term.shift)})"
        value = value if term.scale == 1.0 else f"{value} * {_number(term.scale)}"
        is_finite = f"{x} BETWEEN {_number(-LARGEST)} AND {_number(LARGEST)}"
        return f"CASE WHEN {is_finite} THEN {_number(float(term.weights[k]))} * {value} ELSE {_number(missing)} END"
    assert isinstance(term, Bins)
    ends = [f"{x} {'<' if cut.closed else '<='} {_number(cut.at)}" for cut in term.cuts] + [f"{x} <= {_number(LARGEST)}"]
    values = term.weights[:, k].tolist()
    last_of_equals = [i for i in range(len(ends)) if i + 1 == len(ends) or values[i] != values[i + 1]]
    # NULL passes no comparison; in DuckDB and PostgreSQL NaN is above every number.
    return _cases([(f"{x} < {_number(-LARGEST)}", missing), *((ends[i], values[i]) for i in last_of_equals)], missing)


def _of_category(term: Choice, k: int, name: str) -> str:
    value = f"CAST({name} AS VARCHAR)" if term.spelled else name
    cases = [(f"{name} IS NULL", float(term.missing[k]))]
    for spellings, weight in zip(term.spellings, term.weights[:, k].tolist(), strict=True):
        texts = [_text(word) for word in spellings]
        cases.append((f"{value} = {texts[0]}" if len(texts) == 1 else f"{value} IN ({', '.join(texts)})", weight))
    return _cases([case for case in cases if case[1]], 0.0)


def _cases(cases: Iterable[tuple[str, float]], otherwise: float) -> str:
    whens = " ".join(f"WHEN {condition} THEN {_number(float(weight))}" for condition, weight in cases)
    return f"CASE {whens} ELSE {_number(otherwise)} END"


# Names and values.


def _quoted(name: str, quote: str) -> str:
    if quote not in CLOSING_QUOTES:
        raise ValueError(f"quote is {quote!r}, but must be one of {', '.join(CLOSING_QUOTES)}")
    if not name or "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a column")
    end = CLOSING_QUOTES[quote]
    return f"{quote}{name.replace(end, end + end)}{end}"


def _number(x: float) -> str:
    """Return a number with an exponent: without one it is no float64 but a decimal in some databases."""
    text = repr(x)
    return text if "e" in text else f"{text.removesuffix('.0')}e0"


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return _text(label) if isinstance(label, str) else repr(label)


def _text(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"{text!r} cannot be written in SQL")
    return "'" + text.replace("'", "''") + "'"
