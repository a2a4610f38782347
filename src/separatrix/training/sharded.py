"""Training with `engine`: one shard per file, on whatever engine runs the work."""

from __future__ import annotations

import time
import warnings

import numpy as np

from separatrix import __version__
from separatrix.data.errors import DataError
from separatrix.engine.hooks import hook
from separatrix.engine.rules import STREAMING
from separatrix.features.table import TableFeaturizer
from separatrix.learners.inputs import SortedRowsWarning
from separatrix.modelfile.archive import save
from separatrix.modelfile.model import Model
from separatrix.training.memory import InMemory
from separatrix.training.options import TrainOptions
from separatrix.training.parts import featurizer_of, learner_of
from separatrix.training.progress import Progress
from separatrix.training.summary import Summary, learner_figures, warnings_about, written_model


def train_on_shards(options: TrainOptions, plain: bool, progress: Progress) -> Model:
    """Train on shards, write the model, and return it with its summary."""
    if options.learner not in STREAMING:
        raise DataError(f"engine= supports the learners {' and '.join(STREAMING)}, not {options.learner}")
    if isinstance(options.data, InMemory) or isinstance(options.validate, InMemory):
        raise DataError("engine= works on files, one shard each; separatrix.cluster.fit takes data in memory")
    learner, began = learner_of(options, plain), time.perf_counter()
    with warnings.catch_warnings():
        for category in (hook("unlike_shards_warning"), SortedRowsWarning):  # the summary has them
            warnings.simplefilter("ignore", category)  # type: ignore[arg-type]
        model: Model = hook("fit_on_shards")(
            *(learner, options.data),
            engine=options.engine,
            label=options.label,
            features=featurizer_of(options, options.roles(), plain),
            held_out=options.validate,
            holdout=options.holdout,
            mix=options.mix,
            checkpoint=options.checkpoint,
            reading=options.reading() | {"missing_label": options.missing_label},
            working=progress.shards_done,
        )
    model.facts |= {"settings": options.settings(), "version": __version__}
    facts = model.facts
    theorem = hook("bounds_on_shards")(model)
    summary = Summary(
        facts=facts,
        data=str(options.data),
        **{name: facts[name] for name in ("rows", "held_out", "features", "classes", "skipped", "shards", "mix")},
        unlabelled=facts.get("unlabelled", 0),
        notes=facts.pop("notes", []),
        problems=facts.pop("problems"),
        dealt=facts.get("dealt", False),
        columns=model.features.describe().splitlines() if isinstance(model.features, TableFeaturizer) else [],
        **learner_figures(learner, facts["rows"]),
        training_error=learner.training_error_,
        mistakes_by_shard=learner.shard_mistakes_.tolist(),
        bound=str(theorem).splitlines()[-1].strip() if theorem.applying else None,
        engine=str(options.engine),
    )
    if hasattr(learner, "slope_"):
        summary["calibrated_on"] = "the held-out shards"
    counts = np.array(list(facts["classes"].values()))
    correct = np.rint(learner.training_recalls_ * counts).astype(np.int64)
    sorted_rows = facts.pop("sorted_rows", False)
    summary["warnings"] = warnings_about(correct, counts, learner.classes_.tolist(), learner, sorted_rows)
    if "unlike_shards" in facts:
        summary["warnings"].append(facts["unlike_shards"])
    if options.output is not None:
        save(model, options.output, resume=options.resume)
        summary |= written_model(options.output)
    summary["seconds_training"] = round(time.perf_counter() - began, 3)
    model.summary = summary
    return model
