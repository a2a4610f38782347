"""A fitted linear classifier as a SQL expression, and the features of a table as SQL over its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from separatrix.engine.protocols import Classifier, Featurizer
from separatrix.exporting.linear_decision import linear_decision
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn
from separatrix.features.columns.numbers import NumberColumn
from separatrix.features.table import TableFeaturizer

CLOSING_QUOTES = {'"': '"', "`": "`", "[": "]"}


def to_sql(
    model: Classifier, *, columns: Sequence[str] | None = None, expressions: Sequence[str] | None = None, quote: str = '"'
) -> str:
    """Return a SQL expression for the predicted label of a row; it is NULL if a column with a nonzero weight is NULL.

    For K classes it is a scalar subquery, so that each score is written once.

    Parameters
    ----------
    columns : the column of each feature; by default the names that the classifier was trained with
    expressions : instead of columns, SQL for each feature, such as CASE WHEN job = 'cook' THEN 1 ELSE 0 END
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
    coef, intercept, classes, names, zero_is_positive, _ = linear_decision(model)
    if expressions is None:
        columns = names if columns is None else columns
        if columns is None:
            raise ValueError("the classifier was trained without feature names: pass columns, one name for each feature")
        expressions = [quoted(name, quote) for name in columns]
    else:
        expressions = [f"({text})" for text in expressions]
    if len(expressions) != coef.shape[1]:
        raise ValueError(f"there are {len(expressions)} columns, but the classifier has {coef.shape[1]} features")
    labels = [_literal(label) for label in classes.tolist()]
    scores = [_score(w, b, expressions) for w, b in zip(coef.tolist(), intercept.tolist(), strict=True)]
    if len(scores) == 1:
        above, below = (">=", "<") if zero_is_positive else (">", "<=")
        return f"CASE WHEN {scores[0]} {above} 0 THEN {labels[1]} WHEN {scores[0]} {below} 0 THEN {labels[0]} END"
    cases = []
    for k, label in enumerate(labels):  # as argmax does: the first class whose score no other exceeds
        leads = " AND ".join(f"score_{k} >= score_{j}" for j in range(len(labels)) if j != k)
        cases.append(f"WHEN {leads} THEN {label}")
    inner = ", ".join(f"{score} AS score_{k}" for k, score in enumerate(scores))
    return f"(SELECT CASE {' '.join(cases)} END FROM (SELECT {inner}) AS scores)"


def _score(w: list[float], b: float, expressions: Sequence[str]) -> str:
    terms = [f"{weight!r} * {text}" for weight, text in zip(w, expressions, strict=True) if weight]
    if not terms:
        return repr(b)
    total = _summed(terms)
    return f"{b!r} + {total}" if b else total


def _summed(terms: list[str]) -> str:
    """Return the sum as a tree: databases limit how deep an expression may be."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_summed(terms[:half])} + {_summed(terms[half:])})"


def quoted(name: str, quote: str) -> str:
    """Return a name as SQL quotes it."""
    if quote not in CLOSING_QUOTES:
        raise ValueError(f"quote is {quote!r}, but must be one of {', '.join(CLOSING_QUOTES)}")
    if not name or "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a column")
    end = CLOSING_QUOTES[quote]
    return f"{quote}{name.replace(end, end + end)}{end}"


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        if "\0" in label:
            raise ValueError(f"the label {label!r} cannot be written in SQL")
        return "'" + label.replace("'", "''") + "'"
    return repr(label)


def sql_features(features: Featurizer, quote: str = '"') -> list[str]:
    r"""Return a SQL expression for each feature of a table: 0 or 1, or a scaled number.

    Raise ValueError for columns of text and for hashed categories, which SQL cannot compute, and for dates, sets and numbers
    written as text, which every database computes in another way.

    Examples
    --------
    >>> sql_features(TableFeaturizer(numbers="none").fit({"age": [22.0, 38.0], "job": ["clerk", "cook"]}))
    ['COALESCE("age", 0)', 'CASE WHEN "job" = \'clerk\' THEN 1 ELSE 0 END', 'CASE WHEN "job" = \'cook\' THEN 1 ELSE 0 END']
    """
    if not isinstance(features, TableFeaturizer):
        raise ValueError("SQL cannot compute the features of texts")
    expressions: list[str] = []
    for name, column in features.schema.parts.items():
        sql_name = quoted(name, quote)
        if features.schema.roles[name].form is not None:
            what = "numbers written as text" if column.role == "number" else f"{column.role}s"
            raise ValueError(
                f"column {name!r} holds {what}, whose features have no standard SQL: train with numbers or categories made "
                f"of it, or without it, roles={{{name!r}: 'drop'}}"
            )
        if isinstance(column, NumberColumn):
            of_column = _of_numbers(column, sql_name)
        elif isinstance(column, CategoryColumn) and column.others is None:
            of_column = [_indicator(f"{sql_name} = {_text(value.as_py())}") for value in column.values]
        elif isinstance(column, BooleanColumn):
            of_column = [_indicator(f"{sql_name} IS TRUE")]
        else:
            raise ValueError(f"column {name!r} has hashed features, which SQL cannot compute: train without it to export")
        if column.width > len(of_column):
            of_column.append(_indicator(f"{sql_name} IS NULL"))
        expressions += of_column
    return expressions


def _indicator(condition: str) -> str:
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def _text(value: bytes) -> str:
    return "'" + value.decode("utf-8", "replace").replace("'", "''") + "'"


def _of_numbers(column: NumberColumn, sql_name: str) -> list[str]:
    if column.numbers != "bins":
        if not column.n_values:
            return []
        scaled = column.shift != 0.0 or column.scale != 1.0
        return [f"COALESCE({f'({sql_name} - {column.shift!r}) * {column.scale!r}' if scaled else sql_name}, 0)"]
    if not column.thermometer:
        raise ValueError(f"the bins of column {column.name!r} are one-hot: only thermometer bins can be exported to SQL")
    comparisons = [(">", float(t)) for t in column.thresholds[: column.n_above]]
    comparisons += [("<", -float(t)) for t in column.thresholds[column.n_above :]]
    return [_indicator(f"{sql_name} {sign} {t!r}") for sign, t in comparisons]
