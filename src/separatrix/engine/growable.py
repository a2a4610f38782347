"""Arrays that grow at the end, as narrow as their values allow."""

from typing import Any

import numpy as np

from separatrix.engine.rows import Array, frozen


class Column:
    """A growing array that is as narrow as its values allow."""

    def __init__(self, dtype: str, wider: str = "") -> None:
        self._array: Array = np.empty(0, dtype)
        self._wider = wider
        self._most = np.iinfo(dtype).max if wider else 0
        self._size = 0

    @property
    def size(self) -> int:
        """How many values there are."""
        return self._size

    @property
    def values(self) -> Array:
        """The values so far, read-only."""
        return frozen(self._array[: self._size])

    def append(self, values: Array) -> None:
        """Add values at the end, widening the type when one does not fit."""
        if not values.size:
            return
        if self._wider and int(values.max() if values.size > 1 else values[0]) > self._most:
            self._array, self._wider = self._array.astype(self._wider), ""
        size = self._size + len(values)
        if size > len(self._array):
            grown = np.empty(max(size, len(self._array) + len(self._array) // 2), self._array.dtype)
            grown[: self._size] = self._array[: self._size]
            self._array = grown
        self._array[self._size : size] = values
        self._size = size

    def truncate(self, size: int) -> None:
        """Forget all but the first `size` values."""
        self._size = size

    def replace(self, values: Array) -> None:
        """Put other values in place of these."""
        self._array, self._size = values, len(values)

    def fill(self, values: Array) -> None:
        """Take over values that were kept elsewhere, in the type they have."""
        self._wider = self._wider if values.dtype == self._array.dtype else ""
        self.replace(values)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_array": self._array[: self._size].copy()}
