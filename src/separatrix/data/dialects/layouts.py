"""The columns of a file without a header, by their places: what a model knows of the file that it was trained on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from separatrix.data.errors import counted

_PLACE = re.compile(r"c?(-?\d+)")


def name_at(place: int) -> str:
    """Return the name of a column of a table without a header."""
    return f"c{place}"


@dataclass(frozen=True)
class Layout:
    """The columns of a file without a header: the features in their order, and the label's name and place among them.

    `delimiter` is None where the model does not say it.
    """

    features: tuple[str, ...]
    label: str
    place: int
    delimiter: str | None = None

    @classmethod
    def of(
        cls, features: Sequence[str], label: str | None, chosen: str | None = None, delimiter: str | None = None
    ) -> Layout | None:
        """Return the layout of a model's columns where they have the names that places get, else None.

        `chosen` is where the label is now, if that was said: a name or a place from 0, from −1 at the end.

        Examples
        --------
        >>> Layout.of(["c1", "c2"], "c0").place, Layout.of(["c1", "c2"], "c0", "-1").place, Layout.of(["age"], "churned")
        (0, 2, None)
        """
        n = len(features) + 1
        if not len(features) or label is None or sorted([*features, label]) != sorted(map(name_at, range(n))):
            return None
        place = _PLACE.fullmatch(label if chosen is None else chosen)
        return None if place is None else cls(tuple(features), label, int(place[1]) % n, delimiter)

    def names_of(self, n: int, label_needed: bool) -> tuple[str, ...] | None:
        """Return the names of n columns: all of them, or those without the label; None where the number fits neither."""
        if n == len(self.features) and not label_needed:
            return self.features
        whole = (*self.features[: self.place], self.label, *self.features[self.place :])
        return whole if n == len(whole) else None

    def misfit(self, n: int, label_needed: bool) -> str:
        """Say that a table of n columns does not fit."""
        n_learned, fewer = len(self.features) + 1, "" if label_needed else f", or {len(self.features)} without it"
        return (
            f"{counted(n, 'column')} where the model was trained on {n_learned}, by their places, the label among them"
            f"{fewer}; give it the same columns in the same order, or name the delimiter with delimiter="
        )
