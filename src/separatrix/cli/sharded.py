"""`separatrix predict` with `--engine`: one shard per file, on whatever engine runs the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.cli.model_rows import ModelRows
from separatrix.cli.predictions import ENDINGS, write_predictions
from separatrix.cli.progress_bars import ShardProgress
from separatrix.cluster.engine_choice import engine_of
from separatrix.cluster.results import Sum
from separatrix.cluster.shards import Shard
from separatrix.data.atomic import replacing
from separatrix.data.errors import DataError


@dataclass
class PredictShard:
    """Predicts a file on a worker, into a file of the same name in the output folder."""

    model: Path
    output: Path
    scores: bool
    reading: dict[str, Any]

    def __call__(self, shard: Shard) -> Sum:
        """Return how many predictions were written, and how many lines were skipped."""
        rows = ModelRows(self.model, shard.chunk, self.reading)
        with replacing(self.output / f"{stem(shard.chunk)}.csv") as temporary, open(temporary, "wb") as file:
            n = write_predictions(rows, file, "csv", self.scores)
        return Sum(np.array([n, rows.source.skipped], np.float64))


def predict_on_shards(engine: str, work: PredictShard, data: str) -> tuple[int, int]:
    """Have the workers predict each file into a folder that they share with us; return how many rows, how many skipped."""
    if work.output.suffix in ENDINGS:
        raise DataError("--engine writes one file per shard: name a folder with -o")
    work.output.mkdir(parents=True, exist_ok=True)
    workers = engine_of(engine)
    try:
        numbers = workers.add_shards(data)
        stems = [stem(workers.names[number]) for number in numbers]
        if len(set(stems)) < len(stems):
            raise DataError(f"two files have the name {max(stems, key=stems.count)}, and so would their predictions")
        with ShardProgress(False) as progress:
            done = workers.reduce(work, numbers, lambda done: progress.shards_done("predicting", done, len(numbers)))
    finally:
        workers.close()
    n, skipped = done.values
    return int(n), int(skipped)


def stem(path: str) -> str:
    """Return the name of a file without its folder and endings."""
    return Path(path).name.partition(".")[0]
