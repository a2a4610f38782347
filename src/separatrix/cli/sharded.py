"""`separatrix train` and `separatrix predict` with `--engine`: one shard per file, on whatever engine runs the work."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from separatrix import __version__
from separatrix.cli.errors import described
from separatrix.cli.model_rows import ModelRows
from separatrix.cli.predictions import ENDINGS, write_predictions
from separatrix.cli.progress_bars import ShardProgress
from separatrix.cli.summary import learner_figures, warnings_about
from separatrix.cli.verbs.train import TrainOptions
from separatrix.cluster.dealing import UnlikeShardsWarning
from separatrix.cluster.engine_choice import engine_of
from separatrix.cluster.fitting import fit
from separatrix.cluster.mistake_bound import bounds
from separatrix.cluster.shards import Shard
from separatrix.cluster.work import Sum
from separatrix.data.errors import DataError
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer
from separatrix.learners.inputs import SortedRowsWarning
from separatrix.learners.linear_base import LinearLearner
from separatrix.learners.online import OnlineLearner
from separatrix.modelfile.archive import save
from separatrix.modelfile.atomic import replacing


def train_on_shards(options: TrainOptions, learner: LinearLearner) -> dict[str, Any]:
    """Train on shards, write the model, and return the summary."""
    if not isinstance(learner, OnlineLearner) or options.learner not in ("averaged", "last"):
        raise DataError(f"--engine supports the learners averaged and last, not {options.learner}")
    features = TableFeaturizer(
        roles=options.roles(), numbers=options.numbers or "bins", text=TextFeaturizer(n_features=1 << options.bits)
    )
    reading = options.reading() | {"missing_label": options.missing_label}
    began = time.perf_counter()
    with ShardProgress(options.quiet or options.as_json) as progress, warnings.catch_warnings():
        for category in (UnlikeShardsWarning, SortedRowsWarning):  # the summary has them
            warnings.simplefilter("ignore", category)
        model = fit(
            *(learner, options.data),
            engine=options.engine,
            label=options.label,
            features=features,
            held_out=options.validate,
            holdout=options.holdout,
            mix=options.mix,
            checkpoint=options.checkpoint,
            reading=reading,
            working=progress.shards_done,
        )
    model.facts |= {"settings": options.settings(), "version": __version__}
    facts = model.facts
    theorem = bounds(model)
    summary: dict[str, Any] = {
        "facts": facts,
        "data": options.data,
        **{name: facts[name] for name in ("rows", "held_out", "features", "classes", "skipped", "shards", "mix")},
        "unlabelled": facts.get("unlabelled", 0),
        "notes": facts.pop("notes", []),
        "problems": facts.pop("problems"),
        "dealt": facts.get("dealt", False),
        "columns": described(model.features) if isinstance(model.features, TableFeaturizer) else [],
        **learner_figures(learner, facts["rows"]),
        "training_error": learner.training_error_,
        "mistakes_by_shard": learner.shard_mistakes_.tolist(),
        "bound": str(theorem).splitlines()[-1].strip() if theorem.applying else None,
        "engine": options.engine,
    }
    counts = np.array(list(facts["classes"].values()))
    correct = np.rint(learner.training_recalls_ * counts).astype(np.int64)
    sorted_rows = facts.pop("sorted_rows", False)
    summary["warnings"] = warnings_about(correct, counts, learner.classes_.tolist(), learner, sorted_rows)
    if "unlike_shards" in facts:
        summary["warnings"].append(facts["unlike_shards"])
    if options.output is not None:
        save(model, options.output)
        summary |= {"model": str(options.output), "bytes": options.output.stat().st_size}
    summary["seconds"] = summary["seconds_training"] = round(time.perf_counter() - began, 3)
    return summary


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
