"""The features of a table as SQL over its columns, for databases that have the columns and not this library."""

from __future__ import annotations

from typing import Any

from separatrix.exporting.linear_models import quoted
from separatrix.features.columns.categories import BooleanColumn, CategoryColumn
from separatrix.features.columns.numbers import NumberColumn
from separatrix.features.table import TableFeatures


def sql_features(features: TableFeatures, quote: str = '"') -> list[str]:
    r"""Return an expression for each feature, 0 or 1 or a scaled number; raise for words and hashes, which SQL has not.

    Examples
    --------
    >>> sql_features(TableFeatures(numbers="none").fit({"age": [22.0, 38.0], "job": ["clerk", "cook"]}))
    ['COALESCE("age", 0)', 'CASE WHEN "job" = \'clerk\' THEN 1 ELSE 0 END', 'CASE WHEN "job" = \'cook\' THEN 1 ELSE 0 END']
    """
    found: list[str] = []
    for name, part in features._known().parts.items():
        column = quoted(name, quote)
        if isinstance(part, NumberColumn):
            made = _numbers(part, column)
        elif isinstance(part, CategoryColumn) and part.others is None:
            made = [_one(f"{column} = {_text(value.as_py())}") for value in part.values]
        elif isinstance(part, BooleanColumn):
            made = [_one(f"{column} IS TRUE")]
        else:
            raise ValueError(f"column {name!r} is of hashed words, and SQL cannot hash them: leave it out to export to SQL")
        if part.width > len(made):
            made.append(_one(f"{column} IS NULL"))
        found += made
    return found


def _one(condition: str) -> str:
    return f"CASE WHEN {condition} THEN 1 ELSE 0 END"


def _text(value: bytes) -> str:
    return "'" + value.decode("utf-8", "replace").replace("'", "''") + "'"


def _numbers(part: NumberColumn, column: str) -> list[Any]:
    if part.numbers != "bins":
        if not part.n_values:
            return []
        plain = part.shift == 0.0 and part.scale == 1.0
        return [f"COALESCE({column if plain else f'({column} - {part.shift!r}) * {part.scale!r}'}, 0)"]
    if not part.thermometer:
        raise ValueError(f"the bins of column {part.name!r} are one-hot: SQL is made of thermometers only")
    signed = [(">", float(t)) for t in part.thresholds[: part.n_above]]
    signed += [("<", -float(t)) for t in part.thresholds[part.n_above :]]
    return [_one(f"{column} {sign} {t!r}") for sign, t in signed]
