"""Snapshots beside the store: where the model began, how it was at some moments, and how it is recovered from them.

A snapshot is a model file like any other. The newest one, and the commits after it, give the state; where it cannot be read,
an older one and more commits give the same.
"""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from separatrix.data.errors import DataError
from separatrix.engine.rules import RULES
from separatrix.estimators.linear import AveragedPerceptron, PassiveAggressive, Perceptron
from separatrix.features.text import TextFeaturizer
from separatrix.modelfile.model import Model, load, replacing, save
from separatrix.modelfile.parcel import ModelFileError
from separatrix.web.server.live_model import LiveModel
from separatrix.web.server.store import FORMAT, CommitStore, StoreError

LEARNERS = {"averaged": AveragedPerceptron, "last": Perceptron}
_NAME = re.compile(r"snapshot-(\d{12})\.sepx")


def begin(store: CommitStore, model: Path | None, settings: dict[str, Any]) -> None:
    """Write down where the model begins, or check that it is where it began."""
    told = store.base.get("model")
    if model is None:
        if told is None:
            fresh(settings)
            store.describe("model", {"format": FORMAT, "id": secrets.token_hex(16), "start": None, "settings": settings})
        return
    start = load(model)
    if told is not None:
        if told["start"] != start.sha256:
            raise StoreError(
                f"{store.folder} did not begin with {model}: leave --model out to go on with what it has learned"
            )
        return
    usable(start)
    with replacing(store.folder / "start.sepx") as name:
        shutil.copyfile(model, name)
    store.describe("model", {"format": FORMAT, "id": secrets.token_hex(16), "start": start.sha256, "settings": settings})


def fresh(settings: dict[str, Any]) -> Model:
    """Return a model that has learned nothing."""
    if settings["learner"] not in LEARNERS:
        raise DataError(f"--learner is {settings['learner']!r}: it must be one of {', '.join(LEARNERS)}")
    learner = LEARNERS[settings["learner"]](rule=settings["rule"], C=settings["C"])
    learner.check_parameters()
    features = None
    if settings["text"]:
        features = TextFeaturizer(idf=False, n_features=2 ** settings["bits"], keep_names=0).fit([])
    elif RULES[settings["rule"]].spread == "full":
        raise DataError(f'--rule "{settings["rule"]}" keeps a matrix, and the features are not known yet: use arow')
    return Model(learner, features)


def usable(model: Model) -> Model:
    """Return a trained model as one that goes on with a stream, or raise."""
    estimator = model.estimator
    kind = type(estimator).__name__
    if type(estimator) not in (Perceptron, AveragedPerceptron, PassiveAggressive):
        raise DataError(f"a {kind} cannot go on learning one example at a time: train with --learner averaged or last")
    if estimator.class_weight is not None:
        raise DataError("the model was trained with class weights, and here every example counts once: train without")
    if RULES[estimator.rule].spread == "full":
        raise DataError(f'the rule "{estimator.rule}" keeps a matrix, and names may come: train with the rule arow')
    estimator.set_params(calibrate=None)
    if estimator.C == "auto":
        estimator.set_params(C=estimator.run_.rule.C)
    if hasattr(estimator, "record"):
        estimator.set_params(record=False)
    return model


def names_of(model: Model) -> list[str] | None:
    """Return the names of the features, or None where a featurizer makes them."""
    if model.features is not None:
        return None
    estimator = model.estimator
    if not hasattr(estimator, "run_"):
        return []
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]


def path_of(store: CommitStore, number: int) -> Path:
    """Return where the snapshot of a commit lies."""
    return store.folder / f"snapshot-{number:012d}.sepx"


def rebuilt_path(store: CommitStore, number: int) -> Path:
    """Return where the machine lies that a commit put in place of what there was."""
    return store.folder / f"rebuilt-{number:012d}.sepx"


def snapshots(store: CommitStore) -> list[int]:
    """Return the commits of which there are snapshots, in order."""
    found = (_NAME.fullmatch(path.name) for path in store.folder.iterdir())
    return sorted(int(match.group(1)) for match in found if match)


class ModelSnapshot(NamedTuple):
    """A copy of a machine, to be written while the machine goes on."""

    model: Model
    facts: dict[str, Any]

    @classmethod
    def of(cls, store: CommitStore, number: int, machine: LiveModel, names: list[str] | None) -> ModelSnapshot:
        """Return the picture of a machine after a commit."""
        model = machine.model(names)
        told = {"store": store.base["model"]["id"], "commit": number, **machine.facts()}
        return cls(model, model.facts | {"server": told})

    def write(self, path: Path) -> None:
        """Write it as a model file."""
        save(self.model, path, facts=self.facts, ledger=False)


def read(store: CommitStore, path: Path, number: int) -> tuple[LiveModel, list[str] | None]:
    """Return the machine of a picture taken after a commit, and the names of its features."""
    model = load(path)
    told = model.facts.get("server", {})
    if told.get("store") != store.base["model"]["id"] or told.get("commit") != number:
        raise ModelFileError(f"{path} is not a snapshot of this store")
    named = names_of(model)
    names = None if named is None else named[: int(told["names"])]
    return LiveModel.resumed(model, told), names


def start(store: CommitStore) -> tuple[LiveModel, list[str] | None]:
    """Return the machine before its first commit."""
    told = store.base["model"]
    if told["start"] is None:
        model = fresh(told["settings"])
    else:
        model = usable(load(store.folder / "start.sepx"))
        if model.sha256 != told["start"]:
            raise StoreError(f"{store.folder / 'start.sepx'} is not the model that learning began with")
    return LiveModel(model), names_of(model)


def recover(store: CommitStore, until: int | None = None) -> tuple[LiveModel, list[str] | None, int]:
    """Return the machine after the last commit, or after commit `until`, the names, and the snapshot that it began from."""
    end = store.last if until is None else until
    known = snapshots(store)
    if store.accept_loss:
        for number in (n for n in known if n > store.last):
            path_of(store, number).unlink()
        known = snapshots(store)
    if until is None and known and known[-1] > store.last:
        raise StoreError(
            f"{store.folder}: there is a snapshot of commit {known[-1]:,}, and the store ends with {store.last:,}: "
            "its end is missing. Restore it from a copy, or go on without by --accept-loss"
        )
    for number in [*(n for n in reversed(known) if n <= end), 0]:
        try:
            machine, names = read(store, path_of(store, number), number) if number else start(store)
            break
        except (ModelFileError, FileNotFoundError):
            if not number:
                raise
    for stored in store.commits(number, end):
        commit = stored.commit
        if commit.rebuilt:
            machine, names = read(store, rebuilt_path(store, stored.last), stored.last)
        else:
            machine.apply(commit)
            if names is not None:
                names.extend(commit.names)
    return machine, names, number


def thin(store: CommitStore) -> None:
    """Remove snapshots, but for the newest two, and ever fewer the older they are."""
    kept = snapshots(store)
    place = 1
    while place < len(kept) - 2:
        if kept[place + 1] - kept[place - 1] < (kept[-1] - kept[place]) / 2:
            path_of(store, kept.pop(place)).unlink(missing_ok=True)
        else:
            place += 1
