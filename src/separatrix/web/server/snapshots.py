"""Snapshots beside the store: the initial model, the model at some commits, and recovery from them.

A snapshot is an ordinary model file. The newest snapshot and the commits after it give the current state; if it cannot be
read, an older snapshot and more commits give the same state.
"""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from separatrix.data.arrow_arrays import text_array
from separatrix.data.atomic import replacing
from separatrix.data.errors import DataError
from separatrix.engine.rules import RULES
from separatrix.features.text import TextFeaturizer
from separatrix.learners.linear import AveragedLearner, LastLearner, PassiveAggressiveLearner
from separatrix.modelfile.archive import load, save
from separatrix.modelfile.errors import ModelFileError
from separatrix.modelfile.model import Model
from separatrix.web.server.live_model import LiveModel
from separatrix.web.server.store import FORMAT, CommitStore, StoreError

LEARNERS = {"averaged": AveragedLearner, "last": LastLearner}
"""The learners of `--learner`."""
_NAME = re.compile(r"snapshot-(\d{12})\.sepx")


def begin(store: CommitStore, model: Path | None, settings: dict[str, Any]) -> None:
    """Record the initial model in a new store; in an old one, check that `model` is the one it started from."""
    entry = store.base.get("model")
    if model is None:
        if entry is None:
            untrained_model(settings)
            store.describe("model", {"format": FORMAT, "id": secrets.token_hex(16), "start": None, "settings": settings})
        return
    start = load(model, plain=True)
    if entry is not None:
        if entry["start"] != start.sha256:
            raise StoreError(
                f"{store.folder} did not begin with {model}: leave out --model to resume with what the store has learned"
            )
        return
    prepared_to_stream(start)
    with replacing(store.folder / "start.sepx") as name:
        shutil.copyfile(model, name)
    store.describe("model", {"format": FORMAT, "id": secrets.token_hex(16), "start": start.sha256, "settings": settings})


def untrained_model(settings: dict[str, Any]) -> Model:
    """Return an untrained model with the settings of the command line."""
    learner = LEARNERS[settings["learner"]](rule=settings["rule"], C=settings["C"])
    learner.check_parameters()
    features = None
    if settings["text"]:
        features = TextFeaturizer(idf=False, n_features=2 ** settings["bits"], keep_names=0).fit(text_array([]))
    elif RULES[settings["rule"]].spread == "full":
        raise DataError(
            f"--rule {settings['rule']} needs a matrix over all features, which are not known in advance: use --rule arow"
        )
    return Model(learner, features)


def prepared_to_stream(model: Model) -> Model:
    """Return a trained model with its parameters set for learning one example at a time; raises DataError if it cannot."""
    estimator = model.estimator
    if not isinstance(estimator, LastLearner | AveragedLearner | PassiveAggressiveLearner):
        name = estimator.public_name()
        raise DataError(f"a {name} cannot learn one example at a time: train with --learner averaged or last")
    if estimator.class_weight is not None:
        raise DataError("the model was trained with class weights, which the server does not support: train without them")
    if RULES[estimator.rule].spread == "full":
        raise DataError(
            f'the rule "{estimator.rule}" needs a matrix over all features, and new features may appear: '
            "train with the rule arow"
        )
    if hasattr(estimator, "run_"):
        try:
            estimator.run_.check_resumable()
        except ValueError as error:
            raise DataError(str(error)) from None
    estimator.set_params(calibrate=None)
    if estimator.C == "auto":
        estimator.set_params(C=estimator.run_.rule.C)
    if hasattr(estimator, "record"):
        estimator.set_params(record=False)
    return model


def feature_names(model: Model) -> list[str] | None:
    """Return the names of the features, or None if a featurizer makes them."""
    if model.features is not None:
        return None
    estimator = model.estimator
    if not hasattr(estimator, "run_"):
        return []
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]


def path_of(store: CommitStore, number: int) -> Path:
    """Return the path of the snapshot of a commit."""
    return store.folder / f"snapshot-{number:012d}.sepx"


def rebuilt_path(store: CommitStore, number: int) -> Path:
    """Return where the model lies that a commit put in place of what there was."""
    return store.folder / f"rebuilt-{number:012d}.sepx"


def snapshot_numbers(store: CommitStore) -> list[int]:
    """Return the numbers of the commits that have a snapshot, in order."""
    matches = (_NAME.fullmatch(path.name) for path in store.folder.iterdir())
    return sorted(int(match.group(1)) for match in matches if match)


class ModelSnapshot(NamedTuple):
    """A copy of the model, which can be written while the model continues to learn."""

    model: Model
    facts: dict[str, Any]

    @classmethod
    def of(cls, store: CommitStore, number: int, live_model: LiveModel, names: list[str] | None) -> ModelSnapshot:
        """Return a copy of the model as it is after a commit."""
        model = live_model.model(names)
        position = {"store": store.base["model"]["id"], "commit": number, **live_model.facts()}
        return cls(model, model.facts | {"server": position})

    def write(self, path: Path) -> None:
        """Write the copy as a model file."""
        save(self.model, path, facts=self.facts, ledger=False)


def read_snapshot(store: CommitStore, path: Path, number: int) -> tuple[LiveModel, list[str] | None]:
    """Return the model of the snapshot of a commit, and the names of its features."""
    model = load(path, plain=True)
    position = model.facts.get("server", {})
    if position.get("store") != store.base["model"]["id"] or position.get("commit") != number:
        raise ModelFileError(f"{path} is not a snapshot of this store")
    names = feature_names(model)
    names = None if names is None else names[: int(position["names"])]
    return LiveModel.resumed(model, position), names


def initial_model(store: CommitStore) -> tuple[LiveModel, list[str] | None]:
    """Return the model before the first commit, and the names of its features."""
    entry = store.base["model"]
    if entry["start"] is None:
        model = untrained_model(entry["settings"])
    else:
        model = prepared_to_stream(load(store.folder / "start.sepx", plain=True))
        if model.sha256 != entry["start"]:
            raise StoreError(f"{store.folder / 'start.sepx'} is not the model that the store started from")
    return LiveModel(model), feature_names(model)


def recover(store: CommitStore, until: int | None = None) -> tuple[LiveModel, list[str] | None, int]:
    """Return the model after the last commit (or after `until`), its feature names, and the number of the snapshot used."""
    end = store.last if until is None else until
    numbers = snapshot_numbers(store)
    if store.accept_loss:
        for number in (n for n in numbers if n > store.last):
            path_of(store, number).unlink()
        numbers = snapshot_numbers(store)
    if until is None and numbers and numbers[-1] > store.last:
        raise StoreError(
            f"{store.folder}: there is a snapshot of commit {numbers[-1]:,}, but the store ends with commit {store.last:,}: "
            "its end is missing. Restore it from a backup, or continue without it with --accept-loss"
        )
    for number in [*(n for n in reversed(numbers) if n <= end), 0]:
        try:
            live_model, names = read_snapshot(store, path_of(store, number), number) if number else initial_model(store)
            break
        except (ModelFileError, FileNotFoundError):
            if not number:
                raise
    for stored in store.commits(number, end):
        commit = stored.commit
        if commit.rebuilt:
            live_model, names = read_snapshot(store, rebuilt_path(store, stored.last), stored.last)
        else:
            live_model.apply(commit)
            if names is not None:
                names.extend(commit.names)
    return live_model, names, number


def remove_old_snapshots(store: CommitStore) -> None:
    """Remove snapshots: the newest two stay, and the older a snapshot is, the larger the gaps around it may be."""
    numbers = snapshot_numbers(store)
    at = 1
    while at < len(numbers) - 2:
        if numbers[at + 1] - numbers[at - 1] < (numbers[-1] - numbers[at]) / 2:
            path_of(store, numbers.pop(at)).unlink(missing_ok=True)
        else:
            at += 1
