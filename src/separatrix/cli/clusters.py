"""`separatrix train` and `predict` with `--engine`: the same verbs on shards, whoever runs the work."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from separatrix import __version__
from separatrix.cli.predict import KINDS, write
from separatrix.cli.report import described
from separatrix.cli.using import Use
from separatrix.cluster.engines import engine_of
from separatrix.cluster.fitting import bounds, fit
from separatrix.cluster.shards import Shard
from separatrix.cluster.work import Total
from separatrix.data.errors import DataError
from separatrix.modelfile.model import replacing, save

MOST_SHOWN = 8


class Shards:
    """A bar of shards done on standard error, where that is a terminal; nothing is left of it in the end."""

    def __init__(self, quiet: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("shards"),
            TimeElapsedColumn(),
        )
        off = quiet or not sys.stderr.isatty()
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=off)
        self._doing, self._task = "", self.bar.add_task("", total=None)

    def working(self, doing: str, done: int, total: int) -> None:
        """Note that shards are done."""
        if doing != self._doing:
            self._doing = doing
            self.bar.reset(self._task, total=total, description=doing)
        self.bar.update(self._task, completed=done)


def train(options: Any, learner: Any, roles: dict[str, str], settings: dict[str, Any]) -> dict[str, Any]:
    """Train on shards, write the model, and return the summary."""
    if options.learner not in ("averaged", "last"):
        raise DataError(f"--engine is for learners that can be mixed: averaged and last, not {options.learner}")
    features = None
    if roles or options.numbers or options.bits:
        from separatrix.features.table import TableFeatures
        from separatrix.features.text import TextFeatures

        text = TextFeatures(n_features=1 << options.bits)
        features = TableFeatures(roles=roles, numbers=options.numbers or "bins", text=text)
    reading: dict[str, Any] = {"format": options.form, "on_error": options.on_error}
    reading["header"] = "auto" if options.header is None else options.header
    began, shards = time.perf_counter(), Shards(options.quiet or options.as_json)
    with shards.bar:
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
            working=shards.working,
        )
    model.facts |= {"settings": settings, "version": __version__}
    facts = model.facts
    theorem = bounds(model)
    summary: dict[str, Any] = {
        "facts": facts,
        "data": options.data,
        **{name: facts[name] for name in ("rows", "held_out", "features", "classes", "skipped", "shards", "mix")},
        "problems": facts.pop("problems"),
        "columns": [] if model.features is None else model.features.describe().splitlines(),
        "learner": described(learner),
        "passes": learner.n_iter_,
        "converged": bool(learner.converged_),
        "mistakes_per_pass": list(map(int, learner.mistakes_per_pass_)),
        "mistakes_by_shard": learner.shard_mistakes_.tolist(),
        "progressive_error": learner.progressive_errors_ / max(1, facts["rows"]),
        "bound": str(theorem).splitlines()[-1].strip() if theorem.applying else None,
        "engine": options.engine,
    }
    if hasattr(learner, "validation_scores_"):
        scores = learner.validation_scores_
        summary |= {
            "held_out_accuracies": scores,
            "held_out_accuracy": max(scores) if learner.early_stopping else scores[-1],
        }
    if options.output is not None:
        save(model, options.output)
        summary |= {"model": str(options.output), "bytes": options.output.stat().st_size}
    summary["seconds"] = summary["seconds_training"] = round(time.perf_counter() - began, 3)
    return summary


@dataclass
class Predict:
    """Predict a file on a worker, into a file of the same name in the folder of the predictions."""

    model: Path
    output: Path
    kind: str
    scores: bool
    form: str | None
    header: bool | None
    on_error: str

    def __call__(self, shard: Shard) -> Total:
        """Return how many predictions were written, and how many lines skipped."""
        import numpy as np

        use = Use(self.model, shard.chunk, self.form, self.header, self.on_error)
        name = Path(shard.chunk).name.partition(".")[0] + f".{self.kind}"
        with replacing(self.output / name) as temporary, open(temporary, "wb") as file:
            n = write(use, file, self.kind, self.scores)
        return Total(np.array([n, use.source.skipped], np.float64))


def predict(
    engine: str,
    model: Path,
    data: str,
    output: Path | None,
    scores: bool,
    form: str | None,
    header: bool | None,
    on_error: str,
) -> None:
    """Have the workers predict each file into a folder, which they must share with the driver."""
    if output is None or output.suffix in KINDS:
        raise DataError("--engine writes a file for each shard: name a folder with -o")
    output.mkdir(parents=True, exist_ok=True)
    work = Predict(model.absolute(), output.absolute(), "csv", scores, form, header, on_error)
    used, shards = engine_of(engine), Shards(False)
    try:
        numbers = used.take(data)
        names = [Path(used.names[number]).name.partition(".")[0] for number in numbers]
        if len(set(names)) < len(names):
            raise DataError(f"two files are called {max(names, key=names.count)}, and each is to have its predictions")
        with shards.bar:
            n, skipped = used.reduce(work, numbers, lambda done: shards.working("predicting", done, len(numbers))).values
    finally:
        used.close()
    left = f", {int(skipped):,} lines skipped" if skipped else ""
    print(f"{int(n):,} predictions written to {output}{left}", file=sys.stderr)
