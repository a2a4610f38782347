"""Out-of-fold predictions as CSV, JSON lines or Parquet."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from separatrix.data.atomic import check_place, replacing
from separatrix.data.errors import DataError
from separatrix.engine.rules import in_words
from separatrix.training.tuning.folds import CrossValidation

ENDINGS = (".csv", ".jsonl", ".parquet")


def check_ending(path: Path) -> None:
    """Raise where no format is known by the ending of a file, or where it cannot be written."""
    if path.suffix.lower() not in ENDINGS:
        raise DataError(f"{path}: out-of-fold predictions are written to a file that ends in {in_words(ENDINGS)}")
    check_place(path)


def write_out_of_fold(validation: CrossValidation, path: Path) -> None:
    """Write the predictions by the ending of the file."""
    table, form = validation.table, path.suffix.lower()
    with replacing(path) as beside:
        if form == ".csv":
            from pyarrow.csv import write_csv

            write_csv(table, beside)
        elif form == ".parquet":
            from pyarrow.parquet import write_table

            write_table(table, beside)
        else:
            with open(beside, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(_finite(row), ensure_ascii=False) + "\n" for row in table.to_pylist())


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with None for −∞, the score of a class that a fold's model never saw, which JSON cannot say."""
    return {name: None if value == -math.inf else value for name, value in row.items()}
