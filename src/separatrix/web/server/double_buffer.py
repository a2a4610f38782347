"""Two copies of the model: predictions read the one that is shown while the other one learns.

Once a commit is on the disk the copy that learned it is put in front, and the other follows by applying the commit: the
rows of the mistakes, not all weights. Readers never wait; the writer waits for those who still read the copy it
is about to change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from threading import Condition

from separatrix.web.server.commits import Commit
from separatrix.web.server.feature_index import FeatureIndex
from separatrix.web.server.live_model import LiveModel


class DoubleBuffer:
    """The machine that readers see, and the one that learns."""

    def __init__(self, machine: LiveModel, names: list[str] | None, number: int) -> None:
        self._shown, self.learning = machine, deepcopy(machine)
        self._readers = {id(self._shown): 0, id(self.learning): 0}
        self._left = Condition()
        self.number = number
        """The last commit that readers see."""
        self.index = None if names is None else FeatureIndex(names)

    @contextmanager
    def reading(self) -> Iterator[tuple[LiveModel, int]]:
        """Give the machine as of a commit, and the commit's number; nobody changes it meanwhile."""
        with self._left:
            machine, number = self._shown, self.number
            self._readers[id(machine)] += 1
        try:
            yield machine, number
        finally:
            with self._left:
                self._readers[id(machine)] -= 1
                self._left.notify_all()

    def names(self, machine: LiveModel) -> list[str] | None:
        """Return the names of the columns of a machine."""
        return None if self.index is None else self.index.listed[: machine.n_names]

    def publish(self, number: int) -> None:
        """Show what was learned."""
        with self._left:
            self._shown, self.learning = self.learning, self._shown
            self.number = number

    def follow(self, commit: Commit) -> None:
        """Bring the copy that is no longer shown up to date, as soon as its readers have left."""
        with self._left:
            self._left.wait_for(lambda: not self._readers[id(self.learning)])
        self.learning.apply(commit)

    def restart(self, machine: LiveModel | None = None) -> None:
        """Forget what was learned and not published; go on from another machine, or from the one shown."""
        with self._left:
            self._left.wait_for(lambda: not self._readers[id(self.learning)])
            del self._readers[id(self.learning)]
            self.learning = deepcopy(machine or self._shown)
            self._readers[id(self.learning)] = 0
        if self.index is not None:
            self.index.cut(self.learning.n_names)
