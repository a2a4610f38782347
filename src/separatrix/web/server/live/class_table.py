"""The classes of a model that learns: numbered in the order of their first example, sorted for decisions.

A class keeps its number and its output (the place of its weights) when others are added; only its position among the sorted
classes changes. So a new class moves no weights, as long as there is room for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import numpy as np

from separatrix.engine.rows import NO_ORDER, Ints, frozen


class ClassTable:
    """Numbers, positions and outputs of classes. Of two classes, the weights have one output, that of the second."""

    def __init__(self, labels: Iterable[Any] = ()) -> None:
        """Number sorted labels in their order; so are the outputs of a trained model."""
        self.labels = list(labels)
        """The classes, sorted."""
        self.slots: Ints = np.arange(len(self.labels))
        """The output of each class, by position."""
        self.renumber(self.labels)

    def renumber(self, listed: Iterable[Any]) -> None:
        """Number the classes in another order."""
        self.listed = list(listed)
        """The classes, by number."""
        self.number = {label: k for k, label in enumerate(self.listed)}
        numbers = [self.number[label] for label in self.labels]
        self.number_at: Ints = np.array([*numbers, -1])
        """The number at each position; −1, no class, at the end."""
        self.position_of: Ints = np.append(np.argsort(numbers), -1)
        """The position of each number; −1 at the end."""

    def add(self, label: Any) -> None:
        """Add a class: it gets the next number and the next output."""
        n, place = len(self.labels), bisect_left(self.labels, label)
        self.number[label] = n
        self.listed.append(label)
        self.labels.insert(place, label)
        self.slots = np.arange(n + 1) if n < 2 else np.insert(self.slots, place, n)
        self.number_at = np.insert(self.number_at, place, n)
        self.position_of += self.position_of >= place
        self.position_of = np.insert(self.position_of, n, place)

    def outputs_of(self, numbers: Ints) -> Ints:
        """Return the outputs of some classes by number, −1 for no class; of two classes, their positions."""
        return np.append(self.slots, -1)[self.position_of[numbers]]

    @property
    def many(self) -> Ints:
        """The outputs as the kernels read them; none of two classes, whose only output needs no place."""
        return frozen(self.slots) if len(self.labels) > 2 else NO_ORDER
