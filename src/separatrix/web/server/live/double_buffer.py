"""Two copies of the model: predictions read one of them while the other learns.

Once a commit is on the disk, the copies are swapped: readers see the copy that learned, and the other one catches up by
applying the commit (the rows of the mistakes, not all weights). Readers never wait; the writer waits until nobody reads the
copy that it is about to change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from threading import Condition

from separatrix.web.server.live.commits import Commit
from separatrix.web.server.live.live_model import LiveModel
from separatrix.web.server.reading.feature_index import FeatureIndex


class DoubleBuffer:
    """The copy that readers see, and the copy that learns."""

    def __init__(self, live_model: LiveModel, names: list[str] | None, number: int) -> None:
        self._visible, self.learning = live_model, deepcopy(live_model)
        self._readers = {id(self._visible): 0, id(self.learning): 0}
        self._readers_changed = Condition()
        self.number = number
        """The number of the last commit that readers see."""
        self.index = None if names is None else FeatureIndex(names)

    @contextmanager
    def reading(self) -> Iterator[tuple[LiveModel, int]]:
        """Yield the visible copy and the number of its last commit; it does not change in the meantime."""
        with self._readers_changed:
            live_model, number = self._visible, self.number
            self._readers[id(live_model)] += 1
        try:
            yield live_model, number
        finally:
            with self._readers_changed:
                self._readers[id(live_model)] -= 1
                self._readers_changed.notify_all()

    def names(self, live_model: LiveModel) -> list[str] | None:
        """Return the feature names of a copy; None if a featurizer makes its columns."""
        return None if self.index is None else self.index.listed[: live_model.n_names]

    def publish(self, number: int) -> None:
        """Swap the copies: readers now see what was learned up to commit `number`."""
        with self._readers_changed:
            self._visible, self.learning = self.learning, self._visible
            self.number = number

    def follow(self, commit: Commit) -> None:
        """Apply a commit to the copy that readers no longer see, once its last readers have finished."""
        with self._readers_changed:
            self._readers_changed.wait_for(lambda: not self._readers[id(self.learning)])
        self.learning.apply(commit)

    def restart(self, live_model: LiveModel | None = None) -> None:
        """Discard what was learned and not published; resume from another model, or from the visible copy."""
        with self._readers_changed:
            self._readers_changed.wait_for(lambda: not self._readers[id(self.learning)])
            del self._readers[id(self.learning)]
            self.learning = deepcopy(live_model or self._visible)
            self._readers[id(self.learning)] = 0
        if self.index is not None:
            self.index.truncate(self.learning.n_names)
