"""Snapshots beside the store: the initial model, the model at some commits, and recovery from them.

A snapshot is an ordinary model file. The newest snapshot and the commits after it give the current state; if it cannot be
read, an older snapshot and more commits give the same state. If all examples were kept, they give it too.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from separatrix.data.arrow_arrays import text_array
from separatrix.data.atomic import replacing
from separatrix.data.errors import DataError
from separatrix.engine.rules import RULES
from separatrix.features.text import TextFeaturizer
from separatrix.learners.linear import AveragedLearner, LastLearner, PassiveAggressiveLearner
from separatrix.modelfile.archive import load, save
from separatrix.modelfile.errors import ModelFileError
from separatrix.modelfile.model import Model
from separatrix.web.server.forgetting.numbers import times_forgotten
from separatrix.web.server.live.double_buffer import DoubleBuffer
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import REMEDY, StoreError
from separatrix.web.server.storage.store_rows import FORMAT, Moment, StoredCommit

LEARNERS = {"averaged": AveragedLearner, "last": LastLearner}
"""The learners of `--learner`."""
OF_MODEL = ("learner", "rule", "C", "text", "bits")
"""The settings that a model has already which a store starts from."""
START = "start.sepx"
UNREADABLE = (ModelFileError, FileNotFoundError)
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
        if not _is_start(store):
            _copy_start(store, model)
        return
    prepared_to_stream(start)
    if settings.get("vectors") and (start.features is not None or hasattr(start.estimator, "feature_names_in_")):
        raise DataError(f"--vectors needs a model of numbered features, and {model} has names or a featurizer")
    _copy_start(store, model)
    store.describe("model", {"format": FORMAT, "id": secrets.token_hex(16), "start": start.sha256, "settings": settings})


def _copy_start(store: CommitStore, model: Path) -> None:
    with replacing(store.folder / START) as name:
        shutil.copyfile(model, name)


def _is_start(store: CommitStore) -> bool:
    """Return whether the copy of the initial model can be read, and is the model that the store started from."""
    try:
        return bool(load(store.folder / START, plain=True).sha256 == store.base["model"]["start"])
    except (ModelFileError, OSError):
        return False


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


def settings_of(store: CommitStore) -> dict[str, Any]:
    """Return the settings of the model that a store began with; a repair may have lost them."""
    return store.base["model"].get("settings") or {}


def feature_names(store: CommitStore, model: Model) -> list[str] | None:
    """Return the names of the features, or None if a featurizer makes them, or they are the values of vectors."""
    if model.features is not None or settings_of(store).get("vectors"):
        return None
    estimator = model.estimator
    if not hasattr(estimator, "run_"):
        return []
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]


def path_of(folder: Path, number: int) -> Path:
    """Return the path of the snapshot of a commit."""
    return folder / f"snapshot-{number:012d}.sepx"


def rebuilt_path(store: CommitStore, number: int) -> Path:
    """Return where the model lies that a commit put in place of what there was."""
    return store.folder / f"rebuilt-{number:012d}.sepx"


def snapshot_numbers(folder: Path) -> list[int]:
    """Return the numbers of the commits that have a snapshot, in order."""
    matches = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match.group(1)) for match in matches if match)


class ModelSnapshot(NamedTuple):
    """A copy of the model, which can be written while the model continues to learn."""

    model: Model
    facts: dict[str, Any]

    @classmethod
    def of(
        cls, store: CommitStore, number: int, live_model: LiveModel, names: list[str] | None, *, stays: bool = False
    ) -> ModelSnapshot:
        """Return a copy of the model as it is after a commit; one that stays in the store says what the store began with."""
        model = live_model.model(names)
        entry = store.base["model"]
        position = {"store": entry["id"], "commit": number, **({"model": entry} if stays else {}), **live_model.facts()}
        return cls(model, model.facts | {"server": position})

    def write(self, path: Path) -> None:
        """Write the copy as a model file."""
        save(self.model, path, facts=self.facts, ledger=False)


def write_newest(store: CommitStore, buffer: DoubleBuffer, newest: int) -> int:
    """Write a snapshot of the last commit that readers see, unless `newest` is of this commit; return its number."""
    with buffer.reading() as (live_model, number):
        if number == newest or live_model.run is None:
            return newest
        snapshot = ModelSnapshot.of(store, number, live_model, buffer.names(live_model), stays=True)
    snapshot.write(path_of(store.folder, number))
    remove_old_snapshots(store)
    return number


def read_snapshot(store: CommitStore, path: Path, number: int) -> tuple[LiveModel, list[str] | None]:
    """Return the model of the snapshot of a commit, and the names of its features."""
    model = load(path, plain=True)
    position = model.facts.get("server", {})
    if position.get("store") != store.base["model"]["id"] or position.get("commit") != number:
        raise ModelFileError(f"{path} is not a snapshot of this store")
    forgets = int(position.get("forgets", 0))
    if any(forgetting.order > forgets and forgetting.commit <= number for forgetting in store.forgettings):
        raise ModelFileError(f"{path} has learned from examples that were forgotten since")
    if forgets > times_forgotten(store.base):
        raise ModelFileError(f"{path} lacks examples that were forgotten after the database was read or copied")
    names = feature_names(store, model)
    names = None if names is None else names[: int(position["names"])]
    return LiveModel.resumed(model, position), names


def initial_model(store: CommitStore) -> tuple[LiveModel, list[str] | None]:
    """Return the model before the first commit, and the names of its features."""
    entry = store.base["model"]
    if entry["start"] is None:
        model = untrained_model(entry["settings"])
    else:
        model = prepared_to_stream(load(store.folder / START, plain=True))
        if model.sha256 != entry["start"]:
            raise ModelFileError(f"{store.folder / START} is not the model that the store started from")
    return LiveModel(model), feature_names(store, model)


def recover(store: CommitStore, until: int | None = None) -> tuple[LiveModel, list[str] | None, int]:
    """Return the model after the last commit (or after `until`), its feature names, and the number of the snapshot used."""
    end = store.last if until is None else until
    numbers = snapshot_numbers(store.folder)
    if until is None and numbers and numbers[-1] > store.last:
        raise StoreError(
            f"{store.folder}: there is a snapshot of commit {numbers[-1]:,}, but the store ends with commit {store.last:,}: "
            f"its end is missing{REMEDY}"
        )
    live_model, names, number = _base(store, numbers, end)
    live_model.forgets = times_forgotten(store.base)
    for step in followed(store, live_model, names, number, end):
        _, live_model, names = step
    return live_model, names, number


def followed(
    store: CommitStore, live_model: LiveModel, names: list[str] | None, after: int, until: int
) -> Iterator[tuple[StoredCommit, LiveModel, list[str] | None]]:
    """Yield each commit after a number, with the model that it gives and the names of its features."""
    for stored in store.commits(after, until):
        commit = stored.commit
        if commit.rebuilt:
            live_model, names = _rebuilt(store, stored.last, names)
        else:
            live_model.apply(commit)
            if names is not None:
                names.extend(commit.names)
        live_model.forgets = times_forgotten(store.base)
        live_model.progressive.leave_out(stored.examples)
        yield stored, live_model, names


def moment(
    store: CommitStore, *, time: float | None = None, examples: int | None = None, number: int | None = None
) -> Moment:
    """Return the last commit at or before a moment: a number of commits or of examples, or a time of the clock.

    Raises StoreError for a time that came twice, because the clock was set back, and for a moment among missing commits.
    """
    query = "SELECT last, time, examples FROM commits WHERE {} ORDER BY last DESC LIMIT 1"

    def last_where(condition: str, value: float | None) -> Moment:
        return Moment(*(store.db.execute(query.format(condition), (value,)).fetchone() or ()))

    if time is None:
        before = last_where("last <= ?", number) if examples is None else last_where("examples <= ?", examples)
    else:
        later = store.db.execute("SELECT min(last) FROM commits WHERE time > ?", (time,)).fetchone()[0] or store.last + 1
        before, again = last_where("last < ?", later), last_where("time <= ?", time)
        if again.number > before.number:
            raise StoreError(
                f"{store.folder}: the clock was set back while this store learned, and showed this time twice: after commit "
                f"{before.number:,} ({before.examples:,} examples) and after commit {again.number:,} ({again.examples:,} "
                f"examples); choose one with --as-of commit:{before.number} or --as-of commit:{again.number}"
            )
    for gap in store.gaps:
        if gap.first != before.number + 1 or before.number == number or before.examples == examples:
            continue
        if (number or 0) < gap.last and (examples is None or examples < gap.examples):
            raise StoreError(
                f"{store.folder}: this moment is among commits {gap.first:,} to {gap.last:,}, which are missing"
            )
        before = Moment(gap.last, None, gap.examples)
    return before


def _base(store: CommitStore, numbers: list[int], end: int) -> tuple[LiveModel, list[str] | None, int]:
    """Return the newest model that can be read and from which the commits lead to `end`."""
    problem: Exception | str = f"the commits before number {end:,} are missing"
    for number in [*(n for n in reversed(numbers) if n <= end), 0]:
        if not store.leads(number, end):
            continue
        try:
            return *(read_snapshot(store, path_of(store.folder, number), number) if number else initial_model(store)), number
        except UNREADABLE as error:
            problem = error
    raise StoreError(f"{store.folder}: the model of commit {end:,} cannot be rebuilt: {problem}{REMEDY}")


def _rebuilt(store: CommitStore, number: int, names: list[str] | None) -> tuple[LiveModel, list[str] | None]:
    """Return the model that a commit put in place of what there was; if its file is lost, what it was made from gives it."""
    try:
        return read_snapshot(store, rebuilt_path(store, number), number)
    except UNREADABLE as error:
        undone = {mistake for mistake, at in store.undone().items() if at <= number}
        live_model = relearned(store, undone, number)
        if live_model is None:
            raise StoreError(f"{store.folder}: the model of commit {number:,} cannot be read: {error}{REMEDY}") from None
        return live_model, names


def relearned(store: CommitStore, undone: set[int], until: int) -> LiveModel | None:
    """Return the model that learned from all examples except those of some mistakes; None if not all examples were kept."""
    try:
        live_model, _ = initial_model(store)
    except UNREADABLE:
        return None
    if not store.leads(0, until):
        return None
    classes, examples = list(live_model.classes), 0
    for stored in store.commits(0, until):
        commit = stored.commit
        if stored.undoes is not None:
            continue
        if not commit.n:  # all of its examples were forgotten
            examples = stored.examples
            continue
        if commit.kept is None:
            return None
        classes += [label for _, label in commit.arrivals]
        examples, mistakes = stored.examples, [n - stored.mistakes_before - 1 for n in undone]
        rows = np.delete(np.arange(commit.n), commit.positions[[at for at in mistakes if 0 <= at < stored.mistakes]])
        if not rows.size and live_model.run is None:
            live_model.n_names += len(commit.names)
            continue
        labels = [classes[k] for k in commit.kept_class[rows].tolist()]
        persistent = np.flatnonzero(np.isin(rows, commit.until_right))
        live_model.learn(commit.kept.take(rows), labels, commit.names, None, False, persistent=persistent)
    live_model.renumber(classes)
    live_model.progressive.undone, live_model.forgets = len(undone), times_forgotten(store.base)
    live_model.progressive.leave_out(examples)
    return live_model


def remove_unfinished(store: CommitStore) -> None:
    """Remove snapshots that a process which was killed, or had to end in time, has not finished writing."""
    for path in store.folder.glob(".snapshot-*.part"):
        with suppress(OSError):
            path.unlink()


def remove_old_snapshots(store: CommitStore) -> None:
    """Remove snapshots: the newest two stay, and the older a snapshot is, the larger the distances around it may be.

    The first snapshot after commits that are missing stays too, since nothing else leads to what was learned there.
    """
    numbers = snapshot_numbers(store.folder)
    needed = {gap.snapshot for gap in store.gaps}
    at = 1
    while at < len(numbers) - 2:
        if numbers[at] not in needed and numbers[at + 1] - numbers[at - 1] < (numbers[-1] - numbers[at]) / 2:
            path_of(store.folder, numbers.pop(at)).unlink(missing_ok=True)
        else:
            at += 1
