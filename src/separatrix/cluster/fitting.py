"""`fit`: from an estimator and shards to a model, by way of an engine; `bounds`: what the theorem says of the mistakes."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.analysis.bounds import Bound, Bounds, margin_rule_bound, mixing_bound
from separatrix.cluster.engines import Engine, engine_of
from separatrix.cluster.mixing import MIXES, Mixture, Told
from separatrix.cluster.shards import Known, Piece, Reading, fingerprint
from separatrix.cluster.work import Lead, Learn, Open, Survey
from separatrix.data.errors import DataError
from separatrix.engine.labels import check_kinds
from separatrix.engine.progress import passes_bar
from separatrix.engine.rows import Array
from separatrix.engine.rules import RULES
from separatrix.estimators.featurizers import TableFeatures
from separatrix.files.blocks import Labels
from separatrix.files.out_of_core import TrainingState
from separatrix.learners.online import OnlineLearner
from separatrix.modelfile.model import Model, load, save


def fit(
    estimator: Any,
    shards: Any,
    y: Any = None,
    *,
    engine: Any = None,
    label: str | int | None = None,
    features: Any = None,
    held_out: Any = None,
    holdout: float = 0.0,
    mix: str = "features",
    checkpoint: str | os.PathLike[str] | None = None,
    reading: dict[str, Any] | None = None,
    working: Callable[[str, int, int], None] | None = None,
) -> Model:
    """Train an estimator on shards by iterative parameter mixing; return the model, whose `estimator` it is.

    Parameters
    ----------
    estimator : Perceptron, AveragedPerceptron or PassiveAggressive
    shards : a pattern of files or a list of them, read by the workers; a list of (X, y); or a collection of the engine: a
        Dask array, data frame, bag or list of delayed ones, a Spark data frame
    y : the labels of a collection of numbers; where there are none, `label` names the column of a table
    engine : None (in this process), "local:N", "dask://HOST:PORT", "spark://HOST:PORT", a Dask client or a Spark session
    label : the label's column of tables
    features : a `TableFeatures` for the columns of tables, learned here; its defaults if not given
    held_out : shards that are not trained on, scored after each pass
    holdout : or a fraction of the shards, drawn by the seed; with `early_stopping=True` and none given,
        `validation_fraction` of them
    mix : "features": each feature over the shards in which it occurs; "uniform": over all; or "mistakes": each shard by
        its share of the mistakes
    checkpoint : a file in which the state is kept after each pass, and from which the same call goes on
    reading : options of `open_source` for files
    working : is told (what is being done, shards done, shards in all)

    Examples
    --------
    >>> from separatrix import Perceptron
    >>> from separatrix.cluster import bounds, fit
    >>> shards = [([[4, 0], [1, 1]], [1, -1]), ([[0, 1], [-2, -2]], [-1, 1])]
    >>> model = fit(Perceptron(order="cyclic", fit_intercept=False), shards)
    >>> model.estimator.coef_, model.estimator.shard_mistakes_.tolist(), model.estimator.converged_
    (array([[ 1.5, -3. ]]), [[2, 1], [1, 1], [2, 0], [0, 0]], True)
    >>> bounds(model)
    7 mistakes in 4 passes; R = 4, γ = 0.447214
      iterative parameter mixing R²/γ², 2 shards: Σμ·mistakes 3.5 ≤ 80
    """
    _check(estimator, mix)
    used = engine_of(engine)
    try:
        return _Fit(estimator, used, label, features, mix, checkpoint, reading, working).run(shards, y, held_out, holdout)
    finally:
        if used is not engine:
            used.close()


def fit_here(estimator: Any, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> None:
    """Fit an estimator on a Dask collection, on the cluster that is at hand: `estimator.fit(X, y)`."""
    if sample_weight is not None:
        raise ValueError("a Dask collection is trained on without sample_weight: use class_weight, or leave rows out")
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        raise ValueError("X is a Dask collection, and no cluster is at hand: make a dask.distributed.Client first") from None
    fit(estimator, X, y, engine=client, held_out=None if X_val is None else (X_val, y_val))


def _check(estimator: Any, mix: str) -> None:
    name = type(estimator).__name__
    if not isinstance(estimator, OnlineLearner) or estimator.stores_rows:
        why = "predicts with its mistakes" if getattr(estimator, "stores_rows", False) else "needs all examples at once"
        raise ValueError(f"{name} {why}: on shards train Perceptron, AveragedPerceptron or PassiveAggressive")
    estimator.check_parameters()
    if estimator.record:
        raise ValueError("record=True stores the rows of the mistakes, and the driver holds no data: train without")
    if RULES[estimator.rule].spread == "full":
        raise ValueError(f'rule="{estimator.rule}" keeps a matrix for each output, which is not mixed; rule="arow" is')
    if mix not in MIXES:
        raise ValueError(f"mix is {mix!r}, not one of {', '.join(MIXES)}")


class _Fit:
    """One call of `fit`."""

    def __init__(
        self,
        estimator: Any,
        engine: Engine,
        label: Any,
        features: Any,
        mix: str,
        checkpoint: Any,
        reading: Any,
        working: Any,
    ) -> None:
        self.estimator, self.engine, self.mix = estimator, engine, mix
        self.checkpoint = None if checkpoint is None else Path(checkpoint)
        self.reading = Reading(label=label, options=dict(reading or {}))
        self.given = features
        self.features: Any = None
        self.working: Callable[[str, int, int], None] = working or (lambda doing, done, total: None)

    def run(self, shards: Any, y: Any, held_out: Any, holdout: float) -> Model:
        train = self.engine.take(shards, y)
        if not train:
            raise DataError("there are no shards to learn from")
        kept = _load(self.checkpoint)
        held = [] if held_out is None else self.engine.take(*held_out if isinstance(held_out, tuple) else (held_out,))
        if not held and (fraction := holdout or self.estimator.early_stopping * self.estimator.validation_fraction):
            train, held = _divided(train, fraction, self.estimator.seed())
        if self.estimator.calibrate is not None and not held:
            raise ValueError("calibrated probabilities need held-out shards")
        try:
            if y is None:
                self._open(train, None if kept is None else kept.features)
            else:
                self.reading.form = Piece.format
            numbers = [*train, *held]
            found = dict(self._reduce("reading", Survey(self.reading), numbers).items)
            known: dict[int, Known] = {number: found[number] for number in numbers}
            classes = _classes([known[number] for number in train])
            _check_alike(self.engine, known)
            if self.reading.features is not None:
                known = {number: one._replace(d=self.reading.features.n_features_out_) for number, one in known.items()}
            what = (self.engine, self.reading, self.estimator, classes, known, train, held, self.mix)
            return self._train(Mixture(*what, after_pass=self._save), kept)
        finally:
            self.engine.forget(self.reading.token)

    def _reduce(self, doing: str, work: Any, numbers: list[int]) -> Any:
        return self.engine.reduce(work, numbers, lambda done: self.working(doing, done, len(numbers)))

    def _open(self, train: list[int], known: Any) -> None:
        """Find out how to read, and learn the columns of tables."""
        wanted = self.given or TableFeatures()
        self.reading.features = (known or wanted).plain()
        opening = Open(self.reading, learn=known is None)
        first = self.engine.reduce(opening, train[:1]).found or self.engine.reduce(opening, train).found
        if first is None:
            raise DataError(f"{self.engine.names[train[0]]}: there is no example in it, nor in any other shard")
        self.reading = first
        if self.reading.features is None:
            return
        self.features = known
        if known is None:
            columns = self._reduce("learning the columns", Learn(self.reading), train)
            wanted.roles = self.reading.features.roles
            self.features = wanted.adopt(columns.schema)
        self.reading.features = self.features.without_names()

    def _train(self, mixture: Mixture, kept: Model | None) -> Model:
        estimator = self.estimator
        self.settings = {"parameters": repr(sorted(estimator.get_params(deep=False).items())), "mix": self.mix}
        self.data = fingerprint([one.digest for one in mixture.known.values()])
        self.sizes = [one.n for one in mixture.known.values()]
        with passes_bar(estimator.verbose, estimator.max_iter, type(estimator).__name__) as progress:
            mixture.told = Told(progress, self.working)
            if kept is None:
                start = estimator.start_weights(mixture.classes, mixture.d) if estimator.warm_start else None
                mixture.begin(start)
            else:
                self._resume(mixture, kept)
            mixture.resume()
        mixture.publish()
        if self.checkpoint is not None:
            self.checkpoint.unlink(missing_ok=True)
        trained = [mixture.known[number] for number in mixture.train]
        counts: dict[str, int] = {}
        for one in trained:
            for label, count in zip(one.labels, one.counts.tolist(), strict=True):
                counts[str(label)] = counts.get(str(label), 0) + count
        facts = {
            "data": self.data,
            "format": self.reading.form,
            "rows": sum(one.n for one in trained),
            "held_out": sum(mixture.known[number].n for number in mixture.held_out),
            "features": mixture.d,
            "classes": {str(label): counts[_told(label, counts)] for label in mixture.classes.tolist()},
            "skipped": sum(one.skipped for one in trained),
            "label": self.reading.label,
            "shards": len(mixture.train),
            "mix": self.mix,
            "margin": _margin(mixture),
            "problems": [problem for one in trained for problem in one.problems][:3],
        }
        return Model(estimator, self.features, facts)

    # Checkpoints.

    def _save(self, mixture: Mixture) -> None:
        if self.checkpoint is None:
            return
        run, estimator = mixture.settle(), self.estimator
        state = TrainingState(run, mixture.history, 0, None, 0.0, mixture.errors, mixture.C_scores, mixture.digests)
        progress = state.facts() | {"mistakes": mixture.mistakes, "converged": mixture.history.ended == "clean"}
        estimator.n_features_in_ = mixture.d
        estimator.publish(run, mixture.history.mistakes)
        facts = {"checkpoint": progress, "settings": self.settings, "data": self.data, "sizes": self.sizes}
        save(estimator, self.checkpoint, features=self.features, facts=facts, arrays=state.arrays())

    def _resume(self, mixture: Mixture, kept: Model) -> None:
        facts = kept.facts
        if (facts["settings"], facts["data"], facts["sizes"]) != (self.settings, self.data, self.sizes):
            raise DataError(f"{self.checkpoint} belongs to other data or other settings: delete it, or name another file")
        progress = facts["checkpoint"]
        state = TrainingState.resumed(kept.estimator.run_, progress, kept.arrays)
        if state.ended and "reason" not in progress and progress["converged"]:
            state.history.ended = "clean"
        mixture.adopt(state.run)
        mixture.mistakes, mixture.history, mixture.digests = progress["mistakes"], state.history, state.digests
        mixture.errors, mixture.C_scores = state.errors, state.C_scores


def _told(label: Any, counts: dict[str, int]) -> str:
    return str(label) if str(label) in counts else str(float(label))


def _load(path: Path | None) -> Model | None:
    if path is None or not path.exists():
        return None
    kept = load(path)
    if "checkpoint" not in kept.facts:
        raise DataError(f"{path} is a model, not a checkpoint of a training on shards: name another file")
    return kept


def _divided(numbers: list[int], fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the shards to train on, and those held out: some drawn by the seed."""
    n = max(1, round(fraction * len(numbers)))
    if n >= len(numbers):
        raise ValueError(
            f"a fraction of {fraction:g} holds out a shard, and there is {len(numbers)}: give more, or held_out"
        )
    out = set(np.random.default_rng([seed, len(numbers)]).permutation(numbers)[:n].tolist())
    return [number for number in numbers if number not in out], sorted(out)


def _classes(known: list[Known]) -> Array:
    """Return the classes of all shards, of the type that `fit` gives them."""
    labels = Labels()
    for shard in known:
        labels.add(shard.labels)
    kinds = [np.dtype(shard.kind) for shard in known if shard.kind is not None]
    if kinds:
        found = np.array(labels.met(), dtype=np.result_type(*kinds))
        check_kinds(found)
        classes = np.unique(found)
    else:
        classes, _ = labels.settled()
    if len(classes) < 2:
        raise DataError(f"a boundary needs two classes, but there is only 1 class: {classes.tolist()}")
    return classes


def _check_alike(engine: Engine, known: dict[int, Known]) -> None:
    """Raise where shards do not have the same features."""
    filled = {number: one for number, one in known.items() if one.n}
    first = next(iter(filled))
    for number, one in filled.items():
        if one.names != filled[first].names:
            raise DataError(f"{engine.names[number]}: its columns are not called as those of {engine.names[first]}")
        if one.sparse != filled[first].sparse or (not one.sparse and one.d != filled[first].d):
            raise DataError(
                f"{engine.names[number]} has {one.d} features, and {engine.names[first]} has {filled[first].d}: not alike"
            )


def _margin(mixture: Mixture) -> float | None:
    """Return the margin of the last weights, the least lead over ‖w‖, after a clean pass; None where it tells nothing."""
    learner, run = mixture.learner, mixture.run
    if not learner.converged_ or not RULES[learner.rule].ends or (mixture.w.shape[1] > 1 and not run.joint):
        return None
    least: float = mixture.engine.reduce(mixture.work(Lead, mixture.w), mixture.shown).value
    return float(least / np.linalg.norm(mixture.w))


def bounds(model: Model, certificate: Any = None) -> Bounds:
    """Return Σ over passes and shards of μ·mistakes beside the most that mixing allows on data with a margin γ.

    γ is that of a certificate, or else that of the model's own weights, which the workers found after a clean pass.
    """
    estimator = model.estimator
    mistakes = estimator.shard_mistakes_
    gamma = model.facts.get("margin")
    if certificate is not None and certificate.verdict == "separable":
        gamma = float(certificate.margin[0])
    told = estimator.n_mistakes_, len(mistakes), estimator.radius_, gamma
    theorem = RULES[estimator.rule].theorem
    if theorem not in ("perceptron", "margin") or estimator.ledger_.weighted or estimator.ledger_.start is not None:
        return Bounds(*told, why_none="it is for the perceptron and margin rules, equal weights and a start from zero")
    if gamma is None:
        return Bounds(*told, why_none="no pass was clean, and there is no certificate: nothing is known of a margin")
    R = estimator.radius_ * (sqrt(2.0) if estimator.run_.joint else 1.0)
    if theorem == "margin":
        name, most = "(R²+2β)/γ²", margin_rule_bound(R, gamma, float(estimator.margin))
    else:
        name, most = "2R²/γ²" if estimator.run_.joint else "R²/γ²", mixing_bound(R, gamma)
    bound = Bound(f"iterative parameter mixing {name}, {mistakes.shape[1]} shards", "Σμ·mistakes", weighted(model), most)
    return Bounds(*told, [bound])


def weighted(model: Model) -> float:
    """Return Σ over passes and shards of (mixing weight × mistakes), a shard's being 1/S also where features are mixed."""
    mistakes = model.estimator.shard_mistakes_.astype(np.float64)
    if model.estimator.mix_ != "mistakes":
        return float(mistakes.sum() / mistakes.shape[1])
    totals = mistakes.sum(axis=1)
    return float(sum((row @ row) / total for row, total in zip(mistakes, totals, strict=True) if total))
