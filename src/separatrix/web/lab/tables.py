"""The tables that the lab's page reads: names, texts, options, limits and built-in data, written as JSON beside the page.

Python is the only source of truth. `python -m separatrix.web.lab.tables` writes the files after a change of a menu, a rule,
a limit or a lecture's example; a test compares them with what this module returns.
"""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

from separatrix.data.in_memory import read_source
from separatrix.data.lectures import EXAMPLES
from separatrix.engine.rules import RULES
from separatrix.web.lab import document, recipe
from separatrix.web.lab.menus import DATA_SETS, LEARNERS, menus
from separatrix.web.lab.page import STATIC

FORMAT = "separatrix lab 1"
"""Raised when a link, a recipe or a table changes its meaning."""


def lab_tables() -> dict[str, Any]:
    """Return the menus with what the engine in the browser needs beyond them, as JSON values."""
    tables = menus()
    for name, choice in LEARNERS.items():
        estimator = choice.estimator
        parameters = {key: parameter.default for key, parameter in signature(estimator).parameters.items()}
        predicts = document.PREDICTS.get(estimator.__name__, "last")
        tables["learners"][name] |= {"name": estimator.__name__, "predicts": predicts, "parameters": parameters}
    for name, rule in RULES.items():
        tables["rules"][name] |= {"spread": rule.spread, "theorem": rule.theorem}
    tables["lectures"] = [
        {
            "name": example.name,
            "title": example.title,
            "points": example.X.tolist(),
            "labels": example.y.tolist(),
            "tie": example.tie,
            "bias": example.bias,
        }
        for example in EXAMPLES.values()
    ]
    limits = {
        "rows": recipe.MOST_ROWS,
        "kernel_rows": recipe.MOST_KERNEL_ROWS,
        "open_ended": recipe.MOST_OPEN_ENDED,
        "numbers": document.MOST_NUMBERS,
        "steps": document.MOST_STEPS,
        "kernel_mistakes": document.MOST_KERNEL_MISTAKES,
        "points": 2_000,
        "csv_in_browser": 1_000_000,
        "csv": 1_900_000,
        "link": 8_000,
    }
    defaults = recipe.Recipe().model_dump()
    return {"format": FORMAT, "defaults": defaults, "limits": limits, "ranges": _ranges(), **tables}


def _ranges() -> dict[str, dict[str, float | bool]]:
    """Return what each number of a recipe may be: from `least`, or `above`, to `most`."""
    ranges: dict[str, dict[str, float | bool]] = {}
    for name, schema in recipe.Recipe.model_json_schema()["properties"].items():
        if schema.get("type") not in ("integer", "number"):
            continue
        bounds = {"least": "minimum", "above": "exclusiveMinimum", "most": "maximum"}
        limits = {ours: schema[theirs] for ours, theirs in bounds.items() if theirs in schema}
        ranges[name] = {**limits, "whole": schema["type"] == "integer"}
    return ranges


def data_set(name: str) -> dict[str, Any]:
    """Return a built-in data set as JSON values."""
    examples = read_source(name)
    return {"features": list(examples.feature_names or ()), "labels": examples.y.tolist(), "X": examples.X.tolist()}


def files() -> dict[str, str]:
    """Return the text of each file, by its name."""
    texts = {"lab.json": json.dumps(lab_tables(), ensure_ascii=False, indent=1)}
    texts |= {f"{name}.json": json.dumps(data_set(name), ensure_ascii=False, separators=(",", ":")) for name in DATA_SETS}
    return {name: f"{text}\n" for name, text in texts.items()}


if __name__ == "__main__":
    for file_name, text in files().items():
        Path(str(STATIC / file_name)).write_text(text, encoding="utf-8")
