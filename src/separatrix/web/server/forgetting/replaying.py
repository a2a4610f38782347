"""The replay: the commits of a store from the first forgotten example on, as they would have been without these examples.

Learned from are the kept rows of each commit that are left, in their order; columns of named features are given anew in the
order of their first example, as a store gives them that never had the others. A mistake that was undone is undone again at
its place, if its example still makes it. Pins are checked after each commit. The commits keep their numbers and times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from separatrix.engine.rows import Ints
from separatrix.web.server.forgetting.numbers import forgotten_numbers, numbers_of
from separatrix.web.server.live.commits import Commit
from separatrix.web.server.queries import source_of
from separatrix.web.server.reading.feature_index import FeatureIndex
from separatrix.web.server.reading.request_errors import RequestError
from separatrix.web.server.reading.request_reader import Limits, RequestReader
from separatrix.web.server.storage import pins, snapshots
from separatrix.web.server.storage.pins import Pin
from separatrix.web.server.storage.store import CommitStore
from separatrix.web.server.storage.store_folder import StoreError
from separatrix.web.server.storage.store_rows import COLUMNS, StoredCommit, checksum_of
from separatrix.web.server.writing import undo
from separatrix.web.server.writing.regressions import Place, RegressionSet

NOT_KEPT = (
    "examples can only be forgotten where all that came after them are stored: start the server with --keep-all before the "
    "first example; of this store, learn what is left into a new folder with --keep-all, and delete the old one"
)
_UPDATE = "UPDATE commits SET mistakes_before = ?, mistakes = ?, undoes = ?, body = ?, sum = ? WHERE last = ?"


class MistakePlace(NamedTuple):
    """Where a mistake is now: its number, the last number of its commit, and its position in it."""

    number: int
    last: int
    at: int


class Found(NamedTuple):
    """The examples to forget: their numbers, the first commit with one, the examples before it, and each one's commit."""

    numbers: list[int]
    first: int
    examples_before: int
    commits: list[StoredCommit]

    def contents(self, index: FeatureIndex | None, classes: list[Any], forgotten: Ints) -> list[dict[str, Any]]:
        """Return the examples in the form of a request."""
        contents = []
        for number, stored in zip(self.numbers, self.commits, strict=True):
            commit = stored.commit
            at = int(np.searchsorted(numbers_of(stored.examples, commit.n, forgotten), number))
            assert commit.kept is not None
            source = source_of(replace(commit, rows=commit.kept, sources=commit.kept_sources), at, index)
            contents.append(source | {"label": classes[int(commit.kept_class[at])]})
        return contents


def find(store: CommitStore, numbers: list[int]) -> Found:
    """Find examples by their numbers; raises RequestError where one does not exist, or they cannot be forgotten."""
    forgotten = forgotten_numbers(store.forgettings)
    if gone := sorted(set(numbers) & set(forgotten.tolist())):
        raise RequestError(409, f"example {gone[0]} was already forgotten")
    places: dict[int, list[StoredCommit]] = {number: [] for number in numbers}
    wanted, before = np.array(sorted(places), np.int64), 0
    for last, examples in store.db.execute("SELECT last, examples FROM commits ORDER BY last").fetchall():
        here = wanted[(wanted > before) & (wanted <= examples)]
        if here.size:
            stored = _row(store, last)
            for number in np.intersect1d(here, numbers_of(examples, stored.commit.n, forgotten)).tolist():
                places[number].append(stored)
        before = examples
    for number, found in places.items():
        if not found:
            missing = number <= store.examples
            reason = "is among commits that a repair did not find" if missing else "was never learned from"
            raise RequestError(409 if missing else 404, f"example {number} {reason}: nothing was forgotten")
        if len(found) > 1:
            reason = "an earlier version of the server gave this number twice, after an exact undo"
            raise RequestError(409, f"there are {len(found)} examples {number}: {reason}; they cannot be told apart")
    first = min((found[0] for found in places.values()), key=lambda stored: stored.first)
    if any(gap.last >= first.first for gap in store.gaps):
        raise RequestError(409, "commits after these examples are missing since a repair: what was learned is not known")
    for (last,) in store.db.execute("SELECT last FROM commits WHERE last >= ?", (first.first,)).fetchall():
        stored = _row(store, last)
        if stored.undoes is None and stored.commit.n and stored.commit.kept is None:
            raise RequestError(409, NOT_KEPT)
    earlier = store.db.execute(
        "SELECT examples FROM commits WHERE last < ? ORDER BY last DESC LIMIT 1", (first.first,)
    ).fetchone()
    return Found(sorted(places), first.first, earlier[0] if earlier else 0, [places[number][0] for number in sorted(places)])


def _row(store: CommitStore, last: int) -> StoredCommit:
    """Return the commit whose last number this is."""
    row = store.db.execute(f"SELECT {COLUMNS} FROM commits WHERE last = ?", (last,)).fetchone()
    return StoredCommit(*row).checked()


class Replay:
    """One replay; `run` changes the store in the transaction that the caller has begun."""

    def __init__(self, store: CommitStore, found: Found, old_names: list[str] | None, stopped: Callable[[], bool]) -> None:
        self.store, self.found, self.stopped = store, found, stopped
        self.live_model, names, self.snapshot = snapshots.recover(store, found.first - 1)
        self.index = None if names is None else FeatureIndex(names)
        self.reader = RequestReader(self.live_model.features, Limits(features=1 << 31), snapshots.settings_of(store))
        self.presented = 0
        """How many examples were learned from again."""
        self.dropped_undos: list[int] = []
        """The mistakes, by their old numbers, that were undone and are not made any more."""
        self._old_names = old_names or []
        self._column = np.full(len(self._old_names), -1)
        self._column[: len(names or ())] = np.arange(len(names or ()))
        self._pending_names: list[str] = []
        self._classes = list(self.live_model.classes)
        self._forgotten = forgotten_numbers(store.forgettings)
        self._places: dict[int, MistakePlace] = {}
        """Where the mistakes are now that are undone later, by their old numbers."""
        self.mistakes, self._time_before = self._counts_before()
        self._unchanged = self.mistakes
        """The mistakes up to this number keep it."""
        self._undone = {number for number, at in store.undone().items() if at < found.first}
        self._undone_later = sorted(number for number, at in store.undone().items() if at >= found.first)
        self.regressions, self._later_pins = self._pins()

    def _counts_before(self) -> tuple[int, float]:
        """Return the mistakes before the first commit that changes, and the time of the one before it."""
        query = "SELECT mistakes_before + mistakes, time FROM commits WHERE last < ? ORDER BY last DESC LIMIT 1"
        mistakes, when = self.store.db.execute(query, (self.found.first,)).fetchone() or (0, 0.0)
        return int(mistakes), float(when)

    def _pins(self) -> tuple[RegressionSet, list[Pin]]:
        """Return the pins of before, as they were then, and those of later."""
        gone = set(self.found.numbers)
        stored = list(pins.read_pins(self.store.db))
        kept = [pin for pin in stored if pin.example not in gone]
        self.unpinned = sorted(pin.example for pin in stored if pin.example in gone)
        before = [pin.until(self.found.first - 1) for pin in kept if pin.number < self.found.first]
        regressions = RegressionSet(self.reader, before)
        place = Place(self.found.first - 1, self.mistakes, 0, self._time_before)
        changes = regressions.changes(self.live_model, self.index, undo.idle_commit(self.live_model), place)
        regressions.accept(changes)
        if changes.broken:
            regressions.pins |= self._broken_before([pin.example for pin in changes.broken], before)
        return regressions, [pin for pin in kept if pin.number >= self.found.first]

    def _broken_before(self, examples: list[int], pinned: list[Pin]) -> dict[int, Pin]:
        """Return pins that were wrong before the first commit that changes, with what broke them then.

        The store knows it only of those that stayed wrong. The others are judged again after each commit since their own;
        where commits are missing since a repair, nobody can tell, and none is returned.
        """
        unknown = [replace(pin, broken=None) for pin in pinned if pin.example in examples]
        earliest = min(pin.number for pin in unknown)
        query = "SELECT last, examples FROM commits WHERE last < ? ORDER BY last DESC LIMIT 1"
        last, before = self.store.db.execute(query, (earliest,)).fetchone() or (0, 0)
        regressions, index = RegressionSet(self.reader, []), None
        try:
            live_model, names, _ = snapshots.recover(self.store, last)
            commits = snapshots.followed(self.store, live_model, names, last, self.found.first - 1)
            for stored, live_model, names in commits:
                new = [pin for pin in unknown if stored.first <= pin.number <= stored.last]
                if new and names is not None:
                    index = FeatureIndex(list(names))
                place = Place(stored.last, stored.mistakes_before, before, stored.time)
                regressions.accept(regressions.changes(live_model, index, stored.commit, place, new))
                before = stored.examples
        except StoreError:
            return {}
        return regressions.pins

    def run(self) -> None:
        """Write the commits anew, and the pins."""
        db, before = self.store.db, self.found.examples_before
        for (last,) in db.execute("SELECT last FROM commits WHERE last >= ? ORDER BY last", (self.found.first,)).fetchall():
            stored = _row(self.store, last)
            commit = self._relearned(stored) if stored.undoes is None else self._undone_again(stored)
            place = Place(stored.last, self.mistakes, before, stored.time)
            new = [replace(pin, broken=None) for pin in self._later_pins if stored.first <= pin.number <= stored.last]
            changes = self.regressions.changes(self.live_model, self.index, commit, place, new)
            self.regressions.accept(changes)
            self.mistakes += commit.mistakes
            before = stored.examples
        db.execute("DELETE FROM pins")
        db.executemany(pins.INSERT, [pin.row() for _, pin in sorted(self.regressions.pins.items())])

    def _write(self, stored: StoredCommit, commit: Commit) -> None:
        columns = stored._replace(
            mistakes_before=self.mistakes, mistakes=commit.mistakes, undoes=commit.undoes, body=commit.pack()
        )
        values = (*columns[4:8], checksum_of(*columns[:-1]), stored.last)
        self.store.db.execute(_UPDATE, values)

    def _relearned(self, stored: StoredCommit) -> Commit:
        """Learn from what is left of a commit."""
        old = stored.commit
        self._classes += [label for _, label in old.arrivals]
        numbers = numbers_of(stored.examples, old.n, self._forgotten)
        left = np.flatnonzero(~np.isin(numbers, self.found.numbers))
        names = self._new_names(old, left)
        if left.size:
            assert old.kept is not None
            rows = old.kept.take(left)
            if self.index is not None:
                rows = rows._replace(indices=self._column[rows.indices])
            commit = self.live_model.learn(
                *(rows, [self._classes[k] for k in old.kept_class[left].tolist()], names, _sources(old, left), True),
                *(self.stopped, np.flatnonzero(np.isin(left, old.until_right))),
            )
            self.presented += len(left)
        else:
            commit = undo.idle_commit(self.live_model)
        self.live_model.progressive.leave_out(stored.examples)
        self._place_undone(stored, old, commit, left)
        self._write(stored, commit)
        return commit

    def _new_names(self, old: Commit, left: Ints) -> list[str]:
        """Return the features that are new in what is left of a commit, which get the next columns."""
        if self.index is None:  # of vectors, those of the first that is left
            self._pending_names += old.names
            names, self._pending_names = (self._pending_names, []) if left.size else ([], self._pending_names)
            return names
        if not left.size:
            return []
        assert old.kept is not None
        columns, first = np.unique(old.kept.take(left).indices, return_index=True)
        columns = columns[np.argsort(first)]
        columns = columns[self._column[columns] < 0]
        n = len(self.index.listed)
        self._column[columns] = np.arange(n, n + len(columns))
        names = [self._old_names[column] for column in columns.tolist()]
        self.index.add(names)
        return names

    def _place_undone(self, stored: StoredCommit, old: Commit, commit: Commit, left: Ints) -> None:
        """Note where the mistakes of a commit are now that are undone later: of the same example, the same in order."""
        for number in self._undone_later:
            at = number - stored.mistakes_before - 1
            if not 0 <= at < stored.mistakes:
                continue
            position = int(old.positions[at])
            order = int(np.count_nonzero(old.positions[:at] == position))
            now = np.flatnonzero(commit.positions == np.searchsorted(left, position)) if position in left else left[:0]
            if now.size:
                at = int(now[min(order, len(now) - 1)])
                self._places[number] = MistakePlace(self.mistakes + at + 1, stored.last, at)

    def _undone_again(self, stored: StoredCommit) -> Commit:
        """Undo a mistake again, if it is still made."""
        old_number = int(stored.undoes or 0)
        place = self._places.get(old_number)
        if place is None and old_number <= self._unchanged:
            query = "SELECT last, mistakes_before FROM commits WHERE last < ? AND mistakes_before < ? AND mistakes > 0"
            last, before = self.store.db.execute(
                f"{query} ORDER BY mistakes_before DESC LIMIT 1", (self.found.first, old_number)
            ).fetchone()
            place = MistakePlace(old_number, last, old_number - before - 1)
        if place is None:
            self.dropped_undos.append(old_number)
            commit = undo.idle_commit(self.live_model)
            self._write(stored, commit)
            return commit
        commit = undo.subtracting(self.live_model, place.number, _row(self.store, place.last).commit, place.at)
        self._undone.add(place.number)
        commit.rebuilt = stored.commit.rebuilt
        self._write(stored, commit)
        if not commit.rebuilt:
            self.live_model.apply(commit)
            return commit
        rebuilt = snapshots.relearned(self.store, self._undone, stored.last)
        if rebuilt is None:
            raise RequestError(409, "the initial model cannot be read, from which an exact undo has to be made again")
        self.live_model = rebuilt
        return commit


def _sources(old: Commit, left: Ints) -> list[Any] | None:
    """Return the texts or table rows of what is left of a commit; of an earlier version, only mistakes have them."""
    if old.kept_sources is not None:
        return [old.kept_sources[at] for at in left.tolist()]
    if old.sources is None:
        return None
    known = dict(zip(old.positions.tolist(), old.sources, strict=True))
    return [known.get(at) for at in left.tolist()]
